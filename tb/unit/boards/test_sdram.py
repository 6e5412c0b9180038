"""FIFOs in an SDRAM: lines of 267 ms at OC-3c, both ways, with a chip that asserts how it is driven."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Module

from benches.record_lines import OC3C_TICKS, TICK_PS, Line, Ticks, play
from bentpipe_boards.sdram import SdramFifos, SdramTimes
from bentpipe_boards.sdram_chip import FAULTS, SdramChip

CLOCK_HZ = 75_000_000


class Bench(Elaboratable):
    """Two lines at a chip, with ticks as in real time. ``stuck``: data lines that the chip's answers leave low;
    ``times``: those that the controller keeps, if they are not the chip's."""

    def __init__(
        self, *, records: int, rows: int, stuck: int = 0, times: SdramTimes | None = None, clock_hz: int = CLOCK_HZ
    ) -> None:
        self.clock_hz = clock_hz
        self.fifos = SdramFifos(times or SdramTimes(clock_hz), fifos=2, records=records)
        self.chip = SdramChip(SdramTimes(clock_hz), rows=rows)
        self.time = Ticks(clock_hz)
        self.lines = [Line(self.fifos.fifo[k], self.time, 0x9E3779B97F4A7C15 + k) for k in range(2)]
        self._stuck = stuck

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifos, m.submodules.chip = self.fifos, self.chip
        m.submodules += [self.time, *self.lines]
        pins, driven = self.chip.pins, self.fifos.chip
        for name in ("command", "bank", "address", "out", "drives"):
            m.d.comb += getattr(pins, name).eq(getattr(driven, name))
        m.d.comb += driven.data.eq(pins.data & ~self._stuck)
        return m


def _played(bench: Bench, delay: int, ticks: int, *, spacing: int = OC3C_TICKS) -> list[dict[str, int]]:
    """Run the lines for so many ticks, and until they are empty; return counts of the chip and of each line."""
    chip = {"fault": bench.chip.fault, "refreshes": bench.chip.refreshes}
    return play(bench, bench.fifos.ready, chip, delay=delay, ticks=ticks, spacing=spacing)


def test_267_ms_at_oc_3c_both_ways() -> None:
    delay = round(0.267e12 / TICK_PS)
    chip, *lines = _played(Bench(records=1 << 17, rows=1 << 12), delay, delay + 200_000)
    assert FAULTS[chip["fault"]] == ""
    for line in lines:
        assert line["sent"] == line["received"] > delay // OC3C_TICKS + 200_000 // OC3C_TICKS - 2
        assert (line["lost"], line["wrong"], line["late"]) == (0, 0, 0)
    assert chip["refreshes"] >= 2 * 0.267 / 0.064 * 8192


def test_any_delay_up_to_the_memory_of_a_line_is_exact() -> None:
    bench = Bench(records=64, rows=8)
    for delay, spacing in ((15, 16), (20, 13), (60, 16), (90, 14), (400, 16), (900, 14)):
        chip, *lines = _played(bench, delay, 4000, spacing=spacing)
        assert FAULTS[chip["fault"]] == ""
        for line in lines:
            assert line["sent"] == line["received"] > 4000 // spacing - 2
            assert (line["lost"], line["wrong"], line["late"]) == (0, 0, 0), (delay, spacing)


def test_a_full_memory_says_so_and_keeps_what_it_has() -> None:
    chip, *lines = _played(Bench(records=16, rows=8), 16 * 40, 4000)
    assert FAULTS[chip["fault"]] == ""
    for line in lines:
        assert line["lost"] > 100
        assert line["sent"] == line["received"] > 100
        assert (line["wrong"], line["late"]) == (0, 0)


def test_a_stuck_data_line_is_seen() -> None:
    _, *lines = _played(Bench(records=64, rows=8, stuck=1 << 5), 400, 2000)
    assert all(line["wrong"] for line in lines)


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ({"rfc": 5}, "a command while a refresh or the mode register is being done"),
        ({"rcd": 5}, "a read or write too soon after its row was opened"),
        ({"rp": 5}, "a refresh or a mode with an open row, or within a precharge"),
        ({"refresh": 40_000}, "a read or write after a refresh was too late"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_the_chip_tells_what_it_is_not_given_time_for(times: dict[str, int], told: str) -> None:
    hz = 200_000_000
    chip, *_ = _played(Bench(records=64, rows=8, times=SdramTimes(hz, **times), clock_hz=hz), 400, 1000)
    assert FAULTS[chip["fault"]] == told


@pytest.mark.parametrize(("fifos", "records"), [(0, 4), (1, 3), (2, 1 << 19), (1, 1)])
def test_what_does_not_fit_the_chip_is_refused(fifos: int, records: int) -> None:
    with pytest.raises(ValueError, match="powers of two"):
        SdramFifos(SdramTimes(CLOCK_HZ), fifos=fifos, records=records)


def test_a_clock_without_time_for_bursts_between_refreshes_is_refused() -> None:
    with pytest.raises(ValueError, match="clock_hz must be at least 16385049, not 10000000"):
        SdramFifos(SdramTimes(10_000_000), fifos=1, records=4)
