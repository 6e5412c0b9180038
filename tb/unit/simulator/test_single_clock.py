"""The fast path of the native simulator: one clock, and testbenches that only wait for it.

Each bench runs in both simulators: what it sees, and when, is the same."""

import gc
import io
import sysconfig
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.hdl import Assert, ClockDomain, ClockSignal, Elaboratable, Module, Signal, signed
from amaranth.lib import enum
from amaranth.sim import BrokenTrigger, DomainReset

from bentpipe_sim.native import Simulator
from bentpipe_sim.native.simulator.context import BenchContext, Tick
from models.simulators import BOTH
from unit.simulator.test_waves import changes

# Amaranth's waits complain when a bench is dropped that is within one.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True, params=["", "plain"])
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both forms of benches. Amaranth's coroutines complain when they are dropped while they wait: here, and not in a
    later test."""
    monkeypatch.setenv("BENTPIPE_BENCHES", request.param)
    yield
    gc.collect()


class Kind(enum.Enum, shape=2):
    IDLE = 0
    BUSY = 1


class Counter(Elaboratable):
    """Counts by a step. ``edge`` and ``second`` are the clock's edges of the two domains; an Assert has ``limit``."""

    def __init__(self, edge="pos", limit=None, second=None):
        self.edge, self.limit, self.second = edge, limit, second
        self.step, self.n, self.next, self.other = Signal(4, init=1), Signal(12), Signal(12), Signal(8)
        self.small, self.kind, self.clk_copy = Signal(signed(5)), Signal(Kind), Signal()
        self.domain = ClockDomain("sync", clk_edge=edge)

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = self.domain
        m.d.comb += [self.next.eq(self.n + self.step + self.small), self.clk_copy.eq(ClockSignal())]
        m.d.sync += self.n.eq(self.n + self.step)
        if self.second:
            m.domains.second = domain = ClockDomain("second", clk_edge=self.second)
            domain.clk = self.domain.clk
            m.d.second += self.other.eq(self.other + self.n + 1)
        if self.limit is not None:
            m.d.sync += Assert(self.n < self.limit)
        return m


def played(kind, drive, **options):
    """Return what ``drive`` notes. It gets the simulator, a decorator that adds a testbench, the design, the list."""
    design, log = Counter(**options), []
    simulator = kind(design)
    simulator.add_clock(1e-6)

    def bench(function=None, *, background=False):
        if function is None:
            return lambda function: bench(function, background=background)
        simulator.add_testbench(function, background=background)
        return function

    drive(simulator, bench, design, log)
    log.append(simulator._engine.now)
    return log


def both(drive, **options):
    one, other = (played(kind, drive, **options) for kind in BOTH)
    assert other == one
    return one


async def look(ctx, c, log):
    signals = (c.n, c.next, c.other, c.domain.clk, c.clk_copy, c.step)
    log.append(tuple(ctx.get(signal) for signal in signals))


async def all_forms(ctx, c, log):
    """Wait in every form, with writes and reads between."""
    for k in range(4):
        ctx.set(c.step, 3 * k)
        log.append(await ctx.tick())
        await look(ctx, c, log)
    log.append(await ctx.tick().sample(c.n, c.next))
    log.append(await ctx.tick().sample(c.n).sample(c.n, c.domain.clk))
    log.append(await ctx.tick().sample(c.next))
    log.append(await ctx.tick().sample(c.n).repeat(1))
    log.append(await ctx.tick().sample(c.n).repeat(7))
    await look(ctx, c, log)
    ctx.set(c.step, 2)
    log.append(await ctx.tick().sample(c.n, c.next).until(c.n[3]))
    count = 0
    async for found in ctx.tick().sample(c.n):
        log.append(found)
        ctx.set(c.step, count)
        await look(ctx, c, log)
        count += 1
        if count == 5:
            break
    log.append(await ctx.tick().repeat(3))
    await look(ctx, c, log)


def alone(simulator, bench, c, log):
    @bench
    async def one(ctx):
        await all_forms(ctx, c, log)

    simulator.run()


