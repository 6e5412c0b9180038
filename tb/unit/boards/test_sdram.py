"""FIFOs in an SDRAM: lines of 267 ms at OC-3c, both ways, with a chip that asserts how it is driven."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal

from bentpipe_boards.sdram import RECORD_WORDS, SdramFifos, SdramTimes
from bentpipe_boards.sdram_chip import FAULTS, SdramChip
from bentpipe_sim.native import Simulator

CLOCK_HZ = 75_000_000
TICK_PS = 53 / 299_520_000 * 1e12
OC3C_TICKS = 16
"""Ticks from cell to cell of OC-3c: 149.76 Mb/s."""


_COUNTS = ("sent", "received", "lost", "wrong", "late")


class Line(Elaboratable):
    """Cells with random words into a FIFO, each to come out in its tick, where they are compared.

    Members
    -------
    delay, spacing : In
        Ticks.
    runs : In
        Cells go in.
    sent, received, lost, wrong, late : Out
        Cells; ``lost`` ones found no room.
    """

    def __init__(self, fifo: Any, tick: Signal, now: Signal, seed: int) -> None:
        self._fifo, self._tick, self._now, self._seed = fifo, tick, now, seed
        self.delay, self.spacing, self.runs = Signal(32), Signal(8, init=OC3C_TICKS), Signal()
        self.sent, self.received, self.lost, self.wrong, self.late = (Signal(32, name=n) for n in _COUNTS)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        fifo, now = self._fifo, self._now
        # In: 14 random words, the due tick's lower half, its upper half with the cell's number
        going, place, left = Signal(), Signal(4), Signal(8)
        given, due = Signal(64, init=self._seed), Signal(48)
        with m.If(self._tick):
            m.d.sync += left.eq(Mux(left == 0, self.spacing - 1, left - 1))
            with m.If(self.runs & (left == 0)):
                with m.If(fifo.room):
                    m.d.sync += [going.eq(1), due.eq(now + self.delay), self.sent.eq(self.sent + 1)]
                with m.Else():
                    m.d.sync += self.lost.eq(self.lost + 1)
        m.d.comb += [fifo.put.eq(going), fifo.put_word.eq(given[:32])]
        with m.If(place == 14):
            m.d.comb += fifo.put_word.eq(due)
        with m.If(place == 15):
            m.d.comb += fifo.put_word.eq(Cat(due[32:], self.sent[:16]))
        with m.If(going):
            m.d.sync += [place.eq(place + 1), given.eq(_shifted(m, given)), going.eq(place != 15)]

        # Out: the due tick is read first, the rest in it
        expected, low, high = Signal(64, init=self._seed), Signal(32), Signal(32)
        at, count = Signal(4), Signal(5)
        m.d.comb += fifo.at.eq(at)
        with m.FSM():
            with m.State("EMPTY"):
                m.d.sync += at.eq(14)
                with m.If(fifo.waits):
                    m.next = "LOW"
            with m.State("LOW"):
                m.d.sync += at.eq(15)
                m.next = "HIGH"
            with m.State("HIGH"):
                m.d.sync += [low.eq(fifo.word), at.eq(0)]
                m.next = "KNOWN"
            with m.State("KNOWN"):
                m.d.sync += high.eq(fifo.word)
                m.next = "WAIT"
            with m.State("WAIT"):
                ahead = Signal(48)
                m.d.comb += ahead.eq(Cat(low, high[:16]) - now)
                with m.If(self._tick & ((ahead == 0) | ahead[-1])):
                    m.d.sync += [at.eq(1), count.eq(0), self.late.eq(self.late + (ahead != 0))]
                    m.d.sync += self.wrong.eq(self.wrong + (high[16:] != (self.received + 1)[:16]))
                    m.next = "WORDS"
            with m.State("WORDS"):
                m.d.sync += [at.eq(at + 1), count.eq(count + 1), expected.eq(_shifted(m, expected))]
                with m.If((count < 14) & (fifo.word != expected[:32])):
                    m.d.sync += self.wrong.eq(self.wrong + 1)
                with m.If(count == RECORD_WORDS - 1):
                    m.d.comb += fifo.take.eq(1)
                    m.d.sync += self.received.eq(self.received + 1)
                    m.next = "TAKEN"
            with m.State("TAKEN"):
                m.next = "EMPTY"
        return m


def _shifted(m: Module, state: Any) -> Signal:
    a, b, c = Signal(64), Signal(64), Signal(64)
    m.d.comb += [a.eq(state ^ (state << 13)[:64]), b.eq(a ^ (a >> 7)), c.eq(b ^ (b << 17)[:64])]
    return c


class Bench(Elaboratable):
    """Two lines at a chip, with ticks as in real time. ``stuck``: data lines that the chip's answers leave low;
    ``times``: those that the controller keeps, if they are not the chip's."""

    def __init__(
        self, *, records: int, rows: int, stuck: int = 0, times: SdramTimes | None = None, clock_hz: int = CLOCK_HZ
    ) -> None:
        self.clock_hz = clock_hz
        self.fifos = SdramFifos(times or SdramTimes(clock_hz), fifos=2, records=records)
        self.chip = SdramChip(SdramTimes(clock_hz), rows=rows)
        self.tick, self.now = Signal(), Signal(48)
        self.lines = [Line(self.fifos.fifo[k], self.tick, self.now, 0x9E3779B97F4A7C15 + k) for k in range(2)]
        self._stuck = stuck

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifos, m.submodules.chip = self.fifos, self.chip
        m.submodules += self.lines
        pins, driven = self.chip.pins, self.fifos.chip
        for name in ("command", "bank", "address", "out", "drives"):
            m.d.comb += getattr(pins, name).eq(getattr(driven, name))
        m.d.comb += driven.data.eq(pins.data & ~self._stuck)
        phase, step = Signal(32), round(1e12 / TICK_PS / self.clock_hz * 2**32)
        m.d.sync += Cat(phase, self.tick).eq(phase + step)
        with m.If(self.tick):
            m.d.sync += self.now.eq(self.now + 1)
        return m


def _played(bench: Bench, delay: int, ticks: int, *, spacing: int = OC3C_TICKS) -> list[dict[str, int]]:
    """Run the lines for so many ticks, and until they are empty; their counts."""
    found: list[dict[str, int]] = []
    seconds = TICK_PS * 1e-12
    simulator = Simulator(bench)
    simulator.add_clock(1 / bench.clock_hz)

    def clocks(count: float) -> None:
        """All at once, as nobody looks at what is between: a clock takes 0.1 us then, and 5 us one by one."""
        compiled = simulator._engine.compiled
        compiled.model.clocks(1)(compiled.address, round(count))
        compiled.stale = True

    async def testbench(ctx: Any) -> None:
        for line in bench.lines:
            ctx.set(line.delay, delay)
            ctx.set(line.spacing, spacing)
        clocks(300e-6 * bench.clock_hz)
        assert ctx.get(bench.fifos.ready)
        for line in bench.lines:
            ctx.set(line.runs, 1)
        clocks(ticks * seconds * bench.clock_hz)
        for line in bench.lines:
            ctx.set(line.runs, 0)
        clocks((delay + 100) * seconds * bench.clock_hz)
        await ctx.tick()
        found.append({"fault": ctx.get(bench.chip.fault), "refreshes": ctx.get(bench.chip.refreshes)})
        found.extend({name: ctx.get(getattr(line, name)) for name in _COUNTS} for line in bench.lines)

    simulator.add_testbench(testbench)
    simulator.run()
    return found


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
