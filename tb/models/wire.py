"""A network of wires for tests of the hosts: :class:`bentpipe_sim.interface.PduNetwork` without cells.

Each VC is a wire with a rate, a delay and faults. SDUs are real octets, with checksums put in as by an interface
card, so that headers are really encoded, checked and decoded at the other end.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bentpipe_sim.interface import PS_PER_S, PduEvent, PduStatus

__all__ = ["Wire", "WireNetwork", "fast_pattern"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HEAD = 128


def fast_pattern(key: int, offset: int, length: int) -> bytes:
    """The same octets as :func:`bentpipe_sim.pattern.pattern`, vectorised."""
    first, last = offset // 8, (offset + length + 7) // 8
    with np.errstate(over="ignore"):
        z = np.uint64(key) + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = (np.arange(first, last, dtype=np.uint64) + (z ^ (z >> np.uint64(31)))) * _GOLDEN
    return z.astype("<u8").tobytes()[offset - 8 * first : offset - 8 * first + length]


def ones_sum(octets: bytes) -> int:
    """RFC 1071: the ones'-complement sum of 16-bit words, not complemented."""
    if len(octets) % 2:
        octets += b"\0"
    value = int.from_bytes(octets, "big")
    return (value - 1) % 65535 + 1 if value else 0


@dataclass
class Wire:
    """One VC, one direction.

    Parameters
    ----------
    rate_bps : int or None
        Rate of the SDU's octets plus ``overhead``; None: no time at all.
    delay_ps : int
    queue : int or None
        SDUs that wait at most, beyond which they are dropped; None: any number.
    drop : set of int
        Numbers of SDUs (from 0, in the order of sending) that are lost.
    drop_data : set of int
        The same, counting only SDUs with payload.
    loss, duplication, reordering : float
        Probabilities; a reordered SDU comes ``reorder_ps`` late.
    """

    source: int
    sink: int
    sink_vc: int
    rate_bps: int | None
    delay_ps: int
    queue: int | None = None
    overhead: int = 0
    drop: set[int] = field(default_factory=set)
    drop_data: set[int] = field(default_factory=set)
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    reorder_ps: int = 0
    mangle: Callable[[int, bytearray], None] | None = None
    sent: int = 0
    sent_data: int = 0
    dropped: int = 0
    free_ps: int = 0
    waiting: int = 0


class WireNetwork:
    """Hosts joined by wires.

    Members
    -------
    log : list of (int, int, int, bytes) or None
        Every SDU sent, if ``keep_log``: time, interface, VC, its first octets.
    """

    def __init__(self, seed: int = 1, keep_log: bool = False) -> None:
        self._now = 0
        self._random = random.Random(seed)
        self._heap: list[tuple[int, int, PduEvent, bytes | None, Wire, int]] = []
        self._under_way: Counter[tuple[int, int, int]] = Counter()
        self._order = 0
        self._sdus: dict[int, bytes] = {}
        self.wires: dict[tuple[int, int], Wire] = {}
        self._vcs: list[int] = []
        self.reports_sent = True
        self.log: list[tuple[int, int, int, bytes]] | None = [] if keep_log else None

    def add_nic(self) -> int:
        self._vcs.append(0)
        return len(self._vcs) - 1

    def add_wire(self, source: int, sink: int, rate_bps: int | None = None, delay_ps: int = 0, **faults: object) -> int:
        """A VC from one interface to another; its index at the source."""
        vc = self._vcs[source]
        self._vcs[source] += 1
        self.wires[(source, vc)] = Wire(source, sink, vc, rate_bps, delay_ps, **faults)  # type: ignore[arg-type]
        return vc

    # ---- PduNetwork ----

    @property
    def now_ps(self) -> int:
        return self._now

    def send(
        self,
        nic: int,
        vc: int,
        head: bytes,
        key: int = 0,
        offset: int = 0,
        length: int = 0,
        checksum_start: int = -1,
        checksum_at: int = -1,
        uu: int = 0,
    ) -> None:
        octets = bytearray(head)
        if length:
            octets += fast_pattern(key, offset, length)
        if checksum_at >= 0:
            value = 0xFFFF ^ ones_sum(bytes(octets[checksum_start:]))
            octets[checksum_at : checksum_at + 2] = value.to_bytes(2, "big")
        wire = self.wires[(nic, vc)]
        if self.log is not None:
            self.log.append((self._now, nic, vc, bytes(octets[:_HEAD])))
        start = max(self._now, wire.free_ps)
        bits = (len(octets) + wire.overhead) * 8
        done = start + (0 if wire.rate_bps is None else -(-bits * PS_PER_S // wire.rate_bps))
        number, wire.sent = wire.sent, wire.sent + 1
        data_number = -1
        if length:
            data_number, wire.sent_data = wire.sent_data, wire.sent_data + 1
        if wire.queue is not None and wire.waiting >= wire.queue:
            wire.dropped += 1
            self._push(self._now, PduEvent(self._now, nic, vc, PduStatus.SENT, 0, b"", 0), None, wire)
            return
        wire.free_ps = done
        wire.waiting += 1
        self._push(done, PduEvent(done, nic, vc, PduStatus.SENT, len(octets), b"", 1), None, wire)
        draw = self._random.random
        if number in wire.drop or data_number in wire.drop_data or (wire.loss and draw() < wire.loss):
            wire.dropped += 1
            return
        if wire.mangle is not None:
            wire.mangle(number, octets)
        arrival = done + wire.delay_ps
        if wire.reordering and draw() < wire.reordering:
            arrival += wire.reorder_ps
        copies = 2 if wire.duplication and draw() < wire.duplication else 1
        self._under_way[wire.source, wire.sink_vc, key] += 1
        for copy in range(copies):
            event = PduEvent(arrival, wire.sink, wire.sink_vc, PduStatus.OK, len(octets), bytes(octets[:_HEAD]), 0)
            self._push(arrival, event, bytes(octets), wire, key if copy == 0 else -1)

    def _push(self, time: int, event: PduEvent, octets: bytes | None, wire: Wire, key: int = -1) -> None:
        if octets is None and not self.reports_sent:
            return
        self._order += 1
        heapq.heappush(self._heap, (time, self._order, event, octets, wire, key))

    def run(self, until_ps: int) -> list[PduEvent]:
        assert until_ps >= self._now
        self._sdus.clear()
        heap = self._heap
        if not heap or heap[0][0] > until_ps:
            self._now = until_ps
            return []
        self._now = heap[0][0]
        events = []
        while heap and heap[0][0] == self._now:
            _, _, event, octets, wire, key = heapq.heappop(heap)
            if key >= 0:
                self._under_way[wire.source, wire.sink_vc, key] -= 1
            if octets is None:
                wire.waiting -= event.handle
            else:
                event = event._replace(handle=len(self._sdus) + 1)
                self._sdus[event.handle] = octets
            events.append(event)
        return events

    def check(self, handle: int, start: int, key: int, offset: int, length: int) -> bool:
        return self._sdus[handle][start : start + length] == fast_pattern(key, offset, length)

    def checksum(self, handle: int, start: int, length: int) -> int:
        return ones_sum(self._sdus[handle][start : start + length])

    def sdu(self, handle: int) -> bytes:
        return self._sdus[handle]

    def under_way(self, nic: int, vc: int, sink: int, key: int) -> int:
        return self._under_way[nic, vc, key]
