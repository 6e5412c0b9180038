"""UDP: headers against scapy, what the sink reports, what a host does with datagrams."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP

from bentpipe.apps.cbr import Cbr
from bentpipe.apps.ttcp import Ttcp
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.udp import UdpFlow
from bentpipe.ip.udp import UdpPath, datagram_octets, decode_datagram
from bentpipe.tcp.config import TcpConfig
from bentpipe_sim.interface import PduEvent
from models.pair import Pair
from models.wire import ones_sum

US = 10**6
MS = 10**9
S = 10**12
SNAP = bytes.fromhex("aaaa030000000800")
ADDRESS = st.integers(0, 2**32 - 1)
PORT = st.integers(1, 65535)


def flow(pair: Pair, app: Cbr | Ttcp, datagram: int = 0) -> UdpFlow:
    return pair.engine.add_udp_flow("flow", pair.source, pair.sink, pair.forth_vc, app, datagram)


@given(ADDRESS, ADDRESS, PORT, PORT, st.binary(max_size=200), st.integers(0, 65535))
def test_headers_are_scapys(source: int, sink: int, port: int, sink_port: int, payload: bytes, number: int) -> None:
    octets = bytearray(UdpPath(source, sink, port, sink_port).encode(len(payload), number) + payload)
    pseudo = int.from_bytes(octets[34:36], "big")
    assert pseudo == (ones_sum(octets[20:28] + b"\0\x11" + octets[32:34]) - 1) % 65535 + 1
    octets[34:36] = (0xFFFF ^ ones_sum(bytes(octets[28:]))).to_bytes(2, "big")
    found = IP(bytes(octets[8:]))
    assert bytes(octets[:8]) == SNAP
    assert (found.proto, found.id, found.frag, found.len) == (17, number, 0, 28 + len(payload))
    again = IP(bytes(octets[8:]))
    del again.chksum, again[UDP].chksum
    again = IP(bytes(again))
    assert found.chksum == again.chksum
    assert found[UDP].chksum % 65535 == again[UDP].chksum % 65535  # scapy sends all ones for zero
    assert (found[UDP].sport, found[UDP].dport, found[UDP].len) == (port, sink_port, 8 + len(payload))
    assert bytes(found[UDP].payload) == payload


@given(st.binary(max_size=100), PORT, PORT)
def test_scapys_headers_are_understood(payload: bytes, port: int, sink_port: int) -> None:
    sdu = SNAP + bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=port, dport=sink_port) / payload)
    found = decode_datagram(sdu[:128], len(sdu))
    assert found is not None
    assert (found.source, found.destination) == (0x0A000001, 0x0A000002)
    assert (found.ports, found.length) == (port << 16 | sink_port, 8 + len(payload))
    assert found.checksum == int.from_bytes(sdu[34:36], "big")


@given(st.integers(0, 27), st.integers(1, 255))
def test_damaged_headers_are_refused(place: int, change: int) -> None:
    sdu = bytearray(SNAP + bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2) / b"12345678"))
    sdu[place] ^= change
    assert decode_datagram(bytes(sdu), len(sdu)) is None


@pytest.mark.parametrize(("length", "size"), [(36, 43), (7, 44), (17, 44), (36, 35)])
def test_lengths_must_fit(length: int, size: int) -> None:
    """A UDP length beyond IP's or below 8, an IP length beyond the SDU's."""
    sdu = SNAP + bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2, len=length) / b"12345678")
    assert decode_datagram(sdu[:size], size) is None


@pytest.mark.parametrize("fields", [{"flags": "MF"}, {"frag": 1}])
def test_fragments_are_refused(fields: dict[str, object]) -> None:
    sdu = SNAP + bytes(IP(src="10.0.0.1", dst="10.0.0.2", proto=17, **fields) / bytes(UDP(sport=1, dport=2) / b"12"))
    assert decode_datagram(sdu, len(sdu)) is None


@given(st.sets(st.integers(0, 39), max_size=20))
@settings(max_examples=30)
def test_lost_datagrams_are_counted(drop: set[int]) -> None:
    pair = Pair(rate_bps=100_000_000, delay_ps=5 * MS)
    pair.forth.drop = drop
    one = flow(pair, Cbr(1000, 10 * MS, size_octets=40_000))
    report = one.report(pair.engine.run(60 * S))
    assert report.finished
    assert (report.datagrams_sent, report.datagrams_received, report.datagrams_lost) == (40, 40 - len(drop), len(drop))
    assert report.octets_delivered == 1000 * (40 - len(drop))
    assert (report.datagrams_reordered, report.duplicates, report.bad_octets) == (0, 0, 0)


def test_the_flow_ends_with_its_last_datagram_or_two_seconds_later() -> None:
    ends = []
    for drop in (set(), {39}):
        pair = Pair(delay_ps=5 * MS)
        pair.forth.drop = drop
        one = flow(pair, Cbr(1000, 10 * MS, size_octets=40_000))
        ends.append(pair.engine.run(60 * S))
        assert one.report(ends[-1]).end_ps == 395 * MS - 5 * MS * len(drop)
    assert ends == [395 * MS, 390 * MS + 2 * S]


def test_goodput_counts_the_time_of_a_lost_tail() -> None:
    """Ten of forty datagrams came in the first 100 ms; the source sent the last one at 390 ms."""
    pair = Pair(delay_ps=5 * MS)
    pair.forth.drop = set(range(10, 40))
    report = flow(pair, Cbr(1000, 10 * MS, size_octets=40_000)).report(pair.engine.run(60 * S))
    assert (report.start_ps, report.end_ps) == (0, 390 * MS)
    assert report.goodput_bps == pytest.approx(10 * 8000 / 0.39)


def test_duplicates_are_counted_once() -> None:
    pair = Pair(delay_ps=5 * MS)
    pair.forth.duplication = 1.0
    report = flow(pair, Cbr(1000, 10 * MS, size_octets=40_000)).report(pair.engine.run(60 * S))
    assert (report.datagrams_received, report.octets_delivered) == (40, 40_000)
    assert (report.datagrams_lost, report.datagrams_reordered) == (0, 0)
    assert report.duplicates == 40


def test_reordered_datagrams_are_not_lost() -> None:
    """Every other one comes 15 ms late, the next one 10 ms after it: before it."""
    pair = Pair(delay_ps=5 * MS)
    pair.forth.reordering, pair.forth.reorder_ps = 0.5, 15 * MS
    report = flow(pair, Cbr(1000, 10 * MS, size_octets=400_000)).report(pair.engine.run(60 * S))
    assert (report.datagrams_received, report.datagrams_lost, report.duplicates) == (400, 0, 0)
    assert 60 < report.datagrams_reordered < 140  # one in two is late, the next one in time in one of two cases
    assert (report.delay_min_ps, report.delay_max_ps) == (5 * MS, 20 * MS)


@pytest.mark.parametrize(
    ("drop", "received", "lost", "under_way", "missing"),
    [({3}, 19, 1, 10, 1), ({3, *range(12, 25)}, 11, 14, 5, 1), (set(range(30)), 0, 30, 0, 0)],
)
def test_in_flight_is_not_lost_and_a_tail_is(
    drop: set[int], received: int, lost: int, under_way: int, missing: int
) -> None:
    """The receiver cannot know of the last datagrams: they are lost, or under way for 100 ms."""
    pair = Pair(delay_ps=100 * MS)
    pair.forth.drop = drop
    report = flow(pair, Cbr(1000, 10 * MS)).report(pair.engine.run(295 * MS))
    assert (report.finished, report.datagrams_sent, report.datagrams_received) == (False, 30, received)
    assert (report.datagrams_lost, report.datagrams_under_way, report.datagrams_missing) == (lost, under_way, missing)


def test_without_a_ledger_the_receiver_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on a real network, where only gaps in the numbers tell of losses."""
    pair = Pair(delay_ps=MS)
    monkeypatch.setattr(pair.network, "under_way", lambda *_: -1, raising=False)
    pair.forth.drop = {2, 5, 28, 29}
    report = flow(pair, Cbr(1000, 10 * MS)).report(pair.engine.run(295 * MS))
    assert (report.datagrams_lost, report.datagrams_under_way, report.datagrams_missing) == (2, 0, 2)


