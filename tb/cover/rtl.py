"""Line and toggle coverage of nodes in Verilator, by random traffic: that of ``soak.widths``, at 32 bits."""

from __future__ import annotations

import ctypes
import random
import re
from collections import defaultdict
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from benches.build import CXX_FLAGS, OPTIMIZED, OPTIONS, TOP, border
from benches.compiled import Compiled
from benches.ticks import Script, play
from bentpipe_hdl.amaranth_private import ports
from bentpipe_hdl.cell import NARROW
from bentpipe_hdl.nic.control import nic_registers
from bentpipe_hdl.switch.control import options_for
from bentpipe_sim.build import Shape
from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import digest
from bentpipe_sim.tools import compiler, run
from bentpipe_sim.verilated import cxx_options, prelude, runtime, tools, verilate
from bentpipe_sim.verilog import verilog_of
from cover.python import Share
from models.switch_options import CELLS, NAMES, PORTS, VCS, alone
from models.switch_pair import script_of
from unit.widths.test_widths import link_script, nic_script

__all__ = ["CASES", "measure", "points"]

TICKS = 2500
_COVERAGE = ("--coverage-line", "--coverage-toggle")
_WRITE = """
#include "verilated_cov.h"
EXPORT void node_cover(void* node, const char* file) {
    static_cast<Vtop*>(node)->contextp()->coveragep()->write(file);
}
"""

Points = dict[tuple[str, str], Share]
"""By module and kind, ``line`` or ``toggle``."""

NEVER = "if (\\$start ) begin end"
"""Stands in each combinational block of Amaranth's Verilog, so that it is evaluated once at the start: never true, and
no line of the RTL. Verilator counts each as a branch that is not reached."""


def _switch(name: str) -> tuple[Shape, Script]:
    rng = random.Random(f"options {name}")
    setup = alone(rng, name)
    shape = {"vcs": VCS, "cells": CELLS, "ports": PORTS, "options": options_for(setup)}
    return Shape.of("switch", **shape), script_of(rng, [name], setup, shape, TICKS)


def _nic(**options: int) -> tuple[Shape, Script]:
    script = nic_script(random.Random(f"nic {options}"), TICKS, nic_registers(vcs=VCS, **options))
    return Shape.of("nic", vcs=VCS, **options), script


def _link(**options: int) -> tuple[Shape, Script]:
    delay_cells = options.get("delay_cells", 0)
    return Shape.of("link", **options), link_script(random.Random(f"link {options}"), 2 * TICKS, delay_cells)


CASES = {
    "link": lambda: _link(),
    "link, delay memory": lambda: _link(delay_cells=16),
    "nic": lambda: _nic(),
    **{f"switch, {name}": lambda name=name: _switch(name) for name in NAMES},
}
"""What is measured, by its name: a node with an option, and what is done with it."""


class _Covered(Compiled):
    def write(self, file: Path) -> None:
        """Return the points that were reached since it was made."""
        self._library.node_cover.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self._library.node_cover(self._node, str(file).encode())


def _library(shape: Shape, component: Any, text: str) -> Path:
    around = border({name: len(value) for name, (value, _) in ports(component).items()}) + _WRITE
    name = f"bench-covered-{digest(text, around, tools(), *_COVERAGE, OPTIMIZED)}.so"

    def build(folder: Path) -> Path:
        (folder / "node.v").write_text(text)
        included = verilate([folder / "node.v"], folder / "verilated", str(shape), *OPTIONS, *_COVERAGE)
        (folder / "whole.cpp").write_text(included + around)
        options = [*CXX_FLAGS, *cxx_options(), OPTIMIZED]
        command = [compiler(), *options, *prelude(options), f"-I{folder / 'verilated'}", str(folder / "whole.cpp")]
        parts = [str(runtime()), str(runtime(("verilated_cov.cpp",), OPTIMIZED))]
        run([*command, "-shared", "-Wl,-Bsymbolic", *parts, "-o", str(folder / name)], f"compiling {shape}")
        return folder / name

    return Cache().make(name, build)


def measure(name: str, folder: Path) -> Points:
    """Run a case; what it reached."""
    folder.mkdir(parents=True, exist_ok=True)
    shape, script = CASES[name]()
    component = shape.component(NARROW)
    text = verilog_of(component, TOP)
    node, file = _Covered(_library(shape, component, text)), folder / f"{re.sub(r'[^a-z]+', '-', name)}.dat"
    play(script, node, NARROW, 1)
    node.write(file)
    left_out = {number for number, line in enumerate(text.splitlines(), 1) if line.strip() == NEVER}
    return points(file.read_text(encoding="latin-1"), left_out)


def points(text: str, left_out: Container[int] = ()) -> Points:
    """The shares by module of one of Verilator's files, without these lines of the Verilog."""
    found: dict[tuple[str, str], Share] = defaultdict(Share)
    for module, kind, line, count in _read(text):
        if kind == "toggle" or line not in left_out:
            found[module, kind] += Share(int(count > 0), 1)
    return dict(sorted(found.items()))


def _read(text: str) -> Iterator[tuple[str, str, int, int]]:
    """``(module, kind, line, count)`` of each point. A branch of an ``if`` or a ``case`` counts as a line."""
    for key, count in re.findall(r"^C '(.*)' (\d+)$", text, re.MULTILINE):
        fields = dict(part.split("\x02", 1) for part in key.split("\x01") if "\x02" in part)
        kind, _, module = fields["page"].partition("/")
        yield module, "toggle" if kind == "v_toggle" else "line", int(fields["l"]), int(count)
