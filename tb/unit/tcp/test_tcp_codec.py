"""Headers against scapy: octet for octet, both ways, checksums included."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.layers.inet import IP, TCP  # noqa: E402
from scapy.layers.l2 import LLC, SNAP  # noqa: E402

from bentpipe.hosts.clock import HostClock  # noqa: E402
from bentpipe.hosts.config import HostConfig  # noqa: E402
from bentpipe.hosts.host import Host  # noqa: E402
from bentpipe.hosts.scheduler import Scheduler  # noqa: E402
from bentpipe.ip.codec import (  # noqa: E402
    CHECKSUM_AT,
    CHECKSUM_START,
    TcpPath,
    address_text,
    decode_options,
    encode_options,
)
from bentpipe.tcp.constants import SYN  # noqa: E402
from bentpipe.tcp.segment import Options, Segment  # noqa: E402
from bentpipe_sim.interface import PduEvent  # noqa: E402
from models.wire import WireNetwork, fast_pattern, ones_sum  # noqa: E402

U32 = st.integers(0, 2**32 - 1)
U16 = st.integers(0, 2**16 - 1)


def make_options(syn: bool, mss: int, shift: int, sack: bool, stamps: tuple[int, int] | None, blocks: list) -> Options:
    options = Options()
    if syn:
        options.mss, options.window_shift, options.sack_permitted = mss, shift, sack
    if stamps is not None:
        options.has_timestamp, (options.ts_value, options.ts_echo) = True, stamps
    options.blocks = blocks[: 3 if stamps else 4] if not syn else []
    return options


options_strategy = st.builds(
    make_options,
    st.booleans(),
    st.integers(1, 65535),
    st.integers(-1, 14),
    st.booleans(),
    st.none() | st.tuples(U32, U32),
    st.lists(st.tuples(U32, U32), max_size=4),
)


def scapy_options(options: Options) -> list:
    found: list = []
    if options.mss:
        found.append(("MSS", options.mss))
    if options.window_shift >= 0:
        found += [("NOP", None), ("WScale", options.window_shift)]
    if options.sack_permitted:
        found += [("NOP", None), ("NOP", None), ("SAckOK", b"")]
    if options.has_timestamp:
        found += [("NOP", None), ("NOP", None), ("Timestamp", (options.ts_value, options.ts_echo))]
    if options.blocks:
        found += [("NOP", None), ("NOP", None), ("SAck", tuple(edge for block in options.blocks for edge in block))]
    return found


def finish(head: bytes, payload: bytes) -> bytes:
    """Fill in the checksum over header and payload, as the interface does."""
    octets = bytearray(head + payload)
    value = 0xFFFF ^ ones_sum(bytes(octets[CHECKSUM_START:]))
    octets[CHECKSUM_AT : CHECKSUM_AT + 2] = value.to_bytes(2, "big")
    return bytes(octets)


@given(U32, U32, U16, U16, U32, U32, st.integers(0, 63), U16, st.integers(0, 300), U16, st.none() | options_strategy)
def test_encode_is_scapys(
    source: int,
    sink: int,
    sport: int,
    dport: int,
    seq: int,
    ack: int,
    flags: int,
    window: int,
    length: int,
    ident: int,
    options: Options | None,
) -> None:
    payload = fast_pattern(5, 0, length)
    segment = Segment(seq, ack, flags, window, length, 0, options)
    got = finish(TcpPath(source, sink, sport, dport).encode(segment, ident), payload)
    packet = IP(src=address_text(source), dst=address_text(sink), id=ident, ttl=60, flags=0) / TCP(
        sport=sport,
        dport=dport,
        seq=seq,
        ack=ack,
        flags=flags,
        window=window,
        options=[] if options is None else scapy_options(options),
    )
    wanted = bytes(LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=0x0800)) + bytes(packet / payload)
    assert got == wanted


@given(options_strategy)
def test_options_there_and_back(options: Options) -> None:
    octets = encode_options(options)
    assert len(octets) % 4 == 0
    back = decode_options(octets, SYN)
    assert back is not None
    for name in ("mss", "window_shift", "sack_permitted", "has_timestamp", "ts_value", "ts_echo", "blocks"):
        assert getattr(back, name) == getattr(options, name), name


@given(st.binary(max_size=40), st.integers(0, 63))
def test_any_options_are_safe(octets: bytes, flags: int) -> None:
    options = decode_options(octets, flags)
    if options is not None and not flags & SYN:
        assert (options.mss, options.window_shift, options.sack_permitted) == (0, -1, False)


@pytest.mark.parametrize("octets", [b"\x02", b"\x02\x00", b"\x02\x01", b"\x02\x05\x01\x02", b"\x08\x0a\x00"])
def test_malformed_options(octets: bytes) -> None:
    assert decode_options(octets, SYN) is None


def receive(octets: bytes) -> Host:
    """A host that got this SDU, from an interface that sums up what it receives as from one that doesn't."""
    hosts = [received(octets, total) for total in (-1, ones_sum(octets))]
    outcomes = [(host.header_errors, host.checksum_errors, host.no_connection) for host in hosts]
    assert outcomes[0] == outcomes[1]
    return hosts[0]


