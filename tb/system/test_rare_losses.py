"""Rare losses by splitting, over switches of RTL; `make soak` has the intervals' coverage."""

import io
import json

import pytest

from bentpipe.cli import main
from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from models.queueing import geo_d_1_k_late, geo_d_1_k_loss, geo_d_1_k_reach

SHORT = (  # a small buffer, whose switch other tests have, too
    "network.switches.lan.buffer_cells=3",
    'network.switches.lan.histograms={bins="linear",delay_bin="700 ns"}',
    "splitting.levels=[2,3]",
    "splitting.effort=50",
    "splitting.repeats=10",
    "flow.0.load=0.08",
    "experiment.duration=60 ms",
    "record.interval=10 ms",
)


def run(*more):
    experiment = load("rare-loss", (*SHORT, *more))
    return run_experiment(experiment).summary


@pytest.fixture(scope="module")
def summary():
    return run(f"theory.0.predicted={geo_d_1_k_loss(0.08, 4, 3)}")


def test_the_exact_loss_is_in_the_interval(summary):
    assert summary["status"] == "done"
    (row, _) = summary["theory"]
    assert row["holds"], row
    assert row["high"] < 10 * row["low"]  # the interval says something
    assert summary["metrics"]["loss_ratio"] == row["ours"]
    assert summary["metrics"]["cells_simulated"] < summary["metrics"]["cells_plain"]


def test_the_exact_share_of_long_waits_is_in_the_interval():
    """A cell that waits for 8 slots of four ticks leaves 33 ticks after it came, or a little later."""
    exact = geo_d_1_k_late(0.08, 4, 3, 8)
    row = f'{{quantity="late",predicted={exact},metric="delay_ratio"}}'
    found = run('splitting.delay="5.83 us"', f"theory=[{row}]")
    (beside,) = found["theory"]
    assert beside["holds"] and beside["high"] < 10 * beside["low"], beside
    assert found["metrics"]["delay_ratio"] == beside["ours"] == found["splitting"]["delay_ratio"]["value"]
    assert "loss_ratio" not in found["metrics"] and found["splitting"]["delay_ps"] == 5_830_000
    delays = next(port for port in found["ports"] if port["port"] == "lan:1")["delays"]
    late = sum(cells for low, _, cells in delays if low >= 32 * 176_940)  # bins of four ticks, in the plain run
    cells = sum(cells for *_, cells in delays)
    assert found["splitting"]["plain"]["value"] == pytest.approx(late / cells, rel=0.3)


def test_levels_are_reached_as_theory_says(summary):
    reach = geo_d_1_k_reach(0.08, 4, 3)
    for row in summary["splitting"]["levels"]:
        found = row["reach"]
        assert found["low"] / 1.5 < reach[row["level"] - 1] < found["high"] * 1.5, row


def test_the_plain_run_is_as_without_splitting(summary):
    experiment = load("rare-loss", SHORT)
    document = {key: value for key, value in experiment.document.items() if key not in ("splitting", "theory")}
    from bentpipe.experiment.document.source import Source
    from bentpipe.experiment.resolve.parse import parse_experiment

    plain = run_experiment(parse_experiment(document, Source("rare-loss", "")))
    assert plain.summary["splitting"] is None
    assert plain.summary["counters"]["lan"] == summary["counters"]["lan"]
    assert plain.summary["flows"] == summary["flows"]


def test_the_same_seed_gives_the_same_estimate_and_another_another(summary):
    assert run()["splitting"] == summary["splitting"]
    assert run("experiment.seed=2")["splitting"]["loss_ratio"] != summary["splitting"]["loss_ratio"]


def test_a_shortened_run_has_fifty_trials_from_a_level_at_least():
    experiment = load("rare-loss", SHORT, duration_ps=10 * 10**9)
    split = run_experiment(experiment).summary["splitting"]
    assert split["levels"][0]["trials"] == 50 * 10


