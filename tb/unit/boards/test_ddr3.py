"""FIFOs in a DDR3 memory, without LiteDRAM: lines of 267 ms at OC-3c, both ways, through a model of its port."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered

from benches.native_memory import NativeMemory
from benches.record_lines import OC3C_TICKS, TICK_PS, Line, Ticks, play
from bentpipe_boards.ddr3 import STREAMS, Ask, Ddr3Fifos, Ddr3Port
from bentpipe_sim.native import Simulator

CLOCK_HZ = 75_000_000
BURSTS = 4


class Bench(Elaboratable):
    """Two lines at a memory, with ticks as in real time; ``stuck``: as for :class:`NativeMemory`."""

    def __init__(self, *, records: int, stuck: int = 0) -> None:
        self.clock_hz = CLOCK_HZ
        self.fifos, self.port = Ddr3Fifos(fifos=2, records=records), Ddr3Port()
        self.memory = NativeMemory(words=2 * records * BURSTS, stuck=stuck)
        self.time, self.reset = Ticks(CLOCK_HZ), Signal()
        self.lines = [Line(self.fifos.fifo[k], self.time, 0x9E3779B97F4A7C15 + k) for k in range(2)]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.port, m.submodules.memory = self.port, self.memory
        m.submodules += [ResetInserter(self.reset)(part) for part in (self.fifos, self.time, *self.lines)]
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
    _, *lines = _played(Bench(records=16), 2000, 4000)
    for line in lines:
        assert line["lost"] > 50
        assert line["sent"] == line["received"] > 20
        assert line["wrong"] == 0


def test_after_a_reset_nothing_of_before_comes() -> None:
    """The FIFOs are reset at any moment of their traffic; the memory is not, and still answers."""
    bench, rng, waited = Bench(records=64), random.Random(7), set()
    simulator = Simulator(bench)
    simulator.add_clock(1 / CLOCK_HZ)

    async def testbench(ctx: Any) -> None:
        for line in bench.lines:
            ctx.set(line.delay, 200)
            ctx.set(line.runs, 1)
        for _ in range(40):
            await ctx.tick().repeat(5000 + rng.randrange(200))
            for line in bench.lines:
                assert ctx.get(line.received) > 8
                assert not any(ctx.get(getattr(line, name)) for name in ("lost", "wrong", "late"))
            ctx.set(bench.reset, 1)
            await ctx.tick().repeat(rng.randrange(1, 4))
            ctx.set(bench.reset, 0)
            clocks = 0
            while not ctx.get(bench.fifos.ready):
                await ctx.tick()
                clocks += 1
            waited.add(clocks)

    simulator.add_testbench(testbench)
    simulator.run()
    assert len(waited) > 5, "some answers of before came"


def test_a_mark_that_is_lost_is_sent_again() -> None:
    fifos, sent = Ddr3Fifos(fifos=1, records=4), []
    simulator = Simulator(fifos)
    simulator.add_clock(1 / CLOCK_HZ)

    async def testbench(ctx: Any) -> None:
        ctx.set(fifos.request.ready, 1)
        for clock in range(5000):
            if ctx.get(fifos.request.valid):
                sent.append((clock, ctx.get(fifos.request.word)))
            await ctx.tick()
        assert not ctx.get(fifos.ready)
        for number, ready in ((sent[-2][1], 0), (sent[-1][1], 1)):
            ctx.set(fifos.answer.valid, 1)
            ctx.set(fifos.answer.flag, 1)
            ctx.set(fifos.answer.word, number & 0xFF)
            await ctx.tick()
            assert ctx.get(fifos.ready) == ready, "the answer to a mark of before does not count"

    simulator.add_testbench(testbench)
    simulator.run()
    assert len(sent) > 3 and len({word for _, word in sent}) == len(sent)


def test_registers_are_written_read_and_waited_for() -> None:
    port, found = Ddr3Port(), []
    memory = NativeMemory(words=4)
    m = Module()
    m.submodules.port, m.submodules.memory = port, memory
    wiring.connect(m, port.native, memory.native)
    simulator = Simulator(m)
    simulator.add_clock(1 / CLOCK_HZ)

    async def testbench(ctx: Any) -> None:
        async def ask(kind: Ask, addr: int, word: int) -> int:
            ctx.set(port.ask.kind, kind)
            ctx.set(port.ask.addr, addr)
            ctx.set(port.ask.word, word)
            ctx.set(port.ask.valid, 1)
            clocks = 1
            while not ctx.get(port.ask.ready):
                await ctx.tick()
                clocks += 1
            await ctx.tick()
            ctx.set(port.ask.valid, 0)
            return clocks

        for addr in range(5):
            await ask(Ask.WRITE, addr, addr * 0x01234567)
        for addr in range(5):
            await ask(Ask.READ, addr, 0)
            for _ in range(addr):  # it is kept until it is taken
                await ctx.tick()
            assert ctx.get(port.value.valid)
            found.append(ctx.get(port.value.word))
            ctx.set(port.value.ready, 1)
            await ctx.tick()
            ctx.set(port.value.ready, 0)
        for clocks in (0, 1, 7, 1000):
            assert clocks < await ask(Ask.WAIT, 0, clocks) <= clocks + 2

    simulator.add_testbench(testbench)
    simulator.run()
    assert found == [addr * 0x01234567 for addr in range(5)]


def test_a_stuck_bit_is_seen() -> None:
    _, *lines = _played(Bench(records=64, stuck=1 << 77), 400, 2000)
    assert all(line["wrong"] for line in lines)


@pytest.mark.parametrize(("fifos", "records"), [(0, 4), (1, 3), (2, 1 << 23), (1, 1)])
def test_what_does_not_fit_the_chip_is_refused(fifos: int, records: int) -> None:
    with pytest.raises(ValueError, match="powers of two"):
        Ddr3Fifos(fifos=fifos, records=records)
