"""The sides of a comparison: the runs of a folder, in groups whose runs differ only in their seeds.

The runs of a group have the same settings, the same experiment file and the same time limit. The order in which folders
are named or found has no effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.changes import UNCHANGING
from bentpipe.results.folder import read_above
from bentpipe.results.metrics import NOT_COMPARED, set_otherwise
from bentpipe.sweeps.table import figures_of
from bentpipe_hdl.units import format_time

__all__ = ["OverCases", "Run", "SeedGroup", "Side", "document_of", "grouped", "read_side"]

_WHOLE: Final = ("done",)
_NAMES: Final = ("published", "theory", "expect", "case", "axis", *UNCHANGING)
"""Tables and keys of a document that change no figure, or that a run has elsewhere: its seed, its time limit."""


def document_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the experiment's document that decide figures, without seed and time limit."""
    given = summary["configuration"]
    return {name: value for name, value in given.items() if name not in (*_NAMES, "experiment")}


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
    def limit_ps(self) -> int:
        """The time at which the run ends, unless its flows have ended before."""
        return round(self.summary["time"]["limit_s"] * 1e12)

    @property
    def started(self) -> tuple[str, str]:
        """The time at which the run began, and its folder; the later of two runs is greater."""
        return self.summary["time"].get("started", ""), str(self.folder)

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """The settings that differ from the experiment's file, without the seed."""
        return set_otherwise(self.summary["changes"])

    @property
    def set_apart(self) -> list[Mapping[str, Any]]:
        """The changes, and the time limit where it is below the duration in the file."""
        full_ps = round(self.summary["time"]["full_s"] * 1e12)
        if self.limit_ps >= full_ps:
            return self.changes
        old, new = (format_time(time_ps) for time_ps in (full_ps, self.limit_ps))
        return [*self.changes, {"key": "experiment.duration", "old": old, "new": new}]

    @property
    def board(self) -> list[str]:
        """The board that the run was on by itself, or ``--board-ticks``; nothing for other runs."""
        about = self.summary.get("board") or {}
        if about.get("alone"):
            return [f"{about['target']} by itself"]
        return ["native network with --board-ticks"] if self.summary.get("board_ticks") else []

    @property
    def remarks(self) -> frozenset[str]:
        """Return how the run differs from the experiment in its file: ``shortened``, ``changed`` and others."""
        found = {remark for row in self.summary["published"] for remark in row["remarks"]} - {"changed"}
        found |= {"shortened"} if self.summary["shortened"] else set()
        found |= {*self.board}
        return frozenset(found | ({"changed"} if self.changes else set()))

    @property
    def figures(self) -> dict[str, float | None]:
        """The run's figures by name; a flow's figure is ``FLOW.NAME``."""
        found = figures_of(self.summary)
        return {f"{flow}.{name}" if flow else name: value for (flow, name), value in found.items()}


