"""Lines of cells through FIFOs of records in a memory, with ticks as in real time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal

from bentpipe_boards.records import RECORD_WORDS
from bentpipe_sim.native import Simulator

TICK_PS = 53 / 299_520_000 * 1e12
OC3C_TICKS = 16
"""Ticks from cell to cell of OC-3c: 149.76 Mb/s."""
COUNTS = ("sent", "received", "lost", "wrong", "late")
_STARTS_S = 300e-6


class Ticks(Elaboratable):
    """Ticks of real time from a clock.

    Members
    -------
    tick, now : Out(1), Out(48)
    """

    def __init__(self, clock_hz: int) -> None:
        self._clock_hz, self.tick, self.now = clock_hz, Signal(), Signal(48)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        phase, step = Signal(32), round(1e12 / TICK_PS / self._clock_hz * 2**32)
        m.d.sync += Cat(phase, self.tick).eq(phase + step)
        with m.If(self.tick):
            m.d.sync += self.now.eq(self.now + 1)
        return m


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

    def __init__(self, fifo: Any, time: Ticks, seed: int) -> None:
        self._fifo, self._tick, self._now, self._seed = fifo, time.tick, time.now, seed
        self.delay, self.spacing, self.runs = Signal(32), Signal(8, init=OC3C_TICKS), Signal()
        self.sent, self.received, self.lost, self.wrong, self.late = (Signal(32, name=n) for n in COUNTS)

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


class Bench(Protocol):
    """Lines at a memory.

    Members
    -------
    clock_hz : int
    lines : list of Line
    """

    clock_hz: int
    lines: list[Line]

    def elaborate(self, platform: Any) -> Module:
        """Return lines and memory."""
        ...


def play(
    bench: Bench, ready: Signal, others: Mapping[str, Any], *, delay: int, ticks: int, spacing: int
) -> list[dict[str, int]]:
    """Run the lines for so many ticks, and until they are empty; return the other counts, and those of each line."""
    found: list[dict[str, int]] = []
    seconds = TICK_PS * 1e-12
    simulator = Simulator(bench)
    simulator.add_clock(1 / bench.clock_hz)

    def clocks(count: float) -> None:
        """Do all at once, as nobody looks at what is between: a clock takes 0.1 us then, and 5 us one by one."""
        compiled = simulator._engine.compiled
        compiled.model.clocks(1)(compiled.address, round(count))
        compiled.stale = True

    async def testbench(ctx: Any) -> None:
        for line in bench.lines:
            ctx.set(line.delay, delay)
            ctx.set(line.spacing, spacing)
        clocks(_STARTS_S * bench.clock_hz)
        assert ctx.get(ready)
        for line in bench.lines:
            ctx.set(line.runs, 1)
        clocks(ticks * seconds * bench.clock_hz)
        for line in bench.lines:
            ctx.set(line.runs, 0)
        clocks((delay + 100) * seconds * bench.clock_hz)
        await ctx.tick()
        found.append({name: ctx.get(signal) for name, signal in others.items()})
        found.extend({name: ctx.get(getattr(line, name)) for name in COUNTS} for line in bench.lines)

    simulator.add_testbench(testbench)
    simulator.run()
    return found
