"""``--precision``: seeds are added until an interval is narrow enough, or will not be."""

import itertools
import random

import pytest

from bentpipe.cli import main
from bentpipe.errors import BentpipeError
from bentpipe.sweeps.grid import parse_axes
from bentpipe.sweeps.plan import plan_sweep, with_metrics
from bentpipe.sweeps.precision import Precision, parse_precision, run_until_precise
from bentpipe.sweeps.run import _entry, _head
from bentpipe.sweeps.summary import Results
from unit.experiment.test_cell_metrics import two_sources

BUFFERS = parse_axes(["network.switches.lan.buffer_cells=4,8"])


def swept(folder, precision, value, seeds=(1, 2, 3)):
    """Return the result of a sweep over two buffers, and the plans of its rounds; ``value`` of a buffer and a seed."""
    first = with_metrics(plan_sweep(two_sources(folder), BUFFERS, seeds), [precision.metric])
    plans = []

    def run(plan):
        plans.append(plan)
        results = Results(_head(plan), [_entry(each) for each in plan.runs])
        for each in plan.runs:
            cells = int(each.values["network.switches.lan.buffer_cells"])
            figure = {precision.metric: value(cells, each.experiment.seed)}
            whole = {"status": "done", "reason": None, "shortened": False, "changes": [], "expected": []}
            empty = {"flows": [], "ledger": [], "drops": {}, "published": [], "resolved": {"flows": []}}
            time = {"simulated_s": 1.0, "wall_s": 1.0}
            results.add(_entry(each)["folder"], {**whole, **empty, "time": time, "metrics": figure})
        return results.summary(*results.verdict(), {})

    return run_until_precise(first, precision, run), plans


def near_one(spread):
    return lambda cells, seed: 1 + spread[cells] * (random.Random(f"{cells} {seed}").random() - 0.5)


def test_points_get_seeds_until_their_intervals_are_narrow_enough(tmp_path):
    """A point with a narrow interval keeps its seeds; a wide one gets more, in rounds that at most double them."""
    precision = Precision("cell_loss_ratio", 0.1, 200)
    summary, plans = swept(tmp_path, precision, near_one({4: 0.01, 8: 1.0}))
    narrow, wide = summary["precision"]["points"]
    assert (narrow["seeds"], narrow["met"]) == (3, True)
    assert wide["met"] and wide["reached"] <= 0.1 and 20 < wide["seeds"] < 60
    assert [len(plan.runs) for plan in plans] == sorted(len(plan.runs) for plan in plans)
    for before, after in itertools.pairwise(plans):
        assert len(after.runs) - 3 <= 2 * (len(before.runs) - 3)
    seeds = [each.experiment.seed for each in plans[-1].runs if each.values["network.switches.lan.buffer_cells"] == "8"]
    assert seeds == [*range(1, len(seeds) + 1)]
    assert "is within 10 % at each point" in summary["remarks"][-1]


def test_a_point_that_would_need_more_than_the_limit_is_told(tmp_path):
    summary, _ = swept(tmp_path, Precision("cell_loss_ratio", 0.01, 12), near_one({4: 0.001, 8: 1.0}))
    _, wide = summary["precision"]["points"]
    assert (wide["met"], wide["seeds"]) == (False, 12) and wide["needed"] > 500
    (remark,) = summary["remarks"]
    assert "not as precise as 1 % at network.switches.lan.buffer_cells = 8" in remark
    assert f"needs some {wide['needed']:,} (the limit is 12)" in remark


def test_a_figure_that_is_0_in_each_run_has_no_precision(tmp_path):
    summary, _ = swept(tmp_path, Precision("cell_loss_ratio", 0.1, 6), lambda cells, seed: 0.0 if cells == 8 else 1.0)
    assert summary["precision"]["points"][1] | {"at": None} == {
        "at": None, "seeds": 6, "reached": None, "met": False, "needed": None,
    }  # fmt: skip
    assert "has no interval with 6 seeds" in summary["remarks"][0]


@pytest.mark.parametrize(
    ("text", "share"), [("cell_loss_ratio: 10 %", 0.1), ("a.cell_loss_ratio:2.5%", 0.025), ("x: 0.2", 0.2)]
)
def test_what_is_read(text, share):
    assert parse_precision(text, 50) == Precision(text.partition(":")[0], share, 50)


@pytest.mark.parametrize("text", ["cell_loss_ratio", "cell_loss_ratio: 0 %", "cell_loss_ratio: 100 %", "x: ten"])
def test_what_makes_no_sense(text):
    with pytest.raises(BentpipeError, match="expected METRIC: SHARE"):
        parse_precision(text, 50)


def test_it_is_checked_before_the_first_run_and_kept_in_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = two_sources(tmp_path)
    plans = []

    def run_precisely(plan, _, precision, **options):
        plans.append((plan, precision))
        raise BentpipeError("that is enough")

    monkeypatch.setattr("bentpipe.sweeps.run.run_precisely", run_precisely)
    assert main(["sweep", name, "--precision", "cell_los_ratio: 10 %"]) == 2
    assert "did you mean 'cell_loss_ratio'" in capsys.readouterr().err
    assert main(["sweep", name, "--precision", "cell_loss_ratio: 10 %", "--most-seeds", "30"]) == 2
    ((plan, precision),) = plans
    assert precision == Precision("cell_loss_ratio", 0.1, 30)
    assert plan.seeds == (1, 2, 3, 4, 5) and plan.metrics == ("cell_loss_ratio",)
    assert "--precision 'cell_loss_ratio: 10 %' --most-seeds 30" in plan.command
