"""Whole experiments in lockstep with a board, and on a board by itself, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.lockstep import LockstepNetwork
from bentpipe_sim.board.pipe import Pipe
from bentpipe_sim.board.target import ALONE, TARGET, make_network, open_target
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.network import Network
from boards.alone import assert_same
from boards.networks import NETWORKS, play


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
    """All wires of a network, near and far ones, are in the model of the chip; a second session begins in the middle of
    the first one's traffic."""
    lines: list[_Held] = []

    def attach(plan: Plan) -> Board:
        plan = replace(plan, sdram=tuple(range(plan.faces)))
        if not lines:
            lines.append(_Held(open_target("board:sim", plan)[0]))
        return Board(Client(lines[0], patience=40.0))

    try:
        for pdus, until_ms in ((12, 0.7), (6, 8)):
            network = LockstepNetwork(attach, 3)
            try:
                events = play(network, NETWORKS["overrun"](network), pdus=pdus, until_ms=until_ms)
                if until_ms > 1:
                    verified = network.verify()
                    assert verified["pdus"] == verified["ended"] == len(events) > 6
            finally:
                network.close()
    finally:
        lines[0].end()


class _Held:
    """The line to a board that is left on when a session ends."""

    def __init__(self, pipe: Pipe) -> None:
        self.now, self.send, self.receive, self.end = pipe.now, pipe.send, pipe.receive, pipe.close

    def close(self) -> None:
        """Leave the board on."""


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
