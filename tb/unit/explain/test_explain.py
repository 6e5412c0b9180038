"""Open parameters: what is varied, what runs make of a published figure, the page, and the catalogue's data."""

from pathlib import Path

import pytest

from bentpipe.cli import main
from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.catalogue import catalogue, read_extended
from bentpipe.experiment.document.sets import named_set, sets
from bentpipe.experiment.load import load
from bentpipe.explain import testbeds
from bentpipe.explain.judge import Point, effects, explained, strongest
from bentpipe.explain.measure import Budget, Runner
from bentpipe.explain.page import pages, rows
from bentpipe.explain.plan import Figure, Parameter, shared_data, study
from bentpipe.explain.run import points
from bentpipe.explain.store import Record, Store
from bentpipe.plots.ranges import write_ranges

FIGURE = Figure("", 0, {"case": "", "quantity": "throughput", "measured": 10.0, "predicted": None, "over": "mean"})
DOCUMENTS = {name: read_extended(path)[0] for name, path in catalogue().items()}
OPEN = {name: document["open"] for name, document in DOCUMENTS.items() if document.get("open")}


def point(ours, **values):
    return Point(values, (ours,) if isinstance(ours, float) else ours)


@pytest.mark.parametrize("name", sorted(OPEN))
def test_each_open_parameter_of_the_catalogue_can_be_set(name):
    """With its first value; none is declared twice, or without why and source."""
    found = OPEN[name]
    assert len({row["key"] for row in found}) == len(found)
    assert all(row["why"] and row["source"] and len(row["values"]) == len({*map(str, row["values"])}) for row in found)
    if any("measured" in row and "given_back" not in row for row in DOCUMENTS[name].get("published", ())):
        first = study(name)
        load(name, [f"{parameter.key}={parameter.values[0]}" for parameter in first.parameters])


def test_the_acts_entries_leave_open_what_their_papers_do():
    keys = {row["key"].rpartition(".")[2] for row in OPEN["acts-3flows"]}
    assert keys >= {"policy", "scheduler", "buffer_cells", "window", "ack_policy", "start", "size", "epd_threshold"}


def test_screening_varies_each_parameter_alone_and_whole_runs_the_two_strongest():
    wanted = study("acts-3flows-model")
    short = wanted.screening()
    assert {len(run.values) for run in short} == {0, 1}
    assert all(run.limit_ps == wanted.lengths[""].ps for run in short)
    shown = [parameter for parameter in wanted.parameters if parameter.key != "flow.*.size"]
    assert len(short) == 1 + sum(len(parameter.values) for parameter in shown)
    keys = ["hosts.tcp.ack_policy", "hosts.cost"]
    whole = wanted.whole({"": [keys]}, (1, 2))
    assert len(whole) == 2 * (1 + 1) * (1 + 2) and not any(run.limit_ps for run in whole)
    assert {key for run in whole for key, _ in run.values} == {*keys}
    assert [run.values for run in wanted.ends()] == [
        (("flow.*.size", each),) for each in ("256 MiB", "512 MiB", "2 GiB")
    ]


def test_samples_have_their_share_of_each_value():
    wanted = study("acts-3flows-model")
    runs = wanted.samples(6, (1,))
    assert sum("hosts.tcp.ack_policy" in dict(run.values) for run in runs) == 3
    assert runs == wanted.samples(6, (1,))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wan-1flow", "wan-1flow: has no published figure to explain: average of ten trials, throughput: is withheld"),
        ("magic-window", r"magic-window: has no \[\[open\]\] parameters"),
    ],
)
def test_what_has_nothing_to_explain(name, message):
    with pytest.raises(BentpipeError, match=message):
        study(name)


def test_the_strongest_parameters_are_those_with_the_largest_effect():
    parameters = [Parameter(key, ("1",), "", "") for key in "abcd"]
    both = point(99.0, a="1", b="1")
    points = [point(10.0), point(11.0, a="1"), point(4.0, b="1"), point(10.0, c="1"), point(13.0, d="1"), both]
    found = effects(parameters, points, "mean")
    spreads = [(effect["key"], effect["spread"]) for effect in found]
    assert spreads == [("b", 6.0), ("d", 3.0), ("a", 1.0), ("c", 0.0)]
    assert strongest(found) == ["b", "d"] and strongest(found[3:]) == []


@pytest.mark.parametrize(
    ("points", "verdict"),
    [
        ([point(8.0), point(9.0, a="1")], "unexplained: all runs are below it, by 10.0 % and more"),
        ([point(12.0), point(15.0, a="1")], "unexplained: all runs are above it, by 20.0 % and more"),
        ([point(8.0), point(9.0, a="1"), point(11.0, b="2"), point(12.0, a="1", b="2")], "only with b = 2"),
        ([point(8.0), point(9.0, a="1"), point(9.5, b="2"), point(12.0, a="1", b="2")], "only with a = 1 and b = 2"),
        ([point(8.0), point(13.0, a="1"), point(11.0, b="2")], "inside by 20.0 %"),
    ],
)
def test_verdicts(points, verdict):
    found = explained(FIGURE, ["a", "b"], points)
    assert found["verdict"] == verdict and found["inside"] == (not verdict.startswith("unexplained"))


