"""Runs held against each other and against published figures."""

import csv
import io
import itertools
import json
import math
import shutil
from random import Random
from statistics import fmean

import pytest

import bentpipe.experiment.build.hosts
import bentpipe.plots.figures
from bentpipe.cli import main
from bentpipe.compare.orders import Order, judged, orders
from bentpipe.compare.rows import against_published, apart, beside, different, errors_of, pairs_of
from bentpipe.compare.sides import Run as SideRun
from bentpipe.compare.sides import Side, grouped, read_side
from bentpipe.compare.texts import published_comparison
from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.load import load_cases
from bentpipe.results.schema import SCHEMA_VERSION
from bentpipe.results.statistics import mean_of
from unit.experiment.fake import blank, fake_build
from unit.experiment.test_parse import TEXT

PUBLISHED = {
    "quantity": "throughput", "case": "", "measured": 10.0, "predicted": 12.0, "unit": "Mb/s", "source": "x",
    "metric": "goodput", "over": "mean", "ours": None, "ratio": None, "remarks": [],
}  # fmt: skip


def run(
    goodput,
    seed=1,
    name="x",
    case="",
    changes=(),
    rows=(),
    shortened=False,
    flows=1,
    document=None,
    limit=10,
    started="",
):
    """A run as its ``result.json`` has it, as far as it is compared."""
    return SideRun(
        {
            "id": name,
            "case": {"name": case, "at": None, "curve": ""} if case else None,
            "seed": seed,
            "status": "done",
            "shortened": shortened,
            "time": {"limit_s": limit, "full_s": 10, "started": started},
            "changes": [{"key": key, "old": 0, "new": value} for key, value in changes],
            "metrics": {
                **dict.fromkeys(("aggregate_goodput", "sum_of_flow_rates", "goodput"), goodput),
                "fairness": 1.0,
            },
            "flows": [{"name": f"flow{n}", "octets_delivered": 1} for n in range(flows)],
            "ledger": [],
            "drops": {},
            "published": [{**PUBLISHED, **row} for row in rows],
            "configuration": document or {},
        },
        folder=None,
    )


def as_file(one):
    """A run's ``result.json``, as far as it is read back."""
    return json.dumps({**one.summary, "resolved": {}, "schema": SCHEMA_VERSION})


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


def test_runs_that_differ_in_anything_that_was_set_are_not_one():
    groups = grouped(
        [
            run(1),
            run(2, seed=2, limit=3, shortened=True),
            run(3, seed=3, document={"hosts": {"mtu": 1500}}),
            run(4, seed=4, document={"experiment": {"title": "other"}, "record": {"interval": "1 s"}}),
        ]
    )
    assert [group.values("goodput") for group in groups] == [[1, 4], [2], [3]]


def test_of_two_runs_with_one_seed_the_later_counts():
    runs = [run(1, started="2026-01-01T10:00:00"), run(2, started="2026-01-01T12:00:00"), run(3, seed=2)]
    for order in itertools.permutations(runs):
        (group,) = grouped(order)
        assert group.values("goodput") == [2, 3]


