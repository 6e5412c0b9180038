"""OAM of hosts in experiments: what is read, what is refused, and runs with everything accounted for."""

import copy
import tomllib

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.experiment.run.run import run_experiment
from bentpipe_hdl.ticks import round_ticks, ticks_to_ps

MS = 10**9
S = 10**12
TEXT = """
[experiment]
id = "oam"
title = "Two hosts with OAM flows"
duration = "20 s"

[network.switches.west]

[network.switches.east]

[network.lines.wan]
ends = ["west:1", "east:1"]
delay = "20 ms"

[network.hosts.anna]
port = "west:0"

[network.hosts.bert]
port = "east:0"

[hosts]
oam = true

[[vc]]
name = "there"
from = "anna"
to = "bert"
vci = 100
continuity_check = "always"

[[vc]]
name = "back"
from = "bert"
to = "anna"
vci = 101

[[flow]]
name = "data"
source = "anna"
sink = "bert"
vc = "there"
return_vc = "back"
size = "300 kB"

[[flow]]
name = "loop"
app = "loopback"
source = "anna"
sink = "bert"
vc = "there"
return_vc = "back"
interval = "100 ms"
count = 30
"""


def read(change=None):
    document = copy.deepcopy(tomllib.loads(TEXT))
    if change is not None:
        change(document)
    return parse_experiment(document, Source("oam.toml", TEXT))


def refused(change):
    with pytest.raises(ConfigError) as error:
        read(change)
    return str(error.value)


def without_oam(document):
    del document["hosts"]
    document["vc"][0].pop("continuity_check")


def test_what_cannot_be_is_refused_in_a_line():
    def flow(**values):
        return lambda document: document["flow"][1].update(values)

    assert "host 'anna' has no OAM functions: set oam = true for it (or in [hosts])" in refused(without_oam)
    assert "has no OAM functions" in refused(lambda document: document.pop("hosts"))
    assert "the flow passes west, east, and no switch 'north'" in refused(flow(at="north"))
    assert "location ID has 16 octets" in refused(flow(at="a much too long name of a switch"))
    alone = {"name": "loop", "app": "loopback", "source": "anna", "sink": "bert", "protocol": "udp"}
    assert "loopback runs over oam only" in refused(lambda d: d.update(flow=[alone]))
    assert "ttcp runs over tcp and udp only" in refused(lambda d: d["flow"][0].update(protocol="oam"))
    assert "requires protocol" in refused(flow(tcp={"window": "1 MiB"}))
    assert "loopback has no such setting" in refused(flow(size="1 MB"))
    assert "continuity_check" in refused(lambda d: d["vc"][0].update(continuity_check="sometimes"))
    assert "the VC 'there' has its own" in refused(flow(continuity_check="idle"))

    def another_way_back(document):
        document["vc"].append({"name": "third", "from": "bert", "to": "anna", "vci": 102})
        document["flow"][1]["return_vc"] = "third"

    assert "'data' has another value for the same VC" in refused(another_way_back)


