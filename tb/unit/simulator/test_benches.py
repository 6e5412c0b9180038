"""Benches as Amaranth's users write them, in both simulators: what they see, and in which order, is the same."""

import pytest
from amaranth.hdl import Assert as Asserted
from amaranth.hdl import Assume as Assumed
from amaranth.hdl import ClockDomain, Cover, Elaboratable, Format, Module, Print, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.sim import BrokenTrigger, DomainReset

from bentpipe_hdl.amaranth_simulation import DriverConflict
from models.simulators import BOTH


class Counter(Elaboratable):
    """Counts while ``go``; has a state machine, a structure, a memory, and says what happens."""

    def __init__(self):
        self.a, self.o, self.n, self.go = Signal(8), Signal(8), Signal(8), Signal()
        self.s = Signal(data.StructLayout({"x": 3, "y": 5}))
        self.memory = Memory(shape=8, depth=4, init=[9, 8, 7])
        self.state = None

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        port = self.memory.read_port()
        m.d.comb += [self.o.eq(self.a + self.n), port.addr.eq(self.n)]
        with m.If(self.go):
            m.d.sync += self.n.eq(self.n + 1)
        with m.FSM() as machine:
            with m.State("REST"), m.If(self.go):
                m.next = "BUSY"
            with m.State("BUSY"):
                m.next = "REST"
        self.state = machine.state
        m.d.sync += self.s.x.eq(self.s.y)
        with m.If(self.n == 5):
            m.d.sync += Print("n is", self.n, Format("{:04x} {{", self.o), self.a.as_signed())
        m.d.sync += Asserted(self.n < 40, Format("{} is too many", self.n))
        m.d.sync += Assumed(self.n != 200)
        m.d.sync += Cover(self.n == 7, "seven")
        return m


def log_of(kind, *benches, background=(), processes=(), until=None, runs=1):
    """The notes of benches and processes."""
    circuit = Counter()
    simulator, log = kind(circuit), []
    simulator.add_clock(1e-6)

    def of(bench):
        async def run(ctx):
            await bench(ctx, circuit, log)

        return run

    for bench in benches:
        simulator.add_testbench(of(bench))
    for bench in background:
        simulator.add_testbench(of(bench), background=True)
    for process in processes:
        simulator.add_process(of(process))
    for run in range(runs):
        if run:
            simulator.reset()
        try:
            simulator.run() if until is None else simulator.run_until(until)
        except AssertionError as error:
            log.append(str(error))
        log.append(simulator._engine.now)
    return log


def both(*benches, **more):
    one, other = (log_of(kind, *benches, **more) for kind in BOTH)
    assert other == one
    return one


async def counting(ctx, c, log):
    ctx.set(c.a, 3)
    log.append(ctx.get(c.o))
    await ctx.delay(3e-7)
    ctx.set(c.go, 1)
    log.append(await ctx.tick().repeat(3))
    log.append((ctx.get(c.n), ctx.get(c.state)))
    log.append(await ctx.tick().sample(c.n, c.o, c.s).until(c.n == 5))
    log.append(ctx.get(c.n))
    await ctx.tick().repeat(4)


async def every_tick(ctx, c, log):
    async for clock, reset, n in ctx.tick().sample(c.n):
        log.append((clock, reset, n))


def test_ticks_delays_and_what_is_printed(capsys):
    log = both(counting, background=[every_tick], runs=2)
    assert (True, False, 4) in log
    printed = capsys.readouterr().out
    half = len(printed) // 2
    assert printed[:half] == printed[half:]
    assert printed.count("n is 5 0008 { 3\n") == printed.count(": seven\n") == 4


def test_assertions_name_what_is_wrong():
    async def far(ctx, c, log):
        ctx.set(c.n, 39)
        ctx.set(c.go, 1)
        for _ in range(9):
            await ctx.tick()

    assert "Assertion violated: 40 is too many" in both(far)


