"""The simulator runs with the files of its own package alone (``packaging/simulator``)."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "packaging" / "simulator" / "pyproject.toml"

PROGRAM = """
from amaranth.hdl import Module, Signal
from bentpipe_sim.native import Simulator
m, n = Module(), Signal(8)
m.d.sync += n.eq(n + 1)
simulator = Simulator(m)
simulator.add_clock(1e-6)
async def bench(ctx):
    await ctx.tick().repeat(5)
    print(ctx.get(n))
simulator.add_testbench(bench)
simulator.run()
"""


def test_it_needs_nothing_else(tmp_path):
    included = tomllib.loads(PACKAGE.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in included.items():
        found, made = (PACKAGE.parent / source).resolve(), tmp_path / target
        made.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(found, made) if found.is_dir() else shutil.copy(found, made)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout == "5\n", done.stderr
