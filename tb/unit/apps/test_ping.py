"""ping: round trips that are the sums of what lies on the way, and what becomes of lost ones."""

from __future__ import annotations

from statistics import fmean, pstdev

import pytest

from bentpipe.apps.ping import Ping
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.udp import UdpReport
from models.pair import Pair

US = 10**6
MS = 10**9
S = 10**12
RATE = 8_000_000
"""An octet a microsecond."""


def ping(pair: Pair, app: Ping, seconds: float = 100) -> UdpReport:
    flow = pair.engine.add_udp_flow("flow", pair.source, pair.sink, pair.forth_vc, app, sink_vc=pair.back_vc)
    return flow.report(pair.engine.run(round(seconds * S)))


def test_a_round_trip_is_the_sum_of_its_delays() -> None:
    """Both ways 92 octets (LLC 8, IP 20, UDP 8, 56) on the line and 30 ms; four times the processor."""
    pair = Pair(
        rate_bps=RATE,
        delay_ps=30 * MS,
        source=HostConfig(name="source", send_cost_ps=100 * US, receive_cost_ps=200 * US),
        sink=HostConfig(name="sink", send_cost_ps=400 * US, receive_cost_ps=800 * US),
    )
    report = ping(pair, Ping(56, S, 5))
    rtt = 2 * (92 * US + 30 * MS) + (100 + 200 + 400 + 800) * US
    assert report.facts == {
        "ping_sent": 5,
        "ping_received": 5,
        "ping_lost": 0,
        "ping_under_way": 0,
        "ping_min_ps": rtt,
        "ping_mean_ps": rtt,
        "ping_max_ps": rtt,
        "ping_mdev_ps": 0,
    }
    assert (report.finished, report.octets_delivered, report.bad_octets) == (True, 5 * 56, 0)
    assert pair.recorder.samples["flow.rtt"] == [(i * S + rtt, rtt) for i in range(5)]


def test_the_packets_are_echoed_as_they_came() -> None:
    """To port 7 and from it, with the same payload and its checksum."""
    pair = Pair(delay_ps=MS, keep_log=True)
    ping(pair, Ping(100, S, 2))
    (ask, answer), *_ = zip(pair.network.log or [], (pair.network.log or [])[1:], strict=False)
    assert (ask[1], answer[1]) == (0, 1)
    assert ask[3][28:32] == answer[3][30:32] + answer[3][28:30] and ask[3][30:32] == b"\0\x07"
    assert ask[3][36:] == answer[3][36:] and len(ask[3]) == 128


def test_lost_requests_and_replies_are_counted_once() -> None:
    pair = Pair(delay_ps=MS)
    pair.forth.drop = {1, 4}
    pair.back.drop = {0, 7}
    report = ping(pair, Ping(56, 10 * MS, 12))
    assert (report.facts["ping_sent"], report.facts["ping_received"], report.facts["ping_lost"]) == (12, 8, 4)
    assert (report.datagrams_sent, report.datagrams_lost) == (12, 2)
    assert report.finished and pair.engine.now_ps == 110 * MS + 2 * S  # after the linger


def test_the_figures_are_those_of_the_round_trips() -> None:
    """Against other traffic's queue; duplicates are no replies."""
    pair = Pair(rate_bps=RATE, delay_ps=MS, seed=3)
    pair.forth.reordering, pair.forth.reorder_ps = 0.5, 3 * MS
    pair.back.duplication = 0.5
    report = ping(pair, Ping(200, 20 * MS, 50))
    found = [value for _, value in pair.recorder.samples["flow.rtt"]]
    assert len(found) == report.facts["ping_received"] == 50
    assert (report.facts["ping_min_ps"], report.facts["ping_max_ps"]) == (min(found), max(found))
    assert report.facts["ping_mean_ps"] == pytest.approx(fmean(found), abs=1)
    assert report.facts["ping_mdev_ps"] == pytest.approx(pstdev(found), rel=1e-6)
    assert max(found) - min(found) == 3 * MS


def test_a_slow_processor_sends_each_request_by_itself() -> None:
    """7 ms a request, one due each 5 ms: the n-th waits n times 2 ms longer, and none are lumped together."""
    pair = Pair(delay_ps=MS, source=HostConfig(name="source", send_cost_ps=7 * MS), keep_log=True)
    report = ping(pair, Ping(56, 5 * MS, 6))
    sent = [time for time, nic, *_ in pair.network.log or [] if nic == 0]
    assert sent == [7 * MS * (i + 1) for i in range(6)]
    assert (report.facts["ping_sent"], report.facts["ping_lost"], report.datagrams_sent) == (6, 0, 6)


def test_it_stops_after_its_duration() -> None:
    report = ping(Pair(delay_ps=MS), Ping(56, 100 * MS, 0, S))
    assert (report.finished, report.facts["ping_sent"]) == (True, 10)


def test_what_is_under_way_has_no_reply_yet() -> None:
    """One request of eleven was lost, and one reply; neither end can know of the last ones."""
    pair = Pair(delay_ps=300 * MS)
    pair.forth.drop = {7}
    pair.back.drop = {5}
    report = ping(pair, Ping(56, 100 * MS), 1.05)
    counts = [report.facts[f"ping_{name}"] for name in ("sent", "received", "lost", "under_way")]
    assert (report.finished, counts) == (False, [11, 5, 2, 4])


def test_what_waits_for_processors_is_under_way() -> None:
    """Requests come faster than either host's processor works: none is lost, wherever it waits."""
    slow = HostConfig(name="source", send_cost_ps=15 * MS, receive_cost_ps=3 * MS)
    pair = Pair(delay_ps=MS, source=slow, sink=HostConfig(name="sink", send_cost_ps=20 * MS, receive_cost_ps=12 * MS))
    flow = pair.engine.add_udp_flow("f", pair.source, pair.sink, pair.forth_vc, Ping(56, 10 * MS), sink_vc=pair.back_vc)
    for k in range(1, 40):
        facts = flow.report(pair.engine.run(k * 17 * MS)).facts
        assert facts["ping_lost"] == 0 and facts["ping_under_way"] == facts["ping_sent"] - facts["ping_received"]
    assert facts["ping_received"] > 2


@pytest.mark.parametrize(("octets", "interval", "count"), [(23, 1, 1), (56, 0, 1), (56, 1, -1)])
def test_settings_out_of_range(octets: int, interval: int, count: int) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        Ping(octets, interval, count)
