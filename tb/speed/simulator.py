"""Measure how much faster the native simulator is than Amaranth's, by processor time, in turns.

``python -m speed.simulator [DESIGN ...]``, in ``tb``. For each design:

- seconds to generate and compile its C++, with an empty cache
- microseconds of a clock in Amaranth's simulator, of a bench that sets up to four random inputs
- the ratio to the native simulator with the same bench, and with one that also reads all outputs after each clock
- the ratio to the compiled design alone: a loop in C++ that plays the same inputs
- of nodes, the ratio of Verilator, with the same loop, to the compiled design alone (where Verilator is installed)

All simulators run in turns; the least time of each counts. Designs of other packages are measured if these are
installed: ``luna-usb``, ``sentinel-cpu``, ``cynthion``.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import math
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import amaranth.sim
from amaranth.hdl import UnusedElaboratable

from bentpipe_hdl.amaranth_private import ports
from bentpipe_sim.errors import ToolError
from bentpipe_sim.native import Simulator
from bentpipe_sim.native.simulator.model import FAST
from bentpipe_sim.native.simulator.source import PORTS
from bentpipe_sim.tools import CSRC, CXX_FLAGS, compiler, compiler_version, run
from bentpipe_sim.verilated import cxx_options, prelude, runtime, verilate
from bentpipe_sim.verilog import verilog_of
from models.simulated_designs import OWN, Made, installed

AMARANTH, NATIVE = amaranth.sim.Simulator, Simulator
CLOCKS = {AMARANTH: 300, NATIVE: 9000}
ALONE = 100_000
"""Clocks of a loop in C++."""
ROWS = 99
"""So many clocks have inputs of their own; then they are repeated."""
VERILATED = ("link", "switch", "NIC")
TURNS = 5


def stimulus(made: Made) -> list[list[tuple[Any, int]]]:
    """Return up to four inputs, with a random value each, for each of some clocks."""
    rng, count = random.Random(1), min(4, len(made.inputs))
    return [[(value, rng.getrandbits(len(value))) for value in rng.sample(made.inputs, count)] for _ in range(ROWS)]


def bench_seconds(kind: Any, make: Callable[[], Made], reads: bool) -> float:
    """Return the processor time of a clock of a test bench in Python, in seconds."""
    made = make()
    rows, outputs, clocks, taken = stimulus(made), made.outputs, CLOCKS[kind], 0.0

    async def bench(ctx: Any) -> None:
        nonlocal taken
        begin = time.process_time()
        for k in range(clocks):
            for value, number in rows[k % ROWS]:
                ctx.set(value, number)
            await ctx.tick()
            if reads:
                for value in outputs:
                    ctx.get(value)
        taken = (time.process_time() - begin) / clocks

    simulator = kind(made.design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return taken


def build_seconds(name: str) -> float:
    """Return the processor time to generate and compile a design that is not in the cache, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "speed.simulator", "--build", name]
        done = subprocess.run(
            command, env={**os.environ, "BENTPIPE_CACHE": folder}, capture_output=True, text=True, check=True
        )
    return float(done.stdout)


def build(make: Callable[[], Made]) -> float:
    """Return the processor time to generate and compile a design, with the present cache."""
    design = make().design
    begin = os.times()
    Simulator(design)
    return sum(os.times()[:4]) - sum(begin[:4])


# The same inputs in C++


@dataclass
class Loop:
    """A loop of clocks in C++. ``library`` has ``play(state, rows, count, clocks)``: inputs of so many rows in turn."""

    library: ctypes.CDLL
    state: Any
    rows: array[int]
    owner: Any = None  # of the state's memory

    def seconds(self) -> float:
        """Return the processor time of a clock, in seconds."""
        play = self.library["play"]
        play.argtypes, play.restype = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_uint64] * 2], None
        address = self.rows.buffer_info()[0]
        begin = time.process_time()
        play(self.state, address, ROWS, ALONE)
        return (time.process_time() - begin) / ALONE


def words(width: int) -> int:
    """Return the words of 64 bits that a value takes."""
    return (width + 63) // 64


