"""The times at which cells leave a switch: the clocks of its output ports, virtual scheduling (I.371), one cell a tick.

Written from the rules that the switch states for its ports; the cells themselves are those of :mod:`models.switch`.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["PortClocks"]

MAKES_UP = 64
"""Most ticks that a port, held up by the others, makes up for."""


class PortClocks:
    """The output ports of a switch.

    Parameters
    ----------
    periods : list of Fraction
        Ticks a cell of each port.
    delay : int
        Ticks that a cell takes through an idle port, 1 and more.
    """

    def __init__(self, periods: list[Fraction], delay: int) -> None:
        self.periods, self.delay = periods, delay
        self.next = [Fraction(0)] * len(periods)
        self.first = 0  # the port behind the one that sent last

    def chosen(self, now: int, waiting: list[bool]) -> int | None:
        """The port that sends in tick ``now``, of those with cells ``waiting`` from before: the first in turn that is
        due."""
        turns = [*range(self.first, len(waiting)), *range(self.first)]
        return next((p for p in turns if waiting[p] and int(self.next[p]) <= now), None)

    def sent(self, port: int, now: int) -> None:
        """A cell left."""
        self.first = port + 1
        if now - int(self.next[port]) > MAKES_UP:
            self.next[port] = Fraction(now - MAKES_UP)
        self.next[port] += self.periods[port]

    def wakes(self, port: int, now: int) -> None:
        """A cell found its port idle in tick ``now``."""
        if int(self.next[port]) < now + self.delay:
            self.next[port] = Fraction(now + self.delay)
