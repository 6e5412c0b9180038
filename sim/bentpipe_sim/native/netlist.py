"""Amaranth's netlist (NIR) of a component, read into plain cells.

NIR keeps the decision trees of ``m.If``, which Verilog for synthesis no longer has.

Restrictions, each a :class:`NetlistError`: one clock domain ``sync`` with rising edges and synchronous reset, no
instances, no registered memory reads (they are for the narrow datapath), one write enable a memory word.
"""

# The netlist's classes carry no types.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bentpipe_hdl.amaranth_private import netlist, nir

from ..errors import SimulationError

__all__ = ["CONSTANT", "Bits", "Cell", "Netlist", "NetlistError", "read", "read_netlist"]

CONSTANT = -1
"""In the place of a cell's index."""

Run = tuple[int, int, int]
"""Bits of a cell that follow each other: ``(cell, lowest, how many)``, or ``(CONSTANT, value, how many)``."""

Bits = tuple[Run, ...]
"""A value, its lowest bits first."""


class NetlistError(SimulationError):
    """The design uses something that the native engine does not handle."""


@dataclass(slots=True)
class Cell:
    """One cell.

    Members
    -------
    op : str
        An operator as in NIR, or "input", "register", "memory", "read", "write", "assign", "matches", "all", "part",
        "call".
    width : int
        Bits of its output.
    args : list of Bits
        "register": the next value. "read": address. "write": enable, address, data. "assign": the value where none
        of ``data`` holds. "matches": value. "part": value, offset. Else operands.
    data
        "input": the port's name. "register": :class:`Register`. "memory": :class:`Memory`. "read", "write": index of
        the memory. "assign": ``(condition, start, value)``, later ones over earlier ones. "matches": patterns.
        "all": for each operand, whether it has to be 1 or 0. "part": stride, whether it is signed. "call": the
        function's name.
    """

    op: str
    width: int
    args: list[Bits]
    data: Any = None


@dataclass(frozen=True)
class Register:
    """``marks``: :mod:`bentpipe_hdl.sim_hints`'s level and value, if it has one."""

    init: int
    marks: tuple[str, int] | None


@dataclass(frozen=True)
class Memory:
    """``whole``: RTL says that its rows move as a whole."""

    depth: int
    init: tuple[int, ...]
    whole: bool


@dataclass
class Netlist:
    """Cells, and the ports: inputs by name with their cell, outputs with their value; what RTL marks as deciding;
    registers that became rows of memories (:mod:`.banks`): the memory's cell and the row; names of cells that are
    signals in RTL, for errors."""

    cells: list[Cell] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, Bits] = field(default_factory=dict)
    deciding: list[tuple[Bits, int | None]] = field(default_factory=list)
    banked: dict[int, tuple[int, int]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)


def read(component: Any, name: str) -> Netlist:
    """Return the netlist of an Amaranth component (``wiring.Component``).

    Raises
    ------
    NetlistError
        It uses something that the native engine does not handle.
    """
    return read_netlist(netlist(component, name))


def read_netlist(source: nir.Netlist) -> Netlist:
    """Read Amaranth's netlist; cells that exist in both have the same numbers. Errors are as for :func:`read`."""
    return _Reader(source).run()


