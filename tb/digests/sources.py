"""Hashes of the C++ that the native engine generates for nodes of many option sets.

The same text means the same cells at the same ticks and the same speed, without a run and without a compiler. A test
compares the hashes with those kept beside this file. After a change that is meant to alter the text, and that the
commit explains, keep new ones::

    cd tb && python -m digests.sources --keep
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bentpipe_hdl.switch.options import OPTIONS, options_word
from bentpipe_sim import build
from bentpipe_sim.build import Shape
from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import digest
from bentpipe_sim.native import library
from bentpipe_sim.tools import uncollected

__all__ = ["SHAPES", "kept", "known_hash", "source_hash"]

_FILE = Path(__file__).with_name("sources.json")
_TOGETHER = (
    "copies+oam+vp",
    "credits+minimum",
    "fifo+shares",
    "police+oam",
    "queue_limit+red+fair+port_epd",
    "shape+fifo",
)
"""Sets of options whose parts meet."""


def _switch(options: str) -> Shape:
    word = options_word(options.split("+")) if options else 0
    return Shape.of("switch", vcs=64, cells=1024, ports=4, options=word)


SHAPES: Mapping[str, Shape] = {
    "switch": _switch(""),
    **{f"switch {option.name}": _switch(option.name) for option in OPTIONS},
    **{f"switch {options}": _switch(options) for options in _TOGETHER},
    "nic": Shape.of("nic", vcs=64),
    "nic credits+oam": Shape.of("nic", vcs=64, credits=1, oam=1),
    "nic sustained+frames": Shape.of("nic", vcs=64, sustained=1, frames=1),
    "nic test_cells": Shape.of("nic", vcs=64, test_cells=1),
    "link": Shape.of("link"),
    "link faults": Shape.of("link", faults=1),
    "link delay": Shape.of("link", delay_cells=1024),
}
"""Node shapes by name: each option of a switch alone, options that meet, and the options of NIC and link."""


def source_hash(shape: Shape) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the node's generated C++."""
    with uncollected():
        text = library.source(shape.component(), shape.kind)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def known_hash(shape: Shape) -> str:
    """Return the hash, and generate the C++ only if something that decides it has changed since it was last asked for:
    the RTL, the engine, Amaranth."""
    version = importlib.metadata.version("amaranth")
    name = f"bench-source-{digest(build._rtl('native'), str(shape), version)}.json"

    def made(folder: Path) -> Path:
        file = folder / name
        file.write_text(json.dumps(source_hash(shape)))
        return file

    return json.loads(Cache().make(name, made).read_text())


def kept() -> dict[str, str]:
    """Return the kept hashes by the name of the shape."""
    return json.loads(_FILE.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m digests.sources", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("shape", nargs="*", help=f"one of {', '.join(SHAPES)} (default: all)")
    parser.add_argument("--keep", action="store_true", help="keep the hashes found: the text was meant to change")
    given = parser.parse_args()
    unknown = sorted(set(given.shape) - set(SHAPES))
    if unknown:
        parser.error(f"no shape {', '.join(unknown)}")
    before = kept() if _FILE.exists() else {}
    found = {}
    for name in given.shape or SHAPES:
        begin = time.process_time()
        found[name] = source_hash(SHAPES[name])
        verdict = "new" if name not in before else "the same" if before[name] == found[name] else "differs"
        print(f"{name} ({time.process_time() - begin:.1f} s): {found[name]}, {verdict}", flush=True)
    if given.keep:
        merged = {**before, **found}
        _FILE.write_text(json.dumps({name: merged[name] for name in SHAPES if name in merged}, indent=1) + "\n")
        return 0
    return int(any(before.get(name) != value for name, value in found.items()))


if __name__ == "__main__":
    sys.exit(main())
