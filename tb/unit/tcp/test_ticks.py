"""Tests of the cost of a host's ticks, and that they come as if every connection were asked at each; of ports that are
free again.
"""

from __future__ import annotations

import pytest

from bentpipe.apps.app import Application
from bentpipe.apps.draws import Distribution
from bentpipe.apps.http import Http
from bentpipe.errors import ExperimentFailed
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.machine import remote_key
from bentpipe.tcp.config import TcpConfig
from models.pair import Pair

US = 10**6
MS = 10**9
S = 10**12


def asked(pair: Pair, until_s: int) -> int:
    """Return how often ends were asked until then."""
    pair.engine.run(until_s * S)
    return pair.source.ticks.asked + pair.sink.ticks.asked


def test_a_thousand_closed_connections_cost_nothing() -> None:
    """A minute after the last has closed, none is in a table, and no tick asks for any."""
    pair = Pair(delay_ps=MS)
    flows = [pair.flow(TcpConfig(), 100, start_ps=i * 10 * MS) for i in range(1000)]
    pair.flow(TcpConfig(), 100, start_ps=1000 * S)  # goes on for so long
    before = asked(pair, 80)
    assert all(flow.finished for flow in flows) and 0 < before < 20 * 1000
    assert len(pair.source.connections) == len(pair.sink.connections) == 1
    assert asked(pair, 900) == before
    assert pair.source.ticks.count > 1700


def test_an_idle_connection_costs_nothing() -> None:
    pair = Pair(delay_ps=MS)
    for _ in range(100):
        pair.flow(TcpConfig(), app=Application())
    before = asked(pair, 10)
    assert asked(pair, 1000) == before
    assert len(pair.source.connections) == 100


def test_a_connection_in_time_wait_is_asked_twice() -> None:
    """Once what it waits for, and once when a minute is over."""
    pair = Pair(delay_ps=MS)
    first = pair.flow(TcpConfig(), 100)
    pair.flow(TcpConfig(), 100, start_ps=1000 * S)
    before = asked(pair, 2)
    assert first.finished and len(pair.source.connections) == 2
    assert asked(pair, 50) == before
    assert asked(pair, 70) <= before + 4
    assert len(pair.source.connections) == 1


@pytest.mark.parametrize("timers", ["bsd", "ideal"])
def test_nothing_depends_on_being_asked(timers: str) -> None:
    """Lost and delayed segments, windows that shut, connections that time out: the same segments at the same times as
    where every end is asked at every tick, as BSD does."""

    def sent(all_asked: bool) -> tuple[list[tuple[int, int, int, bytes]], int]:
        cost = {"send_cost_ps": 10**8, "receive_cost_ps": 10**8}
        pair = Pair(
            rate_bps=5_000_000,
            delay_ps=20 * MS,
            source=HostConfig(name="source", **cost),
            sink=HostConfig(name="sink", **cost),
            seed=11,
            keep_log=True,
        )
        pair.forth.loss = pair.back.loss = 0.15
        tcp = TcpConfig(timers=timers, send_buffer=30_000, receive_buffer=30_000, keepalive=True)
        flows = [pair.flow(tcp, 20_000, start_ps=i * 300 * MS) for i in range(12)]

        def ask(now: int) -> None:
            for flow in flows if all_asked else ():
                flow.source.use(now)
                flow.sink.use(now)

        pair.engine.run(300 * S, ask)
        return pair.network.log or [], pair.source.ticks.asked + pair.sink.ticks.asked

    lazy, few = sent(False)
    eager, many = sent(True)
    assert lazy == eager and len(lazy) > 100
    assert few < many / 2


def test_a_late_segment_of_a_closed_connection_is_reset() -> None:
    """It takes the processor as any other does."""
    slow = HostConfig(name="sink", send_cost_ps=300 * US, receive_cost_ps=200 * US)
    pair = Pair(delay_ps=MS, sink=slow, keep_log=True)
    flow = pair.flow(TcpConfig(), 60)
    pair.flow(TcpConfig(), 100, start_ps=1000 * S)
    pair.engine.run(200 * S)
    assert flow.finished and pair.sink.no_connection == 0
    data = next(head for _, nic, _, head in pair.network.log or [] if nic == 0 and len(head) == 48 + 60)
    pair.network.send(0, pair.forth_vc, data)
    pair.engine.run(201 * S)
    time, nic, _, head = (pair.network.log or [])[-1]
    assert (time, nic, head[41]) == (200 * S + MS + 500 * US, 1, 0x04)
    assert pair.sink.no_connection == 1


def test_ports_come_round() -> None:
    """Ports of closed connections are given again; that of an open one is not."""
    pair = Pair(delay_ps=MS)
    kept = pair.flow(TcpConfig(), app=Application())
    flows = [pair.flow(TcpConfig(), 100) for _ in range(3)]
    pair.flow(TcpConfig(), 100, start_ps=1000 * S)
    pair.engine.run(100 * S)
    assert [flow.source.port for flow in (kept, *flows)] == [1024, 1025, 1026, 1027]
    pair.source.ports(65535 - 1029)
    later = [pair.flow(TcpConfig(), 100) for _ in range(4)]
    assert [flow.source.port for flow in later] == [65535, 1025, 1026, 1027]


def test_no_port_is_free() -> None:
    pair = Pair(delay_ps=MS)
    flow = pair.flow(TcpConfig(), app=Application())
    for port in range(1024, 65536):
        pair.source.connections[remote_key(pair.sink.address, 5001, port)] = flow.source
    with pytest.raises(ExperimentFailed, match="host source has no free port"):
        pair.flow(TcpConfig(), 100)


def test_what_many_short_connections_leave_is_their_counts() -> None:
    pair = Pair(delay_ps=MS)
    fixed = Distribution("constant", 1000)
    flow = pair.flow(TcpConfig(), app=Http(fixed, fixed, Distribution("constant", 100 * MS), 1, 2000, False, 1, 0))
    pair.engine.run(200 * S)
    # What is open, or in TIME_WAIT at the server for a minute: 60 s of 104 ms each.
    assert len(pair.source.connections) == pytest.approx(60 / 0.104, abs=10) and len(pair.sink.connections) <= 1
    report = flow.report(200 * S)
    responses = int(report.facts["http_responses"])
    assert responses > 1800 and report.octets_delivered == 1000 * responses
