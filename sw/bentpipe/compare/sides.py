"""What is compared: the runs of a folder, whatever made it, and those of them that differ in their seeds only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.results.folder import read_above
from bentpipe.results.metrics import set_otherwise
from bentpipe.sweeps.table import figures_of

__all__ = ["Group", "Run", "Side", "grouped", "read_side"]

_WHOLE: Final = ("done",)


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is in a folder.

    Members
    -------
    summary : Mapping
        Its ``result.json``.
    folder : Path
    """

    summary: Mapping[str, Any]
    folder: Path

    @property
    def id(self) -> str:
        return self.summary["id"]

    @property
    def case(self) -> str:
        return (self.summary["case"] or {}).get("name", "")

    @property
    def seed(self) -> int:
        return self.summary["seed"]

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """What was set otherwise than in the experiment's file, but the seed."""
        return set_otherwise(self.summary["changes"])

    @property
    def remarks(self) -> frozenset[str]:
        """What stands between it and the experiment as it is in its file: ``shortened``, ``changed``, …"""
        found = {remark for row in self.summary["published"] for remark in row["remarks"]} - {"changed"}
        found |= {"shortened"} if self.summary["shortened"] else set()
        return frozenset(found | ({"changed"} if self.changes else set()))

    @property
    def figures(self) -> dict[str, float | None]:
        """Its figures by name, a flow's as ``FLOW.NAME``."""
        found = figures_of(self.summary)
        return {f"{flow}.{name}" if flow else name: value for (flow, name), value in found.items()}


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one case with one set of settings, which differ in their seeds; at least one."""

    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def key(self) -> tuple[str, str, str]:
        """Experiment, case, and what was set otherwise."""
        return self.first.id, self.first.case, json.dumps(self.first.changes, sort_keys=True)

    @property
    def remarks(self) -> list[str]:
        return sorted({remark for run in self.runs for remark in run.remarks})

    def values(self, metric: str) -> list[float]:
        """A figure of each run that has it."""
        found = (run.figures.get(metric) for run in self.runs)
        return [value for value in found if value is not None]


@dataclass(frozen=True, slots=True)
class Side:
    """Some runs under one name.

    Members
    -------
    name : str
    groups : tuple[Group, ...]
    over_cases : tuple[Mapping, ...]
        Published figures of all cases of an experiment together, with ours, as ``result.json`` has them; ``id`` beside.
    left_out : int
        Runs that are not done, whose figures don't count.
    """

    name: str
    groups: tuple[Group, ...]
    over_cases: tuple[Mapping[str, Any], ...]
    left_out: int


def grouped(runs: Iterable[Run]) -> tuple[Group, ...]:
    """Runs that differ in their seeds only, together, in the order in which they come. Of several with one seed, which
    are the same run, the last counts."""
    found: dict[tuple[str, str, str], dict[int, Run]] = {}
    for run in runs:
        found.setdefault(Group((run,)).key, {})[run.seed] = run
    return tuple(Group(tuple(by_seed.values())) for by_seed in found.values())


def read_side(folders: Sequence[Path]) -> Side:
    """The runs in some folders: run folders, those of experiments with cases, sweeps, or folders of all these; cases in
    the order of their experiments.

    Raises
    ------
    BentpipeError
        There is no such folder, no run in it, or one is damaged or of another schema.
    """
    runs: list[Run] = []
    over: list[Mapping[str, Any]] = []
    planned: dict[tuple[str, str], int] = {}
    left_out = 0
    for folder in folders:
        if not folder.is_dir():
            raise BentpipeError(f"{folder}: no such folder")
        files = sorted(file for file in folder.rglob("result.json") if ".running" not in file.parts)
        if not files:
            raise BentpipeError(f"{folder}: no run in it (no result.json)")
        for file in files:
            summary = read_above(file.parent)
            if summary.get("kind") == "cases":
                planned |= {(summary["id"], case): n for n, case in enumerate(summary["planned"])}
                over += [{**row, "id": summary["id"]} for row in summary["published"] if not row["case"]]
            elif "kind" in summary:
                continue
            elif summary["status"] in _WHOLE:
                runs.append(Run(summary, file.parent))
            else:
                left_out += 1
    if not runs:
        names = ", ".join(map(str, folders))
        raise BentpipeError(f"{names}: no run in it is done")
    names = [*dict.fromkeys(run.id for run in runs)]
    runs.sort(key=lambda run: (names.index(run.id), planned.get((run.id, run.case), -1)))
    return Side(", ".join(map(str, folders)), grouped(runs), tuple(over), left_out)
