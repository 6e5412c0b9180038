"""LLC/SNAP, IPv4 and TCP headers of a PDU (RFC 2684 routed, RFC 791, RFC 793), as octets and back.

The TCP checksum over the payload is left to the network interface, as with any checksum offload: the sum of
the pseudo header stands in the field (:meth:`bentpipe_sim.interface.PduNetwork.send`).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i64_be
from mypy_extensions import i64

from bentpipe.tcp.constants import SYN
from bentpipe.tcp.segment import Options, Segment

__all__ = [
    "CHECKSUM_AT",
    "CHECKSUM_START",
    "HEADER_OCTETS",
    "LLC_SNAP",
    "LLC_SNAP_IPV4",
    "LLC_SNAP_SUM",
    "SNAP_IPV4",
    "TcpPath",
    "address_text",
    "decode_options",
    "encode_options",
]

LLC_SNAP: Final = 0xAAAA0300
"""LLC AA-AA-03 and the first octet of the OUI 00-00-00."""
SNAP_IPV4: Final = 0x00000800
"""The rest of the OUI and the type 0800."""

LLC_SNAP_IPV4: Final = ((LLC_SNAP ^ 1 << 31) - (1 << 31)) << 32 | SNAP_IPV4
"""Both, as the signed number that ``librt`` makes of eight octets."""

LLC_SNAP_SUM: Final = LLC_SNAP + SNAP_IPV4
"""Their ones'-complement sum, modulo 65535 as all here."""

HEADER_OCTETS: Final = 48
"""LLC, SNAP, IP and TCP headers without options. Eight by eight they are: LLC, SNAP | version, IHL, TOS, total length;
identification, fragment | TTL, protocol, checksum; source | destination; ports | sequence; acknowledgement |
data offset, flags, window; checksum; urgent pointer."""

CHECKSUM_START: Final = 28
"""Where the TCP header starts in the SDU."""
CHECKSUM_AT: Final = 44
"""Where its checksum stands."""

TTL: Final = 60
"""Time to live of 4.4BSD's TCP (``tcp_ttl``)."""

_VERSION_IHL: Final = 0x45000000
_TTL_PROTOCOL: Final = TTL << 24 | 6 << 16
_LENGTH_OF_IP: Final = (_VERSION_IHL + 20) << 32
"""An IP header's first eight octets, of a packet without TCP."""
_NO_OPTIONS: Final = 20 << 26
"""The data offset in TCP's word of flags and window."""
_SIGN: Final = 1 << 31


@final
class TcpPath:
    """The constant part of all headers of one direction of one connection.

    Parameters
    ----------
    source, destination : int
        IPv4 addresses as 32-bit numbers.
    source_port, destination_port : int
    """

    __slots__ = ("_from", "_ip_rest", "_pseudo_sum", "_to")

    def __init__(self, source: int, destination: int, source_port: int, destination_port: int) -> None:
        self._from: i64 = _TTL_PROTOCOL << 32 | source
        self._to: i64 = _eight(destination, source_port << 16 | destination_port)
        # 2**16 is 1 modulo 65535, so that sums of 16-bit words are sums of wider words modulo 65535.
        self._ip_rest: i64 = -(_VERSION_IHL + 20 + _TTL_PROTOCOL + source + destination) % 65535
        self._pseudo_sum: i64 = (source + destination + 6 - 1) % 65535

    def encode(self, segment: Segment, identification: int) -> bytes:
        """Return the SDU's octets up to the payload."""
        # Plain Python takes as long for each step of this as compiled code for all of it: so they are few.
        options = segment.options
        tcp_length: i64 = segment.length + 20
        control: i64 = segment.flags << 16 | segment.window
        tail = b""
        if options is None:
            control += _NO_OPTIONS
        else:
            tail = encode_options(options)
            tcp_length += len(tail)
            control = _signed(control + ((20 + len(tail)) << 26))
        packet: i64 = identification
        seq: i64 = segment.seq
        if seq >= _SIGN:
            seq -= 2 * _SIGN
        writer = BytesWriter()
        write_i64_be(writer, LLC_SNAP_IPV4)
        write_i64_be(writer, _LENGTH_OF_IP + (tcp_length << 32) + (packet << 16))
        write_i64_be(writer, self._from + ((self._ip_rest - tcp_length - packet) % 65535 << 32))
        write_i64_be(writer, self._to)
        write_i64_be(writer, (seq << 32) + segment.ack)
        write_i64_be(writer, (control << 32) + ((self._pseudo_sum + tcp_length) % 65535 + 1 << 16))
        if tail:
            writer.write(tail)
        return writer.getvalue()


def _eight(high: i64, low: i64) -> i64:
    """Return eight octets, given as two times 32 bits, as a signed number."""
    return _signed(high) << 32 | low


def _signed(number: i64) -> i64:
    """Return the signed number of the same 32 bits."""
    return (number ^ _SIGN) - _SIGN


def encode_options(options: Options) -> bytes:
    """Encode TCP options in the layout of the BSDs (RFC 1323 appendix A, RFC 2018), a multiple of 4 octets."""
    parts: list[bytes] = []
    if options.mss:
        parts.append(b"\x02\x04" + options.mss.to_bytes(2, "big"))
    if options.window_shift >= 0:
        parts.append(b"\x01\x03\x03" + bytes([options.window_shift]))
    if options.sack_permitted:
        parts.append(b"\x01\x01\x04\x02")
    if options.has_timestamp:
        parts.append(b"\x01\x01\x08\x0a" + options.ts_value.to_bytes(4, "big") + options.ts_echo.to_bytes(4, "big"))
    if options.blocks:
        parts.append(b"\x01\x01\x05" + bytes([2 + 8 * len(options.blocks)]))
        for left, right in options.blocks:
            parts.append(left.to_bytes(4, "big") + right.to_bytes(4, "big"))
    return b"".join(parts)


def decode_options(octets: bytes, flags: int) -> Options | None:
    """Return the options in ``octets``; None if they are malformed. What is unknown is skipped (RFC 1122 4.2.2.5).

    MSS, window scale and SACK-permitted count in a SYN only.
    """
    options = Options()
    at = 0
    size = len(octets)
    while at < size:
        kind = octets[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 1 >= size:
            return None
        length = octets[at + 1]
        if length < 2 or at + length > size:
            return None
        if kind == 8 and length == 10:
            options.has_timestamp = True
            options.ts_value = int.from_bytes(octets[at + 2 : at + 6], "big")
            options.ts_echo = int.from_bytes(octets[at + 6 : at + 10], "big")
        elif kind == 5 and length >= 10 and (length - 2) % 8 == 0:
            for block in range(at + 2, at + length, 8):
                left = int.from_bytes(octets[block : block + 4], "big")
                right = int.from_bytes(octets[block + 4 : block + 8], "big")
                options.blocks.append((left, right))
        elif flags & SYN:
            if kind == 2 and length == 4:
                options.mss = int.from_bytes(octets[at + 2 : at + 4], "big")
            elif kind == 3 and length == 3:
                options.window_shift = octets[at + 2]
            elif kind == 4 and length == 2:
                options.sack_permitted = True
        at += length
    return options


def address_text(address: int) -> str:
    """Return an IPv4 address in the usual notation."""
    return ".".join(str(octet) for octet in address.to_bytes(4, "big"))
