"""Tests of what the papers state about windows: slow start over a satellite, congestion avoidance, Fall and Floyd's
drops.
"""

from __future__ import annotations

import pytest

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import ENDLESS, Connection
from bentpipe.tcp.constants import ACK, MASK32, SYN
from bentpipe.tcp.segment import Options, Segment
from bentpipe.tcp.trace import Trace
from models.pair import MemoryRecorder, Pair

MS = 10**9
RTT_S = 0.534


def test_slow_start_to_10_megabytes_takes_18_round_trips() -> None:
    """1 + log1.5(1148) = 18.38 round trips with an ACK for every two segments, at OC-3c's rate."""
    pair = Pair(rate_bps=135_632_000, delay_ps=round(RTT_S * 10**12 / 2))
    flow = pair.flow(TcpConfig())
    pair.run(flow, 11)
    window = 1148 * 9140
    start = flow.source.connection.opened_ps
    reached = next(time for time, cwnd in pair.recorder.samples["flow1.cwnd"] if cwnd >= window)
    round_trips = (reached - start) / 10**12 / RTT_S
    assert 17.9 < round_trips < 19.2
    assert flow.report(0).retransmits == 0


def avoidance_round_trips(octets_acked_at_once: int) -> int:
    """Round trips of congestion avoidance from half of 1148 segments to all, with so many segments an ACK."""
    mss = 9140
    c = Connection(TcpConfig(), mss, 0)
    growth = c.sender.growth
    growth.limit = 1 << 30
    full = 1148 * mss
    growth.cwnd = growth.ssthresh = full // 2
    count = 0
    while growth.cwnd < full:
        count += 1
        for _ in range(growth.cwnd // (octets_acked_at_once * mss)):
            growth.on_ack(octets_acked_at_once * mss, 0, 0)
    return count


def test_congestion_avoidance_takes_303_seconds() -> None:
    """One segment a round trip, as the papers reckon: 303.5 s (satellite), 22.18 s (WAN), 0.057 s (LAN).

    BSD takes 6 % longer: MSS * MSS / cwnd in integers is 9 or 10 octets here and loses half an octet an ACK.
    """
    round_trips = avoidance_round_trips(1)
    assert round_trips * RTT_S == pytest.approx(303.5, rel=0.07)
    assert round_trips * 0.039 == pytest.approx(22.18, rel=0.07)
    assert round_trips * 0.0001 == pytest.approx(0.057, rel=0.07)


def test_delayed_acks_take_twice_as_long() -> None:
    assert avoidance_round_trips(2) == pytest.approx(2 * avoidance_round_trips(1), rel=0.01)


class AckingSink:
    """A receiver that acknowledges each segment at once, as the papers reckon, and holds what comes out of order."""

    def __init__(self) -> None:
        self.next = 0
        self.held: set[int] = set()

    def take(self, offset: int, length: int) -> int:
        self.held.add(offset)
        while self.next in self.held:
            self.held.remove(self.next)
            self.next += length
        return self.next


@pytest.mark.parametrize(
    ("rtt_ps", "published_s"), [(534 * MS, 303.5), (39 * MS, 22.18), (MS // 10, 0.057)], ids=["satellite", "WAN", "LAN"]
)
def test_recovery_on_the_window_trace(rtt_ps: int, published_s: float) -> None:
    """One loss at a window of 1148 segments; then the trace of cwnd from half of it to all of it again."""
    mss = 9140
    full = 1148 * mss
    recorder = MemoryRecorder()
    config = TcpConfig(send_buffer=full, receive_buffer=full, round_buffers=False)
    tcp = Connection(config, mss, 2**32 - 1, 0, Trace(recorder, "flow"))  # data starts at sequence number 0
    tcp.open(0)
    syn = Options()
    syn.mss, syn.window_shift = mss, 8
    tcp.out.clear()
    tcp.receive(Segment(0, 0, SYN | ACK, 65535, 0, 0, syn), 0)
    tcp.out.clear()
    tcp.write(ENDLESS, 0)
    sink, lost, recovered = AckingSink(), False, False
    now = 0
    while not recovered or tcp.sender.growth.cwnd < full:
        assert now < published_s * 1.2 * 10**12 + 20 * rtt_ps
        flight = [(segment.offset, segment.length) for segment in tcp.out]
        tcp.out.clear()
        if not lost and tcp.sender.growth.cwnd >= full:
            lost = bool(flight.pop(0))
        now += rtt_ps
        for offset, length in flight:
            ack = Segment(1, sink.take(offset, length) & MASK32, ACK, full >> 8, 0, 0, None)
            tcp.receive(ack, now)
        recovered = recovered or (lost and tcp.sender.growth.cwnd < 0.6 * full)
    (fast,) = recorder.times("fast_retransmit")
    trace = [(t, cwnd) for t, cwnd in recorder.samples["flow.cwnd"] if t > fast]
    half = next(t for t, cwnd in trace if cwnd <= full // 2 + mss)
    refilled = next(t for t, cwnd in trace if t > half and cwnd >= full)
    assert not recorder.times("timeout")
    # BSD's integers: up to 7 % longer, see above
    assert published_s * 0.98 < (refilled - half) / 10**12 < published_s * 1.07


DROPS = {1: {14}, 2: {14, 28}, 3: {14, 26, 28}, 4: {14, 24, 26, 28}}


def fall_floyd(variant: str, drops: int, **settings: object) -> tuple:
    """Run the network of Fall and Floyd: 0.8 Mb/s, 100 ms, 1000-octet packets, an ACK for each; the first window's
    losses by number.
    """
    pair = Pair(rate_bps=800_000, delay_ps=100 * MS)
    pair.forth.drop_data = DROPS[drops]
    tcp = TcpConfig(
        variant=variant,
        mss=952,
        ack_policy="immediate",
        send_buffer=100_000,
        receive_buffer=100_000,
        **settings,  # type: ignore[arg-type]
    )
    flow = pair.flow(tcp, 100 * 952)
    report = pair.run(flow, 100)
    assert report.finished and report.bad_octets == 0
    events = pair.recorder
    first = events.times("fast_retransmit")[0]
    recovered = next(t for t, una in events.samples["flow1.una"] if una >= 29 * 952)
    return report, (recovered - first) / (report.rtt_min_ps), events


@pytest.mark.parametrize("drops", [1, 2, 3, 4])
def test_fall_floyd_tahoe(drops: int) -> None:
    """No time-out, but slow start, and segments sent again that had arrived."""
    report, _, events = fall_floyd("tahoe", drops)
    assert report.timeouts == 0
    assert report.retransmits >= drops
    assert min(cwnd for t, cwnd in events.samples["flow1.cwnd"] if t >= events.times("fast_retransmit")[0]) == 952
    if drops > 2:
        assert report.duplicates > 0


@pytest.mark.parametrize(("drops", "timeouts", "fast"), [(1, 0, 1), (2, 0, 2), (3, 1, None), (4, 1, None)])
def test_fall_floyd_reno(drops: int, timeouts: int, fast: int | None) -> None:
    """One loss: none; two: a second fast retransmission; three and more: a time-out."""
    report, _, _ = fall_floyd("reno", drops)
    assert report.timeouts == timeouts
    if fast is not None:
        assert report.fast_retransmits == fast
        assert report.retransmits == drops


@pytest.mark.parametrize("drops", [1, 2, 3, 4])
def test_fall_floyd_newreno(drops: int) -> None:
    """No time-out: one round trip a loss."""
    report, round_trips, _ = fall_floyd("newreno", drops)
    assert (report.timeouts, report.fast_retransmits, report.retransmits) == (0, 1, drops)
    assert drops - 0.1 < round_trips < drops + 0.8


@pytest.mark.parametrize("pipe", ["rfc3517", "fall-floyd"])
@pytest.mark.parametrize("drops", [1, 2, 3, 4])
def test_fall_floyd_sack(drops: int, pipe: str) -> None:
    """No time-out, only what is lost is sent again: one round trip for all but the window's last segment (28), which
    only the SACK of a newer one shows to be lost."""
    report, round_trips, _ = fall_floyd("sack", drops, sack_pipe=pipe)
    assert (report.timeouts, report.fast_retransmits, report.retransmits) == (0, 1, drops)
    assert round_trips < (1.2 if drops == 1 else 2.6 if drops < 4 or pipe == "rfc3517" else 3.2)


def test_sack_recovers_faster_than_newreno_than_reno() -> None:
    ends = [fall_floyd(variant, 4)[0].end_ps for variant in ("sack", "newreno", "reno")]
    assert ends == sorted(ends) and len(set(ends)) == 3


def test_bsd_timers_cost_more_than_ideal_ones() -> None:
    slow = fall_floyd("reno", 4)[0].end_ps
    fast = fall_floyd("reno", 4, timers="ideal")[0].end_ps
    assert fast < slow
