"""Whole experiments in lockstep with a board, and on a board by itself, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bentpipe_sim.board.target import ALONE, TARGET, make_network
from bentpipe_sim.network import Network
from boards.alone import assert_same
from boards.networks import NETWORKS, play
from boards.sessions import play_two_sessions


def _run(folder: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bentpipe", "run", *arguments, "--out", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _verified(summary: dict[str, Any], least: int) -> None:
    assert summary["status"] == "done"
    board = summary["board"]
    assert board["pdus"] == board["ended"] >= least
    assert board["counters"] > 0 and board["outputs"] > 0


def test_lan_3flows_on_the_rtl(tmp_path: Path) -> None:
    _verified(_run(tmp_path / "run", "lan-3flows", "--duration", "100 ms", "--target", "board:sim"), 100)


def test_a_whole_quick_run_in_software(tmp_path: Path) -> None:
    _verified(_run(tmp_path / "run", "lan-3flows", "--quick", "--target", "board:model"), 10_000)


def test_a_run_with_a_board_has_the_figures_of_one_without(tmp_path: Path) -> None:
    arguments = ("lan-3flows", "--duration", "300 ms")
    beside = _run(tmp_path / "beside", *arguments, "--target", "board:model")
    plain = _run(tmp_path / "plain", *arguments)
    assert plain["board"] is None
    for key in ("flows", "counters", "ledger", "drops"):
        assert beside[key] == plain[key]


@pytest.mark.parametrize(("name", "length"), [("board:model", ("--quick",)), ("board:sim", ("--duration", "50 ms"))])
def test_a_board_by_itself_has_the_figures_of_a_native_run_in_its_ticks(
    name: str, length: tuple[str, ...], tmp_path: Path
) -> None:
    alone = _run(tmp_path / "alone", "lan-3flows", *length, "--target", name, "--alone")
    assert_same(alone, _run(tmp_path / "native", "lan-3flows", *length, "--board-ticks"))
    assert alone["board"]["pdus"] > 20
    traces = [(tmp_path / folder / "trace.parquet").read_bytes() for folder in ("alone", "native")]
    assert traces[0] == traces[1]


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_on_the_rtl_by_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TARGET, "board:sim")
    monkeypatch.setenv(ALONE, "1")
    network, native = make_network(3), Network(seed=3)
    native.board_ticks = True
    try:
        events = play(network, NETWORKS[name](network), pdus=12)
        assert events == play(native, NETWORKS[name](native), pdus=12)
        assert network.counters() == {node.name: node.counters() for node in native.nodes}
        network.check_conservation()
    finally:
        network.close()
        native.close()


def test_wires_in_an_sdram() -> None:
    play_two_sessions()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, "board:sim") for name in NETWORKS),
        *((name, "board:sim:patterns") for name in ("bit errors", "many bit errors", "overrun")),
    ],
)
def test_networks_on_the_rtl(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TARGET, target)
    network = make_network(3)
    plain = Network(seed=3)
    try:
        events = play(network, NETWORKS[name](network), pdus=12)
        verified = network.verify()
        assert verified is not None and verified["pdus"] == verified["ended"] == len(events)
        assert events == play(plain, NETWORKS[name](plain), pdus=12)
    finally:
        network.close()
        plain.close()
