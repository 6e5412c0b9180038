"""Runs held against each other and against published figures."""

import csv
import io
import itertools
import json
import math
import shutil

import pytest

import bentpipe.experiment.build
from bentpipe.cli import main
from bentpipe.compare.orders import Order, judged, orders
from bentpipe.compare.rows import against_published, apart, beside, different, errors_of, pairs_of
from bentpipe.compare.sides import Run as SideRun
from bentpipe.compare.sides import Side, grouped, read_side
from bentpipe.errors import BentpipeError
from bentpipe.experiment.catalogue import catalogue
from bentpipe.experiment.load import load_cases
from bentpipe.results.statistics import mean_of
from unit.experiment.fake import fake_build
from unit.experiment.test_parse import TEXT

PUBLISHED = {
    "quantity": "throughput", "case": "", "measured": 10.0, "predicted": 12.0, "unit": "Mb/s", "source": "x",
    "metric": "goodput", "over": "mean", "ours": None, "ratio": None, "remarks": [],
}  # fmt: skip


def run(goodput, seed=1, name="x", case="", changes=(), rows=(), shortened=False, flows=1, document=None):
    """A run as its ``result.json`` has it, as far as it is compared."""
    return SideRun(
        {
            "id": name,
            "case": {"name": case, "at": None, "curve": ""} if case else None,
            "seed": seed,
            "status": "done",
            "shortened": shortened,
            "changes": [{"key": key, "old": 0, "new": value} for key, value in changes],
            "metrics": {"aggregate_goodput": goodput, "goodput": goodput, "fairness": 1.0},
            "flows": [{"name": f"flow{n}", "octets_delivered": 1} for n in range(flows)],
            "ledger": [],
            "drops": {},
            "published": [{**PUBLISHED, **row} for row in rows],
            "configuration": document or {},
        },
        folder=None,
    )


def side(*runs, name="ours"):
    return Side(name, grouped(runs), (), 0)


def test_runs_that_differ_in_their_seeds_are_one():
    groups = grouped([run(1), run(2, seed=2), run(3, changes=[("window", 1)]), run(4, seed=2), run(5, case="a")])
    assert [group.values("goodput") for group in groups] == [[1, 4], [3], [5]]


def test_a_seed_is_no_change():
    groups = grouped([run(1), run(2, seed=2, changes=[("experiment.seed", 2)])])
    assert [len(group.runs) for group in groups] == [2] and groups[0].remarks == []


def test_what_is_alike_is_compared_before_what_is_alone():
    ours = side(run(1, case="a"), run(2, case="a", changes=[("w", 2)]), run(3, case="b"))
    theirs = side(run(4, case="a", changes=[("w", 2)]), run(5, case="a"), run(6, name="y", case="b"), name="theirs")
    assert [(a.values("goodput"), b.values("goodput")) for a, b in pairs_of(ours, theirs)] == [
        ([1], [5]),
        ([2], [4]),
        ([3], [6]),
    ]


def test_nothing_in_common():
    with pytest.raises(BentpipeError, match="ours and theirs have no case in common"):
        beside(side(run(1, case="a"), run(1, case="b")), side(run(2, case="c"), run(2, case="d"), name="theirs"))


def test_a_row_has_both_and_the_error_of_ours():
    (row,) = beside(side(run(8e6)), side(run(10e6)), ["goodput"])
    assert (row["ours"]["mean"], row["theirs"]["mean"], row["error_percent"]) == (8.0, 10.0, -20.0)
    assert (row["unit"], row["ours"]["half"], row["difference_half"]) == ("Mb/s", None, None)
    (row,) = beside(side(run(8e6, changes=[("window", 3)])), side(run(10e6)), ["goodput"])
    assert row["changes"] == ["window: 0 -> 3"]
    with pytest.raises(BentpipeError, match="no run has a figure 'godput'; did you mean 'goodput'"):
        beside(side(run(8e6)), side(run(10e6)), ["godput"])


def test_the_interval_of_a_difference_is_welchs():
    """Two samples of NIST's handbook's kind, worked by hand: t(0.975; 3) = 3.182446."""
    one, two = mean_of([1.0, 2.0, 3.0]), mean_of([4.0, 8.0, 12.0])
    spread = 1 / 3 + 16 / 3
    freedom = spread**2 / ((1 / 3) ** 2 / 2 + (16 / 3) ** 2 / 2)
    assert math.floor(freedom) == 2
    assert apart(one, two) == pytest.approx(4.302653 * math.sqrt(spread), rel=1e-6)
    assert apart(mean_of([1.0]), two) is None


def test_what_was_set_differently():
    one, two = (side(run(1, document={"hosts": {"mtu": mtu}, "experiment": {"id": str(mtu)}})) for mtu in (1500, 9180))
    assert different(one.groups[0], two.groups[0]) == [{"key": "hosts.mtu", "ours": 1500, "theirs": 9180}]


def test_published_figures_and_ours():
    (row,) = against_published(side(run(9e6, rows=[{}]), run(10e6, seed=2, rows=[{}]), run(11e6, seed=3, rows=[{}])))
    assert (row["ours"], row["seeds"], row["error_percent"]) == (10.0, 3, 0.0)
    assert row["half"] == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert row["authors_percent"] == pytest.approx(20)


