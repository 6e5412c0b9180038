"""A memory with two writers that write when they like: no write is lost, on either datapath."""

import random

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from bentpipe_hdl.cell import NARROW, TimeSignature
from bentpipe_hdl.tick_schedule import SHALLOW, ClockError, TickSchedule
from unit.hdl.bench import WIDTHS


class TwoWriters(wiring.Component):
    """A store of 8 words that ``a`` and ``b`` write."""

    def __init__(self, width):
        self.width = width
        writer = {"a_en": In(1), "a_addr": In(3), "a_data": In(8), "b_en": In(1), "b_addr": In(3), "b_data": In(8)}
        super().__init__({"time": In(TimeSignature()), **writer, "addr": In(3), "data": Out(8)})

    def elaborate(self, platform):
        m = Module()
        store = TickSchedule(m, self.time, self.width).store("words", 8, 8)
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


class Product(wiring.Component):
    """``a * b``, as soon as it is there."""

    def __init__(self, width, a, b):
        self.width = width
        super().__init__({"a": In(a), "b": In(b), "o": Out(signed(len(Signal(a)) + b + 1))})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(TickSchedule(m, TimeSignature().create(), self.width).product(self.a, self.b, "product"))
        return m


@pytest.mark.parametrize("a", [unsigned(36), signed(37), unsigned(18), unsigned(5)])
@pytest.mark.parametrize("b", [1, 18, 25, 40])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_product_of_pieces_is_exact(width, a, b):
    node, rng = Product(width, a, b), random.Random(7)
    least, most = (-(1 << a.width - 1), (1 << a.width - 1) - 1) if a.signed else (0, (1 << a.width) - 1)
    pairs = [(x, y) for x in (least, 0, most) for y in (0, 1, (1 << b) - 1)]
    pairs += [(rng.randint(least, most), rng.getrandbits(b)) for _ in range(100)]

    async def bench(ctx):
        for x, y in pairs:
            ctx.set(node.a, x)
            ctx.set(node.b, y)
            if width == NARROW:
                await ctx.tick()
            assert ctx.get(node.o) == x * y

    simulator = Simulator(node)
    if width == NARROW:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


WORDS = [3, 6, 1, 0, 7, 2, 4, 5]


class Chain(wiring.Component):
    """The word at the address that is the word at ``i``, kept at the end of the tick."""

    def __init__(self, width, *, commit=9, first=1, second=3, twice=False, apart=True):
        self.width = width
        self._commit, self._first, self._second, self._twice, self._apart = commit, first, second, twice, apart
        super().__init__({"time": In(TimeSignature()), "i": In(3), "o": Out(3)})

    def elaborate(self, platform):
        m = Module()
        slot = TickSchedule(m, self.time, self.width, commit=self._commit)
        store = slot.store("words", 3, 8, init=WORDS, apart=self._apart)
        there = store.read(self.i, at=self._first, to="there")
        there_too = store.read(there, at=self._second, to="there_too")
        with m.If(slot.commit):
            m.d.sync += self.o.eq(there_too)
        store.write(self.i, there, slot.commit & (self.i == there_too))
        if self._twice:
            store.write(self.i + 1, there, slot.commit & (self.i == there_too))
        return slot.checked(m)


@pytest.mark.parametrize("width", WIDTHS)
def test_reads_of_one_port_follow_each_other(width):
    node = Chain(width)
    found = []

    async def bench(ctx):
        for i in range(8):
            ctx.set(node.i, i)
            ctx.set(node.time.tick, 1)
            await ctx.tick()
            ctx.set(node.time.tick, 0)
            for _ in range(12):
                await ctx.tick()
            found.append(ctx.get(node.o))

    simulator = Simulator(node)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == [WORDS[word] for word in WORDS]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"second": 1}, "clock 1: words is read for there and for there_too"),
        ({"second": 2}, "clock 2: the address .* there_too needs there, which is valid from clock 3 on"),
        ({"second": 8}, "clock 9: what o takes needs there_too, which is valid from clock 10 on"),
        (
            {"first": 0, "commit": 12, "twice": True, "apart": False},
            "clock 0: words is read for there before the last tick's write",
        ),
        ({"first": 0, "commit": 12, "twice": True}, "clock 0: words is read for there when it may be written"),
    ],
)
def test_a_value_used_too_early_is_refused(wrong, message):
    with pytest.raises(ClockError, match=message):
        Chain(NARROW, **wrong).elaborate(None)


