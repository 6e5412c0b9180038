"""Driving a node in Amaranth's simulator: registers, ticks, cells in and out, on either datapath."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.sim import Simulator

from benches import context
from benches.build import library_of, library_of_component, shape_of
from bentpipe_hdl.cell import CLOCKS_A_TICK, NARROW, TIME_BITS, WIDE
from bentpipe_hdl.part_harness import PartHarness
from bentpipe_hdl.registers import Registers
from models.cell import Cell, Header, Interface
from models.registers import written

__all__ = ["WIDTHS", "Arrival", "Bench", "Departure", "run", "run_compiled", "run_component", "run_part"]

WIDTHS = [WIDE, NARROW]


@dataclass(frozen=True)
class Arrival:
    """A cell to give to a node."""

    cell: Cell
    port: int = 0
    hec_error: bool = False


@dataclass(frozen=True)
class Departure:
    """A cell that came out: of which tick, at which port, its header as a number, payload, HEC error."""

    tick: int
    port: int
    header: int
    payload: bytes
    hec_error: bool

    def as_header(self, interface: Interface = Interface.UNI) -> Header:
        return Header.unpack(self.header.to_bytes(4, "big"), interface)


class Bench:
    """A node under test.

    A tick's decisions show at the outputs in the next tick; :attr:`Departure.tick` is the tick that decided.
    Every tick is as short as it may be, or some clocks longer, at random. ``ends`` are the ticks in which the last bits
    of the cells that came out leave, of a node that clocks its line.
    """

    def __init__(self, ctx: Any, node: Any, seed: int = 1) -> None:
        self.ctx, self.node = ctx, node
        self.wide = node.width == WIDE
        self._narrow_out = not self.wide and hasattr(node, "o")
        self.now = 0
        self.random = random.Random(seed)
        self.came_out: list[Departure] = []
        self.ends: list[int] = []
        self.after_clock: Callable[[], None] = lambda: None
        self._words: list[int] = []
        self._start: tuple[int, int, bool] = (0, 0, False)

    async def _clock(self) -> None:
        if self._narrow_out:  # outputs belong to the clock that ends with this edge
            self._listen()
        await self.ctx.tick()
        self.after_clock()

    async def reset(self) -> None:
        """Wait until the node has cleared its tables; counted in clocks, since no tick passes."""
        self.ctx.set(self.node.time.now, self.now % (1 << TIME_BITS))
        for _ in range(20000):
            await self._clock()
            if self.ctx.get(self.node.status.idle):
                return
        raise AssertionError("the node never became idle after reset")

    async def write(self, addr: int, *words: int) -> None:
        """Write words to registers from ``addr`` on."""
        csr = self.node.csr
        self.ctx.set(csr.w_en, 1)
        for k, word in enumerate(words):
            self.ctx.set(csr.addr, addr + k)
            self.ctx.set(csr.w_data, word)
            await self._clock()
        self.ctx.set(csr.w_en, 0)
        await self._clock()

    async def apply(self, action: Callable[[Registers], object]) -> None:
        """Do the writes that a function of the node's registers does."""
        for write in written(self.node.registers, action):
            await self.write(*write)

    async def set(self, name: str, value: Any, index: int = 0) -> None:
        """Write a register, or an entry of a table, by name: a number, or fields."""
        register = self.node.registers[name]
        word = register.pack(value)
        addr = register.addr + index * register.words
        await self.write(addr, *(word >> 32 * k & 0xFFFFFFFF for k in range(register.words)))

    async def get(self, name: str, index: int = 0) -> int:
        """Read a register, or an entry of a table, by name."""
        return await self.read(self.node.registers[name].addr + index)

    async def write_wide(self, addr: int, value: int) -> None:
        """Write a value of up to 64 bits."""
        await self.write(addr, value & 0xFFFFFFFF, value >> 32)

    async def read(self, addr: int) -> int:
        csr = self.node.csr
        self.ctx.set(csr.addr, addr)
        self.ctx.set(csr.r_en, 1)
        await self._clock()
        self.ctx.set(csr.r_en, 0)
        for _ in range(3):
            await self._clock()
        return self.ctx.get(csr.r_data)

    async def tick(self, arrival: Arrival | None = None) -> None:
        """Let one tick pass, with a cell or without. What comes out is added to :attr:`came_out`."""
        if self.wide:
            await self._wide_tick(arrival)
        else:
            await self._narrow_tick(arrival)
        self.now += 1

    async def ticks(self, count: int) -> None:
        for _ in range(count):
            await self.tick()

    def skip(self, ticks: int) -> None:
        """Let time jump, as whoever drives the node may while it is idle."""
        self.now += ticks

    async def _wide_tick(self, arrival: Arrival | None) -> None:
        ctx, i, o = self.ctx, self.node.i, self.node.o
        ctx.set(self.node.time.now, self.now % (1 << TIME_BITS))
        ctx.set(self.node.time.tick, 1)
        ctx.set(i.valid, arrival is not None)
        if arrival:
            ctx.set(i.port, arrival.port)
            ctx.set(i.hec_error, arrival.hec_error)
            ctx.set(i.header.as_value(), int(arrival.cell.header))
            ctx.set(i.payload, int.from_bytes(arrival.cell.payload, "little"))
        await self._clock()
        ctx.set(i.valid, 0)
        ctx.set(self.node.time.tick, 0)
        # The next tick's outputs are there now.
        if ctx.get(o.valid):
            payload = ctx.get(o.payload).to_bytes(48, "little")
            header = ctx.get(o.header.as_value())
            self.came_out.append(Departure(self.now, ctx.get(o.port), header, payload, bool(ctx.get(o.hec_error))))
            self._note_end()
        for _ in range(self.random.choice((0, 0, 0, 1, 2))):
            await self._clock()

    async def _narrow_tick(self, arrival: Arrival | None) -> None:
        ctx, i = self.ctx, self.node.i
        late = self.random.random() < 0.3
        clocks = CLOCKS_A_TICK + self.random.choice((0, 0, 1, 4))
        words: dict[int, int] = {}
        first = int(late)
        if arrival:
            payload = arrival.cell.payload
            data = [int(arrival.cell.header)] + [int.from_bytes(payload[k : k + 4], "little") for k in range(0, 48, 4)]
            clocks = max(clocks, CLOCKS_A_TICK + first)
            words = dict(enumerate(data, first))
        ctx.set(self.node.time.now, self.now % (1 << TIME_BITS))
        for clock in range(clocks):
            ctx.set(self.node.time.tick, clock == 0)
            ctx.set(i.valid, clock in words)
            ctx.set(i.soc, bool(words) and clock == first)
            ctx.set(i.word, words.get(clock, self.random.getrandbits(32)))
            if words and clock == first and arrival:
                ctx.set(i.port, arrival.port)
                ctx.set(i.hec_error, arrival.hec_error)
            await self._clock()
        ctx.set(i.valid, 0)
        ctx.set(self.node.time.tick, 0)

    def _note_end(self) -> None:
        if hasattr(self.node, "o_end"):
            self.ends.append(self.ctx.get(self.node.o_end))

    def _listen(self) -> None:
        ctx, o = self.ctx, self.node.o
        if not ctx.get(o.valid):
            assert not self._words, "a gap in a cell"
            return
        if ctx.get(o.soc):
            assert not self._words, "a cell that began inside another"
            self._start = (self.now - 1, ctx.get(o.port), bool(ctx.get(o.hec_error)))
            self._note_end()
        else:
            assert self._words, "a word outside of a cell"
        self._words.append(ctx.get(o.word))
        if len(self._words) == 13:
            tick, port, bad = self._start
            payload = b"".join(word.to_bytes(4, "little") for word in self._words[1:])
            self.came_out.append(Departure(tick, port, self._words[0], payload, bad))
            self._words = []


