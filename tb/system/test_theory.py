"""Queueing theory over switches of RTL: short runs of the catalogue's experiments (`make soak` has whole ones)."""

import pytest

from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from soak.losses import Point, measured, modulated


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("theory-geo-d-1", ("experiment.duration=105 ms", "record.interval=5 ms")),
        ("theory-geo-d-1-k", ("experiment.duration=105 ms", "record.interval=5 ms")),
        ("theory-red", ("experiment.duration=126 ms", "record.interval=6 ms")),
        ("theory-nd-d-1", ("experiment.duration=94 ms", "record.interval=4.4591346 ms")),
    ],
)
def test_what_theory_predicts_is_in_the_99_percent_interval(name, changes):
    result = run_experiment(load(name, changes))
    assert result.summary["status"] == "done"
    rows = result.summary["theory"]
    assert rows and all(row["batches"] >= 19 for row in rows)
    for row in rows:
        assert row["holds"], row
        assert row["half"] < 0.25 * row["predicted"]  # the interval says something


def test_losses_of_a_modulated_source_are_near_the_exact_ones():
    """A short form of ``soak.losses``: one point of the queue that no experiment of the catalogue has."""
    exact, experiment, settings = modulated(0.8, 4)
    found = measured(Point("MMPP/D/1/K", 0.8, 4, exact, experiment, settings), seeds=6, cells=900)
    assert exact == pytest.approx(0.30811, abs=1e-5)
    half = (found.high - found.low) / 2
    assert abs(found.mean - exact) < 2 * half
    assert half < 0.2 * exact


def test_histograms_are_in_the_results_and_say_what_the_sums_do():
    """A slot's bin is as wide as the delays differ, so the mean of the bins is that of the sums."""
    result = run_experiment(load("theory-geo-d-1", ("experiment.duration=20 ms", "flow.0.load=0.1")))
    counters = result.summary["counters"]["lan"]
    delays = counters["delay_by_port"][1]
    assert counters["delay_by_port"][0] == []
    assert counters["delay_by_vc"][0] == delays
    sent = sum(cells for _, cells in delays)
    assert 0 <= sent - result.flows[0]["datagrams_received"] < 9  # on their way to the sink
    assert sent > 2000
    assert counters["delay_sum"][1] == sum((least + 1) * cells for least, cells in delays)  # 1, 5, 9 … ticks
    found = counters["queue_by_port"][1]
    assert counters["queue_sum"][1] == sum(least * cells for least, cells in found)
    assert sum(cells for _, cells in found) - sent in (0, 1)
