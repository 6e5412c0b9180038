"""A run from beginning to end, on a stand-in for network and hosts."""

import os
import signal

import pytest

from bentpipe.experiment.build.hosts import dropped
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.metrics import BEST_TCP_BPS, GROUPED, compare, fairness, metrics
from bentpipe.results.tables import together_text
from unit.experiment.fake import FakeNetwork, fake_build

PS = 10**12


def run(name="acts-3flows", settings=(), change=None, **options):
    """A run of the stand-in; ``change`` gets the network before it starts."""
    made = []

    def build(experiment, recorder):
        built = fake_build(experiment, recorder)
        made.append(built.engine)
        if change is not None:
            change(built.engine)
        return built

    result = run_experiment(load(name, settings, **options), build=build, settings=tuple(settings))
    assert made[0].closed
    return result


def test_a_run_is_done_at_its_duration():
    s = run(duration_ps=3 * PS).summary
    assert (s["status"], s["reason"]) == ("done", None)
    assert s["time"]["simulated_s"] == s["time"]["limit_s"] == 3.0
    assert s["shortened"] is True
    assert s["seed"] == 1 and s["schema"] == 4
    assert s["versions"]["bentpipe"] and s["versions"]["python"]


def test_a_run_is_done_when_its_flows_are():
    s = run("acts-1flow", ["flow.0.size=20 MB"]).summary
    assert s["status"] == "done" and not s["shortened"]
    assert s["time"]["simulated_s"] < 60
    assert s["flows"][0]["octets_delivered"] == 20_000_000


