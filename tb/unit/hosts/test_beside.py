"""A network with a thread of its own beside its hosts carries the same cells, and everything is the same as in one."""

from typing import Any

import pytest

from bentpipe.errors import ExperimentFailed
from bentpipe.experiment.build.hosts import build
from bentpipe.experiment.load import load
from bentpipe.experiment.run.record import TraceRecorder
from bentpipe.hosts import engine as engines
from bentpipe.hosts.engine import BesideChoice
from models.beside import NAMES, played

MS = 10**9
SHORT = ("flow.0.size=700 kB", "flow.1.size=300 kB", "flow.2.size=200 kB", "hosts.tcp.window=64 KiB")


def check(settings, until_ms, save_at=-1, name="lan-3flows"):
    experiment = load(name, settings)
    expected, _ = played(experiment, until_ms * MS, 1)
    found, ran_ahead = played(experiment, until_ms * MS, 2, save_at)
    for one, other in zip(expected, found, strict=True):
        for what, a, b in zip(NAMES, one, other, strict=True):
            assert a == b, what
    return expected, ran_ahead


def test_flows_that_end_and_a_spread_of_costs():
    settings = (*SHORT, "hosts.cost_spread=0.3", "network.lines.*.ber=1e-7")
    expected, ran_ahead = check(settings, 3000)
    assert ran_ahead
    assert all(flow["finished"] for flow in expected[-1][4])


def test_a_run_that_is_resumed_in_one_thread_and_whose_interface_queues_are_short():
    assert check(("hosts.interface_queue=2", "hosts.tcp.ack_policy=immediate"), 150, save_at=1)[1]


def test_hosts_that_cost_nothing_stay_in_one_thread():
    assert not check(("hosts.cost=0 us",), 50)[1]


def running(settings=()):
    experiment = load("lan-3flows", settings)
    built: Any = build(experiment, TraceRecorder(experiment.record.interval_ps, experiment.record.what))
    built.network.threads, built.engine.choice.is_fixed = 2, True
    return built


@pytest.mark.plain_hosts
def test_an_error_of_a_host_while_the_network_is_ahead():
    built = running()
    try:
        built.engine.run(100 * MS)
        assert built.network.ran_ahead

        class Broken(engines.FlowOrGroup):
            def fire(self, now):
                raise ExperimentFailed("broken")

        built.engine.start(Broken("broken", built.engine.scheduler, 0), 130 * MS)
        with pytest.raises(ExperimentFailed):
            built.engine.run(200 * MS)
        assert built.network.run(200 * MS) is not None  # it can be run by itself again
        built.network.check_conservation()
    finally:
        built.close()


@pytest.mark.parametrize(("beside_s", "other_s"), [(1.0, 2.0), (2.0, 1.0)])
def test_the_faster_way_is_chosen(monkeypatch, beside_s, other_s):
    clock = [0.0]
    monkeypatch.setattr(engines.time, "perf_counter", lambda: clock[0])
    choice = BesideChoice()
    took = []
    for _ in range(400):
        beside = choice.begin()
        took.append(beside)
        clock[0] += beside_s if beside else other_s
        choice.end(50 * MS)
    chosen = took.count(beside_s < other_s) / len(took)
    assert 0.8 < chosen < 1
