"""The software side of free-running time: the pace of a clock, VLANs as registers, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.free import FreeRunning, pace_of
from bentpipe_sim.board.model import ModelPipe
from bentpipe_sim.board.windows import (
    FRAME_COUNTERS,
    HOST_PORT,
    WINDOW_BITS,
    Plan,
    board_registers,
    host_port_registers,
)
from bentpipe_sim.build import Shape

PLAN = Plan((Shape.of("link"), Shape.of("nic", vcs=16)), (16, 16), tx_words=1024, rx_words=1024, vlans=2)


def _board(plan: Plan) -> Board:
    return Board(Client(ModelPipe(plan)))


@pytest.mark.parametrize("clock_hz", [35_000_000, 50_000_000, 75_000_000])
def test_the_pace_of_a_clock_is_that_of_ticks_or_a_little_less(clock_hz: int) -> None:
    ticks_a_second = Fraction(299_520_000, 53)
    found = Fraction(pace_of(clock_hz), 1 << 32) * clock_hz
    assert ticks_a_second * (1 - Fraction(4, 10**9)) < found <= ticks_a_second


def test_a_clock_of_a_tick_or_longer_has_no_pace() -> None:
    for clock_hz in (5_000_000, 0, -1):
        with pytest.raises(ValueError, match=f"clock_hz must be above 5651321, not {clock_hz}"):
            pace_of(clock_hz)


def test_a_vlan_is_in_the_registers_of_its_interface() -> None:
    board = _board(PLAN)
    FreeRunning(board).vlan(2, 1, 0xABC, tx=3, rx=15)
    addr = HOST_PORT + 2 << WINDOW_BITS | host_port_registers(PLAN)["vlan"].addr
    assert board.read([addr, addr + 1]) == [0, 0xABC | 3 << 12 | 15 << 22]
    assert set(FreeRunning(board).frames().values()) == {0}


def test_what_a_board_cannot_do_is_named() -> None:
    with pytest.raises(BoardError, match="has no pace of real time: build it with --vlans or --sources"):
        FreeRunning(_board(replace(PLAN, vlans=0)))
    free = FreeRunning(_board(PLAN))
    for window, number in ((1, 0), (2, 2), (2, -1)):
        with pytest.raises(BoardError, match=f"the board has no VLAN {number} at window {window}"):
            free.vlan(window, number, 10, tx=0, rx=0)
    with pytest.raises(BoardError, match="a VLAN identifier is 1 to 4094, or 0 for none, not 4095"):
        free.vlan(2, 0, 4095, tx=0, rx=0)
    with pytest.raises(BoardError, match="a pace is 1 to 4294967295, not 0"):
        free.start(0)
    # A board in software has stepped time alone
    with pytest.raises(BoardError, match="the board's time does not run freely"):
        free.start(pace_of(75_000_000))


def test_a_board_without_vlans_has_no_registers_of_real_time() -> None:
    names = {"pace", "free", "lag", "greatest_lag", "late_ticks"}
    paced, stepped = (board_registers(plan) for plan in (PLAN, replace(PLAN, vlans=0)))
    assert names == set(paced.by_name) - set(stepped.by_name) - set(FRAME_COUNTERS)
    assert all(paced[name].addr == register.addr for name, register in stepped.by_name.items() if name != "description")
    board = _board(replace(PLAN, vlans=0))
    assert not board.csr.state.free
    with pytest.raises(AttributeError, match="board has no register 'pace'"):
        board.csr.pace = 1


def test_vlans_do_not_share_an_identifier_or_a_vc() -> None:
    plan = Plan((Shape.of("nic", vcs=16), Shape.of("nic", vcs=16)), (16, 16), tx_words=1024, rx_words=1024, vlans=2)
    free = FreeRunning(_board(plan))
    free.vlan(1, 0, 10, tx=3, rx=4)
    for window, number, vid, tx, rx, message in (
        (1, 1, 11, 16, 0, "has VCs 0 to 15, not 16 and 0"),
        (1, 1, 11, 0, -1, "has VCs 0 to 15, not 0 and -1"),
        (1, 1, 11, 3, 0, "VLAN 10 has VC 3 of window 1 already"),
        (1, 1, 11, 0, 4, "VLAN 10 has VC 4 of window 1 already"),
        (2, 0, 10, 0, 0, "VLAN 10 is at window 1 already"),
    ):
        with pytest.raises(BoardError, match=message):
            free.vlan(window, number, vid, tx=tx, rx=rx)
    free.vlan(2, 0, 11, tx=3, rx=4)  # VCs of another interface
    free.vlan(1, 1, 12, tx=4, rx=3)  # those of the other direction
    free.vlan(1, 0, 13, tx=3, rx=4)  # the same place once more
    free.vlan(1, 0, 0, tx=0, rx=0)
    free.vlan(2, 1, 13, tx=0, rx=0)
