"""Sources and sinks of SDUs on the RTL of a board, in stepped time and at a pace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bentpipe_boards.fpga.plans import PLANS
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.free import FreeRunning, pace_of
from bentpipe_sim.board.lockstep import LockstepNetwork
from bentpipe_sim.board.target import open_target
from bentpipe_sim.board.windows import Plan

LENGTH, CELLS = 4000, 84
TICKS = 100_000
CLOCK_HZ = 75_000_000


@contextmanager
def _loop(ber: float) -> Iterator[tuple[FreeRunning, LockstepNetwork, int, int]]:
    """A board whose interface gets its cells back through a link; its network, the interface's window, and the VC."""

    def connect(plan: Plan) -> Board:
        del plan
        pipe, patience = open_target("board:sim", replace(PLANS["line"], patterns=True, sources=True))
        return Board(Client(pipe, patience=patience))

    network = LockstepNetwork(connect)
    try:
        nic = network.add_nic("nic")
        link = network.add_link("link", LinkSettings(delay_ps=25_000_000, ber=ber))
        network.connect(nic, link)
        network.connect(link, nic)
        vc = network.add_vc([nic, link, nic], 0, 100)
        network.start()
        free, window = FreeRunning(network.board), network.place.windows[nic.index]
        free.sink(window, vc)
        free.source(window, vc, LENGTH, key=7)
        yield free, network, window, vc
        network.board.faults()
    finally:
        network.close()


def test_a_source_fills_the_line_and_its_sink_verifies_all() -> None:
    with _loop(0) as (free, network, window, vc):
        board, nic = free.board, network.nodes[0]
        assert board.run(TICKS) == [], "no SDU has a record"
        found = free.sdus(window)
        assert found["verified"] == found["sent"] > 0 == found["unverified"]
        assert found["sent"] * CELLS * nic.spacing(0) / 65536 > 0.99 * TICKS
        free.source(window, vc, 0)
        assert board.run(TICKS + 2000) == []
        assert free.sdus(window) == {"sent": found["sent"] + 1, "verified": found["sent"] + 1, "unverified": 0}
        board.run(TICKS + 9000)
        stopped = free.sdus(window)["sent"]
        assert stopped == found["sent"] + 1
        # At a pace; a simulated board has clocks while it is asked
        free.source(window, vc, LENGTH)
        free.start(pace_of(CLOCK_HZ))
        for _ in range(500):
            free.lag()
        free.stop()
        found = free.sdus(window)
        assert found["sent"] > stopped and found["unverified"] == 0


def test_a_sink_finds_what_a_link_has_spoilt() -> None:
    with _loop(2e-5) as (free, network, window, vc):
        free.board.run(TICKS)
        found = free.sdus(window)
        assert found["verified"] + found["unverified"] == found["sent"]
        assert 5 < found["unverified"] < found["sent"] - 5
        registers = network.nodes[0].csr.map
        verdicts = network.place.read(0, [registers["rx_pdus"].addr + 8 * vc + k for k in range(8)])
        assert verdicts[0] == found["verified"] and sum(verdicts) == found["sent"]


def test_wrong_use_is_one_line() -> None:
    with pytest.raises(ValueError, match="sources need patterns"):
        replace(PLANS["line"], sources=True)
