"""The growth of the window: CUBIC against RFC 9438's formulas, Hybla against its authors' equations, pacing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bentpipe
from bentpipe.tcp.config import SETTINGS, TcpConfig
from bentpipe.tcp.connection import ENDLESS, Connection
from bentpipe.tcp.constants import ACK, SYN
from bentpipe.tcp.growth import GROWTHS
from bentpipe.tcp.growth.base import Growth
from bentpipe.tcp.segment import Options, Segment
from models.cubic import BETA, cubic_k, reduced, w_cubic, w_max_after
from models.pair import Pair
from models.tcp_line import TcpLine

MS = 10**9
S = 10**12
MSS = 1000


def growth(name: str, cwnd: int, ssthresh: int = 0, **settings: object) -> Growth:
    """A growth with this window in segments, in congestion avoidance unless ``ssthresh`` is given."""
    made = GROWTHS[name].make(TcpConfig(growth=name, **settings))
    made.mss, made.limit = MSS, 1 << 30
    made.cwnd, made.ssthresh = cwnd * MSS, ssthresh * MSS
    return made


def lose(made: Growth, now: int) -> None:
    """A loss with the whole window in use, and its recovery."""
    made.on_loss(made.cwnd, now)
    made.cwnd = made.ssthresh


def round_trips(made: Growth, start: int, rtt: int, count: int, acked: int = 1) -> list[tuple[int, float]]:
    """``count`` round trips, each with ACKs of ``acked`` segments for the whole window, evenly spread: (ps, segments)
    after each ACK."""
    now, found = start, []
    for _ in range(count):
        acks = made.cwnd // (acked * MSS)
        for k in range(acks):
            made.on_ack(acked * MSS, rtt, now + rtt * k // acks)
            found.append((now + rtt * k // acks, made.cwnd / MSS))
        now += rtt
    return found


# ---- CUBIC ----


def test_cubic_reduces_and_remembers() -> None:
    """Sections 4.6 and 4.7: 0.7 of what was in use; W_max is the window, less if the last W_max wasn't reached."""
    cubic = growth("cubic", 1000)
    lose(cubic, 0)
    assert cubic.cwnd == reduced(1000) * MSS and cubic.w_max == w_max_after(1000, 0)
    lose(cubic, S)
    assert cubic.w_max == pytest.approx(w_max_after(700, 1000))
    slow = growth("cubic", 1000, cubic_fast_convergence=False)
    lose(slow, 0)
    lose(slow, S)
    assert slow.w_max == w_max_after(700, 1000, fast_convergence=False)


def test_cubic_keeps_two_segments() -> None:
    cubic = growth("cubic", 2)
    lose(cubic, 0)
    assert cubic.cwnd == reduced(2) * MSS


@pytest.mark.parametrize("acked", [1, 2])
def test_cubic_follows_its_curve(acked: int) -> None:
    """Concave, plateau and convex: within a segment and a half of W_cubic, with an ACK for each segment or every two.

    The window takes a round trip to follow the target of W_cubic(t + RTT), which is where W'' is felt.
    """
    cubic = growth("cubic", 1000)
    lose(cubic, 0)
    rtt = 100 * MS
    trace = round_trips(cubic, 0, rtt, 160, acked)
    k = cubic_k(1000, 1000 * BETA)
    assert trace[-1][0] / S > 1.5 * k
    for now, window in trace:
        if now > 2 * rtt:
            assert abs(window - w_cubic(now / S, 1000, 1000 * BETA)) < 1.5


def test_cubic_is_no_slower_than_reno() -> None:
    """Section 4.3: with a short round trip and a small window it grows by alpha a round trip, from W_max on by 1."""
    cubic = growth("cubic", 40)
    lose(cubic, 0)
    alpha = 3 * (1 - BETA) / (1 + BETA)
    window = cubic.cwnd / MSS
    round_trips(cubic, 0, 5 * MS, 10)
    assert cubic.cwnd / MSS == pytest.approx(window + 10 * alpha, rel=0.01)
    while cubic.cwnd < 41 * MSS:
        round_trips(cubic, 0, 5 * MS, 1)
    window = cubic.cwnd / MSS
    round_trips(cubic, 0, 5 * MS, 10)
    assert cubic.cwnd / MSS == pytest.approx(window + 10, rel=0.02)


