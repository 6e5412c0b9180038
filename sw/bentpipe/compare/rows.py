"""Figures beside each other: those of two sides, and those of runs and of papers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.compare.sides import SeedGroup, Side, document_of
from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.changes import changes_between
from bentpipe.results.declared import scale_of
from bentpipe.results.metrics import NOT_COMPARED, has_average, in_unit
from bentpipe.results.statistics import Mean, apart, mean_of
from bentpipe.results.tables import change_text
from bentpipe_hdl.units import format_time
from bentpipe_hdl.words import nearest

__all__ = [
    "KINDS",
    "Errors",
    "against_published",
    "beside",
    "different",
    "error_percent",
    "errors_of",
    "groups_text",
    "pairs_of",
    "seeds_text",
    "unpaired_text",
]

_ALWAYS: Final = (
    "aggregate_goodput",
    "sum_of_flow_rates",
    "fairness",
    "efficiency",
    "retransmits",
    "timeouts",
    "pdus_lost",
    "cells_dropped",
)
"""Figures that are compared unless some are named."""

KINDS: Final = ("measured", "predicted", "given back")
"""Published figures are counted apart as: measured ones, those that have a prediction alone, and those from which a
setting was taken."""

_EACH: Final = 8
"""Up to so many flows each is compared, too."""


def error_percent(ours: float | None, theirs: float | None) -> float | None:
    """Return by how many percent ours is above theirs; None where there is nothing to divide by."""
    return None if ours is None or not theirs else 100 * (ours - theirs) / theirs


def pairs_of(ours: Side, theirs: Side) -> list[tuple[SeedGroup, SeedGroup]]:
    """Return the pairs of groups to compare, in the order of ``ours``.

    Groups are paired by the first rule that fits: equal experiment, case, settings and time limit; all but the limit;
    the only group of its experiment and case on each side; the only one of its case; the only one.
    """
    left, right = list(ours.groups), list(theirs.groups)
    found: list[tuple[SeedGroup, SeedGroup]] = []
    for name in (lambda g: g.key, lambda g: g.key[:3], lambda g: g.key[:2], lambda g: g.key[1], lambda g: ""):
        one, two = _only(left, name), _only(right, name)
        pairs = [(one[key], two[key]) for key in one if key in two]
        found += pairs
        left = [group for group in left if all(group is not a for a, _ in pairs)]
        right = [group for group in right if all(group is not b for _, b in pairs)]
    order = {id(group): n for n, group in enumerate(ours.groups)}
    return sorted(found, key=lambda pair: order[id(pair[0])])


def _only(groups: Iterable[SeedGroup], name: Any) -> dict[Any, SeedGroup]:
    """Return the groups whose name no other group has."""
    found: dict[Any, list[SeedGroup]] = {}
    for group in groups:
        found.setdefault(name(group), []).append(group)
    return {key: same[0] for key, same in found.items() if len(same) == 1}


def different(ours: SeedGroup, theirs: SeedGroup) -> list[dict[str, Any]]:
    """Return the settings that differ: each key with our value and theirs; the time limit, too."""
    one, two = (document_of(group.first.summary) for group in (ours, theirs))
    found = [{"key": change.key, "ours": change.new, "theirs": change.old} for change in changes_between(two, one, {})]
    limits = [group.first.limit_ps for group in (ours, theirs)]
    if limits[0] != limits[1]:
        mine, other = map(format_time, limits)
        found.append({"key": "experiment.duration", "ours": mine, "theirs": other})
    mine, other = (", ".join(group.first.board) or "native network" for group in (ours, theirs))
    if mine != other:
        found.append({"key": "cells carried by", "ours": mine, "theirs": other})
    return found


def seeds_text(ours: SeedGroup, theirs: SeedGroup) -> str | None:
    """Return which seeds two groups have, in words; None if they have the same."""
    one, two = ([run.seed for run in group.runs] for group in (ours, theirs))
    if one == two:
        return None
    mine, other = (", ".join(map(str, seeds)) for seeds in (one, two))
    return f"Seeds: ours {mine}; theirs {other}."


def unpaired_text(ours: Side, theirs: Side) -> list[str]:
    """Return the groups of two sides that are in no pair, in words."""
    pairs = pairs_of(ours, theirs)
    found = []
    for index, side in enumerate((ours, theirs)):
        alone = [group for group in side.groups if all(group is not pair[index] for pair in pairs)]
        if alone:
            found.append(f"{side.name}: left out as the other side has none to compare: {groups_text(alone)}.")
    return found


def groups_text(groups: Iterable[SeedGroup]) -> str:
    """Return which runs some groups have, in words."""
    parts = []
    for group in groups:
        seeds = [] if len(group.runs) == 1 else [f"{len(group.runs)} seeds"]
        what = "; ".join(filter(None, (group.first.case, *map(change_text, group.first.set_apart), *seeds)))
        parts.append(f"{group.first.id} ({what})" if what else group.first.id)
    return ", ".join(parts)


def beside(ours: Side, theirs: Side, metrics: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each figure of each pair: both means with their intervals, the error of ours, the interval of
    the difference where both have several seeds.

    Parameters
    ----------
    ours, theirs : Side
    metrics : Sequence[str]
        These only.

    Raises
    ------
    BentpipeError
        Nothing is comparable, or no run has such a figure.
    """
    pairs = pairs_of(ours, theirs)
    if not pairs:
        raise BentpipeError(f"{ours.name} and {theirs.name} have no case in common")
    rows = []
    for one, two in pairs:
        for metric in metrics or _metrics(one, two):
            a, b = one.values(metric), two.values(metric)
            if not (a and b):
                continue
            unit, per = scale_of(metric)
            mine, other = (mean_of([value / per for value in values]) for values in (a, b))
            rows.append(
                {
                    "experiment": one.first.id,
                    "case": one.first.case,
                    "changes": [change_text(change) for change in one.first.set_apart],
                    "metric": metric,
                    "unit": unit,
                    "ours": _mean(mine),
                    "theirs": _mean(other),
                    "error_percent": error_percent(mine.mean, other.mean),
                    "difference": mine.mean - other.mean,
                    "difference_half": apart(mine, other),
                    "remarks": sorted({*one.remarks, *two.remarks} & NOT_COMPARED),
                }
            )
    if not rows:
        known = sorted({metric for group in ours.groups for run in group.runs for metric in run.figures})
        raise BentpipeError(f"no run has a figure {metrics[0]!r}{nearest(metrics[0], known)}")
    return rows


