"""HEC in RTL against the model: every single and double bit error of several headers."""

import random
from itertools import combinations

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from bentpipe_hdl.hec import UNCORRECTABLE, HecReceiver, error_syndrome
from bentpipe_hdl.hec import hec as rtl_hec
from models.hec import SINGLE_BIT, Outcome, Receiver, hec, syndrome

VERDICTS = {Outcome.GOOD: (1, 0, 0), Outcome.CORRECTED: (1, 1, 0), Outcome.DISCARDED: (0, 0, 1)}
"""``accept``, ``correct``, ``discard``."""


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


def test_syndrome_of_every_single_and_double_error():
    m = Module()
    error, result = Signal(40), Signal(8)
    m.d.comb += result.eq(error_syndrome(error))
    word = random.Random(2).getrandbits(32)
    good = word << 8 | hec(word.to_bytes(4, "big"))

    async def bench(ctx):
        for bits in [(), *combinations(range(40), 1), *combinations(range(40), 2)]:
            pattern = sum(1 << 39 - bit for bit in bits)
            ctx.set(error, pattern)
            await ctx.delay(1e-9)
            assert ctx.get(result) == syndrome((good ^ pattern).to_bytes(5, "big"))

    simulate(m, bench)


@pytest.mark.parametrize("seed", range(3))
def test_receiver_against_the_model(seed):
    """Headers with no, one or two errors, not one in each clock; now and then it starts again."""
    dut = HecReceiver()
    rng = random.Random(seed)

    async def bench(ctx):
        receiver = Receiver()
        for _ in range(600):
            word = rng.getrandbits(32)
            sent = word << 8 | hec(word.to_bytes(4, "big"))
            error = sum(1 << bit for bit in rng.sample(range(40), rng.choice([0, 0, 1, 1, 2])))
            check, start = rng.random() < 0.8, rng.random() < 0.05
            ctx.set(dut.syndrome, syndrome((sent ^ error).to_bytes(5, "big")))
            ctx.set(dut.check, check)
            ctx.set(dut.start, start)
            await ctx.delay(1e-9)
            verdicts = ctx.get(dut.accept), ctx.get(dut.correct), ctx.get(dut.discard)
            if check:
                outcome, header = receiver.receive((sent ^ error).to_bytes(5, "big"))
                assert verdicts == VERDICTS[outcome]
                if outcome is Outcome.CORRECTED:
                    assert (sent ^ error ^ ctx.get(dut.flip)).to_bytes(5, "big") == header
            else:
                assert verdicts == (0, 0, 0)
            if start:
                receiver = Receiver()
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_what_is_uncorrectable_is_no_single_error():
    assert UNCORRECTABLE != 0
    assert UNCORRECTABLE not in SINGLE_BIT
