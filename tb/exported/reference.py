"""A node's trace in Amaranth's simulator: what all ports are before each rising edge of the clock."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Protocol

from amaranth.hdl import Module, ResetInserter, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from bentpipe_hdl.amaranth_private import Simulated, ports

__all__ = ["RESET", "Trace", "trace"]

RESET = 3
"""Clocks in reset, with random values on all inputs."""


@dataclass(frozen=True)
class Trace:
    """The values of all ports of a node before each rising edge of the clock.

    Members
    -------
    inputs, outputs : dict of str to int
        Widths by name.
    given, got : list of int
        Inputs and outputs, a row a clock: a number, the first port in its lowest bits.
    reset : int
        Clocks in reset, the first ones.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    given: list[int]
    got: list[int]
    reset: int = RESET

    def text(self, rows: list[int], ports: dict[str, int]) -> list[str]:
        """Return rows as hexadecimal numbers, as Verilog's ``%h`` writes them."""
        return [f"{row:0{(sum(ports.values()) + 3) // 4}x}" for row in rows]


class _WithReset(wiring.Component):
    """A component whose reset is an input."""

    def __init__(self, inner: Any):
        self._inner = inner
        super().__init__({**dict(inner.signature.members.items()), "rst": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.inner = ResetInserter(self.rst)(self._inner)
        mine = {path: value for path, _, value in self.signature.flatten(self)}
        for path, member, value in self._inner.signature.flatten(self._inner):
            to, source = (value, mine[path]) if member.flow == In else (mine[path], value)
            m.d.comb += Value.cast(to).eq(Value.cast(source))
        return m


class _Port:
    def __init__(self, values: dict[str, int], name: str, width: int):
        self._values, self._name, self._width = values, name, width

    def get(self) -> int:
        return self._values[self._name]

    def set(self, value: int) -> None:
        assert 0 <= value < 1 << self._width  # Amaranth's simulator would take it as it is
        self._values[self._name] = value

    value = property(get, set)

    @property
    def cell(self) -> _Port:
        """Return the value as a compiled node's port does, where it saves a call."""
        return self


class _Recorder:
    """Looks like :class:`benches.compiled.Compiled`, and records every clock."""

    def __init__(self, component: Any, rng: random.Random):
        self._simulated = Simulated(_WithReset(component), "node")
        self._simulated.begin([], {}, {})
        found = {name: value for name, (value, _) in ports(component).items() if len(value)}
        flows = {name: way.name for name, (_, way) in ports(component).items()}
        self.inputs = {name: len(value) for name, value in found.items() if flows[name] == "Input"}
        self.outputs = {name: len(value) for name, value in found.items() if flows[name] != "Input"}
        self._values = dict.fromkeys(found, 0)
        self.ports = {name: _Port(self._values, name, len(value)) for name, value in found.items()}
        self.given: list[int] = []
        self.got: list[int] = []
        for _ in range(RESET):
            for name, width in self.inputs.items():
                self._values[name] = rng.getrandbits(width)
            self._clock(1)
        self._values.update(dict.fromkeys(self.inputs, 0))

    def settle(self, rst: int = 0) -> None:
        simulated = self._simulated
        simulated.give({"rst": rst, **{name: self._values[name] for name in self.inputs}})
        for name in self.outputs:
            self._values[name] = simulated.get(simulated.ports[name][0])

    def edge(self) -> None:
        self.given.append(self._row(self.inputs))
        self.got.append(self._row(self.outputs))
        self._simulated.clock()

    def _clock(self, rst: int) -> None:
        self.settle(rst)
        self.edge()

    def _row(self, widths: dict[str, int]) -> int:
        row = at = 0
        for name, width in widths.items():
            row |= self._values[name] << at
            at += width
        return row


class Traced(Protocol):
    """A component with its traffic."""

    def component(self) -> Any: ...
    def play(self, recorder: Any, rng: random.Random, clocks: int, seed: int) -> None: ...


def trace(node: Traced, clocks: int, seed: int) -> Trace:
    """Return the trace of a node in its traffic; ``clocks`` of it."""
    rng = random.Random(seed)
    recorder = _Recorder(node.component(), rng)
    node.play(recorder, rng, clocks, seed)
    return Trace(recorder.inputs, recorder.outputs, recorder.given[:clocks], recorder.got[:clocks])