def test_the_best_of_trials_is_the_best_of_the_seeds():
    best = Figure("", 0, {**FIGURE.row, "over": "best"})
    points = [point((7.0, 9.0)), point((8.0, 11.0), a="1")]
    assert explained(best, ["a"], points)["high"] == 11.0 and explained(FIGURE, ["a"], points)["high"] == 9.5


def record(rate, **others):
    return Record({"sum_of_flow_rates": rate, "aggregate_goodput": rate, **others}, True, 1.5, "v")


def test_runs_that_are_done_are_kept_and_those_of_another_entry_do_not_count(tmp_path):
    wanted = study("lan-3flows")
    store = Store(wanted, tmp_path)
    full_ps = wanted.full_ps("")
    whole, short = wanted.wanted("", {}, 1, full_ps), wanted.wanted("", {"hosts.cost": "100 us"}, 1, 3 * 10**12)
    store.add(whole, record(91e6))
    store.add(short, record(80e6))
    text = store.path.read_text()
    store.path.write_text(text + text[:40])  # killed while it wrote
    again = Store(wanted, tmp_path)
    assert len(again) == 2 and again[short].metrics["sum_of_flow_rates"] == 80e6
    again.add(wanted.wanted("", {}, 2, full_ps), record(92e6))
    assert len(store.path.read_text().splitlines()) == 3
    assert [point.figures for point in points(Store(wanted, tmp_path), wanted.figures[0], full_ps)] == [(91.0, 92.0)]
    store.path.write_text(text.replace(wanted.entry, "other"))
    assert len(Store(wanted, tmp_path)) == 0
    store.path.write_text("{}\n" + text)
    with pytest.raises(BentpipeError, match=r"lan-3flows\.jsonl:1: is no run"):
        Store(wanted, tmp_path)


def test_a_budget_ends_the_runs_and_the_next_command_goes_on(tmp_path, monkeypatch):
    wanted = study("lan-3flows")
    done = []
    monkeypatch.setattr("bentpipe.explain.measure.measure", lambda run, *_: done.append(run) or record(1.0))
    store = Store(wanted, tmp_path)
    runs = [(store, wanted.wanted("", {}, seed)) for seed in (1, 2, 3, 4)]
    Runner(Budget(3.0)).do(runs)  # 1.5 s each
    assert [run.seed for run in done] == [1, 2]
    Runner(Budget()).do([(Store(wanted, tmp_path), run) for _, run in runs])
    assert [run.seed for run in done] == [1, 2, 3, 4]
    Runner(Budget(0.0)).do([(store, wanted.wanted("", {}, 5))])
    assert len(done) == 4


def test_a_testbed_is_fitted_and_validated_by_leaving_out_one_row(tmp_path):
    """Three rows that policy decides: two want it, the third doesn't."""
    rows = (("lan-3flows", "", "sum_of_flow_rates"), ("load-sweep", "in LAN, load 105", "sum_of_flow_rates"))
    rows += (("load-sweep", "in WAN, load 105", "sum_of_flow_rates"),)
    bed = testbeds.Testbed("t", "T", {"network.switches.*.policy": ("tail",)}, rows, (), ())
    stores = {name: Store(study(name), tmp_path) for name in ("lan-3flows", "load-sweep")}
    assert testbeds.fitted(bed, stores) is None
    rates = {rows[0]: (183.774e6, 91.887e6), rows[1]: (206.046e6, 103.023e6), rows[2]: (99.265e6, 198.53e6)}
    planned = bed.runs(stores)
    assert len(planned) == 6
    for run in planned:
        own, tail = next(pair for row, pair in rates.items() if row[:2] == (run.name, run.case))
        stores[run.name].add(run, record(tail if run.values else own))
    found = testbeds.fitted(bed, stores)
    assert found is not None and found["best"] == {"network.switches.*.policy": "tail"}
    assert found["errors"]["today"] == pytest.approx(2 / 3) and found["errors"]["fitted"] == pytest.approx(1 / 3)
    # without one of the first two, the others are divided and the entries' own comes first; the third then errs
    assert [row["left_out"] for row in found["rows"]] == pytest.approx([183.774, 206.046, 198.53], rel=1e-3)
    assert found["errors"]["left_out"] == pytest.approx(1.0) and found["same_choice"] == 1


def test_rankings_have_means_and_steps(tmp_path):
    (bed,) = testbeds.testbeds(["acts"])
    store = Store(study("acts-variants"), tmp_path)
    runs = [run for run in bed.ranking_runs({"acts-variants": store}) if not run.values]
    assert len(runs) == 30 and {run.limit_ps for run in runs} == {50 * 10**12}
    for run in runs:
        base = {"sack full blast": 80e6, "newreno full blast": 60e6, "reno full blast": 60.1e6}[run.case]
        store.add(run, record(base + run.seed * 1e6))
    found = testbeds.ranked(bed, {"acts-variants": store})
    assert [each["settings"] for each in found] == ["today's settings"]
    assert found[0]["steps"] == ["held", "open"] and found[0]["cases"][0]["mean"] == pytest.approx(85.5)


