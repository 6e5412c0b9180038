"""Tests of a flow's counts of datagrams in a real run: they are those of the loss ledger, even where a receiver cannot
know.
"""

import pytest

from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.knees import over_cases

TEXT = """
[experiment]
id = "dark"
title = "Three flows of datagrams; the line fails before they end"
duration = "1 s"

[network]
clock_tolerance = 0
[network.switches.a]
ports = 3
buffer_cells = 100
[network.switches.b]
ports = 2
[network.lines.sat]
ends = ["a:2", "b:1"]
delay = "20 ms"
rate = "10 Mb/s"
[network.hosts.s]
port = "a:0"
[network.hosts.r]
port = "a:1"
[network.hosts.t]
port = "b:0"

[hosts]
interface_queue = 4

[[flow]]
name = "fast"
source = "s"
sink = "t"
protocol = "udp"
app = "cbr"
block = "9000 B"
count = 8
rate = "12 Mb/s"

[[flow]]
name = "slow"
source = "s"
sink = "t"
protocol = "udp"
app = "cbr"
block = "500 B"
rate = "200 kb/s"

[[flow]]
name = "ping"
source = "r"
sink = "t"
protocol = "udp"
app = "ping"
interval = "10 ms"

[[event]]
at = "300 ms"
set = { "network.lines.sat.outage" = true }
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    path = tmp_path_factory.mktemp("dark") / "dark.toml"
    path.write_text(TEXT)
    return run_experiment(load(path))


def accounts(summary):
    """Sent, delivered, lost and under way by VC."""
    found = {}
    for row in summary["ledger"]:
        lost = sum(loss["pdus"] for loss in row["lost"] if loss["where"])
        found[row["vc"]] = (row["sent"], row["delivered"], lost, row["sent"] - row["delivered"] - lost)
    return found


def counts(flow, *names):
    return tuple(flow[f"datagrams_{name}"] for name in names or ("sent", "received", "lost", "under_way"))


def test_flows_and_ledger_say_the_same(result):
    """Losses of the interface's queue, the buffer and the dark line."""
    summary = result.summary
    flows = {flow["name"]: flow for flow in summary["flows"]}
    for name, flow in flows.items():
        sent, received, lost, under_way = counts(flow)
        assert counts(flow) == accounts(summary)[name]
        assert sent == received + lost + under_way and lost > 0
    assert flows["fast"]["datagrams_refused"] > 0
    assert flows["ping"]["datagrams_missing"] < flows["ping"]["datagrams_lost"]


def test_pings_are_lost_on_either_way(result):
    ping = next(flow for flow in result.summary["flows"] if flow["name"] == "ping")
    forth, back = (accounts(result.summary)[name] for name in ("ping", "ping.return"))
    assert ping["ping_lost"] == forth[2] + back[2] > forth[2]
    assert ping["ping_sent"] == ping["ping_received"] + ping["ping_lost"] + ping["ping_under_way"]


def test_the_share_carried_and_the_series_are_of_the_same_losses(result):
    figures = result.summary["metrics"]
    for flow in result.summary["flows"]:
        received, lost = counts(flow, "received", "lost")
        assert figures[f"{flow['name']}.carried"] == received / (received + lost)
        when, what = result.trace.series[f"{flow['name']}.lost"]
        assert what[-1] == lost and [*what] == sorted(what) and when[-1] <= 10**12
    assert 0 < figures["efficiency"] < 1
    assert over_cases([result.summary])["fast.knee"] is None


def test_a_full_input_queue_of_the_sink_is_in_the_ledger(tmp_path):
    path = tmp_path / "dark.toml"
    path.write_text(TEXT)
    settings = ["network.hosts.t.receive_cost=30 ms", "network.hosts.t.input_queue=2"]
    summary = run_experiment(load(str(path), settings)).summary
    assert summary["status"] == "done"
    lost = {
        (row["vc"], loss["where"]): loss["pdus"]
        for row in summary["ledger"]
        for loss in row["lost"]
        if loss["why"] == "input queue"
    }
    assert lost.keys() <= {(name, "t") for name in ("fast", "slow", "ping")} and sum(lost.values()) > 0
    for flow in summary["flows"]:
        assert counts(flow) == accounts(summary)[flow["name"]]