@pytest.mark.parametrize(
    "options",
    [{}, {"edge": "neg"}, {"second": "neg"}, {"second": "pos"}, {"edge": "neg", "second": "neg"}],
    ids=lambda options: "-".join(f"{name}-{value}" for name, value in options.items()) or "plain",
)
def test_one_testbench(options):
    assert len(both(alone, **options)) > 20


@pytest.mark.parametrize("form", ["tick", "repeat", "until", "for", "nobody", "short"])
def test_the_end_of_a_run(form):
    """Each run ends at its time: between edges, on one, after the testbench."""

    def drive(simulator, bench, c, log):
        async def one(ctx):
            for _ in range(9):
                if form == "tick":
                    log.append(await ctx.tick().sample(c.n))
                elif form == "repeat":
                    log.append(await ctx.tick().sample(c.n).repeat(3))
                elif form == "until":
                    log.append(await ctx.tick().sample(c.n).until(c.n[:2] == 3))
                elif form == "for":
                    async for found in ctx.tick().sample(c.n):
                        log.append(found)
                else:
                    await ctx.tick().repeat(2)

        if form != "nobody":
            bench(one, background=form == "short")
        for tenths in (4, 5, 12, 20, 25, 26, 55, 60, 85, 200, 205, 210, 211, 500):
            simulator.run_until(tenths * 1e-7)
            clock = simulator._engine.state.get_signal(c.domain.clk)
            log.append((simulator._engine.now, simulator._engine.state.slots[clock].curr))
        simulator.reset()
        simulator.run_until(3.7e-6)

    both(drive)


def test_each_call_of_advance_is_one_point_in_time():
    def drive(simulator, bench, c, log):
        @bench
        async def one(ctx):
            for _ in range(6):
                log.append(await ctx.tick().sample(c.n))

        simulator.run_until(2.6e-6)
        for _ in range(3):
            log.append((simulator.advance(), simulator._engine.now))
        simulator.run()
        simulator.reset()
        for _ in range(9):
            log.append((simulator.advance(), simulator._engine.now))

    both(drive)


def test_several_testbenches_that_end_one_by_one():
    def drive(simulator, bench, c, log):
        def counting(name, count, ticks):
            @bench
            async def one(ctx):
                for _ in range(count):
                    log.append((name, await ctx.tick().sample(c.n).repeat(ticks)))
                    ctx.set(c.step, ticks)
                    log.append((name, ctx.get(c.n), ctx.get(c.next)))

        counting("a", 3, 2)
        counting("b", 2, 5)
        counting("c", 9, 3)

        @bench(background=True)
        async def condition(ctx):
            log.append(("d", await ctx.tick().sample(c.n).until(c.n > 12)))

        @bench
        async def rest(ctx):
            for _ in range(30):
                await ctx.tick()
                log.append(("e", ctx.get(c.n)))

        simulator.run()

    both(drive)


def test_a_testbench_in_the_background_does_not_go_on_alone():
    def drive(simulator, bench, c, log):
        @bench(background=True)
        async def one(ctx):
            with ctx.critical():
                for _ in range(4):
                    log.append(await ctx.tick().sample(c.n))
            for _ in range(4):
                log.append(await ctx.tick().sample(c.n))

        simulator.run()
        log.append("run")
        simulator.run_until(6e-6)

    assert both(drive).index("run") == 4


def test_testbenches_that_are_added_later():
    def drive(simulator, bench, c, log):
        @bench
        async def first(ctx):
            for _ in range(3):
                log.append(("first", await ctx.tick().sample(c.n)))

        simulator.run()
        with pytest.raises(RuntimeError, match="running simulation"):
            bench(first)
        simulator.reset()

        @bench
        async def second(ctx):
            for _ in range(5):
                log.append(("second", await ctx.tick().sample(c.n)))

        simulator.run()

    both(drive)


