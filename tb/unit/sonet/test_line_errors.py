"""Tests of events between the ends of a line."""

import itertools
import random

import pytest
from amaranth.sim import Simulator

from bentpipe_hdl.bit_errors import scale_of
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.line import LineErrors, SonetLine


def run(body, dut):
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(body)
    sim.run()


@pytest.mark.parametrize(("n", "width"), [(3, 9), (12, 36)])
def test_random_errors_at_a_rate(n, width):
    """At 1e-3 gaps are geometric, within words and across; the first error is where it was put."""
    dut = LineErrors(Geometry(n, width))
    bits, words = 8 * width, 45000 // width
    places, several = [], 0

    async def body(ctx):
        nonlocal several
        mantissa, shift = scale_of(1e-3)
        for name, value in (("mantissa", mantissa), ("shift", shift), ("gap", 3 * bits + 5), ("state", 12345)):
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.gap_start, 1)
        ctx.set(dut.state_start, 1)
        await ctx.tick()
        ctx.set(dut.gap_start, 0)
        ctx.set(dut.state_start, 0)
        ctx.set(dut.random, 1)
        for word in range(words):
            await ctx.tick()
            out = ctx.get(dut.o)
            places.extend(word * bits + k for k in in_order(out, bits))
            several += out.bit_count() > 1
        assert len(places) == ctx.get(dut.errors)
        assert len({place // bits for place in places}) == ctx.get(dut.hits)

    run(body, dut)
    assert places[0] == 3 * bits + 5
    total = bits * words
    assert abs(len(places) - total / 1000) < 5 * (total / 1000) ** 0.5
    gaps = [b - a for a, b in itertools.pairwise(places)]
    assert 0.25 < sum(gap < 500 for gap in gaps) / len(gaps) < 0.55  # 1 - exp(-0.5) = 0.39
    none, one = 0.999**bits, bits * 0.001 * 0.999 ** (bits - 1)
    expected = words * (1 - none - one)
    assert abs(several - expected) <= 4 * expected**0.5 + 1
    assert len({place % bits for place in places}) > 40


def test_a_rate_changed_in_a_run_draws_the_next_gap_anew():
    """From 1e-12, whose gap would last for ever, to 1e-3; a gap that is written behind the rate stays."""
    dut = LineErrors(Geometry(3, 9))

    async def body(ctx):
        async def rate(value, then=None):
            for name, word in zip(("mantissa", "shift"), scale_of(value), strict=True):
                ctx.set(getattr(dut, name), word)
            ctx.set(dut.enable, 0)
            for strobe in ("rate_start", then):
                if strobe:
                    ctx.set(getattr(dut, strobe), 1)
                    await ctx.tick()
                    ctx.set(getattr(dut, strobe), 0)
            ctx.set(dut.enable, 1)

        async def words(count):
            before = ctx.get(dut.errors)
            await ctx.tick().repeat(count)
            return ctx.get(dut.errors) - before

        ctx.set(dut.random, 1)
        ctx.set(dut.gap, 72 * 50 + 3)
        await rate(1e-12, "gap_start")
        assert [await words(50), await words(1), await words(500)] == [0, 1, 0]
        await rate(1e-3)
        assert await words(1) == 0
        mean = 2000 * 72 / 1000
        assert abs(await words(2000) - mean) < 5 * mean**0.5
        await rate(1e-12)
        assert await words(500) == 0

    run(body, dut)


def in_order(word, bits):
    """Places of the ones of a word, the first transmitted bit is 0."""
    return sorted(at // 8 * 8 + 7 - at % 8 for at in range(bits) if word >> at & 1)


def test_burst_one_bit_and_loss():
    dut = LineErrors(Geometry(3, 9))
    out = []

    async def body(ctx):
        ctx.set(dut.i, 0x3C)
        ctx.set(dut.burst, 3)
        ctx.set(dut.flip, 9 << 16 | 8)
        ctx.set(dut.loss, 4)
        for k in range(40):
            ctx.set(dut.word, k % 12)
            ctx.set(dut.burst_start, k == 2)
            ctx.set(dut.flip_start, k in (5, 22))
            ctx.set(dut.loss_start, k == 14)
            await ctx.tick()
            out.append(ctx.get(dut.o))
        assert (ctx.get(dut.errors), ctx.get(dut.hits)) == (2, 3 + 2 + 4)

    run(body, dut)
    every = (1 << 72) - 1
    expected = [0x3C] * 40
    expected[3:6] = [0x3C ^ every] * 3
    expected[9] = expected[33] = 0x3C ^ 0x8000  # word 9 of the frame, once a write; bit 8 is the first of byte 1
    expected[15:19] = [0] * 4
    assert out == expected


def test_a_random_error_and_one_at_a_chosen_place_in_one_word():
    dut = LineErrors(Geometry(3, 9))

    async def body(ctx):
        ctx.set(dut.mantissa, 1 << 23)
        ctx.set(dut.flip, 3)
        ctx.set(dut.gap, 70)
        for name in ("gap_start", "flip_start"):
            ctx.set(getattr(dut, name), 1)
        await ctx.tick()
        for name in ("gap_start", "flip_start"):
            ctx.set(getattr(dut, name), 0)
        ctx.set(dut.random, 1)
        await ctx.tick()
        assert in_order(ctx.get(dut.o), 72)[:2] == [3, 70]

    run(body, dut)


@pytest.mark.parametrize("slip", [0, 1, 8, 43, 71])
def test_a_line_that_is_late(slip):
    dut = LineErrors(Geometry(3, 9))
    rng = random.Random(slip)
    sent, got = "", ""

    def text(word):
        return "".join(f"{octet:08b}" for octet in word.to_bytes(9, "little"))

    async def body(ctx):
        nonlocal sent, got
        ctx.set(dut.slip, slip)
        for _ in range(6):
            word = rng.getrandbits(72)
            ctx.set(dut.i, word)
            sent += text(word)
            await ctx.tick()
            got += text(ctx.get(dut.o))

    run(body, dut)
    assert got[72:] == sent[72 - slip : len(sent) - slip]


def test_impossible_lines():
    with pytest.raises(ValueError, match="width must be 416 bits, not 32: on an FPGA"):
        SonetLine(width=32)
    with pytest.raises(ValueError, match="sts must be 3 or 12, not 1"):
        SonetLine(sts=1)
