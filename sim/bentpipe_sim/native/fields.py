"""Word splitting: which fields the words of a netlist have (as SROA, scalar replacement of aggregates, in compilers).

RTL packs what belongs together into words: rows of memories, structures in signals. A function of C++ wants each field
in a variable of its own, and what only travels together in one. :func:`fields` finds where words may be cut: bits that
are computed with together (an operand, an index, an output) are never parted; other cuts are wherever something takes
or puts a part, and they go along with what is moved from word to word.
"""

from __future__ import annotations

from itertools import pairwise

from .netlist import Bits, Netlist

__all__ = ["Fields", "fields"]

MOVING = ("register", "assign", "m")
"""Cells that only move what they are given: they have fields, as words of memories do."""


class Fields:
    """Fields of cells; those of a memory are also those of its reads."""

    def __init__(self, cuts: dict[int, list[int]]):
        self._cuts = cuts

    def of(self, home: int, width: int) -> list[tuple[int, int]]:
        """Return ``(lowest bit, width)`` of each field of a cell, from the lowest on."""
        at = self._cuts.get(home, [0, width])
        return [(low, high - low) for low, high in pairwise(at)]


def fields(netlist: Netlist) -> Fields:
    """Return the division of the netlist's registers into fields."""
    return _Fields(netlist).run()


class _Fields:
    def __init__(self, netlist: Netlist):
        self.netlist, self.cells = netlist, netlist.cells
        self.width: dict[int, int] = {}  # of what has fields
        self.glued: dict[int, int] = {}  # bit k: bits k and k+1 stay together
        self.cuts: dict[int, int] = {}  # bit k: a field may begin at bit k
        self.moves: set[tuple[int, int, int, int, int]] = set()

    def home(self, index: int) -> int | None:
        """Return the number of the cell that holds a cell's fields: its own, or its memory's."""
        cell = self.cells[index]
        if cell.op in ("read", "write"):
            return cell.data
        return index if cell.op in (*MOVING, "memory") else None

    def run(self) -> Fields:
        for index, cell in enumerate(self.cells):
            if cell.op in (*MOVING, "memory"):
                whole = cell.op == "memory" and cell.data.whole
                self.width[index], self.cuts[index] = cell.width, 0
                self.glued[index] = (1 << (cell.width - 1)) - 1 if whole else 0
        for index, cell in enumerate(self.cells):
            match cell.op:
                case "m":
                    self.together(cell.args[0])
                    self.moved(index, 0, cell.args[1])
                    self.moved(index, 0, cell.args[2])
                case "assign":
                    self.moved(index, 0, cell.args[0])
                    for condition, start, value in cell.data:
                        self.together(condition)
                        self.moved(index, start, value)
                case "register":
                    self.moved(index, 0, cell.args[0])
                case "write":
                    self.together(cell.args[0])
                    self.together(cell.args[1])
                    self.moved(cell.data, 0, cell.args[2])
                case _:
                    for value in cell.args:
                        self.together(value)
        for value in self.netlist.outputs.values():
            self.together(value)
        self.spread()
        found = {}
        for index, width in self.width.items():
            cuts = self.cuts[index] & ~(self.glued[index] << 1)
            found[index] = [0, *(k for k in range(1, width) if cuts >> k & 1), width]
        return Fields(found)

    def together(self, value: Bits) -> None:
        for index, low, width in value:
            home = self.home(index) if index >= 0 else None
            if home is not None:
                self.glued[home] |= ((1 << (width - 1)) - 1) << low
                self.cuts[home] |= 1 << low | 1 << (low + width)

    def moved(self, home: int, start: int, value: Bits) -> None:
        at = start
        for index, low, width in value:
            self.cuts[home] |= 1 << at | 1 << (at + width)
            source = self.home(index) if index >= 0 else None
            if source is not None:
                self.cuts[source] |= 1 << low | 1 << (low + width)
                self.moves.add((home, at, source, low, width))
            at += width

    def spread(self) -> None:
        """Give both ends of each move the same fields."""
        changed = True
        while changed:
            changed = False
            for home, at, source, low, width in self.moves:
                for marks, bits in ((self.glued, width - 1), (self.cuts, width + 1)):
                    mask = (1 << bits) - 1
                    here, there = marks[home] >> at & mask, marks[source] >> low & mask
                    if here != there:
                        marks[home] |= there << at
                        marks[source] |= here << low
                        changed = True
