"""Whole transfers over wires that lose, duplicate and reorder: all data, in order, once; never a hang."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bentpipe.hosts.reader import PacedReader
from bentpipe.ip.codec import decode_options
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.constants import ACK, SYN
from models.pair import Pair

MS = 10**9
VARIANTS = ("tahoe", "reno", "newreno", "sack")

# The handshake passes, so that an attempt isn't given up after 75 s; 12 losses can't be the 13 in a row that end
# a connection.
losses = st.sets(st.integers(2, 70), max_size=12)


def assert_window_kept(pair: Pair) -> None:
    """No data beyond what the sink ever offered, but for probes of one octet."""
    edge, shift, first = None, 0, 0
    for _, nic, _, head in pair.network.log or []:
        seq, ack, control = struct.unpack_from(">III", head, 32)
        flags, window = control >> 16 & 0x3F, control & 0xFFFF
        length = int.from_bytes(head[10:12], "big") - 20 - (control >> 28) * 4
        if nic == 1:
            if flags & SYN:
                options = decode_options(head[48 : 28 + (control >> 28) * 4], SYN)
                shift = 0 if options is None or options.window_shift < 0 else options.window_shift
                window_now = window
            else:
                window_now = window << shift
            if flags & ACK:
                if edge is None:
                    first = ack
                offered = ((ack - first) & 0xFFFFFFFF) + window_now
                edge = offered if edge is None else max(edge, offered)
        elif length and edge is not None:
            end = ((seq - first) & 0xFFFFFFFF) + length
            assert end <= edge or length == 1, f"octets up to {end} sent, {edge} offered"


@settings(max_examples=120)
@given(
    variant=st.sampled_from(VARIANTS),
    timers=st.sampled_from(("bsd", "ideal")),
    timestamps=st.booleans(),
    window=st.sampled_from((1500, 4096, 20_000, 100_000)),
    size=st.integers(1, 40_000),
    forth=losses,
    back=losses,
    duplication=st.sampled_from((0.0, 0.2)),
    reordering=st.sampled_from((0.0, 0.2)),
    seed=st.integers(0, 9),
    slow=st.booleans(),
    extra=st.fixed_dictionaries(
        {},
        optional={
            "newreno_impatient": st.just(True),
            "newreno_careful": st.just(False),
            "sack_pipe": st.just("fall-floyd"),
            "ack_policy": st.sampled_from(("immediate", "every_second")),
            "nagle": st.just(False),
            "habit_tahoe_keeps_snd_nxt": st.just(True),
            "habit_avoid_multiple": st.just(True),
            "initial_cwnd": st.just(10),
        },
    ),
)
def test_everything_arrives_once_in_order(
    variant: str,
    timers: str,
    timestamps: bool,
    window: int,
    size: int,
    forth: set[int],
    back: set[int],
    duplication: float,
    reordering: float,
    seed: int,
    slow: bool,
    extra: dict,
) -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=20 * MS, seed=seed, keep_log=True)
    for wire, drop in ((pair.forth, forth), (pair.back, back)):
        wire.drop = drop
        wire.duplication, wire.reordering, wire.reorder_ps = duplication, reordering, 3 * MS
    tcp = TcpConfig(
        variant=variant,
        mss=536,
        send_buffer=window,
        receive_buffer=window,
        timers=timers,
        timestamps=timestamps,
        rto_min_ps=200 * MS,
        **extra,
    )
    flow = pair.flow(tcp, size)
    if slow:
        PacedReader(flow.sink, 3000, 400 * MS)
    report = pair.run(flow, 3000)
    sink = flow.sink.connection
    if slow:
        sink.read(10**6, pair.engine.now_ps)
    assert (report.error, report.finished, report.bad_octets) == ("", True, 0)
    assert sink.receiver.delivered == size == report.octets_acknowledged
    assert sink.receiver.rcv_nxt - sink.receiver.rcv_base == size + 1
    assert pair.source.header_errors == pair.sink.header_errors == 0
    assert pair.source.checksum_errors == pair.sink.checksum_errors == 0
    assert_window_kept(pair)


@pytest.mark.parametrize("variant", VARIANTS)
def test_heavy_random_loss(variant: str) -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=5 * MS, seed=3)
    pair.forth.loss = pair.back.loss = 0.05
    pair.forth.reordering, pair.forth.reorder_ps = 0.05, 2 * MS
    flow = pair.flow(TcpConfig(variant=variant, mss=1000, send_buffer=30_000, receive_buffer=30_000), 400_000)
    report = pair.run(flow, 3000)
    assert (report.finished, report.error, report.octets_delivered, report.bad_octets) == (True, "", 400_000, 0)
    assert report.retransmits > 10


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("timestamps", [False, True])
def test_sequence_numbers_wrap(variant: str, timestamps: bool) -> None:
    pair = Pair(rate_bps=100_000_000, delay_ps=10 * MS)
    flow = pair.flow(
        TcpConfig(variant=variant, timestamps=timestamps, send_buffer=300_000, receive_buffer=300_000), 2_000_000
    )
    for connection in (flow.source.connection, flow.sink.connection):
        start = 2**32 - 500_000
        sender = connection.sender
        sender.iss = sender.snd_una = sender.snd_nxt = sender.snd_max = start
        sender.snd_base = sender.snd_end = start + 1
    pair.forth.drop_data = {30, 31, 52, 53, 54, 60, 100, 101, 120}
    report = pair.run(flow, 100)
    assert (report.finished, report.octets_delivered, report.bad_octets) == (True, 2_000_000, 0)
    assert flow.source.connection.sender.snd_una > 2**32
    assert report.retransmits >= 9


def test_ideal_timers_wait_for_a_delayed_ack() -> None:
    """20 ms there and back, 200 ms for the ACK of a last segment: nothing is lost, nothing times out."""
    pair = Pair(rate_bps=10_000_000, delay_ps=10 * MS)
    report = pair.run(pair.flow(TcpConfig(timers="ideal", mss=1000), 101_000), 100)
    assert (report.finished, report.timeouts, report.retransmits) == (True, 0, 0)


def test_same_run_twice() -> None:
    def run() -> tuple:
        pair = Pair(rate_bps=10_000_000, delay_ps=5 * MS, seed=5, keep_log=True)
        pair.forth.loss = 0.02
        report = pair.run(pair.flow(TcpConfig(send_buffer=50_000, receive_buffer=50_000), 500_000), 1000)
        return report, pair.network.log, pair.recorder.events

    assert run() == run()


def test_idle_connection_stays_open() -> None:
    pair = Pair(delay_ps=MS)
    flow = pair.engine.add_tcp_flow("idle", pair.source, pair.sink, 0, 0, TcpConfig())
    report = pair.run(flow, 10_000)
    assert (report.state, report.error, report.finished) == ("ESTABLISHED", "", False)
