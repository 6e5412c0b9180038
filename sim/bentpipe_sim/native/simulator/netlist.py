"""The netlist of any Amaranth design, read into plain cells.

What :mod:`bentpipe_sim.native.netlist` reads for nodes, and beyond that several clocks, asynchronous resets, registered
reads, write enables of parts of a word, Print, Assert, Assume and Cover. Marks that RTL has for nodes are left aside:
the RTL itself is simulated.

Refused by a :class:`NetlistError`: instances, IO buffers, ``AnyConst``, ``AnySeq`` and ``Initial``.
"""

# The netlist's classes carry no types.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bentpipe_hdl.amaranth_simulation import nir

from ..netlist import CONSTANT, Bits, Cell, Memory, Netlist, NetlistError, Register, _Reader

__all__ = ["AnyNetlist", "Clock", "Monitor", "identity", "read_any"]


@dataclass(frozen=True)
class Clock:
    """Registers with this clock, edge (1: rising) and asynchronous reset (or none) change at once."""

    clk: Bits
    edge: int
    reset: Bits | None


@dataclass
class Monitor:
    """A Print, Assert, Assume or Cover: the number of its cell in the netlist, of its clock (none: it is
    combinational), its enable, what is tested, and the values in its text."""

    cell: int
    clock: int | None
    enable: Bits
    test: Bits | None
    values: list[Bits]


@dataclass
class AnyNetlist(Netlist):
    """A netlist.

    Members
    -------
    clocks : list of Clock
    clock_of : dict of int to int
        The clock of each register and write, by the number of its cell.
    signals : list of Bits
        All that have a name, in the order of the netlist.
    words : list of list of (int, int, int)
        For each memory, in the order of the netlist, its parts: lowest bit, width, cell.
    inits : dict of str to int
        Of inputs.
    monitors : list of Monitor
    """

    clocks: list[Clock] = field(default_factory=list)
    clock_of: dict[int, int] = field(default_factory=dict)
    signals: list[Bits] = field(default_factory=list)
    words: list[list[tuple[int, int, int]]] = field(default_factory=list)
    inits: dict[str, int] = field(default_factory=dict)
    monitors: list[Monitor] = field(default_factory=list)


def read_any(source: nir.Netlist) -> AnyNetlist:
    """Return the cells of a netlist of :func:`bentpipe_hdl.amaranth_simulation.netlist_of`.

    Raises
    ------
    NetlistError
        It uses something that the native engine does not handle.
    """
    return _AnyReader(source).run()


def identity(source: nir.Netlist) -> str:
    """Return a text that is equal for equal netlists."""
    cells = (f"{cell!r}" for cell in source.cells)
    return "\n".join([*cells, *(f"{signal.shape()!r} {value!r}" for signal, value in source.signals.items())])


