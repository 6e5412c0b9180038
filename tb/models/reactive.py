"""Hysteresis control of a link's capacity (Krishnan and Sterbenz, "TCP over Load-Reactive Links", ICNP 2001, 3.2).

Written from the paper and from what the manual says of time and rounding: with exact numbers, cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

__all__ = ["Hysteresis", "Line"]


@dataclass
class Hysteresis:
    """The controller of one port. Capacities are in kb/s, thresholds and queue in the same unit."""

    low: Fraction
    high: Fraction
    up: int
    down: int
    least: int
    most: int
    weight: Fraction = Fraction(1)
    capacity: int = 0
    average: Fraction = Fraction(0)

    def begin(self, capacity: int) -> None:
        self.capacity, self.average = self._within(capacity), Fraction(0)

    def look(self, queue: int) -> None:
        """Region 2, above high: grow; region 0, below low: shrink; region 1: stay."""
        # the average has 16 fraction bits, and what is added to it is rounded down
        step = (Fraction(queue) - self.average) * self.weight
        self.average += Fraction(floor(step * 65536), 65536)
        if self.average > self.high:
            self.capacity += self.up
        elif self.average < self.low:
            self.capacity -= self.down
        self.capacity = self._within(self.capacity)

    def _within(self, capacity: int) -> int:
        return min(max(capacity, self.least), self.most)


class Line:
    """A line whose cells take ``cell / capacity`` each, in units of 2**-16 ticks: exactly, so that after ``n`` cells
    since the last change ``floor(n * cell / capacity)`` have passed."""

    def __init__(self, cell: int, capacity: int) -> None:
        self._cell, self._capacity, self._sent = cell, capacity, 0

    def next(self) -> int:
        """Return the duration of the next cell."""
        before, after = (n * self._cell // self._capacity for n in (self._sent, self._sent + 1))
        self._sent += 1
        return after - before