def test_blocks_are_cut_into_datagrams() -> None:
    """35000 octets of blocks: three full datagrams of an MTU of 9180, and the rest."""
    pair = Pair(keep_log=True)
    report = flow(pair, Cbr(35_000, 10 * MS, size_octets=70_000)).report(pair.engine.run(60 * S))
    lengths = [int.from_bytes(head[32:34], "big") - 8 for *_, head in pair.network.log or []]
    assert lengths == 2 * [9152, 9152, 9152, 7544]
    assert report.octets_delivered == 70_000


def test_a_full_blast_cuts_its_writes_to_the_mtu() -> None:
    pair = Pair(source=HostConfig(name="source", mtu=1500, interface_queue=50), keep_log=True)
    report = flow(pair, Ttcp(4000, 8192)).report(pair.engine.run(60 * S))
    assert [int.from_bytes(head[32:34], "big") - 8 for *_, head in pair.network.log or []] == [1472, 1472, 1056]
    assert report.octets_delivered == 4000


def test_a_short_rest_has_room_for_its_stamp() -> None:
    pair = Pair(keep_log=True)
    report = flow(pair, Cbr(1010, 10 * MS, size_octets=1010), 1000).report(pair.engine.run(60 * S))
    assert [int.from_bytes(head[32:34], "big") - 8 for *_, head in pair.network.log or []] == [976, 34]
    assert report.octets_delivered == 1010


