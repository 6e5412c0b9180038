"""Test cells in experiments: what is read and refused, and runs whose analyser, ledger and capture agree."""

import copy
import json
import tomllib
from dataclasses import asdict

import pytest

from bentpipe.apps.test_cells import APPLICATION
from bentpipe.captures.test_cells import analyse_capture, read_capture
from bentpipe.cli import main
from bentpipe.errors import BentpipeError, ConfigError
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.resolve.known import known_figures
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.declared import figure_in_words, metric_of
from bentpipe.results.folder import RunFolder
from models.resumed import interrupted, uninterrupted

MS = 10**9
TEXT = """
[experiment]
id = "test-cells"
title = "Test cells beside cells in slots"
duration = "60 ms"

[network.switches]
west = { ports = ["OC-3c", "OC-12c", "OC-3c"], buffer_cells = 6, policy = "tail" }
east = { ports = ["OC-3c", "OC-3c"], policy = "tail" }
[network.lines]
wan = { ends = ["west:2", "east:0"], delay = "2 ms", ber = 2e-5 }
[network.hosts]
tester = { port = "west:0" }
other = { port = "west:1", rate = "OC-12c" }
sink = { port = "east:1" }
[hosts]
cost = 0

[record]
pcap = ["cells:sink"]

[[flow]]
name = "probe"
source = "tester"
sink = "sink"
app = "test_cells"
cell_rate = "100 Mb/s"
duration = "40 ms"
block = 128
delay_class = "500 ns"

[[flow]]
name = "slots"
source = "other"
sink = "sink"
protocol = "udp"
app = "slots"
datagram = 4
rate = "OC-12c"
load = 0.09
"""


def read(change=None):
    document = copy.deepcopy(tomllib.loads(TEXT))
    if change is not None:
        change(document)
    return parse_experiment(document, Source("cells.toml", TEXT))


def refused(change):
    with pytest.raises(ConfigError) as error:
        read(change)
    return str(error.value)


def test_what_cannot_be_is_refused_in_a_line():
    def flow(**values):
        return lambda document: document["flow"][0].update(values)

    assert "a power of two of cells, not 100" in refused(flow(block=100))
    assert "it has to be less" in refused(flow(block_limit=128))
    assert "test_cells has no such setting" in refused(flow(size="1 MB"))
    assert "test_cells runs over atm only" in refused(flow(protocol="udp"))
    assert "count" in refused(flow(count=2**32))
    assert "delay_class" in refused(flow(delay_class="1 s"))
    assert "is between two hosts" in refused(flow(sink=["sink", "other"]))

    def twice(key):
        def change(document):
            document["flow"].append(document["flow"][0] | {"name": "again", key: "other"})

        return change

    assert "'sink' has one analyser of test cells, which 'probe' uses" in refused(twice("source"))
    assert "'tester' has one generator of test cells, which 'probe' uses" in refused(twice("sink"))

    def by_hand(document):
        document["vc"] = [{"name": "hand", "from": "tester", "to": "sink", "vci": 99, "policy": "epd"}]
        document["flow"][0].update(vc="hand")
        del document["flow"][0]["cell_rate"]

    assert 'epd in west drops frames, and test cells are in none: give the VC policy = "tail"' in refused(by_hand)


def named(flows, name):
    return next(flow for flow in flows if flow["name"] == name)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run into a folder, with a capture of the sink's line."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    experiment = read()
    with RunFolder.claim(folder) as claimed:
        result = run_experiment(experiment, folder=claimed)
        claimed.finish(result)
    return experiment, folder, result


def test_analyser_and_ledger_agree(run):
    """Losses in the buffer and errors on the line; the run ends when the last cell has come."""
    result = run[2]
    probe = named(result.flows, "probe")
    ledger = next(row["cells"] for row in result.summary["ledger"] if row["vc"] == "probe")
    lost = sum(loss["cells"] for loss in ledger["lost"])
    assert probe["finished"] and 42 * MS < probe["end_ps"] < 43 * MS
    assert ledger["sent"] == probe["test_cells_sent"] == pytest.approx(40e-3 * 100e6 / 424, abs=2)
    assert probe["true_cells_lost"] == lost > 30
    assert probe["true_cells_errored"] == ledger["errored"] > 10
    # At the end of the stream a loss is not seen; a header error is a loss
    assert lost - 3 <= probe["test_cells_lost"] <= lost
    assert probe["test_cells_errored"] == ledger["errored"]
    assert probe["test_cells_misinserted"] == probe["test_cells_unjudged"] == 0
    assert probe["test_cells_received"] == ledger["received"]
    assert probe["measured_cell_loss_ratio"] == pytest.approx(lost / ledger["sent"], rel=0.05)
    assert 0 < probe["severely_errored_cell_block_ratio"] < 1
    assert probe["cell_loss_ratio_outside_secb"] < probe["measured_cell_loss_ratio"]
    assert probe["cell_blocks"] == probe["test_cells_sent"] // 128
    path_ps = 2 * MS + 3 * 2_831_000
    assert path_ps < probe["cell_transfer_delay_min_ps"] < path_ps + 10_000_000  # and two switches take their time
    assert probe["cell_transfer_delay_min_ps"] < probe["cell_transfer_delay_p50_ps"]
    assert probe["cell_transfer_delay_p50_ps"] <= probe["cell_transfer_delay_p999_ps"]
    assert probe["cell_transfer_delay_p999_ps"] <= probe["cell_transfer_delay_max_ps"]
    assert 2 * 2_831_000 < probe["cell_delay_variation_ps"] < 10 * 2_831_000
    assert "probe.goodput" not in result.summary["metrics"]


