"""Requests and responses: their times, their connections, what is drawn, and what breaks."""

from __future__ import annotations

from math import ceil
from statistics import fmean

import pytest

from bentpipe.apps.draws import Distribution
from bentpipe.apps.http import Http
from bentpipe.hosts.flow import FlowReport
from bentpipe.tcp.config import TcpConfig
from models.pair import Pair

US = 10**6
MS = 10**9
S = 10**12
SYN, FIN = 0x02, 0x01


def fixed(value: int) -> Distribution:
    return Distribution("constant", value)


def http(
    requests: int = 5,
    kept: bool = False,
    users: int = 1,
    response: Distribution | None = None,
    think: Distribution | None = None,
    duration_ps: int = 0,
) -> Http:
    return Http(fixed(300), response or fixed(5000), think, users, requests, kept, 1, 0, duration_ps)


def fetch(pair: Pair, app: Http, seconds: float = 400) -> FlowReport:
    return pair.run(pair.flow(TcpConfig(ack_policy="immediate"), app=app), seconds)


def opened(pair: Pair) -> list[tuple[int, int, int]]:
    """Return when the sink sent a SYN, and its two ports."""
    return [
        (time, int.from_bytes(head[28:30], "big"), int.from_bytes(head[30:32], "big"))
        for time, nic, _, head in pair.network.log or []
        if nic == 1 and head[41] == SYN
    ]


def test_a_connection_each_takes_two_round_trips() -> None:
    """One for the SYN, one for request and response, which fits into a segment; the next request comes at once."""
    pair = Pair(delay_ps=30 * MS, keep_log=True)
    report = fetch(pair, http(5))
    assert report.facts == {
        "http_requests": 5,
        "http_responses": 5,
        "http_failed": 0,
        "http_waiting": 0,
        "http_mean_ps": 120 * MS,
        "http_median_ps": 120 * MS,
        "http_p95_ps": 120 * MS,
        "http_p99_ps": 120 * MS,
        "http_max_ps": 120 * MS,
    }
    syns = opened(pair)
    assert [time for time, _, _ in syns] == [i * 120 * MS for i in range(5)]
    assert {port for _, _, port in syns} == {80} and len({port for _, port, _ in syns}) == 5
    assert (report.finished, report.octets_delivered, report.bad_octets, report.error) == (True, 25_000, 0, "")
    assert (report.start_ps, report.end_ps) == (0, 600 * MS)


def test_requests_without_a_response_are_waiting() -> None:
    """From some segment on nothing comes to the two users any more, each of which waits."""
    pair = Pair(delay_ps=30 * MS)
    pair.forth.drop = set(range(8, 1000))
    facts = fetch(pair, http(100, users=2, kept=True), 1.0).facts
    counts = [facts[f"http_{name}"] for name in ("requests", "responses", "failed", "waiting")]
    assert counts[0] == sum(counts[1:]) and counts[1] > 0 and counts[2:] == [0, 2]


def test_a_kept_connection_takes_one_round_trip_but_for_the_first() -> None:
    pair = Pair(delay_ps=30 * MS, keep_log=True)
    report = fetch(pair, http(5, kept=True))
    assert len(opened(pair)) == 1
    assert (report.facts["http_median_ps"], report.facts["http_max_ps"]) == (60 * MS, 120 * MS)
    assert report.facts["http_mean_ps"] == (120 + 4 * 60) * MS // 5
    assert (report.finished, report.octets_delivered) == (True, 25_000)


def test_the_response_takes_its_time_on_the_line() -> None:
    """At an octet a microsecond, with 48 octets of headers each: two SYNs with 8 of options, the last ACK of the
    handshake, the request, its ACK, the response."""
    report = fetch(Pair(rate_bps=8_000_000, delay_ps=30 * MS), http(1))
    assert report.facts["http_max_ps"] == 120 * MS + (2 * 56 + 48 + 348 + 48 + 5048) * US


def test_the_server_closes_first() -> None:
    pair = Pair(delay_ps=30 * MS, keep_log=True)
    fetch(pair, http(1))
    ends = [nic for _, nic, _, head in pair.network.log or [] if head[41] & FIN]
    assert ends == [0, 1]


