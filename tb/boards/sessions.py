"""Two sessions of a network with one board, which is left on between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.lockstep import LockstepNetwork
from bentpipe_sim.board.pipe import Pipe
from bentpipe_sim.board.target import open_target
from bentpipe_sim.board.windows import Plan
from boards.networks import NETWORKS, play


class _Held:
    """The line to a board that is left on when a session ends."""

    def __init__(self, pipe: Pipe) -> None:
        self.now, self.send, self.receive, self.end = pipe.now, pipe.send, pipe.receive, pipe.close

    def close(self) -> None:
        """Leave the board on."""


def play_two_sessions(**memory: bool) -> list[Any]:
    """Have all wires of a network, near and far ones, in the board's memory; begin a second session in the middle of
    the first one's traffic, and verify it. Return what the memory told each session when it began. ``memory`` goes to
    the plan."""
    lines: list[_Held] = []
    started: list[Any] = []

    def attach(plan: Plan) -> Board:
        plan = replace(plan, sdram=tuple(face for face, cells in enumerate(plan.wires) if cells), **memory)
        if not lines:
            lines.append(_Held(open_target("board:sim", plan)[0]))
        board = Board(Client(lines[0], patience=40.0))
        started.append(board.memory)
        return board

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
        for line in lines:
            line.end()
    return started