def test_resets_by_a_testbench():
    def drive(simulator, bench, c, log):
        @bench
        async def one(ctx):
            await ctx.tick().repeat(3)
            ctx.set(c.domain.rst, 1)
            log.append(await ctx.tick().sample(c.n))
            for wait in (lambda: ctx.tick().repeat(4), lambda: ctx.tick().until(c.n == 90)):
                with pytest.raises(DomainReset):
                    await wait()
                log.append((simulator._engine.now, ctx.get(c.n)))
            ctx.set(c.domain.rst, 0)
            log.append(await ctx.tick().sample(c.n).repeat(4))
            async for found in ctx.tick().sample(c.n):
                log.append(found)
                ctx.set(c.domain.rst, 1)
                if found[1]:
                    break

        simulator.run()

    both(drive)


def test_resets_by_the_design():
    found = []
    for kind in BOTH:
        m, n, total, log = Module(), Signal(8), Signal(8), []
        m.domains.sync, m.domains.inner = outer, inner = ClockDomain("sync"), ClockDomain("inner")
        inner.clk = outer.clk
        m.d.sync += total.eq(total + 1)
        m.d.comb += inner.rst.eq(total[:3] == 5)
        m.d.inner += n.eq(n + 1)
        simulator = kind(m)
        simulator.add_clock(1e-6)

        async def bench(ctx, n=n, total=total, log=log):
            with pytest.raises(DomainReset):
                await ctx.tick("inner").repeat(9)
            log.append((ctx.get(n), ctx.get(total)))
            with pytest.raises(DomainReset):
                await ctx.tick("inner").until(n == 20)
            log.append((ctx.get(n), ctx.get(total)))
            for _ in range(10):
                log.append(await ctx.tick("inner").sample(n, total))
            log.append(await ctx.tick("inner").sample(n).repeat(3))

        simulator.add_testbench(bench)
        simulator.run()
        found.append(log)
    assert found[0] == found[1]


def test_an_edge_that_is_missed():
    def drive(simulator, bench, c, log):
        @bench
        async def one(ctx):
            with pytest.raises(BrokenTrigger):
                async for found in ctx.tick().sample(c.n):
                    log.append(found)
                    if found[2] == 2:
                        await ctx.tick().repeat(2)
            log.append(ctx.get(c.n))
            async for _ in ctx.tick():
                break
            log.append(await ctx.tick().sample(c.n))
            ticks = ctx.tick().sample(c.n).__aiter__()
            log.append(await ticks.__anext__())
            await ctx.tick()
            with pytest.raises(BrokenTrigger):
                await ticks.__anext__()
            with pytest.raises(StopAsyncIteration):
                await ticks.__anext__()
            await ticks.aclose()
            log.append(await ctx.tick().sample(c.n))

        simulator.run()

    both(drive)


def test_an_exception_in_a_testbench():
    def drive(simulator, bench, c, log):
        @bench
        async def one(ctx):
            await ctx.tick().repeat(3)
            log.append(await ctx.tick().sample(c.n))
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            simulator.run()
        log.append(simulator._engine.now)
        with pytest.raises(ValueError, match="positive integer, not 0"):
            played(type(simulator), wrong)
        simulator.reset()
        with pytest.raises(KeyError, match="mine"):
            simulator.run()

    def wrong(simulator, bench, c, log):
        @bench
        async def one(ctx):
            await ctx.tick()
            await ctx.tick().repeat(0)

        simulator.run()

    both(drive)


@pytest.mark.parametrize("form", ["tick", "repeat", "nobody"])
def test_an_assertion_of_the_design_ends_the_run(form):
    """It does not arise in the testbench, which could catch it."""

    def drive(simulator, bench, c, log):
        async def one(ctx):
            try:
                await (ctx.tick().repeat(20) if form == "repeat" else ctx.tick().until(c.n == 20))
            except AssertionError:
                log.append("caught by the testbench")

        if form != "nobody":
            bench(one)
        with pytest.raises(AssertionError, match="Assertion violated"):
            simulator.run_until(30e-6)

    assert both(drive, limit=6) == [6_500_000_000]


