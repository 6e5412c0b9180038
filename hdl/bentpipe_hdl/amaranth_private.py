"""What is used of Amaranth beyond its public interface: the one file that touches its private modules.

Two look at a design as Amaranth keeps it: the check of a narrow node's clocks (:mod:`bentpipe_hdl.clocks`) at its
statements, the native engine at its netlist (NIR). So Amaranth is pinned to a minor version;
``tb/unit/hdl/test_amaranth.py`` says what another one does differently.
"""

import sys
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Fragment, Value
from amaranth.hdl import _nir as nir
from amaranth.hdl._ast import Assign, SignalDict, SignalSet, Switch
from amaranth.hdl._ir import PortDirection, build_netlist
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib.wiring import In

__all__ = ["SignalDict", "SignalSet", "assignments", "memory_reads", "memory_writes", "netlist", "nir", "ports", "used"]


def ports(component: Any) -> dict[str, tuple[Value, PortDirection]]:
    """A component's ports by name, ``a_b`` for ``component.a.b``, in the form that Amaranth's back ends take."""
    found = {}
    for path, member, value in component.signature.flatten(component):
        direction = PortDirection.Input if member.flow == In else PortDirection.Output
        found["_".join(str(part) for part in path)] = (Value.cast(value), direction)
    return found


def netlist(component: Any, name: str) -> nir.Netlist:
    """The netlist of a component."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 100_000))
    return build_netlist(Fragment.get(component, None), ports=ports(component), name=name)


def used(value: Value) -> SignalSet:
    """The signals that a value is made of."""
    return value._rhs_signals()


def assignments(fragment: Fragment) -> Iterator[tuple[str, SignalSet, SignalSet, SignalSet]]:
    """``(domain, targets, all that they depend on, the conditions among it)`` of each assignment of a design."""
    for part in _parts(fragment):
        for domain, statements in part.statements.items():
            for target, sources, conditions in _of(statements, SignalSet()):
                yield domain, target._lhs_signals(), sources, conditions


def memory_reads(fragment: Fragment) -> Iterator[tuple[str, SignalSet, SignalSet]]:
    """``(domain, data, address)`` of each read port of a design; the domain is "comb" where data follow at once."""
    for part in _parts(fragment):
        if isinstance(part, MemoryInstance):
            for port in part._read_ports:
                yield port._domain, port._data._lhs_signals(), port._addr._rhs_signals()


def memory_writes(fragment: Fragment) -> Iterator[tuple[str, SignalSet]]:
    """``(name, address, data and enable together)`` of each write port of a design."""
    for part in _parts(fragment):
        if isinstance(part, MemoryInstance):
            for port in part._write_ports:
                data = used(port._data)
                name = next((signal.name for signal in data), "a memory")
                yield name, used(port._addr) | data | used(port._en)


def _parts(fragment):
    yield fragment
    for part, _, _ in fragment.subfragments:
        yield from _parts(part)


def _of(statements, conditions):
    """``(target, sources, conditions)`` of each assignment."""
    for statement in statements:
        if isinstance(statement, Assign):
            # of the target what selects a part of it, but not itself
            chosen = statement.lhs._rhs_signals() - statement.lhs._lhs_signals()
            yield statement.lhs, conditions | statement.rhs._rhs_signals() | chosen, conditions
        elif isinstance(statement, Switch):
            inner = conditions | statement.test._rhs_signals()
            for _, body, _ in statement.cases:
                yield from _of(body, inner)
