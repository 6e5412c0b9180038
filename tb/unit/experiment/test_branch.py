"""Copies of a running network with its hosts."""

from contextlib import contextmanager, nullcontext

import pytest

from bentpipe.experiment.build.hosts import add_hosts
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.load import load
from bentpipe.experiment.run.branch import Branches, check_random
from bentpipe.experiment.run.record import TraceRecorder


@contextmanager
def branches(*settings, name="theory-geo-d-1-k", port=1, at_ps=3 * 10**9):
    experiment = load(name, settings)
    network, nics, vcs = build_network(experiment)
    switch = next(node for node in network.nodes if node.name == "lan")
    gauge = network.monitor_queue(switch, port)
    built = add_hosts(experiment, TraceRecorder(10**12, ()), network, nics, vcs)
    network.trace()
    found = Branches(network, built.engine, gauge)
    found.engine.run(at_ps)
    try:
        yield found, network
    finally:
        network.close()


def onward(found, network, ps=10**9):
    """Return the rest of the run: each cell with its tick."""
    found.engine.run(found.engine.now_ps + ps)
    return network.digests(), found.gauge.counts


def test_copies_with_one_seed_are_the_same_and_with_another_not():
    with branches() as (found, network):
        moment = found.take()
        seen = []
        for seed in ("a", "b", "a", "c"):
            found.give(moment, seed)
            assert found.engine.now_ps == moment.now_ps
            seen.append(onward(found, network))
        assert seen[0] == seen[2]
        assert len({str(each) for each in seen}) == 3


def test_a_copy_of_a_copy_is_another():
    with branches() as (found, network):
        found.give(found.take(), "a")
        found.engine.run(found.engine.now_ps + 10**8)
        again = found.take()
        first = onward(found, network)
        found.give(again, "b")
        assert onward(found, network) != first


def test_a_run_is_as_it_was_behind_copies():
    with branches() as (found, network):
        alone = onward(found, network, 2 * 10**9)
    with branches() as (found, network):
        with found.kept():
            moment = found.take()
            for seed in ("a", "b"):
                found.give(moment, seed)
                onward(found, network)
        assert onward(found, network, 2 * 10**9) == alone
        network.check_conservation()
        network.ledger()


def test_a_cell_that_was_drawn_and_is_to_come_is_drawn_again():
    """The first cell of each copy comes after a geometric gap of its own."""
    with branches("flow.0.load=0.01", at_ps=3 * 10**9) as (found, _):
        moment = found.take()
        came, gaps = found.gauge.counts.came, []
        for seed in range(60):
            found.give(moment, str(seed))
            while found.gauge.counts.came == came:
                found.engine.run(found.engine.now_ps + 707_800)  # a slot
            gaps.append((found.engine.now_ps - moment.now_ps) / 707_800)
        mean = sum(gaps) / len(gaps)
        assert len(set(gaps)) > 30
        assert abs(mean - 102) < 4 * 100 / 60**0.5  # 100 slots, and those on the way


def test_a_phase_that_has_not_shown_is_drawn_again_within_its_period():
    with branches(name="theory-nd-d-1", port=6, at_ps=10**9) as (found, _):
        moment = found.take()
        slots = {}
        for seed in range(20):
            found.give(moment, str(seed))
            now_slot = int((moment.now_ps - 88_475) * 2_396_160_000 // (424 * 10**12))
            for k, flow in enumerate(found.engine.flows):
                app = flow.application
                slots.setdefault(k, set()).add(app.slot)
                assert now_slot < app.slot
                if app.sent == 1:
                    assert app.base <= app.slot < app.base + app.period
        for k, flow in enumerate(found.engine.flows):
            assert (len(slots[k]) > 1) == (flow.application.sent == 1), k


@pytest.mark.parametrize(
    ("settings", "draws"), [((), True), (('flow.0.app="cbr"', "flow.0.load={}"), False)], ids=["slots", "cbr"]
)
def test_it_says_whether_anything_is_drawn(settings, draws):
    if not draws:
        settings = ('flow=[{name="cells",source="source",sink="sink",protocol="udp",app="cbr",block=40,period="9 us"}]',
                    "theory=[]")  # fmt: skip
    expected = nullcontext() if draws else pytest.raises(ValueError, match="nothing can be split")
    with branches(*settings) as (found, _), expected:
        check_random(found.engine)
