"""A wire whose cells are in an SDRAM does the same as one of block memory."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from bentpipe_boards.sdram import SdramFifos, SdramTimes
from bentpipe_boards.sdram_chip import FAULTS, SdramChip
from bentpipe_boards.ticks import SETTLED
from bentpipe_boards.wire import LongWire, Wire
from bentpipe_sim.native import Simulator

TICK_CLOCKS, WORDS = 40, 13
CLOCK_HZ = 50_000_000


class Bench(Elaboratable):
    """A short wire and a long one beside each other, with the same at their inputs; registers at the chip's pins."""

    def __init__(self, *, records: int, cells: int) -> None:
        self.fifos = SdramFifos(SdramTimes(CLOCK_HZ), fifos=1, records=records, pin_clocks=2)
        self.chip = SdramChip(SdramTimes(CLOCK_HZ), rows=max(1, records >> 6))
        self.short, self.long = Wire(cells=256), LongWire(cells=cells)
        self.valid, self.soc, self.word, self.bad = Signal(), Signal(), Signal(32), Signal()
        self.end, self.tick, self.now, self.following = Signal(48), Signal(), Signal(48), Signal(48)
        self.delay, self.sends, self.take = Signal(31), Signal(), Signal()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifos, m.submodules.chip = self.fifos, self.chip
        m.submodules.short, m.submodules.long = self.short, self.long
        for wire in (self.short, self.long):
            m.d.comb += [
                wire.i.valid.eq(self.valid),
                wire.i.soc.eq(self.soc),
                wire.i.word.eq(self.word),
                wire.i.hec_error.eq(self.bad),
            ]
            for name in ("end", "tick", "now", "following", "delay", "sends", "take"):
                m.d.comb += getattr(wire, name).eq(getattr(self, name))
        ours, fifo = self.long.fifo, self.fifos.fifo[0]
        for name in ("put", "put_word", "at", "take"):
            m.d.comb += getattr(fifo, name).eq(getattr(ours, name))
        for name in ("room", "waits", "word"):
            m.d.comb += getattr(ours, name).eq(getattr(fifo, name))
        pins, driven = self.chip.pins, self.fifos.chip
        for name in ("command", "bank", "address", "out", "drives"):
            m.d.sync += getattr(pins, name).eq(getattr(driven, name))
        m.d.sync += driven.data.eq(pins.data)
        return m


@dataclass
class Found:
    """The cells that went into both wires and came out of each, by tick; counts at the end."""

    given: list[int]
    short: list[Any]
    long: list[Any]
    counts: Counter[str]
    fault: str
    signed: list[int]


GENERATOR = 0x104C11DB7
"""Of CRC-32, with its term of degree 32."""


def _signature(words: list[int]) -> int:
    """The sum of all words, each multiplied by x for each word behind it; its remainder by the generator."""
    total = 0
    for word in words:
        total = total << 1 ^ word
    while (size := total.bit_length()) > 32:
        total ^= GENERATOR << size - 33
    return total


def _state(ctx: Any, wire: Any) -> tuple[int, ...]:
    offers = ctx.get(wire.offers)
    return offers, offers and ctx.get(wire.stamp), ctx.get(wire.more), ctx.get(wire.due), ctx.get(wire.check)


def _played(
    bench: Bench, seed: int, ticks: int, *, delay: int, share: float, takes: float, clocks: int = TICK_CLOCKS
) -> Found:
    rng, found = random.Random(seed), Found([], [], [], Counter(), "", [])
    simulator = Simulator(bench)
    simulator.add_clock(1 / CLOCK_HZ)

    async def testbench(ctx: Any) -> None:
        ctx.set(bench.delay, delay)
        await ctx.tick().repeat(round(250e-6 * CLOCK_HZ))
        for now in range(1, ticks):
            # What the clocks before a tick show decides about it
            begins, settled = 0, 0
            while settled < SETTLED:
                await ctx.tick()
                begins += 1
                settled = 0 if ctx.get(bench.long.holds) else settled + 1
                assert begins < 4000, "held for ever"
            found.counts["held"] += begins > SETTLED
            found.short.append(_state(ctx, bench.short))
            found.long.append(_state(ctx, bench.long))
            ctx.set(bench.now, now)
            ctx.set(bench.following, now + 1)
            take = ctx.get(bench.long.offers) and rng.random() < takes
            ctx.set(bench.tick, 1)
            ctx.set(bench.take, take)
            cell = [rng.getrandbits(32) for _ in range(WORDS)] if rng.random() < share else []
            found.given += cell
            ctx.set(bench.end, now + rng.choice((-1, 0, 0, 3)))
            ctx.set(bench.sends, rng.getrandbits(1))
            bad = rng.random() < 0.1
            ctx.set(bench.bad, bad)
            if cell:
                found.signed += [*cell, now & 0xFFFFFFFF, bad << 16 | now >> 32]
            found.counts["cells"] += bool(cell)
            for clock in range(WORDS + 3):
                sent = clock - 1
                ctx.set(bench.valid, bool(cell) and 0 <= sent < WORDS)
                ctx.set(bench.soc, sent == 0)
                ctx.set(bench.word, cell[sent] if cell and 0 <= sent < WORDS else 0)
                await ctx.tick()
                ctx.set(bench.tick, 0)
                ctx.set(bench.take, 0)
                for wire, words in ((bench.short, found.short), (bench.long, found.long)):
                    if ctx.get(wire.o.valid):
                        words.append((ctx.get(wire.o.soc), ctx.get(wire.o.word), ctx.get(wire.o.hec_error)))
        await ctx.tick().repeat(3)  # the signature's last words
        found.counts["lost"] = ctx.get(bench.long.lost)
        found.counts["late"] = ctx.get(bench.long.late)
        found.counts["check"] = ctx.get(bench.short.check)
        assert ctx.get(bench.short.late) == found.counts["late"]
        found.fault = FAULTS[ctx.get(bench.chip.fault)]

    simulator.add_testbench(testbench)
    simulator.run()
    return found


@pytest.mark.parametrize(
    ("delay", "share", "takes"),
    [(1, 0.5, 1.0), (1, 1.0, 1.0), (3, 0.9, 0.95), (90, 1.0, 1.0), (200, 0.9, 0.9)],
    ids=["near", "near and full", "waiting", "far and full", "far and waiting"],
)
def test_a_long_wire_does_what_a_short_one_does(delay: int, share: float, takes: float) -> None:
    found = _played(Bench(records=256, cells=256), delay, 350, delay=delay, share=share, takes=takes)
    assert found.fault == ""
    assert found.long == found.short
    assert found.counts["check"] == _signature(found.signed)
    assert found.counts["lost"] == 0
    assert found.counts["cells"] > 140 and found.counts["held"] > 0
    assert sum(len(each) == 3 for each in found.short) > 90 * WORDS


def test_a_full_long_wire_counts_what_it_loses_and_keeps_the_rest() -> None:
    found = _played(Bench(records=16, cells=16), 5, 300, delay=60, share=1.0, takes=1.0)
    assert found.fault == ""
    words = [word for word in found.long if len(word) == 3]
    assert found.counts["lost"] > 30
    assert len(words) % WORDS == 0 and len(words) > 40 * WORDS
    given = iter(found.given)
    assert all(any(word == each for each in given) for _, word, _ in words), "in their order, none changed"
