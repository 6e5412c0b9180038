"""The carrier of an experiment's cells: the native network alone, in lockstep with a board, or a board by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe_hdl.switch.options import passed_on
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.pipe import UDP_PORT, Pipe, SerialPipe, UdpPipe
from bentpipe_sim.network import Network

if TYPE_CHECKING:
    from bentpipe_sim.board.board import Board
    from bentpipe_sim.board.windows import Plan

__all__ = ["ALONE", "BOARD_TICKS", "TARGET", "check_target", "is_hardware", "make_network", "open_target"]

TARGET: Final = "BENTPIPE_TARGET"
"""The variable that names the target, for this process and those it starts."""
ALONE: Final = "BENTPIPE_ALONE"
"""The variable that is set if the target has no native network beside it."""
BOARD_TICKS: Final = "BENTPIPE_BOARD_TICKS"
"""The variable that is set if hosts are to act in the ticks in which they act on a board by itself."""

_PATIENCE: Final = 40.0
"""Factor on times to wait for a simulated board, which on a busy machine has some ten thousand clocks a second."""
_FORMS: Final = "board:model, board:sim, board:/dev/NAME or board:udp:ADDRESS[:PORT]"
_MADE: Final = ("model", "sim")
"""Boards that are made for a run."""
_PATTERNS: Final = ":patterns"
"""What makes a board for a run with generators and checkers of payload."""
_MOST_PORT: Final = (1 << 16) - 1


def check_target(name: str) -> str:
    """Return the name of a target after a check of its form.

    Raises
    ------
    BoardError
        It is none.
    """
    kind, _, port = name.partition(":")
    if kind == "board" and (port.removesuffix(_PATTERNS) in _MADE or port.startswith("/")):
        return name
    if kind == "board" and port.startswith("udp:"):
        _address(port)
        return name
    raise BoardError(f"a target is {_FORMS}, not {name!r}")


def is_hardware(name: str) -> bool:
    """Return whether a target is a board by itself, not one that is made for the run."""
    return check_target(name).partition(":")[2].removesuffix(_PATTERNS) not in _MADE


def _address(port: str) -> tuple[str, int]:
    """Return address and port of ``udp:ADDRESS[:PORT]``."""
    address, colon, number = port.removeprefix("udp:").partition(":")
    if not address or (colon and not (number.isdecimal() and 0 < int(number) <= _MOST_PORT)):
        raise BoardError(
            f"board:udp: needs an IPv4 address or a host name, and a port of 1 to {_MOST_PORT} if any,"
            f" not {port.removeprefix('udp:')!r}"
        )
    return address, int(number) if colon else UDP_PORT


def make_network(seed: int) -> Network:
    """Return the network of ``$BENTPIPE_TARGET``, or the native one without it; with ``$BENTPIPE_ALONE`` that of the
    board by itself."""
    name = os.environ.get(TARGET)
    if not name:
        network = Network(seed=seed)
    elif os.environ.get(ALONE):
        from bentpipe_sim.board.alone import BoardNetwork

        return BoardNetwork(partial(_board, check_target(name)), seed, target=name)
    else:
        from bentpipe_sim.board.lockstep import LockstepNetwork

        network = LockstepNetwork(partial(_board, check_target(name)), seed)
    network.board_ticks = bool(os.environ.get(BOARD_TICKS))
    return network


def _board(name: str, plan: Plan) -> Board:
    from bentpipe_sim.board.board import Board
    from bentpipe_sim.board.client import Client

    pipe, patience = open_target(name, plan)
    return Board(Client(pipe, patience=patience))


def open_target(name: str, plan: Plan) -> tuple[Pipe, float]:
    """Return the line to a target, and how long the client waits there (s). ``plan`` is for a model and a simulated
    board.

    Raises
    ------
    BoardError
        There is no such target, or no such port.
    """
    port = check_target(name).partition(":")[2]
    if not is_hardware(name) and port.endswith(_PATTERNS):
        port, plan = port.removesuffix(_PATTERNS), replace(plan, patterns=True)
    if port == "model":
        from bentpipe_sim.board.model import ModelPipe

        return ModelPipe(plan), 1.0
    if port == "sim":
        return _simulated(plan), _PATIENCE
    if port.startswith("udp:"):
        return UdpPipe(*_address(port)), 1.0
    return SerialPipe(Path(port)), 1.0


class _SimulatedPipe(SerialPipe):
    """The terminal of a simulated board, which ends with it."""

    def __init__(self, process: subprocess.Popen[str], device: Path) -> None:
        self._process = process
        super().__init__(device, patience=_PATIENCE)

    def close(self) -> None:
        super().close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _simulated(plan: Plan) -> Pipe:
    # A process of its own: software knows boards by their line alone
    command = [sys.executable, "-m", "bentpipe_boards.simulated", plan.to_json()]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **passed_on()},
    )
    assert process.stdout is not None
    try:
        name = process.stdout.readline().strip()
    except BaseException:  # a signal while it is compiled: the compilers end, too
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise
    if not name:
        raise BoardError(f"the simulated board could not be made (exit code {process.wait()})")
    return _SimulatedPipe(process, Path(name))
