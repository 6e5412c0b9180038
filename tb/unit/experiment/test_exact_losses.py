"""Cell loss ratios of runs beside exact ones: Geo/D/1/K through the real switch, seeds fixed beforehand."""

import pytest

from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.statistics import mean_of
from models.queueing import geo_d_1_k_loss
from unit.experiment.test_cell_metrics import FLOW, SOURCES

SERVICE = 4
"""Slots of an OC-12c line that a cell takes on an OC-3c line."""

POINTS = [(0.8, 2), (0.8, 5), (0.9, 2), (0.9, 5)]
"""Load of the port, and places beside the cell that is being sent."""


def test_loss_ratios_with_their_intervals_have_the_exact_ones(tmp_path):
    """At least 90 % of the intervals would have them; of four all but one at most. VC, port and run say the same."""
    path = tmp_path / "geo.toml"
    path.write_text(SOURCES.replace("30 ms", "15 ms") + FLOW.format(name="a"))
    inside = 0
    for rho, places in POINTS:
        settings = [f"flow.0.load={rho / SERVICE}", f"network.switches.lan.buffer_cells={places}"]
        found = [run_experiment(load(str(path), settings, seed=seed)).summary["metrics"] for seed in range(1, 6)]
        for metrics in found:
            assert metrics["cell_loss_ratio"] == metrics["a.cell_loss_ratio"]
            at_port = metrics["lan:2.cell_loss_ratio"]  # of cells that came there, not of those sent
            assert metrics["cell_loss_ratio"] == pytest.approx(at_port, rel=1e-3)
        mean = mean_of([metrics["cell_loss_ratio"] for metrics in found])
        exact = geo_d_1_k_loss(rho / SERVICE, SERVICE, places)
        assert mean.half is not None and mean.half < 0.25 * exact, "else it says nothing"
        inside += abs(mean.mean - exact) <= mean.half
        print(f"load {rho}, {places} places: {mean.mean:.5f} ± {mean.half:.5f}, exact {exact:.5f}")
    assert inside >= 3
