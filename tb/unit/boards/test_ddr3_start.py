"""The start of a DDR3 memory: mode registers as JEDEC has them, times, and the search for the setting of the PHY."""

from __future__ import annotations

import pytest

from bentpipe_sim.board import ddr3
from bentpipe_sim.board.ddr3 import Ddr3, Levelled
from bentpipe_sim.board.errors import BoardError
from models.ddr3_chip import Controller, decode

MEANT = {
    "burst": 8, "interleaved": False, "cas latency": 6, "dll reset": True, "write recovery": 5, "dll": True,
    "driver": 34, "termination": 60, "additive latency": 0, "write levelling": False, "tdqs": False, "outputs": True,
    "cas write latency": 5, "write termination": 60, "self refresh": 0, "multi-purpose register": False,
}  # fmt: skip
WINDOWS = ({1: range(2, 7)}, {0: range(6, 8), 1: range(4)})


def test_the_mode_registers_mean_what_they_should() -> None:
    board = Controller(WINDOWS)
    Ddr3(board).start()
    assert [number for number, _ in board.chip.modes] == [2, 3, 1, 0]
    assert decode(dict(board.chip.modes)) == MEANT


def test_the_setting_of_each_byte_is_in_the_middle_of_its_longest_window() -> None:
    board = Controller(WINDOWS)
    assert Ddr3(board).start() == [Levelled(1, 4, 5), Levelled(1, 2, 4)]
    assert (board.slips, board.delays) == ([1, 1], [4, 2])
    assert board.chip.cke and board.chip.odt and board.chip.reset_n


@pytest.mark.parametrize("at", range(8))
def test_a_window_of_one_delay_is_found(at: int) -> None:
    window = {at % 4: range(at, at + 1)}
    assert Ddr3(Controller((window, window))).start() == [Levelled(at % 4, at, 1)] * 2


def test_a_setting_without_a_strobe_does_not_count() -> None:
    window = {0: range(8)}
    assert Ddr3(Controller((window, window), range(4))).start() == [Levelled(0, 2, 4)] * 2


def test_a_memory_that_runs_is_started_again_without_a_power_down() -> None:
    board = Controller(WINDOWS)
    first = Ddr3(board).start()
    began = board.now
    board.chip.open(began)
    assert Ddr3(board).start() == first
    assert board.now - began < began - 400_000, "the time before CKE is not waited for again"
    assert [number for number, _ in board.chip.modes] == [2, 3, 1, 0] * 2


@pytest.mark.parametrize("byte", [0, 1])
def test_data_lines_that_are_never_read_rightly_are_named(byte: int) -> None:
    windows = [WINDOWS[0], WINDOWS[1]]
    windows[byte] = {2: range(0)}
    with pytest.raises(
        BoardError, match=f"data lines {8 * byte} to {8 * byte + 7} of the DDR3 memory are read wrongly"
    ):
        Ddr3(Controller(windows)).start()


def test_a_board_whose_memory_is_silent_is_given_up() -> None:
    board = Controller(WINDOWS)
    board.take_memory = lambda most: []  # type: ignore[method-assign]
    with pytest.raises(BoardError, match="does not answer"):
        Ddr3(board).start()


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"cke": 499_000}, "ns since reset"), ({"xpr": 100}, "ns since cke"), ({"dllk": 1000}, "ns since calibration"),
    ],
)  # fmt: skip
def test_the_chip_notices_what_it_is_not_given_time_for(
    times: dict[str, int], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ddr3, "_TIMES", ddr3.Times(**times))
    monkeypatch.setattr(ddr3, "_MOST_HZ", 75_000_000)
    with pytest.raises(AssertionError, match=message):
        Ddr3(Controller(WINDOWS)).start()


def test_a_wrong_mode_register_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ddr3, "mode_registers", lambda: {0: 0x320, 1: 6, 2: 0x200, 3: 0})
    with pytest.raises(AssertionError, match="the order of"):
        Ddr3(Controller(WINDOWS)).start()
