"""The estimator of rare losses, over a model of a queue of which all is known."""

import io
import random
from collections import Counter
from types import SimpleNamespace

import pytest

from bentpipe.errors import ConfigError, ExperimentFailed
from bentpipe.experiment.build.hosts import rehearse
from bentpipe.experiment.load import load, load_cases
from bentpipe.experiment.run.splitting import Splitting, choose_levels, grow, starts
from bentpipe.experiment.run.state import StatePickler
from bentpipe.report.verdict import _did
from bentpipe.results.splitting import (
    DELAY_METRICS,
    LOSS_METRICS,
    SplittingLevel,
    Tree,
    interval,
    of_delays,
    split_figures,
    sum_up_trees,
)
from bentpipe.results.tables import splitting_columns, splitting_text
from bentpipe_hdl.ticks import first_tick
from models.queueing import geo_d_1_k_late, geo_d_1_k_loss, geo_d_1_k_reach, nd_d_1_k_loss
from models.split_queue import NEVER, GeoQueue, PhaseQueue, grown

LOAD, SERVICE, PLACES = 0.11, 4, 6
LOSS = geo_d_1_k_loss(LOAD, SERVICE, PLACES)  # 4e-5
LEVELS = (2, 4, 6)


def batch(seed):
    return grown(GeoQueue(LOAD, SERVICE, PLACES, seed), seed, cycles=400, effort=60, levels=LEVELS)


def test_the_model_loses_what_theory_says():
    walk = GeoQueue(0.2, SERVICE, 3, "long")
    walk.go(0, False, 500_000)
    counts = walk.counts()
    assert counts.lost / counts.came == pytest.approx(geo_d_1_k_loss(0.2, SERVICE, 3), rel=0.06)
    heights = walk.heights()
    shares = [sum(heights[k:]) / sum(heights) for k in (1, 2, 3)]
    assert shares == pytest.approx(geo_d_1_k_reach(0.2, SERVICE, 3), rel=0.06)


def test_the_model_of_phases_loses_what_theory_says():
    walk = PhaseQueue(10, 160, 16, 4, 1, "long")
    walk.go(0, False, 320 * 10_000)
    counts = walk.counts()
    assert counts.came == pytest.approx(100_000, abs=10)
    assert counts.lost / counts.came == pytest.approx(nd_d_1_k_loss(10, 160, 16, 4, 1), rel=0.12)


def test_phases_that_have_shown_stay_and_the_others_are_drawn_again():
    walk = PhaseQueue(10, 160, 16, 9, 1, "moment")
    walk.go(4, False, NEVER)
    moment = walk.take()
    now, base, slots = moment[0], moment[1], moment[2]
    ahead = set()
    for seed in range(200):
        walk.give(moment, str(seed))
        again = walk.take()[2]
        assert [slot for slot in again if slot <= now] == [slot for slot in slots if slot <= now]
        ahead |= {slot for slot in again if slot > now}
    assert min(ahead) > now and max(ahead) == base + 159 and len(ahead) > (base + 159 - now) * 0.9


def test_each_state_is_begun_from_as_often_as_any_other_or_once_more():
    draw, total = random.Random(1), Counter()
    for _ in range(600):
        found = Counter(starts(7, 17, draw))
        assert sum(found.values()) == 17 and set(found.values()) <= {2, 3}
        total.update(found)
    assert all(abs(count - 600 * 17 / 7) < 60 for count in total.values())  # 5 sigma: sqrt(600 * 3/7 * 4/7) * 5


def test_losses_at_each_level_weigh_as_the_ways_to_it():
    tree = Tree(came=1000, outside=2, cycles=500, excursions=100)
    tree.stages = [
        SplittingLevel(3, 40, 10, 4, 4, 0),
        SplittingLevel(5, 40, 20, 8, 8, 0),
        SplittingLevel(9, 40, 0, 60, 200, 0),
    ]
    assert tree.weights() == [100, 25, 12.5]
    assert tree.losses() == pytest.approx(2 + 100 * 4 / 40 + 25 * 8 / 40 + 12.5 * 60 / 40)


def test_the_estimate_has_no_bias_and_the_interval_the_truth_as_often_as_it_says():
    found = [interval([(b.losses(), b.came) for b in (batch(f"{k} {n}") for n in range(10))]) for k in range(40)]
    assert all(each["low"] is not None for each in found)
    over = interval([(each["value"], 1) for each in found])
    assert over["low"] < LOSS < over["high"] and over["error"] < 0.25
    inside = sum(each["low"] < LOSS < each["high"] for each in found)
    assert inside >= 33  # of 40, each with 0.95: fewer with a probability of 2e-3


