"""Random early detection as ns-2 has it (``REDQueue``, packets, ``gentle_`` false), in floats.

After Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (ToN, August 1993), and the
description of ns-2's queue: estimator, ``calculate_p``, ``modify_p`` with and without ``wait_``, what resets the count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["RedPort", "xorshift64"]


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