def test_a_time_limit_is_told_as_a_difference(folders, no_plots, capsys):
    assert main(["run", "x.toml", "--out", "short", "--duration", "1 s", "--force"]) == 0
    capsys.readouterr()
    assert main(["compare", "a", "short", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["differences"] == [{"key": "experiment.duration", "ours": "10 s", "theirs": "1 s"}]
    assert "Seeds: ours 1, 7; theirs 1." in data["notes"]


MIXED = {
    "whole": ({"limit": 10}, (100, 101, 102)),
    "short": ({"limit": 3, "shortened": True, "rows": [{"remarks": ["shortened"]}]}, (50, 51)),
    "shorter": ({"limit": 1, "shortened": True, "rows": [{"remarks": ["shortened"]}]}, (10,)),
    "changed": ({"changes": [("window", 3)], "document": {"hosts": {"tcp": {"window": 3}}}}, (70, 71)),
    "edited": ({"document": {"hosts": {"tcp": {"window": 4}}}}, (80, 81)),
    "case": ({"case": "b"}, (90, 91)),
    "short case": ({"case": "b", "limit": 3, "shortened": True, "rows": [{"remarks": ["shortened"]}]}, (20,)),
}
"""By a name what runs of two experiments were set to, and figures of their seeds."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder for each of these runs, and one that was made a second time."""
    path = tmp_path_factory.mktemp("mixed")
    made = []
    for name, (given, figures) in MIXED.items():
        for (seed, figure), of in itertools.product(enumerate(figures), ("x", "y")):
            for again in range(2 if name == "whole" and seed == 0 else 1):
                one = run(1e6 * (figure - again), seed, of, **{"rows": [{}], **given}, started=f"2026-01-0{2 - again}")
                folder = path / f"{name}-{seed}-{of}-{again}"
                folder.mkdir()
                (folder / "result.json").write_text(as_file(one))
                made.append((name, of, seed, figure, again, folder))
    return made


@pytest.mark.parametrize("seed", range(30))
def test_mixtures_give_the_same_rows_in_every_order(mixed, seed):
    """Whole, shortened, changed runs and those of another file: each kind is a row of its own, and a shortened one none
    where there is a whole one."""
    random = Random(seed)
    some = random.sample(mixed, random.randint(1, len(mixed)))
    side, out = read_side([folder for *_, folder in some]).comparable()
    rows = against_published(side)
    random.shuffle(some)
    again, out_again = read_side([folder for *_, folder in some]).comparable()
    assert against_published(again) == rows
    assert [group.key for group in out] == [group.key for group in out_again]
    kinds = {}
    for name, of, number, figure, older, _ in some:
        kinds.setdefault((of, name), {}).setdefault(number, {})[older] = figure - older
    means = {kind: fmean(seeds[min(seeds)] for seeds in by_seed.values()) for kind, by_seed in kinds.items()}
    whole = {"short": "whole", "shorter": "whole", "short case": "case"}
    shown = [mean for (of, name), mean in means.items() if (of, whole.get(name)) not in means]
    assert sorted(row["ours"] for row in rows) == pytest.approx(sorted(shown))
    assert sum(len(group.runs) for group in out) == sum(
        len(by_seed) for (of, name), by_seed in kinds.items() if (of, whole.get(name)) in means
    )
    assert side.doubled == sum(len(seeds) - 1 for by_seed in kinds.values() for seeds in by_seed.values())
    assert sum(row["error_percent"] is not None for row in rows) == sum(name not in whole for _, name in kinds)


def test_what_is_left_out_is_told(mixed, capsys):
    assert main(["compare", "published", *(str(folder) for _, of, *_, folder in mixed if of == "x")]) == 0
    expected_text = " ".join(capsys.readouterr().out.split())
    assert (
        "Left out, as there are whole runs with the same settings: x (experiment.duration: 10 s -> 3 s; 2 seeds)"
        in expected_text
    )
    assert "left out as a later run has the same settings and the same seed: 1 run." in expected_text
    short, whole = ([str(f) for name, of, *_, f in mixed if (name, of) == (kind, "x")] for kind in ("short", "case"))
    assert main(["compare", *short[:1], *whole[:1], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_a_group_without_a_counterpart_is_told(folders, no_plots, capsys):
    assert main(["run", "x.toml", "--out", "two/1", "--force"]) == 0
    assert main(["run", "x.toml", "--out", "two/2", "--set", "window=16 kB", "--force"]) == 0
    capsys.readouterr()
    assert main(["compare", "two", "a", "--json"]) == 0
    assert [note for note in json.loads(capsys.readouterr().out)["notes"] if "left out" in note] == [
        "two: left out as the other side has none to compare: two (hosts.tcp.window: 1 MiB -> 16 kB)."
    ]


def test_figures_of_all_cases_are_not_mixed(tmp_path):
    """With whole and shortened cases, in either order, the figures are those of the whole ones."""
    row = PUBLISHED | {"metric": "f.knee", "unit": "", "ours": 4.0}
    for name, seed, limit, ours in (("a", 1, 10, 4.0), ("b", 2, 10, 6.0), ("c", 1, 3, 9.0)):
        remarks = ["shortened"] if limit < 10 else []
        case = {"name": "one", "changes": [], "time": {"limit_s": limit, "started": ""}}
        whole = {"kind": "cases", "schema": SCHEMA_VERSION, "id": "x", "planned": ["one"], "changes": [], "seed": seed}
        whole |= {"cases": [case], "published": [row | {"ours": ours, "remarks": remarks}]}
        (tmp_path / name / "one").mkdir(parents=True)
        (tmp_path / name / "result.json").write_text(json.dumps(whole))
        one = run(1e6, seed, case="one", limit=limit, shortened=limit < 10)
        (tmp_path / name / "one" / "result.json").write_text(as_file(one))
    for order in itertools.permutations("abc"):
        (found,) = against_published(read_side([tmp_path / name for name in order]).comparable()[0])
        assert (found["ours"], found["seeds"], found["remarks"]) == (5.0, 2, [])


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


def test_one_run_is_not_near_both_the_average_and_the_best_of_the_same_trials():
    """One run is one trial, held against the average; ten have a best of their own. A best alone has one run's."""
    rows = [{"over": "mean"}, {"over": "best", "measured": 11.0}]
    one = against_published(side(run(10e6, rows=rows)))
    assert [row["error_percent"] is None for row in one] == [False, True] and one[1]["ours"] == 10.0
    ten = against_published(side(*(run(n * 1e6, seed=n, rows=rows) for n in (9, 11))))
    assert [row["error_percent"] for row in ten] == [0.0, 0.0]
    (alone,) = against_published(side(run(10e6, rows=rows[1:])))
    assert alone["error_percent"] == pytest.approx(-100 / 11)


def test_measured_predicted_and_given_back_figures_are_counted_apart():
    rows = [{}, {"measured": None, "predicted": 8.0}, {"given_back": "cost"}, {"measured": None, "predicted": None}]
    found = against_published(side(run(9e6, rows=rows)))
    assert [row["kind"] for row in found] == ["measured", "predicted", "given back", ""]
    made = published_comparison("ours", found, [])
    counted = {errors["of"]: errors["figures"] for errors in made.data["errors"]}
    assert counted == {f"{kind}, one flow": 1 for kind in ("Measured", "Predicted", "Given back")}
    assert made.notes[0].startswith(
        "Measured, one flow: 1 of 1 figures within 10 %, error 10.0 % on average, median 10.0"
    )


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
            assert "." in metric or metric in ("sum_of_flow_rates", "fairness")
        assert len(order.falls) > 1 and {name for name, *_ in order.falls} <= set(catalogue())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs with two windows, of one of them with two seeds; an empty folder."""
    path = tmp_path_factory.mktemp("runs")
    (path / "x.toml").write_text(TEXT)
    (path / "empty").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setattr(bentpipe.experiment.build.hosts, "build", fake_build)
        patch.setattr(bentpipe.plots.figures, "write_plots", blank)
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
    expected_text = capsys.readouterr().err
    assert message in expected_text and expected_text.count("\n") == 1


def test_runs_that_are_not_done_are_left_out(folders, tmp_path):
    shutil.copytree(folders / "a", tmp_path / "a")
    path = tmp_path / "a" / "1" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "failed"}))
    found = read_side([tmp_path / "a"])
    assert (found.left_out, [len(group.runs) for group in found.groups]) == (1, [1])