def played(made: Made) -> array[int]:
    """Return all inputs of each row of the stimulus, in words of 64 bits."""
    found, now = array("Q"), {id(value): 0 for value in made.inputs}
    for row in stimulus(made) * 2:  # from the second time on an input has a value that it keeps
        now.update({id(value): number for value, number in row})
        for value in made.inputs:
            found.extend(now[id(value)] >> 64 * k & (1 << 64) - 1 for k in range(words(len(value))))
    return found[len(found) // 2 :]


def play_text(state: str, assigned: list[tuple[str, int, bool]], clock: str) -> str:
    """Return the function ``play``. ``assigned``: of each input its place, its width, and whether it is a ``W``."""
    lines, at = [], 0
    for place, width, is_wide in assigned:
        size = words(width)
        if not place:
            pass  # nothing depends on it
        elif is_wide:
            lines += [f"{place}.w[{k}] = row[{at + k}];" for k in range(size)]
        elif width > 64:
            lines.append(f"std::memcpy(&{place}, row + {at}, sizeof {place});")
        else:
            lines.append(f"{place} = row[{at}];")
        at += size
    return f"""
extern "C" __attribute__((visibility("default")))
void play(void* p, const uint64_t* rows, uint64_t count, uint64_t clocks) {{
    {state}& s = *static_cast<{state}*>(p);
    for (uint64_t k = 0; k < clocks; ++k) {{
        const uint64_t* row = rows + k % count * {at};
        {" ".join(lines)}
        {clock}
        asm volatile("" ::: "memory");
    }}
}}
"""


def native_loop(make: Callable[[], Made], folder: Path) -> Loop:
    """Return a loop of a compiled design, as the native simulator compiles it."""
    made = make()
    engine: Any = Simulator(made.design)._engine
    model = engine.compiled.model
    names = [*model.source().whole.inputs]
    assigned = []
    for value in made.inputs:
        number = engine.number(value)
        pieces = [] if number is None else model.map.values[number]
        place = f"s.{names[pieces[0][1]]}" if pieces else ""
        assigned.append((place, len(value), len(value) > 64))
    text = model.source().library([1], [PORTS] if model.map.outputs[PORTS] else [])
    written, library = folder / "played.cpp", folder / "played.so"
    written.write_text(text + play_text("Node", assigned, "clock_1(s);"))
    run([compiler(), *CXX_FLAGS, FAST, f"-I{CSRC}", str(written), "-o", str(library)], "compiling a loop")
    return Loop(ctypes.CDLL(str(library)), engine.compiled.address, played(made), engine)


def verilator_loop(make: Callable[[], Made], folder: Path) -> Loop:
    """Return a loop of a component in Verilator."""
    made = make()
    names = {id(value): name for name, (value, _) in ports(made.design).items()}
    written, library = folder / "node.v", folder / "verilated.so"
    written.write_text(verilog_of(made.design, "node"))
    included = verilate([written], folder / "verilated", "a component", "--prefix", "Vnode")
    assigned = [(f"s.top.{names[id(value)]}", len(value), False) for value in made.inputs]
    clock = "s.top.clk = 0; s.top.eval(); s.top.clk = 1; s.top.eval();"
    begin = """
struct Whole { VerilatedContext context; Vnode top{&context}; };
extern "C" __attribute__((visibility("default"))) void* begin() { return new Whole; }
"""
    whole = folder / "verilated" / "whole.cpp"
    whole.write_text(f"{included}#include <cstring>\n{begin}{play_text('Whole', assigned, clock)}")
    options = [*CXX_FLAGS, "-O2", *cxx_options()]
    command = [compiler(), *options, *prelude(options), f"-I{folder / 'verilated'}", str(whole), str(runtime())]
    run([*command, "-o", str(library)], "compiling a loop in Verilator")
    loaded = ctypes.CDLL(str(library))
    construct = loaded["begin"]
    construct.restype = ctypes.c_void_p
    return Loop(loaded, construct(), played(made))


# All of them


def measured(name: str, make: Callable[[], Made]) -> dict[str, float]:
    """Return seconds: ``build``, and of a clock in each way."""
    with tempfile.TemporaryDirectory() as made_in:
        folder = Path(made_in)
        ways: dict[str, Callable[[], float]] = {"C++": native_loop(make, folder).seconds}
        if name in VERILATED:
            try:
                ways["Verilator"] = verilator_loop(make, folder).seconds
            except ToolError as error:
                print(f"{name}: without Verilator: {error}")
        for kind, title in ((AMARANTH, "Amaranth"), (NATIVE, "native")):
            for reads, what in ((False, "sets"), (True, "reads")):
                ways[f"{title}, {what}"] = lambda kind=kind, reads=reads: bench_seconds(kind, make, reads)
        best = dict.fromkeys(ways, math.inf)
        for _ in range(TURNS):
            for way, seconds in ways.items():
                best[way] = min(best[way], seconds())
    return {"build": min(build_seconds(name) for _ in range(2)), **best}


def row_of(name: str, found: dict[str, float]) -> str:
    """Return the row of a design in the table."""
    sets, reads, alone = found["Amaranth, sets"], found["Amaranth, reads"], found["C++"]
    beside = f"{found['Verilator'] / alone:.1f}" if "Verilator" in found else ""
    cells = [
        name,
        f"{found['build']:.1f}",
        f"{sets * 1e6:.0f}",
        f"{sets / found['native, sets']:.0f}",
        f"{reads / found['native, reads']:.0f}",
        f"{sets / alone:,.0f}",
        beside,
    ]
    return f"| {' | '.join(cells)} |"


def versions() -> str:
    """Return the versions on which the measurement depends."""
    found = [f"Python {platform.python_version()}"]
    number = re.search(r"\d+\.\d+\.\d+", compiler_version())
    found.append(f"{compiler()} {number[0] if number else ''}")
    for package in ("amaranth", "verilator", "luna-usb", "sentinel-cpu", "cynthion", "luna-soc"):
        with suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{package} {importlib.metadata.version(package)}")
    return ", ".join(found)


def main() -> None:
    """Measure the designs that are named, or all."""
    warnings.simplefilter("ignore", UnusedElaboratable)  # of designs that only their inputs are wanted of
    designs = {**OWN, **dict(installed())}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("design", nargs="*", help=f"{', '.join(designs)} (default: all)")
    parser.add_argument("--build", metavar="DESIGN", help="only the seconds to build it, with the present cache")
    given = parser.parse_args()
    if given.build:
        print(build(designs[given.build]))
        return
    unknown = set(given.design) - set(designs)
    if unknown:
        parser.error(f"no design {', '.join(sorted(unknown))}: there are {', '.join(designs)}")
    print(versions())
    print("| design | build, s | Amaranth, us a clock | sets | and reads all outputs | C++ | Verilator to C++ |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for name in given.design or designs:
        print(row_of(name, measured(name, designs[name])), flush=True)


if __name__ == "__main__":
    main()
