"""A simulated board: ``python -m bentpipe_boards.simulated PLAN`` builds the top for a plan (JSON, as a board describes
itself), and is that board behind a pseudo-terminal, whose name it prints, until its standard input ends.

The program is compiled once for a plan and kept in the cache of models.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bentpipe_boards.top import PAUSE, OctetTop
from bentpipe_hdl.switch.options import OPTIONS, sources_of, take_passed
from bentpipe_sim import verilated
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import digest, digest_of
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.tools import compiler, run, uncollected
from bentpipe_sim.verilog import verilog_of

__all__ = ["build"]

_HERE = Path(__file__).parent
_FLAGS = ("-std=gnu++17", "-O1", "-w")
_VERILATOR_FLAGS = ("--x-initial", "0", "-fno-merge-cond-motion", "--prefix", "Vtop", "--top-module", "top")
"""Without code motion, whose time grows as the square of the design's size in Verilator 5.048: most of six minutes of
processor time for eight nodes, by ``perf record``."""
_INITIAL = re.compile(r"^  initial begin\n(?:    \w+\[\d+\] = .*\n)+  end\n", re.MULTILINE)
"""The first contents of a memory."""
_ZERO = re.compile(r"^    \w+\[\d+\] = \d+'[dh]0+;\n", re.MULTILINE)
"""A word that is 0, as all are without it: Verilator takes longer for these than for the rest."""


def _sources() -> str:
    import bentpipe_hdl
    import bentpipe_sim

    rtl, sim = (Path(str(package.__file__)).parent for package in (bentpipe_hdl, bentpipe_sim))
    makers = [sim / "verilated.py", sim / "verilog.py", *sorted((sim / "board").glob("*.py"))]
    makers += sources_of(OPTIONS)
    return digest_of([*sorted(rtl.rglob("*.py")), *sorted(_HERE.glob("*.py")), _HERE / "terminal.cpp", *makers])


def _sources_of_ddr3() -> str:
    """Return what the core of a DDR3 memory depends on."""
    try:
        version = importlib.metadata.version("litedram")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return digest_of(sorted((_HERE / "fpga").glob("*.py"))) + version


def build(plan: Plan) -> Path:
    """Build the program that simulates a board of this plan; return its path."""
    cache, tools = Cache(), verilated.tools
    parts = ["board", plan.to_json(), _sources(), importlib.metadata.version("amaranth")]
    if plan.ddr3:
        parts.append(_sources_of_ddr3())
    index = f"index-{digest(*parts)}.json"
    known = cache.find(index, tools)
    if known:
        return known
    with cache.alone(index):
        known = cache.find(index, tools)
        if known:
            return known
        with uncollected():
            whole = verilog_of(_top(plan), "top")
        texts = [_INITIAL.sub(lambda block: _ZERO.sub("", block[0]), whole), *_cores(plan)]
        name = f"board-{digest(*texts, tools(), (_HERE / 'terminal.cpp').read_text(), *_FLAGS, *_VERILATOR_FLAGS)}"
        made = cache.make(name, lambda folder: _compiled(texts, folder))
        cache.note(index, tools(), name, "simulated board")
    return made


def _top(plan: Plan) -> Any:
    """Return the top, with a model of the memory's chip if it has one."""
    if not plan.sdram:
        return OctetTop(plan)
    if plan.ddr3:
        from bentpipe_boards.fpga.ddr3 import WithDdr3

        return WithDdr3(plan)
    from bentpipe_boards.sdram_chip import WithSdram

    return WithSdram(plan)


def _cores(plan: Plan) -> list[str]:
    """Return the cores that LiteX' packages write as Verilog: LiteDRAM with its model of a chip, for DDR3."""
    if not plan.ddr3:
        return []
    from bentpipe_boards.fpga.ddr3 import SIMULATED_HZ, litedram, rows_of

    with tempfile.TemporaryDirectory() as folder:
        return [litedram(SIMULATED_HZ, Path(folder), rows=rows_of(plan))]


def _compiled(texts: Sequence[str], folder: Path) -> Path:
    out, made = folder / "verilated", folder / "board"
    written = [folder / f"top{k or ''}.v" for k in range(len(texts))]
    for file, text in zip(written, texts, strict=True):
        file.write_text(text)
    included = verilated.verilate(written, out, "a board", *_VERILATOR_FLAGS)
    whole = folder / "whole.cpp"
    whole.write_text(f'{included}#include "{_HERE / "terminal.cpp"}"\n')
    flags = [*_FLAGS, f"-DPAUSE={PAUSE}", f"-I{out}", *verilated.cxx_options()]
    runtime = verilated.runtime()
    run([compiler(), *flags, str(whole), str(runtime), "-pthread", "-o", str(made)], "compiling a board")
    return made


def main() -> int:
    try:
        take_passed()
        program = build(Plan.from_json(sys.argv[1]))
    except (ValueError, SimulationError) as error:
        print(f"bentpipe_boards.simulated: {error}", file=sys.stderr)
        return 2
    os.execv(program, [str(program)])


if __name__ == "__main__":
    sys.exit(main())
