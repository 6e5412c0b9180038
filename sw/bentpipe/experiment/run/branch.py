"""Copies of a running network with its hosts that go on from one moment, each with random numbers of its own.

They stay in memory, and the network is not made again: its state is copied in (some microseconds), and the hosts are
unpickled (some tenths of a millisecond). Of the hosts' random numbers no state is kept: a copy's generators begin
again, from a text that names the copy; and what programs have drawn that lies ahead, they draw anew."""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from bentpipe.apps.draws import RandomStream
from bentpipe.experiment.run.record import TraceRecorder
from bentpipe.experiment.run.state import StatePickler, unpickled
from bentpipe.hosts.engine import Engine
from bentpipe_sim.network import Network
from bentpipe_sim.queue_monitor import QueueMonitor, QueueMonitorCounts

__all__ = ["Branch", "Branches", "check_random"]

_CODEC: Final = "lz4_raw"
_NETWORK, _RECORDER, _RANDOM, _KEPT = "network", "recorder", "random", "kept"

_Kept = dict[int, BaseModel]
"""What all copies have in common, as it never changes."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A moment of a network with its hosts.

    Members
    -------
    now_ps : int
    octets : int
        Of the network's state, which is compressed in ``network``.
    """

    now_ps: int
    octets: int
    network: bytes
    hosts: bytes


class _Pickler(StatePickler):
    def __init__(self, file: io.BytesIO, network: Network, kept: _Kept) -> None:
        super().__init__(file)
        self._network = network
        self._numbers: dict[int, int] = {}
        self._kept = kept

    def persistent_id(self, obj: Any) -> Any:
        if obj is self._network:
            return _NETWORK
        if isinstance(obj, TraceRecorder):
            return _RECORDER
        if isinstance(obj, random.Random):
            return _RANDOM, self._numbers.setdefault(id(obj), len(self._numbers))
        if isinstance(obj, BaseModel):  # frozen
            self._kept[id(obj)] = obj
            return _KEPT, id(obj)
        return None


class _Unpickler(pickle.Unpickler):
    """Unpickler of a state into the existing network, a new recorder, and generators that begin from ``seed``."""

    def __init__(self, octets: bytes, network: Network, kept: _Kept, seed: str) -> None:
        super().__init__(io.BytesIO(octets))
        self._kept = kept
        self._network, self._seed = network, seed
        self._recorder = TraceRecorder(1 << 62, ())
        self._generators: dict[int, random.Random] = {}

    def persistent_load(self, pid: Any) -> Any:
        if pid == _NETWORK:
            return self._network
        if pid == _RECORDER:
            return self._recorder
        kind, number = pid
        if kind == _KEPT:
            return self._kept[number]
        if number not in self._generators:
            self._generators[number] = random.Random(f"{self._seed} {number}")
        return self._generators[number]


class Branches:
    """A network with its hosts and a gauge, as it goes on from moments that it had.

    Members
    -------
    engine : Engine
        The hosts as they are now: others after each :meth:`give`.
    """

    def __init__(self, network: Network, engine: Engine, gauge: QueueMonitor) -> None:
        self._network, self.engine, self.gauge = network, engine, gauge
        self._kept: _Kept = {}

    def take(self) -> Branch:
        """Return the state of the run at this moment."""
        import pyarrow as pa  # takes long, and few experiments come here

        out = io.BytesIO()
        pickler = _Pickler(out, self._network, self._kept)
        pickler.take(self.engine)
        now_ps, octets, _ = self._network.take()
        return Branch(now_ps, len(octets), pa.compress(octets, codec=_CODEC, asbytes=True), out.getvalue())

    def give(self, moment: Branch, seed: str) -> None:
        """Restore a moment, with random numbers from ``seed`` on."""
        import pyarrow as pa

        octets = pa.decompress(moment.network, moment.octets, codec=_CODEC, asbytes=True)
        self._network.give((moment.now_ps, octets, ()))  # a run that splits has no OAM
        self.engine = unpickled(_Unpickler(moment.hosts, self._network, self._kept, seed))
        self.engine.draw_again()

    def counts(self) -> QueueMonitorCounts:
        return self.gauge.counts

    def level_reached(self) -> bool:
        """Return whether the queue has reached the level for which the monitor was armed."""
        return not self.gauge.counts.armed

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Restore the network and the hosts at the end of the context."""
        engine, now = self.engine, self._network.take()
        try:
            yield
        finally:
            self._network.give(now)
            self.engine = engine


def check_random(engine: Engine) -> None:
    """Raise ValueError if nothing of a run is random, so that copies of it would all go on alike."""
    pickler = StatePickler(io.BytesIO())
    pickler.take(engine)
    draws = any(isinstance(obj, RandomStream) for obj in pickler.met)
    if not draws and not any(host.processor.spread for host in engine.hosts):
        raise ValueError("nothing can be split: no application draws random numbers, nor does a 'cost_spread'")
