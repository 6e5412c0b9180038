"""What happens between the ends of a line."""

import pytest
from amaranth.sim import Simulator

from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.line import LineErrors, SonetLine


def run(body, dut):
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(body)
    sim.run()


@pytest.mark.parametrize("width", [1, 9])
def test_random_errors_at_a_rate(width):
    dut = LineErrors(width, seed=12345)
    words = 4000
    flipped = [0] * (8 * width)

    async def body(ctx):
        ctx.set(dut.rate, (1 << 32) // 10)
        for _ in range(words):
            await ctx.tick()
            out = ctx.get(dut.o)
            assert out.bit_count() <= 1
            if out:
                flipped[out.bit_length() - 1] += 1
        assert sum(flipped) == ctx.get(dut.errors)

    run(body, dut)
    assert 330 < sum(flipped) < 470  # 400 are expected, 19 a standard deviation
    assert sum(count > 0 for count in flipped) > 0.9 * len(flipped)


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


def test_cells_cross_the_line():
    g = Geometry(3, 9)
    dut = SonetLine(g)
    got = []

    async def body(ctx):
        sent = 0
        for k in range(5 * g.frame_words):
            if k > 3 * g.frame_words and sent < 20 and ctx.get(dut.a_tx_ready):
                ctx.set(dut.a_tx_valid, 1)
                ctx.set(dut.a_tx_cell, (0x640 << 384) | sent)
                sent += 1
            else:
                ctx.set(dut.a_tx_valid, 0)
            await ctx.tick()
            if ctx.get(dut.b_rx_valid):
                got.append(ctx.get(dut.b_rx_cell))

    run(body, dut)
    assert got == [(0x640 << 384) | k for k in range(20)]
