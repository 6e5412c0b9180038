"""The number of instructions of a case: valgrind counts them, and no other load on the machine changes the count."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.bench.cases import PS, WITH_HOSTS
from bentpipe.bench.kinds import evaluated, kind_of
from bentpipe_sim.network import Network

__all__ = ["COUNTED", "Counted", "by_object", "count", "counted", "in_tree", "run_counted"]

COUNTED: Final = (0.3, 0.35)
"""Simulated seconds between which a case's instructions are counted: the satellite's line is full."""
_COUNTED_SATELLITE: Final = (11.0, 12.0)
"""The same of one flow with hosts, over the satellite."""
_COUNTED_LAN: Final = (2.0, 3.0)
"""The same of several flows with hosts, over a LAN."""


@dataclass(frozen=True)
class Counted:
    """The instructions of a case.

    Members
    -------
    cells : int
        Cells that reached their NICs.
    evaluations : mapping of str to int
        Evaluations by kind of node.
    instructions : mapping of str to int
        Instructions by kind of node, of the event loop (``loop``), and of others.
    """

    cells: int
    evaluations: dict[str, int]
    instructions: dict[str, int]

    @property
    def a_cell(self) -> float:
        return sum(self.instructions.values()) / self.cells


def in_tree(tree: Path, *arguments: str, under: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the benchmark program of another checkout, and return the completed process."""
    paths = os.pathsep.join(str(tree / part) for part in ("hdl", "sim", "sw", "boards"))
    environment = {"BENTPIPE_HOSTS": "compiled", **os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"}
    command = [*under, sys.executable, "-m", "bentpipe.bench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{tree}: {' '.join(arguments)} failed: {done.stderr.strip().splitlines()[-1:]}")
    return done


def counted(case: str) -> tuple[float, float]:
    """Return the simulated seconds between which a case's instructions are counted."""
    kind, _, flows = case.partition("-")
    if kind not in WITH_HOSTS:
        return COUNTED
    return _COUNTED_SATELLITE if flows == "1flow" else _COUNTED_LAN


def run_counted(network: Network, run: Callable[[int], object], until_s: float) -> dict[str, Any]:
    """Run a network by this function, and return the number of its cells and evaluations."""
    run(int(until_s * PS))
    stats = network.stats()
    cells = sum(stats[node.name]["cells_in"] for node in network.nodes if node.kind == "nic")
    return {"cells": cells, "evaluations": evaluated(network)}


def count(tree: Path, case: str, between: tuple[float, float] | None = None) -> Counted:
    """Count the instructions of a case in a checkout.

    They are those of a run to the second of two simulated times (s), less those of a run to the first. With hosts they
    include Python's and those of its libraries.
    """
    between = between or counted(case)
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is missing (Debian, Ubuntu: apt install valgrind)")
    in_tree(tree, "--inside", case, "--until", "0")  # compiles what is missing
    with ThreadPoolExecutor(max_workers=2) as pool:  # other load changes nothing
        before, after = pool.map(lambda until_s: _run(tree, case, until_s), between)
    after[1].subtract(before[1])
    instructions: Counter[str] = Counter()
    for name, number in after[1].items():
        instructions[kind_of(name)] += number
    evaluations = {kind: number - before[0]["evaluations"][kind] for kind, number in after[0]["evaluations"].items()}
    return Counted(after[0]["cells"] - before[0]["cells"], evaluations, dict(instructions))


def _run(tree: Path, case: str, until_s: float) -> tuple[dict[str, Any], Counter[str]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "callgrind.out"
        under = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={file}")
        done = in_tree(tree, "--inside", case, "--until", str(until_s), under=under)
        return json.loads(done.stdout), by_object(file.read_text().splitlines())


def by_object(lines: Iterable[str]) -> Counter[str]:
    """Return the instructions by library, from a file of callgrind (Callgrind Format Specification 1)."""
    found: Counter[str] = Counter()
    names: dict[str, str] = {}
    name, called = "", False
    for line in lines:
        if line.startswith(("ob=", "cob=")):
            number, given = re.fullmatch(r"c?ob=(\(\d+\)) ?(.*)", line).groups()  # type: ignore[union-attr]
            if given:
                names[number] = given
            if line.startswith("ob="):
                name = names[number]
        elif line.startswith("calls="):
            called = True  # the next line's cost is that of what is called
        elif line[:1] in "0123456789+-*" and line:
            if not called:
                found[name] += int(line.split()[-1])
            called = False
    return found