class _AnyReader(_Reader):
    def __init__(self, source: nir.Netlist):
        super().__init__(source)
        self.any = self.found = AnyNetlist()
        self.cells = self.any.cells
        self.slices: dict[int, list[tuple[int, int, int]]] = {}  # of a memory: lowest bit, width, cell
        self.clocks: dict[Clock, int] = {}

    def run(self) -> AnyNetlist:
        source, found = self.source, self.any
        for signal, value in source.signals.items():
            if len(value) and value[0].is_cell:
                found.names.setdefault(value[0].cell, signal.name)
        self.cells += [Cell("none", 0, []) for _ in source.cells]
        for port, (start, width) in source.top.ports_i.items():  # of domains that the design has not made itself
            name = f"p_{port}"
            found.inputs[name] = self.add(Cell("input", width, [], name))
            for bit in range(width):
                self.place[nir.Net.from_cell(0, start + bit)] = (found.inputs[name], bit)
        for index, cell in enumerate(source.cells):
            if isinstance(cell, nir.PriorityMatch):
                for bit in range(len(cell.inputs)):
                    self.place[nir.Net.from_cell(index, bit)] = (self.add(Cell("all", 1, [])), 0)
        self.memories()
        for index, cell in enumerate(source.cells):
            self.one(index, cell)
        found.signals = [self.bits(value) for value in source.signals.values()]
        found.words = list(self.slices.values())
        found.clocks = list(self.clocks)
        _parted(found)
        return found

    def one(self, index: int, cell: nir.Cell) -> None:
        bits = self.bits
        match cell:
            case nir.FlipFlop() if cell.clk == 0:
                name = f"i{index}"
                self.any.inputs[name] = index
                self.cells[index] = Cell("input", len(cell.data), [], name)
                self.any.inits[name] = cell.init
            case nir.FlipFlop():
                data, width = bits(cell.data), len(cell.data)
                if cell.arst != 0:
                    reset = (bits([cell.arst]), 0, ((CONSTANT, cell.init, width),))
                    data = ((self.add(Cell("assign", width, [data], [reset])), 0, width),)
                self.cells[index] = Cell("register", width, [data], Register(cell.init, None))
                self.any.clock_of[index] = self.clock(cell, None if cell.arst == 0 else bits([cell.arst]))
            case nir.AsyncReadPort():
                self.cells[index] = self.read(cell.memory, self.address(cell))
            case nir.SyncReadPort():
                self.cells[index] = self.registered(index, cell)
            case nir.SyncWritePort():
                self.write(cell)
            case nir.Memory():
                pass  # its parts are there
            case nir.AsyncPrint() | nir.SyncPrint() | nir.AsyncProperty() | nir.SyncProperty():
                self.any.monitors.append(self.monitor(index, cell))
            case nir.Instance():
                raise NetlistError(f"the native simulator has no {cell.type}: an Instance, as in Verilog")
            case nir.IOBuffer() | nir.AnyValue() | nir.Initial():
                raise NetlistError(f"the native simulator has no {type(cell).__name__}")
            case _:
                super().one(index, cell)

    def clock(self, cell: Any, reset: Bits | None = None) -> int:
        clock = Clock(self.bits([cell.clk]), int(cell.clk_edge == "pos"), reset)
        return self.clocks.setdefault(clock, len(self.clocks))

    def monitor(self, index: int, cell: Any) -> Monitor:
        clock = self.clock(cell) if isinstance(cell, nir.SyncPrint | nir.SyncProperty) else None
        test = self.bits([cell.test]) if isinstance(cell, nir.AsyncProperty | nir.SyncProperty) else None
        chunks = cell.format.chunks if cell.format is not None else ()
        values = [self.bits(chunk.value) for chunk in chunks if isinstance(chunk, nir.FormatValue)]
        return Monitor(index, clock, self.bits([cell.en]), test, values)

    # Memories

    def memories(self) -> None:
        """Split a memory into as many as its words have write enables, each with words of the bits of one."""
        borders: dict[int, set[int]] = {}
        for cell in self.source.cells:
            if isinstance(cell, nir.SyncWritePort):
                found = {k for k in range(1, len(cell.en)) if cell.en[k] != cell.en[k - 1]}
                borders.setdefault(cell.memory, set()).update(found)
        for index, cell in enumerate(self.source.cells):
            if isinstance(cell, nir.Memory):
                self.slices[index] = [
                    (low, high - low, self.add(Cell("memory", high - low, [], _part_of(cell, low, high - low))))
                    for low, high in pairwise([0, *sorted(borders.get(index, ())), cell.width])
                    if high > low
                ]

    def read(self, memory: int, address: Bits) -> Cell:
        """Return a word from all parts of a memory."""
        found: list[tuple[int, int, int]] = []
        for _, width, part in self.slices[memory]:
            found.append((self.add(Cell("read", width, [address], part)), 0, width))
        return Cell("assign", sum(width for _, _, width in found), [tuple(found)], [])

    def write(self, cell: nir.SyncWritePort) -> None:
        depth, address, clock = self.source.cells[cell.memory].depth, self.address(cell), self.clock(cell)
        size = sum(run[2] for run in address)
        for low, width, part in self.slices[cell.memory]:
            enable = self.bits(cell.en[low : low + 1])
            if depth < 1 << len(cell.addr):  # rows beyond the last are never written
                inside = self.add(Cell("u<", 1, [address, ((CONSTANT, depth, size),)]))
                enable = ((self.add(Cell("all", 1, [enable, ((inside, 0, 1),)], (True, True))), 0, 1),)
            data = self.bits(cell.data[low : low + width])
            self.any.clock_of[self.add(Cell("write", 0, [enable, address, data], part))] = clock

    def registered(self, index: int, cell: nir.SyncReadPort) -> Cell:
        """Make a register of what a word is before the clock, or becomes in it."""
        address, found = self.address(cell), []
        for low, width, part in self.slices[cell.memory]:
            value: Bits = ((self.add(Cell("read", width, [address], part)), 0, width),)
            news = []
            for port in cell.transparent_for:
                write = self.source.cells[port]
                same = self.add(Cell("==", 1, [address, self.address(write)]))
                both = [((same, 0, 1),), self.bits(write.en[low : low + 1])]
                condition: Bits = ((self.add(Cell("all", 1, both, (True, True))), 0, 1),)
                news.append((condition, 0, self.bits(write.data[low : low + width])))
            if news:
                value = ((self.add(Cell("assign", width, [value], news)), 0, width),)
            found += value
        own: Bits = ((index, 0, cell.width),)
        kept = self.add(Cell("assign", cell.width, [own], [(self.bits([cell.en]), 0, tuple(found))]))
        self.any.clock_of[index] = self.clock(cell)
        return Cell("register", cell.width, [((kept, 0, cell.width),)], Register(0, None))


