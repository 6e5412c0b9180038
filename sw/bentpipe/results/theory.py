"""Figures of a run beside those that theory predicts, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.results.statistics import t_quantile

__all__ = ["CONFIDENCE", "LEAST_BATCHES", "Estimate", "beside_theory", "ratio"]

CONFIDENCE: Final = 0.99

FIGURE_CONFIDENCE: Final = 0.95
"""Confidence level of figures from splitting."""

LEAST_BATCHES: Final = 10
"""Batches below which no interval is given."""

Series = tuple[Sequence[int], Sequence[int]]
"""Times and values."""


@dataclass(frozen=True)
class Estimate:
    """A ratio of sums, and half the width of its confidence interval."""

    value: float
    half: float
    batches: int


def ratio(batches: Sequence[tuple[float, float]], confidence: float = CONFIDENCE) -> Estimate | None:
    """Return the sum of the batches' first numbers over that of their second ones, by the ratio estimator.

    The source is Law, Simulation Modeling and Analysis, 9.5.3. None with too few batches, or a divisor of 0.
    """
    count = len(batches)
    below = sum(b for _, b in batches)
    if count < LEAST_BATCHES or not below:
        return None
    value = sum(a for a, _ in batches) / below
    spread = sum((a - value * b) ** 2 for a, b in batches) / (count - 1)
    half = t_quantile((1 + confidence) / 2, count - 1) * math.sqrt(spread / count) / (below / count)
    return Estimate(value, half, count)


def _batches(above: Series, below: Series) -> list[tuple[float, float]]:
    """Return the growth of two series from each time at which the second one was sampled to the next.

    The first interval, in which the network was empty, is left out. A series that begins later was 0 before.
    """
    found = []
    before: tuple[float, float] | None = None
    values = dict(zip(*above, strict=True))
    last = 0
    for time, b in zip(*below, strict=True):
        last = values.get(time, last)
        if before is not None:
            found.append((last - before[0], b - before[1]))
        before = last, b
    return found[1:]


def beside_theory(
    rows: Iterable[Mapping[str, Any]],
    series: Mapping[str, Series],
    figures: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """Return each row beside our figure with its confidence interval.

    Added are ``ours``, ``low`` and ``high`` of the interval, ``half`` its width, ``confidence``, ``batches``, and
    ``holds``: whether the prediction is in the interval. They are None if there is too little data.

    Parameters
    ----------
    rows : iterable of Mapping
        ``quantity``, ``predicted``, ``unit``, ``source``; ``growth`` and ``per``, the series whose growth is divided by
        that of the other one; ``scale``, by which the ratio is multiplied.
    series : Mapping
        Recorded series.
    figures : Mapping, optional
        Figures of splitting by name, as :func:`bentpipe.results.splitting.interval` has them.
    """
    table = []
    for row in rows:
        if metric := row.get("metric"):
            table.append(_of_figure(row, (figures or {}).get(metric)))
            continue
        growth, per = series.get(row["growth"], ((), ())), series.get(row["per"], ((), ()))
        found = ratio(_batches(growth, per))
        ours = half = low = high = holds = None
        if found is not None:
            ours, half = found.value * row["scale"], found.half * row["scale"]
            low, high = ours - half, ours + half
            holds = low <= row["predicted"] <= high
        more = {"ours": ours, "half": half, "low": low, "high": high, "confidence": CONFIDENCE}
        table.append({**row, **more, "batches": found.batches if found else 0, "holds": holds})
    return table


def _of_figure(row: Mapping[str, Any], found: Mapping[str, Any] | None) -> dict[str, Any]:
    ours, low, high = (None if found is None else found[key] for key in ("value", "low", "high"))
    scale = row["scale"]
    half = holds = None
    if found is not None and ours is not None and low is not None and high is not None:
        ours, low, high = ours * scale, low * scale, high * scale
        half, holds = (high - low) / 2, low <= row["predicted"] <= high
    more = {"ours": ours, "half": half, "low": low, "high": high, "confidence": FIGURE_CONFIDENCE}
    return {**row, **more, "batches": found["batches"] if found else 0, "holds": holds}
