"""Ticks, picoseconds, rates; how many VCs a node has.

A tick of the simulated network is a quarter of an OC-12c cell: 424 bits / 599.04 Mb/s / 4 = 53/299520000 s = 176.95 ns.
So an OC-12c cell takes 4 ticks and an OC-3c cell 16, exactly; other rates are met to 0.5 ppm.
"""

from __future__ import annotations

import math
from typing import Final

__all__ = [
    "MOST_CELLS",
    "MOST_VCS",
    "RATIO",
    "TICKS_A_SECOND",
    "TICK_PS",
    "cell_period",
    "duration",
    "first_tick",
    "ps_to_ticks",
    "round_ticks",
    "ticks_to_ps",
]

_RATE: Final = 299_520_000
RATIO: Final = (53 * 10**12 // math.gcd(10**12, _RATE), _RATE // math.gcd(10**12, _RATE))
"""So many picoseconds are so many ticks, in lowest terms: 20703125 and 117."""
_PS, _TICKS = RATIO

TICKS_A_SECOND: Final = _RATE / 53
TICK_PS: Final = _PS / _TICKS

MOST_CELLS: Final = 65535
"""Cells of a switch's buffer, at most."""

MOST_VCS: Final = 4096
"""VCs of a node, at most: of a switch, or of a NIC in both directions together."""


def ps_to_ticks(ps: int) -> int:
    """Return the last tick that begins at or before a time."""
    return ps * _TICKS // _PS


def first_tick(ps: int) -> int:
    """Return the first tick that begins at or after a time."""
    return -(-ps * _TICKS // _PS)


def ticks_to_ps(tick: int) -> int:
    """Return the time at which a tick begins, rounded up to whole picoseconds."""
    return -(-tick * _PS // _TICKS)


def round_ticks(ps: int) -> int:
    """Return a duration as the nearest number of ticks."""
    return ps_to_ticks(ps + 88475)


def duration(ps: int) -> int:
    """Return a duration in units of 2**-16 ticks, the nearest."""
    return (ps * _TICKS * 65536 + _PS // 2) // _PS


def cell_period(rate_bps: float, clock_ppm: float = 0.0) -> int:
    """Return the ticks that a cell of 53 octets takes at a rate of cells, in units of 2**-16 ticks.

    ``clock_ppm`` is by how much the clock is too fast.

    Raises
    ------
    ValueError
        The clock is further off than 1000 ppm. The rate is not positive, so low that the period has more than 40 bits
        (below 143 b/s), or more than one cell a tick (2396.16 Mb/s).
    """
    if not -1000 <= clock_ppm <= 1000:
        raise ValueError(f"a clock is from 1000 ppm slow to 1000 ppm fast, not {clock_ppm:g} ppm")
    rate_bps *= 1 + clock_ppm * 1e-6
    if not rate_bps > 0:
        raise ValueError(f"a rate must be positive, not {rate_bps} b/s")
    period = round(424 * _RATE * 65536 / (53 * rate_bps))
    if period < 65536:
        raise ValueError(f"a line carries at most 2396.16 Mb/s of cells, not {rate_bps / 1e6:g} Mb/s")
    if period >= 1 << 40:
        raise ValueError(f"a rate must be 143 b/s or more, not {rate_bps} b/s")
    return period
