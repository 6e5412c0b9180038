"""Cell and frame figures of runs: their definitions, and what a run of the real network has of them."""

from pathlib import Path

import pytest

from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.experiment.resolve.known import known_figures
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.cells import cell_metrics
from bentpipe.results.declared import METRICS, figure_in_words, label_of, metrics_of, subject_columns
from bentpipe.results.tables import cell_tables
from bentpipe.results.words import key_in_words
from bentpipe.sweeps.table import figures_of

SOURCES = """
[experiment]
id = "two-sources"
title = "Two sources of cells into one port"
duration = "30 ms"

[network]
clock_tolerance = 0

[network.switches.lan]
ports = ["OC-12c", "OC-12c", "OC-3c"]
processing_delay = 0
buffer_cells = 4
policy = "tail"
histograms = {}

[network.hosts]
a = { port = "lan:0", rate = "OC-12c" }
b = { port = "lan:1", rate = "OC-12c" }
sink = { port = "lan:2" }

[hosts]
cost = 0

[record]
interval = "10 ms"
"""
FLOW = """
[[flow]]
name = "{name}"
source = "{name}"
sink = "sink"
protocol = "udp"
app = "slots"
datagram = 4
rate = "OC-12c"
load = 0.12
size = "endless"
"""


def two_sources(folder: Path, more: str = "") -> str:
    """A file with two flows of one cell each datagram."""
    path = folder / "two-sources.toml"
    path.write_text(SOURCES + more + FLOW.format(name="a") + FLOW.format(name="b"))
    return str(path)


def vc(name="one", sent=1000, received=970, lost=20, tagged=5, errored=97, misinserted=4, pdus=(100, 10, 3)):
    made, in_network, at_host = pdus
    return {
        "vc": name,
        "sent": made,
        "lost": [
            {"where": "west", "why": "EPD", "pdus": in_network},
            {"where": "host", "why": "interface queue", "pdus": at_host},
            {"where": "", "why": "under way", "pdus": 1},
        ],
        "cells": {
            "sent": sent,
            "received": received,
            "tagged": tagged,
            "errored": errored,
            "misinserted": misinserted,
            "lost": [{"where": "west", "why": "EPD", "cells": lost}],
        },
    }


def test_the_definitions_of_a_vc():
    """CLR 0+1 is lost : sent, CLR 0 has tagged ones, CER is errored : received, CMR a rate."""
    found = cell_metrics([vc()], [], seconds=2.0)
    own = {name.removeprefix("one."): value for name, value in found.items() if name.startswith("one.")}
    assert own == {
        "cell_loss_ratio": 0.02,
        "cell_loss_ratio_clp0": 0.025,
        "cell_error_ratio": 0.1,
        "cell_misinsertion_rate": 2.0,
        "frame_loss_ratio": 10 / 97,
        "cells_sent": 1000,
        "cells_lost": 20,
    }


def test_the_run_is_all_vcs_together_and_a_vc_that_sends_nothing_has_no_figures():
    found = cell_metrics([vc(), vc("two", sent=3000, lost=0), vc("three", 0, 0, 0, 0, 0, 0, (0, 0, 0))], [], 1.0)
    assert found["cell_loss_ratio"] == 20 / 4000
    assert not any(name.startswith("three.") for name in found)


def test_a_port_has_what_its_switch_counted():
    bins = [[10, 19, 98], [20, 39, 1], [40, None, 1]]
    port = {"port": "west:2", "offered": 110, "dropped": {"full": 6, "epd": 4}, "delays": bins, "delay_sum_ps": 2000}
    assert cell_metrics([], [port, {"port": "west:3", "offered": 0, "dropped": {}}], 1.0) == {
        "west:2.cell_loss_ratio": 10 / 110,
        "west:2.cells_lost": 10,
        "west:2.cells_offered": 110,
        "west:2.cell_delay_mean_ps": 20.0,
        "west:2.cell_delay_min_ps": 10,
        "west:2.cell_delay_max_ps": 40,
        "west:2.cell_delay_p99_ps": 39,
    }