def test_what_is_sampled_at_each_interval():
    result = run(settings=["record.interval=500 ms"], duration_ps=3 * PS, change=lambda n: setattr(n, "dropped", 7))
    series = result.trace.series
    wanted = [i * PS // 2 for i in range(7)]
    for name in ("flow1.delivered", "flow3.delivered", "ku.queue", "ku.drops.epd"):
        assert list(series[name][0]) == wanted, name
    delivered = series["flow2.delivered"][1]
    assert delivered[-1] == result.flows[1]["octets_delivered"] > delivered[1] > delivered[0] == 0


def test_drops_are_recorded_from_the_last_sample_without():
    times, cells = run(duration_ps=20 * PS).trace.series["ku.drops.epd"]
    assert cells[0] == 0 < cells[1]
    assert times[1] - times[0] == PS // 10 and times[0] > 0
    assert times[-1] == 20 * PS


def test_only_what_is_asked_for_is_recorded():
    result = run(settings=['record.what=["queue"]'], duration_ps=PS)
    assert set(result.trace.series) == {"ku.queue"}
    assert result.trace.events == []


def test_the_same_twice():
    one, two = run(duration_ps=20 * PS), run(duration_ps=20 * PS)
    assert one.trace == two.trace and one.trace.events
    assert one.flows == two.flows


def test_ctrl_c_keeps_what_there_is():
    def press(network: FakeNetwork):
        if network.now_ps == 205 * PS // 100:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = run(settings=["record.interval=1 s"], change=lambda network: setattr(network, "at_step", press))
    assert result.summary["status"] == "interrupted"
    assert result.summary["time"]["simulated_s"] == 2.05
    assert result.summary["shortened"] is True
    assert result.trace.series["ku.queue"][0][-1] == 205 * PS // 100
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_ends_at_once():
    def press(network: FakeNetwork):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(change=lambda network: setattr(network, "at_step", press))


def test_missing_cells_fail_the_experiment():
    s = run(duration_ps=PS, change=lambda network: setattr(network, "balance", 3)).summary
    assert s["status"] == "failed"
    assert s["reason"] == "cells do not add up: west: 3 cells are missing"


def test_pdus_in_no_row_of_the_ledger_fail_the_experiment():
    row = {"vc": "forth", "sent": 9, "delivered": 4, "lost": [{"where": "ku", "why": "EPD", "pdus": 4}]}
    s = run(duration_ps=PS, change=lambda network: network.ledger.append(row)).summary
    assert s["status"] == "failed"
    assert s["reason"] == "PDUs do not add up: VC forth: 9 PDUs sent, 4 delivered, and 1 are in no row of the ledger"


def test_wrong_octets_fail_the_experiment():
    s = run(duration_ps=PS, change=lambda network: setattr(network.flows[1], "bad", 7)).summary
    assert s["status"] == "failed"
    assert s["reason"] == "payload octets delivered wrong: flow2: 7"


def test_published_figures_stand_beside_ours():
    s = run().summary
    (row,) = s["published"]
    assert row["measured"] == 54.105 and row["predicted"] == 49.641
    assert row["ours"] == pytest.approx(sum(f["goodput_bps"] for f in s["flows"]) / 1e6)
    assert row["ratio"] == pytest.approx(row["ours"] / 54.105)


def test_a_run_whose_bound_cuts_its_flows_is_not_compared():
    """The published figures are those of whole transfers."""
    for size, unfinished in (("1000 GB", True), ("1 MB", False)):
        row = run("lan-1flow", [f"flow.0.size={size}", "record.interval=100 s"]).summary["published"][0]
        assert ("unfinished" in row["remarks"], row["ratio"] is None) == (unfinished, unfinished)


def test_figures_of_a_run():
    flows = [
        {"name": name, "start_ps": 0, "end_ps": PS, "octets_delivered": rate // 8, "goodput_bps": float(rate)}
        for name, rate in (("a", 30_000_000), ("b", 10_000_000))
    ]
    found = metrics(flows)
    assert found["aggregate_goodput"] == found["sum_of_flow_rates"] == 40e6
    assert found["goodput"] == 20e6
    assert found["fairness"] == pytest.approx(40**2 / (2 * (30**2 + 10**2)))
    assert found["sigma"] == pytest.approx(200**0.5 * 1e6)
    assert found["share"] == pytest.approx(40 / 134.5132, rel=1e-5)
    assert found["a.goodput"] == 30e6
    assert pytest.approx(134_513_207.5471698) == BEST_TCP_BPS
    assert fairness([0, 0]) is None


def test_figures_of_a_flows_copies():
    """Each group of flows has figures of its own; a flow in no group counts in the whole only."""
    times = {"start_ps": 0, "end_ps": PS, "octets_delivered": 0}
    flows = [
        times | {"name": name, "goodput_bps": rate} for name, rate in zip("abcd", (30e6, 10e6, 5e6, 1e6), strict=True)
    ]
    found = metrics(flows, None, {"a": "x", "b": "x", "c": "y"})
    assert [found[f"x.{name}"] for name in GROUPED[:3]] == [0.0, 40e6, 20e6]
    assert found["x.sigma"] == pytest.approx(200**0.5 * 1e6) and found["x.fairness"] == pytest.approx(0.8)
    assert (found["y.sum_of_flow_rates"], found["y.sigma"], found["sum_of_flow_rates"]) == (5e6, None, 46e6)


def test_flows_that_end_at_different_times():
    """Each flow's rate is over its own time; all octets over the whole time are fewer a second than the sum says."""

    def flow(name, start_s, end_s, octets):
        times = {"start_ps": start_s * PS, "end_ps": end_s * PS, "octets_delivered": octets}
        return {"name": name, **times, "goodput_bps": octets * 8 / (end_s - start_s)}

    waiting = {"name": "c", "start_ps": -1, "end_ps": 9 * PS, "octets_delivered": 0, "goodput_bps": 0.0}
    found = metrics([flow("a", 1, 3, 2_000_000), flow("b", 1, 5, 2_000_000), waiting])
    assert found["sum_of_flow_rates"] == 8e6 + 4e6
    assert found["aggregate_goodput"] == 8e6
    assert found["fairness"] == pytest.approx(12**2 / (3 * (8**2 + 4**2)))
    assert found["share"] == pytest.approx(8 / 134.5132, rel=1e-5)


def test_a_share_of_an_oc3_is_none_of_faster_lines():
    """200 Mb/s are no share of 134.5; an OC-3c itself counts, rounding or not."""
    flows = [{"name": "a", "start_ps": 0, "end_ps": PS, "octets_delivered": 25_000_000, "goodput_bps": 200e6}]
    assert metrics(flows, 538e6)["share"] is None
    slow = [flows[0] | {"octets_delivered": 16_000_000, "goodput_bps": 128e6}]
    assert metrics(slow, BEST_TCP_BPS * (1 + 1e-12))["share"] == pytest.approx(128 / 134.5132, rel=1e-5)


def test_why_the_sum_of_the_flows_rates_is_above_their_rate_together():
    each = {"start_ps": 0, "octets_delivered": 0}
    flows = [each | {"end_ps": end * PS} for end in (10, 25)]
    total = {"aggregate_goodput": 80e6, "sum_of_flow_rates": 100e6, "fairness": 1.0}
    text = together_text({"metrics": total}, flows)
    assert text.startswith(
        "all 2: 80.000 Mb/s over their common time, 100.000 Mb/s as the sum of their own rates, fairness 1.000. "
    )
    assert "differ by 25 %" in text and "started at 0 s and ended at 10 to 25 s" in text
    near = total | {"sum_of_flow_rates": 84e6}
    assert "differ" not in together_text({"metrics": near}, flows)


def test_flows_one_after_the_other_have_no_more_than_the_lines_deliver():
    """Ten megabits a second in twice two seconds, a pause between them, of a line of eleven: not 20 of 11 Mb/s."""
    each = {"octets_delivered": 2_500_000, "goodput_bps": 10e6}
    flows = [each | {"name": name, "start_ps": at * PS, "end_ps": (at + 2) * PS} for name, at in (("a", 1), ("b", 5))]
    found = metrics(flows, 44e6)
    assert found["efficiency"] == pytest.approx(40 / 44) and found["share"] == pytest.approx(10 / 134.5132, rel=1e-5)


def test_comparison_of_rows_without_a_figure():
    row = {"metric": "fairness", "unit": "1", "measured": None, "predicted": 0.5}
    assert compare([row], {"fairness": 0.25})[0]["ratio"] == 0.5
    assert compare([row | {"predicted": None}], {"fairness": 0.25})[0]["ratio"] is None
    assert compare([row | {"metric": ""}], {"fairness": 0.25})[0]["ours"] is None


def test_drops_are_summed_by_reason():
    assert dropped({"cells_in": 9, "drop_epd": [1, 2], "drop_hec": 4}) == {"epd": 3, "hec": 4}