def test_other_triggers_between_ticks():
    def drive(simulator, bench, c, log):
        @bench
        async def one(ctx):
            await ctx.tick().repeat(2)
            log.append(await ctx.changed(c.n))
            await ctx.delay(2.3e-6)
            log.append((ctx.get(c.n), simulator._engine.now))
            log.append(await ctx.tick().sample(c.n))
            log.append(await ctx.changed(c.n))
            log.append(await ctx.tick().sample(c.n).repeat(2))
            log.append(await ctx.edge(c.domain.clk, 0))
            log.append((await ctx.tick().sample(c.n), simulator._engine.now))
            log.append(await ctx.changed(c.next).delay(1.2e-6))
            for value in (5, 9):
                ctx.set(c.n, value)
                log.append((ctx.get(c.next), await ctx.tick().sample(c.n), ctx.get(c.n)))

        simulator.run()

    both(drive)


def test_the_other_edge():
    def drive(simulator, bench, c, log):
        falling = ClockDomain("falling", clk_edge="neg", reset_less=True)
        falling.clk = c.domain.clk

        @bench
        async def one(ctx):
            for _ in range(3):
                log.append((await ctx.tick().sample(c.n), simulator._engine.now))
            log.append((await ctx.tick(falling).sample(c.n).repeat(2), simulator._engine.now))
            log.append((await ctx.tick().sample(c.n), simulator._engine.now))

        @bench(background=True)
        async def two(ctx):
            for _ in range(2):
                log.append((await ctx.tick(falling).sample(c.n).repeat(2), simulator._engine.now))

        simulator.run()

    both(drive)


def test_a_clock_that_the_testbench_changes_too():
    def drive(simulator, bench, c, log):
        @bench
        async def one(ctx):
            await ctx.tick().repeat(2)
            for level in (0, 1, 0, 0):
                ctx.set(c.domain.clk, level)
                await look(ctx, c, log)
            for _ in range(3):
                log.append((await ctx.tick().sample(c.n), simulator._engine.now))

        simulator.run()

    both(drive)


def test_the_last_testbench_advances_the_clock_itself():
    simulator, seen = BOTH[1](Counter()), []
    simulator.add_clock(1e-6)

    async def short(ctx):
        await ctx.tick().repeat(3)

    async def rest(ctx):
        for _ in range(6):
            await ctx.tick()
            seen.append(simulator._engine.direct is not None)
        async for _ in ctx.tick():
            seen.append(simulator._engine.direct_waiter is not None)
            if len(seen) == 8:
                break

    simulator.add_testbench(short)
    simulator.add_testbench(rest)
    simulator.run()
    assert seen == [False, False, False, True, True, True, True, True]
    seen.clear()
    simulator.reset()
    simulator.run()
    assert seen == [False, False, False, True, True, True, True, True]