def test_testbeds_name_public_rows_and_open_parameters():
    """No withheld figure takes part in a choice; what is varied is open in each entry."""
    for bed in testbeds.testbeds():
        stores = {name: Store(study(name), Path("nowhere")) for name, _, _ in bed.rows}
        assert len({wanted.values for wanted in bed.runs(stores)}) == len(bed.combinations)
        for name, case, metric in bed.rows:
            figures = [f for f in stores[name].study.figures if (f.case, f.row["metric"]) == (case, metric)]
            assert figures and all(figure.row["measured"] is not None for figure in figures)
            known = {p.key: p.values for p in stores[name].study.parameters}
            assert all({*values} <= {*known[key]} for key, values in bed.vary.items())
    names = {name for table in shared_data()["shortened"] for name in table["experiments"]}
    assert names <= {*OPEN}


def test_page_and_chart(tmp_path):
    points = [point(8.0), point(9.0, a="1"), point(11.0, b="2")]
    parameters = [Parameter("a", ("1",), "w", "s"), Parameter("b", ("2",), "w", "s")]
    figure = {"name": "x", "unit": "Mb/s", "measured": 10.0, "predicted": 9.0, "shortened": "5 s", "screening_own": 8.0}
    figure |= {"screening": effects(parameters, points, "mean")} | explained(FIGURE, ["b", "a"], points)
    figure |= {"range_of": "whole runs", "comparable": True}
    each = {
        "id": "e",
        "title": "E",
        "runs": 3,
        "whole_runs": 3,
        "cpu_s": 1.0,
        "seeds": [1],
        "left_out": ["y: is withheld"],
    }
    each |= {"parameters": [{"key": "a", "values": ["1"], "why": "w", "source": "s"}], "figures": [figure]}
    each |= {
        "lengths": [{"case": "", "time": "5 s", "why": "it is steady", "stands": False}],
        "missing": {"samples": [2, 3]},
        "versions": ["v"],
    }
    whole = pages([each], ["f: has no open parameters"], "charts/")
    assert [*whole] == ["explained.md", "explained-others.md"] and "(explained-others.md#e)" in whole["explained.md"]
    text = "".join(whole.values())
    assert rows([each])[0][5:] == ["8.000", "8.000 to 11.000", "3 whole runs", "only with b = 2", "b, a"]
    assert "1 of 1 figures are inside" in text and "(charts/e.svg)" in text and "- f: has no open parameters" in text
    assert (
        "Shortened runs end after 5 s. They only find the strongest parameters. It is steady." in text
        and "- samples: 2 of 3 runs are outside" in text
    )
    write_ranges(tmp_path, "e", [figure])
    assert (tmp_path / "e.svg").stat().st_size


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name experiments, or give --all"),
        (["lan-1flow", "--all"], "name experiments, or give --all"),
        (["lan-1flow", "lan-1flow"], "lan-1flow is given twice"),
        (["lan-1flow", "--samples", "-1"], "--samples -1: expected a number from 0 on"),
        (["lan-1flow", "--budget", "long"], "--budget long:"),
        (["lan-1flow", "--workers", "0"], "--workers 0: expected a number from 1 on"),
        (["lan-1flow", "--testbed", "act"], "there is no such testbed"),
    ],
)
def test_wrong_uses(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["explain", *words]) == 2
    assert message in capsys.readouterr().err and not [*tmp_path.iterdir()]


def test_a_fitted_set_has_a_name_and_is_never_a_default():
    (bed,) = testbeds.testbeds(["acts"])
    for name in bed.sets:
        settings = sets()[name]["settings"]
        assert {*settings} <= {*bed.vary}
        fitted_run = load("acts-3flows", [f"@{name}", "flow.*.size=1 MiB"])
        one_by_one = load("acts-3flows", [*(f"{key}={value}" for key, value in settings.items()), "flow.*.size=1 MiB"])
        assert fitted_run.document == one_by_one.document != load("acts-3flows", ["flow.*.size=1 MiB"]).document
    with pytest.raises(BentpipeError, match="--set @acts-plausibel: there is no such set"):
        load("acts-3flows", ["@acts-plausibel"])


def test_the_fitted_set_is_the_best_of_the_kept_runs():
    """The figures follow from the data in the docs, so anyone can compute them again."""
    data = Path(__file__).parents[3] / "docs" / "data" / "explained"
    (bed,) = testbeds.testbeds(["acts"])
    found = testbeds.fitted(bed, {name: Store(study(name), data) for name, _, _ in bed.rows})
    assert found is not None
    assert found["best"] == named_set(bed.sets[0])
    assert found["errors"]["fitted"] <= found["errors"]["left_out"]
