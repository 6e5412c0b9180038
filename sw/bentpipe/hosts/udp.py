"""UDP flows: datagrams with sequence numbers, from an application on one host to a sink on another."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Final, final

from bentpipe.apps.app import Application, Fact, Socket
from bentpipe.hosts.flow import Stage
from bentpipe.hosts.host import DatagramEnd, Driver, Host, Timer
from bentpipe.ip.codec import CHECKSUM_START
from bentpipe.ip.udp import UDP_CHECKSUM_AT, UDP_PAYLOAD_AT, Datagram, UdpPath
from bentpipe.tcp.constants import PS_PER_S
from bentpipe_sim.interface import PduEvent

if TYPE_CHECKING:
    from bentpipe.tcp.trace import Recorder

__all__ = ["STAMP_OCTETS", "UDP_OVERHEAD", "UdpFlow", "UdpReport", "UdpSink", "UdpSocket", "datagram_octets"]

UDP_OVERHEAD: Final = 28
"""Octets of the IP and UDP headers."""

_STAMP: Final = Struct(">QQQ")
STAMP_OCTETS: Final = 24
"""What every datagram's payload begins with: its number (from 0), the stream offset of the pattern after it, and the
time at which the application wrote it (ps)."""

_ENOBUFS_PS: Final = 18_000_000_000
"""How long ttcp waits after ENOBUFS before it tries again (``delay(18000)``)."""
_LINGER_PS: Final = 2 * PS_PER_S
_HEAD: Final = UDP_PAYLOAD_AT + STAMP_OCTETS


def datagram_octets(wanted: int, mtu: int) -> int:
    """Payload of a datagram on this MTU: as wanted, or (0) the largest. ValueError if it would have to be
    fragmented, or is too short for the stamp."""
    largest = mtu - UDP_OVERHEAD
    octets = wanted or largest
    if octets > largest:
        raise ValueError(
            f"a datagram of {octets} octets does not fit the MTU of {mtu}: at most {largest} "
            "(there is no IP fragmentation)"
        )
    if octets < 2 * STAMP_OCTETS:
        raise ValueError(f"a datagram has {2 * STAMP_OCTETS} octets and more, not {octets}: it carries a stamp")
    return octets


@dataclass(frozen=True)
class UdpReport:
    """What a UDP flow did, up to the end of the run or of the flow.

    Members
    -------
    octets_delivered : int
        UDP payload that the sink got, duplicates not counted.
    start_ps, end_ps : int
        From the first datagram written to the last one received (or the end of the run); ``start_ps`` is negative if
        the flow's turn never came.
    datagrams_sent : int
        Given to the interface.
    datagrams_refused : int
        Dropped at the source, or tried again by a full blast, as the interface's queue was full (ENOBUFS).
    datagrams_received : int
        Duplicates not counted.
    datagrams_lost : int
        Missing among those up to the highest number received; at the end of the flow, among all sent.
    datagrams_reordered : int
        Received after one with a higher number (RFC 4737).
    duplicates : int
    delay_min_ps, delay_mean_ps, delay_max_ps : int
        From the application's write to the sink; 0 if nothing came.
    bad_octets : int
        Octets that passed every checksum and were not those sent: always an error of the simulator.
    """

    name: str
    protocol: str
    app: str
    source: str
    sink: str
    finished: bool
    octets_delivered: int
    start_ps: int
    end_ps: int
    goodput_bps: float
    datagrams_sent: int
    datagrams_refused: int
    datagrams_received: int
    datagrams_lost: int
    datagrams_reordered: int
    duplicates: int
    delay_min_ps: int
    delay_mean_ps: int
    delay_max_ps: int
    bad_octets: int
    facts: dict[str, Fact] = field(default_factory=dict)


@final
class _Call(Timer):
    """The processor has done a ``sendto``."""

    def __init__(self, socket: UdpSocket) -> None:
        self.socket = socket

    def fire(self, now: int) -> None:
        self.socket.sent(now)


@final
class _Retry(Timer):
    """The wait after ENOBUFS is over."""

    def __init__(self, socket: UdpSocket) -> None:
        self.socket = socket

    def fire(self, now: int) -> None:
        self.socket.call(now)


@final
class UdpSocket(Socket):
    """The sending end. A write is one ``sendto`` after another, each of which costs the processor its time; it is
    complete when the last is done.

    A datagram that the interface refuses is gone; a full blast tries it again later. None is shorter than its stamp.
    """

    def __init__(self, host: Host, path: UdpPath, vc: int, key: int, datagram: int) -> None:
        self.host = host
        self.path = path
        self.vc = vc
        self.key = key
        self.datagram = datagram
        self.flow: UdpFlow | None = None
        self.pending: int = 0
        self.unit: int = datagram
        self.pouring: bool = False
        self.closing: bool = False
        self.calling: bool = False
        self.wrote_ps: int = 0
        self.number: int = 0
        self.offset: int = 0
        self.refused: int = 0
        self.last_ps: int = 0
        self._call = _Call(self)
        self._retry = _Retry(self)

    def write(self, octets: int, now_ps: int) -> bool:
        if self.closing:
            return True
        self.pending += octets
        self.wrote_ps = now_ps
        self.call(now_ps)
        return False

    def pour(self, octets: int, unit: int, now_ps: int) -> None:
        self.pending += octets
        self.unit = unit if unit < self.datagram else self.datagram
        self.pouring = True
        self.wrote_ps = now_ps
        self.call(now_ps)

    def cancel(self, now_ps: int) -> None:
        if self.pouring and self.pending > self.unit:
            self.pending = self.unit if self.calling else 0
            if self.pending == 0:
                self._complete(now_ps)

    def close(self, now_ps: int) -> None:
        if not self.closing:
            self.closing = True
            if self.pending == 0:
                self._complete(now_ps)

    def read(self, octets: int, now_ps: int) -> int:
        return 0

    def unread(self) -> int:
        return 0

    def ended(self) -> bool:
        return False

    def dead(self) -> bool:
        return self.closing and self.pending == 0

    def flush(self, now_ps: int) -> None:
        pass

    def call(self, now: int) -> None:
        """The next ``sendto``."""
        if self.pending and not self.calling:
            self.calling = True
            self.host.call(self._call)

    def sent(self, now: int) -> None:
        """The processor has done it: the datagram goes to the interface."""
        self.calling = False
        host = self.host
        size = self.unit if self.pouring else self.datagram
        if size >= self.pending:
            size = self.pending
        elif self.pending - size < STAMP_OCTETS:
            size -= STAMP_OCTETS  # so that the last one has room for its stamp
        if size < STAMP_OCTETS:
            size = STAMP_OCTETS
        if not host.admit():
            self.refused += 1
            if self.pouring:
                host.scheduler.at(now + _ENOBUFS_PS, self._retry)
                return
            host.refused[self.vc] = host.refused.get(self.vc, 0) + 1
        else:
            host.identification = identification = (host.identification + 1) & 0xFFFF
            head = self.path.encode(size, identification) + _STAMP.pack(self.number, self.offset, self.wrote_ps)
            length = size - STAMP_OCTETS
            host.network.send(host.nic, self.vc, head, self.key, self.offset, length, CHECKSUM_START, UDP_CHECKSUM_AT)
            self.number += 1
            self.offset += length
            self.last_ps = now
        self.pending -= size if size < self.pending else self.pending
        if self.pending:
            if self.pouring:
                self.wrote_ps = now
            self.call(now)
        else:
            self._complete(now)

    def _complete(self, now: int) -> None:
        flow = self.flow
        if flow is not None:
            if not self.closing:
                flow.driver.written(now)
            if self.closing and self.pending == 0:
                flow.sent_all(now)


@final
class UdpSink(DatagramEnd):
    """The receiving end: reads what comes, checks every octet, and keeps account of numbers and delays."""

    def __init__(self, host: Host, key: int) -> None:
        self.host = host
        self.key = key
        self.flow: UdpFlow | None = None
        self.arrivals: deque[tuple[int, int, int]] = deque()  # number, octets, when written: wait for the processor
        self.next: int = 0
        self.missing: set[int] = set()
        self.received: int = 0
        self.octets: int = 0
        self.reordered: int = 0
        self.duplicates: int = 0
        self.short: int = 0
        self.delay_sum_ps: int = 0
        self.delay_min_ps: int = 0
        self.delay_max_ps: int = 0
        self.last_ps: int = -1
        self.bad_octets: int = 0

    def arrive(self, datagram: Datagram, event: PduEvent) -> None:
        size = datagram.length - 8
        number = -1
        wrote = 0
        if size >= STAMP_OCTETS and len(event.head) >= _HEAD:
            number, offset, wrote = _STAMP.unpack_from(event.head, UDP_PAYLOAD_AT)
            length = size - STAMP_OCTETS
            if not self.host.network.check(event.handle, _HEAD, self.key, offset, length):
                self.bad_octets += self.host.count_bad(event.handle, _HEAD, self.key, offset, length)
        self.arrivals.append((number, size, wrote))

    def take(self, now: int) -> None:
        number, size, wrote = self.arrivals.popleft()
        if number < 0:
            self.short += 1
            return
        expected = self.next
        if number == expected:
            self.next = expected + 1
        elif number > expected:
            self.missing.update(range(expected, number))
            self.next = number + 1
            if self.flow is not None:
                self.flow.lost_changed(now)
        elif number in self.missing:
            self.missing.remove(number)
            self.reordered += 1
            if self.flow is not None:
                self.flow.lost_changed(now)
        else:
            self.duplicates += 1
            return
        self.received += 1
        self.octets += size
        self.last_ps = now
        delay = now - wrote
        self.delay_sum_ps += delay
        if delay > self.delay_max_ps:
            self.delay_max_ps = delay
        if self.delay_min_ps == 0 or delay < self.delay_min_ps:
            self.delay_min_ps = delay
        if self.flow is not None and self.flow.closed:
            self.flow.check(now)


@final
class UdpFlow(Stage):
    """Datagrams from an application on ``source`` to a sink on ``sink``.

    It ends when the application has closed and all that it sent is there, or two seconds later.
    """

    def __init__(
        self,
        name: str,
        socket: UdpSocket,
        sink: UdpSink,
        application: Application,
        start_ps: int,
        recorder: Recorder | None,
    ) -> None:
        super().__init__(name, socket.host.scheduler, start_ps)
        self.source = socket
        self.sink = sink
        self.driver = Driver(self.scheduler, application, socket)
        self.closed: bool = False
        self.recorder = recorder
        self.lost_series = name + ".lost"
        socket.flow = self
        sink.flow = self

    def fire(self, now: int) -> None:
        """Time to start; later, the end of the linger."""
        if not self.started:
            self.started = True
            self.driver.connected(now)
        elif self.closed:
            self._end(now)

    def sent_all(self, now: int) -> None:
        """The application has closed, and its last datagram is sent."""
        if not self.closed:
            self.closed = True
            self.scheduler.at(now + _LINGER_PS, self)
            self.check(now)

    def check(self, now: int) -> None:
        """Has everything come?"""
        if self.sink.received == self.source.number:
            self._end(now)

    def lost_changed(self, now: int) -> None:
        if self.recorder is not None:
            self.recorder.sample(self.lost_series, now, len(self.sink.missing))

    def _end(self, now: int) -> None:
        self.finish(now)

    def report(self, end_ps: int) -> UdpReport:
        """The flow as of ``end_ps``, the end of the run."""
        source = self.source
        sink = self.sink
        end = end_ps
        lost = len(sink.missing)
        if self.closed and sink.last_ps >= 0:
            end = sink.last_ps
        if self.finished:
            lost = source.number - sink.received
        elapsed = end - self.start_ps
        received = sink.received
        return UdpReport(
            name=self.name,
            protocol="udp",
            app=self.driver.application.kind,
            source=source.host.name,
            sink=sink.host.name,
            finished=self.finished,
            octets_delivered=sink.octets,
            start_ps=self.start_ps,
            end_ps=end,
            goodput_bps=sink.octets * 8 * PS_PER_S / elapsed if elapsed > 0 else 0.0,
            datagrams_sent=source.number,
            datagrams_refused=source.refused,
            datagrams_received=received,
            datagrams_lost=lost,
            datagrams_reordered=sink.reordered,
            duplicates=sink.duplicates,
            delay_min_ps=sink.delay_min_ps,
            delay_mean_ps=sink.delay_sum_ps // received if received else 0,
            delay_max_ps=sink.delay_max_ps,
            bad_octets=sink.bad_octets,
            facts=self.driver.application.facts(end_ps),
        )
