"""The generic cell rate algorithm GCRA(I, L), both forms (I.371; TM 4.0).

Times, the increment I and the limit L are exact numbers of one unit of time: integers or fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["LeakyBucket", "Pacer", "Time", "VirtualScheduling", "back_to_back", "one_point_cdv"]

Time = int | Fraction


@dataclass
class VirtualScheduling:
    """A cell conforms unless it comes more than ``limit`` before its theoretical arrival time."""

    increment: Time
    limit: Time
    tat: Time | None = None

    def admits(self, time: Time) -> bool:
        """Return whether a cell at ``time`` would conform."""
        return self.tat is None or time >= self.tat - self.limit

    def conforms(self, time: Time) -> bool:
        """Return whether a cell at ``time`` conforms; a cell that does not leaves the state alone."""
        tat = time if self.tat is None else self.tat
        if time < tat - self.limit:
            return False
        self.tat = max(time, tat) + self.increment
        return True


@dataclass
class LeakyBucket:
    """A bucket that drains by one a unit of time, filled by ``increment`` with each conforming cell."""

    increment: Time
    limit: Time
    content: Time = 0
    last: Time | None = None

    def admits(self, time: Time) -> bool:
        """Return whether a cell at ``time`` would conform."""
        return self.last is None or self.content - (time - self.last) <= self.limit

    def conforms(self, time: Time) -> bool:
        """Return whether a cell at ``time`` conforms; a cell that does not leaves the state alone."""
        last = time if self.last is None else self.last
        content = max(0, self.content - (time - last))
        if content > self.limit:
            return False
        self.content, self.last = content + self.increment, time
        return True


@dataclass
class Pacer:
    """Virtual scheduling from the sender's side: a cell may go when ``now >= next - tolerance``.

    With ``tolerance`` 0 this clocks a line: ``next = max(next, now) + period``.
    """

    period: Time
    tolerance: Time = 0
    next: Time = 0

    def ready(self, now: Time) -> bool:
        """Return whether a cell may go."""
        return now >= self.next - self.tolerance

    def sent(self, now: Time) -> None:
        """A cell went."""
        self.next = max(self.next, now) + self.period


def one_point_cdv(times: Sequence[Time], period: Time) -> list[Time]:
    """The 1-point CDV of each cell (I.356), without the clock of its definition: cell k is early by the most that k - j
    periods exceed the time since any cell j before it. The first cell is not early."""
    slack: list[Time] = [time - k * period for k, time in enumerate(times)]
    most, found = slack[:1], [slack[0] * 0] if slack else []
    for here in slack[1:]:
        found.append(most[0] - here)
        most[0] = max(most[0], here)
    return found


def back_to_back(increment: Time, limit: Time) -> int:
    """The largest number of conforming cells with one unit of time between them (``increment`` above 1)."""
    return 1 + int(Fraction(limit) // (Fraction(increment) - 1))
