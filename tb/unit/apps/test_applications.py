"""Applications over TCP: when they write, how much, and what becomes of blocks that the socket can't take."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean

import pytest

from bentpipe.apps.app import Application
from bentpipe.apps.cbr import Cbr
from bentpipe.apps.draws import Distribution, RandomStream
from bentpipe.apps.onoff import OnOff
from bentpipe.apps.random_blocks import RandomBlocks
from bentpipe.apps.sessions import SessionModel, Sessions
from bentpipe.apps.ttcp import Ttcp
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import HELD
from bentpipe.hosts.flow import FlowReport
from bentpipe.tcp.config import TcpConfig
from models.pair import Pair

US = 10**6
MS = 10**9
S = 10**12
SMALL = TcpConfig(send_buffer=20_000, receive_buffer=20_000, round_buffers=False)
"""Over 20 ms each way: 20 kB a round trip of 40 ms, 4 Mb/s."""


def run(app: Application, tcp: TcpConfig | None = None, delay_ps: int = MS, seconds: float = 60) -> FlowReport:
    pair = Pair(delay_ps=delay_ps)
    return pair.run(pair.flow(tcp or TcpConfig(nagle=False), app=app), seconds)


def data_times(app: Application, seconds: float) -> list[tuple[int, int]]:
    """Return when the source's segments leave, and their payloads; without delays and costs."""
    pair = Pair(delay_ps=MS, keep_log=True)
    pair.run(pair.flow(TcpConfig(nagle=False, initial_cwnd=20), app=app), seconds)
    found = []
    for time, nic, _, head in pair.network.log or []:
        length = int.from_bytes(head[10:12], "big") - 20 - (head[40] >> 4) * 4
        if nic == 0 and length:
            found.append((time, length))
    return found


def test_cbr_writes_a_block_every_period() -> None:
    times = data_times(Cbr(5000, 10 * MS, duration_ps=50 * MS), 2)
    assert times == [(2 * MS + i * 10 * MS, 5000) for i in range(5)]  # connected after a round trip


def test_cbr_writes_several_blocks_a_period() -> None:
    times = data_times(Cbr(5000, 20 * MS, count=3, duration_ps=50 * MS), 2)
    assert times == [(2 * MS + i * 20 * MS, 5000) for i in range(3) for _ in range(3)]


def test_the_last_block_is_what_is_left() -> None:
    times = data_times(Cbr(5000, 10 * MS, size_octets=12_000), 2)
    assert [length for _, length in times] == [5000, 5000, 2000]
    report = run(Cbr(5000, 10 * MS, size_octets=12_000))
    assert (report.finished, report.octets_delivered) == (True, 12_000)


def test_late_blocks_are_written_in_turn() -> None:
    """40 blocks of 10 kB in 0.4 s are 8 Mb/s, the window lets 4 Mb/s through: later and later, but all of them."""
    report = run(Cbr(10_000, 10 * MS, size_octets=400_000), SMALL, delay_ps=20 * MS)
    facts = report.facts
    assert (report.finished, report.octets_delivered) == (True, 400_000)
    assert (facts["blocks_written"], facts["blocks_skipped"]) == (40, 0)
    assert 30 <= facts["blocks_late"] <= 38  # the first two fit into the send buffer
    sent_in = report.end_ps - report.start_ps
    assert sent_in > 0.75 * S and facts["late_max_ps"] == pytest.approx(sent_in - 0.39 * S, abs=0.15 * S)
    assert 0.5 * sent_in < facts["blocked_ps"] < sent_in


def test_late_blocks_are_left_out() -> None:
    report = run(Cbr(10_000, 10 * MS, duration_ps=400 * MS, skip_late=True), SMALL, delay_ps=20 * MS)
    facts = report.facts
    assert facts["blocks_late"] == facts["late_max_ps"] == 0
    assert facts["blocks_written"] + facts["blocks_skipped"] == 40
    assert 10 < facts["blocks_skipped"] < 30
    assert report.octets_delivered == facts["octets_written"] == 10_000 * int(facts["blocks_written"])


