"""From recorded series to what is drawn: rates out of counts, fewer points than pixels need."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

__all__ = ["bin_width", "held", "increments", "quantiles", "rates", "thin"]

_PS: Final = 10**12

Points = tuple[list[float], list[float]]


def rates(times: Sequence[int], counts: Sequence[int], bins: int = 240) -> Points:
    """Return a count of octets over time as Mb/s: seconds (the middle of each bin) and rates.

    Samples are put together so that at most ``bins`` remain: a bin shows its mean, nothing is smoothed.
    """
    step = max(1, -(-(len(times) - 1) // bins))
    when, what = [], []
    for i in range(0, len(times) - 1, step):
        j = min(i + step, len(times) - 1)
        width = times[j] - times[i]
        if width > 0:
            when.append((times[i] + times[j]) / 2 / _PS)
            what.append((counts[j] - counts[i]) * 8 * _PS / width / 1e6)
    return when, what


def bin_width(end_ps: int, interval_ps: int, bins: int) -> int:
    """Return the least of 1, 2, 5, 10, 20, … intervals of which at most ``bins`` fill the time."""
    for exponent in itertools.count():
        for digit in (1, 2, 5):
            width = interval_ps * digit * 10**exponent
            if width * bins >= end_ps:
                return width
    raise AssertionError


def increments(times: Sequence[int], counts: Sequence[int], edges: Sequence[int]) -> list[int]:
    """Return how much a count grew between each two edges (ps). The count stands still before and after its samples."""
    at = [counts[max(0, bisect_right(times, edge) - 1)] if times else 0 for edge in edges]
    return [b - a for a, b in itertools.pairwise(at)]


def held(times: Sequence[int], values: Sequence[int], at: Sequence[int]) -> list[int]:
    """Return what a value was at given times (ps): that of the last sample before, 0 before the first."""
    found = (bisect_right(times, moment) for moment in at)
    return [values[index - 1] if index else 0 for index in found]


def quantiles(rows: Sequence[Sequence[float]], shares: Sequence[float]) -> list[list[float]]:
    """Return for each share the quantile of each column, by the nearest rank: a value that a row has."""
    columns = [sorted(column) for column in zip(*rows, strict=True)]
    return [[column[round(share * (len(column) - 1))] for column in columns] for share in shares]


def thin(times: Sequence[int], values: Sequence[float], points: int = 3000) -> Points:
    """Return about ``points`` points at most that draw the same curve.

    Each piece keeps its first, least, greatest and last point.
    """
    count = len(times)
    if count <= points:
        return [t / _PS for t in times], [float(v) for v in values]
    size = max(1, 4 * count // points)
    when, what = [], []
    for begin in range(0, count, size):
        piece = range(begin, min(begin + size, count))
        low = min(piece, key=values.__getitem__)
        high = max(piece, key=values.__getitem__)
        for i in sorted({piece[0], low, high, piece[-1]}):
            when.append(times[i] / _PS)
            what.append(float(values[i]))
    return when, what
