"""Open parameters: what is varied, what runs make of a published figure, the page, and the catalogue's data."""

import pytest

from bentpipe.cli import main
from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.catalogue import catalogue, read_extended
from bentpipe.experiment.load import load
from bentpipe.explain.judge import Point, effects, explained, strongest
from bentpipe.explain.page import page, rows
from bentpipe.explain.plan import OWN, Figure, Parameter, study, varied
from bentpipe.plots.ranges import write_ranges

FIGURE = Figure("", 0, {"quantity": "throughput", "measured": 10.0, "predicted": None, "over": "mean"})
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
    assert {len(varied(run)) for run in short.runs} == {0, 1}
    assert all(run.experiment.shortened for run in short.runs)
    assert len(short.runs) == 1 + sum(len(parameter.values) for parameter in wanted.parameters)
    keys = ["hosts.tcp.ack_policy", "hosts.cost"]
    whole = wanted.whole({"": [keys]}, (1, 2))
    assert len(whole.runs) == 2 * (1 + 1) * (1 + 2) and not any(run.experiment.shortened for run in whole.runs)
    assert {key for run in whole.runs for key in varied(run)} == {*keys}
    assert {run.values["flow.1.start"] for run in whole.runs} == {OWN}


def test_samples_have_their_share_of_each_value():
    wanted = study("acts-3flows-model")
    runs = wanted.samples(6, ()).runs
    assert sorted(run.values["hosts.tcp.ack_policy"] for run in runs) == sorted([OWN, "immediate"] * 3)
    assert [run.key for run in runs] == [run.key for run in wanted.samples(6, ()).runs]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wan-1flow", "wan-1flow: has no published figure to explain: average of ten trials, throughput: is withheld"),
        ("magic-window", r"magic-window: has no \[\[open\]\] parameters"),
    ],
)
def test_what_has_nothing_to_explain(name, said):
    with pytest.raises(BentpipeError, match=said.replace("average of ten trials, ", "")):
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


def test_page_and_chart(tmp_path):
    points = [point(8.0), point(9.0, a="1"), point(11.0, b="2")]
    parameters = [Parameter("a", ("1",), "w", "s"), Parameter("b", ("2",), "w", "s")]
    figure = {"name": "x", "unit": "Mb/s", "measured": 10.0, "predicted": 9.0, "shortened": True, "screening_own": 8.0}
    figure |= {"screening": effects(parameters, points, "mean")} | explained(FIGURE, ["b", "a"], points)
    each = {"id": "e", "title": "E", "runs": 3, "runs_s": 1.0, "seeds": [1], "left_out": ["y: is withheld"]}
    each |= {"parameters": [{"key": "a", "values": ["1"], "why": "w", "source": "s"}], "figures": [figure]}
    text = page([each], ["f: has no open parameters"], "charts/")
    assert rows([each])[0][5:] == ["8.000", "8.000 to 11.000", "only with b = 2", "b, a"]
    assert "1 of 1 figures are inside" in text and "(charts/e.svg)" in text and "- f: has no open parameters" in text
    write_ranges(tmp_path, "e", [figure])
    assert (tmp_path / "e.svg").stat().st_size and (tmp_path / "e.png").stat().st_size


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name experiments, or give --all"),
        (["lan-1flow", "--all"], "name experiments, or give --all"),
        (["lan-1flow", "lan-1flow"], "lan-1flow is given twice"),
        (["lan-1flow", "--samples", "-1"], "--samples -1: expected a number from 0 on"),
        (["lan-1flow", "--most", "long"], "--most long:"),
    ],
)
def test_wrong_uses(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["explain", *words]) == 2
    assert said in capsys.readouterr().err and not [*tmp_path.iterdir()]