def test_what_is_late_at_the_end_is_left_out() -> None:
    report = run(Cbr(10_000, 10 * MS, duration_ps=400 * MS), SMALL, delay_ps=20 * MS)
    facts = report.facts
    assert report.finished and report.end_ps < 0.6 * S
    assert facts["blocks_written"] + facts["blocks_skipped"] == 40 and facts["blocks_skipped"] > 10
    assert report.octets_delivered == 10_000 * int(facts["blocks_written"])


def test_a_rate_that_fits_waits_for_nothing() -> None:
    report = run(Cbr(10_000, 50 * MS, duration_ps=2 * S), TcpConfig(nagle=False), delay_ps=5 * MS)
    assert report.octets_delivered == 40 * 10_000
    assert report.facts == {
        "blocks_written": 40,
        "octets_written": 400_000,
        "blocks_late": 0,
        "blocks_skipped": 0,
        "late_max_ps": 0,
        "blocked_ps": 0,
    }


def test_sessions_write_their_blocks_at_once() -> None:
    """Two blocks each session, sessions 20 to 40 ms apart."""
    block, gap = Distribution("constant", 3000), Distribution("uniform", 20 * MS, 40.0 * MS)
    model = SessionModel(block, gap, Distribution("constant", 2))
    app = Sessions(model, RandomStream(1, 0), duration_ps=2 * S)
    times = data_times(app, 5)
    starts = [time for time, _ in times]
    assert len(times) > 100 and {length for _, length in times} == {3000} and starts[::2] == starts[1::2]
    gaps = [b - a for a, b in pairwise(starts[::2])]
    assert 20 * MS <= min(gaps) < 22 * MS and 38 * MS < max(gaps) <= 40 * MS


def test_random_blocks_keep_within_their_bounds() -> None:
    app = RandomBlocks((1000, 4000), (5 * MS, 15 * MS), RandomStream(1, 0), duration_ps=4 * S)
    times = data_times(app, 10)
    gaps = [b - a for (a, _), (b, _) in pairwise(times)]
    sizes = [length for _, length in times]
    assert len(times) > 350
    assert 1000 <= min(sizes) < 1100 and 3900 < max(sizes) <= 4000 and mean(sizes) == pytest.approx(2500, rel=0.1)
    assert 5 * MS <= min(gaps) < 5.5 * MS and 14.5 * MS < max(gaps) <= 15 * MS
    assert mean(gaps) == pytest.approx(10 * MS, rel=0.1)


def test_random_numbers_depend_on_seed_and_flow_only() -> None:
    def draws(seed: int, flow: int) -> list[int]:
        source = RandomStream(seed, flow)
        return [source.uniform(0, 10**6) for _ in range(20)]

    assert draws(1, 2) == draws(1, 2)
    assert len({tuple(draws(seed, flow)) for seed in range(3) for flow in range(3)}) == 9


def test_distributions() -> None:
    source = RandomStream(7, 7)
    assert {source.uniform(3, 5) for _ in range(100)} == {3, 4, 5}
    drawn = [source.exponential(10**6) for _ in range(20_000)]
    assert min(drawn) >= 1 and mean(drawn) == pytest.approx(10**6, rel=0.03)
    assert sum(d > 10**6 for d in drawn) / len(drawn) == pytest.approx(0.3679, abs=0.015)


def test_fixed_on_and_off_times() -> None:
    """2000 octets at 8 Mb/s are one each 2 ms: 10 in 20 ms, then 30 ms nothing."""
    app = OnOff(2000, 8_000_000, 20 * MS, 30 * MS, "fixed", RandomStream(1, 0), duration_ps=150 * MS)
    times = [time - 2 * MS for time, _ in data_times(app, 2)]
    assert times == [burst * 50 * MS + block * 2 * MS for burst in range(3) for block in range(10)]
    assert app.facts(0)["bursts"] == 4  # the fourth would begin at the end