def _metrics(one: SeedGroup, two: SeedGroup) -> list[str]:
    flows = one.first.summary["flows"]
    each = [f"{flow['name']}.goodput" for flow in flows] if 1 < len(flows) <= _EACH else []
    rows = (*one.first.summary["published"], *two.first.summary["published"])
    return [*dict.fromkeys((*_ALWAYS, *each, *(row["metric"] for row in rows if row["metric"])))]


def _mean(mean: Mean) -> dict[str, Any]:
    return {"mean": mean.mean, "half": mean.half, "seeds": mean.count, "least": mean.least, "most": mean.most}


def against_published(side: Side) -> list[dict[str, Any]]:
    """Return a row for each published figure of the experiments that have run: measured, predicted, ours with its
    interval, the error of ours and of the authors' own prediction. Of a withheld one, ours.

    A figure that was published for several trials (``over``), such as the best or the standard deviation, is compared
    with the same figure of our runs. One run is one trial: where the average of the same trials is published, the best
    has no error then. A row whose runs were shortened, unfinished or failed has no errors.
    """
    rows = [row for group in side.groups for row in _of_group(group)]
    for same in side.over_cases:
        for each in zip(*(one.rows for one in same), strict=True):
            remarks = sorted({remark for row in each for remark in row["remarks"]})
            ours = [row["ours"] for row in each if row["ours"] is not None]
            rows.append(_row(same[0].summary["id"], each[0], ours, remarks, 0, False))
    return rows


