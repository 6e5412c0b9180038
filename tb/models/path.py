"""Arrival times of cells on a path whose delay changes, written from the definition in ``docs/lines.md``."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

__all__ = ["MovingPath"]


@dataclass
class MovingPath:
    """Two paths, each with the ticks in which its cells arrive.

    Members
    -------
    merged : bool
        Cells may overtake on the second path; else the first one alone is used.
    spacing : Fraction
        Ticks from a cell to one that waited for it.
    """

    merged: bool = False
    spacing: Fraction = Fraction(1)
    paths: tuple[list[Fraction], list[Fraction]] = field(default_factory=lambda: ([], []))
    held: int = 0
    overtook: int = 0

    def send(self, tick: int, delay: int) -> int:
        """Return the tick in which a cell of this tick arrives."""
        target = tick + delay
        ends = [path[-1] if path else Fraction(-(10**9)) for path in self.paths]
        latest = max((0, 1), key=lambda k: ends[k])
        free = [k for k in (0, 1) if floor(ends[k]) < target and (self.merged or k == latest)]
        if free:
            path, due = max(free, key=lambda k: ends[k]), Fraction(target)
            self.overtook += path != latest and floor(ends[latest]) >= target
        else:
            path = min((0, 1), key=lambda k: ends[k]) if self.merged else latest
            due = ends[path] + self.spacing
            self.held += 1
        self.paths[path].append(due)
        return floor(due)
