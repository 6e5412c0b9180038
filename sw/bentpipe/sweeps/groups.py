"""Means over the runs of a sweep that differ in their seeds only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.results.statistics import Mean, mean_of

__all__ = ["UNEXPECTED", "RowGroup", "group_rows"]

UNEXPECTED: Final = "unexpected"
"""The verdict on a run that is done, and is not what ``[[expect]]`` says; its figures count."""

_OF_A_RUN: Final = frozenset({"seed", "value", "verdict", "remarks", "seconds", "run"})
"""Columns in which the rows of a group may differ."""


_COUNT: Final = ("done", UNEXPECTED)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A figure over some seeds.

    Members
    -------
    at : dict[str, Any]
        The columns that its rows have in common: experiment, case, what is varied, flow, metric, unit.
    mean : Mean | None
        Of the runs that are done and have the figure; None if none has.
    seeds : tuple[int, ...]
        Of those.
    left_out : int
        Runs that are not done, whose figures do not count.
    """

    at: dict[str, Any]
    mean: Mean | None
    seeds: tuple[int, ...]
    left_out: int


def group_rows(rows: Iterable[Mapping[str, Any]]) -> list[RowGroup]:
    """Return the groups of a table's rows (``table.to_pylist()``), in their order. A run without a result has no
    figures and is in no group."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    names: list[str] = []
    for row in rows:
        names = names or [name for name in row if name not in _OF_A_RUN]
        if row["metric"]:
            found.setdefault(tuple(row[name] for name in names), []).append(row)
    groups = []
    for at, same in found.items():
        counted = [row for row in same if row["verdict"] in _COUNT and row["value"] is not None]
        mean = mean_of([row["value"] for row in counted]) if counted else None
        left_out = sum(row["verdict"] not in _COUNT for row in same)
        seeds = tuple(row["seed"] for row in counted)
        groups.append(RowGroup(dict(zip(names, at, strict=True)), mean, seeds, left_out))
    return groups
