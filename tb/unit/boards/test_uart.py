"""The serial line's octets, at whole and at broken numbers of clocks a bit."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from amaranth.hdl import ClockDomain, Elaboratable, Module
from amaranth.sim import Simulator

from bentpipe_boards.core import Core
from bentpipe_boards.fpga.top import SerialTop
from bentpipe_boards.uart import Uart
from bentpipe_hdl.cell import NARROW
from bentpipe_sim.board.protocol import ANSWER, LIST, OPEN, OPENED, READ, unframed
from bentpipe_sim.board.windows import WINDOW_BITS, Plan, board_registers
from bentpipe_sim.build import Shape
from models.board_bridge import frame

OCTETS = [0x00, 0xFF, 0x55, 0xAA, *random.Random(1).randbytes(12)]


def _levels(octets: list[int], divisor: Fraction) -> list[int]:
    """The line, clock by clock, from a sender whose bits are exact."""
    bits = [1, *(bit for octet in octets for bit in (0, *(octet >> k & 1 for k in range(8)), 1)), 1, 1]
    return [bits[int(clock / divisor)] for clock in range(int(len(bits) * divisor))]


def _received(levels: list[int], divisor: Fraction) -> list[int]:
    uart, came = Uart(divisor=divisor), []

    async def bench(ctx):
        for level in levels:
            ctx.set(uart.pin_rx, level)
            await ctx.tick()
            if ctx.get(uart.rx_valid):
                came.append(ctx.get(uart.rx))

    _simulate(uart, bench)
    return came


def _simulate(top: Elaboratable, bench, *domains: str) -> None:
    simulator = Simulator(top)
    for domain in ("sync", *domains):
        simulator.add_clock(1e-6, domain=domain)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("divisor", [Fraction(25), Fraction(50, 3), Fraction(9, 2), Fraction(4)])
def test_octets_come_as_they_were_sent(divisor):
    assert _received(_levels(OCTETS, divisor), divisor) == OCTETS


@pytest.mark.parametrize("error", [Fraction(97, 100), Fraction(103, 100)])
def test_a_sender_may_be_three_per_cent_off(error):
    divisor = Fraction(50, 3)
    assert _received(_levels(OCTETS, divisor * error), divisor) == OCTETS


@pytest.mark.parametrize("divisor", [Fraction(25), Fraction(50, 3)])
def test_edges_are_off_by_less_than_a_clock(divisor):
    uart, sent = Uart(divisor=divisor), []

    async def bench(ctx):
        left = list(OCTETS)
        while left:
            ctx.set(uart.tx, left[0])
            ctx.set(uart.tx_valid, 1)
            if ctx.get(uart.tx_ready):
                left.pop(0)
            await ctx.tick()
            sent.append(ctx.get(uart.pin_tx))
        ctx.set(uart.tx_valid, 0)
        for _ in range(int(12 * divisor)):
            await ctx.tick()
            sent.append(ctx.get(uart.pin_tx))

    _simulate(uart, bench)
    at = 0
    for octet in OCTETS:
        at = sent.index(0, at)
        for k, bit in enumerate((0, *(octet >> k & 1 for k in range(8)), 1)):
            begins, ends = at + int(k * divisor) + 1, at + int((k + 1) * divisor) - 1
            assert sent[begins:ends] == [bit] * (ends - begins), f"bit {k} of {octet:#x}"
        at += int(9.5 * divisor)


def test_a_bit_has_four_clocks_at_least():
    with pytest.raises(ValueError, match="4 or more"):
        Uart(divisor=Fraction(7, 2))


class _Device(Elaboratable):
    """A board's core as an FPGA has it: its parts have a clock domain without reset."""

    def __init__(self, core: Elaboratable) -> None:
        self.core, self.sync = core, ClockDomain("sync")

    def elaborate(self, platform) -> Module:
        m = Module()
        m.domains += [self.sync, ClockDomain("parts", reset_less=True)]
        m.submodules.core = self.core
        return m


@pytest.mark.parametrize("domain", ["sync", "parts"])
def test_a_board_answers_over_its_serial_pins(domain: str) -> None:
    """Line, bridge and core as in an FPGA: a session is opened, the board's magic and a node's register are read."""
    plan = Plan((Shape.of("link"),), (16,), frame_words=32)
    top = SerialTop(plan, 14_000_000, 3_000_000, parts_domain=domain)
    device = _Device(top)
    divisor = Fraction(14, 3)
    magic = board_registers(plan)["magic"]
    node = plan.nodes[0].component(NARROW).registers["magic"]
    levels, answers = [], []

    async def bench(ctx):
        assert not ctx.get(top.link)
        ctx.set(device.sync.rst, 1)  # while the PLL is not locked; the parts have its clock
        await ctx.tick("parts").repeat(100)
        ctx.set(device.sync.rst, 0)
        opens = frame([0x77 << 16 | OPEN])
        reads = [READ << 24 | 1, magic.addr, READ << 24 | 1, 1 << WINDOW_BITS | node.addr]
        for request, octets in ((opens, 12), (frame([0x77 << 16 | 1 << 8 | LIST, *reads]), 24)):
            line = _levels(list(request), divisor)
            for level in line + [1] * int(10 * divisor * octets):
                ctx.set(top.pin_rx, level)
                await ctx.tick()
                levels.append(ctx.get(top.pin_tx))
        assert ctx.get(top.link)

    _simulate(device, bench, "parts")
    # From the middle of each bit
    at = 0
    while 0 in levels[at:]:
        at = levels.index(0, at)
        bits = [levels[at + int((k + Fraction(1, 2)) * divisor)] for k in range(10)]
        assert (bits[0], bits[9]) == (0, 1)
        answers.append(sum(bit << k for k, bit in enumerate(bits[1:9])))
        at += int(Fraction(19, 2) * divisor)
    frames = [unframed(bytes(each)) for each in bytes(answers).split(b"\0") if each]
    assert frames == [(0x77 << 16 | OPENED,), (0x77 << 16 | 1 << 8 | ANSWER, 0, magic.reset, node.reset)]


def test_parts_are_in_reset_from_the_configuration_until_the_clock_is_good() -> None:
    core = Core(Plan((Shape.of("link"),), (16,), frame_words=32), parts_domain="parts")
    device, resets = _Device(core), []

    async def bench(ctx):
        for in_reset, clocks in ((1, 100), (0, 100)):
            ctx.set(device.sync.rst, in_reset)
            for _ in range(clocks):
                resets.append(ctx.get(core._last_reset))  # of the part that is reset last
                await ctx.tick("parts")

    _simulate(device, bench, "parts")
    released = resets.index(0)
    assert 100 + 16 <= released < 150
    assert set(resets[released:]) == {0}
