"""Uses of Amaranth beyond its public interface: the one file that touches its private modules, except for
:mod:`bentpipe_hdl.amaranth_simulation`.

Three look at a design as Amaranth keeps it: the check of a narrow node's clocks (:mod:`bentpipe_hdl.clocks`) at its
statements, the native engine at its netlist (NIR), a wave of a node (``bentpipe_sim.wave``) at that and at the
simulator's state. So Amaranth is pinned to a minor version;
``tb/unit/hdl/test_amaranth.py`` says what another one does differently.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Format, Fragment, ShapeCastable, Signal, Value
from amaranth.hdl import _nir as nir
from amaranth.hdl._ast import Assign, SignalDict, SignalSet, Slice, Switch
from amaranth.hdl._ir import PortDirection, _emit_netlist, build_netlist
from amaranth.hdl._mem import MemoryData, MemoryInstance
from amaranth.lib.wiring import In

__all__ = [
    "PortDirection", "SignalDict", "SignalSet", "Simulated", "assignments", "memory_reads", "memory_writes", "netlist",
    "netlist_of_design", "nir", "ports", "unsliced", "used",
]  # fmt: skip


def ports(component: Any) -> dict[str, tuple[Value, PortDirection]]:
    """Return a component's ports by name, ``a_b`` for ``component.a.b``, in the form that Amaranth's back ends take."""
    found = {}
    for path, member, value in component.signature.flatten(component):
        direction = PortDirection.Input if member.flow == In else PortDirection.Output
        found["_".join(str(part) for part in path)] = (Value.cast(value), direction)
    return found


def netlist(component: Any, name: str) -> nir.Netlist:
    """Return the netlist of a component."""
    return netlist_of_design(_design(component, name))


def netlist_of_design(design: Any, **options: bool) -> nir.Netlist:
    """Return the netlist of a prepared design, as ``build_netlist`` does, but without the ports of its modules.

    ``build_netlist`` looks for combinational cycles bit by bit. This function looks at whole cells, of which a netlist
    has a hundredth as many: if no cell depends on itself, no bit does. Otherwise Amaranth's own function decides. The
    cycles of bits and the ports take 35 to 50 % of the time of ``build_netlist`` (Amaranth 0.5.10).
    """
    made = nir.Netlist()
    _emit_netlist(made, design, **{"all_undef_to_ff": False, **options})
    made.resolve_all_nets()
    return made if _has_no_cycle(made.cells) else build_netlist(design, **options)


_REGISTERED = (nir.Top, nir.Memory, nir.SyncWritePort, nir.SyncReadPort)
"""Cells whose outputs depend on no input in the same clock."""


def _sources(cell: nir.Cell) -> set[int]:
    """Return the cells on which a cell's outputs may depend in the same clock."""
    if isinstance(cell, _REGISTERED):
        return set()
    nets = (cell.clk, cell.arst) if isinstance(cell, nir.FlipFlop) else cell.input_nets()
    return {net.cell for net in nets if not net.is_const}


def _has_no_cycle(cells: list[nir.Cell]) -> bool:
    """Return whether no cell depends on itself in a clock."""
    inputs = [*map(_sources, cells)]
    under_way, done = 1, 2
    states = bytearray(len(cells))
    for root in range(len(cells)):
        path = [] if states[root] else [(root, iter(inputs[root]))]
        while path:
            cell, rest = path[-1]
            states[cell] = under_way
            source = next((each for each in rest if states[each] != done), None)
            if source is None:
                states[cell] = done
                path.pop()
            elif states[source] == under_way:
                return False
            else:
                path.append((source, iter(inputs[source])))
    return True


def _design(component: Any, name: str):
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 100_000))
    return Fragment.get(component, None).prepare(ports=ports(component), hierarchy=(name,))


def unsliced(value: Value) -> tuple[Value, int]:
    """Return the value of which a value is a slice, and the slice's first bit in it."""
    start = 0
    while isinstance(value, Slice):
        value, start = value.value, start + value.start
    return value, start


def used(value: Value) -> SignalSet:
    """Return the signals that a value is made of."""
    return value._rhs_signals()


def assignments(fragment: Fragment) -> Iterator[tuple[str, SignalSet, SignalSet, SignalSet]]:
    """Yield ``(domain, targets, sources, conditions)`` of each assignment of a design.

    The sources are all signals that the assignment depends on; they include those of the conditions.
    """
    for part in _parts(fragment):
        for domain, statements in part.statements.items():
            for target, sources, conditions in _of(statements, SignalSet()):
                yield domain, target._lhs_signals(), sources, conditions


def memory_reads(fragment: Fragment) -> Iterator[tuple[Any, str, SignalSet, SignalSet]]:
    """Yield ``(memory, domain, data, address)`` of each read port of a design.

    The domain is "comb" if the data follow the address in the same clock.
    """
    for part in _parts(fragment):
        if isinstance(part, MemoryInstance):
            for port in part._read_ports:
                yield part._data, port._domain, port._data._lhs_signals(), port._addr._rhs_signals()


def memory_writes(fragment: Fragment) -> Iterator[tuple[Any, str, SignalSet]]:
    """Yield ``(memory, name, signals)`` of each write port of a design; the signals are those of address, data and
    enable."""
    for part in _parts(fragment):
        if isinstance(part, MemoryInstance):
            for port in part._write_ports:
                data = used(port._data)
                name = next((signal.name for signal in data), "a memory")
                yield part._data, name, used(port._addr) | data | used(port._en)


def _parts(fragment):
    yield fragment
    for part, _, _ in fragment.subfragments:
        yield from _parts(part)


