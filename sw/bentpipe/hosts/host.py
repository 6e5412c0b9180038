"""A host: what comes in at its interface, and to whom it goes."""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

from bentpipe.hosts.datagrams import DatagramReceiver
from bentpipe.hosts.endpoint import TransportEndpoint
from bentpipe.hosts.machine import Machine, remote_key
from bentpipe.hosts.sockets import TcpEndpoint
from bentpipe.ip.codec import (
    CHECKSUM_AT,
    CHECKSUM_START,
    HEADER_OCTETS,
    LLC_SNAP_IPV4,
    LLC_SNAP_SUM,
    TcpPath,
    decode_options,
)
from bentpipe.ip.udp import PROTOCOL_UDP, decode_datagram
from bentpipe.tcp.connection import reset_for
from bentpipe.tcp.constants import MASK32, RST
from bentpipe.tcp.segment import Options, Segment
from bentpipe_sim.interface import PduEvent

__all__ = ["Host"]

_FIXED: Final = (-1 << 48) | 0x3FFF
"""Of an IP header's first eight octets what is the same in all that come: version, length, service, and no fragment."""
_FIRST: Final = 0x4500 << 48
"""What that is; the rest are total length and identification."""
_SUM: Final = 65535 - 0x4500
"""So much is the sum of that rest and of the other octets, modulo 65535, where the whole header's is 0."""
_PROTOCOL: Final = 0xFF << 48
_TCP: Final = 6 << 48
"""The protocol, in the next eight."""
_SIGN: Final = 1 << 31
_OK: Final = 0
_SENT: Final = 15
_OAM_SEGMENT: Final = 12
_OAM_END_TO_END: Final = 13
_OAM: Final = 8
"""Without the PTI."""


@final
class Host(Machine):
    """A machine whose interface reports what happens."""

    def event(self, event: PduEvent) -> None:
        """Handle an event that the interface reports."""
        status = event.status
        if status != _OK:
            if status == _SENT:
                self.interface.sent()
            elif status in (_OAM_SEGMENT, _OAM_END_TO_END):
                self._oam(event)
            else:
                self.pdu_errors[status] += 1
            return
        if self.oam:
            self._user_cell(event)
        if (event.congested or self.input_limit) and not self._admit(event):
            return
        head = event.head
        if len(head) < HEADER_OCTETS:  # too short for TCP
            self._datagram(event)
            return
        # Plain Python takes as long for each step of this as compiled code for all of it: so they are few.
        first = read_i64_be(head, 8)
        second = read_i64_be(head, 16)
        third = read_i64_be(head, 24)
        fourth = read_i64_be(head, 32)
        control = read_i64_be(head, 40) >> 32
        source: i64 = second & MASK32
        destination: i64 = third >> 32 & MASK32
        both: i64 = source + destination
        own: i64 = first - _FIRST  # total length and identification, if the rest is as it should be
        size: i64 = (own >> 32) - 20
        spare: i64 = event.length - 28 - size
        header: i64 = control >> 26 & 60
        if (
            read_i64_be(head, 0) != LLC_SNAP_IPV4
            or first & _FIXED != _FIRST
            or second & _PROTOCOL != _TCP
            or destination != self.address
            or spare < 0
            or header < 20
            or size < header
            or (own + (second >> 32 & MASK32) + both) % 65535 != _SUM
        ):
            if (second >> 48) & 0xFF == PROTOCOL_UDP:
                self._datagram(event)
            else:
                self._bad_header(event)
            return
        # The IP header's own sum is 0.
        octets: i64 = event.sum - LLC_SNAP_SUM
        if spare or event.sum < 0:
            octets = self.network.checksum(event.handle, CHECKSUM_START, size)
        if (both + 6 + size + octets) % 65535:
            self._bad_checksum(event)
            return
        flags: i64 = control >> 16 & 0x3F
        options: Options | None = None
        if header > 20:
            options = decode_options(head[HEADER_OCTETS : CHECKSUM_START + header], flags)
            if options is None:
                self._bad_header(event)
                return
        segment = Segment(fourth >> 32 & MASK32, fourth & MASK32, flags, control & 0xFFFF, size - header, 0, options)
        ports: i64 = third & MASK32
        # As `remote_key`, in line: a signed number, as compiled code has no other of 64 bits
        end = self.connections.get(((source ^ _SIGN) - _SIGN) << 32 | ports)
        if end is None:
            self._refuse(source, ports, segment, event.time_ps)
            return
        assert isinstance(end, TcpEndpoint)
        end.arrive(segment, event, CHECKSUM_START + header)

    def _admit(self, event: PduEvent) -> bool:
        """Count congestion, and return whether the input queue takes a whole PDU."""
        if event.congested:
            self.congested[event.vc] = self.congested.get(event.vc, 0) + 1
        if self.input_limit and self.processor.waiting() >= self.input_limit:
            self.overrun[event.vc] = self.overrun.get(event.vc, 0) + 1
            return False
        return True

    def _oam(self, event: PduEvent) -> None:
        end = self.oam.get(event.vc)
        if end is not None:
            end.cell(event.status - _OAM, event.head, event.time_ps)

    def _user_cell(self, event: PduEvent) -> None:
        end = self.oam.get(event.vc)
        if end is not None:
            end.user(event.time_ps)

    def _datagram(self, event: PduEvent) -> None:
        datagram = decode_datagram(event.head, event.length)
        if datagram is None or (datagram.destination != self.address and datagram.destination not in self.groups):
            self._bad_header(event)
            return
        size = datagram.length
        pseudo = datagram.source + datagram.destination + PROTOCOL_UDP + size
        if datagram.checksum and (pseudo + self.network.checksum(event.handle, CHECKSUM_START, size)) % 65535:
            self._bad_checksum(event)
            return
        end = self.datagram_receivers.get(remote_key(datagram.source, datagram.ports >> 16, datagram.ports & 0xFFFF))
        if end is None:
            self.no_connection += 1
            return
        assert isinstance(end, DatagramReceiver)
        end.arrive(datagram, event)
        self.processor.receive(end, None, event.time_ps)

    def _bad_header(self, event: PduEvent) -> None:
        self.header_errors += 1
        self.damaged[event.vc] = self.damaged.get(event.vc, 0) + 1

    def _bad_checksum(self, event: PduEvent) -> None:
        self.checksum_errors += 1
        self.damaged[event.vc] = self.damaged.get(event.vc, 0) + 1

    def _refuse(self, source: int, ports: int, segment: Segment, now: int) -> None:
        self.no_connection += 1
        vc = self.routes.get(source)
        if vc is not None:
            path = TcpPath(self.address, source, ports & 0xFFFF, ports >> 16)
            self.processor.receive(_Refusal(self, path, vc), segment, now)


@final
class _Refusal(TransportEndpoint):
    """The answer to a segment of no connection: a RST."""

    def __init__(self, host: Machine, path: TcpPath, vc: int) -> None:
        super().__init__()
        self.host = host
        self.path = path
        self.vc = vc

    def take(self, segment: Segment | None, now: int) -> None:
        assert segment is not None
        if not segment.flags & RST:
            self.host.processor.send(self, [reset_for(segment)])

    def put(self, segment: Segment) -> None:
        interface = self.host.interface
        if interface.admit():
            head = self.path.encode(segment, interface.identification())
            interface.network.send(interface.nic, self.vc, head, 0, 0, 0, CHECKSUM_START, CHECKSUM_AT)
        else:
            interface.lose(self.vc)