def _of_group(group: SeedGroup) -> Iterator[dict[str, Any]]:
    carried = sum(flow["octets_delivered"] > 0 for flow in group.first.summary["flows"])
    published = group.first.summary["published"]
    for row in published:
        twice = row.get("over") == "best" and has_average(row, published)
        values = [in_unit(row["metric"], row["unit"], value) for value in group.values(row["metric"])]
        changes = [change_text(change) for change in group.first.set_apart]
        yield {**_row(group.first.id, row, values, group.remarks, carried, twice), "changes": changes}


def _kind(row: Mapping[str, Any]) -> str:
    """Return how a published figure is counted: one of :data:`KINDS`; "" if it is withheld."""
    if row.get("given_back"):
        return "given back"
    return "measured" if row["measured"] is not None else "predicted" if row["predicted"] is not None else ""


def _row(
    name: str, row: Mapping[str, Any], values: Sequence[float], remarks: Sequence[str], flows: int, twice: bool
) -> dict[str, Any]:
    """Return a row. ``twice``: it is the best of trials whose average is published, too."""
    over = row.get("over", "mean")
    mean = mean_of(values) if values else None
    ours = mean and {"mean": mean.mean, "best": mean.most, "sigma": mean.sigma}[over]
    compared = not NOT_COMPARED.intersection(remarks) and not (twice and len(values) == 1)
    measured, predicted = row["measured"], row["predicted"]
    return {
        "experiment": name,
        "case": row["case"],
        "quantity": row["quantity"],
        "metric": row["metric"],
        "over": over,
        "unit": row["unit"],
        "source": row["source"],
        "measured": measured,
        "predicted": predicted,
        "withheld": measured is None and predicted is None,
        "ours": ours,
        "half": mean.half if mean and over == "mean" else None,
        "least": mean.least if mean else None,
        "most": mean.most if mean else None,
        "seeds": mean.count if mean else 0,
        "error_percent": error_percent(ours, measured if measured is not None else predicted) if compared else None,
        "kind": _kind(row),
        "against": "measured" if measured is not None else "predicted" if predicted is not None else None,
        "authors_percent": None if predicted is None else error_percent(predicted, measured),
        "flows": flows,
        "remarks": list(remarks),
        "changes": [],
    }


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of some rows.

    Members
    -------
    name : str
    count : int
    mean_percent, median_percent : float
        Of the errors without their signs.
    near, near_percent : int
        Rows whose error is at most so many percent.
    worst : Mapping
        The row with the largest.
    nearer, predicted : int
        Rows in which ours is nearer to what was measured than what the authors predicted, and those with both figures.
    """

    name: str
    count: int
    mean_percent: float
    worst: Mapping[str, Any]
    median_percent: float = 0.0
    near: int = 0
    near_percent: int = 0
    nearer: int = 0
    predicted: int = 0


def errors_of(name: str, rows: Iterable[Mapping[str, Any]], near_percent: int = 25) -> Errors | None:
    """Return the errors of rows that have one, runs with changed settings left out; None if none has."""
    found = [row for row in rows if row["error_percent"] is not None and "changed" not in row["remarks"]]
    if not found:
        return None
    sizes = [abs(row["error_percent"]) for row in found]
    both = [row for row in found if row.get("authors_percent") is not None]
    return Errors(
        name,
        len(found),
        sum(sizes) / len(sizes),
        found[sizes.index(max(sizes))],
        statistics.median(sizes),
        sum(size <= near_percent for size in sizes),
        near_percent,
        sum(abs(row["error_percent"]) < abs(row["authors_percent"]) for row in both),
        len(both),
    )