def test_a_run_has_each_declared_figure_and_they_agree_with_the_counters(tmp_path):
    experiment = load(two_sources(tmp_path))
    summary = run_experiment(experiment).summary
    metrics, counters = summary["metrics"], summary["counters"]["lan"]
    for level, name in (("vc", "a."), ("port", "lan:2."), ("run", "")):
        for metric in metrics_of(level):
            assert (
                metric.needs in ("splitting", "rare losses", "rare delays", "rare time-outs", "losses", "cdv")
                or f"{name}{metric.name}" in metrics
            ), metric
    lost = sum(counters["drop_full"])
    assert lost > 300
    assert metrics["cells_lost"] == metrics["lan:2.cells_lost"] == metrics["cells_dropped"] == lost
    assert metrics["cell_loss_ratio"] == lost / metrics["cells_sent"]
    assert metrics["lan:2.cells_offered"] == sum(counters["accepted"]) + lost
    assert metrics["frame_loss_ratio"] == pytest.approx(metrics["cell_loss_ratio"], rel=1e-3)  # a PDU is one cell
    assert 0 < metrics["lan:2.cell_delay_min_ps"] < metrics["lan:2.cell_delay_mean_ps"]
    assert metrics["lan:2.cell_delay_mean_ps"] < metrics["lan:2.cell_delay_p99_ps"] <= 6 * 16 * 176950
    tables = cell_tables(summary)
    assert list(tables) == ["Cells by VC", "Cells by port"]
    assert [row[0] for row in tables["Cells by VC"][1]] == ["a (a to sink)", "b (b to sink)", "all VCs"]
    assert tables["Cells by port"][1][-1][0] == "lan:2"
    known = {*known_figures(experiment.flows, experiment.vcs, experiment.network, has=())}
    assert metrics.keys() <= known


CDV = """
[[vc]]
name = "measured"
from = "a"
to = "sink"
vci = 50
police = {{ pcr = "80 Mb/s", cdvt = "5 us" }}
cdv = {{ pcr = "80 Mb/s", cdvt = "5 us", at = "{at}" }}
"""


@pytest.mark.parametrize("at", ["lan", "sink"])
def test_a_run_has_the_1_point_cdv_of_a_vc(tmp_path, at):
    """Discarded cells of a switch that polices are those that do not conform."""
    path = Path(two_sources(tmp_path, CDV.format(at=at)))
    text = path.read_text().replace("histograms = {}\n", "")
    path.write_text(text.replace('source = "a"', 'source = "a"\nvc = "measured"'))
    experiment = load(str(path))
    summary = run_experiment(experiment).summary
    metrics, (row,) = summary["metrics"], [row["cdv"] for row in summary["ledger"] if "cdv" in row]
    assert (row["at"], row["pcr_bps"], row["cdvt_ps"]) == (at, 80_000_000, 5_000_000)
    discarded = sum(summary["counters"]["lan"]["drop_upc"])
    assert discarded > 100
    if at == "lan":
        assert row["cells"] == metrics["measured.cells_sent"]
        assert metrics["measured.cells_nonconforming"] == discarded
        assert metrics["measured.nonconforming_cell_ratio"] == discarded / row["cells"]
    else:
        (cells,) = [vc["cells"] for vc in summary["ledger"] if vc["vc"] == "measured"]
        assert row["cells"] == cells["received"]
        assert metrics["measured.cells_nonconforming"] < discarded
    assert metrics["measured.one_point_cdv_max_ps"] > 5_000_000 > 0 > metrics["measured.one_point_cdv_min_ps"]
    columns, rows = cell_tables(summary)["1-point CDV"]
    assert columns[1] == "greatest 1-point CDV, us" and [each[0] for each in rows] == [f"measured at {at}"]
    known = {*known_figures(experiment.flows, experiment.vcs, experiment.network, has=())}
    assert metrics.keys() <= known and "a.cell_loss_ratio" not in known


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('at = "lan"', 'at = "a"', r"vc.0.cdv.at: the cells of the VC arrive at lan, sink, and not at 'a'"),
        ('to = "sink"', 'to = ["sink", "b"]', r"vc.0.cdv: the VC leads to several hosts"),
        ('cdv = { pcr = "80 Mb/s", ', "cdv = { ", r"vc.0.cdv: the key 'pcr' is missing"),
    ],
)
def test_a_1_point_cdv_that_cannot_be_measured_is_one_line(tmp_path, old, new, what):
    path = Path(two_sources(tmp_path, CDV.format(at="lan")))
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(BentpipeError, match=what):
        load(str(path))


