"""A netlist as it is in most clocks: with what rarely changes taken as constant.

RTL marks registers that have one value in most clocks, or for a long time, and there are inputs like that
(:mod:`bentpipe_hdl.steady`). The scheduler makes more than one body of a clocked block: the whole one, and shorter ones
for clocks at whose beginning marked registers have their values. For that, :func:`specialise` replaces them in the
netlist by constants and folds what follows: conditions that can't hold take their work with them.
"""

# The netlist's classes carry no types.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false
# pyright: reportReturnType=false

from __future__ import annotations

import copy
from collections.abc import Iterable

from amaranth.hdl import _nir as nir

__all__ = ["LEVELS", "settled_inputs", "specialise", "steady_registers"]

LEVELS = ("steady", "settled")
"""The kinds of marks; what is settled differs least often."""

INPUTS = ("rst", "csr__w_en", "csr__r_en")
"""Inputs of a node that are settled at 0."""

ZERO, ONE = nir.Net.from_const(0), nir.Net.from_const(1)


def steady_registers(netlist: nir.Netlist) -> dict[str, dict[int, int]]:
    """For each of ``LEVELS`` the flip-flops that are marked so, and their steady values."""
    found: dict[str, dict[int, int]] = {level: {} for level in LEVELS}
    for index, cell in enumerate(netlist.cells):
        if isinstance(cell, nir.FlipFlop) and len(cell.data):
            for level in LEVELS:
                if (attribute := f"bentpipe_{level}") in cell.attributes:
                    value = cell.attributes[attribute]
                    found[level][index] = int(getattr(value, "value", value)) & ((1 << len(cell.data)) - 1)
    return found


def settled_inputs(netlist: nir.Netlist) -> tuple[str, ...]:
    """The inputs that are nearly always 0."""
    return tuple(port for port in INPUTS if port in netlist.top.ports_i)


def constant(value: int, width: int) -> tuple[nir.Net, ...]:
    """Nets of a constant, the lowest bit first."""
    return tuple(ONE if value >> k & 1 else ZERO for k in range(width))


def specialise(netlist: nir.Netlist, registers: dict[int, int], inputs: Iterable[str]) -> nir.Netlist:
    """The netlist with these registers' outputs and inputs (at 0) as constants. Cells keep their indices; what nothing
    needs any more becomes a constant."""
    known: dict[int, nir.Net] = {}
    for index, value in registers.items():
        for bit, net in enumerate(constant(value, len(netlist.cells[index].data))):
            known[int(nir.Net.from_cell(index, bit))] = net
    for port in inputs:
        start, width = netlist.top.ports_i[port]
        for bit in range(width):
            known[int(nir.Net.from_cell(0, start + bit))] = ZERO
    return _Folding(netlist, known).run()


_KEPT = (nir.FlipFlop, nir.SyncWritePort, nir.Memory, nir.Top)