def test_datagrams_that_need_fragments_are_refused() -> None:
    pair = Pair(source=HostConfig(name="source", mtu=1500))
    with pytest.raises(
        ValueError, match=r"flow flow: a datagram of 8192 octets does not fit the MTU of 1500: at most 1472"
    ):
        flow(pair, Ttcp(1, 8192), 8192)
    assert datagram_octets(0, 1500) == 1472
    with pytest.raises(ValueError, match="48 octets and more, not 47"):
        datagram_octets(47, 1500)


def test_the_processor_spaces_datagrams() -> None:
    """200 us for each: a block of four takes 800 us, and the application's write as long."""
    pair = Pair(source=HostConfig(name="source", send_cost_ps=200 * US), keep_log=True)
    app = Cbr(4 * 9152, 10 * MS, size_octets=8 * 9152)
    one = flow(pair, app)
    report = one.report(pair.engine.run(60 * S))
    times = [time for time, *_ in pair.network.log or []]
    assert times == [start + (i + 1) * 200 * US for start in (0, 10 * MS) for i in range(4)]
    assert (report.delay_min_ps, report.delay_max_ps) == (200 * US, 800 * US)
    assert report.facts["blocked_ps"] == 1600 * US
    assert pair.source.processor.busy_ps == 1600 * US


def test_the_sinks_processor_costs_delay() -> None:
    pair = Pair(delay_ps=MS, sink=HostConfig(name="sink", receive_cost_ps=300 * US))
    report = flow(pair, Cbr(9152, 10 * MS, size_octets=3 * 9152)).report(pair.engine.run(60 * S))
    assert (report.delay_min_ps, report.delay_max_ps) == (1300 * US, 1300 * US)
    assert pair.sink.processor.busy_ps == 900 * US


