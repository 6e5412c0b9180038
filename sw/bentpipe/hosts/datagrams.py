"""Datagrams: sockets that exchange them, with numbers and times, and the account of what came."""

from __future__ import annotations

from collections import deque
from typing import Final, final

from bentpipe.apps.app import Program, Socket
from bentpipe.hosts.endpoint import TransportEndpoint
from bentpipe.hosts.flow_base import HostFlowEndpoints
from bentpipe.hosts.machine import Machine
from bentpipe.hosts.scheduler import Timer
from bentpipe.hosts.sockets import Driver, count_bad
from bentpipe.ip.codec import CHECKSUM_START
from bentpipe.ip.udp import (
    CELL_STAMP,
    CELL_STAMP_OCTETS,
    STAMP,
    STAMP_OCTETS,
    UDP_CHECKSUM_AT,
    UDP_PAYLOAD_AT,
    Datagram,
    UdpPath,
)
from bentpipe.tcp.segment import Segment
from bentpipe_sim.interface import PduEvent

__all__ = ["DatagramOwner", "DatagramReceiver", "UdpSocket"]

_ENOBUFS_PS: Final = 18_000_000_000
"""How long ttcp waits after ENOBUFS before it tries again (``delay(18000)``)."""
_HEAD: Final = UDP_PAYLOAD_AT + STAMP_OCTETS


class DatagramOwner(HostFlowEndpoints):
    """The owner of datagram sockets, usually a flow."""

    def sent_all(self, now: int) -> None:
        """Handle the end of the source: its program has closed, and its last datagram is sent."""
        raise NotImplementedError

    def arrived(self, end: DatagramReceiver, now: int) -> None:
        """Handle a datagram that has arrived for the first time."""
        raise NotImplementedError


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
class _Echo(Timer):
    """The processor has done the ``sendto`` of an echo."""

    def __init__(self, socket: UdpSocket, stamp: tuple[int, int, int], octets: int) -> None:
        self.socket = socket
        self.stamp = stamp
        self.octets = octets

    def fire(self, now: int) -> None:
        self.socket.put(self.stamp, self.octets)


@final
class UdpSocket(Socket):
    """The sending side of a port. A write is one ``sendto`` after another, each of which costs the processor its time;
    it is complete when the last is done.

    A datagram that the interface refuses is gone; a full blast tries it again later. None is shorter than its stamp.
    One of a single cell has a stamp without times: its ``receivers`` keep the time of its write until it comes.

    Parameters
    ----------
    key : int
        Of the payload's pattern.
    datagram : int
        Octets of payload a datagram, at most.

    Members
    -------
    number : int
        Datagrams given to the network.
    refused : int
        Calls that the full interface queue refused (ENOBUFS).
    dropped : int
        Datagrams lost by that: those of them that are not tried again.
    sent_ps : int
        Time of the last call whose datagram was given to the network or dropped; -1 before the first.
    """

    def __init__(self, host: Machine, path: UdpPath, vc: int, key: int, datagram: int, program: Program | None) -> None:
        self.host = host
        self.path = path
        self.vc = vc
        self.key = key
        self.datagram = datagram
        self.least: int = CELL_STAMP_OCTETS if datagram == CELL_STAMP_OCTETS else STAMP_OCTETS
        self.receivers: list[DatagramReceiver] = []
        self.owner: DatagramOwner | None = None
        self.driver: Driver | None = None if program is None else Driver(host.scheduler, program, self)
        self.got: tuple[int, int, int] = (0, 0, 0)
        self.got_octets: int = 0
        self.pending: int = 0
        self.unit: int = datagram
        self.pouring: bool = False
        self.closing: bool = False
        self.calling: bool = False
        self.wrote_ps: int = 0
        self.number: int = 0
        self.offset: int = 0
        self.refused: int = 0
        self.dropped: int = 0
        self.sent_ps: int = -1
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
        """Make the next ``sendto`` call, if there is data and no call is under way."""
        if self.pending and not self.calling:
            self.calling = True
            self.host.processor.call(self._call)

    def sent(self, now: int) -> None:
        """Put the datagram to the interface, when the processor has done the call."""
        self.calling = False
        host = self.host
        size = self.unit if self.pouring else self.datagram
        if size >= self.pending:
            size = self.pending
        elif self.pending - size < self.least:
            size -= self.least  # so that the last one has room for its stamp
        if size < self.least:
            size = self.least
        if not host.interface.admit():
            self.refused += 1
            if self.pouring:
                host.scheduler.at(now + _ENOBUFS_PS, self._retry)
                return
            self.dropped += 1
            host.interface.lose(self.vc)
        else:
            self._send((self.number, self.offset, self.wrote_ps), size)
            self.number += 1
            self.offset += size - self.least
        self.sent_ps = now
        self.pending -= size if size < self.pending else self.pending
        if self.pending:
            if self.pouring:
                self.wrote_ps = now
            self.call(now)
        else:
            self._complete(now)

    def _complete(self, now: int) -> None:
        if not self.closing and self.driver is not None:
            self.driver.written(now)
        if self.closing and self.pending == 0 and self.owner is not None:
            self.owner.sent_all(now)

    def echo(self, now_ps: int) -> None:
        self.host.processor.call(_Echo(self, self.got, self.got_octets))

    def put(self, stamp: tuple[int, int, int], octets: int) -> None:
        """Put an echo to the interface."""
        if self.host.interface.admit():
            self._send(stamp, octets)
            self.number += 1
        else:
            self.refused += 1
            self.dropped += 1
            self.host.interface.lose(self.vc)

    def _send(self, stamp: tuple[int, int, int], octets: int) -> None:
        interface = self.host.interface
        if self.least == STAMP_OCTETS:
            mark = STAMP.pack(*stamp)
        else:
            mark = CELL_STAMP.pack(stamp[0] & 0xFFFFFFFF)
            for receiver in self.receivers:
                receiver.times[stamp[0]] = stamp[2]
        head = self.path.encode(octets, interface.identification()) + mark
        length = octets - self.least
        interface.network.send(
            interface.nic, self.vc, head, self.key, stamp[1], length, CHECKSUM_START, UDP_CHECKSUM_AT
        )


