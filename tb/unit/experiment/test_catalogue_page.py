"""The pictures of the catalogue's page: one of a real run for each experiment, or why there is none."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.sweeps.plan import plan_sweep
from unit.experiment.fake import fake_build, write_run
from unit.experiment.made_up import PS, made_up, some_sweep

DOCS = Path(__file__).parents[3] / "docs"
MOST_OCTETS = 100_000


@pytest.fixture(scope="module")
def figures():
    sys.path.insert(0, str(DOCS))
    try:
        import figures

        yield figures
    finally:
        sys.path.remove(str(DOCS))
        sys.modules.pop("figures", None)


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_each_experiment_has_a_picture_or_a_reason(figures, name):
    entry = figures.known()[name]
    file = figures.FOLDER / f"{name}.svg"
    if "reason" in entry:
        assert entry["reason"] and not file.exists()
        return
    assert file.stat().st_size < MOST_OCTETS
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert entry["command"].startswith(f"bentpipe run {name}")
    assert ("--duration" in entry["command"]) == entry["shortened"]
    assert re.search(
        r"!\[.*\]\(_static/catalogue/.*\.svg\)\n\n\*From `bentpipe run", figures.caption(name, "A title", entry)
    )


@pytest.fixture
def elsewhere(figures, monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "pictures")
    monkeypatch.setattr(figures, "INDEX", tmp_path / "pictures" / "figures.json")
    return figures


def taken(figures, folder):
    lines = [*figures.take([folder])]
    return lines, json.loads(figures.INDEX.read_text())


def run_of(path, name="lan-3flows", **more):
    result = made_up(name)
    result.summary |= {"file": name, "status": "done", "settings": [], "changes": [], **more}
    write_run(path, result)
    return path


def test_a_picture_is_of_a_run_that_is_done(elsewhere, tmp_path):
    run_of(tmp_path / "runs" / "a")
    lines, index = taken(elsewhere, tmp_path / "runs")
    assert lines[0].startswith("lan-3flows: ") and (elsewhere.FOLDER / "lan-3flows.svg").is_file()
    assert index["lan-3flows"]["parameters"] == elsewhere.parameters("lan-3flows")
    assert "changed since" not in elsewhere.caption("lan-3flows", "A title", index["lan-3flows"])
    index["lan-3flows"]["parameters"] = "0"
    assert "its parameters have changed since" in elsewhere.caption("lan-3flows", "A title", index["lan-3flows"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"status": "interrupted"}, "not taken: interrupted"),
        ({"settings": ["hosts.mtu=1500"]}, "not taken: done, hosts.mtu=1500"),
        ({"configuration": load("lan-3flows", ["hosts.mtu=1500"]).document}, "the experiment is another one now"),
    ],
)
def test_other_runs_are_not_taken(elsewhere, tmp_path, more, message):
    (tmp_path / "pictures").mkdir()
    run_of(tmp_path / "runs" / "a", **more)
    lines, index = taken(elsewhere, tmp_path / "runs")
    assert message in lines[0] and index == {}


def test_of_a_sweep_over_seeds_the_experiments_own_is_taken(elsewhere, tmp_path):
    """All its cases, with the seed of its file: together they are a run of it."""
    (tmp_path / "pictures").mkdir()
    plan = plan_sweep("acts-variants", (), (2, 1), duration_ps=PS // 5)
    summary, _ = some_sweep(plan, whole=False)
    for planned, run in zip(plan.runs, summary["runs"], strict=True):
        write_run(tmp_path / "runs" / run["folder"], run_experiment(planned.experiment, build=fake_build))
    (tmp_path / "runs" / "result.json").write_text(json.dumps(summary))
    lines, index = taken(elsewhere, tmp_path / "runs")
    assert [line.partition(":")[0] for line in lines] == ["acts-variants"]
    assert index["acts-variants"]["command"] == "bentpipe run acts-variants --seed 1 --duration '0.2 s'"
