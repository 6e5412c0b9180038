"""Nodes as RTL and as netlists, with the same random traffic, compared in every clock."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from amaranth.back import rtlil

from benches.build import library
from benches.compiled import Compiled
from benches.ticks import play
from bentpipe_boards.bridge import Bridge
from bentpipe_hdl.amaranth_private import ports
from bentpipe_sim.board.protocol import LIST, OPEN, READ, RUN, TAKE, WRITE, framed, head
from exported.nodes import NODES, Node, nic_node, switch_node
from netlist.simulation import Netlist, compiled, mapped

__all__ = ["CLOCKS", "DUTS", "Beside", "Different", "Dut", "netlist_of", "played", "rtlil_of"]

CLOCKS: Final = 30_000
_TICKS: Final = 600
"""Of a script; a reset comes behind it."""
_WORDS: Final = 64


class Different(AssertionError):
    """A netlist does something else than its RTL."""


class _Both:
    """A port of two nodes, and its ``cell``, as :mod:`benches.compiled` has them."""

    def __init__(self, one: Any, other: Any) -> None:
        self.get, self._one, self._other = one.get, one, other
        self.cell = self

    def set(self, value: int) -> None:
        self._one.set(value)
        self._other.set(value)

    @property
    def value(self) -> int:
        """The port of both; of an output the first node's."""
        return self.get()

    @value.setter
    def value(self, value: int) -> None:
        self.set(value)


class Beside:
    """Two nodes that look like one :class:`benches.compiled.Compiled`; all outputs are compared in every clock.

    Members
    -------
    clocks : int
    moves : dict
        How often each output changed.
    """

    def __init__(self, one: Path, other: Path, outputs: list[str]) -> None:
        self._nodes = Compiled(one), Compiled(other)
        first, second = (node.ports for node in self._nodes)
        self.ports = {name: _Both(first[name], second[name]) for name in first if name in second}
        self._outputs = [(name, first[name].get, second[name].get) for name in outputs]
        self._before = dict.fromkeys(outputs, 0)
        self.moves = dict.fromkeys(outputs, 0)
        self.clocks = 0

    def settle(self) -> None:
        """Settle as :class:`~benches.compiled.Compiled` does; nothing is compared, as inputs may still change."""
        for node in self._nodes:
            node.settle()

    def edge(self) -> None:
        """The clock's edge, behind :meth:`settle`.

        Raises
        ------
        Different
            An output is.
        """
        for name, one, other in self._outputs:
            value = one()
            if value != other():
                raise Different(f"clock {self.clocks}: {name} is {other():#x}, and {value:#x} in RTL")
            if value != self._before[name]:
                self._before[name] = value
                self.moves[name] += 1
        for node in self._nodes:
            node.edge()
        self.clocks += 1

    def reset(self) -> None:
        """A clock in reset."""
        self.ports["rst"].set(1)
        self.settle()
        self.edge()
        self.ports["rst"].set(0)


@dataclass(frozen=True)
class Dut:
    """A pair that is compared: a component, and a player of traffic into it until :attr:`Beside.clocks` are enough."""

    make: Callable[[], Any]
    traffic: Callable[[Beside, int, int], None]

    def outputs(self) -> list[str]:
        """Return the names of the outputs."""
        found = ports(self.make())
        return [name for name, (value, way) in found.items() if way.name != "Input" and len(value)]


def _scripts(node: Node) -> Callable[[Beside, int, int], None]:
    def traffic(beside: Beside, clocks: int, seed: int) -> None:
        while beside.clocks < clocks:
            play(node.script(random.Random(seed), _TICKS), cast(Compiled, beside), node.width, seed)
            beside.reset()
            seed += 1

    return traffic


def _lists(rng: random.Random) -> Iterator[int | None]:
    """Yield the octets of frames with lists at random, of noise, and pauses."""
    session = sequence = 0
    while True:
        if not session or rng.random() < 0.05:
            session, sequence = rng.randrange(1, 1 << 16), 0
            octets = framed([head(session, 0, OPEN)])
        else:
            again = rng.random() < 0.1
            sequence = (sequence + (not again)) & 0xFF
            octets = framed([head(session, sequence, LIST), *(w for _ in range(rng.randrange(6)) for w in _item(rng))])
        if rng.random() < 0.1:  # damaged
            at = rng.randrange(len(octets))
            octets = octets[:at] + rng.randbytes(rng.randrange(3)) + octets[at + 1 :]
        for octet in octets:
            yield octet
            yield from [None] * rng.choice((0, 0, 0, 1, 5))
        yield from [None] * rng.choice((0, 20, 200))


def _item(rng: random.Random) -> list[int]:
    kind, addr = rng.choice((WRITE, WRITE, READ, READ, TAKE, RUN, rng.randrange(256))), rng.getrandbits(28)
    if kind == RUN:
        return [RUN << 24, rng.getrandbits(32), rng.getrandbits(16)]
    count = rng.randrange(8)
    return [kind << 24 | count, addr, *(rng.getrandbits(32) for _ in range(count if kind == WRITE else 0))]


def _octets(beside: Beside, clocks: int, seed: int) -> None:
    """Frames into a bridge; all else at random, and a reset now and then."""
    rng = random.Random(seed)
    line, put = _lists(rng), {name: port.set for name, port in beside.ports.items()}
    left = 0
    while beside.clocks < clocks:
        if rng.random() < 0.0005:
            beside.reset()
        octet = next(line)
        put["rx_valid"](octet is not None)
        put["rx"](octet or 0)
        put["tx_ready"](rng.random() < 0.9)
        put["bus_r_data"](rng.choice((rng.randrange(20), rng.getrandbits(32))))
        left = rng.randrange(60) if left == 0 else left - 1
        put["run_running"](left > 20)
        put["run_stopped"](rng.getrandbits(1))
        put["run_following"](rng.getrandbits(48))
        put["holds"](rng.random() < 0.02)
        beside.settle()
        beside.edge()


_NODES: Final = {
    "nic": nic_node(vcs=16),
    "switch-2048": switch_node(vcs=16, ports=4, cells=2048),
    "link": NODES["link"],
}
DUTS: Final[dict[str, Dut]] = {
    **{name: Dut(node.component, _scripts(node)) for name, node in _NODES.items()},
    "bridge": Dut(lambda: Bridge(words=_WORDS), _octets),
}
"""By name; nodes as boards have them."""


def rtlil_of(component: Any) -> str:
    """Return a component as RTLIL, as a board's top is given to yosys."""
    given = {name: port for name, port in ports(component).items() if len(port[0])}
    return rtlil.convert(component, name="top", ports=given, emit_src=False)


@cache
def netlist_of(name: str) -> dict[str, Any]:
    """Return the netlist of what has this name."""
    with tempfile.TemporaryDirectory() as folder:
        return mapped(rtlil_of(DUTS[name].make()), Path(folder))


def played(
    name: str, clocks: int, seed: int, *, module: dict[str, Any] | None = None, models: str | None = None
) -> Beside:
    """Play traffic into the RTL and the netlist of what has this name; ``module`` and ``models``: instead of its own.

    Raises
    ------
    Different
        They do not do the same.
    """
    dut = DUTS[name]
    with tempfile.TemporaryDirectory() as folder:
        made = compiled(Netlist(module or netlist_of(name), seed & 1), Path(folder), models)
        beside = Beside(library(dut.make()), made, dut.outputs())
        dut.traffic(beside, clocks, seed)
    return beside
