"""``--metric``: which figures a sweep takes, and what it makes of them."""

from pathlib import Path

import pytest

from bentpipe.errors import BentpipeError
from bentpipe.plots.style import styled
from bentpipe.plots.sweep import sweep_figure, write_sweep_plot
from bentpipe.results.declared import subject_columns
from bentpipe.sweeps.grid import parse_axes
from bentpipe.sweeps.page import sweep_html
from bentpipe.sweeps.plan import plan_sweep, with_metrics
from bentpipe.sweeps.run import _entry, _head
from bentpipe.sweeps.show import mean_rows
from bentpipe.sweeps.summary import Results
from unit.experiment.test_cell_metrics import two_sources

BUFFERS = ["network.switches.lan.buffer_cells=4,8"]


def planned(folder: Path, *metrics: str):
    return with_metrics(plan_sweep(two_sources(folder), parse_axes(BUFFERS), (1, 2)), metrics)


def summed(plan, ratios):
    """``(summary, rows)`` of a sweep whose runs have these figures, by name and by buffer."""
    entries = [_entry(each) for each in plan.runs]
    results = Results(_head(plan), entries)
    for entry in entries:
        cells = int(next(iter(entry["values"].values())))
        metrics = {name: value / cells / entry["seed"] for name, value in ratios.items()}
        results.add(
            entry["folder"],
            {
                "status": "done",
                "reason": None,
                "shortened": False,
                "changes": [],
                "expected": [],
                "time": {"simulated_s": 1.0, "wall_s": 1.0},
                "metrics": {"aggregate_goodput": 1e6, **metrics},
                "flows": [],
                "ledger": [],
                "drops": {},
                "published": [],
                "resolved": {"flows": []},
            },
        )
    return results.summary(*results.verdict(), {"started": "", "wall_s": 1.0}), results.rows()


@pytest.mark.parametrize(
    "name",
    ["cell_loss_ratio", "a.goodput", "a.cell_loss_ratio", "lan:2.cell_delay_p99_ps", "b.delay_mean_ps", "retransmits"],
)
def test_any_figure_is_taken_and_kept_in_the_command(tmp_path, name):
    plan = planned(tmp_path, name)
    assert plan.metrics == (name,)
    assert f"--metric {name}" in plan.command


def test_a_pattern_is_each_figure_that_it_fits(tmp_path):
    plan = planned(tmp_path, "?.cell_loss_ratio", "a.cell_loss_ratio")
    assert plan.metrics == ("a.cell_loss_ratio", "b.cell_loss_ratio")
    assert "--metric '?.cell_loss_ratio'" in plan.command


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cell_loss_ration", "no run has such a figure; did you mean 'cell_loss_ratio'"),
        ("c.cell_loss_ratio", "no run has such a figure"),
        ("lan:3.cell_loss_ratio", "no run has such a figure"),
        ("loss_ratio", "no run has such a figure"),
        ("nosuch", "no run has such a figure; `bentpipe help metrics` lists them"),
        ("*.loss", "no figure has such a name"),
    ],
)
def test_a_figure_that_no_run_can_have_is_refused_before_the_first_run(tmp_path, name, message):
    with pytest.raises(BentpipeError, match="metric ") as caught:
        planned(tmp_path, name)
    assert message in str(caught.value)


def test_what_is_asked_for_is_tabulated_with_small_ratios_as_they_are(tmp_path):
    plan = planned(tmp_path, "a.cell_loss_ratio", "cell_loss_ratio")
    summary, _ = summed(plan, {"a.cell_loss_ratio": 4e-6, "cell_loss_ratio": 8e-6})
    columns, rows = mean_rows(summary)
    assert columns[-2:] == ("cell loss ratio, VC a", "cell loss ratio")
    assert [row[-2].partition(" ")[0] for row in rows] == ["7.5e-07", "3.75e-07"]


def test_figures_of_one_kind_share_a_panel_with_a_logarithmic_axis(tmp_path):
    plan = planned(tmp_path, "a.cell_loss_ratio", "b.cell_loss_ratio", "cells_lost")
    summary, rows = summed(plan, {"a.cell_loss_ratio": 1e-3, "b.cell_loss_ratio": 1e-5, "cells_lost": 4000.0})
    with styled():
        figure = sweep_figure(summary, rows)
    assert figure is not None
    ratios, counts = figure.axes
    assert (ratios.get_title(loc="left"), ratios.get_yscale()) == ("Cell loss ratio", "log")
    assert counts.get_yscale() == "linear"
    assert ratios.get_xlabel() == "buffer, switch lan (cells)"
    assert [label.get_text() for label in ratios.get_xticklabels()] == ["4", "8"]
    labels = [text.get_text() for text in ratios.get_legend().get_texts()]
    assert "VC a" in labels and "VC b" in labels
    page = sweep_html(summary, rows)
    assert 'data-figure="cell-loss-ratio"' in page and '"log": true' in page.replace('"log":true', '"log": true')
    write_sweep_plot(tmp_path, summary, rows)
    assert (tmp_path / "overview.pdf").read_bytes().startswith(b"%PDF")


def test_values_of_0_are_told_where_the_axis_has_no_place_for_them(tmp_path):
    plan = planned(tmp_path, "a.cell_loss_ratio", "b.cell_loss_ratio")
    summary, rows = summed(plan, {"a.cell_loss_ratio": 1e-3, "b.cell_loss_ratio": 0.0})
    figure = sweep_figure(summary, rows)
    assert figure is not None
    assert any("4 values of 0 have no place" in text.get_text() for text in figure.axes[0].texts)


def test_means_are_of_vcs_that_were_asked_for_alone(tmp_path):
    plan = planned(tmp_path, "a.cell_loss_ratio")
    summary, rows = summed(plan, {"a.cell_loss_ratio": 1e-3, "b.cell_loss_ratio": 1e-5})
    assert {name for entry in summary["means"] for name in entry["metrics"] if "." in name} == {"a.cell_loss_ratio"}
    assert {row["vc"] for row in rows if row["metric"] == "cell_loss_ratio"} == {"a", "b"}
    assert subject_columns("", "cell_loss_ratio") == {"flow": "", "vc": "", "port": ""}
