"""The clock of a host: it paces BSD's timers, and its interrupts take the processor."""

from __future__ import annotations

import random
from typing import Final, final

from bentpipe.tcp.constants import FAST_TICK_PS, SLOW_TICK_PS

__all__ = ["MAX_CLOCK_HZ", "MAX_CLOCK_PPM", "HostClock"]

MAX_CLOCK_HZ: Final = 100_000
MAX_CLOCK_PPM: Final = 1000
_PS_PER_S: Final = 10**12


@final
class HostClock:
    """Interrupts at a steady rate, from a quartz that is a little off.

    BSD's hardclock comes ``hz`` times a second, whatever else the processor does, and goes first. Its softclock drives
    TCP's timers, so a slow tick comes with an interrupt.

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
    fast_ps, slow_ps : int
        Between two of BSD's fast and slow ticks.
    origin_ps : int
        The time of any of the interrupts.
    """

    def __init__(self, hz: float, cost_ps: int, tolerance_ppm: float, seed: str) -> None:
        error = tolerance_ppm * (2.0 * random.Random(seed).random() - 1.0) * 1e-6
        self.fast_ps: int = FAST_TICK_PS + round(FAST_TICK_PS * error)
        self.slow_ps: int = SLOW_TICK_PS + round(SLOW_TICK_PS * error)
        self.origin_ps: int = 0
        self._cost: int = cost_ps if hz else 0
        self._period: int = round(_PS_PER_S / hz * (1.0 + error)) if hz else 0
        if self._cost and self._cost >= self._period:
            raise ValueError(f"a clock interrupt takes {self._cost} ps, and comes each {self._period} ps")

    def after(self, now: int, work: int) -> int:
        """When the processor, set to it now, has done ``work`` picoseconds of work."""
        cost = self._cost
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
