"""The study of cell loss in the manual: its three commands, shortened, give a table and a figure of each VC's loss."""

import re
import shlex
import shutil
from pathlib import Path

import pyarrow.csv
import pytest

from bentpipe.api import read
from bentpipe.cli import main

ROOT = Path(__file__).parents[2]
SHORTER = ("--seeds 1-5", "--seeds 1-2 --quick"), ("=2,4,8,16,32,64", "=2,8")


def commands():
    """The commands of the page, shortened."""
    text = (ROOT / "docs" / "cell-loss.md").read_text()
    block = re.search(r"```console\n(.*?)```", text, re.DOTALL)
    assert block is not None
    lines = block[1].splitlines()
    assert lines[0] == "$ cp examples/cell-loss.toml ."
    found = [line.removeprefix("$ bentpipe ") for line in lines[1:]]
    for long, short in SHORTER:
        found = [line.replace(long, short) for line in found]
    return found


def test_the_study_is_as_short_as_the_page_says():
    assert len((ROOT / "examples" / "cell-loss.toml").read_text().splitlines()) <= 40
    assert len(commands()) == 3


def test_the_study_runs(tmp_path, monkeypatch, default_cluster):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "cell-loss.toml", tmp_path)
    for command in commands():
        assert main(shlex.split(command)) == 0, command
    assert Path("clr/overview.pdf").read_bytes().startswith(b"%PDF")
    study = read("clr")
    vcs = [f"{kind}-{k}" for kind in ("long", "short") for k in range(1, 5)]
    for vc in vcs:
        means = study.means(f"{vc}.cell_loss_ratio").set_index("network.switches.east.buffer_cells")
        assert list(means["count"]) == [2, 2]
        assert 1 > means["mean"][2.0] > means["mean"][8.0] > 0
        assert means["low"][2.0] < means["mean"][2.0] < means["high"][2.0]
    for run in study.runs["folder"]:
        summary = study.run(run).summary
        metrics, dropped = summary["metrics"], sum(sum(port["dropped"].values()) for port in summary["ports"])
        assert metrics["cells_lost"] == sum(metrics[f"{vc}.cells_lost"] for vc in vcs) == dropped
        sent = sum(metrics[f"{vc}.cells_sent"] for vc in vcs)
        assert metrics["cell_loss_ratio"] == pytest.approx(dropped / sent)
    page = Path("clr/report.html").read_text()
    assert all(f"cell loss ratio, VC {vc}" in page for vc in vcs)
    rows = pyarrow.csv.read_csv("csv/table.csv").to_pylist()
    assert {row["vc"] for row in rows if row["metric"] == "cell_loss_ratio" and row["vc"]} == {*vcs}
