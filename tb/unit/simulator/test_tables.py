"""Sums of many bits and octets in the opposite order: the native engine takes both from tables."""

import random

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value

from bentpipe_sim.native import Simulator
from models.simulators import BOTH, everything, unlike


class Sums(Elaboratable):
    """A state of which each bit is the sum of random bits of it, of inputs, and of a constant."""

    def __init__(self, seed, width, *, reduces):
        rng = random.Random(seed)
        self.data, self.valid = Signal(width), Signal(5)
        self.state, self.shown, self.chosen = Signal(width, init=1), Signal(width), Signal(width)
        leaves = [*self.state, *self.data, *self.valid, ~self.data[0], Value.cast(1)]
        self.sums = [self.summed(rng.sample(leaves, rng.randrange(1, width)), reduces) for _ in range(width)]

    @staticmethod
    def summed(bits, reduces):
        if reduces:
            return Cat(*bits).xor()
        total = bits[0]
        for bit in bits[1:]:
            total = total ^ bit
        return total

    def elaborate(self, platform):
        m = Module()
        value = Cat(*(bit[0] for bit in self.sums))
        m.d.comb += self.shown.eq(value)
        with m.If(self.valid[0]):
            m.d.sync += self.state.eq(value)
        with m.Elif(self.valid[1]):
            m.d.sync += [self.state.eq(self.data), self.chosen.eq(value)]
        return m


class Reversed(Elaboratable):
    """Runs of bits downwards, within octets and across them, of words of all sizes of numbers."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.words = [Signal(width, name=f"word_{width}") for width in (3, 5, 8, 13, 16, 24, 32, 47, 64)]
        self.kept = [Signal(len(word)) for word in self.words]
        self.picked = []
        for word in self.kept:
            for _ in range(6):
                high = rng.randrange(len(word))
                low = rng.randrange(high + 1)
                self.picked.append(Cat(word[rng.randrange(len(word))], *word[low : high + 1][::-1]))
            self.picked.append((word + 3)[: len(word)][::-1])
        self.shown = [Signal(len(value), name=f"shown_{k}") for k, value in enumerate(self.picked)]
        self.total = Signal(64)

    def elaborate(self, platform):
        m = Module()
        for kept, word in zip(self.kept, self.words, strict=True):
            m.d.sync += kept.eq(word)
        for shown, value in zip(self.shown, self.picked, strict=True):
            m.d.comb += shown.eq(value)
        m.d.sync += self.total.eq(self.total + sum(self.picked[1:], self.picked[0]))
        return m


DESIGNS = {
    "a pair of bits at a time": (lambda: Sums(1, 16, reduces=False), "table_"),
    "whole": (lambda: Sums(2, 16, reduces=True), "table_"),
    "a wide one": (lambda: Sums(3, 40, reduces=False), "table_"),
    "octets": (lambda: Reversed(4), "reversed_octet["),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_every_signal_is_the_same_with_tables(name):
    make, text = DESIGNS[name]
    found = []
    for kind in BOTH:
        design = make()
        inputs = design.words if isinstance(design, Reversed) else [design.data, design.valid]
        found.append(everything(kind, design, [(each, 0.7) for each in inputs], 80))
    assert unlike(*found) is None
    source = Simulator(make(), is_short=True)._engine.compiled.model.source()
    assert text in source.library([1], ["ports"] if source.map.outputs["ports"] else [])