def test_a_line_with_errors_has_them_in_the_vcs_figures(tmp_path):
    """At a bit error rate of 1e-4, 3.8 % of cells with 384 bits of payload and 40 of header have errors."""
    text = Path(two_sources(tmp_path)).read_text()
    text = text.replace("[hosts]", '[network.lines]\nway = { ends = ["lan:3", "far:0"], ber = 1e-4 }\n[hosts]')
    text = text.replace('sink = { port = "lan:2" }', 'sink = { port = "far:1" }')
    far = '[network.switches.far]\npolicy = "tail"\nports = ["OC-12c", "OC-12c"]\n[network.hosts]'
    text = text.replace('"OC-3c"]', '"OC-3c", "OC-12c"]').replace("[network.hosts]", far)
    path = tmp_path / "errors.toml"
    path.write_text(text.replace('sink = { port = "far:1" }', 'sink = { port = "far:1", rate = "OC-12c" }'))
    summary = run_experiment(load(str(path))).summary
    (link,) = [c for name, c in summary["counters"].items() if name == "way.out"]
    metrics = summary["metrics"]
    cells = [row["cells"] for row in summary["ledger"]]
    assert metrics["cell_error_ratio"] == pytest.approx(0.0377, abs=0.006)
    assert sum(c["errored"] for c in cells) <= link["errored"]
    assert metrics["cells_lost"] == sum(
        loss["cells"] for c in cells for loss in c["lost"] if loss["where"] == "way.out"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cell_loss_ratio", "cell loss ratio"),
        ("a.return.cell_loss_ratio", "cell loss ratio, VC a.return"),
        ("lan:2.cell_delay_mean_ps", "mean delay in the switch, port lan:2"),
        ("flow1.goodput", "throughput, flow flow1"),
        ("flow1.dup_acks", "dup acks, flow flow1"),
    ],
)
def test_figures_have_names_in_words(name, words):
    assert label_of(name) == words
    assert figure_in_words("lan:2.cell_delay_mean_ps").endswith("(us)")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("network.switches.lan.buffer_cells", "buffer, switch lan (cells)"),
        ("hosts.tcp.window", "TCP window"),
        ("network.lines.sat.ber", "bit error ratio, line sat"),
        ("flow.0.load", "load, flow no. 1"),
        ("network.switches.*.vc_limit", "queue limit of each VC, all switches (cells)"),
        ("flow.*.tcp.ack_policy", "TCP acknowledgement policy, all flows"),
        ("hosts.mtu", "MTU"),
    ],
)
def test_keys_have_names_in_words(key, words):
    assert key_in_words(key) == words


def test_each_figure_is_declared_once_with_words_and_source():
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    for metric in METRICS:
        assert all((metric.words, metric.text, metric.source, metric.of)), metric


def test_figures_of_vcs_and_ports_have_columns_of_their_own():
    summary = {
        "flows": [{"name": "a"}],
        "metrics": {"a.cell_loss_ratio": 0.1, "lan:2.cell_loss_ratio": 0.2, "g.aggregate_goodput": 1.0},
        "ledger": [],
        "drops": {},
    }
    found = figures_of(summary)
    assert found["a", "cell_loss_ratio"] == 0.1 and found["", "g.aggregate_goodput"] == 1.0
    assert subject_columns("a", "cell_loss_ratio") == {"flow": "", "vc": "a", "port": ""}
    assert subject_columns("a", "goodput") == {"flow": "a", "vc": "", "port": ""}
    assert subject_columns("lan:2", "cell_loss_ratio") == {"flow": "", "vc": "", "port": "lan:2"}
