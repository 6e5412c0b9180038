"""Uses of Amaranth's simulator and netlist beyond their public interface, for a simulator of our own.

Beside :mod:`bentpipe_hdl.amaranth_private`, the one file that touches Amaranth's private modules. That one is for
hardware and is imported with it; this one imports Amaranth's simulator.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import EnumMeta
from typing import Any

from amaranth.hdl import Elaboratable, Format, Fragment, ShapeCastable, Signal, Value
from amaranth.hdl import _nir as nir
from amaranth.hdl._ast import Operator, SignalSet, Slice
from amaranth.hdl._ir import Design, DriverConflict
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
from amaranth.sim._pyeval import eval_assign, eval_value, value_to_string
from amaranth.sim._pyrtl import pin_blame
from amaranth.sim.pysim import _PyEngineState as EngineState
from amaranth.sim.pysim import _PyMemoryState as MemoryState
from amaranth.sim.pysim import _PySignalState as SignalState
from amaranth.sim.pysim import _PyTriggerState as TriggerState
from amaranth.sim.pysim import _run_wakers as run_wakers

from bentpipe_hdl.amaranth_private import netlist_of_design

__all__ = [
    "AsyncProcess", "BaseEngine", "BrokenTrigger", "Design", "DomainReset", "DriverConflict", "EngineState",
    "MemoryData", "MemoryState", "Part", "ProcessContext", "SignalState", "Slice", "TestbenchContext", "TickTrigger",
    "TriggerState", "combinational", "eval_assign", "eval_value", "memories", "netlist_of", "nir", "parts_of",
    "parts_of_row", "pin_blame", "prepared", "run_wakers", "scopes", "signals_of", "value_to_string",
]  # fmt: skip


def prepared(toplevel: Elaboratable) -> Design:
    """Return a design as Amaranth's simulator takes it."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 100_000))
    return Fragment.get(toplevel, platform=None).prepare()


def netlist_of(design: Design) -> nir.Netlist:
    """Return the design's netlist; a signal that nothing drives becomes a flip-flop whose clock is constant 0."""
    return netlist_of_design(design, all_undef_to_ff=True)


def combinational(design: Design) -> SignalSet:
    """Return the signals that the design drives without a register."""
    found = LHSMaskCollector()
    for fragment in design.fragments:
        found.visit_stmt(fragment.statements.get("comb", ()))
        if isinstance(fragment, MemoryInstance):
            for port in fragment._read_ports:
                if port._domain == "comb":
                    found.visit_value(port._data, ~0)
    return SignalSet(signal for signal, _ in found.masks())


def memories(design: Design) -> Iterator[tuple[MemoryData, tuple[str, ...]]]:
    """Yield each memory with its path of modules, in the order of the netlist's memories."""
    for fragment, inside in design.fragments.items():
        if isinstance(fragment, MemoryInstance):
            yield fragment._data, inside.name


def scopes(design: Design) -> Iterator[tuple[Signal, tuple[str, ...]]]:
    """Yield each name of each signal, as a path: the modules, then the signal's name in the last one."""
    for inside in design.fragments.values():
        for signal, name in inside.signal_names.items():
            yield signal, (*inside.name, name)


def signals_of(value: Any) -> list[Any]:
    """Return the signals that a value is made of."""
    return [*Value.cast(value)._rhs_signals()]


Part = tuple[str, int, int, dict[int, str] | None]
"""A signal, a row, or a field of one: where in it, as ``.frame[2]``, lowest bit, width, names of its values."""


_DECODED = 10
"""A signal of more bits is shown as a number even if it has a decoder."""


def parts_of(signal: Signal) -> Iterator[Part]:
    """Yield a signal, and the fields of its structures."""
    decoder, width = signal._decoder, len(signal)
    if decoder is not None and not isinstance(decoder, EnumMeta) and width <= _DECODED:  # states of a machine
        yield "", 0, width, {value: str(decoder(value)) for value in range(1 << width)}
    else:
        yield from _parts("", signal._format)


def parts_of_row(memory: MemoryData, index: int) -> Iterator[Part]:
    """Yield a row of a memory, and the fields of its structures."""
    row, shape = memory[index], memory.shape
    yield from _parts("", shape.format(shape(row), "") if isinstance(shape, ShapeCastable) else Format("{}", row))


def _parts(path: str, found: Format) -> Iterator[Part]:
    match found:
        case Format.Struct() | Format.Array():
            yield (path, *_place(found._value), None)
            fields = found._fields.items() if isinstance(found, Format.Struct) else enumerate(found._fields)
            for name, inner in fields:
                yield from _parts(f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}", inner)
        case Format.Enum():
            yield (path, *_place(found._value), found._variants)
        case Format(_chunks=[(value, _), *_]):
            yield (path, *_place(value), None)
        case _:
            pass  # a text without a value


def _place(value: Value) -> tuple[int, int]:
    """Return the lowest bit and the width of a part of a signal or a row."""
    low, width = 0, len(value)
    while isinstance(value, Slice | Operator):
        if isinstance(value, Slice):
            low, value = low + value.start, value.value
        else:  # another sign
            value = value.operands[0]
    return low, width
