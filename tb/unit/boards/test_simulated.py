"""The RTL of a board, behind a pseudo-terminal, in lockstep with the native network."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from bentpipe_hdl.nic.control import NicSettings
from bentpipe_sim.board import target
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.target import TARGET, check_target, make_network
from bentpipe_sim.network import Network
from boards.networks import play_alone


def test_an_interface_and_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TARGET, "board:sim")
    network = make_network(5)
    try:
        events = play_alone(network, pdus=30)
        assert len({event.status for event in events}) > 1, "some should have errors"
        verified = network.verify()
        assert verified is not None
        assert verified["pdus"] == verified["ended"] == len(events)
        network.check_conservation()
    finally:
        network.close()


def test_without_a_target_there_is_no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TARGET, raising=False)
    network = make_network(5)
    assert type(network) is Network
    assert network.verify() is None


@pytest.mark.parametrize("name", ["board", "board:", "board:usb", "sim", "board:udp"])
def test_what_is_no_target_is_refused(name: str) -> None:
    with pytest.raises(BoardError, match="a target is board:model, board:sim, board:/dev/NAME or board:udp:ADDRESS"):
        check_target(name)


def test_a_port_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TARGET, "board:/dev/no-such-port")
    network = make_network(5)
    network.add_nic("a", NicSettings())
    with pytest.raises(BoardError, match="/dev/no-such-port cannot be opened"):
        network.start()


def test_a_signal_while_the_board_is_compiled_ends_the_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []

    class Interrupted:
        def readline(self) -> str:
            raise KeyboardInterrupt

    class Compiling(subprocess.Popen[str]):
        def __init__(self, command: list[str], **options: Any) -> None:
            super().__init__(["sleep", "600"], **options)
            self.stdout = Interrupted()  # type: ignore[assignment]
            started.append(self)

    monkeypatch.setenv(TARGET, "board:sim")
    monkeypatch.setattr(target.subprocess, "Popen", Compiling)
    network = make_network(5)
    network.add_nic("a", NicSettings())
    with pytest.raises(KeyboardInterrupt):
        network.start()
    assert started[0].returncode == -signal.SIGTERM