def test_exponential_on_times_give_the_rate_in_the_mean() -> None:
    app = OnOff(2000, 8_000_000, 100 * MS, 100 * MS, "exponential", RandomStream(1, 0), duration_ps=60 * S)
    report = run(app, delay_ps=100 * US, seconds=70)
    assert report.octets_delivered * 8 / 60 == pytest.approx(4e6, rel=0.15)
    assert app.facts(0)["bursts"] == pytest.approx(300, rel=0.15)


def test_ttcp_ends_after_whole_writes() -> None:
    report = run(Ttcp(None, 10_000, duration_ps=S), SMALL, delay_ps=20 * MS)
    assert report.finished and report.octets_delivered % 10_000 == 0
    assert 1.0 * S < report.end_ps < 1.2 * S
    # 20 kB a round trip, but the first segment waits for a delayed ACK.
    assert report.octets_delivered == pytest.approx(0.8 * 20_000 / 0.04, rel=0.05)


def test_ttcp_with_a_size_is_cut_by_its_duration() -> None:
    report = run(Ttcp(10**7, 10_000, duration_ps=S), SMALL, delay_ps=20 * MS)
    assert report.finished and 350_000 < report.octets_delivered < 600_000


def test_an_application_serves_one_flow() -> None:
    pair = Pair()
    app = Ttcp(1)
    pair.flow(TcpConfig(), app=app)
    with pytest.raises(ValueError, match="flow flow2: its application serves another flow already"):
        pair.flow(TcpConfig(), app=app)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cbr(0, 1), "block_octets must be at least 1"),
        (lambda: Cbr(1, 0), "period_ps must be at least 1"),
        (lambda: Cbr(1, 1, size_octets=0), "size_octets must be at least 1 or None"),
        (
            lambda: RandomBlocks((2, 1), (1, 1), RandomStream(1, 1)),
            "block_octets has a lower bound greater than the upper bound: 2 and 1",
        ),
        (lambda: OnOff(1, 1, 1, 1, "sometimes", RandomStream(1, 1)), "times must be one of exponential, fixed"),
        (lambda: Ttcp(1, duration_ps=-1), "duration_ps must not be negative"),
    ],
)
def test_settings_out_of_range(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def groups(serial: bool) -> list[tuple[int, int]]:
    """Start and end of three flows in a group, the second with 100 ms of delay."""
    pair = Pair(delay_ps=10 * MS, source=HostConfig(name="source"))
    flows = [pair.flow(TcpConfig(), app=Ttcp(1000 * (i + 1)), start_ps=HELD) for i in range(3)]
    flows[1].delay_ps = 100 * MS
    pair.engine.start(pair.engine.add_group([*flows], serial), S)
    now = pair.engine.run(20 * S)
    assert all(flow.finished for flow in flows)
    return [(report.start_ps, report.end_ps) for report in (flow.report(now) for flow in flows)]


def test_a_parallel_group_starts_together() -> None:
    assert [start for start, _ in groups(False)] == [S, S + 100 * MS, S]


def test_a_serial_group_starts_one_after_another() -> None:
    """The next starts when both ends have closed: a round trip after the last octet came."""
    first, second, third = groups(True)
    assert first[0] == S
    assert second[0] >= first[1] + 100 * MS + 10 * MS and third[0] >= second[1] + 10 * MS
    assert second[0] < first[1] + 200 * MS and third[0] < second[1] + 100 * MS


def test_groups_in_groups() -> None:
    pair = Pair(delay_ps=10 * MS)
    a, b, c, d = (pair.flow(TcpConfig(), app=Ttcp(1000), start_ps=HELD) for _ in range(4))
    engine = pair.engine
    inner = engine.add_group([b, c], False)
    inner.delay_ps = 300 * MS
    engine.start(engine.add_group([a, inner, d], True))
    now = engine.run(20 * S)
    starts = [flow.report(now).start_ps for flow in (a, b, c, d)]
    assert starts[0] == 0 and starts[1] == starts[2] > 300 * MS and starts[3] > starts[2]