def _of(statements, conditions):
    """Yield ``(target, sources, conditions)`` of each assignment."""
    for statement in statements:
        if isinstance(statement, Assign):
            # of the target what selects a part of it, but not itself
            chosen = statement.lhs._rhs_signals() - statement.lhs._lhs_signals()
            yield statement.lhs, conditions | statement.rhs._rhs_signals() | chosen, conditions
        elif isinstance(statement, Switch):
            inner = conditions | statement.test._rhs_signals()
            for _, body, _ in statement.cases:
                yield from _of(body, inner)


Part = tuple[str, Value | Format]
"""What a signal or a row of a memory has: where in it, as ``.frame[2]`` (the whole: nothing), and its value, or the
text that stands for it."""


class Simulated:
    """A component with the one domain ``sync`` in Amaranth's simulator, which goes on from any state, clock by clock.

    Members
    -------
    netlist : nir.Netlist
        Of the same signals.
    ports : dict
        As for :func:`ports`.
    scopes : dict of Signal to list of tuple of str
        Where each signal is: modules, the top one called ``name``, and its name there; the ports also in ``ports``.
    memories : list of (MemoryData, tuple of str)
        In the netlist's order, and where each is.
    changed, rows : set
        Signals, and (memory, row), that may have another value than when these sets were last emptied.
    """

    fs_per_delta = 0

    def __init__(self, component: Any, name: str):
        from amaranth.sim.pysim import PySimEngine

        design = _design(component, name)
        self.netlist, self.ports = netlist_of_design(design), ports(component)
        self.scopes: dict[Signal, list[tuple[str, ...]]] = SignalDict()  # type: ignore[assignment]
        self.memories: list[tuple[MemoryData, tuple[str, ...]]] = []
        for fragment, inside in design.fragments.items():
            if isinstance(fragment, MemoryInstance):
                self.memories.append((fragment._data, inside.name))
                continue
            for signal, own in inside.signal_names.items():
                self.scopes.setdefault(signal, []).append((*inside.name, own))
        for port, (value, _) in self.ports.items():
            if isinstance(value, Signal):
                self.scopes.setdefault(value, []).append((name, "ports", port))
        self._engine = PySimEngine(design)
        self._clk = design.fragment.domains["sync"].clk
        self.changed: SignalSet = SignalSet()
        self.rows: set[tuple[MemoryData, int]] = set()
        self._engine._vcd_writers.append(self)  # it is told what changes
        self._set(self._clk, 0)

    def _slot(self, signal: Signal) -> Any:
        return self._engine.state.slots[self._engine.state.get_signal(signal)]

    def _set(self, signal: Signal, value: int) -> None:
        slot = self._slot(signal)
        slot.curr = slot.next = value

    def begin(
        self, registers: Iterable[tuple[Signal, int]], rows: dict[MemoryData, list[int]], inputs: dict[str, int]
    ) -> None:
        """Set the state and the inputs at the start, before anything else; all other values follow from them."""
        for signal, value in registers:
            self._set(signal, _signed(signal, value))
        for memory, data in rows.items():
            self._engine.state.slots[self._engine.state.get_memory(memory)].data[:] = data
        self.give(inputs)

    def give(self, inputs: dict[str, int]) -> None:
        """Set the inputs before the clock; ``clk`` falls."""
        self._engine.set_value(self._clk, 0)
        for name, value in inputs.items():
            self._engine.set_value(self.ports[name][0], value)
        self._engine.step_design()

    def clock(self) -> None:
        """Make a rising edge of the clock."""
        self._engine.set_value(self._clk, 1)
        self._engine.step_design()

    def get(self, what: Value) -> int:
        """Return the value now, without a sign."""
        return self._engine.get_value(what) & ((1 << len(what)) - 1)

    def text(self, what: Format) -> str:
        """Return a value's text, as the name of a state."""
        from amaranth.sim._pyeval import eval_format

        return eval_format(self._engine.state, what)

    def row(self, memory: MemoryData, index: int) -> int:
        return self._engine.state.slots[self._engine.state.get_memory(memory)].data[index]

    @contextmanager
    def before(self, memory: MemoryData, index: int, value: int) -> Iterator[None]:
        """Restore the old value of a memory's row within the context."""
        data = self._engine.state.slots[self._engine.state.get_memory(memory)].data
        now, data[index] = data[index], value
        try:
            yield
        finally:
            data[index] = now

    def update_signal(self, _time: int, signal: Signal) -> None:
        self.changed.add(signal)

    def update_memory(self, _time: int, memory: MemoryData, index: int) -> None:
        self.rows.add((memory, index))

    @staticmethod
    def parts(what: Signal) -> Iterator[Part]:
        """Yield the whole of a signal, and the fields of its structures."""
        yield from _parts_of("", what._format)

    @staticmethod
    def parts_of_row(memory: MemoryData, index: int) -> Iterator[Part]:
        row = memory[index]
        shape = memory.shape
        yield from _parts_of(
            "", shape.format(shape(row), "") if isinstance(shape, ShapeCastable) else Format("{}", row)
        )


def _signed(signal: Signal, value: int) -> int:
    return value - (1 << len(signal)) if signal.shape().signed and value >> (len(signal) - 1) else value


def _parts_of(path: str, found: Format) -> Iterator[Part]:
    match found:
        case Format.Struct() | Format.Array():
            yield path, found._value
            fields = found._fields.items() if isinstance(found, Format.Struct) else enumerate(found._fields)
            for name, inner in fields:
                yield from _parts_of(f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}", inner)
        case Format(_chunks=[(value, "")]):
            yield path, value
        case _:
            yield path, found