def received(octets: bytes, total: int) -> Host:
    network = WireNetwork()
    nic = network.add_nic()
    host = Host(Scheduler(), network, HostConfig(name="host"), nic, 1, (0, 0), HostClock(0, 0, 0, ""))
    network._sdus[7] = octets
    host.event(PduEvent(0, nic, 0, 0, len(octets), octets[:128], 7, sum=total))
    return host


GOOD = finish(TcpPath(10 << 24 | 1, 10 << 24 | 2, 1024, 5001).encode(Segment(1, 2, 16, 3, 5, 0, None), 9), b"abcde")


def test_good_segment_is_taken() -> None:
    host = receive(GOOD)
    assert (host.header_errors, host.checksum_errors, host.no_connection) == (0, 0, 1)


def test_octets_behind_the_datagram_are_in_no_checksum() -> None:
    host = receive(GOOD + b"\x12\x34\x56")
    assert (host.header_errors, host.checksum_errors, host.no_connection) == (0, 0, 1)


@pytest.mark.parametrize("bit", range(8 * len(GOOD)))
def test_every_single_bit_error_is_found(bit: int) -> None:
    octets = bytearray(GOOD)
    octets[bit // 8] ^= 0x80 >> bit % 8
    host = receive(bytes(octets))
    assert (host.header_errors + host.checksum_errors, host.no_connection) == (1, 0)


@pytest.mark.parametrize("length", range(0, len(GOOD)))
def test_short_segments_are_refused(length: int) -> None:
    host = receive(GOOD[:length])
    assert (host.header_errors, host.no_connection) == (1, 0)


@pytest.mark.parametrize(
    "fields",
    [{"dst": "10.0.0.3"}, {"flags": "MF"}, {"frag": 2}, {"proto": 17}, {"version": 6}],
    ids=lambda fields: next(iter(fields)),
)
def test_what_is_not_ours_is_refused(fields: dict) -> None:
    """Right checksums, but for another host, a fragment, another protocol."""
    packet = IP(**{"src": "10.0.0.1", "dst": "10.0.0.2", "id": 9, **fields}) / TCP(sport=1024, dport=5001) / b"abcde"
    llc = bytes(LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=0x0800))
    host = receive(llc + bytes(packet))
    assert (host.header_errors, host.checksum_errors, host.no_connection) == (1, 0, 0)
    fine = IP(src="10.0.0.1", dst="10.0.0.2", id=9, flags="DF") / TCP(sport=1024, dport=5001) / b"abcde"
    assert receive(llc + bytes(fine)).no_connection == 1
