"""A simulated board on its terminal: a slow sender is no silent one, and a silent one is taken for that in the end."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bentpipe_boards.fpga.plans import PLANS
from bentpipe_sim.board.regs import named

PLAN = PLANS["line"]
REGISTERS = dict(named(PLAN))
READ_ONE = bytes([2, 1])


@pytest.fixture
def terminal() -> Iterator[int]:
    command = [sys.executable, "-m", "bentpipe_boards.simulated", PLAN.to_json()]
    board = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert board.stdin is not None and board.stdout is not None
    with ExitStack() as after:
        after.callback(board.wait)
        after.callback(board.stdin.close)
        found = os.open(board.stdout.readline().strip(), os.O_RDWR | os.O_NOCTTY)
        after.callback(os.close, found)
        tty.setraw(found)
        yield found


@pytest.fixture
def answer(terminal: int) -> Callable[[float], bytes]:
    def found(patience_s: float) -> bytes:
        came, end = b"", time.monotonic() + patience_s
        while len(came) < 4 and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                came += os.read(terminal, 4 - len(came))
        return came

    return found


def test_a_pause_within_a_command_changes_nothing(terminal: int, answer: Callable[[float], bytes]) -> None:
    """LiteX's client writes a command in two parts, and on a busy machine it may be stopped between them."""
    for pause_s in (0.0, 0.3, 0.9):
        os.write(terminal, READ_ONE)
        time.sleep(pause_s)
        os.write(terminal, REGISTERS["board_magic"].to_bytes(4, "big"))
        assert answer(30) == b"BPBD"


def test_half_a_command_is_over_in_the_end(terminal: int, answer: Callable[[float], bytes]) -> None:
    os.write(terminal, READ_ONE)
    assert answer(20) == b""  # 2 s of silence, and 65,536 clocks
    os.write(terminal, READ_ONE + REGISTERS["board_magic"].to_bytes(4, "big"))
    assert answer(30) == b"BPBD"