def test_cubic_after_a_timeout() -> None:
    """Section 4.8: ssthresh by beta; then K = 0 and W_max = cwnd at the stage's start. Reno is faster at first."""
    cubic = growth("cubic", 1000)
    cubic.on_timeout(1000 * MSS, 0)
    assert cubic.ssthresh == 700 * MSS
    cubic.cwnd = 700 * MSS
    now, rtt = 20 * S, 100 * MS
    for t, window in round_trips(cubic, now, rtt, 80):
        if t > now + 2 * rtt:
            reno = 700 + 3 * (1 - BETA) / (1 + BETA) * (t - now) / rtt
            assert abs(window - max(reno, w_cubic((t - now) / S, 700, 700))) < 1.5


def test_cubic_slow_start() -> None:
    """Section 4.10, RFC 5681: what an ACK covers, a segment at most."""
    cubic = growth("cubic", 10, ssthresh=100)
    cubic.on_ack(MSS // 2, 0, 0)
    assert cubic.cwnd == 10 * MSS + MSS // 2
    cubic.on_ack(2 * MSS, 0, 0)
    assert cubic.cwnd == 11 * MSS + MSS // 2


def test_cubic_does_not_count_times_of_an_unused_window() -> None:
    """Section 4.2: t doesn't include them."""
    cubic = growth("cubic", 1000)
    lose(cubic, 0)
    round_trips(cubic, 0, 100 * MS, 20)
    before = cubic.cwnd
    for now in range(2 * S, 60 * S, 100 * MS):
        cubic.on_unused(now)
    round_trips(cubic, 60 * S, 100 * MS, 1)
    assert cubic.cwnd / MSS == pytest.approx(w_cubic(2.1, 1000, 1000 * BETA), abs=3)
    assert cubic.cwnd > before


def _window_after_pauses(of: str, pause_ps: int) -> int:
    """The window in segments at the end of five times of sending, each but the last followed by a pause.

    The pauses are of the ``writer``, or of the ``reader`` while its buffer is full.
    """
    config = TcpConfig(
        variant="sack", growth="cubic", timers="ideal", ack_policy="immediate", habit_idle_restart=False,
        send_buffer=10**7, receive_buffer=400 * MSS,
    )  # fmt: skip
    line = TcpLine((config, config), (MSS, MSS), delay_ps=20 * MS, spacing_ps=MS // 100)
    source, sink = (end.connection for end in line.ends)
    sink.receiver.auto_read = of == "writer"
    sink.listen()
    source.open(0)
    line.run(S)
    line.drop = lambda end, segment: segment.offset == 100 * MSS and source.sender.statistics.retransmits == 0
    if of == "reader":
        source.write(ENDLESS, line.now)
    for k in range(1, 6):
        if of == "writer":
            source.write(400 * MSS, line.now)
            while source.sender.acknowledged < k * 400 * MSS:
                line.run(line.now + MS)
        else:
            for _ in range(400):
                sink.read(10**9, line.now)
                line.run(line.now + MS)
        if k < 5:
            line.run(line.now + pause_ps)
    assert (source.sender.statistics.fast_retransmits, source.sender.statistics.timeouts) == (1, 0)
    return source.sender.growth.cwnd // MSS


@pytest.mark.parametrize("of", ["writer", "reader"])
def test_cubic_does_not_count_pauses(of: str) -> None:
    """Sections 4.2 and 5.8: no ACK comes in a pause of either application, nor does the curve's time go on."""
    short, long = (_window_after_pauses(of, pause_ps) for pause_ps in (2 * S, 20 * S))
    assert abs(long - short) <= 1 and 60 < short < 300


@pytest.mark.parametrize("variant", ["newreno", "sack"])
def test_a_run_follows_the_cubic_curve(variant: str) -> None:
    """One loss at a window of some 230 segments; then the trace of cwnd until it is well beyond that again."""
    pair = Pair(rate_bps=15_000_000, delay_ps=100 * MS)
    pair.forth.drop_data = {230}
    window = 350 * MSS
    tcp = TcpConfig(
        variant=variant, growth="cubic", mss=MSS, ack_policy="immediate", send_buffer=window, receive_buffer=window,
        newreno_exit_flight=False,
    )  # fmt: skip
    pair.run(pair.flow(tcp), 14)
    (lost,) = pair.recorder.times("fast_retransmit")
    trace = pair.recorder.samples["flow1.cwnd"]
    w_max = [cwnd for t, cwnd in trace if t < lost][-1] / MSS
    assert 200 < w_max < 260
    (start,) = [cwnd for t, cwnd in pair.recorder.samples["flow1.ssthresh"] if t >= lost]
    start /= MSS
    # Congestion avoidance begins with the first ACK after the one that ends the recovery.
    recovered = next(t for t, octets in pair.recorder.samples["flow1.una"] if t > lost and octets > 231 * MSS)
    epoch = next(t for t, cwnd in trace if t > recovered and cwnd > start * MSS)
    found = [((t - epoch) / S, cwnd / MSS) for t, cwnd in trace if t > epoch + 2 * S and cwnd < 340 * MSS]
    assert max(abs(cwnd - w_cubic(t, w_max, start)) for t, cwnd in found) < 2
    assert len(found) > 1000 and found[-1][1] > 1.2 * w_max


# ---- Hybla ----


def test_hybla_increments() -> None:
    """Caini and Firrincieli: 2**rho - 1 segments an ACK in slow start, rho**2 / cwnd in congestion avoidance."""
    slow = growth("hybla", 4, ssthresh=1000)
    slow.on_ack(MSS, 100 * MS, 0)
    assert slow.cwnd == (4 + 2**4 - 1) * MSS
    avoiding = growth("hybla", 100)
    avoiding.on_ack(MSS, 100 * MS, 0)
    assert avoiding.cwnd == 100 * MSS + MSS * 4**2 // 100


def test_hybla_starts_with_a_larger_window() -> None:
    """rho times the first window and the first ssthresh."""
    made = growth("hybla", 2, ssthresh=50)
    made.on_established(500 * MS)
    assert (made.cwnd, made.ssthresh) == (40 * MSS, 1000 * MSS)


def test_hybla_with_a_short_round_trip_is_reno() -> None:
    """rho is 1 at least."""
    made = growth("hybla", 4, ssthresh=1000)
    made.on_established(5 * MS)
    made.on_ack(MSS, 5 * MS, 0)
    assert made.cwnd == 5 * MSS


def test_a_queue_does_not_raise_rho() -> None:
    made = growth("hybla", 100)
    made.on_ack(MSS, 50 * MS, 0)
    made.on_ack(MSS, 500 * MS, 0)
    assert made.rho == 2


def test_hybla_stops_slow_start_at_ssthresh() -> None:
    made = growth("hybla", 20, ssthresh=60)
    made.on_ack(MSS, 500 * MS, 0)
    assert made.cwnd == 60 * MSS


def test_hybla_sends_as_fast_as_with_rtt0() -> None:
    """Segments a second with 200 ms are those of Reno with 25 ms: the authors' equation 4."""
    pace = {}
    for name, rtt in (("hybla", 200 * MS), ("reno", 25 * MS)):
        made = growth(name, 10, ssthresh=20)
        made.on_established(rtt)
        trace = round_trips(made, 0, rtt, 10 * S // rtt)
        pace[name] = [next(w for t, w in reversed(trace) if t < at * S) / (rtt / S) for at in (1, 3, 9)]
    assert pace["hybla"] == pytest.approx(pace["reno"], rel=0.1)


# ---- pacing ----


def established(config: TcpConfig, rtt: int, window: int) -> Connection:
    tcp = Connection(config, MSS, 0)
    tcp.open(0)
    options = Options()
    options.mss, options.window_shift = MSS, 8
    tcp.out.clear()
    tcp.receive(Segment(0, 1, SYN | ACK, 65535, 0, 0, options), rtt)
    tcp.receive(Segment(1, 1, ACK, window >> 8, 0, 0, None), rtt)
    tcp.out.clear()
    return tcp


@pytest.mark.parametrize("timers", ["bsd", "ideal"])
def test_a_window_is_spread_over_the_round_trip(timers: str) -> None:
    """Hybla's first window of 20 segments: one every 500 ms / 20."""
    tcp = established(TcpConfig(growth="hybla", mss=MSS, timers=timers), 500 * MS, 1 << 20)
    now = 500 * MS
    tcp.write(ENDLESS, now)
    sent = [(now, segment.seq) for segment in tcp.out]
    while len(sent) < 20:
        tcp.out.clear()
        now = tcp.next_timer()
        tcp.expire(now)
        sent += [(now, segment.seq) for segment in tcp.out]
    assert sent == [((500 + 25 * k) * MS, 1 + MSS * k) for k in range(20)]


def test_pacing_holds_no_ack_back() -> None:
    tcp = established(TcpConfig(growth="hybla", mss=MSS, ack_policy="immediate"), 500 * MS, 1 << 20)
    tcp.write(ENDLESS, 500 * MS)
    tcp.out.clear()
    tcp.receive(Segment(1, 1, ACK, (1 << 20) >> 8, MSS, 0, None), 501 * MS)
    assert [(segment.length, segment.ack) for segment in tcp.out] == [(0, 1 + MSS)]


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno", "sack"])
@pytest.mark.parametrize("name", ["cubic", "hybla"])
def test_every_growth_goes_with_every_recovery(name: str, variant: str) -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=40 * MS)
    pair.forth.drop_data = {30, 31, 52, 53, 54, 60, 100, 101, 120}
    tcp = TcpConfig(variant=variant, growth=name, mss=MSS, send_buffer=60_000, receive_buffer=60_000)
    report = pair.run(pair.flow(tcp, 400_000), 100)
    assert (report.finished, report.octets_delivered, report.bad_octets) == (True, 400_000, 0)
    assert report.retransmits >= 9


@pytest.mark.parametrize(("name", "beyond"), [("cubic", False), ("hybla", False), ("reno", True)])
def test_a_window_that_does_not_limit_the_sender_stays(name: str, beyond: bool) -> None:
    """The receiver's window does; BSD's Reno grows all the same."""
    pair = Pair(rate_bps=100_000_000, delay_ps=40 * MS)
    tcp = TcpConfig(
        growth=name, mss=MSS, send_buffer=90_000, receive_buffer=30_000, initial_ssthresh=5000, round_buffers=False
    )
    pair.run(pair.flow(tcp), 20)
    largest = max(cwnd for _, cwnd in pair.recorder.samples["flow1.cwnd"])
    assert largest > 60_000 if beyond else 30_000 <= largest < 33_000


# ---- registration ----


def test_own_settings_bear_the_name() -> None:
    """A setting of a growth says so in its name, but for the habits of BSD's."""
    for kind in GROWTHS.values():
        for setting in kind.settings:
            assert setting.name.startswith((f"{kind.name}_", "habit_"))
            assert setting in SETTINGS


FIXED = """
from bentpipe.tcp.growth.base import Growth
from bentpipe.declarations import Setting
from bentpipe.tcp.settings import Registration
from bentpipe_hdl.units import COUNT

class Fixed(Growth):
    def __init__(self, config):
        super().__init__(True)
        self.segments = config.fixed_window
    def on_established(self, rtt):
        self.cwnd = self.segments * self.mss
    def on_ack(self, acked, rtt, now):
        pass
    def on_loss(self, in_use, now):
        self.ssthresh = self.cwnd

REGISTRATION = Registration("fixed", 2026, Fixed, "a window that stays",
    (Setting("fixed_window", COUNT.counting("segments").within(1, 100), 4, "The window"),))
"""
USE = """
from bentpipe.experiment.load import load
for flow in load("acts-1flow", ["hosts.tcp.growth=fixed", "hosts.tcp.fixed_window=7"]).flows:
    print(flow.tcp.growth, flow.tcp.fixed_window)
"""


def test_a_growth_is_one_file(tmp_path: Path) -> None:
    """A file beside the others is all that it takes to choose and set it in an experiment."""
    assert bentpipe.__file__
    shutil.copytree(Path(bentpipe.__file__).parent, tmp_path / "bentpipe", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "bentpipe" / "tcp" / "growth" / "fixed.py").write_text(FIXED)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}){USE}"
    plain = {**os.environ, "BENTPIPE_HOSTS": "plain"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=plain)
    assert (done.stderr, done.stdout) == ("", "fixed 7\n")
