"""``python -m exported``: nodes of ``bentpipe rtl`` in each simulator beside Amaranth's own.

Each node gets random traffic. From the end of the reset on every output has to be equal in every clock, so that none
is X or Z. Exit code 1: one was different. 2: a tool is missing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

from bentpipe_sim.verilated import source
from exported.cores import CORE_NODES
from exported.nodes import NODES as NODES_OF_NETWORKS
from exported.reference import Trace, trace
from exported.simulators import SIMULATORS

NODES = {**NODES_OF_NETWORKS, **CORE_NODES}


def difference(expected: Trace, got: list[str]) -> str | None:
    """Return the first difference behind the reset, None if there is none."""
    rows = expected.text(expected.got, expected.outputs)
    if len(got) != len(rows):
        return f"{len(got)} clocks, not {len(rows)}"
    for clock, (mine, other) in enumerate(zip(rows, got, strict=True)):
        if clock >= expected.reset and mine != other.lower():
            return f"clock {clock}: {other}, not {mine} ({', '.join(expected.outputs)}, the last one first)"
    return None


def check(name: str, clocks: int, seed: int) -> list[str]:
    """Return a line for each simulator in which the node is different."""
    node = NODES[name]
    expected, text = trace(node, clocks, seed), source(node.component(), "node")
    busy = sum(one != other for one, other in pairwise(expected.got))
    found = [] if busy > clocks // node.busy else [f"{name}: outputs change in {busy} of {clocks} clocks only"]
    print("\n".join(found), end="\n" * len(found))
    for simulator, simulate in SIMULATORS.items():
        with tempfile.TemporaryDirectory() as folder:
            wrong = difference(expected, simulate(text, expected, Path(folder)))
        print(f"{name} in {simulator}: {wrong or f'equal for {clocks} clocks'}", flush=True)
        if wrong:
            found.append(f"{name} in {simulator}: {wrong}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m exported", description=__doc__)
    parser.add_argument("nodes", nargs="*", metavar="NODE", help=f"of {', '.join(NODES)} (default: all)")
    parser.add_argument("--clocks", type=int, default=8000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    given = parser.parse_args()
    if unknown := set(given.nodes) - set(NODES):
        parser.error(f"no node is called {', '.join(unknown)}")
    if shutil.which("iverilog") is None:
        print("rtl-check: Icarus Verilog is missing: apt-get install iverilog", file=sys.stderr)
        return 2
    names = given.nodes or list(NODES)
    with ProcessPoolExecutor(given.workers) as pool:
        jobs = [pool.submit(check, name, given.clocks, given.seed) for name in names]
        wrong = [line for job in jobs for line in job.result()]
    print(f"{len(names) * len(SIMULATORS) - len(wrong)} passed, {len(wrong)} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
