"""LLC/SNAP, IPv4 and UDP headers of a PDU (RFC 2684 routed, RFC 791, RFC 768), as octets and back.

As with TCP (:mod:`bentpipe.ip.codec`) the checksum over the payload is the network interface's: the sum of the
pseudo header stands in the field. There is no fragmentation: a datagram fits into one PDU.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from bentpipe.ip.codec import LLC_SNAP, SNAP_IPV4, TTL

__all__ = [
    "CELL_STAMP",
    "CELL_STAMP_OCTETS",
    "PROTOCOL_UDP",
    "STAMP",
    "STAMP_OCTETS",
    "UDP_CHECKSUM_AT",
    "UDP_OVERHEAD",
    "UDP_PAYLOAD_AT",
    "Datagram",
    "UdpPath",
    "datagram_octets",
    "decode_datagram",
]

PROTOCOL_UDP: Final = 17

UDP_CHECKSUM_AT: Final = 34
"""Where the UDP checksum stands in the SDU; the UDP header starts at ``CHECKSUM_START``, as TCP's does."""
UDP_PAYLOAD_AT: Final = 36
"""Where the payload starts in the SDU."""
UDP_OVERHEAD: Final = 28
"""Octets of the IP and UDP headers."""

STAMP: Final = Struct(">QQQ")
"""What the payload of every datagram of ours begins with: its number (from 0), the stream offset of the pattern after
it, and the time at which the program wrote it (ps)."""
STAMP_OCTETS: Final = 24
CELL_STAMP: Final = Struct(">I")
"""All that fits beside the headers into one cell: the number, modulo 2**32. A datagram of so few octets has no more."""
CELL_STAMP_OCTETS: Final = 4

_HEADER: Final = Struct(">IIIIIIIIHH")
"""LLC, OUI | OUI, type | version, IHL, TOS, total length | identification, fragment | TTL, protocol, checksum |
source | destination | ports | length | checksum."""

_VERSION_IHL: Final = 0x45000000
_TTL_PROTOCOL: Final = TTL << 24 | PROTOCOL_UDP << 16
_MAX_LENGTH: Final = 65535 - 20

_pack: Final = _HEADER.pack
_unpack: Final = _HEADER.unpack_from


@final
class UdpPath:
    """The constant part of the headers of all datagrams from one port to another.

    Parameters
    ----------
    source, destination : int
        IPv4 addresses as 32-bit numbers.
    source_port, destination_port : int
    """

    __slots__ = ("_ip_sum", "_ports", "_pseudo_sum", "destination", "source")

    def __init__(self, source: int, destination: int, source_port: int, destination_port: int) -> None:
        self.source = source
        self.destination = destination
        self._ports = source_port << 16 | destination_port
        self._ip_sum = _VERSION_IHL + _TTL_PROTOCOL + source + destination
        self._pseudo_sum = source + destination + PROTOCOL_UDP

    def encode(self, payload_octets: int, identification: int) -> bytes:
        """Return the SDU's octets up to the payload; ValueError if the payload exceeds IP's 65507 octets."""
        length = 8 + payload_octets
        if not 8 <= length <= _MAX_LENGTH:
            raise ValueError(f"a datagram carries 0 to {_MAX_LENGTH - 8} octets, not {payload_octets}")
        total = 20 + length
        ip_sum = (self._ip_sum + total + (identification << 16) - 1) % 65535
        return _pack(
            LLC_SNAP,
            SNAP_IPV4,
            _VERSION_IHL + total,
            identification << 16,
            _TTL_PROTOCOL | (65534 - ip_sum),
            self.source,
            self.destination,
            self._ports,
            length,
            (self._pseudo_sum + length - 1) % 65535 + 1,
        )


@final
class Datagram:
    """The headers of a UDP datagram.

    Members
    -------
    ports : int
        Source port, then destination port, 16 bits each.
    length : int
        Of UDP header and payload, in octets.
    checksum : int
        As it came; 0: the sender made none.
    """

    __slots__ = ("checksum", "destination", "length", "ports", "source")

    def __init__(self, source: int, destination: int, ports: int, length: int, checksum: int) -> None:
        self.source = source
        self.destination = destination
        self.ports = ports
        self.length = length
        self.checksum = checksum


def decode_datagram(head: bytes, sdu_octets: int) -> Datagram | None:
    """Return the headers at the start of an SDU of ``sdu_octets``; None if it holds no whole, undamaged UDP datagram.
    The UDP checksum is not checked."""
    if len(head) < UDP_PAYLOAD_AT:
        return None
    (llc, snap, first, fragment, protocol, source, destination, ports, length, checksum) = _unpack(head)
    total = first & 0xFFFF
    if (
        llc != LLC_SNAP
        or snap != SNAP_IPV4
        or first >> 16 != 0x4500
        or (protocol >> 16) & 0xFF != PROTOCOL_UDP
        or total + 8 > sdu_octets
        or fragment & 0x3FFF
        or length < 8
        or length + 20 > total
        or (first + fragment + protocol + source + destination) % 65535
    ):
        return None
    return Datagram(source, destination, ports, length, checksum)


def datagram_octets(wanted: int, mtu: int) -> int:
    """Return the payload of a datagram on this MTU: as wanted, or (0) the largest.

    Raises
    ------
    ValueError
        It would have to be fragmented, or is too short for the stamp.
    """
    largest = mtu - UDP_OVERHEAD
    octets = wanted or largest
    if octets > largest:
        raise ValueError(
            f"a datagram of {octets} octets does not fit the MTU of {mtu}: at most {largest} "
            "(there is no IP fragmentation)"
        )
    if octets < 2 * STAMP_OCTETS and octets != CELL_STAMP_OCTETS:
        raise ValueError(
            f"a datagram has {2 * STAMP_OCTETS} octets and more, not {octets}: it carries a stamp "
            f"(or {CELL_STAMP_OCTETS}: one cell, with nothing but its number)"
        )
    return octets