@dataclass(frozen=True, slots=True)
class SeedGroup:
    """Runs of one case with one set of settings, which differ in their seeds; at least one."""

    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Experiment, case, what was set (with a board by itself, that too), and the time limit (ps)."""
        first = self.first
        given = [first.changes, document_of(first.summary), *first.board]
        return first.id, first.case, json.dumps(given, sort_keys=True), first.limit_ps

    @property
    def remarks(self) -> list[str]:
        return sorted({remark for run in self.runs for remark in run.remarks})

    @property
    def compared(self) -> bool:
        """Nothing forbids a comparison with published figures."""
        return not NOT_COMPARED.intersection(self.remarks)

    def values(self, metric: str) -> list[float]:
        """Return a figure of each run that has it."""
        found = (run.figures.get(metric) for run in self.runs)
        return [value for value in found if value is not None]


@dataclass(frozen=True, slots=True)
class OverCases:
    """The published figures of all cases of an experiment together, with ours.

    Members
    -------
    summary : Mapping
        ``result.json`` above the cases' folders.
    folder : Path
    """

    summary: Mapping[str, Any]
    folder: Path

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        return [row for row in self.summary["published"] if not row["case"]]

    @property
    def set_key(self) -> str:
        """The settings as a key: changes and time limit of each case."""
        cases = [
            (case["name"], set_otherwise(case["changes"]), case["time"]["limit_s"]) for case in self.summary["cases"]
        ]
        common = set_otherwise(self.summary["changes"])
        return json.dumps([self.summary["id"], self.summary["planned"], common, cases], sort_keys=True)

    @property
    def changed(self) -> str:
        """The settings as a key, without time limits."""
        cases = [(case["name"], set_otherwise(case["changes"])) for case in self.summary["cases"]]
        return json.dumps([self.summary["id"], set_otherwise(self.summary["changes"]), cases], sort_keys=True)

    @property
    def compared(self) -> bool:
        """Nothing forbids a comparison with published figures."""
        return not any(NOT_COMPARED.intersection(row["remarks"]) for row in self.rows)

    @property
    def started(self) -> tuple[str, str]:
        """The time at which the last case began, and the folder; the later of two is greater."""
        return max((case["time"].get("started", "") for case in self.summary["cases"]), default=""), str(self.folder)


@dataclass(frozen=True, slots=True)
class Side:
    """Some runs under one name.

    Members
    -------
    name : str
    groups : tuple[SeedGroup, ...]
    over_cases : tuple[tuple[OverCases, ...], ...]
        Those that differ in their seeds only, together.
    left_out : int
        Runs that are not done, whose figures do not count.
    doubled : int
        Runs left out as another one has the same settings and the same seed, and began later.
    """

    name: str
    groups: tuple[SeedGroup, ...]
    over_cases: tuple[tuple[OverCases, ...], ...]
    left_out: int
    doubled: int = 0

    def plain(self) -> dict[tuple[str, str], SeedGroup]:
        """Return the groups without changes, by experiment and case: of several the one that compares with published
        figures, and of these the one with the longest time limit."""
        found: dict[tuple[str, str], SeedGroup] = {}
        for group in sorted(self.groups, key=lambda g: (g.compared, g.key[3], g.key)):
            if not group.first.changes:
                found[group.first.id, group.first.case] = group
        return found

    def comparable(self) -> tuple[Side, tuple[SeedGroup, ...]]:
        """Return the groups that are compared with published figures, and those that are left out.

        A group is left out if it was shortened, or does not compare for another reason, and others with the same
        settings do.
        """
        best: dict[tuple[str, str, str], tuple[bool, int]] = {}
        for group in self.groups:
            rank = group.compared, group.first.limit_ps
            best[group.key[:3]] = max(best.get(group.key[:3], rank), rank)
        out = tuple(g for g in self.groups if best[g.key[:3]][0] and best[g.key[:3]] != (g.compared, g.first.limit_ps))
        whole = {same[0].changed for same in self.over_cases if same[0].compared}
        over = tuple(same for same in self.over_cases if same[0].compared or same[0].changed not in whole)
        groups = tuple(group for group in self.groups if group not in out)
        return Side(self.name, groups, over, self.left_out, self.doubled), out

    def notes(self) -> list[str]:
        """Return the groups that were left out of the side, in words."""
        found = []
        if self.left_out:
            found.append(f"{self.name}: left out as they are not done: {_many(self.left_out, 'run')}.")
        if self.doubled:
            many = _many(self.doubled, "run")
            found.append(f"{self.name}: left out as a later run has the same settings and the same seed: {many}.")
        return found


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def grouped(runs: Iterable[Run]) -> tuple[SeedGroup, ...]:
    """Return runs that differ only in their seeds, in groups, ordered by their seeds.

    The groups are in the order of their first runs. Of several runs with one seed the one that began last counts.
    """
    found: dict[tuple[str, str, str, int], dict[int, Run]] = {}
    for run in runs:
        same = found.setdefault(SeedGroup((run,)).key, {})
        if run.seed not in same or run.started >= same[run.seed].started:
            same[run.seed] = run
    return tuple(SeedGroup(tuple(by_seed[seed] for seed in sorted(by_seed))) for by_seed in found.values())


def _over_grouped(found: Iterable[OverCases]) -> tuple[tuple[OverCases, ...], ...]:
    """Return the same for figures of all cases together."""
    groups: dict[str, dict[int, OverCases]] = {}
    for each in sorted(found, key=lambda each: (each.set_key, each.started)):
        groups.setdefault(each.set_key, {})[each.summary["seed"]] = each
    return tuple(tuple(by_seed[seed] for seed in sorted(by_seed)) for by_seed in groups.values())


def read_side(folders: Sequence[Path]) -> Side:
    """Return the runs in some folders: run folders, those of experiments with cases, sweeps, or folders of all these.
    Experiments come by their names, cases in the order of their experiment.

    Raises
    ------
    BentpipeError
        There is no such folder, no run in it, or one is damaged or of another schema.
    """
    runs: dict[Path, Run] = {}
    over: dict[Path, OverCases] = {}
    planned: dict[str, Sequence[str]] = {}
    left_out: set[Path] = set()
    for folder in folders:
        if not folder.is_dir():
            raise BentpipeError(f"{folder}: no such folder")
        files = sorted(file for file in folder.rglob("result.json") if ".running" not in file.parts)
        if not files:
            raise BentpipeError(f"{folder}: no run in it (no result.json)")
        for file in files:
            summary, own = read_above(file.parent), file.parent.resolve()
            if summary.get("kind") == "cases":
                cases = max(planned.get(summary["id"], ()), summary["planned"], key=lambda names: (len(names), names))
                planned[summary["id"]] = cases
                over[own] = OverCases(summary, own)
            elif "kind" in summary:
                continue
            elif summary["status"] in _WHOLE:
                runs[own] = Run(summary, file.parent)
            else:
                left_out.add(own)
    if not runs:
        names = ", ".join(map(str, folders))
        raise BentpipeError(f"{names}: no run in it is done")

    def place(group: SeedGroup) -> tuple[Any, ...]:
        name, case, given, limit_ps = group.key
        cases = planned.get(name, ())
        order = cases.index(case) if case in cases else len(cases)
        return name, order, case, not group.compared, len(group.first.changes), given, -limit_ps

    groups = tuple(sorted(grouped(runs.values()), key=place))
    doubled = len(runs) - sum(len(group.runs) for group in groups)
    with_rows = (each for each in over.values() if each.rows)
    return Side(", ".join(map(str, folders)), groups, _over_grouped(with_rows), len(left_out), doubled)
