"""Tests of properties that experiments of the catalogue must have, on the Verilated network."""

import pytest

from bentpipe.experiment.document.catalogue import find, read_document
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.load import load, load_cases
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.experiment.run.run import run_experiment

PS = 10**12


@pytest.mark.parametrize("losses", [1, 2, 3, 4])
def test_fall_and_floyds_losses(losses):
    """Reno waits for a time-out from three losses on, New Reno and SACK never; SACK sends again only what was lost."""
    result = run_experiment(load(f"fall-floyd-{losses}"))
    flows = {flow["name"]: flow for flow in result.flows}
    assert result.summary["status"] == "done"
    assert result.summary["drops"]["wan.out"] == {"lost": 0, "listed": 4 * 21 * losses} | {
        reason: 0 for reason in result.summary["drops"]["wan.out"] if reason not in ("lost", "listed")
    }
    assert all(flow["finished"] and flow["octets_delivered"] == 142_800 for flow in flows.values())
    assert {name: flow["timeouts"] for name, flow in flows.items()} == {
        "tahoe": 0,
        "reno": int(losses > 2),
        "newreno": 0,
        "sack": 0,
    }
    assert flows["newreno"]["retransmits"] == flows["sack"]["retransmits"] == losses
    assert flows["reno"]["fast_retransmits"] == min(losses, 2)
    assert flows["tahoe"]["duplicates"] == (0 if losses < 3 else losses - 2)
    ends = {name: flow["end_ps"] for name, flow in flows.items()}
    if losses > 2:
        assert max(ends["sack"], ends["newreno"]) < ends["tahoe"] < ends["reno"]
    segments = [event for event in result.trace.events if event[2] == "segment" and event[0] == "sack"]
    assert len(segments) == 150 + losses


def test_pacing_and_timers_on_a_line_that_gets_slower():
    """Without pacing BSD's time-outs leave a few Mb/s; without BSD's timers it is ten times that and more; paced, no
    cell is lost."""
    names = ["no pacing", "cells paced at 70 Mb/s", "no pacing and no BSD timers"]
    cases = load_cases("magic-mismatch", duration_ps=10 * PS, only=names)
    blast, paced, ideal = (run_experiment(case) for case in cases)
    mbps = [result.summary["metrics"]["goodput"] / 1e6 for result in (blast, paced, ideal)]
    assert mbps[0] < 5 and 67 < mbps[1] < 70 and 10 * mbps[0] < mbps[2]
    assert blast.flows[0]["timeouts"] >= 5 and paced.flows[0]["retransmits"] == 0
    assert sum(paced.summary["drops"]["east"].values()) == 0


def test_the_rate_follows_the_window_up_to_the_line():
    cases = load_cases("magic-window", duration_ps=3 * PS, only=["window 32 kB", "window 64 kB", "window 192 kB"])
    results = [run_experiment(case) for case in cases]
    for result, segments in zip(results, (4, 8, 22), strict=True):  # windows rounded up to whole segments
        times, delivered = result.trace.series["flow1.delivered"]
        at_1_s = next(k for k, t in enumerate(times) if t >= PS)
        rate = (delivered[-1] - delivered[at_1_s]) * 8 / ((times[-1] - times[at_1_s]) / PS)
        # the ACK waits for a second segment: 192 cells on the line, sent and received in 250 us each
        round_trip = result.flows[0]["rtt_min_ps"] / PS + 192 * 424 / 149.76e6 + 2 * 250e-6
        assert rate == pytest.approx(min(segments * 9140 * 8 / round_trip, 134.513e6), rel=0.03)


def test_a_saturated_port_goes_by_weights():
    """Each flow gets its share to within the frame that it may have begun."""
    result = run_experiment(load("theory-weighted", ("experiment.duration=100 ms",)))
    frame = 9152
    for row in result.summary["published"]:
        flow = next(f for f in result.flows if row["metric"] == f"{f['name']}.goodput")
        octets = row["predicted"] * 1e6 / 8 * 0.1
        assert abs(flow["octets_delivered"] - octets) < 3 * frame, row["quantity"]


def test_a_saturated_port_goes_by_virtual_clocks():
    """Shares are as the rates are, though all have more to send; the port is full."""
    rates = {"one": 10, "two": 20, "four": 40}
    changes = [
        f"vc.{k}.{key}" for k, rate in enumerate(rates.values()) for key in ("weight=1", f"service_rate={rate} Mb/s")
    ]
    result = run_experiment(
        load(
            "theory-weighted", ("experiment.duration=100 ms", "network.switches.lan.scheduler=virtual-clock", *changes)
        )
    )
    for row in result.summary["published"]:
        flow = next(f for f in result.flows if row["metric"] == f"{f['name']}.goodput")
        assert abs(flow["octets_delivered"] - row["predicted"] * 1e6 / 8 * 0.1) < 3 * 9152, row["quantity"]


def test_weights_may_change_in_a_run():
    """Halfway all get the weight of the last: from then on they share alike."""
    document, text = read_document(find("theory-weighted"))
    document["experiment"]["duration"] = "200 ms"
    document["event"] = [{"at": "100 ms", "set": {"vc.*.weight": 4}}]
    document["record"] = {"interval": "10 ms"}
    result = run_experiment(parse_experiment(document, Source("x.toml", text)))
    grown = {}
    for flow in result.flows:
        times, values = result.trace.series[f"{flow['name']}.delivered"]
        at = dict(zip(times, values, strict=True))
        grown[flow["name"]] = [at[PS // 10] - at[PS // 50], at[PS // 5] - at[12 * PS // 100]]
    assert grown["four"][0] == pytest.approx(4 * grown["one"][0], rel=0.05)
    assert grown["four"][1] == pytest.approx(grown["one"][1], rel=0.05)


def test_a_fair_policy_refuses_for_shares_and_what_flows_get_is_told_as_efficiency():
    settings = ("network.switches.*.policy=fba", "flow.*.copies=4", "experiment.duration=200 ms")
    summary = run_experiment(load("discard-study", settings)).summary
    assert summary["status"] == "done"
    assert summary["drops"]["west"]["fair"] > 0
    assert {loss["why"] for vc in summary["ledger"] for loss in vc["lost"] if loss["where"]} <= {"share", "full", "PPD"}
    best = 149.76e6 * 1460 * 8 / (32 * 424)  # packets of 1500 octets in 32 cells
    assert summary["metrics"]["efficiency"] == pytest.approx(summary["metrics"]["aggregate_goodput"] / best)


@pytest.mark.parametrize(
    ("name", "settings", "share"),
    [
        ("lan-3flows", ("flow.0.size=2 MB", "flow.1.size=2 MB", "flow.2.size=30 MB"), True),  # they end apart
        ("wan-3flows", ("flow.*.size=2 MB", "flow.0.start=1 s"), True),  # they start apart
        ("acts-modern", ("network.lines.*.delay=1 ms", "experiment.duration=500 ms"), False),  # four lines
        ("acts-oc12", ("network.lines.*.delay=1 ms", "experiment.duration=500 ms"), False),  # a faster line
    ],
)
def test_flows_carry_no_more_than_the_lines_deliver(name, settings, share):
    """Over the common time, and as share and efficiency; the sum of the flows' own rates may be above the line."""
    figures = run_experiment(load_cases(name, settings)[0]).summary["metrics"]
    assert 0.05 < figures["efficiency"] <= 1
    assert (figures["share"] is not None) == share
    if share:
        assert figures["share"] <= 1 and figures["aggregate_goodput"] <= 134.52e6
        assert figures["sum_of_flow_rates"] > 1.05 * figures["aggregate_goodput"]
