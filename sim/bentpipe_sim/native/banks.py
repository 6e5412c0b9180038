"""Register-file recovery: registers that RTL selects by an index become memories.

An ``Array`` of registers, of which an index picks one to be read or written, is in a netlist a comparison with each
number and a choice. In C++ it is an array. :func:`gather` finds such registers and puts a memory in their place: each
of them becomes a read of its row, so that whatever else reads it stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from .netlist import CONSTANT, Bits, Cell, Memory, Netlist

__all__ = ["gather"]

_Write = tuple[Bits, Bits, Bits]
"""Enable, address, data."""


def gather(netlist: Netlist) -> None:
    """Turn them into memories, in place. Registers that are outputs or marked, and those of which parts are written,
    stay registers; so do arrays that an index can miss."""
    _Banks(netlist).run()


class _Banks:
    def __init__(self, netlist: Netlist):
        self.netlist, self.cells = netlist, netlist.cells

    def run(self) -> None:
        kept = {index for bits in self.netlist.outputs.values() for index, _, _ in bits}
        reads = list(self.reads())
        for _, bank, _, _ in reads:
            if bank[0] in self.netlist.banked or kept.intersection(bank) or not self.alike(bank):
                continue
            writes = self.writes(bank)
            if writes is not None:
                self.replace(bank, writes)
        for at, bank, index, low in reads:
            memory = self.netlist.banked.get(bank[0])
            if memory is None or any(self.netlist.banked.get(each) != (memory[0], k) for k, each in enumerate(bank)):
                continue
            width = self.cells[at].width
            row = Cell("read", self.cells[memory[0]].width, [index], memory[0])
            if row.width == width:
                self.cells[at] = row
            else:
                self.cells.append(row)
                self.cells[at] = Cell("assign", width, [((len(self.cells) - 1, low, width),)], [])

    def reads(self) -> Iterator[tuple[int, tuple[int, ...], Bits, int]]:
        """Yield each read of one of several registers: its cell, the registers, the index, and the lowest bit that
        it takes."""
        for at, cell in enumerate(self.cells):
            if cell.op != "assign":
                continue
            bank: list[int] = []
            indices, lows = set(), set()
            for condition, start, value in cell.data:
                picked = self.picked(condition, len(bank))
                index, low, width = value[0]
                if (
                    picked is None
                    or picked[0] != ((CONSTANT, 1, 1),)
                    or start
                    or index == CONSTANT
                    or width != cell.width
                    or self.cells[index].op != "register"
                ):
                    break
                bank.append(index)
                indices.add(picked[1])
                lows.add(low)
            else:
                if len(indices) == len(lows) == 1 and len(set(bank)) == len(bank):
                    (by,) = indices
                    if len(bank) == 1 << _width(by):
                        yield at, tuple(bank), by, lows.pop()

    def picked(self, condition: Bits, number: int) -> tuple[Bits, Bits] | None:
        """Split a condition that an index has this number: return the rest of the condition, and the index.

        Return None if it is no such condition.
        """
        cell = self.cells[condition[0][0]] if condition[0][0] != CONSTANT else None
        if cell is None or cell.op != "all" or cell.data != (True, True):
            return None
        match = self.cells[cell.args[1][0][0]] if cell.args[1][0][0] != CONSTANT else None
        if match is None or match.op != "matches" or len(match.data) != 1:
            return None
        index = match.args[0]
        return (cell.args[0], index) if match.data[0] == f"{number:0{_width(index)}b}" else None

    def alike(self, bank: tuple[int, ...]) -> bool:
        cells = [self.cells[index] for index in bank]
        return all(cell.op == "register" and cell.width == cells[0].width and cell.data.marks is None for cell in cells)

    def writes(self, bank: tuple[int, ...]) -> list[_Write] | None:
        """Return the writes of the registers, later ones after earlier ones; None if they are not all by row."""
        rest = [self.assigned(index) for index in bank]
        waiting = [list(each) for each in rest if each is not None]
        if len(waiting) < len(bank):
            return None
        shared = [self.shared(bank, k, each) for k, each in enumerate(waiting)]
        common = set(shared[0]).intersection(*shared[1:])
        common.discard(None)
        found: list[_Write] = []
        bits = (len(bank) - 1).bit_length()
        while any(waiting):
            heads = [shared[k][0] if waiting[k] else None for k in range(len(bank))]
            own = next((k for k, head in enumerate(heads) if waiting[k] and head not in common), None)
            if own is not None:
                condition, value = waiting[own].pop(0)
                shared[own].pop(0)
                found.append((condition, ((CONSTANT, own, bits),), value))
            elif all(head == heads[0] for head in heads) and heads[0] is not None:
                found.append(heads[0])
                for k in range(len(bank)):
                    waiting[k].pop(0)
                    shared[k].pop(0)
            else:
                return None
        return found

    def assigned(self, index: int) -> list[tuple[Bits, Bits]] | None:
        """Return conditions and values of the assignments of a register that otherwise keeps its value.

        Return None if the register is not of this form.
        """
        width = self.cells[index].width
        own: Bits = ((index, 0, width),)
        after = self.cells[index].args[0]
        if after == own:
            return []
        cell = self.cells[after[0][0]] if len(after) == 1 and after[0][0] != CONSTANT else None
        if cell is None or cell.op != "assign" or after[0][1:] != (0, cell.width) or cell.args[0] != own:
            return None
        if any(start or _width(value) != width for _, start, value in cell.data):
            return None
        return [(condition, value) for condition, _, value in cell.data]

    def shared(self, bank: tuple[int, ...], k: int, waiting: list[tuple[Bits, Bits]]) -> list[_Write | None]:
        """Return for each assignment of a register the indexed write that it may be part of, or None."""
        found: list[_Write | None] = []
        for condition, value in waiting:
            picked = self.picked(condition, k)
            fits = picked is not None and len(bank) == 1 << _width(picked[1])
            found.append((*picked, value) if picked is not None and fits else None)
        return found

    def replace(self, bank: tuple[int, ...], writes: list[_Write]) -> None:
        cells, width = self.cells, self.cells[bank[0]].width
        cells.append(Cell("memory", width, [], Memory(len(bank), tuple(cells[k].data.init for k in bank), False)))
        memory, bits = len(cells) - 1, (len(bank) - 1).bit_length()
        cells.extend(Cell("write", 0, [*write], memory) for write in writes)
        for k, index in enumerate(bank):
            cells[index] = Cell("read", width, [((CONSTANT, k, bits),)], memory)
            self.netlist.banked[index] = memory, k


def _width(bits: Bits) -> int:
    return sum(width for _, _, width in bits)
