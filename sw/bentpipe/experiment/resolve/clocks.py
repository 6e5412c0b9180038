"""The clocks of lines: how far each is from its nominal rate.

Lines that share one exact clock lock in phase: of four that fill one output, the one whose cell happens to come first
when a place is free gets nearly all places, for ever, and a study of losses shows that instead of the network. Real
lines have clocks of their own. SONET asks for 20 ppm at the least (GR-253-CORE clause 5.4: a free-running SONET minimum
clock), and 4.6 ppm where a stratum 3 clock times the line (GR-1244-CORE).

Every interface and every port of a switch that has a line gets an offset, drawn from the experiment's seed and the
line's name. With a tolerance of T it is between -2T and 0, so T around a mean that is T slow: no clock is faster than
the nominal rate, so that a switch whose lines together just fill it, and a SONET line, take every cell. The mean
changes a throughput by T, 0.002 %.
"""

from __future__ import annotations

import random

__all__ = ["draw_clocks"]


def draw_clocks(seed: int, line: str, tolerance_ppm: float) -> tuple[float, float]:
    """Draw the offsets in ppm of the clocks at a line's two ends, each between ``-2 * tolerance_ppm`` and 0."""
    draw = random.Random(f"{seed}/clocks/{line}")
    first, second = (round(-2 * tolerance_ppm * draw.random(), 3) for _ in range(2))
    return first + 0.0, second + 0.0