def test_each_figure_is_known_to_sweeps_with_words_and_unit(run):
    experiment, _, result = run
    known = {*known_figures(experiment.flows, experiment.vcs, experiment.network, has=())}
    for column in APPLICATION.report.columns:
        assert f"probe.{column.name}" in known & result.summary["metrics"].keys(), column
        assert metric_of(column.name).unit == column.unit
    assert metric_of("probe.measured_cell_loss_ratio").ratio
    assert figure_in_words("probe.cell_transfer_delay_mean_ps") == "mean cell transfer delay, flow probe (ms)"


def test_a_capture_at_the_sink_tells_what_its_analyser_has_counted(run, capsys, caplog, tmp_path):
    experiment, folder, result = run
    probe = named(result.flows, "probe")
    (file,) = folder.glob("*.pcap")
    ((way, vpi, vci), found), *others = analyse_capture(read_capture(file), (7, 4), 6).items()
    assert not others and (way, vpi) == ("in", 0)
    assert vci == experiment.vcs[0].vci
    figures = {
        "test_cells_received": found.received,
        "test_cells_lost": found.lost,
        "test_cells_errored": found.errored,
        "cell_blocks": found.blocks,
        "severely_errored_cell_block_ratio": found.secbs / found.blocks,
        "cell_transfer_delay_mean_ps": found.delay_mean_ps,
        "cell_transfer_delay_min_ps": found.delay_min_ps,
        "cell_transfer_delay_max_ps": found.delay_max_ps,
        "cell_transfer_delay_p99_ps": found.quantile_ps(0.99),
    }
    assert figures == {name: probe[name] for name in figures}
    assert main(["cells", str(file), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"way": way, "vpi": 0, "vci": vci} | {k: v for k, v in asdict(found).items() if k != "classes"} | {
        "class_ps": row["class_ps"]
    }
    assert main(["cells", str(file)]) == 0
    assert f"{found.received:,}" in capsys.readouterr().out
    assert main(["cells", str(file), "--block", "100"]) == 2
    assert "a power of two" in capsys.readouterr().err
    (tmp_path / "none").write_bytes(b"nothing")
    with pytest.raises(BentpipeError, match="no pcap file"):
        [*read_capture(tmp_path / "none")]
    (tmp_path / "cut").write_bytes(file.read_bytes()[:-1])
    whole = [*read_capture(file)]
    caplog.clear()
    assert [*read_capture(tmp_path / "cut")] == whole[:-1]
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'cut'}: the last record is cut off and left out"
    ]


def test_a_run_that_is_stopped_and_resumed_is_the_same(tmp_path):
    """In the middle of the cells, and of a change of the rate; both ways at once."""

    def change(document):
        back = {"name": "back", "source": "sink", "sink": "tester", "start": "3 ms", "count": 1500}
        document["flow"].append(document["flow"][0] | back)
        del document["flow"][2]["duration"]
        document["event"] = [{"at": "20 ms", "set": {"flow.0.cell_rate": "20 Mb/s"}}]
        document["experiment"]["duration"] = "80 ms"
        document["flow"][1]["duration"] = "40 ms"
        document["record"]["interval"] = "1 ms"

    experiment = read(change)
    whole = uninterrupted(experiment, tmp_path / "whole")
    parts, stops = interrupted(experiment, tmp_path / "parts", [10 * MS, 30 * MS])
    assert stops == 2
    assert parts == whole
    flows = json.loads((tmp_path / "whole" / "result.json").read_text())["flows"]
    back = named(flows, "back")
    assert back["finished"] and back["test_cells_sent"] == 1500
    assert back["test_cells_lost"] + back["test_cells_errored"] > 5
    assert named(flows, "probe")["test_cells_sent"] == pytest.approx((20e-3 * 100e6 + 20e-3 * 20e6) / 424, abs=3)
