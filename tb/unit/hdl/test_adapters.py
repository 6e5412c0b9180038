"""Adapters to AXI4-Stream, Wishbone and AXI4-Lite: around a link and a switch, and what they do with what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from benches.simulator import Simulator
from bentpipe_hdl.adapters import Adapted, AxiStreamToCells, CellsToAxiStream
from bentpipe_hdl.cell import NARROW
from bentpipe_hdl.hec import HecReceiver
from bentpipe_hdl.link.control import link_registers
from bentpipe_hdl.nodes import Link

HEADER = 3 << 20 | 100 << 4


class _Bench(Elaboratable):
    """A component with time of its own: a tick each ``clocks`` clocks."""

    def __init__(self, dut: Any, clocks: int) -> None:
        self.dut, self.tick, self.now, self._clocks = dut, Signal(), Signal(48), clocks

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        count = Signal(range(self._clocks))
        m.d.comb += self.tick.eq(count == self._clocks - 1)
        m.d.sync += count.eq(count + 1)
        with m.If(self.tick):
            m.d.sync += [count.eq(0), self.now.eq(self.now + 1)]
        if hasattr(self.dut, "time"):
            m.d.comb += [self.dut.time.tick.eq(self.tick), self.dut.time.now.eq(self.now)]
        else:
            m.d.comb += self.dut.tick.eq(self.tick)
        return m


def _run(bench: Any, *testbenches: Callable[[Any], Any], background: Callable[[Any], Any] | None = None) -> None:
    simulator = Simulator(bench)
    simulator.add_clock(1e-6)
    for each in testbenches:
        simulator.add_testbench(each)
    if background:
        simulator.add_testbench(background, background=True)
    simulator.run()


def _packet(rng: random.Random) -> list[int]:
    return [HEADER, *(rng.getrandbits(32) for _ in range(12))]


async def _put(ctx: Any, stream: Any, words: list[int], rng: random.Random, rate: float = 1.0, **first: int) -> None:
    """Send a packet; TVALID is low now and then."""
    for k, word in enumerate(words):
        while rng.random() >= rate:
            await ctx.tick()
        fields = {"tvalid": 1, "tdata": word, "tlast": int(k == len(words) - 1)}
        for name, value in {**fields, **{name: value if not k else 0 for name, value in first.items()}}.items():
            ctx.set(getattr(stream, name), value)
        await ctx.tick().until(stream.tready)
        ctx.set(stream.tvalid, 0)


async def _get(ctx: Any, stream: Any, rng: random.Random, rate: float = 1.0) -> tuple[list[int], int, int]:
    """Take a packet; TREADY is low now and then. Its words, TDEST and TUSER."""
    words: list[int] = []
    marks = set()
    while True:
        while rng.random() >= rate:
            await ctx.tick()
        ctx.set(stream.tready, 1)
        *found, last = (
            await ctx.tick().sample(stream.tdata, stream.tdest, stream.tuser, stream.tlast).until(stream.tvalid)
        )
        ctx.set(stream.tready, 0)
        word, *mark = found
        words.append(word)
        marks.add(tuple(mark))
        if last:
            ((dest, user),) = marks
            return words, dest, user


async def _wishbone(ctx: Any, bus: Any, adr: int, value: int | None = None, sel: int = 15) -> int | None:
    """Return what is read, 0 after a write, None after an error."""
    for name, given in (("cyc", 1), ("stb", 1), ("we", value is not None), ("adr", adr), ("sel", sel)):
        ctx.set(getattr(bus, name), given)
    ctx.set(bus.dat_w, value or 0)
    data, ack = await ctx.tick().sample(bus.dat_r, bus.ack).until(bus.ack | bus.err)
    ctx.set(bus.cyc, 0)
    ctx.set(bus.stb, 0)
    return (data if value is None else 0) if ack else None


async def _axi_lite(ctx: Any, bus: Any, adr: int, value: int | None = None, sel: int = 15) -> int | None:
    """Return the same."""
    if value is None:
        ctx.set(bus.arvalid, 1)
        ctx.set(bus.araddr, 4 * adr)
        await ctx.tick().until(bus.arready)
        ctx.set(bus.arvalid, 0)
        ctx.set(bus.rready, 1)
        data, response = await ctx.tick().sample(bus.rdata, bus.rresp).until(bus.rvalid)
        ctx.set(bus.rready, 0)
        return None if response else data
    for name, given in (("awvalid", 1), ("awaddr", 4 * adr), ("wvalid", 1), ("wdata", value), ("wstrb", sel)):
        ctx.set(getattr(bus, name), given)
    await ctx.tick().until(bus.awready & bus.wready)
    ctx.set(bus.awvalid, 0)
    ctx.set(bus.wvalid, 0)
    ctx.set(bus.bready, 1)
    (response,) = await ctx.tick().sample(bus.bresp).until(bus.bvalid)
    ctx.set(bus.bready, 0)
    return None if response else 0


@pytest.mark.parametrize(("bus", "access"), [("wishbone", _wishbone), ("axi-lite", _axi_lite)])
def test_cells_through_a_link_and_its_registers(bus: str, access: Any) -> None:
    rng = random.Random(1)
    dut, registers = Adapted(Link(width=NARROW), bus=bus, axi_stream=True), link_registers()
    sent = [_packet(rng) for _ in range(40)]
    came: list[list[int]] = []

    async def sends(ctx: Any) -> None:
        await ctx.tick().repeat(40)
        for words in sent:
            await _put(ctx, dut.i, words, rng, 0.9)

    async def takes(ctx: Any) -> None:
        while len(came) < len(sent):
            came.append((await _get(ctx, dut.o, rng, 0.9))[0])

    async def reads(ctx: Any) -> None:
        async def at(name: str, value: int | None = None, **given: int) -> int | None:
            return await access(ctx, dut.csr, registers[name].addr, value, **given)

        assert await at("magic") == int.from_bytes(b"BPLK", "big")
        assert await at("gap", 0x12345678) == 0  # the low word of two
        assert await at("error_shift", 5) == 0
        assert await at("error_shift") == 5
        assert await at("error_shift", 9, sel=7) is None
        assert await at("error_shift") == 5
        while len(came) < len(sent):
            await ctx.tick().repeat(20)
        assert await at("cells") == len(sent)

    _run(_Bench(dut, 14), sends, takes, reads)
    assert came == sent


def test_the_port_and_the_errors_mark_go_with_a_packet_and_come_back() -> None:
    rng = random.Random(2)
    entry, exit_ = AxiStreamToCells(ports=4), CellsToAxiStream(ports=4)

    class Both(Elaboratable):
        tick = entry.tick

        def elaborate(self, platform: Any) -> Module:
            from amaranth.lib import wiring

            m = Module()
            m.submodules.entry, m.submodules.exit = entry, exit_
            wiring.connect(m, entry.o, exit_.i)
            return m

    sent = [(_packet(rng), rng.randrange(4), rng.getrandbits(1)) for _ in range(30)]
    came: list[Any] = []

    async def sends(ctx: Any) -> None:
        for words, dest, user in sent:
            await _put(ctx, entry.i, words, rng, tdest=dest, tuser=user)

    async def takes(ctx: Any) -> None:
        while len(came) < len(sent):
            came.append(await _get(ctx, exit_.o, rng))

    _run(_Bench(Both(), 13), sends, takes)
    assert came == sent


def test_packets_of_another_length_are_dropped_and_counted() -> None:
    rng = random.Random(3)
    dut = AxiStreamToCells()
    sent = [_packet(rng) for _ in range(6)]
    cells: list[list[int]] = []

    async def sends(ctx: Any) -> None:
        for k, words in enumerate(sent):
            for wrong in ([1], words[:12], [*words, 1], words * 3)[k % 4 :]:
                await _put(ctx, dut.i, wrong, rng)
            await _put(ctx, dut.i, words, rng)
        await ctx.tick().repeat(100)
        assert ctx.get(dut.dropped) == 4 + 3 + 2 + 1 + 4 + 3

    async def watches(ctx: Any) -> None:
        async for _, _, valid, soc, word in ctx.tick().sample(dut.o.valid, dut.o.soc, dut.o.word):
            if valid and soc:
                cells.append([])
            if valid:
                cells[-1].append(word)

    _run(_Bench(dut, 13), sends, background=watches)
    assert cells == sent


def test_cells_that_nobody_takes_are_dropped_whole_and_counted() -> None:
    rng = random.Random(4)
    dut = CellsToAxiStream(cells=4)
    cells = [_packet(rng) for _ in range(10)]
    came: list[list[int]] = []

    async def plays(ctx: Any) -> None:
        for words in cells:
            for k, word in enumerate(words):
                for name, value in (("valid", 1), ("soc", int(k == 0)), ("word", word)):
                    ctx.set(getattr(dut.i, name), value)
                await ctx.tick()
        ctx.set(dut.i.valid, 0)
        assert ctx.get(dut.lost) == 6
        for _ in range(4):
            came.append((await _get(ctx, dut.o, rng))[0])
        assert not ctx.get(dut.o.tvalid)

    _run(dut, plays)
    assert came == cells[:4]


def test_what_has_no_adapter_is_refused() -> None:
    with pytest.raises(ValueError, match="bus must be wishbone or axi-lite, not 'ahb'"):
        Adapted(Link(width=NARROW), bus="ahb")
    for node in (Link(), HecReceiver()):
        with pytest.raises(ValueError, match="only nodes with cells of 32 bits"):
            Adapted(node, axi_stream=True)
    with pytest.raises(ValueError, match="cells must be a power of two from 2 to 1024, not 3"):
        CellsToAxiStream(cells=3)
