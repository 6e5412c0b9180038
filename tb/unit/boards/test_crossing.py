"""Streams between two clocks: order, rate, and a reset, with edges in all distances."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from amaranth.hdl import ClockDomain, Module, ResetSignal, Signal
from amaranth.sim import Simulator

from bentpipe_boards.crossing import Crossing
from bentpipe_boards.frames import MacSignature

WORDS = 600
FAST, SLOW = 1 / 75e6, 1 / 37.49e6
"""Periods. One is not quite twice the other, so that their edges come in all distances."""


class _Run:
    """Words through a crossing: which came, in which clock of the reader.

    Parameters
    ----------
    i_period, o_period : float
        Of the clocks, in seconds.
    offers, takes : callable
        Whether the writer has a word in a clock, and the reader takes one.
    resets : int
        Words that are sent before a reset of both sides; 0: there is none.
    """

    def __init__(
        self, i_period: float, o_period: float, offers: Callable[[], bool], takes: Callable[[], bool], resets: int = 0
    ) -> None:
        self.words: list[int] = []
        self.clocks: list[int] = []
        self.waited = 0
        self.sent = [random.Random(1).getrandbits(38) for _ in range(WORDS)]
        self.crossing = Crossing(MacSignature(), i_domain="one", o_domain="other")
        self._offers, self._takes = offers, takes
        m, rst = Module(), Signal()
        m.domains += [ClockDomain("one"), ClockDomain("other")]
        m.d.comb += [ResetSignal("one").eq(rst), ResetSignal("other").eq(rst)]
        m.submodules.crossing = self.crossing
        simulator = Simulator(m)
        simulator.add_clock(i_period, domain="one")
        simulator.add_clock(o_period, phase=o_period / 3, domain="other")
        self._rst, self._resets = rst, resets
        simulator.add_testbench(self._write)
        simulator.add_testbench(self._read)
        simulator.run()

    async def _write(self, ctx) -> None:
        i, tick = self.crossing.i, ctx.tick("one")
        for k, word in enumerate(self.sent):
            if self._resets and k == self._resets:
                ctx.set(self._rst, 1)
                for _ in range(10):
                    await tick
                self.words.clear()
                self.clocks.clear()
                ctx.set(self._rst, 0)
            while not self._offers():
                await tick
            ctx.set(i.valid, 1)
            ctx.set(i.data, word & 0xFFFFFFFF)
            ctx.set(i.last, word >> 32 & 1)
            ctx.set(i.last_be, word >> 33 & 15)
            ctx.set(i.error, word >> 37)
            _, _, ready = await tick.sample(i.ready)
            while not ready:
                self.waited += 1
                _, _, ready = await tick.sample(i.ready)
            ctx.set(i.valid, 0)

    async def _read(self, ctx) -> None:
        o, tick, clock, held = self.crossing.o, ctx.tick("other"), 0, None
        while len(self.words) < WORDS - self._resets and clock < 20 * WORDS:
            takes = self._takes()
            ctx.set(o.ready, takes)
            values = await tick.sample(o.valid, o.data, o.last, o.last_be, o.error)
            valid, (data, last, last_be, error) = values[2], values[3:]
            clock += 1
            word = data | last << 32 | last_be << 33 | error << 37
            assert held is None or (valid and word == held) or self._resets, "a word that is not taken stays"
            held = word if valid and not takes else None
            if valid and takes:
                self.words.append(word)
                self.clocks.append(clock)


@pytest.mark.parametrize("periods", [(FAST, SLOW), (SLOW, FAST), (FAST, FAST)], ids=["slower", "faster", "same"])
def test_words_keep_their_order_whatever_waits(periods: tuple[float, float]) -> None:
    rng = random.Random(2)
    for offers, takes in ((0.9, 0.2), (0.2, 0.9), (0.6, 0.6)):
        run = _Run(*periods, lambda chance=offers: rng.random() < chance, lambda chance=takes: rng.random() < chance)
        assert run.words == run.sent


@pytest.mark.parametrize("o_period", [SLOW, FAST * 1.001], ids=["half", "equal"])
def test_a_word_leaves_in_each_clock_of_the_slower_side(o_period: float) -> None:
    """An Ethernet frame that is sent may have no gap."""
    run = _Run(FAST, o_period, lambda: True, lambda: True)
    assert run.words == run.sent and bool(run.waited) == (o_period == SLOW)
    assert run.clocks[-1] - run.clocks[0] == WORDS - 1


def test_the_slower_side_never_waits_for_the_faster_one() -> None:
    """A received Ethernet frame cannot be held up."""
    run = _Run(SLOW, FAST, lambda: True, lambda: True)
    assert run.words == run.sent and run.waited == 0


def test_a_reset_of_both_sides_empties_it() -> None:
    blocked = iter([False] * 100)
    run = _Run(FAST, SLOW, lambda: True, lambda: next(blocked, True), resets=10)
    assert run.words == run.sent[10:]
