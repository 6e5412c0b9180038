"""Branch coverage of the Python packages by the default tests, those in processes of their own included."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePath

__all__ = ["Share", "by_package", "files", "measure"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Share:
    """Statements and branches together: those that were reached, of all."""

    reached: int = 0
    all: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.reached + other.reached, self.all + other.all)

    @property
    def percent(self) -> float:
        return 100 * self.reached / self.all if self.all else 100.0


def measure(folder: Path, workers: int, tests: list[str]) -> int:
    """Run the tests under coverage.py and write ``python.json``; return pytest's exit code.

    Data of an earlier measurement are removed. The cache of compiled nodes is empty at the beginning: a node that is
    in the cache is not elaborated, so the RTL's Python would seem not to be reached.
    """
    folder.mkdir(parents=True, exist_ok=True)
    coverage = [sys.executable, "-m", "coverage"]
    os.environ["COVERAGE_FILE"] = str(folder / "data")  # absolute, since some tests work in other folders
    subprocess.run([*coverage, "erase"], cwd=ROOT, check=True)
    os.environ["BENTPIPE_CACHE"] = str(folder / "cache")
    shutil.rmtree(folder / "cache", ignore_errors=True)
    os.environ.setdefault("BENTPIPE_HOSTS", "plain")  # lines of compiled hosts are not seen
    suite = ["-m", "pytest", "-n", str(workers), "--dist", "worksteal", *tests]
    code = subprocess.run([*coverage, "run", *suite], cwd=ROOT, check=False).returncode
    subprocess.run([*coverage, "combine", "--quiet"], cwd=ROOT, check=True)
    subprocess.run(
        [*coverage, "json", "--quiet", "--ignore-errors", "-o", str(folder / "python.json")], cwd=ROOT, check=True
    )
    return code


def files(report: Path) -> dict[str, Share]:
    """Return the share of each file of the tree, as ``coverage json`` has it.

    Some tests run a copy of a package in a temporary folder; copies are left out.
    """
    found = {}
    for name, entry in json.loads(report.read_text())["files"].items():
        if PurePath(name).is_absolute():
            continue
        counts = entry["summary"]
        reached = counts["covered_lines"] + counts["covered_branches"]
        found[PurePath(name).as_posix()] = Share(reached, counts["num_statements"] + counts["num_branches"])
    return found


def by_package(shares: dict[str, Share]) -> dict[str, Share]:
    """The shares summed by folder."""
    found: dict[str, Share] = defaultdict(Share)
    for name, share in shares.items():
        found[str(PurePath(name).parent)] += share
    return dict(sorted(found.items()))