@final
class DatagramReceiver(TransportEndpoint):
    """The receiving side of a port: reads what comes, checks every octet, and keeps account of numbers and delays.

    Parameters
    ----------
    host : Machine
    key : int
        Of the payload's pattern.
    owner : DatagramOwner
    socket : UdpSocket or None
        The same port's sending side, whose program is told of what comes.
    sender : UdpSocket
        The other port's: it says when datagrams of one cell were written (``times``, by number).
    """

    def __init__(
        self, host: Machine, key: int, owner: DatagramOwner, socket: UdpSocket | None, sender: UdpSocket
    ) -> None:
        super().__init__()
        self.host = host
        self.key = key
        self.owner = owner
        self.socket = socket
        self.sender = sender
        self.times: dict[int, int] = {}
        sender.receivers.append(self)
        self.arrivals: deque[tuple[int, int, int, int]] = deque()  # stamp and octets of those that wait
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
        """Accept a datagram whose checksums are right.

        It waits for the processor, which then calls :meth:`take`.
        """
        size = datagram.length - 8
        number = -1
        offset = 0
        wrote = 0
        if size >= STAMP_OCTETS and len(event.head) >= _HEAD:
            number, offset, wrote = STAMP.unpack_from(event.head, UDP_PAYLOAD_AT)
            length = size - STAMP_OCTETS
            if not self.host.network.check(event.handle, _HEAD, self.key, offset, length):
                sdu = self.host.network.sdu(event.handle)
                self.bad_octets += count_bad(sdu, _HEAD, self.key, offset, length)
        elif size == CELL_STAMP_OCTETS == self.sender.least:
            number = self._whole(CELL_STAMP.unpack_from(event.head, UDP_PAYLOAD_AT)[0])
            wrote = self.times.pop(number, -1)
            if wrote < 0:  # not sent, or twice
                number = -1
        self.arrivals.append((number, offset, wrote, size))

    def under_way(self) -> int:
        """Return the number of datagrams on their way to this end; -1 if the network does not know. They are in the
        network, or wait for the host's processor."""
        sender = self.sender
        interface = sender.host.interface
        found = interface.network.under_way(interface.nic, sender.vc, self.host.interface.nic, sender.key)
        return found if found < 0 else found + len(self.arrivals)

    def lost(self) -> int:
        """Return the number of datagrams that the sender made and that will never be received here. Where the network
        does not know what is under way these are the gaps in the numbers, which leave out the last ones."""
        sender = self.sender
        under_way = self.under_way()
        if under_way < 0:
            return sender.dropped + len(self.missing)
        return sender.dropped + sender.number - self.received - under_way

    def _whole(self, number: int) -> int:
        """Return the number that is this modulo 2**32, the nearest to the one that is expected."""
        ahead = (number - self.next + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
        return self.next + ahead

    def take(self, segment: Segment | None, now: int) -> None:
        number, offset, wrote, size = self.arrivals.popleft()
        if number < 0:
            self.short += 1
            return
        expected = self.next
        if number == expected:
            self.next = expected + 1
        elif number > expected:
            self.missing.update(range(expected, number))
            self.next = number + 1
        elif number in self.missing:
            self.missing.remove(number)
            self.reordered += 1
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
        socket = self.socket
        if socket is not None and socket.driver is not None:
            socket.got = (number, offset, wrote)
            socket.got_octets = size
            socket.driver.received(size, wrote, now)
        self.owner.arrived(self, now)
