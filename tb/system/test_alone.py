"""Experiments on a board by itself (``bentpipe run --target BOARD --alone``), with a board in software."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bentpipe import api
from bentpipe.cli import main
from bentpipe.compare.sides import read_side
from bentpipe.errors import BentpipeError
from bentpipe.experiment.run import perform
from bentpipe.plots.figures import _losses
from bentpipe.results.folder import read_run
from bentpipe_sim.board.model import ModelPipe
from boards.alone import assert_same

ALONE = ("--target", "board:model", "--alone", "--no-plots")


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    """The result of a run; with cases, of the first one."""
    assert main(["run", *arguments, "--no-plots", "--out", str(folder)]) == 0
    return json.loads(folder_of(folder).joinpath("result.json").read_text())


def folder_of(folder: Path) -> Path:
    summary = json.loads((folder / "result.json").read_text())
    return folder / summary["cases"][0]["folder"] if "cases" in summary else folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same run on a board by itself, and natively in its ticks."""
    top = tmp_path_factory.mktemp("runs")
    arguments = ("lan-3flows", "--duration", "200 ms", "--set", "network.lines.lan.ber=1e-7")
    run(top / "alone", *arguments, *ALONE)
    run(top / "native", *arguments, "--board-ticks")
    return {name: top / name for name in ("alone", "native")}


def test_hosts_and_counters_are_those_of_a_native_run_in_the_same_ticks(folders: dict[str, Path]) -> None:
    alone, native = (json.loads((folder / "result.json").read_text()) for folder in folders.values())
    assert_same(alone, native)
    assert alone["metrics"]["cells_dropped"] > 0
    traces = [(folder / "trace.parquet").read_bytes() for folder in folders.values()]
    assert traces[0] == traces[1]


def test_datagrams_lost_are_unknown(tmp_path: Path) -> None:
    arguments = ("phase-lock", "--case", "PPD, clocks of their own", "--duration", "40 ms")
    alone = run(tmp_path / "alone", *arguments, *ALONE)
    native = run(tmp_path / "native", *arguments, "--board-ticks")
    assert_same(alone, native)
    for ours, theirs in zip(alone["flows"], native["flows"], strict=True):
        assert ours["datagrams_received"] > 0 and theirs["datagrams_lost"] > 0
        assert ours["datagrams_lost"] is ours["datagrams_under_way"] is None
    assert "a.carried" in native["metrics"] and "a.carried" not in alone["metrics"]
    results = [read_run(folder_of(tmp_path / name)) for name in ("alone", "native")]
    assert ["b.lost" in result.trace.series for result in results] == [False, True]
    assert [_losses(result) is None for result in results] == [True, False]


def test_what_a_board_does_not_know_is_not_shown_as_zero(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folders["alone"])]) == 0
    page, shown = (folders["alone"] / "report.html").read_text(), capsys.readouterr().out
    for text in (page, shown):
        assert "PDUs lost: unknown (no loss ledger)" in text
        assert "On board:model by itself" in text and "Unknown: loss ledger, cell figures of VCs" in text
        assert "no PDU was lost" not in text.lower() and "PDUs sent" not in text
    read = api.read(folders["alone"])
    assert isinstance(read, api.Run)
    with pytest.raises(BentpipeError, match="ran on a board by itself, which has no loss ledger"):
        _ = read.cells


def test_both_kinds_of_runs_are_repeated_as_they_were(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, options in (("alone", "--target board:model --alone"), ("native", "--board-ticks")):
        assert f"{options}</pre>" in (folders[name] / "report.html").read_text()
        assert main(["capsule", str(folders[name]), "--out", str(tmp_path / "capsule")]) == 2
        assert "left out, as it ran" in capsys.readouterr().err


def test_comparisons_say_what_carried_the_cells(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *map(str, folders.values())]) == 0
    shown = capsys.readouterr().out
    assert "cells carried by" in shown and "native network with --board-ticks -> board:model by itself" in shown
    side = read_side([*folders.values()])
    assert len(side.groups) == 2 and not side.doubled


def test_cases_are_not_resumed_without_the_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([perform._case])

    def only_one(*given: Any) -> dict[str, Any]:
        for case in runs:
            return case(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(perform, "_case", only_one)
    out = tmp_path / "run"
    assert main(["run", "upc-study", "--duration", "1 ms", *ALONE, "--out", str(out)]) == 130
    assert (out / "result.json").is_file() and not (out / "run.state").exists()
    assert main(["resume", str(out)]) == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--alone",), "--alone is for a board by itself: name the board with --target"),
        ((*ALONE, "--engine", "native"), "--alone and --engine: a board by itself has no native network"),
        ((*ALONE, "--threads", "2"), "--alone and --threads: a board by itself has no native network"),
        ((*ALONE, "--seeds", "1-2"), "--target and --seeds: a board runs one experiment at a time"),
        ((*ALONE, "--precision", "share: 10 %"), "--target and --precision: a board runs one experiment at a time"),
        ((*ALONE, "--pcap", "ip:sink"), "these need it: captures (--pcap, record.pcap)"),
        ((*ALONE, "--set", "record.losses=true"), "these need it: record.losses"),
        (
            ("--target", "board:model", "--set", "network.hosts.sink.lose_frames=0.1"),
            "lan-3flows: host sink: boards lose, duplicate and reorder no frames of interfaces yet",
        ),
        (
            (*ALONE, "--set", "network.hosts.sink.lose_frames=0.1"),
            "lan-3flows: host sink: boards lose, duplicate and reorder no frames of interfaces yet",
        ),
    ],
)
def test_what_needs_the_native_network_is_refused(
    arguments: tuple[str, ...], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "lan-3flows", "--out", str(tmp_path / "run"), *arguments]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 1 and line in printed[0]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["rare-loss", "rare-timeout", "acts-oam"])
def test_experiments_that_need_the_native_network_are_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", name, *ALONE]) == 2
    assert f"{name}: --alone has no native network, and these need it: " in capsys.readouterr().err


class _SilentPipe(ModelPipe):
    """A line whose other end answers so many frames."""

    left = 400

    def receive(self, until: float) -> bytes:
        came = super().receive(until)
        self.left -= bool(came)
        return came if self.left > 0 else b""


@pytest.mark.parametrize("alone", [(), ("--alone",)])
def test_a_board_that_falls_silent_loses_nothing_that_was_done(
    alone: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bentpipe_sim.board.model.ModelPipe", _SilentPipe)
    given = ["lan-3flows", "--duration", "1 s", "--target", "board:model", *alone, "--no-plots"]
    assert main(["run", *given, "--out", str(tmp_path / "run")]) == 1
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 1 and "lan-3flows failed: the board has not answered for" in printed[0]
    summary = json.loads((tmp_path / "run/result.json").read_text())
    assert summary["status"] == "failed" and summary["reason"].startswith("the board has not answered")
    assert 0 < summary["time"]["simulated_s"] < 1
    assert sum(flow["octets_delivered"] for flow in summary["flows"]) > 0
    assert (tmp_path / "run/trace.parquet").is_file() and (tmp_path / "run/report.html").is_file()
    if alone:
        assert summary["counters"] is summary["drops"] is summary["ports"] is summary["ledger"] is None
        assert "cells_dropped" not in summary["metrics"]
        assert "Cells dropped: unknown" in (tmp_path / "run/report.html").read_text()
    else:
        assert summary["ledger"] and summary["counters"]
