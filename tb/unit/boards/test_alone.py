"""A board by itself as the network of hosts, against a native network in the same ticks."""

from __future__ import annotations

from typing import Any

import pytest

from bentpipe_sim.board.alone import BoardNetwork
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.model import ModelPipe
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.network import Network
from boards.networks import NETWORKS, play


def attach(plan: Plan) -> Board:
    return Board(Client(ModelPipe(plan)))


def of_registers(network: Network) -> dict[str, Any]:
    """The counters that nodes have in registers; the event loop's own ones are left out."""
    return {node.name: node.counters() for node in network.nodes}


@pytest.mark.parametrize("name", NETWORKS)
def test_hosts_see_the_same_on_a_board_by_itself(name: str) -> None:
    alone, native = BoardNetwork(attach, 3), Network(3)
    native.board_ticks = True
    try:
        for network in (alone, native):
            network.report_sent(1)
        events = play(alone, NETWORKS[name](alone), pdus=12)
        assert events == play(native, NETWORKS[name](native), pdus=12)
        assert len(events) > 24
        assert alone.counters() == of_registers(native)
        assert alone.sample() == native.sample()
        assert alone.now_ps == native.now_ps
        alone.check_conservation()
    finally:
        alone.close()
        native.close()
