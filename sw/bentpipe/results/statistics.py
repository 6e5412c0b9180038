"""Means with confidence intervals, by Student's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any, Final

__all__ = ["CONFIDENCE", "Mean", "apart", "mean_of", "step", "t_quantile"]

CONFIDENCE: Final = 0.95
"""Confidence level of the interval around a mean over seeds."""

_EXACT: Final = 100
"""Up to so many degrees of freedom the distribution is summed exactly."""


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of independent values, and the interval that has the true mean in 95 of 100 cases if the values are
    normally distributed.

    Members
    -------
    count : int
        Of the values, at least 1.
    mean : float
    sigma, half : float | None
        Their standard deviation (with ``count`` - 1), and half the width of the interval; None of one value alone.
    least, most : float
        Of the values.
    """

    count: int
    mean: float
    sigma: float | None
    half: float | None
    least: float
    most: float


def mean_of(values: Sequence[float]) -> Mean:
    """Return mean and interval of at least one value."""
    count, mean = len(values), fmean(values)
    if count == 1:
        return Mean(1, mean, None, None, mean, mean)
    sigma = stdev(values)
    half = t_quantile((1 + CONFIDENCE) / 2, count - 1) * sigma / math.sqrt(count)
    return Mean(count, mean, sigma, half, min(values), max(values))


def t_quantile(probability: float, freedom: int) -> float:
    """Return a quantile of Student's distribution, for a probability from 0.5 to 1 (exclusive)."""
    if freedom > _EXACT:
        return _expanded(probability, freedom)
    low, high = 0.0, 1.0
    while _between(high, freedom) < 2 * probability - 1:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if _between(middle, freedom) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _between(t: float, freedom: int) -> float:
    """Return the probability of values from -t to t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    cosine = math.cos(angle)
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def _expanded(probability: float, freedom: int) -> float:
    """Return a quantile by the expansion of Abramowitz and Stegun, 26.7.5."""
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom ** (k + 1) for k, term in enumerate(terms))


def apart(ours: Mean, theirs: Mean) -> float | None:
    """Return half of the 95 % interval of the difference of two means (Welch); None without seeds on both sides."""
    if ours.sigma is None or theirs.sigma is None:
        return None
    one, two = ours.sigma**2 / ours.count, theirs.sigma**2 / theirs.count
    if one + two == 0:
        return 0.0
    freedom = (one + two) ** 2 / (one**2 / (ours.count - 1) + two**2 / (theirs.count - 1))
    return t_quantile((1 + CONFIDENCE) / 2, max(1, math.floor(freedom))) * math.sqrt(one + two)


def step(one: Mean, two: Mean) -> dict[str, Any]:
    """Return the difference of two means, the interval's half, and whether the first is above the second."""
    difference, half = one.mean - two.mean, apart(one, two)
    held = difference > (half or 0.0)
    open_ = half is not None and half > 0 and abs(difference) <= half
    return {"difference": difference, "half": half, "verdict": "held" if held else "open" if open_ else "not held"}
