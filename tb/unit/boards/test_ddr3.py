"""FIFOs in a DDR3 memory, without LiteDRAM: lines of 267 ms at OC-3c, both ways, through a model of its port."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.hdl import Cat, Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered

from bentpipe_boards.ddr3 import STREAMS, Ddr3Fifos, Ddr3Port
from models.native_memory import NativeMemory
from models.record_lines import OC3C_TICKS, TICK_PS, Line, Ticks, play

CLOCK_HZ = 75_000_000
BURSTS = 4


class Bench(Elaboratable):
    """Two lines at a memory, with ticks as in real time; ``stuck``: as for :class:`NativeMemory`."""

    def __init__(self, *, records: int, stuck: int = 0) -> None:
        self.clock_hz = CLOCK_HZ
        self.fifos, self.port = Ddr3Fifos(fifos=2, records=records), Ddr3Port()
        self.memory = NativeMemory(words=2 * records * BURSTS, stuck=stuck)
        self.time = Ticks(CLOCK_HZ)
        self.lines = [Line(self.fifos.fifo[k], self.time, 0x9E3779B97F4A7C15 + k) for k in range(2)]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifos, m.submodules.port, m.submodules.memory = self.fifos, self.port, self.memory
        m.submodules += [self.time, *self.lines]
        for name in ("request", "answer"):
            leaves, _ = STREAMS[name]
            ends = (getattr(self.fifos, name), getattr(self.port, name))
            begin, end = ends if leaves else ends[::-1]
            m.submodules[name] = between = SyncFIFOBuffered(width=33, depth=17)
            m.d.comb += [
                between.w_data.eq(Cat(begin.word, begin.flag)),
                between.w_en.eq(begin.valid),
                begin.ready.eq(between.w_rdy),
                Cat(end.word, end.flag).eq(between.r_data),
                end.valid.eq(between.r_rdy),
                between.r_en.eq(end.ready),
            ]
        wiring.connect(m, self.port.native, self.memory.native)
        return m


def _played(bench: Bench, delay: int, ticks: int, *, spacing: int = OC3C_TICKS) -> list[dict[str, int]]:
    """Run the lines for so many ticks, and until they are empty; return counts of the memory and of each line."""
    counts = {"outside": bench.memory.outside, "commands": bench.memory.commands}
    return play(bench, bench.fifos.ready, counts, delay=delay, ticks=ticks, spacing=spacing)


def test_267_ms_at_oc_3c_both_ways() -> None:
    delay = round(0.267e12 / TICK_PS)
    memory, *lines = _played(Bench(records=1 << 17), delay, delay + 200_000)
    assert not memory["outside"]
    for line in lines:
        assert line["sent"] == line["received"] > delay // OC3C_TICKS + 200_000 // OC3C_TICKS - 2
        assert (line["lost"], line["wrong"], line["late"]) == (0, 0, 0)
    assert memory["commands"] > 2 * 2 * BURSTS * (delay // OC3C_TICKS)


def test_any_delay_up_to_the_memory_of_a_line_is_exact() -> None:
    bench = Bench(records=64)
    for delay, spacing in ((15, 16), (20, 13), (60, 16), (90, 14), (400, 16), (900, 14)):
        memory, *lines = _played(bench, delay, 4000, spacing=spacing)
        assert not memory["outside"]
        for line in lines:
            assert line["sent"] == line["received"] > 4000 // spacing - 2
            assert (line["lost"], line["wrong"], line["late"]) == (0, 0, 0), (delay, spacing)


def test_a_full_memory_takes_no_more_and_keeps_the_rest() -> None:
    memory, *lines = _played(Bench(records=16), 2000, 4000)
    for line in lines:
        assert line["lost"] > 50
        assert line["sent"] == line["received"] > 20
        assert line["wrong"] == 0


def test_a_stuck_bit_is_seen() -> None:
    _, *lines = _played(Bench(records=64, stuck=1 << 77), 400, 2000)
    assert all(line["wrong"] for line in lines)


@pytest.mark.parametrize(("fifos", "records"), [(0, 4), (1, 3), (2, 1 << 23), (1, 1)])
def test_what_does_not_fit_the_chip_is_refused(fifos: int, records: int) -> None:
    with pytest.raises(ValueError, match="powers of two"):
        Ddr3Fifos(fifos=fifos, records=records)
