"""A memory with two writers that write when they like: no write is lost, on either datapath."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from bentpipe_hdl.cell import TimeSignature
from bentpipe_hdl.slot import Slot
from unit.hdl.bench import WIDTHS


class TwoWriters(wiring.Component):
    """A store of 8 words that ``a`` and ``b`` write."""

    def __init__(self, width):
        self.width = width
        writer = {"a_en": In(1), "a_addr": In(3), "a_data": In(8), "b_en": In(1), "b_addr": In(3), "b_data": In(8)}
        super().__init__({"time": In(TimeSignature()), **writer, "addr": In(3), "data": Out(8)})

    def elaborate(self, platform):
        m = Module()
        store = Slot(m, self.time, self.width).store("words", 8, 8)
        clearing = Signal()
        store.write(self.a_addr, self.a_data, self.a_en, clear=(clearing, 0, 0))
        store.write(self.b_addr, self.b_data, self.b_en)
        m.d.comb += self.data.eq(store.read(self.addr))
        return m


@pytest.mark.parametrize("width", WIDTHS)
def test_no_write_is_lost(width):
    """The first writes in two clocks of three at the most, the second once in four: each word is what was written last,
    a clock or two later."""
    node = TwoWriters(width)
    rng = random.Random(3)
    expected = [0] * 8

    async def bench(ctx):
        for clock in range(400):
            pick = rng.randrange(4), rng.randrange(4, 8)  # of what they write at a time, the addresses differ
            writes = {"a": clock % 3 < 2 and rng.random() < 0.9, "b": clock % 4 == 0 and rng.random() < 0.9}
            for name, addr in zip("ab", pick, strict=True):
                value = rng.getrandbits(8)
                ctx.set(getattr(node, f"{name}_en"), writes[name])
                ctx.set(getattr(node, f"{name}_addr"), addr)
                ctx.set(getattr(node, f"{name}_data"), value)
                if writes[name]:
                    expected[addr] = value
            await ctx.tick()
            if clock % 4 == 3:  # nothing waits any more: look at all words
                ctx.set(node.a_en, 0)
                ctx.set(node.b_en, 0)
                found = []
                for addr in range(8):
                    ctx.set(node.addr, addr)
                    await ctx.tick()
                    found.append(ctx.get(node.data))
                assert found == expected

    simulator = Simulator(node)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