def test_triggers_of_signals():
    async def changes(ctx, c, log):
        ctx.set(c.go, 1)
        log.append(await ctx.changed(c.n))
        log.append(await ctx.edge(c.go, 0).delay(2.2e-6).sample(c.n))
        await ctx.posedge(c.n[2])
        log.append(("rises", ctx.get(c.n)))
        await ctx.negedge(c.n[0])
        log.append(("falls", ctx.get(c.n)))
        log.append(await ctx.changed(c.state))

    async def watcher(ctx, c, log):
        async for (n,) in ctx.changed(c.n):
            log.append(("watched", n))

    both(changes, background=[watcher])


def test_processes_replace_circuits():
    extra = Signal(8)

    async def double(ctx, c, log):
        async for _, _, n in ctx.tick().sample(c.n):
            ctx.set(extra, 2 * n)

    async def follow(ctx, c, log):
        async for (n,) in ctx.changed(extra):
            ctx.set(c.a, n + 1)

    async def look(ctx, c, log):
        ctx.set(c.go, 1)
        for _ in range(6):
            await ctx.tick()
            log.append((ctx.get(extra), ctx.get(c.a), ctx.get(c.o)))

    assert both(look, processes=[double, follow])[-2][0] == 10


def test_what_a_bench_may_write_and_what_not():
    async def writes(ctx, c, log):
        ctx.set(c.s, {"x": 1, "y": 9})
        log.append((ctx.get(c.s.y), ctx.get(c.s)["x"]))
        ctx.set(c.s.y, 6)
        await ctx.tick()
        log.append(ctx.get(c.s.x))
        ctx.set(c.n, -1)
        log.append((ctx.get(c.n), ctx.get(c.o), ctx.get(c.n.as_signed() + 3)))
        ctx.set(c.n[:4], 5)
        log.append(ctx.get(c.n))
        ctx.set(c.memory.data[1], 0x1FF)
        log.append([ctx.get(c.memory.data[k]) for k in range(4)])
        with pytest.raises(DriverConflict, match="Combinationally driven"):
            ctx.set(c.o, 1)
        with pytest.raises(NameError, match="Clock domain named 'fast'"):
            ctx.tick("fast")

    both(writes)


def test_events_that_are_missed_and_benches_that_become_critical():
    async def late(ctx, c, log):
        with pytest.raises(BrokenTrigger):
            async for _ in ctx.tick():
                await ctx.tick()
        log.append("broken")

    async def briefly(ctx, c, log):
        async for _, _, n in ctx.tick().sample(c.n):
            if n == 3:
                with ctx.critical():
                    await ctx.delay(5e-6)
                    log.append("critical")
                return

    async def short(ctx, c, log):
        ctx.set(c.go, 1)
        await ctx.tick().repeat(5)

    log = both(short, background=[late, briefly])
    assert "broken" in log
    assert "critical" in log


def test_a_reset_while_something_waits():
    found = []
    for kind in BOTH:
        m, n = Module(), Signal(4)
        m.domains.sync = domain = ClockDomain()
        m.d.sync += n.eq(n + 1)
        simulator, log = kind(m), []
        simulator.add_clock(1e-6)

        async def bench(ctx, domain=domain, n=n, log=log):
            with pytest.raises(DomainReset):
                await ctx.tick().until(n == 9)
            log.append(ctx.get(n))
            with pytest.raises(DomainReset):
                await ctx.tick().repeat(9)
            ctx.set(domain.rst, 0)
            log.append(await ctx.tick().sample(n))
            log.append(await ctx.tick().repeat(2))

        async def resets(ctx, domain=domain):
            await ctx.tick().repeat(4)
            ctx.set(domain.rst, 1)

        simulator.add_testbench(bench)
        simulator.add_testbench(resets)
        simulator.run()
        found.append(log)
    assert found[0] == found[1] == [0, (True, False, 0), ()]


def test_run_until_stops_at_its_time():
    assert both(background=[every_tick], until=3.2e-6, runs=2)[-1] == both(background=[every_tick], until=3.2e-6)[-1]
