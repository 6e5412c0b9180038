"""Tests of what an experiment expects of its runs: a run passes or fails by it."""

from xml.etree import ElementTree

import pytest

import bentpipe.experiment.build.hosts
from bentpipe.cli import main
from bentpipe.errors import ConfigError
from bentpipe.experiment.load import load, load_cases
from bentpipe.results.expect import expectation_text, judge
from unit.experiment.fake import fake_build
from unit.experiment.test_parse import TEXT

pytestmark = pytest.mark.usefixtures("no_plots")

CASES = """
[[case]]
name = "one"

[[case]]
name = "two"
set = { window = "32 kB" }
"""


def row(metric="goodput", least=None, most=None, unit=None, case=""):
    return {"metric": metric, "min": least, "max": most, "unit": unit, "case": case}


def expect(**keys):
    return "\n[[expect]]\n" + "".join(f"{key} = {value!r}\n" for key, value in keys.items())


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", fake_build)

    def write(*parts):
        (tmp_path / "x.toml").write_text(TEXT[: TEXT.index("[[published]]")] + "".join(parts))
        return str(tmp_path / "x.toml")

    return write


@pytest.mark.parametrize(
    ("least", "most", "holds"),
    [(10, None, True), (10.001, None, False), (None, 10, True), (None, 9.999, False), (9, 11, True), (11, 12, False)],
)
def test_bounds_are_within(least, most, holds):
    (found,) = judge([row(least=least, most=most)], {"goodput": 10e6}, True)
    assert (found["ours"], found["unit"], found["holds"]) == (10.0, "Mb/s", holds)


def test_units_follow_the_figure():
    figures = {"fairness": 0.5, "a.rtt_ps": 2e9, "sigma": 3e6}
    found = judge([row("fairness", 0), row("a.rtt_ps", 0), row("sigma", 0), row("sigma", 0, unit="b/s")], figures, True)
    assert [(each["ours"], each["unit"]) for each in found] == [(0.5, "1"), (2.0, "ms"), (3.0, "Mb/s"), (3e6, "b/s")]


def test_a_figure_that_is_not_there_is_not_within_bounds():
    (found,) = judge([row("fairness", 0)], {"fairness": None}, True)
    assert found["holds"] is False and expectation_text(found) == "fairness: no figure, expected at least 0"


def test_what_was_shortened_is_not_judged():
    assert judge([row(least=1e9)], {"goodput": 1.0}, False)[0]["holds"] is None


def test_a_run_that_is_not_as_expected_fails(write, capsys, tmp_path):
    name = write(expect(metric="aggregate_goodput", min=0), expect(metric="fairness", max=0.5))
    assert main(["run", name, "--junit", "out.xml"]) == 1
    printed = capsys.readouterr()
    assert (
        "NO" in printed.out
        and "fairness: 0.535014, expected at most 0.5" in printed.err
        and printed.err.count("\n") == 1
    )
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "0",
    }  # fmt: skip
    assert [len(test) for test in suite] == [0, 0, 1]
    assert suite[2][0].get("message") == "fairness: 0.535014, expected at most 0.5"


def test_a_run_that_is_as_expected_passes(write):
    assert main(["run", write(expect(metric="fairness", min=0.5, max=0.6))]) == 0


def test_a_shortened_run_passes_unjudged(write, tmp_path):
    assert main(["run", write(expect(metric="fairness", max=0.5)), "--duration", "0.5", "--junit", "out.xml"]) == 0
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert (suite.get("skipped"), suite[1][0].tag) == ("1", "skipped")


def test_each_case_has_what_is_of_it_and_of_all(write, capsys, tmp_path):
    name = write(CASES, expect(metric="fairness", max=0.5, case="two"), expect(metric="fairness", min=0.5))
    assert [[each.max for each in e.expect] for e in load_cases(name)] == [[None], [0.5, None]]
    assert main(["run", name, "--junit", "out.xml"]) == 1
    assert "two: fairness: 0." in capsys.readouterr().err
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert [test.get("classname").rpartition(".")[2] for test in suite] == ["one", "one", "two", "two", "two"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"metric": "fairness"}, "give 'min', 'max' or both"),
        ({"metric": "fairness", "min": 2, "max": 1}, "is below 'min'"),
        ({"metric": "farness", "min": 0}, "unknown value 'farness'; did you mean 'fairness'"),
        ({"metric": "none", "min": 0}, "unknown value 'none'"),
        ({"metric": "fairness", "min": 0, "case": "one"}, "there are no cases"),
    ],
)
def test_what_is_wrong_with_an_expectation(write, keys, message):
    with pytest.raises(ConfigError, match=message):
        load(write(expect(**keys)))


def test_expectations_are_not_inherited(write, tmp_path):
    write(expect(metric="fairness", min=0))
    (tmp_path / "over.toml").write_text('extends = "x.toml"\n[experiment]\nid = "over"\ntitle = "o"\n')
    assert load(str(tmp_path / "over.toml")).expect == ()
