"""What carries an experiment's cells: the native network alone, or one in lockstep with a board."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from bentpipe_hdl.switch.options import passed_on
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.lockstep import LockstepNetwork
from bentpipe_sim.board.model import ModelPipe
from bentpipe_sim.board.pipe import SerialPipe
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.network import Network

__all__ = ["TARGET", "check_target", "make_network"]

TARGET: Final = "BENTPIPE_TARGET"
"""The variable that names the target, for this process and those it starts."""

_PATIENCE: Final = 40.0
"""With simulated boards, of which one on a busy machine has some ten thousand clocks a second."""
_FORMS: Final = "board:model, board:sim or board:/dev/NAME"


def check_target(name: str) -> str:
    """The name of a target.

    Raises
    ------
    BoardError
        It is none.
    """
    kind, _, port = name.partition(":")
    if kind == "board" and (port in ("model", "sim") or port.startswith("/")):
        return name
    raise BoardError(f"a target is {_FORMS}, not {name!r}")


def make_network(seed: int) -> Network:
    """The network that ``$BENTPIPE_TARGET`` asks for; without it the native one."""
    name = os.environ.get(TARGET)
    if not name:
        return Network(seed=seed)
    port = check_target(name).partition(":")[2]
    attach = {"model": _attach_model, "sim": _attach_simulated}.get(port) or (lambda plan: _attach(plan, Path(port)))
    return LockstepNetwork(attach, seed)


def _attach_model(plan: Plan) -> Board:
    return Board(Client(ModelPipe(plan)))


def _attach(plan: Plan, device: Path) -> Board:
    del plan  # it has what it was built with
    return Board(Client(SerialPipe(device)))


class _SimulatedPipe(SerialPipe):
    """The terminal of a simulated board, which ends with it."""

    def __init__(self, process: subprocess.Popen[str], device: Path) -> None:
        self._process = process
        super().__init__(device)

    def close(self) -> None:
        super().close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _attach_simulated(plan: Plan) -> Board:
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
    return Board(Client(_SimulatedPipe(process, Path(name)), patience=_PATIENCE))
