"""Cells that a link makes, and losses in a pattern: written from the definitions in ``docs/impairments.md``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.cell import Cell
from models.red import xorshift64

__all__ = ["Left", "duplicated", "in_pattern"]


@dataclass(frozen=True)
class Left:
    """A cell that left in a tick; ``copy``: it is a duplicate."""

    tick: int
    cell: Cell
    copy: bool


def duplicated(cells: Sequence[tuple[int, Cell]], share: float, seed: int) -> tuple[list[Left], int]:
    """Return what leaves of cells that come in ticks, and how many duplicates found no place."""
    found: list[Left] = []
    waits: Cell | None = None
    state, missed, last = seed, 0, -1
    for tick, cell in cells:
        if waits is not None and tick > last + 1:  # the first tick without a cell
            found.append(Left(last + 1, waits, True))
            waits = None
        last = tick
        found.append(Left(tick, cell, False))
        if (state >> 33) / 2**31 < share:
            if waits is None:
                waits = cell
            else:
                missed += 1
        state = xorshift64(state)
    if waits is not None:
        found.append(Left(last + 1, waits, True))
    return found, missed


def in_pattern(lost: int, of: int) -> Iterator[bool]:
    """Yield for each cell whether it is lost."""
    while True:
        for position in range(of):
            yield position < lost