def test_what_has_nothing_random_is_refused():
    flow = 'flow=[{name="a",source="source",sink="sink",protocol="udp",app="cbr",block=40,period="9 us"}]'
    with pytest.raises(BentpipeError, match="nothing can be split: no application draws random numbers"):
        run(flow)


def test_a_run_says_what_it_estimates_and_what_it_took(summary):
    from rich.console import Console

    from bentpipe.results.tables import print_run

    out = io.StringIO()
    print_run(Console(file=out, width=200), summary, summary["flows"])
    text = out.getvalue()
    found = summary["splitting"]["loss_ratio"]
    assert f"Cells lost at lan:1: {found['value']:.4g} of the arriving cells" in text
    assert f"{found['low']:.4g} to {found['high']:.4g} (95 %), 10 batches" in text
    assert f"from {summary['splitting']['cells']:,} cells" in text


def test_levels_of_a_pilot_and_what_the_command_says(tmp_path, capsys):
    from bentpipe.cli import main

    settings = [part for each in SHORT if "levels" not in each for part in ("--set", each)]
    assert main(["run", "rare-loss", "--case", "1e-4", "--json", "--out", str(tmp_path / "x"), *settings]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["cases"][0]["metrics"]["loss_ratio"] > 0
    split = json.loads((tmp_path / "x" / "1e-4" / "result.json").read_text())["splitting"]
    levels = [row["level"] for row in split["levels"]]
    assert levels == sorted(set(levels)) and levels[-1] <= 3
    assert (tmp_path / "x" / "1e-4" / "splitting.png").is_file()
    for folder in (tmp_path / "x", tmp_path / "x" / "1e-4"):
        assert "Rare losses" in (folder / "report.html").read_text()


@pytest.fixture(name="transfer", scope="module")
def _transfer(tmp_path_factory):
    """A transfer beside bursts, with trials in the network of RTL."""
    folder = tmp_path_factory.mktemp("rare") / "run"
    settings = ("network.switches.lan.buffer_cells=400", "rare_timeout.levels=[80,350]")
    settings = (*settings, "rare_timeout.losses=[1]", "rare_timeout.effort=50", "experiment.duration=1300 ms")
    words = [word for setting in settings for word in ("--set", setting)]
    words = ["run", "rare-timeout", "--case", "400 cells", *words, "--no-plots", "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("bentpipe.experiment.run.rare_timeouts.LEAST_EFFORT", 1)  # 16 trials from each level
        assert main(words) == 0
    return folder / "400-cells", settings


def test_rare_time_outs_are_in_result_report_and_terminal(transfer, capsys):
    folder, _ = transfer
    summary = json.loads((folder / "result.json").read_text())
    found = summary["rare_timeout"]
    assert found["batches_done"] == 10 and found["trials"] == sum(row["trials"] for row in found["levels"])
    assert [row["level"] for row in found["levels"]] == [None, 80, 350, 1]
    assert summary["metrics"]["timeout_probability"] == found["probability"]["value"] > 0
    assert found["levels"][0]["trials"] == 160 and found["levels"][-1]["timeouts"] > 10
    assert found["probability"]["low"] < 2.5e-3 < found["probability"]["high"]  # which a long run found
    assert "Rare time-outs" in (folder / "report.html").read_text()
    capsys.readouterr()
    assert main(["report", str(folder)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Probability of a time-out in the transfer transfer" in text


def test_the_trials_leave_the_plain_run_as_it_was(transfer):
    folder, settings = transfer
    summary = json.loads((folder / "result.json").read_text())
    settings = [each for each in settings if not each.startswith("rare_timeout")]
    experiment = load("rare-timeout", settings)
    document = {key: value for key, value in experiment.document.items() if key != "rare_timeout"}
    from bentpipe.experiment.document.source import Source
    from bentpipe.experiment.resolve.parse import parse_experiment

    plain = run_experiment(parse_experiment(document, Source("rare-timeout", "")))
    assert plain.summary["counters"]["lan"] == summary["counters"]["lan"]
    assert plain.summary["rare_timeout"] is None