class _Reader:
    def __init__(self, source: nir.Netlist):
        self.source = source
        self.found = Netlist()
        self.place: dict[int, tuple[int, int]] = {}  # nets that are no bit of the cell of their own number
        self.cells = self.found.cells
        clk = source.top.ports_i.get("clk")
        self.clk = None if clk is None else nir.Net.from_cell(0, clk[0])

    def run(self) -> Netlist:
        source = self.source
        for signal, value in source.signals.items():
            if len(value) and value[0].is_cell:
                self.found.names.setdefault(value[0].cell, signal.name)
        # Cells keep their numbers; those that NIR has no number for come behind them.
        self.cells += [Cell("none", 0, []) for _ in source.cells]
        for port, (start, width) in source.top.ports_i.items():
            if port == "clk" or not width:
                continue
            self.found.inputs[port] = self.add(Cell("input", width, [], port))
            for bit in range(width):
                self.place[nir.Net.from_cell(0, start + bit)] = (self.found.inputs[port], bit)
        for index, cell in enumerate(source.cells):
            if isinstance(cell, nir.PriorityMatch):
                for bit in range(len(cell.inputs)):
                    self.place[nir.Net.from_cell(index, bit)] = (self.add(Cell("all", 1, [])), 0)
        calls = self.calls()
        for index, cell in enumerate(source.cells):
            self.one(index, cell)
        for _, result, arguments in calls:  # the function's own operands are as they were
            index = self.place[result[0]][0]
            self.cells[index].args = [self.bits(value) for value in arguments]
        mark = "bentpipe_decides"
        self.found.outputs = {port: self.bits(value) for port, value in source.top.ports_o.items() if value}
        marked = [
            ([int(part) for part in s.attrs[mark].split()], self.bits(value))
            for s, value in source.signals.items()
            if mark in s.attrs
        ]
        marked.sort(key=lambda each: each[0][0])
        self.found.deciding = [(bits, parts[1] if len(parts) > 1 else None) for parts, bits in marked]
        return self.found

    def add(self, cell: Cell) -> int:
        self.cells.append(cell)
        return len(self.cells) - 1

    def bits(self, value: Iterable[nir.Net]) -> Bits:
        runs: list[list[int]] = []
        for net in value:
            if net < 2:
                if runs and runs[-1][0] == CONSTANT:
                    runs[-1][1] |= net << runs[-1][2]
                    runs[-1][2] += 1
                else:
                    runs.append([CONSTANT, int(net), 1])
                continue
            cell, bit = self.place.get(net) or (net >> 16, net & 0xFFFF)
            if runs and runs[-1][0] == cell and runs[-1][1] + runs[-1][2] == bit:
                runs[-1][2] += 1
            else:
                runs.append([cell, bit, 1])
        return tuple((cell, low, width) for cell, low, width in runs)

    def calls(self) -> list[tuple[str, nir.Value, list[nir.Value]]]:
        """Return the calls that RTL marks as functions of C++ (:mod:`bentpipe_hdl.functions`).

        A marked result is read from the call. Marks of equal modules are alike.
        """
        results: dict[tuple[int, str], nir.Value] = {}
        arguments: dict[tuple[int, str], dict[int, nir.Value]] = {}
        for module, part in enumerate(self.source.modules):
            for signal in part.signal_names:
                if "bentpipe_result" in signal.attrs:
                    results[module, signal.attrs["bentpipe_result"]] = self.source.signals[signal]
                if "bentpipe_argument" in signal.attrs:
                    mark, _, place = signal.attrs["bentpipe_argument"].rpartition(" ")
                    arguments.setdefault((module, mark), {})[int(place)] = self.source.signals[signal]
        found = []
        for key, given in arguments.items():  # where the arguments are, for results are seen outside, too
            result = results[key]
            index = self.add(Cell("call", len(result), [], key[1].split()[0]))
            for bit, net in enumerate(result):
                self.place[net] = (index, bit)
            found.append((key[1], result, [value for _, value in sorted(given.items())]))
        return found

    def one(self, index: int, cell: nir.Cell) -> None:
        bits = self.bits
        match cell:
            case nir.Top():
                return
            case nir.Operator():
                made = Cell(cell.operator, cell.width, [bits(value) for value in cell.inputs])
            case nir.Part():
                made = Cell("part", cell.width, [bits(cell.value), bits(cell.offset)], (cell.stride, cell.value_signed))
            case nir.Matches():
                made = Cell("matches", 1, [bits(cell.value)], cell.patterns)
            case nir.PriorityMatch():
                self.priority(index, cell)
                return
            case nir.AssignmentList():
                assigned = [(bits([a.cond]), a.start, bits(a.value)) for a in cell.assignments]
                made = Cell("assign", len(cell.default), [bits(cell.default)], assigned)
            case nir.FlipFlop():
                name = self.found.names.get(index, "a register")
                self.clocked(cell, name)
                if cell.arst != 0:
                    raise NetlistError(f"{name} has an asynchronous reset; the native engine has synchronous ones only")
                made = Cell("register", len(cell.data), [bits(cell.data)], Register(cell.init, _marks(cell)))
            case nir.Memory():
                whole = "bentpipe_whole" in cell.attributes
                made = Cell("memory", cell.width, [], Memory(cell.depth, cell.init, whole))
            case nir.AsyncReadPort():
                made = Cell("read", cell.width, [self.address(cell)], cell.memory)
            case nir.SyncWritePort():
                self.clocked(cell, f"the memory {self.source.cells[cell.memory].name}")
                if len(set(cell.en)) != 1:
                    raise NetlistError("a memory word has several write enables")
                made = Cell("write", 0, [self.enable(cell), self.address(cell), bits(cell.data)], cell.memory)
            case nir.SyncReadPort():
                raise NetlistError("registered memory reads are for the narrow datapath, which has no native engine")
            case _:
                raise NetlistError(f"the native engine has no {type(cell).__name__}")
        self.cells[index] = made

    def clocked(self, cell: Any, name: str) -> None:
        """Check that a register or write port has the clock of ``sync``, which is an input."""
        if cell.clk_edge != "pos" or cell.clk != self.clk:
            raise NetlistError(f"{name} has another clock than the rising edge of clk, that of the domain sync")

    def enable(self, cell: nir.SyncWritePort) -> Bits:
        """Return the condition of a write: rows beyond the last one do not exist.

        No comparison is needed where every address is that of a row, or where RTL has the mark ``bentpipe_bounded``.
        """
        memory = self.source.cells[cell.memory]
        enable, depth = self.bits(cell.en[:1]), memory.depth
        if depth >= 1 << len(cell.addr) or "bentpipe_bounded" in memory.attributes:
            return enable
        address = self.bits(cell.addr)
        inside = self.add(Cell("u<", 1, [address, ((CONSTANT, depth, len(cell.addr)),)]))
        both = self.add(Cell("all", 1, [enable, ((inside, 0, 1),)], (True, True)))
        return ((both, 0, 1),)

    def address(self, cell: nir.SyncWritePort | nir.AsyncReadPort) -> Bits:
        """Return the number of a row; that of a memory's only row, which has no bit, is 0."""
        return self.bits(cell.addr) or ((CONSTANT, 0, 1),)

    def priority(self, index: int, cell: nir.PriorityMatch) -> None:
        """Set each bit to 1 if its input is 1, no earlier input is 1, and the whole is enabled."""
        exclusive = self.exclusive(cell)
        for bit, net in enumerate(cell.inputs):
            before = [] if exclusive else cell.inputs[:bit]
            made = self.cells[self.place[nir.Net.from_cell(index, bit)][0]]
            made.args = [self.bits([each]) for each in (cell.en, *before, net)]
            made.data = (True, *(False for _ in before), True)

    def exclusive(self, cell: nir.PriorityMatch) -> bool:
        """Return whether no two inputs of the cell can be 1, as for a ``Switch`` with different numbers."""
        value, seen = None, set()
        for net in cell.inputs:
            source = self.source.cells[net.cell] if net.is_cell else None
            if not isinstance(source, nir.Matches) or (value is not None and tuple(source.value) != value):
                return False
            value = tuple(source.value)
            if any("-" in pattern or pattern in seen for pattern in source.patterns):
                return False
            seen.update(source.patterns)
        return True


def _marks(cell: nir.FlipFlop) -> tuple[str, int] | None:
    for level in ("steady", "settled"):
        value = cell.attributes.get(f"bentpipe_{level}")
        if value is not None:
            return level, int(getattr(value, "value", value)) & ((1 << len(cell.data)) - 1)
    return None