class _Folding:
    def __init__(self, netlist: nir.Netlist, known: dict[int, nir.Net]):
        self.netlist = netlist
        self.known = known
        self.cells: list[nir.Cell] = list(netlist.cells)
        self.outputs: dict[int, tuple[nir.Net, ...]] = {}

    def run(self) -> nir.Netlist:
        for index, cell in enumerate(self.netlist.cells):
            if isinstance(cell, nir.FlipFlop):
                self.cells[index] = self.changed(cell, data=self.value(cell.data))
            elif isinstance(cell, nir.SyncWritePort):
                fields = {name: self.value(getattr(cell, name)) for name in ("data", "addr", "en")}
                self.cells[index] = self.changed(cell, **fields)
        live: set[int] = set()
        waiting = [index for index, cell in enumerate(self.cells) if isinstance(cell, nir.FlipFlop | nir.SyncWritePort)]
        while waiting:
            for net in self.cells[waiting.pop()].input_nets():
                if net.is_cell and net.cell not in live and not isinstance(self.cells[net.cell], _KEPT):
                    live.add(net.cell)
                    waiting.append(net.cell)
        for index, cell in enumerate(self.cells):
            if not isinstance(cell, _KEPT) and index not in live:
                self.cells[index] = nir.Operator(
                    cell.module_idx, operator="b", inputs=(nir.Value((ZERO,)),), src_loc=cell.src_loc
                )
        folded = copy.copy(self.netlist)
        folded.cells = self.cells
        return folded

    @staticmethod
    def changed(cell: nir.Cell, **fields):
        made = copy.copy(cell)
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    def value(self, value: Iterable[nir.Net]) -> nir.Value:
        return nir.Value(self.net(net) for net in value)

    def net(self, net: nir.Net) -> nir.Net:
        if net.is_const:
            return net
        if int(net) in self.known:
            return self.known[int(net)]
        if net.cell == 0 or isinstance(self.cells[net.cell], _KEPT):
            return net
        if net.cell not in self.outputs:
            self.fold(net.cell)
        return self.outputs[net.cell][net.bit]

    def fold(self, index: int) -> None:
        cell = self.cells[index]
        match cell:
            case nir.Operator():
                made = self.changed(cell, inputs=tuple(self.value(v) for v in cell.inputs))
                found = self.operator(made)
                width = made.width
            case nir.Matches():
                made = self.changed(cell, value=self.value(cell.value))
                found = self.matches(made)
                width = 1
            case nir.PriorityMatch():
                made = self.changed(cell, en=self.net(cell.en), inputs=self.value(cell.inputs))
                found = self.priority(made)
                width = len(made.inputs)
            case nir.AssignmentList():
                made, found = self.assignments(cell)
                width = len(made.default)
            case nir.Part():
                made = self.changed(cell, value=self.value(cell.value), offset=self.value(cell.offset))
                found, width = [None] * made.width, made.width
            case nir.AsyncReadPort():
                made = self.changed(cell, addr=self.value(cell.addr))
                found, width = [None] * made.width, made.width
            case _:
                raise TypeError(f"cannot fold a {type(cell).__name__}")
        self.cells[index] = made
        self.outputs[index] = tuple(
            nir.Net.from_cell(index, bit) if found[bit] is None else found[bit] for bit in range(width)
        )

    # Each gives, for every bit of the cell's output, the net that it is, or None if it is the cell's own.

    @staticmethod
    def operator(cell: nir.Operator) -> list[nir.Net | None]:
        symbol, inputs = cell.operator, cell.inputs
        none: list[nir.Net | None] = [None] * cell.width
        if symbol in ("&", "|"):
            strong, weak = (ZERO, ONE) if symbol == "&" else (ONE, ZERO)
            for bit, (a, b) in enumerate(zip(*inputs, strict=True)):
                if strong in (a, b):
                    none[bit] = strong
                elif a == weak:
                    none[bit] = b
                elif b == weak:
                    none[bit] = a
        elif symbol == "^":
            for bit, (a, b) in enumerate(zip(*inputs, strict=True)):
                if a.is_const and b.is_const:
                    none[bit] = ONE if a.const ^ b.const else ZERO
                elif ZERO in (a, b):
                    none[bit] = b if a == ZERO else a
        elif symbol == "~":
            none = [(ZERO if a.const else ONE) if a.is_const else None for a in inputs[0]]
        elif symbol == "m" and inputs[0][0].is_const:
            none = list(inputs[1] if inputs[0][0].const else inputs[2])
        elif symbol in ("==", "!="):
            pairs = list(zip(*inputs, strict=True))
            same, other = (ONE, ZERO) if symbol == "==" else (ZERO, ONE)
            if any(a.is_const and b.is_const and a != b for a, b in pairs):
                none = [other]
            elif all(a == b for a, b in pairs):
                none = [same]
        elif symbol in ("b", "r|", "r&"):
            strong, weak = (ZERO, ONE) if symbol == "r&" else (ONE, ZERO)
            left = [a for a in inputs[0] if a != weak]
            if strong in left:
                none = [strong]
            elif len(left) <= 1:
                none = [left[0] if left else weak]
        elif symbol in ("+", "-") and all(b == ZERO for b in inputs[-1]) and len(inputs) == 2:
            none = list(inputs[0])
        if cell.width > 1 and symbol in ("&", "|", "^", "~"):  # as a whole or not at all: no sewing together of bits
            whole = None not in none and (all(net.is_const for net in none) or tuple(none) in map(tuple, inputs))
            return none if whole else [None] * cell.width
        return none

    @staticmethod
    def matches(cell: nir.Matches) -> list[nir.Net | None]:
        possible = []
        for pattern in cell.patterns:
            certain = True
            for net, wanted in zip(cell.value, reversed(pattern), strict=True):
                if wanted == "-":
                    continue
                if not net.is_const:
                    certain = False
                elif str(net.const) != wanted:
                    break
            else:
                if certain:
                    return [ONE]
                possible.append(pattern)
        cell.patterns = tuple(possible)
        return [None] if possible else [ZERO]

    @staticmethod
    def priority(cell: nir.PriorityMatch) -> list[nir.Net | None]:
        found: list[nir.Net | None] = []
        first, over = True, cell.en == ZERO  # nothing before may hold; nothing from here on can
        for net in cell.inputs:
            if over or net == ZERO:
                found.append(ZERO)
                continue
            if first and cell.en == ONE and net == ONE:
                found.append(ONE)
            elif first and net == ONE:
                found.append(cell.en)
            else:
                found.append(None)
            first, over = False, net == ONE
        return found

    def assignments(self, cell: nir.AssignmentList) -> tuple[nir.AssignmentList, list[nir.Net | None]]:
        default = tuple(self.value(cell.default))
        kept: list[nir.Assignment] = []
        for a in cell.assignments:
            condition = self.net(a.cond)
            if condition == ZERO:
                continue
            value = self.value(a.value)
            if condition == ONE and a.start == 0 and len(value) == len(default):
                default, kept = tuple(value), []
            elif kept or tuple(value) != default[a.start : a.start + len(value)]:
                kept.append(nir.Assignment(cond=condition, start=a.start, value=value, src_loc=a.src_loc))
        made = self.changed(cell, default=nir.Value(default), assignments=tuple(kept))
        return made, [None] * len(default) if kept else list(default)
