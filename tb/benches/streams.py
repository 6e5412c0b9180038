"""Streams of AXI4 a clock at a time, for any simulator: each end is told the clock's values and gives the next ones.

An end has ``drive(io)``, which sets its signals behind a clock's edge, and ``sample(io)``, which looks at all signals
before the next edge. ``io`` has ``get(name)`` and ``set(name, value)`` by names as in Verilog, ``i_tvalid``.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from benches.build import library
from benches.compiled import Compiled

__all__ = ["Io", "Node", "PacketSink", "PacketSource", "Ports", "cell_words", "octets_of", "pdu_beats", "play"]

Beat = dict[str, int]


class Io(Protocol):
    """The ports of a component in some simulator."""

    def get(self, name: str) -> int: ...
    def set(self, name: str, value: int) -> None: ...


class PacketSource:
    """Sends packets; TVALID is low in some clocks, and stays high until the word is taken.

    Parameters
    ----------
    name : str
        Before ``_tvalid``.
    rate : float
        Share of clocks in which a word is there.
    """

    def __init__(self, name: str, rng: random.Random, rate: float = 1.0) -> None:
        self._name, self._rng, self.rate = name, rng, rate
        self.beats: deque[Beat] = deque()
        self._shown: Beat | None = None

    def put(self, packet: Iterable[Beat]) -> None:
        """Append a packet; each word gives ``tdata`` and more."""
        words = [*packet]
        self.beats.extend({"tlast": int(k == len(words) - 1), **word} for k, word in enumerate(words))

    def drive(self, io: Io) -> None:
        if self._shown is None and self.beats and self._rng.random() < self.rate:
            self._shown = self.beats.popleft()
            for name, value in self._shown.items():
                io.set(f"{self._name}_{name}", value)
        io.set(f"{self._name}_tvalid", int(self._shown is not None))

    def sample(self, io: Io) -> None:
        if self._shown is not None and io.get(f"{self._name}_tready"):
            self._shown = None

    @property
    def idle(self) -> bool:
        return not self.beats and self._shown is None


class PacketSink:
    """Takes packets; TREADY is low in some clocks. A word that waits has to stay as it is.

    Members
    -------
    packets : list of list of beats
        Those that came whole, in the order of their ends.
    """

    def __init__(self, name: str, rng: random.Random, rate: float = 1.0, fields: Sequence[str] = (), key: str = ""):
        self._name, self._rng, self.rate, self._key = name, rng, rate, key
        self._fields = ("tdata", "tlast", *fields)
        self.packets: list[list[Beat]] = []
        self._open: dict[int, list[Beat]] = {}
        self._ready, self._waits = 0, None

    def drive(self, io: Io) -> None:
        self._ready = int(self._rng.random() < self.rate)
        io.set(f"{self._name}_tready", self._ready)

    def sample(self, io: Io) -> None:
        there = io.get(f"{self._name}_tvalid")
        beat = {name: io.get(f"{self._name}_{name}") for name in self._fields} if there else None
        assert self._waits is None or beat == self._waits, f"{self._name}: {self._waits} became {beat}"
        self._waits = beat if beat and not self._ready else None
        if beat and self._ready:
            key = beat[self._key] if self._key else 0
            self._open.setdefault(key, []).append(beat)
            if beat["tlast"]:
                self.packets.append(self._open.pop(key))

    def reset(self) -> None:
        """Forget what has begun: the component has been reset."""
        self._open.clear()
        self._waits = None


def cell_words(header: int, payload: bytes) -> list[int]:
    """Return the 13 words of a cell's packet."""
    return [header, *(int.from_bytes(payload[k : k + 4], "little") for k in range(0, 48, 4))]


def pdu_beats(header: int, pdu: bytes, uu: int = 0, cpi: int = 0, abort: int = 0) -> list[Beat]:
    """Return the words of a PDU for a segmenter."""
    words = [pdu[k : k + 4] for k in range(0, len(pdu), 4)]
    fixed = {"tdest": header, "tuser": uu | cpi << 8 | abort << 16}
    return [{"tdata": int.from_bytes(each, "little"), "tkeep": (1 << len(each)) - 1, **fixed} for each in words]


def octets_of(packet: Sequence[Beat]) -> bytes:
    """Return the octets of a packet of words that count whole or not at all."""
    return b"".join(beat["tdata"].to_bytes(4, "little") for beat in packet if beat.get("tkeep", 15))


@cache
def _library(make: Callable[..., Any], parameters: tuple[tuple[str, int], ...]) -> Path:
    return library(make(**dict(parameters)))


class Ports:
    """The ports of a node as of :class:`benches.compiled.Compiled`."""

    def __init__(self, node: Any) -> None:
        self._ports = node.ports
        self.settle, self.edge = node.settle, node.edge

    def get(self, name: str) -> int:
        return self._ports[name].get()

    def set(self, name: str, value: int) -> None:
        self._ports[name].set(value)


class Node(Ports):
    """The component ``make(**parameters)`` in Verilator, of its Verilog."""

    def __init__(self, make: Callable[..., Any], **parameters: int) -> None:
        super().__init__(Compiled(_library(make, tuple(parameters.items()))))


def play(
    node: Any,
    ends: Sequence[Any],
    until: Callable[[], bool],
    *,
    most: int = 100_000,
    each: Callable[[Any, int], None] | None = None,
) -> int:
    """Clock a :class:`Node` with these ends until ``until()`` is true, and return the clocks.

    ``each(node, clock)`` is called before the edge of each clock. AssertionError: it is not true after ``most`` clocks.
    """
    for clock in range(most):
        for end in ends:
            end.drive(node)
        node.settle()
        for end in ends:
            end.sample(node)
        if each:
            each(node, clock)
        if until():
            return clock
        node.edge()
    raise AssertionError(f"not done after {most} clocks")
