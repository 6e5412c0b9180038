"""Clocks that a design makes itself, clocks that a bench makes, and what the native simulator refuses."""

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, Signal

from bentpipe_sim.native import Simulator
from bentpipe_sim.native.netlist import NetlistError
from models.simulators import BOTH


def counts(kind, make, look=20):
    """A counter in the domain ``made``, after each clock of ``sync``."""
    m, n, seen = Module(), Signal(8), []
    m.domains += [ClockDomain("sync"), ClockDomain("made", reset_less=True)]
    enable = Signal()
    make(m, enable)
    m.d.made += n.eq(n + 1)
    simulator = kind(m)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        for k in range(look):
            ctx.set(enable, k % 3 != 0)
            await ctx.tick()
            seen.append(ctx.get(n))

    simulator.add_testbench(bench)
    simulator.run()
    return seen


def divided(m, enable):
    half = Signal()
    m.d.sync += half.eq(~half)
    m.d.comb += ClockSignal("made").eq(half)


def gated(m, enable):
    m.d.comb += ClockSignal("made").eq(ClockSignal() & enable)


def renamed(m, enable):
    m.d.comb += ClockSignal("made").eq(ClockSignal())


@pytest.mark.parametrize("make", [divided, gated, renamed])
def test_clocks_that_the_design_makes(make):
    one, other = (counts(kind, make) for kind in BOTH)
    assert other == one
    assert one[-1] > 5


def test_a_clock_that_a_bench_makes():
    found = []
    for kind in BOTH:
        m, n, log = Module(), Signal(8), []
        m.domains.sync = domain = ClockDomain(clk_edge="neg")
        m.d.sync += n.eq(n + 3)
        simulator = kind(m)

        async def bench(ctx, domain=domain, n=n, log=log):
            for level in (1, 0, 0, 1, 1, 0):
                ctx.set(domain.clk, level)
                log.append(ctx.get(n))

        async def listen(ctx, n=n, log=log):
            async for _, _, seen in ctx.tick().sample(n):
                log.append(("tick", seen))

        simulator.add_testbench(bench)
        simulator.add_testbench(listen, background=True)
        simulator.run()
        found.append(log)
    assert found[0] == found[1]
    assert 6 in found[0]


def test_what_it_has_not_is_named():
    m = Module()
    m.submodules.it = Instance("PLL", i_a=Signal(), o_o=Signal())
    with pytest.raises(NetlistError, match="no PLL: an Instance"):
        Simulator(m)
    simulator = Simulator(Module())
    with pytest.raises(NetlistError, match="GTKWave"), simulator.write_vcd("x.vcd", "x.gtkw"):
        pass
