"""The clock of a host: it paces BSD's timers, and its interrupts take the processor."""

from __future__ import annotations

import random
from typing import Final, final

from bentpipe.tcp.constants import FAST_TICK_PS, SLOW_TICK_PS

__all__ = ["MAX_CLOCK_HZ", "MAX_CLOCK_PPM", "HostClock", "clock_period_ps"]

MAX_CLOCK_HZ: Final = 100_000
MAX_CLOCK_PPM: Final = 1000
_PS_PER_S: Final = 10**12


def clock_period_ps(hz: float, ppm: float) -> int:
    """Return the picoseconds between two interrupts of a clock of ``hz`` ticks a second, each ``ppm`` millionths
    late."""
    return round(_PS_PER_S / hz * (1.0 + ppm * 1e-6))


@final
class HostClock:
    """Interrupts at a steady rate, from a quartz that is a little off.

    BSD's hardclock comes ``hz`` times a second; work on a segment stops while it runs. TCP's timers keep the time of
    the same quartz. The first slow tick comes with an interrupt (softclock runs there), and so does each later one
    where ``hz`` is even.

    Parameters
    ----------
    hz : float
        Interrupts a second; 0 for none.
    cost_ps : int
        Time that an interrupt takes from the processor, less than lies between two.
    tolerance_ppm : float
        The clock is off by a number drawn evenly within plus or minus this.
    seed : str
        Of that draw.

    Members
    -------
    cost_ps : int
        Of an interrupt; 0 where there are none.
    fast_ps, slow_ps : int
        Between two of BSD's fast and slow ticks.
    origin_ps : int
        When one of the interrupts starts; :class:`bentpipe.hosts.host.Host` sets it to its first slow tick.
    """

    def __init__(self, hz: float, cost_ps: int, tolerance_ppm: float, seed: str) -> None:
        ppm = tolerance_ppm * (2.0 * random.Random(seed).random() - 1.0)
        self.fast_ps: int = FAST_TICK_PS + round(FAST_TICK_PS * ppm * 1e-6)
        self.slow_ps: int = SLOW_TICK_PS + round(SLOW_TICK_PS * ppm * 1e-6)
        self.origin_ps: int = 0
        self.cost_ps: int = cost_ps if hz else 0
        self._period: int = clock_period_ps(hz, ppm) if hz else 0
        if self.cost_ps and self.cost_ps >= self._period:
            raise ValueError(f"a clock interrupt takes {self.cost_ps} ps, and one comes each {self._period} ps")

    def after(self, now: int, work: int) -> int:
        """Return the time at which the processor, given ``work`` picoseconds of work now, has done it."""
        cost = self.cost_ps
        if not cost:
            return now + work
        since = (now - self.origin_ps) % self._period
        if since < cost:  # an interrupt is under way
            now += cost - since
            since = cost
        left = self._period - since
        if work > left:
            now += cost * (1 + (work - left - 1) // (self._period - cost))
        return now + work
