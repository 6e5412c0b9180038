"""What happens between the ends of a line."""

import itertools

import pytest
from amaranth.sim import Simulator

from bentpipe_hdl.link.gap import scale_of
from bentpipe_hdl.sonet.line import LineErrors, SonetLine


def run(body, dut):
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(body)
    sim.run()


@pytest.mark.parametrize("width", [1, 9])
def test_random_errors_at_a_rate(width):
    """At 1e-3: gaps are geometric, every place of a word is hit; the first error is where it was put."""
    dut = LineErrors(width)
    bits, words = 8 * width, 36000 // width
    places = []

    async def body(ctx):
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
            assert out.bit_count() <= 1
            if out:
                at = out.bit_length() - 1
                places.append(word * bits + at // 8 * 8 + 7 - at % 8)
        assert len(places) == ctx.get(dut.errors)

    run(body, dut)
    assert places[0] == 3 * bits + 5
    total = bits * words
    assert abs(len(places) - total / 1000) < 5 * (total / 1000) ** 0.5
    gaps = [b - a for a, b in itertools.pairwise(places)]
    assert 0.25 < sum(gap < 500 for gap in gaps) / len(gaps) < 0.55  # 1 - exp(-0.5) = 0.39
    assert len({place % bits for place in places}) > (5 if width == 1 else 60)


def test_burst_one_bit_and_loss():
    dut = LineErrors(9)
    out = []

    async def body(ctx):
        ctx.set(dut.i, 0x3C)
        ctx.set(dut.burst, 3)
        ctx.set(dut.flip, 8)
        ctx.set(dut.loss, 4)
        for k in range(24):
            ctx.set(dut.burst_start, k == 2)
            ctx.set(dut.flip_start, k == 9)
            ctx.set(dut.loss_start, k == 14)
            await ctx.tick()
            out.append(ctx.get(dut.o))

    run(body, dut)
    every = (1 << 72) - 1
    expected = [0x3C] * 24
    expected[3:6] = [0x3C ^ every] * 3
    expected[10] = 0x3C ^ 0x8000  # bit 8 is the first of byte 1
    expected[15:19] = [0] * 4
    assert out == expected


def test_impossible_lines():
    with pytest.raises(ValueError, match="width must be 416 bits, not 32: on an FPGA"):
        SonetLine(width=32)
    with pytest.raises(ValueError, match="sts must be 3 or 12, not 1"):
        SonetLine(sts=1)
