"""Records of lost cells: what a run writes of each, and what they say of bursts."""

from collections import Counter

import pytest

from bentpipe.api import read
from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.experiment.run.perform import perform
from bentpipe.experiment.run.run import run_experiment
from bentpipe.plots.bursts import burst_figure
from bentpipe.report.figures import figures_of
from bentpipe.results.folder import RunFolder
from bentpipe.results.losses import COLUMNS, Bursts, autocorrelation, shares_at_least, timeline
from bentpipe.results.tables import cell_tables, loss_text
from unit.experiment.test_cell_metrics import two_sources

FRAMES = """
[experiment]
id = "frames"
title = "Three flows of TCP over a line with a small buffer"
duration = "300 ms"

[network.switches.lan]
ports = ["OC-3c", "OC-3c", "OC-3c", "OC-3c"]
buffer_cells = 600
policy = "epd"

[network.hosts]
a = { port = "lan:0" }
b = { port = "lan:1" }
c = { port = "lan:2" }
sink = { port = "lan:3" }

[hosts]
mtu = 1500

[record]
losses = true
"""


def frames(folder, policy="epd"):
    path = folder / "frames.toml"
    flows = [f'[[flow]]\nname = "{name}"\nsource = "{name}"\nsink = "sink"\nsize = "endless"\n' for name in "abc"]
    path.write_text(FRAMES.replace('"epd"', f'"{policy}"') + "".join(flows))
    return load(str(path))


def test_each_lost_cell_has_a_record_and_their_sums_are_those_of_ledger_and_counters(tmp_path):
    experiment = load(two_sources(tmp_path), ["record.losses=true"])
    result = run_experiment(experiment)
    summary, rows = result.summary, result.losses.to_pylist()
    assert [*rows[0]] == [*COLUMNS]
    by_vc = Counter(row["vc"] for row in rows)
    for row in summary["ledger"]:
        assert by_vc[row["vc"]] == sum(loss["cells"] for loss in row["cells"]["lost"])
    assert [by_vc["a"], by_vc["b"]] == [n for n in summary["counters"]["lan"]["drop_full"] if n]
    assert summary["losses"] == {"recorded": len(rows), "left_out": 0}
    assert {(row["node"], row["port"], row["reason"], row["dropped_as"]) for row in rows} == {
        ("lan", "lan:2", "full", "cell")
    }
    assert {row["queue_cells"] for row in rows} <= {3, 4}  # a cell may leave in the tick in which one is dropped
    assert all(0 <= row["vc_queue_cells"] <= row["queue_cells"] for row in rows)
    assert all((row["position"], row["pdu_cells"], row["pdu"]) == (1, 1, row["cell"]) for row in rows)
    times = [row["time_ps"] for row in rows]
    assert times == sorted(times) and times[0] > 0 and times[-1] <= 30 * 10**9


def test_records_end_at_their_limit_and_the_run_says_so(tmp_path):
    experiment = load(two_sources(tmp_path), ["record.losses=true", "record.losses_most=10"])
    summary = run_experiment(experiment).summary
    assert summary["losses"] == {"recorded": 10, "left_out": summary["metrics"]["cells_lost"] - 10}
    assert "more were only counted" in loss_text(summary)


def test_a_run_without_records_has_none(tmp_path):
    result = run_experiment(load(two_sources(tmp_path), ["experiment.duration=1 ms"]))
    assert result.losses is None and result.summary["losses"] is None
    assert "loss_bursts" not in result.summary["metrics"] and burst_figure(result) is None