def _part_of(cell: nir.Memory, low: int, width: int) -> Memory:
    init = tuple(value >> low & ((1 << width) - 1) for value in cell.init)
    return Memory(cell.depth, init, False)


# Words of which a bit depends on another bit

_BITWISE = ("&", "|", "^", "~", "m", "assign")
_STATE = ("register", "memory", "input", "write", "none")


def _parted(netlist: AnyNetlist) -> None:
    """Take words apart, bit by bit, of which a bit depends on another bit of the same word."""
    cells = netlist.cells
    looped = {index for index in _looped(cells) if cells[index].op in _BITWISE}
    if not looped:
        return
    place: dict[tuple[int, int], int] = {}
    for index in looped:
        for bit in range(cells[index].width):
            place[index, bit] = len(cells)
            cells.append(_one_bit(cells[index], bit))

    def moved(bits: Bits) -> Bits:
        found: list[tuple[int, int, int]] = []
        for index, low, width in bits:
            single = index in looped
            found += [(place[index, low + k], 0, 1) for k in range(width)] if single else [(index, low, width)]
        return tuple(found)

    for index, cell in enumerate(cells):
        if index in looped:
            cells[index] = Cell("none", 0, [])
            continue
        cell.args = [moved(arg) for arg in cell.args]
        if cell.op == "assign":
            cell.data = [(moved(condition), start, moved(value)) for condition, start, value in cell.data]
    _replace(netlist, moved)


def _replace(netlist: AnyNetlist, moved: Callable[[Bits], Bits]) -> None:
    netlist.signals = [moved(bits) for bits in netlist.signals]
    netlist.clocks = [Clock(moved(c.clk), c.edge, c.reset and moved(c.reset)) for c in netlist.clocks]
    for monitor in netlist.monitors:
        monitor.enable, monitor.test = moved(monitor.enable), monitor.test and moved(monitor.test)
        monitor.values = [moved(bits) for bits in monitor.values]


def _one_bit(cell: Cell, bit: int) -> Cell:
    if cell.op == "assign":
        over = [
            (condition, 0, _bit(value, bit - start))
            for condition, start, value in cell.data
            if start <= bit < start + sum(run[2] for run in value)
        ]
        return Cell("assign", 1, [_bit(cell.args[0], bit)], over)
    if cell.op == "m":
        return Cell("m", 1, [cell.args[0], *(_bit(arg, bit) for arg in cell.args[1:])])
    return Cell(cell.op, 1, [_bit(arg, bit) for arg in cell.args], cell.data)


def _bit(bits: Bits, at: int) -> Bits:
    for index, low, width in bits:
        if at < width:
            return ((index, low >> at & 1 if index == CONSTANT else low + at, 1),)
        at -= width
    raise AssertionError("a bit beyond a value")


def _needs(cells: list[Cell], index: int) -> Iterator[int]:
    """Yield the cells that a cell depends on without a register or a memory between."""
    cell = cells[index]
    if cell.op in _STATE:
        return
    values: Iterable[Bits] = cell.args
    if cell.op == "assign":
        values = [*values, *(bits for condition, _, value in cell.data for bits in (condition, value))]
    for bits in values:
        for found, _, _ in bits:
            if found != CONSTANT and cells[found].op not in _STATE:
                yield found


def _looped(cells: list[Cell]) -> set[int]:
    """Return the cells that depend on themselves: the strongly connected components, by Tarjan's algorithm."""
    number: dict[int, int] = {}
    least: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: set[int] = set()

    def begin(at: int) -> tuple[int, Iterator[int]]:
        number[at] = least[at] = len(number)
        stack.append(at)
        on_stack.add(at)
        return at, _needs(cells, at)

    def end(at: int) -> None:
        if least[at] != number[at]:
            return
        part: list[int] = []
        while not part or part[-1] != at:
            part.append(stack.pop())
        on_stack.difference_update(part)
        if len(part) > 1 or at in _needs(cells, at):
            found.update(part)

    for root in range(len(cells)):
        work = [begin(root)] if root not in number else []
        while work:
            at, rest = work[-1]
            for need in rest:
                if need not in number:
                    work.append(begin(need))
                    break
                if need in on_stack:
                    least[at] = min(least[at], number[need])
            else:
                work.pop()
                if work:
                    least[work[-1][0]] = min(least[work[-1][0]], least[at])
                end(at)
    return found
