"""What is used of Amaranth's simulator and netlist beyond their public interface, for a simulator of our own.

Beside :mod:`bentpipe_hdl.amaranth_private`, the one file that touches Amaranth's private modules. That one is for
hardware and is imported with it; this one imports Amaranth's simulator.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Elaboratable, Format, Fragment, Signal, Value
from amaranth.hdl import _nir as nir
from amaranth.hdl._ast import Property, SignalDict, SignalSet, Slice
from amaranth.hdl._ir import Design, DriverConflict, build_netlist
from amaranth.hdl._mem import MemoryData, MemoryInstance
from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.sim._async import (
    AsyncProcess,
    BrokenTrigger,
    DomainReset,
    ProcessContext,
    TestbenchContext,
    TickTrigger,
)
from amaranth.sim._base import BaseEngine
from amaranth.sim._pyeval import eval_assign, eval_format, eval_value, value_to_string
from amaranth.sim._pyrtl import pin_blame
from amaranth.sim.pysim import _PyEngineState as EngineState
from amaranth.sim.pysim import _PyMemoryState as MemoryState
from amaranth.sim.pysim import _PySignalState as SignalState
from amaranth.sim.pysim import _PyTriggerState as TriggerState
from amaranth.sim.pysim import _run_wakers as run_wakers

__all__ = [
    "AsyncProcess", "BaseEngine", "BrokenTrigger", "Design", "DomainReset", "DriverConflict", "EngineState", "Format",
    "MemoryData", "MemoryState", "ProcessContext", "Property", "SignalDict", "SignalSet", "SignalState", "Slice",
    "TestbenchContext", "TickTrigger", "TriggerState", "combinational", "eval_assign", "eval_format", "eval_value",
    "is_row", "memories", "netlist_of", "nir", "pin_blame", "prepared", "run_wakers", "scopes", "signals_of",
    "value_to_string",
]  # fmt: skip


def prepared(toplevel: Elaboratable) -> Design:
    """A design as Amaranth's simulator takes it."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 100_000))
    return Fragment.get(toplevel, platform=None).prepare()


def netlist_of(design: Design) -> nir.Netlist:
    """Its netlist, in which each signal that nothing drives is a flip-flop whose clock is constant 0."""
    return build_netlist(design, all_undef_to_ff=True)


def combinational(design: Design) -> SignalSet:
    """The signals that the design drives without a register."""
    found = LHSMaskCollector()
    for fragment in design.fragments:
        found.visit_stmt(fragment.statements.get("comb", ()))
        if isinstance(fragment, MemoryInstance):
            for port in fragment._read_ports:
                if port._domain == "comb":
                    found.visit_value(port._data, ~0)
    return SignalSet(signal for signal, _ in found.masks())


def memories(design: Design) -> Iterator[tuple[MemoryData, tuple[str, ...]]]:
    """Each memory and where it is, in the order of the netlist's."""
    for fragment, inside in design.fragments.items():
        if isinstance(fragment, MemoryInstance):
            yield fragment._data, inside.name


def scopes(design: Design) -> Iterator[tuple[Signal, tuple[str, ...]]]:
    """Each name of each signal: modules, then its name there."""
    for fragment, inside in design.fragments.items():
        if not isinstance(fragment, MemoryInstance):
            for signal, name in inside.signal_names.items():
                yield signal, (*inside.name, name)


def signals_of(value: Any) -> SignalSet:
    """The signals that a value is made of."""
    return Value.cast(value)._rhs_signals()


def is_row(value: Any) -> bool:
    """Whether a value is a row of a memory."""
    return isinstance(value, MemoryData._Row)