def test_what_arrives_goes_before_datagrams_that_leave() -> None:
    """A full blast leaves TCP's arrivals their share: a processor that is always asked to send still receives."""
    cost = HostConfig(name="source", send_cost_ps=100 * US, receive_cost_ps=100 * US, interface_queue=50)
    pair = Pair(rate_bps=10**9, delay_ps=MS, source=cost)
    back = pair.engine.add_tcp_flow(
        "back", pair.sink, pair.source, pair.back_vc, pair.forth_vc, TcpConfig(), app=Ttcp(1_000_000)
    )
    one = flow(pair, Ttcp(None, 8192))
    now = pair.engine.run(S)
    assert back.report(now).finished
    assert one.report(now).datagrams_sent > 5000


def test_full_blast_waits_when_the_interface_is_full() -> None:
    """50 datagrams in the queue, then ENOBUFS: 18 ms later the line has sent 22 of them."""
    pair = Pair(rate_bps=10 * 8 * 10**6, source=HostConfig(name="source", interface_queue=50), keep_log=True)
    report = flow(pair, Ttcp(1_500_000, 8192)).report(pair.engine.run(60 * S))
    assert (report.datagrams_sent, report.datagrams_lost, report.octets_delivered) == (184, 0, 1_500_000)
    assert report.datagrams_refused == pytest.approx((184 - 50) / 22, abs=1)
    bursts = [b - a for (a, *_), (b, *_) in pairwise(pair.network.log or []) if b > a]
    assert set(bursts) == {18 * MS}
    assert report.goodput_bps == pytest.approx(80e6 * 8192 / 8228, rel=0.01)


def test_blocks_are_lost_when_the_interface_is_full() -> None:
    pair = Pair(rate_bps=80 * 10**6, source=HostConfig(name="source", interface_queue=10))
    report = flow(pair, Cbr(20 * 8192, 100 * MS, size_octets=40 * 8192), 8192).report(pair.engine.run(60 * S))
    assert (report.datagrams_sent, report.datagrams_refused) == (40, 20)
    assert (report.datagrams_received, report.datagrams_lost) == (20, 20)


def test_ttcp_stops_after_its_duration() -> None:
    pair = Pair(rate_bps=80 * 10**6, source=HostConfig(name="source", interface_queue=50))
    report = flow(pair, Ttcp(None, 8192, duration_ps=S)).report(pair.engine.run(60 * S))
    assert report.finished and S < report.end_ps < 1.1 * S
    assert report.octets_delivered == 8192 * report.datagrams_sent


def test_damaged_payload_is_dropped_by_the_checksum() -> None:
    pair = Pair()

    def damage(number: int, octets: bytearray) -> None:
        if number in (2, 5):
            octets[-1] ^= 1

    pair.forth.mangle = damage
    report = flow(pair, Cbr(1000, 10 * MS, size_octets=10_000)).report(pair.engine.run(60 * S))
    assert (pair.sink.checksum_errors, report.datagrams_lost, report.bad_octets) == (2, 2, 0)


def test_wrong_octets_that_pass_the_checksum_are_counted() -> None:
    pair = Pair()

    def damage(number: int, octets: bytearray) -> None:
        if number == 5:
            octets[100:102], octets[102:104] = octets[102:104], octets[100:102]

    pair.forth.mangle = damage
    report = flow(pair, Cbr(1000, 10 * MS, size_octets=10_000)).report(pair.engine.run(60 * S))
    assert report.datagrams_received == 10 and 2 <= report.bad_octets <= 4


def test_a_datagram_for_no_port() -> None:
    pair = Pair()
    sdu = SNAP + bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=9) / bytes(20))
    pair.network._sdus[1] = sdu
    pair.sink.event(PduEvent(0, 1, 0, 0, len(sdu), sdu, 1))
    assert (pair.sink.no_connection, pair.sink.header_errors, pair.sink.checksum_errors) == (1, 0, 0)
    foreign = SNAP + bytes(IP(src="10.0.0.1", dst="10.0.0.9") / UDP(sport=1, dport=9) / bytes(20))
    pair.sink.event(PduEvent(0, 1, 0, 0, len(foreign), foreign, 1))
    assert pair.sink.header_errors == 1