def test_epd_loses_whole_frames_and_tail_drop_does_not(tmp_path):
    """EPD discards all cells of a frame, so bursts are whole frames; positions count from 1."""
    lost = {}
    for policy in ("epd", "tail"):
        result = run_experiment(frames(tmp_path, policy))
        rows = [row for row in result.losses.to_pylist() if row["pdu"] is not None]
        ledger = {row["vc"]: row for row in result.summary["ledger"]}
        counted = sum(loss["cells"] for row in ledger.values() for loss in row["cells"]["lost"])
        assert len(result.losses) == counted > 200
        of_frame = Counter((row["vc"], row["pdu"]) for row in rows)
        sizes = {(row["vc"], row["pdu"]): row["pdu_cells"] for row in rows}
        assert all(1 <= row["position"] <= row["pdu_cells"] for row in rows)
        lost[policy] = sum(of_frame[frame] == cells for frame, cells in sizes.items()) / len(sizes)
        if policy == "epd":
            assert {row["dropped_as"] for row in rows} == {"frame"}
            assert {row["pdu_cells"] for row in rows} >= {32}
            data = [row for row in rows if row["pdu_cells"] == 32 and row["position"] == 1]
            assert {row["flow_offset"] % 1460 for row in data} == {0}
            assert result.summary["metrics"]["loss_burst_mean"] >= 20
    assert lost["epd"] == 1 and lost["tail"] < 0.7


def test_bursts_and_gaps_of_lost_cells():
    bursts = Bursts.of([1, 2, 3, 7, 9, 10])
    assert (bursts.lengths, bursts.gaps) == ([3, 1, 2], [3, 1])
    assert bursts.metrics() == {
        "loss_bursts": 3,
        "loss_burst_mean": 2.0,
        "loss_burst_max": 3,
        "loss_gap_mean": 2.0,
        "conditional_loss_probability": 0.5,  # of six lost cells three have a lost one behind them
    }
    assert Bursts.of([]).metrics() == {}
    assert shares_at_least([1, 1, 2, 5]) == ([1, 2, 5], [1.0, 0.5, 0.25])


def test_a_run_folder_keeps_them_for_python_the_report_and_plots(tmp_path):
    experiment = load(two_sources(tmp_path), ["record.losses=true"])
    with RunFolder.claim(tmp_path / "out", False) as folder:
        result = perform(experiment, folder, plots=False)
    run = read(tmp_path / "out")
    assert [*run.losses.columns] == [*COLUMNS]
    assert len(run.losses) == result.summary["metrics"]["cells_lost"]
    clr = run.clr(by="vc").set_index("vc")
    assert [*clr.index] == ["a", "b"]
    assert clr["cell_loss_ratio"]["a"] == run.metrics["a.cell_loss_ratio"]
    assert clr["conditional_loss_probability"]["b"] == run.metrics["b.conditional_loss_probability"] > 0
    assert [*run.clr(by="port")["port"]] == ["lan:2"]
    assert run.clr(by="run")["cells_lost"][0] == len(run.losses)
    with pytest.raises(BentpipeError, match="expected 'vc', 'port' or 'run'"):
        run.clr(by="flow")
    assert {"loss-bursts", "loss-gaps"} <= figures_of(result).keys()
    assert "Bursts of lost cells" in cell_tables(result.summary)
    assert "Bursts of lost cells" in (tmp_path / "out" / "report.html").read_text()
    figure = burst_figure(result)
    assert figure is not None and [len(axis.lines) for axis in figure.axes] == [2, 2, 2, 2]
    times, counts = timeline(result.losses, 20 * 10**9, 4)
    assert times == [0, 5e9, 10e9, 15e9]
    assert {vc: sum(own) for vc, own in counts.items()} == {vc: run.metrics[f"{vc}.cells_lost"] for vc in "ab"}


def test_losses_in_bursts_are_correlated_and_periodic_ones_alternate():
    """Each tenth pair of 1200 cells is lost, or each second cell."""
    pairs = [cell for cell in range(1, 1201) if cell % 20 in (5, 6)]
    found = autocorrelation(pairs, 1200, [0, 1, 2, 20])
    p = 0.1
    expected = [1.0, (0.05 - p * p) / (p * (1 - p)), -p / (1 - p), 1.0]
    assert found == pytest.approx(expected, abs=0.02)
    assert autocorrelation(range(1, 1201, 2), 1200, [1, 2]) == pytest.approx([-1, 1], abs=0.01)
    for cells in ([], range(1, 11)):
        with pytest.raises(ValueError, match="no variance"):
            autocorrelation(cells, 10, [1])