def test_another_testbench_watches_an_input():
    def drive(simulator, bench, c, log):
        @bench
        async def one(ctx):
            for k in range(5):
                await ctx.tick()
                ctx.set(c.step, k // 2)
                log.append(("set", k))

        @bench(background=True)
        async def watch(ctx):
            async for (value,) in ctx.changed(c.step):
                log.append(("seen", value))

        simulator.run()

    both(drive)


def test_what_is_set():
    """Numbers with a sign, names, too large numbers, and signals that are not in the design."""
    outside, structured = Signal(signed(4)), Signal(Kind)

    def drive(simulator, bench, c, log):
        @bench
        async def one(ctx):
            await ctx.tick()
            for value in (-3, 15, 16, -17, True, 0):
                ctx.set(c.small, value)
                ctx.set(outside, value)
                log.append([ctx.get(each) for each in (c.small, outside, c.next, outside + c.small)])
                await ctx.tick()
                log.append([ctx.get(each) for each in (c.small, outside, c.next)])
            for value in (Kind.BUSY, 0, 1):
                for signal in (c.kind, structured):
                    ctx.set(signal, value)
                    log.append(ctx.get(signal))
            with pytest.raises(ValueError, match="not a valid Kind"):
                ctx.set(c.kind, 3)
            log.append(ctx.get(c.kind))

        simulator.run()

    both(drive)


def test_waves_at_the_same_time():
    def drive(simulator, bench, c, log):
        file = io.StringIO()
        file.close = lambda: None  # what is in it is wanted

        @bench
        async def one(ctx):
            await all_forms(ctx, c, log)

        with simulator.write_vcd(file):
            simulator.run()
        log.append(changes(file.getvalue()))
        simulator.reset()
        simulator.run()

    both(drive)


def values_set(simulator, bench, c, log):
    """Set numbers in every form to signals in every form."""

    @bench
    async def run(ctx):
        for value in (0, 15, 16, -1, True, Kind.BUSY, 2**70 + 3, 7):
            ctx.set(c.step, value)
            ctx.set(c.small, value)
            await look(ctx, c, log)
            log.append((ctx.get(c.small), await ctx.tick()))
        ctx.set(expr=c.step, value=2)
        ctx.set(c.step, 9)
        ctx.set(c.step[1:3], 2)
        log.append(ctx.get(c.step))
        ctx.set(c.kind, Kind.BUSY)
        log.append((ctx.get(c.kind), ctx.get(c.step)))
        for wrong in ((c.step,), (c.step, 1, 2), (c.step, "1"), (c.step, None), ("step", 1)):
            with pytest.raises((TypeError, SyntaxError)):
                ctx.set(*wrong)
        with pytest.raises(TypeError):
            ctx.tick(1, 2)
        log.append(await ctx.tick("sync"))
        log.append(await ctx.tick(domain="sync"))
        ctx.set(c.domain.rst, 1)
        log.append(await ctx.tick())
        await look(ctx, c, log)

    simulator.run()
    simulator.reset()
    simulator.run_until(4.3e-6)


def test_values_that_are_set_in_every_form():
    assert len(both(values_set)) > 20


def test_a_tick_is_awaited_by_hand():
    def by_hand(simulator, bench, c, log):
        @bench
        async def run(ctx):
            await ctx.tick()
            waiting = ctx.tick().__await__()
            with pytest.raises(StopIteration) as stop:
                next(waiting)
            log.append(stop.value.value)
            await look(ctx, c, log)

        simulator.run()

    log = []
    played(lambda design: Simulator(design, is_short=True), lambda *given: by_hand(*given[:3], log))
    assert log[0] == (True, False) and log[1][0] == 2


@pytest.mark.skipif(not Path(sysconfig.get_path("include"), "Python.h").is_file(), reason="needs Python.h")
def test_sets_and_ticks_need_no_python(monkeypatch):
    monkeypatch.setenv("BENTPIPE_BENCHES", "")
    calls = []
    monkeypatch.setattr(Tick, "passed", lambda *_: calls.append("tick"))
    made = BenchContext.writer
    monkeypatch.setattr(BenchContext, "writer", lambda self, expr: calls.append("writer") or made(self, expr))
    monkeypatch.setattr(BenchContext, "set", lambda *_: calls.append("set"))

    def drive(simulator, bench, c, log):
        @bench
        async def run(ctx):
            for k in range(20):
                ctx.set(c.step, k % 16)
                await ctx.tick()
            log.append(ctx.get(c.n))

        simulator.run()

    found = played(lambda design: Simulator(design, is_short=True), drive)
    assert (found[0], calls) == (sum(k % 16 for k in range(20)), ["writer"])


def test_contexts_and_designs_are_collected(monkeypatch):
    def drive(simulator, bench, c, log):
        @bench
        async def run(ctx):
            log.append(weakref.ref(ctx))
            ctx.set(c.step, 3)
            await ctx.tick().repeat(3)
            await ctx.tick()

        simulator.run()
        log.append(weakref.ref(c.step))

    context, _, _ = played(lambda design: Simulator(design, is_short=True), drive)
    gc.collect()
    assert context() is None