def test_users_think_before_each_request() -> None:
    pair = Pair(delay_ps=30 * MS, keep_log=True)
    fetch(pair, http(4, think=fixed(500 * MS)))
    assert [time for time, _, _ in opened(pair)] == [500 * MS + i * 620 * MS for i in range(4)]


def test_users_ask_independently() -> None:
    pair = Pair(delay_ps=30 * MS, keep_log=True)
    report = fetch(pair, http(9, users=3, think=fixed(500 * MS)))
    assert [time for time, _, _ in opened(pair)] == [500 * MS + i // 3 * 620 * MS for i in range(9)]
    assert report.facts["http_responses"] == 9


def fetched(pair: Pair) -> list[int]:
    """Octets of the responses, connection by connection."""
    sizes: dict[int, int] = {}
    for _, nic, _, head in pair.network.log or []:
        if nic == 0:
            port = int.from_bytes(head[30:32], "big")
            sizes[port] = sizes.get(port, 0) + int.from_bytes(head[10:12], "big") - 20 - (head[40] >> 4) * 4
    return [*sizes.values()]


def test_what_a_user_draws_does_not_depend_on_the_network() -> None:
    """Over a long way the same objects are asked for, one after another, as over a short one."""
    found = []
    for delay_ps in (5 * MS, 50 * MS):
        pair = Pair(rate_bps=100_000_000, delay_ps=delay_ps, keep_log=True)
        fetch(pair, http(0, response=Distribution("pareto", 1000, 1.5, 10**6), duration_ps=4 * S))
        found.append(fetched(pair))
    near, far = found
    assert 10 < len(far) < len(near) and near[: len(far)] == far and len(set(far)) > 10


def test_users_draw_each_their_own() -> None:
    first, second = http(users=2).users
    assert [first.draws.uniform(1, 10**6) for _ in range(5)] != [second.draws.uniform(1, 10**6) for _ in range(5)]


def test_the_figures_are_those_of_the_responses() -> None:
    app = http(97, response=Distribution("exponential", 20_000), think=Distribution("exponential", 100 * MS), users=4)
    report = fetch(Pair(rate_bps=10_000_000, delay_ps=10 * MS), app)
    times = sorted(app.times)
    assert len(times) == 97 == report.facts["http_responses"]
    for key, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert report.facts[f"http_{key}_ps"] == times[ceil(share * 97) - 1]
    assert report.facts["http_mean_ps"] == pytest.approx(fmean(times), abs=1)


def test_no_user_asks_after_the_duration() -> None:
    pair = Pair(delay_ps=30 * MS, keep_log=True)
    report = fetch(pair, http(0, duration_ps=S))
    assert report.finished and [time for time, _, _ in opened(pair)] == [i * 120 * MS for i in range(9)]


def test_a_request_whose_connection_breaks_has_failed() -> None:
    """A SYN is lost each of the three times that it is sent; after 75 s the user asks anew."""
    pair = Pair(delay_ps=30 * MS, keep_log=True)
    pair.back.drop = {0, 1, 2}
    report = fetch(pair, http(2))
    assert (report.facts["http_requests"], report.facts["http_responses"], report.facts["http_failed"]) == (2, 1, 1)
    assert report.finished and report.error == "timed out"
    first, *_, last = opened(pair)
    assert 74 * S < last[0] < 77 * S and first[1] != last[1]


@pytest.mark.parametrize("kept", [False, True])
def test_losses_do_not_change_what_is_delivered(kept: bool) -> None:
    pair = Pair(rate_bps=10_000_000, delay_ps=10 * MS, seed=4)
    pair.forth.loss = pair.back.loss = 0.05
    report = fetch(pair, http(40, kept, 3, fixed(30_000)))
    responses = int(report.facts["http_responses"])
    assert responses + int(report.facts["http_failed"]) == 40 and responses > 35
    assert report.octets_delivered >= responses * 30_000 and report.bad_octets == 0
    assert report.retransmits > 0


def test_settings_out_of_range() -> None:
    with pytest.raises(ValueError, match="users must be at least 1"):
        http(users=0)