def test_a_run_reports_round_trips_and_states():
    """Loopback cells on the data's VC; its line is cut from 1 s to 7 s: cells are lost, the receiver loses continuity
    and tells so, and gets it back; PDUs, cells and the ledger add up, as ``run_experiment`` sees to."""

    def cut(document):
        document["event"] = [
            {"at": at, "set": {"network.lines.wan.outage": [on, False]}} for at, on in (("1 s", True), ("7 s", False))
        ]
        document["flow"][1]["count"] = 120

    result = run_experiment(read(cut))
    assert (result.summary["status"], result.summary["reason"]) == ("done", None)
    loop = next(flow for flow in result.flows if flow["name"] == "loop")
    assert (loop["loopback_sent"], loop["loopback_returned"], loop["loopback_lost"]) == (120, 60, 60)
    path_ps = 2 * 20 * MS
    assert path_ps < loop["loopback_min_ps"] < path_ps + MS // 10
    assert loop["finished"] and loop["protocol"] == "oam"
    found = result.summary["metrics"]
    assert found["loop.loopback_returned"] == 60
    assert "loop.goodput" not in found and found["fairness"] == 1.0
    anna, bert = (next(row for row in result.summary["oam"] if row["host"] == name) for name in ("anna", "bert"))
    ends = [(change["state"], change["begins"]) for change in bert["changes"]]
    assert ends == [("loc", True), ("loc", False)]
    lost, again = (change["at_ps"] for change in bert["changes"])
    assert 1 * S + 3 * S <= lost <= 1 * S + 4 * S + 20 * MS
    assert 7 * S < again <= 8 * S + 21 * MS
    assert bert["rdi_sent"] == -(-(again - lost) // S)
    assert [(change["state"], change["begins"]) for change in anna["changes"]] == [("rdi", True), ("rdi", False)]
    assert anna["rdi_received"] == bert["rdi_sent"]
    assert bert["looped"] == 60


def test_a_round_trip_is_the_sum_of_its_parts_to_the_tick():
    """Two switches each way, a cell's time on three lines, the delay of one of them, and a tick in which the interface
    takes the cell: nothing else is on the way."""

    def alone(document):
        document["flow"] = [{"app": "loopback", "source": "anna", "sink": "bert", "count": 20, "interval": "33 ms"}]
        document["vc"] = []

    experiment = read(alone)
    (flow,) = run_experiment(experiment).flows
    processing = [max(1, round_ticks(s.settings.processing_delay_ps)) for s in experiment.network.switches]
    cells = 3 * 16  # ticks of three lines of OC-3c
    ticks = 2 * (1 + round_ticks(20 * MS) + sum(processing) + cells) + 1
    for time in ("min", "mean", "max"):
        assert abs(flow[f"loopback_{time}_ps"] / ticks_to_ps(10**6) * 10**6 - ticks) < 1


def test_a_switch_on_the_way_sends_segment_cells_back_and_tells_of_an_outage():
    """Loopback to the near switch and to the far one, by name and by its own location ID; AIS while the line is cut,
    from its end on, and RDI in answer."""

    def managed(document):
        document["network"]["switches"]["east"] = {"oam": {"location": "Cleveland"}}
        document["vc"][0] |= {"oam": {}, "continuity_check": "none"}
        loop = document["flow"][1] | {"count": 50}
        document["flow"] = [loop | {"name": name, "at": name} for name in ("west", "east")]
        document["event"] = [
            {"at": at, "set": {"network.lines.wan.outage": [on, False]}}
            for at, on in (("1.5 s", True), ("3.5 s", False))
        ]

    experiment = read(managed)
    result = run_experiment(experiment)
    near, far = result.flows
    processing = [max(1, round_ticks(s.settings.processing_delay_ps)) + 1 for s in experiment.network.switches]
    assert near["loopback_lost"] == 0 and near["loopback_returned"] == 50
    assert near["loopback_max_ps"] < 10 * ticks_to_ps(sum(processing))
    assert far["loopback_lost"] == 20 and 40 * MS < far["loopback_min_ps"] < 41 * MS
    anna, bert = (next(row for row in result.summary["oam"] if row["host"] == name) for name in ("anna", "bert"))
    begins, ends = (change["at_ps"] for change in bert["changes"])
    assert 0 <= begins - (3 * S // 2 + 20 * MS) < MS, "the first cell that was lost would have come"
    assert ends <= 6 * S + 20 * MS
    assert 2 <= bert["ais_received"] <= 4 and bert["rdi_sent"] == anna["rdi_received"] > 1
    assert [change["state"] for change in anna["changes"]] == ["rdi", "rdi"]


def test_loopback_to_a_switch_without_oam_is_lost():
    """The far host sends no cell back that is for another."""

    def at(document):
        document["flow"] = [{"app": "loopback", "source": "anna", "sink": "bert", "at": "west", "count": 3}]

    result = run_experiment(read(at))
    (flow,) = result.flows
    assert (flow["loopback_sent"], flow["loopback_returned"], flow["loopback_lost"]) == (3, 0, 3)
    assert result.summary["metrics"]["aggregate_goodput"] == 0
    assert sum(row["other"] for row in result.summary["oam"] if row["host"] == "bert") == 3
