"""Virtual clock, alone, on both datapaths."""

import random
from functools import partial

import pytest

from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.switch.options.virtual_clock.virtual_clock import VirtualClock
from models.scheduling import Clocked, VirtualClocks
from unit.hdl.bench import WIDTHS
from unit.hdl.test_switch_parts import run

PORTS = 3


class Bench:
    """A scheduler, and its model beside it."""

    def __init__(self, ctx, part, ticks, model):
        self.ctx, self.part, self.ticks, self.model = ctx, part, ticks, model
        self.wrapped = 0

    async def start(self):
        ctx, part = self.ctx, self.part
        ctx.set(part.clearing, 1)
        for k in range(1 << len(part.clear)):
            ctx.set(part.clear, k)
            await ctx.tick()
        ctx.set(part.clearing, 0)
        for vc, member in enumerate(self.model.members):
            ctx.set(part.period_vc, vc)
            ctx.set(part.period, member.period)
            ctx.set(part.period_en, 1)
            await ctx.tick()
        ctx.set(part.period_en, 0)

    async def tick(self, comes=None, serves=None):
        if self.ticks.now >= 1 << 48:
            self.ticks.now -= 1 << 48
            self.wrapped = 1 << 48
        ctx, part, model, now = self.ctx, self.part, self.model, self.ticks.now + self.wrapped
        expected = None if serves is None else model.first(serves)
        busy_before = [model.first(p) is not None for p in range(PORTS)]
        empty = comes is not None and not model.members[comes].cells
        if comes is not None:
            ctx.set(part.join_vc, comes)
            ctx.set(part.join_port, model.members[comes].port)
            model.arrive(comes, now)
        more = False
        if serves is not None:
            ctx.set(part.port, serves)
            more = model.members[expected].cells > 1
            model.depart(expected, now)
        found = await self.ticks.tick(
            lambda: (ctx.get(part.vc), ctx.get(part.begins), ctx.get(part.still_busy), ctx.get(part.changes)),
            join=int(empty), serve=int(serves is not None), rejoin=int(more),
        )  # fmt: skip
        vc, begins, still_busy, changes = found
        if serves is not None:
            assert vc == expected, f"tick {now}"
        busy = sum((model.first(p) is not None) << p for p in range(PORTS))
        assert ctx.get(part.busy) == busy
        if changes:
            assert still_busy == busy
        for p in range(PORTS):
            if not busy_before[p]:
                assert begins >> p & 1 == (busy >> p & 1)


@pytest.mark.parametrize(("vcs", "start"), [(2, 0), (8, 0), (8, (1 << 48) - 120), (128, 0)])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_vc_with_the_least_clock_is_served(width, vcs, start):
    """Rates from equal ones, whose clocks tie, to some that are ahead of their clocks for long; VCs change their
    ports; the time wraps."""
    rng = random.Random(vcs)
    periods = [1 << 16, 3 << 16, 3 << 16, 5 << 16, 70_000, 0, 1 << 30, (1 << 40) - 1]
    members = [Clocked(k % PORTS, periods[k % len(periods)]) for k in range(vcs)]
    model = VirtualClocks(members, ports=PORTS)

    async def test(ctx, part, ticks):
        bench = Bench(ctx, part, ticks, model)
        await bench.start()
        for now in range(0, start, 1 << 45):  # clocks have been 0 for less than half the range of the time
            ticks.now = now
            for vc, member in enumerate(members):
                await bench.tick(vc, None)
                await bench.tick(None, member.port)
        ticks.now = start
        for step in range(900 if width == WIDE else 250):
            busy = [p for p in range(PORTS) if model.first(p) is not None]
            many = step // 50 % 2
            comes = rng.randrange(vcs) if rng.random() < (0.9 if many else 0.3) else None
            serves = rng.choice(busy) if busy and rng.random() < (0.4 if many else 0.95) else None
            if rng.random() < 0.05:
                members[rng.randrange(vcs)].port = rng.randrange(PORTS)
            await bench.tick(comes, serves)
            if width == WIDE and rng.random() < 0.2:
                ticks.now += rng.choice([1, 10, 1000])
        while busy := [p for p in range(PORTS) if model.first(p) is not None]:
            await bench.tick(None, rng.choice(busy))

    run(width, partial(VirtualClock, vcs=vcs, ports=PORTS), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_rates_share_a_port_as_they_are_to_each_other_and_idling_saves_nothing(width):
    """Two VCs that always have cells, at rates of 3 : 1; the third has none for long, and then doesn't get it all."""
    members = [Clocked(0, 4 << 16), Clocked(0, 12 << 16), Clocked(0, 4 << 16), Clocked(0, 0)]
    model = VirtualClocks(members, ports=PORTS)
    served = []

    async def test(ctx, part, ticks):
        bench = Bench(ctx, part, ticks, model)
        await bench.start()
        for step in range(320):
            comes = (0, 1, None, 0)[step % 4] if step < 200 else (0, 1, 2, 2)[step % 4]
            serves = 0 if step >= 40 and step % 4 == 3 else None
            if serves is not None:
                served.append(model.first(0))
            await bench.tick(comes, serves)

    run(width, partial(VirtualClock, vcs=8, ports=PORTS), test)
    before, after = served[:40], served[-28:]
    assert 9 <= before.count(1) <= 11
    assert 10 <= after.count(2) <= 14 and after.count(0) >= 10
