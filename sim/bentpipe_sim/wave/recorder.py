"""A recorder of a node in a running network: the activity at its ports, clock by clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..build import Shape
from ..errors import SimulationError
from ..loop import Loop

__all__ = ["Clock", "Recorded", "Recorder"]


@dataclass(frozen=True)
class Clock:
    """The ports by name after a clock, and the tick at which it was: that which it is for, or after which it is without
    time passing (``time_tick`` 0: accesses to registers)."""

    tick: int
    ports: dict[str, int]


@dataclass(frozen=True)
class Recorded:
    """The recording of a node.

    Members
    -------
    shape : Shape
    before, after : bytes
        The state of its native model, before the first clock and after the last.
    clocks : list of Clock
    begin, end : int
        The first tick recorded and the last; in ticks without a clock the node had no work.
    """

    shape: Shape
    before: bytes
    after: bytes
    clocks: list[Clock]
    begin: int
    end: int


class Recorder:
    """Records a node from now on, between two runs of the network.

    Parameters
    ----------
    loop : Loop
        Open, of the native engine.
    node : int
        Its index.
    shape : Shape
        What it is built as.
    begin : int
        The first tick that the network has not run.

    Raises
    ------
    SimulationError
        The models give no state: the engine is another one. The node is recorded already.
    """

    def __init__(self, loop: Loop, node: int, shape: Shape, begin: int):
        self._loop, self._node, self._shape = loop, node, shape
        if loop.record(node):
            raise SimulationError(loop.ffi.string(loop.error()).decode())
        listed = loop.ffi.string(loop.recorded_ports(node)).decode().split(",")
        self._ports = [(name, (int(width) + 7) // 8) for name, width in map(str.split, listed)]
        self._before, self._begin = self._octets("model_state"), begin

    def taken(self) -> Recorded:
        """Return all clocks recorded until now."""
        clocks = [*self._clocks(self._octets("recorded"))]
        after = self._octets("model_state")
        return Recorded(self._shape, self._before, after, clocks, self._begin, self._loop.now())

    def _octets(self, what: str) -> bytes:
        length = self._loop.ffi.new("uint64_t *")
        found = getattr(self._loop, what)(self._node, length)
        return bytes(self._loop.ffi.buffer(found, length[0]))

    def _clocks(self, octets: bytes) -> Iterator[Clock]:
        at = 0
        while at < len(octets):
            tick = int.from_bytes(octets[at : at + 8], "little")
            at += 8
            ports = {}
            for name, size in self._ports:
                ports[name] = int.from_bytes(octets[at : at + size], "little")
                at += size
            yield Clock(tick, ports)
