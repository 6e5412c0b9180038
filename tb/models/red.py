"""Random early detection as ns-2 has it (``REDQueue``, packets, ``gentle_`` false), in floats.

After Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (ToN, August 1993), and the
description of ns-2's queue: estimator, ``calculate_p``, ``modify_p`` with and without ``wait_``, what resets the count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["RedPort", "balanced", "gaps", "xorshift64"]


def xorshift64(state: int) -> int:
    """The next state of Marsaglia's generator (13, 7, 17)."""
    state ^= state << 13 & (1 << 64) - 1
    state ^= state >> 7
    return state ^ (state << 17 & (1 << 64) - 1)


@dataclass
class RedPort:
    """One queue. ``packet_ticks`` is the time of a typical packet, ns-2's ``1 / ptc``."""

    low: float = 5.0
    high: float = 15.0
    weight: float = 0.002
    max_probability: float = 0.1
    wait: bool = True
    packet_ticks: float = 64.0
    average: float = 0.0
    count: int = 0
    old: bool = False
    idle_since: int = 0
    probability: float = 0.0
    """With which the last packet was refused."""

    def arrives(self, queued: int, draw: float, *, limited: bool = False, idle: bool = False, now: int = 0) -> bool:
        """A packet comes that finds so many queued: whether it is dropped. ``idle``: and the line idle since
        ``idle_since``. ``limited``: the queue is at its limit."""
        packets = int((now - self.idle_since) / self.packet_ticks) if idle else 0
        self.average = self.average * math.pow(1 - self.weight, packets + 1) + self.weight * queued
        self.count += 1
        forced = unforced = False
        self.probability = 0.0
        if self.average >= self.low and queued > 1:
            if self.average >= self.high:
                forced = True
                self.probability = 1.0
            elif not self.old:
                self.count, self.old = 1, True
            else:
                self.probability = self._modified(
                    (self.average - self.low) / (self.high - self.low) * self.max_probability
                )
                unforced = draw < self.probability
                if unforced:
                    self.count = 0
        else:
            self.old = False
        if forced or limited:
            self.count = 0
        return forced or unforced

    def _modified(self, p: float) -> float:
        """Uniform instead of geometric numbers of packets between drops."""
        share = self.count * p
        if self.wait:
            return 0.0 if share < 1 else p / (2 - share) if share < 2 else 1.0
        return min(p / (1 - share), 1.0) if share < 1 else 1.0


def gaps(p: float, *, wait: bool) -> list[float]:
    """The probability of each number of packets from a dropped one to the next, from 1 on, with ``p`` fixed: uniform,
    but for what rounding 1/p to whole packets leaves to the last."""
    found, left, count = [], 1.0, 0
    while left > 1e-12:
        count += 1
        share = count * p
        hazard = (0.0 if share < 1 else p / (2 - share)) if wait else p / (1 - share) if share < 1 else 1.0
        hazard = min(hazard, 1.0) if share < (2 if wait else 1) else 1.0
        found.append(left * hazard)
        left *= 1 - hazard
    return found


def balanced(gap: float, *, wait: bool) -> float:
    """The ``p`` with which a drop comes every ``gap`` packets in the mean, over a whole packet of 1/p."""

    def mean(p: float) -> float:
        parts = [gaps(1 / (1 / p - 0.5 + (k + 0.5) / 200), wait=wait) for k in range(200)]
        return sum((n + 1) * chance for part in parts for n, chance in enumerate(part)) / len(parts)

    low, high = 0.4 / gap, 2.0 / gap
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) > gap else (low, middle)
    return low
