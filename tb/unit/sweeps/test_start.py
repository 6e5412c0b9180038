"""Before the first run of a sweep: names of figures are known, and workers start, if not at once."""

import pytest

from bentpipe.cli import main
from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.sweeps.cluster import started
from bentpipe.sweeps.table import planned_metrics


def test_a_figure_that_no_run_has_is_refused_before_any_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bentpipe.sweeps.run.run_sweep", lambda *_, **__: pytest.fail("the sweep runs"))
    assert main(["sweep", "lan-1flow", "--seeds", "1-2", "--metric", "fairnes"]) == 2
    message = "bentpipe: metric fairnes: no run has such a figure; did you mean 'fairness'?"
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["sum_of_flow_rates", "timeouts", "sigma"])
def test_figures_of_any_run(name):
    planned_metrics([name], [load("lan-1flow")])


def test_figures_of_splitting_need_it():
    planned_metrics(["loss_ratio"], [load("rare-loss", ["splitting.port=lan:1"])])
    with pytest.raises(BentpipeError, match="metric loss_ratio: no run has such a figure"):
        planned_metrics(["loss_ratio"], [load("lan-1flow")])


def starting(failures):
    left = [failures]

    def make():
        left[0] -= 1
        if left[0] >= 0:
            raise RuntimeError("Nanny failed to start")
        return "a cluster"

    return make


def test_a_worker_that_dies_at_its_start_does_not_end_a_sweep():
    assert started(starting(2)) == "a cluster"
    with pytest.raises(BentpipeError, match=r"didn't start in 3 attempts \(Nanny failed to start\): give fewer"):
        started(starting(3))
