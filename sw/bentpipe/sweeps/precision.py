"""Sequential stopping: seeds are added to a sweep until the interval of a figure is narrow enough, or will not be.

After each round the points (a case with values of what is varied) whose 95 % interval is too wide get more seeds: as
many as their spread asks for, but no more than they have already, and not beyond a limit. A point whose spread asks for
more than the limit stops there, and the sweep says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.results.declared import label_of
from bentpipe.sweeps.plan import Plan, PlannedRun

__all__ = ["FIRST_SEEDS", "Precision", "parse_precision", "run_until_precise"]

FIRST_SEEDS: Final = (1, 2, 3, 4, 5)
"""Seeds of the first round, unless given: with fewer the spread is hardly known."""

_TEXT: Final = re.compile(r"\s*(\S+)\s*:\s*(\d+\.?\d*(?:[eE]-?\d+)?)\s*(%?)\s*")


@dataclass(frozen=True, slots=True)
class Precision:
    """The wanted precision of a figure.

    Members
    -------
    metric : str
    share : float
        Half the width of the 95 % interval, as a share of the mean.
    most : int
        Most seeds of a point.
    """

    metric: str
    share: float
    most: int

    def __str__(self) -> str:
        return f"{self.metric}: {100 * self.share:g} %"


def parse_precision(text: str, most: int) -> Precision:
    """Return the precision of ``METRIC: 10 %``, or of ``METRIC: 0.1``.

    Raises
    ------
    BentpipeError
        It is none, or not between 0 and 100 %.
    """
    match = _TEXT.fullmatch(text)
    share = 0.0 if match is None else float(match[2]) / (100 if match[3] else 1)
    if match is None or not 0 < share < 1:
        raise BentpipeError(f"--precision {text}: expected METRIC: SHARE, as 'cell_loss_ratio: 10 %'")
    return Precision(match[1], share, most)


def run_until_precise(plan: Plan, precision: Precision, run: Callable[[Plan], dict[str, Any]]) -> dict[str, Any]:
    """Run rounds of a sweep until each point is precise enough or cannot be.

    Parameters
    ----------
    plan : Plan
        Of the first round.
    precision : Precision
    run : callable
        Runs what is left of a plan, and returns the sweep's ``result.json``.

    Returns
    -------
    dict
        ``result.json`` of the last round, with ``precision``: what was asked for, and of each point its seeds, the
        share ``reached``, whether that is ``met``, and how many seeds the spread asks for (``needed``; None: not
        known).
    """
    while True:
        summary = run(plan)
        points = [_point(entry, precision) for entry in summary["means"]]
        more = [] if summary["status"] == "interrupted" else _more(plan, points, precision)
        if not more:
            return summary | _figures_of_precision(points, precision, summary)
        seeds = tuple(sorted({*plan.seeds, *(planned.experiment.seed for planned in more)}))
        plan = replace(plan, runs=(*plan.runs, *more), seeds=seeds)


def _point(entry: Mapping[str, Any], precision: Precision) -> dict[str, Any]:
    """Return the present figures of a point: an entry of ``means``."""
    figure = entry["metrics"].get(precision.metric)
    count = len(entry["seeds"])
    reached = needed = None
    if figure is not None and figure["half"] is not None and figure["mean"]:
        reached = figure["half"] / abs(figure["mean"])
        needed = max(count, math.ceil(count * (reached / precision.share) ** 2))
    met = reached is not None and reached <= precision.share
    at = {name: value for name, value in entry.items() if name not in ("metrics", "seeds", "left_out")}
    return {"at": at, "seeds": count, "reached": reached, "met": met, "needed": count if met else needed}


def _more(plan: Plan, points: list[dict[str, Any]], precision: Precision) -> list[PlannedRun]:
    """Return further runs for the points that need them and may have them."""
    assert plan.more is not None
    runs: dict[tuple[Any, ...], list[PlannedRun]] = {}
    for planned in plan.runs:
        runs.setdefault(_place(planned), []).append(planned)
    found = []
    for own, point in zip(runs.values(), _in_order(runs, points), strict=True):
        if point is None or point["met"]:
            continue
        room = precision.most - len(own)
        wanted = len(own) if point["needed"] is None else max(1, point["needed"] - point["seeds"])
        first = max(planned.experiment.seed for planned in own) + 1
        for seed in range(first, first + min(room, wanted, len(own))):
            found.append(plan.more(own[0].values, own[0].experiment.case, seed))
    return found


def _place(planned: PlannedRun) -> tuple[Any, ...]:
    return planned.experiment.case, *planned.values.items()


def _in_order(
    runs: Mapping[tuple[Any, ...], list[PlannedRun]], points: list[dict[str, Any]]
) -> list[dict[str, Any] | None]:
    """Return the points in the order of the plan's places: those of which a run is done have an entry each."""
    by_place = {_key(point["at"], [*point["at"]]): point for point in points}
    found = []
    for place in runs:
        case, *values = place
        at = {"case": case, **dict(values)}
        found.append(by_place.get(_key(at, [*at])))
    return found


def _key(at: Mapping[str, Any], names: list[str]) -> tuple[Any, ...]:
    """Return the key of a point: its case and values, numbers as numbers."""
    own = [(name, at[name]) for name in names if name not in ("experiment", "at", "curve")]
    return tuple((name, _number(value)) for name, value in own)


def _number(value: Any) -> Any:
    try:
        return float(str(value).replace("_", ""))
    except ValueError:
        return value


def _figures_of_precision(
    points: list[dict[str, Any]], precision: Precision, summary: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the part of ``result.json`` about precision: the points, and a remark on those that are not precise
    enough."""
    label = label_of(precision.metric)
    remarks = list(summary.get("remarks", ()))
    missed = [point for point in points if not point["met"]]
    if not missed:
        seeds = sum(point["seeds"] for point in points)
        share = 100 * precision.share
        remarks.append(f"The 95 % interval of the {label} is within {share:g} % at each point, with {seeds} runs.")
    for point in missed:
        where = ", ".join(
            f"{name} = {value}" for name, value in point["at"].items()
            if value not in ("", None) and name not in ("experiment", "at", "curve")
        )  # fmt: skip
        if point["reached"] is None:
            text = f"has no interval with {point['seeds']} seeds, as all values are 0 or there are none"
        else:
            reached = f"{100 * point['reached']:.3g} %"
            text = f"is within {reached} with {point['seeds']} seeds, and needs some {point['needed']:,}"
        remarks.append(
            f"The {label} is not as precise as {100 * precision.share:g} %{f' at {where}' if where else ''}: it {text}"
            f" (the limit is {precision.most})."
        )
    return {
        "precision": {"metric": precision.metric, "share": precision.share, "most": precision.most, "points": points},
        "remarks": remarks,
    }
