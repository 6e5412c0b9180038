"""Experiments on a board by itself (``bentpipe run --target BOARD --alone``), with a board in software."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bentpipe.cli import main
from bentpipe_sim.board import target
from bentpipe_sim.board.model import ModelPipe
from boards.alone import assert_same

ALONE = ("--target", "board:model", "--alone", "--no-plots")


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    assert main(["run", *arguments, "--no-plots", "--out", str(folder)]) == 0
    return json.loads((folder / "result.json").read_text())


@pytest.mark.parametrize(
    "arguments",
    [
        ("lan-3flows", "--duration", "200 ms"),
        ("lan-3flows", "--duration", "200 ms", "--set", "network.lines.lan.ber=1e-6", "--seed", "7"),
        ("an2-credits", "--case", "TCP, UDP, credits", "--duration", "20 ms"),
    ],
)
def test_hosts_and_counters_are_those_of_a_native_run_in_the_same_ticks(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    alone = run(tmp_path / "alone", *arguments, *ALONE)
    native = run(tmp_path / "native", *arguments, "--board-ticks")
    assert_same(alone, native)
    assert alone["metrics"]["cells_dropped"] + sum(alone["counters"]["sink"]["pdus_crc"]) > 0
    assert (tmp_path / "alone/trace.parquet").read_bytes() == (tmp_path / "native/trace.parquet").read_bytes()


def test_what_a_board_does_not_know_is_not_shown_as_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = run(tmp_path / "run", "lan-3flows", "--duration", "30 ms", *ALONE)
    page, shown = (tmp_path / "run/report.html").read_text(), capsys.readouterr().out
    assert summary["board"]["alone"] is True and summary["board"]["target"] == "board:model"
    for text in (page, shown):
        assert "PDUs lost: unknown (no loss ledger)" in text
        assert "On board:model by itself" in text and "Unknown: loss ledger, cell figures of VCs" in text
        assert "no PDU was lost" not in text.lower() and "PDUs sent" not in text
    assert "--target board:model --alone" in page  # the command that repeats it


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
    monkeypatch.setattr(target, "ModelPipe", _SilentPipe)
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
