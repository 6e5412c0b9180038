"""FIFO, weighted round robin and strict priority, alone, on both datapaths."""

import random
from collections import deque

import pytest
from amaranth.hdl import Module

from benches.simulator import Simulator
from bentpipe_hdl.cell import CLOCKS_A_TICK, WIDE
from bentpipe_hdl.part_harness import PartHarness
from bentpipe_hdl.switch.core.port_rate_scheduler import COMMIT
from bentpipe_hdl.switch.core.vc_table import DEPARTURE
from bentpipe_hdl.switch.options.weighted_priority.weighted_priority import WeightedPriorityScheduler
from models.scheduling import Member, Scheduler
from unit.hdl.bench import WIDTHS

VCS, PORTS, PLACES = 8, 3, 20


class Cells:
    """Queues a VC and places, as the switch has them, around the scheduler and beside its model."""

    def __init__(self, ctx, node, model, *, fifo=frozenset()):
        self.ctx, self.node, self.model, self.fifo = ctx, node, model, fifo
        self.queues = [deque() for _ in model.members]
        self.kept = [{"by_cell": 0, "port": 0, "priority": 0} for _ in model.members]
        self.free = list(range(PLACES))
        self.served = []

    async def share(self, vc, *, weight, priority):
        ctx, node = self.ctx, self.node
        ctx.set(node.share_vc, vc)
        ctx.set(node.share, {"weight": weight, "priority": priority})
        ctx.set(node.share_en, 1)
        await ctx.tick()
        ctx.set(node.share_en, 0)
        self.model.members[vc].weight, self.model.members[vc].priority = weight, priority

    async def tick(self, comes=None, serves=None):
        """A cell of VC ``comes`` is queued, port ``serves`` gives one: the VC is compared with the model's."""
        ctx, node, model = self.ctx, self.node, self.model
        strobes = {"join": 0, "queued": 0, "serve": 0, "rejoin": 0}
        begins = [model.first(p) is None for p in range(PORTS)]
        place = None
        ctx.set(node.fifo, sum(1 << p for p in self.fifo))
        if comes is not None:
            empty = not self.queues[comes]
            strobes["join"], strobes["queued"] = int(empty), 1
            place = self.free.pop(random.randrange(len(self.free)))
            ctx.set(node.empty, int(empty))
            ctx.set(node.join_vc, comes)
            ctx.set(node.join_port, model.members[comes].port)
            ctx.set(node.cell, place)
            ctx.set(node.kept, self.kept[comes])
        if serves is not None:
            ctx.set(node.port, serves)
        ctx.set(node.time.tick, 1)
        for clock in range(1 if node.width == WIDE else CLOCKS_A_TICK):
            commits = node.width == WIDE or clock == COMMIT
            if commits:
                for name in ("join", "queued"):
                    ctx.set(getattr(node, name), strobes[name])
                if serves is not None:
                    ctx.set(node.serve, 1)
                    await ctx.delay(1e-8)
                    vc = ctx.get(node.vc)
                    more = len(self.queues[vc]) + (comes == vc) > 1
                    ctx.set(node.rejoin, int(more))
                    ctx.set(node.rejoin_port, model.members[vc].port)
                    assert self.queues[vc], f"VC {vc} is served, and has no cell"
            elif clock == COMMIT - 3 and serves is not None:  # where the VC goes next is known before
                ctx.set(node.rejoin_port, model.members[ctx.get(node.vc)].port)
            await ctx.delay(1e-8)
            if commits and comes is not None:
                kept = ctx.get(node.new_kept)
                self.kept[comes] = {name: kept[name] for name in ("by_cell", "port", "priority")}
            if commits:
                found = [ctx.get(node.begins) >> p & 1 for p in range(PORTS)]
                told = found, ctx.get(node.still_busy) if ctx.get(node.changes) else None
            await ctx.tick()
            ctx.set(node.time.tick, 0)
            for name in strobes:
                ctx.set(getattr(node, name), 0)
        # The model: first the cell that comes, but it isn't yet among those of which one is served
        level = None if serves is None else model.level(serves)
        if comes is not None:
            model.arrive(comes)
            self.queues[comes].append(place)
        if serves is not None:
            expected = model.depart(serves, level)
            assert vc == expected
            self.served.append(vc)
            self.free.append(self.queues[vc].popleft())
        model.check()
        busy = sum((model.first(p) is not None) << p for p in range(PORTS))
        assert ctx.get(node.busy) == busy
        if told[1] is not None:
            assert told[1] == busy
            for p in range(PORTS):
                others = [t.vc for turns in model.turns[p].values() for t in turns]
                assert told[0][p] <= bool(others)
                if begins[p]:
                    assert told[0][p] == bool(others)


def run(width, test, model, *, fifo=frozenset(), **options):
    node = PartHarness(
        lambda slot: WeightedPriorityScheduler(slot, vcs=VCS, ports=PORTS, at=DEPARTURE - 2, **options),
        width=width,
        commit=COMMIT,
    )

    async def bench(ctx):
        cells = Cells(ctx, node, model, fifo=fifo)
        for vc, member in enumerate(model.members):
            await cells.share(vc, weight=member.weight, priority=member.priority)
        await test(cells)

    whole = Module()
    whole.submodules.node = node
    simulator = Simulator(whole)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


KINDS = {
    "round robin": {},
    "weighted": {"weighted": True},
    "fifo": {"places": PLACES},
    "priority": {"priorities": 4},
    "all": {"places": PLACES, "weighted": True, "priorities": 4},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", WIDTHS)
def test_random_cells_are_served_in_the_models_order(width, kind):
    rng = random.Random(5)
    options = KINDS[kind]
    members = [
        Member(
            k % PORTS,
            weight=rng.choice([0, 1, 2, 5]) if "weighted" in options else 1,
            priority=rng.randrange(4) if "priorities" in options else 0,
        )
        for k in range(VCS)
    ]
    fifo = frozenset({0, 2}) if "places" in options else frozenset()
    model = Scheduler(members, ports=PORTS, fifo=fifo)

    async def test(cells):
        for step in range(900 if width == WIDE else 250):
            busy = [p for p in range(PORTS) if model.first(p) is not None]
            many = step // 60 % 2
            comes = rng.randrange(VCS) if len(cells.free) > 1 and rng.random() < (0.9 if many else 0.3) else None
            serves = rng.choice(busy) if busy and rng.random() < (0.4 if many else 0.9) else None
            if rng.random() < 0.03:  # a VC gets another port: what it has queued follows in its turns
                members[rng.randrange(VCS)].port = rng.randrange(PORTS)
            if rng.random() < 0.03 and ("weighted" in options or "priorities" in options):
                vc = rng.randrange(VCS)
                weight = rng.choice([0, 1, 3]) if "weighted" in options else 1
                await cells.share(vc, weight=weight, priority=rng.randrange(options.get("priorities", 1)))
            await cells.tick(comes, serves)
        while any(member.cells for member in members):
            await cells.tick(None, next(p for p in range(PORTS) if model.first(p) is not None))
        assert len(cells.free) == PLACES

    random.seed(5)
    run(width, test, model, fifo=fifo, **options)
