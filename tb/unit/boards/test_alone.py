"""A board by itself as the network of hosts, against a native network in the same ticks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bentpipe_sim.board.alone import BoardNetwork
from bentpipe_sim.board.board import Board, Ended
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.model import ModelPipe
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.build import Shape
from bentpipe_sim.interface import PduEvent, PduStatus
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


@pytest.mark.parametrize("board_ticks", [True, False])
def test_what_hosts_do_by_the_clock_is_seen_in_the_next_tick(board_ticks: bool) -> None:
    """An interface without work would see it at once in a native network without ``board_ticks``."""
    found: list[list[PduEvent]] = []
    for network in (BoardNetwork(attach, 3), Network(3)):
        network.board_ticks = board_ticks
        vcs = NETWORKS["overrun"](network)
        events: list[PduEvent] = []
        try:
            for k, head in enumerate((b"\xff\xff" * 30, b"\0" * 9, b"\x12\x34\x56" * 11)):
                until = network.now_ps + 1_000_003 * (k + 1)
                while network.now_ps < until:
                    events += network.run(until)
                for nic in (0, 1):
                    network.send(nic, vcs[nic], head)
            while network.now_ps < 2 * 10**9:
                events += network.run(2 * 10**9)
        finally:
            network.close()
        found.append(events)
    assert len(found[0]) == 6
    assert (found[0] == found[1]) == board_ticks
    assert not network.saves or not board_ticks


def test_ends_of_one_tick_are_in_the_order_of_the_event_loop() -> None:
    network = BoardNetwork(attach, 3)
    NETWORKS["overrun"](network)
    try:
        network.start()
        windows = network.loop.place.windows
        ends = [(2, PduStatus.OK), (0, PduStatus.CRC), (0, PduStatus.SENT), (1, PduStatus.OK)]
        network.board.run = lambda until, *, to_events: [  # type: ignore[method-assign]
            Ended(7, windows[nic], 0, status, b"x", False) for nic, status in ends
        ]
        order = [(event.nic, event.status) for event in network.run(10**9)]
        assert order == [(0, PduStatus.SENT), (0, PduStatus.CRC), (1, PduStatus.OK), (2, PduStatus.OK)]
    finally:
        network.close()


def test_what_only_the_native_network_knows_is_an_error() -> None:
    """No call returns a number in its place."""
    network = BoardNetwork(attach, 3)
    try:
        play(network, NETWORKS["overrun"](network), pdus=1)
        asked = (network.stats, network.ledger, network.save, network.digests, network.loss_records)
        for ask in (*asked, lambda: network.lost_pdus(0), lambda: network.send_cell(0, 0, 4, bytes(48))):
            with pytest.raises(BoardError, match=r"a board by itself has no .*: only the native network has it"):
                ask()
        assert network.under_way(0, 0, 2, 1) == -1
        assert not network.saves
    finally:
        network.close()


def test_a_board_with_other_nodes_is_refused() -> None:
    def other(plan: Plan) -> Board:
        return attach(replace(plan, nodes=(Shape.of("nic", vcs=64), *plan.nodes[1:])))

    network = BoardNetwork(other, 3)
    NETWORKS["overrun"](network)
    try:
        with pytest.raises(BoardError, match=r"the board has no nic\(vcs=16\) left for n2; of nic it has .*: flash or"):
            network.start()
    finally:
        network.close()


def test_a_board_that_has_lost_something_is_noticed() -> None:
    network = BoardNetwork(attach, 3)
    try:
        play(network, NETWORKS["overrun"](network), pdus=1)
        network.check_conservation()
        read = network.board.read
        network.board.read = lambda addrs: [word + 1 for word in read(addrs)]  # type: ignore[method-assign]
        with pytest.raises(BoardError, match="the host port of node 1 has lost 1 words"):
            network.check_conservation()
    finally:
        network.close()


def test_counters_of_a_node_are_read_in_one_round_trip() -> None:
    network = BoardNetwork(attach, 3)
    try:
        play(network, NETWORKS["overrun"](network), pdus=3)
        before = network.board.client.trips
        counters = network.counters()
        assert network.board.client.trips == before + len(network.nodes)
        assert network.counters() == counters  # no time has passed
        assert network.board.client.trips == before + len(network.nodes)
        network.run(network.now_ps + 10**9)
        network.counters()
        assert network.board.client.trips > before + len(network.nodes)
    finally:
        network.close()
