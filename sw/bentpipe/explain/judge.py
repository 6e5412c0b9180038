"""Effects of open parameters on published figures: ranges, the strongest parameters, a verdict for each figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from bentpipe.explain.plan import Figure, Parameter

__all__ = ["Point", "effects", "explained", "strongest"]

_STRONGEST: Final = 2
"""Parameters that are varied together with whole runs."""


@dataclass(frozen=True, slots=True)
class Point:
    """A figure of ours with some open parameters set, of all seeds: in the unit of the published one.

    Members
    -------
    values : Mapping
        By key, those that are not as the experiment has them.
    """

    values: Mapping[str, str]
    figures: tuple[float, ...]

    def of(self, over: str) -> float:
        """Return the mean over the seeds, or the best of them."""
        return max(self.figures) if over == "best" else fmean(self.figures)


def effects(parameters: Sequence[Parameter], points: Sequence[Point], over: str) -> list[dict[str, Any]]:
    """Return for each parameter the figure at each of its values alone; the strongest parameter first.

    Parameters
    ----------
    parameters : Sequence[Parameter]
    points : Sequence[Point]
        Of runs of one length.
    over : str
        ``mean`` or ``best``.
    """
    own = next((point.of(over) for point in points if not point.values), None)
    found = []
    for parameter in parameters:
        alone = [point for point in points if [*point.values] == [parameter.key]]
        values = [{"value": point.values[parameter.key], "ours": point.of(over)} for point in alone]
        reached = [each["ours"] for each in values] + ([] if own is None else [own])
        spread = max(reached) - min(reached) if values and reached else 0.0
        found.append({"key": parameter.key, "values": values, "spread": spread})
    return sorted(found, key=lambda effect: -effect["spread"])


def strongest(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys of the two parameters with the largest effects; fewer if others have none."""
    return [effect["key"] for effect in found[:_STRONGEST] if effect["spread"] > 0]


def explained(figure: Figure, pair: Sequence[str], points: Sequence[Point]) -> dict[str, Any]:
    """Return the runs' results for a figure: its value with the experiment's own settings, the range, a verdict.

    Parameters
    ----------
    pair : Sequence[str]
        The strongest parameters.
    points : Sequence[Point]
        Of runs of one length, at least one.
    """
    over = figure.row["over"]
    reached = [(point.of(over), point.values) for point in points]
    own = next((value for value, values in reached if not values), None)
    low, high = min(reached, key=lambda each: each[0]), max(reached, key=lambda each: each[0])
    theirs = figure.row["measured"] if figure.row["measured"] is not None else figure.row["predicted"]
    inside = low[0] <= theirs <= high[0]
    return {
        "against": "measured" if figure.row["measured"] is not None else "predicted",
        "own": own,
        "low": low[0],
        "high": high[0],
        "at_low": dict(low[1]),
        "at_high": dict(high[1]),
        "inside": inside,
        "pair": [*pair],
        "points": [{"values": dict(values), "ours": value} for value, values in reached],
        "verdict": _verdict(theirs, own, reached, inside),
    }


def _verdict(theirs: float, own: float | None, reached: Sequence[tuple[float, Mapping[str, str]]], inside: bool) -> str:
    """Return the verdict in words: *inside by …*, *only with …* or *unexplained*."""
    low, high = min(value for value, _ in reached), max(value for value, _ in reached)
    if not inside:
        off, end = (low - theirs, "above") if theirs < low else (theirs - high, "below")
        return f"unexplained: all runs are {end} it, by {100 * off / theirs:.1f} % and more"
    need = {} if own is None else _needed(theirs, own, reached)
    if need:
        return f"only with {' and '.join(f'{key} = {value}' for key, value in need.items())}"
    return f"inside by {100 * min(theirs - low, high - theirs) / theirs:.1f} %"


def _needed(theirs: float, own: float, reached: Sequence[tuple[float, Mapping[str, str]]]) -> dict[str, str]:
    """Return the values common to all runs that are on the other side of the figure than the experiment's own
    settings."""
    beyond = [values for value, values in reached if (value - theirs) * (own - theirs) <= 0]
    if not beyond or own == theirs:
        return {}
    shared = set(beyond[0].items()).intersection(*(values.items() for values in beyond[1:]))
    return dict(sorted(shared))
