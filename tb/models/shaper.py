"""A shaper with two buckets: sends each cell in the first whole tick in which both let it go (I.371; TM 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

__all__ = ["Shaper", "burst_tolerance"]


def burst_tolerance(mbs: int, peak: Fraction, sustained: Fraction) -> Fraction:
    """BT of a burst of ``mbs`` cells at the peak rate, by the two rates' increments."""
    return (mbs - 1) * (sustained - peak)


@dataclass
class Shaper:
    """Buckets GCRA(I, L), each an increment and a limit; by ``times`` their theoretical arrival times."""

    buckets: list[tuple[Fraction, Fraction]]
    times: list[Fraction | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.times = self.times or [None] * len(self.buckets)

    def due(self, now: int) -> int:
        """The first tick from ``now`` on in which a cell may go."""
        bounds = [tat - limit for tat, (_, limit) in zip(self.times, self.buckets, strict=True) if tat is not None]
        return max([now, *map(math.ceil, bounds)])

    def sent(self, now: int) -> None:
        """A cell goes."""
        assert self.due(now) == now
        old = zip(self.times, self.buckets, strict=True)
        self.times = [(now if tat is None else max(now, tat)) + increment for tat, (increment, _) in old]