def run(node: Any, test: Callable[[Bench], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    """Simulate ``node`` with ``test`` as its bench, in Amaranth's simulator."""

    async def bench(ctx: Any) -> None:
        await test(Bench(ctx, node, seed))

    simulator = Simulator(node)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def run_compiled(node: Any, test: Callable[[Bench], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    """Simulate a NIC, switch or link with ``test`` as its bench, compiled from its Verilog.

    The library of a shape costs as much as a few short tests in Amaranth's simulator. It pays for shapes that several
    tests share, above all at 32 bits. The bench sees the node's ports alone.
    """
    context.run(node, library_of(shape_of(node), node.width), lambda ctx: test(Bench(ctx, node, seed)))


def run_part(
    make: partial[Any], width: int, commit: int, test: Callable[[Any, Any], Coroutine[Any, Any, None]]
) -> None:
    """Simulate a part of a node in its harness, compiled; ``test`` gets the context and the harness.

    ``make`` is the part's class with its parameters. Tests of one shape share its library, which costs 2 s. The bench
    sees the part's members alone.
    """
    run_component(partial(PartHarness, make, width=width, commit=commit), test)


def run_component(make: partial[Any], test: Callable[[Any, Any], Coroutine[Any, Any, None]]) -> None:
    """Simulate any component, compiled; as :func:`run_part`."""
    node = make()
    context.run(node, library_of_component(make), lambda ctx: test(ctx, node))