@pytest.mark.parametrize(("over", "ours"), [("mean", 10.0), ("best", 11.0), ("sigma", 1.0)])
def test_what_is_published_of_several_trials_is_held_against_the_same_of_ours(over, ours):
    rows = [{"over": over}]
    (row,) = against_published(side(*(run(n * 1e6, seed=n, rows=rows) for n in (9, 10, 11))))
    assert row["ours"] == ours and row["error_percent"] == pytest.approx(10 * (ours - 10))


def test_one_run_has_no_spread():
    (row,) = against_published(side(run(9e6, rows=[{"over": "sigma"}])))
    assert row["ours"] is None and row["error_percent"] is None


def test_a_withheld_figure_is_listed_with_ours():
    (row,) = against_published(side(run(9e6, rows=[{"measured": None, "predicted": None}])))
    assert (row["withheld"], row["ours"], row["error_percent"]) == (True, 9.0, None)


def test_a_shortened_run_is_not_compared_and_a_changed_one_not_summed_up():
    short = against_published(side(run(9e6, rows=[{}], shortened=True)))
    changed = against_published(side(run(9e6, rows=[{}], changes=[("w", 1)])))
    assert (short[0]["ours"], short[0]["error_percent"]) == (9.0, None)
    assert changed[0]["error_percent"] == pytest.approx(-10)
    assert errors_of("all", [*short, *changed]) is None


def test_mean_and_worst_error():
    rows = against_published(side(run(9e6, rows=[{}, {"measured": 5.0}, {"measured": 9.0, "predicted": None}])))
    found = errors_of("all", rows)
    assert (found.count, found.nearer, found.predicted) == (3, 2, 2)
    assert found.mean_percent == pytest.approx((10 + 80 + 0) / 3) and found.worst["measured"] == 5.0


FALLS = Order("o", "x", (("x", "a", "goodput"), ("x", "b", "goodput"), ("x", "c", "goodput")))


@pytest.mark.parametrize(
    ("figures", "verdict"),
    [
        (([3], [2], [1]), "held"),
        (([3], [1], [2]), "not held"),
        (([3], [2], [2]), "not held"),
        (([30, 31], [20, 21], [10, 11]), "held"),
        (([30, 31], [10, 11], [20, 21]), "not held"),
        (([30, 31], [20, 21], [20, 20.5]), "open"),
        (([30, 31], [20, 20], [20, 20]), "not held"),
    ],
)
def test_orders(figures, verdict):
    runs = [run(v, seed=n, case=case) for case, vs in zip("abc", figures, strict=True) for n, v in enumerate(vs)]
    (found,) = judged(side(*runs), [FALLS])
    assert found["verdict"] == verdict and len(found["steps"]) == 2


def test_an_order_needs_all_its_figures_from_runs_without_changes():
    assert judged(side(run(3, case="a"), run(2, case="b")), [FALLS]) == []
    runs = [run(n, case=case, changes=[("w", 1)]) for n, case in enumerate("cba")]
    assert judged(side(*runs), [FALLS]) == []


def test_the_papers_orders_are_of_cases_that_there_are():
    for order in orders():
        for name, case, metric in order.falls:
            assert case in [e.case for e in load_cases(name, only=[case] if case else ())]
            assert "." in metric or metric in ("aggregate_goodput", "fairness")
        assert len(order.falls) > 1 and {name for name, *_ in order.falls} <= set(catalogue())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs with two windows, of one of them with two seeds; an empty folder."""
    path = tmp_path_factory.mktemp("runs")
    (path / "x.toml").write_text(TEXT)
    (path / "empty").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setattr(bentpipe.experiment.build, "build", fake_build)
        main(["run", "x.toml", "--out", "a/1"])
        main(["run", "x.toml", "--out", "a/2", "--seed", "7"])
        main(["run", "x.toml", "--out", "b", "--set", "window=32 kB"])
    return path


@pytest.fixture
def folders(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def test_the_command(folders, capsys):
    capsys.readouterr()
    assert main(["compare", "a", "b", "--json", "--out", "c"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {row["metric"] for row in data["rows"]} >= {"aggregate_goodput", "fairness", "retransmits"}
    assert data["rows"][0]["ours"]["seeds"] == 2 and data["rows"][0]["theirs"]["seeds"] == 1
    assert data["differences"] == [{"key": "hosts.tcp.window", "ours": "1 MiB", "theirs": "32 kB"}]
    assert data == json.loads((folders / "c" / "compare.json").read_text())
    assert main(["compare", "a", "b", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert float(rows[0]["ours_mean"]) == data["rows"][0]["ours"]["mean"]
    assert main(["compare", "a", "published", "--markdown"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## Published figures and ours") and "| --: |" in text
    widths = {line.count("|") for line in itertools.takewhile(bool, text.splitlines()[2:])}
    assert len(widths) == 1
    assert main(["compare", "published", "a"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "give two folders"),
        (["published"], "name the folders"),
        (["a", "nowhere"], "nowhere: no such folder"),
        (["a", "empty"], "empty: no run in it"),
        (["a", "published", "--metric", "goodput"], "--metric goes with two folders"),
    ],
)
def test_wrong_use(folders, capsys, arguments, message):
    capsys.readouterr()
    assert main(["compare", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_runs_that_are_not_done_are_left_out(folders, tmp_path):
    shutil.copytree(folders / "a", tmp_path / "a")
    path = tmp_path / "a" / "1" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "failed"}))
    found = read_side([tmp_path / "a"])
    assert (found.left_out, [len(group.runs) for group in found.groups]) == (1, [1])
