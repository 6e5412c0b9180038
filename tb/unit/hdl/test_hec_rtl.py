"""HEC in RTL against the model: every single and double bit error of several headers."""

import random
from itertools import combinations

from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from bentpipe_hdl.hec import HecCorrector
from bentpipe_hdl.hec import hec as rtl_hec
from models.hec import SINGLE_BIT, hec, syndrome


def simulate(design, bench):
    simulator = Simulator(design)
    simulator.add_testbench(bench)
    simulator.run()


def test_hec_of_random_headers():
    m = Module()
    header, result = Signal(32), Signal(8)
    m.d.comb += result.eq(rtl_hec(header))

    async def bench(ctx):
        rng = random.Random(1)
        for word in [0, 1, 0xFFFFFFFF, *(rng.getrandbits(32) for _ in range(300))]:
            ctx.set(header, word)
            await ctx.delay(1e-9)
            assert ctx.get(result) == hec(word.to_bytes(4, "big"))

    simulate(m, bench)


def test_corrector_on_every_single_and_double_error():
    dut = HecCorrector()
    rng = random.Random(2)
    word = rng.getrandbits(32)
    good = word << 8 | hec(word.to_bytes(4, "big"))

    async def bench(ctx):
        for bits in [(), *combinations(range(40), 1), *combinations(range(40), 2)]:
            received = good
            for bit in bits:
                received ^= 1 << (39 - bit)
            ctx.set(dut.header, received)
            await ctx.delay(1e-9)
            found = syndrome(received.to_bytes(5, "big"))
            assert ctx.get(dut.good) == (found == 0)
            assert ctx.get(dut.correctable) == (found in SINGLE_BIT) == (len(bits) == 1)
            assert ctx.get(dut.corrected) == (good if len(bits) == 1 else received)

    simulate(dut, bench)