def test_levels_are_reached_as_often_as_theory_says():
    split = sum_up_trees("lan:1", [batch(f"levels {n}") for n in range(40)], 0, geo_d_1_k_reach(LOAD, SERVICE, PLACES))
    reach = geo_d_1_k_reach(LOAD, SERVICE, PLACES)
    assert [row["level"] for row in split["levels"]] == [*LEVELS]
    for row in split["levels"]:
        wide = row["reach"]["error"] * 2  # 4 sigma
        assert row["reach"]["value"] == pytest.approx(reach[row["level"] - 1], rel=wide), row
    assert [row["predicted"] for row in split["heights"]] == reach


def test_the_pilot_finds_levels_up_to_one_where_cells_are_lost():
    walk = GeoQueue(LOAD, SERVICE, PLACES, "pilot")
    levels, cells = choose_levels(walk, 60_000, 100, "1", NEVER)
    assert levels == sorted(set(levels)) and 2 <= levels[0] <= 3 and 5 <= levels[-1] <= PLACES
    assert cells > 60_000 * LOAD


def test_a_port_without_losses_is_refused():
    walk = GeoQueue(1e-4, SERVICE, 30, "none")
    with pytest.raises(ExperimentFailed, match=r"splitting has no levels|nothing is lost"):
        choose_levels(walk, 1000, 100, "1", 100_000)


def test_a_queue_that_never_empties_is_refused():
    walk = GeoQueue(0.5, SERVICE, PLACES, "full")
    walk.go(PLACES, False, NEVER)
    with pytest.raises(ExperimentFailed, match="without its queue"):
        grow(walk, Tree(excursions=1), [walk.take()], (PLACES,), 10, "1", 200)


def test_without_spread_there_is_no_interval():
    assert interval([(0, 100)] * 20) == {"value": 0.0, "low": None, "high": None, "error": None, "batches": 20}
    assert interval([(1, 100), (2, 100)])["low"] is None  # too few batches


def test_ends_of_an_interval_are_as_far_on_a_logarithmic_scale():
    found = interval([(k, 1000.0) for k in range(1, 21)])
    assert found["high"] / found["value"] == pytest.approx(found["value"] / found["low"])
    assert 0 < found["low"] < found["value"] == pytest.approx(0.0105)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (['splitting.port="east:1"'], "splitting.port: there is no switch 'east'"),
        (['splitting.port="lan:7"'], "splitting.port: lan has no port 7"),
        (["splitting.levels=[3,9,17]"], "splitting.levels: lan has a buffer of 16 cells, and never 17 queued"),
        (["splitting.levels=[3,3]"], "splitting.levels: must rise"),
        (["splitting.repeats=5"], "splitting.repeats"),
        (["splitting.effort=49"], "splitting.effort"),
        (['event=[{at="1 ms",set={"network.switches.lan.clp_threshold"=9}}]'], "cannot be combined with [splitting]"),
        (['record.pcap=["cells:sink"]'], "cannot be combined with [splitting]"),
        (["record.losses=true"], "cannot be combined with [splitting]"),
        (['splitting.delay="40 us"'], "theory.0.metric: is not counted with splitting.delay"),
        (['theory.0.metric="delay_ratio"'], "theory.0.metric: needs 'delay' in [splitting]"),
        (['splitting.delay="0 us"'], "splitting.delay"),
        (['theory.0.growth="lan.drops.full"'], "theory.0.metric: give 'growth' and 'per', or 'metric' instead"),
    ],
)
def test_what_can_not_be_split_is_said(changes, message):
    with pytest.raises(ConfigError) as error:
        load("rare-loss", changes)
    assert message in str(error.value)


def test_the_catalogue_says_what_the_exact_chain_has():
    for experiment in load_cases("rare-loss"):
        load, (by_splitting, plain) = experiment.flows[0].settings["load"], experiment.theory
        exact = geo_d_1_k_loss(load, 4, experiment.network.switches[0].settings.buffer_cells)
        assert by_splitting.predicted == plain.predicted == pytest.approx(exact, rel=1e-4)
        assert experiment.splitting.reach == pytest.approx(geo_d_1_k_reach(load, 4, 16), rel=1e-4)
        assert exact == pytest.approx(float(experiment.case), rel=0.06)


def test_the_catalogue_says_what_the_chain_of_periodic_sources_has():
    for experiment in load_cases("rare-loss-nd"):
        places, flow = experiment.network.switches[0].settings.buffer_cells, experiment.flows[0].settings
        exact = nd_d_1_k_loss(len(experiment.flows), flow["period"], 16, places, 1)
        assert [row.predicted for row in experiment.theory] == [pytest.approx(exact, rel=1e-4)] * 2
        assert experiment.splitting.levels == (*range(2, places + 1),) and experiment.case == f"K = {places}"