class Count(wiring.Component):
    """Counts at an address ``delay`` clocks after the commit, which replaces the ``source`` of the address."""

    def __init__(self, source, delay, keep=False):
        self._source, self._delay, self._keep = source, delay, keep
        super().__init__({"time": In(TimeSignature()), "i": In(3)})

    def elaborate(self, platform):
        m = Module()
        slot = TickSchedule(m, self.time, NARROW, commit=9)
        register, words = Signal(3, name="state"), slot.store("words", 3, 8)
        sources = {"input": self.i, "register": register, "memory": words.read(self.i), "both": register ^ self.i}
        with m.If(slot.commit):
            m.d.sync += register.eq(register + 1)
        words.write(self.i, register, slot.commit)
        counts, index, strobe = slot.store("counts", 3, 8), Signal(3, name="index"), slot.clock(9 + self._delay)
        m.d.comb += index.eq(sources[self._source])
        counts.write(slot.pipe(index, "kept") if self._keep else index, 1, strobe)
        return slot.checked(m)


@pytest.mark.parametrize(
    ("source", "lasts"), [("input", None), ("register", 0), ("both", 0), ("memory", 1)]
)  # a memory's data follow a clock behind its content
def test_a_value_used_after_the_commit_that_replaces_it_is_refused(source, lasts):
    """A stage keeps it for one clock more."""
    if lasts is None:
        Count(source, 3).elaborate(None)
        return
    Count(source, lasts).elaborate(None)
    Count(source, lasts + 1, keep=True).elaborate(None)
    with pytest.raises(ClockError, match=f"needs index, which has the tick's value up to clock {9 + lasts} only"):
        Count(source, lasts + 1).elaborate(None)
    with pytest.raises(ClockError, match=f"needs kept, which has the tick's value up to clock {10 + lasts} only"):
        Count(source, lasts + 2, keep=True).elaborate(None)


def test_the_latest_clocks_that_do():
    Chain(NARROW, second=7).elaborate(None)
    Chain(NARROW, first=1, commit=12, twice=True).elaborate(None)


def test_a_stage_under_a_condition_is_refused():
    m = Module()
    time = TimeSignature().create()
    slot = TickSchedule(m, time, NARROW)
    with m.If(time.now[0]):
        slot.pipe(time.now[1], "staged")
    with pytest.raises(ClockError, match="staged follows its input only under a condition"):
        slot.checked(m)


@pytest.mark.parametrize("commit", [2, 3])
def test_each_stage_of_a_chain_takes_a_clock(commit):
    m = Module()
    time = TimeSignature().create()
    slot = TickSchedule(m, time, NARROW, commit=commit)
    value = time.now
    for k in range(3):
        value = slot.pipe(value, f"stage{k}")
    with m.If(slot.commit):
        m.d.sync += Signal.like(value, name="taken").eq(value)
    if commit == 3:
        slot.checked(m)
    else:
        with pytest.raises(ClockError, match="clock 2: what taken takes needs stage2, which is valid from clock 3 on"):
            slot.checked(m)


@pytest.mark.parametrize(("rows", "style"), [(SHALLOW, None), (SHALLOW + 1, "block")])
def test_a_block_memory_is_asked_for_where_depth_pays(rows, style):
    m = Module()
    TickSchedule(m, TimeSignature().create(), NARROW).store("words", 32, rows, block=True)
    text = rtlil.convert(m, ports=[], emit_src=False)
    assert ('attribute \\ram_style "block"' in text) == (style == "block")
