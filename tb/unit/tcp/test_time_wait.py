"""Connections that are closed: what they cost, and that late segments are answered all the same."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

from bentpipe.apps.draws import Distribution
from bentpipe.apps.http import Http
from bentpipe.experiment.run.state import StatePickler, copied
from bentpipe.hosts.flow import Flow, FlowReport
from bentpipe.hosts.sockets import TcpEndpoint
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import ACK, CLOSED, FIN, MASK32, PSH, RST, SYN, TIME_WAIT
from bentpipe.tcp.segment import Options, Segment
from bentpipe.tcp.time_wait import TimeWait
from models.pair import Pair

MS, S = 10**9, 10**12
CONFIGS: list[dict[str, Any]] = [
    {"timers": "bsd"},
    {"timers": "rfc6298", "variant": "sack", "timestamps": True, "receive_buffer": 200_000},
    {"timers": "ideal", "window_scale": True, "receive_buffer": 1_000_000, "ack_policy": "immediate"},
]


def in_time_wait(config: TcpConfig) -> Connection:
    """A connection that sent 5,000 octets, got 3,000, and closed first."""
    one, other = (Connection(config, 1000, 2**32 - 3000 + k, 0) for k in range(2))
    other.listen()
    one.connect_directly(other, MS)
    one.write(5000, MS)
    other.write(3000, MS)
    now = MS
    for close in (None, one, None, other, None):
        if close is not None:
            close.close(now)
        for _ in range(40):
            now += MS
            for end, peer in ((one, other), (other, one)):
                segments = list(end.out)
                end.out.clear()
                for segment in segments:
                    peer.receive(segment, now)
                if end.receiver.delack:
                    end.fast_tick(now)
    assert (one.state, other.state) == (TIME_WAIT, CLOSED)
    return one


def late_segment(rng: random.Random, connection: Connection) -> Segment:
    """Something that may come late: near the numbers that are right, with any flags."""
    flags = rng.choice([ACK, ACK, ACK | FIN, ACK | PSH, RST, RST | ACK, SYN, SYN | ACK, FIN, 0])
    seq = connection.receiver.rcv_nxt + rng.choice([0, 0, -1, -1, 1, -1000, 500, 10**6])
    ack = connection.sender.snd_una + rng.choice([0, 0, -1, 1, -4000, 10**6])
    options: Options | None = None
    if rng.random() < 0.5:
        options = Options()
        options.has_timestamp = True
        options.ts_value = (connection.receiver.ts_recent + rng.choice([0, 1, -1])) & MASK32
    length = rng.choice([0, 0, 0, 1, 1000])
    return Segment(seq & MASK32, ack & MASK32, flags, rng.choice([0, 4096]), length, 0, options)


def told(connection: Connection) -> list[Any]:
    """Return the state, the end of its wait, and the segments that it sends."""
    sent = []
    for segment in connection.out:
        options = segment.options
        stamps = (options.ts_value, options.ts_echo, options.blocks) if options is not None else None
        sent.append((segment.seq, segment.ack, segment.flags, segment.window, segment.length, stamps))
    connection.out.clear()
    return [connection.state, connection.error, connection.timers.wait, sent]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config["timers"])
def test_a_connection_that_rested_answers_late_segments_as_one_that_did_not(config: dict[str, Any]) -> None:
    answered = 0
    for seed in range(60):
        rng = random.Random(seed)
        whole = in_time_wait(TcpConfig(**config))
        rested = whole
        now = 10 * S
        for _ in range(6):
            rested = TimeWait(rested).connection()
            segment = late_segment(rng, whole)
            now += rng.randrange(MS, S)
            ends = whole, (copied(rested) if rested is whole else rested)
            for end in ends:
                if not end.ideal:
                    end.slow_tick(now * 2 // S, now)
                end.receive(segment, now)
            outcomes = [told(end) for end in ends]
            assert outcomes[0] == outcomes[1], (seed, segment.flags, segment.seq, segment.ack)
            answered += len(outcomes[0][3])
            rested = ends[1]
            if whole.state == CLOSED:
                break
    assert answered > 60


def web(pair: Pair, requests: int, timers: str) -> Flow:
    """Short connections, four at a time; the server closes first."""
    tcp = TcpConfig(timers=timers, ack_policy="immediate")
    draws = Distribution("constant", 320), Distribution("constant", 100)
    return pair.flow(tcp, app=Http(*draws, None, 4, requests, False, 1, 0))


def objects(pair: Pair) -> int:
    """Return how many objects a run has to write when a signal ends it."""
    pickler = StatePickler(io.BytesIO())
    pickler.take(pair.engine)
    return len(pickler.met)


@pytest.mark.parametrize("timers", ["bsd", "rfc6298"])
def test_a_closed_connection_costs_almost_nothing(timers: str) -> None:
    """In TIME_WAIT its state has few objects, for which a signal's save takes the longer; then none. A connection in
    use has about thirty."""
    counts = []
    for requests in (50, 250):
        pair = Pair(delay_ps=MS)
        flow = web(pair, requests, timers)
        pair.engine.run(S)
        assert flow.report(pair.engine.now_ps).facts["http_responses"] == requests
        at_once = objects(pair)
        pair.engine.flows.clear()  # go on although all have ended
        pair.engine.run(100 * S)
        counts.append((at_once, objects(pair), len(pair.source.connections)))
    assert (counts[1][0] - counts[0][0]) / 200 <= 6
    assert counts[1][1:] == counts[0][1:]


def counts_of(report: FlowReport) -> tuple[int, ...]:
    return report.segments_sent, report.acks_received, report.acks_sent, report.octets_delivered, report.bad_octets


@pytest.mark.parametrize("timers", ["bsd", "rfc6298"])
def test_a_late_fin_of_a_closed_connection_is_answered_and_counted(timers: str) -> None:
    pair = Pair(delay_ps=MS)
    flow = web(pair, 8, timers)
    pair.engine.run(S)
    before = flow.report(pair.engine.now_ps)
    waiting = [
        end for end in pair.source.connections.values() if isinstance(end, TcpEndpoint) and end.waits is not None
    ]
    assert len(waiting) >= 4
    end = waiting[0]
    assert end.waits is not None
    whole = end.waits.connection()
    fin = Segment(whole.receiver.rcv_nxt - 1 & MASK32, whole.sender.snd_una & MASK32, ACK | FIN, 4096, 0, 0, None)
    until = end.waits.wait
    end.take(fin, pair.engine.now_ps)
    after = flow.report(pair.engine.now_ps)
    differences = [b - a for a, b in zip(counts_of(before), counts_of(after), strict=True)]
    assert differences == [1, 1, 0, 0, 0], "the ACK that answers it, and the FIN itself"
    assert end.waits is not None and end.waits.wait >= until


def test_a_wait_that_ends_leaves_the_next_connection_of_the_same_ports_alone() -> None:
    pair = Pair(delay_ps=MS)
    flow = web(pair, 40, "rfc6298")
    pair.sink._next_port = 65530  # round the ports at once
    pair.engine.run(S)
    waiting = dict(pair.source.connections)
    (key, end), *_ = ((k, e) for k, e in waiting.items() if isinstance(e, TcpEndpoint) and e.waits is not None)
    other = TcpEndpoint(
        pair.source, Connection(TcpConfig(), 1000, 0), end.remote, end.port, end.remote_port, end.vc, 1, 2, None
    )
    pair.engine.flows.clear()
    pair.engine.run(100 * S)
    assert flow.finished
    assert list(pair.source.connections) == [key] and pair.source.connections[key] is other