def test_the_catalogue_says_what_the_exact_chain_has_of_waits():
    for experiment in load_cases("rare-delay"):
        ticks = first_tick(experiment.splitting.delay_ps)
        places, flow = experiment.network.switches[0].settings.buffer_cells, experiment.flows[0].settings
        exact = geo_d_1_k_late(flow["load"], 4, places, ticks // 4)
        assert ticks % 4 == 1 and experiment.case == f"{ticks // 16} cell times"
        assert [row.predicted for row in experiment.theory] == [pytest.approx(exact, rel=1e-4)] * 2


def test_waits_are_named_where_they_are_counted():
    split = of_delays(sum_up_trees("lan:1", [batch(f"late {n}") for n in range(10)], 0, ()), 45_470_000)
    assert splitting_text(split).startswith("Cells that wait 45.47 us or longer at lan:1: ")
    assert splitting_columns(split)[-1] == "late cells"
    assert set(split_figures(split)) == set(DELAY_METRICS) and not set(split) & {"loss_ratio"}


def test_a_figure_of_splitting_needs_splitting():
    with pytest.raises(ConfigError, match=r"theory.0.metric: is a figure of \[splitting\]"):
        load("theory-geo-d-1-k", ['theory=[{quantity="x",predicted=1,metric="loss_ratio"}]'])


@pytest.mark.parametrize("name", ["rare-loss-nd", "rare-timeout", "acts-60flows", "netspec-100"])
def test_nothing_of_the_hosts_is_in_the_order_of_addresses(name):
    """Copies number the random generators as they meet them. In a set of objects that is another order in each
    process, so one seed would give other estimates."""
    pickler = StatePickler(io.BytesIO())
    pickler.take(rehearse(load_cases(name)[0]))
    assert len(pickler.met) > 20
    for obj in pickler.met:
        if type(obj).__module__.startswith("bentpipe_sim"):  # copies share the network
            continue
        state = obj.__getstate__()
        members = {k: v for part in (state if isinstance(state, tuple) else (state,)) for k, v in (part or {}).items()}
        for member, value in members.items():
            if isinstance(value, (set, frozenset)):
                assert all(type(each) in (int, str) for each in value), f"{type(obj).__name__}.{member}"


def test_a_run_that_is_stopped_has_the_estimate_of_the_batches_that_are_done():
    trees = [batch(f"stopped {n}") for n in range(12)]
    whole = sum_up_trees("lan:1", trees[:10], 0, ())
    part = sum_up_trees("lan:1", trees, 0, (), done=10, planned=20)
    for name in ("loss_ratio", "levels"):
        assert part[name] == whole[name]
    assert part["stem"] == sum(tree.came for tree in trees)
    assert splitting_text(part).startswith("Stopped: 10 of 20 batches have all their trials, and the estimate is of ")
    assert splitting_text(whole).startswith("Cells lost at lan:1: ")


def test_a_run_that_is_stopped_before_its_trials_has_the_plain_run():
    splitting = object.__new__(Splitting)
    splitting._table = SimpleNamespace(port="lan:1", repeats=20, reach=(), delay_ps=None)
    splitting._trees, splitting._pilot = [Tree(came=100, lost=n) for n in range(10)], 7
    split = splitting.split(lambda: 15, lambda _: None)
    assert (split["batches_done"], split["batches"], split["levels"]) == (0, 20, [])
    assert split["loss_ratio"]["value"] is None and split["plain"]["value"] == 0.045
    assert split["cells"] == 1007
    assert set(split_figures(split)) == set(LOSS_METRICS)
    assert splitting_text(split) == (
        "Stopped before the first of 20 batches had all its trials: no estimate of the cells lost at lan:1. "
        "The plain run had 1,000 cells, and lost 0.045 of them (0.02781 to 0.07282)."
    )


def test_the_page_of_rare_losses_leads_with_them():
    split = {"port": "lan:1", "loss_ratio": {"value": 1.25e-4}}
    total = {"aggregate_goodput": 1e6, "sum_of_flow_rates": 1e6, "efficiency": 0.5, "fairness": 1.0}
    summary = {"flows": [{"name": "a"}], "metrics": total, "ledger": [], "splitting": split}
    assert _did(summary).startswith("cells lost at lan:1: 0.000125 of the arriving cells")
    assert _did(summary | {"splitting": None}).startswith("one flow carried 1")
