"""Random early detection against ns-2's algorithm in floats, on both datapaths."""

import random

import pytest

from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.switch.options.red import RedSettings, red_words
from bentpipe_hdl.switch.red import AVERAGE_FRACTION, RandomEarlyDetection
from models.red import RedPort, xorshift64
from unit.hdl.bench import WIDTHS
from unit.hdl.test_switch_parts import run

CLOSE = 1e-4
"""Probabilities so near to the draw are not compared."""


class Queues:
    """Queues of cells of three ports, as the switch would have them: what comes and what leaves each tick."""

    def __init__(self, ctx, part, ticks, models, seeds):
        self.ctx, self.part, self.ticks, self.models = ctx, part, ticks, models
        self.queued = [[] for _ in models]  # a cell: whether it ends its frame
        self.coming = [[] for _ in models]
        self.draws = list(seeds)
        self.worst = 0.0
        self.refused, self.began = 0, 0

    async def tick(self, port=None, limited=False, leaves=None):
        """A cell comes to ``port``, one leaves."""
        ctx, part, now = self.ctx, self.part, self.ticks.now
        starts = enqueue = last = False
        ctx.set(part.now, now)
        if port is not None:
            starts, last = self.coming[port].pop(0)
            ctx.set(part.port, port)
            ctx.set(part.limited, limited)
            ctx.set(part.first, starts)
            queued, model = self.queued[port], self.models[port]
            if starts:
                before = model.average
                verdict = model.arrives(
                    sum(queued), (self.draws[port] >> 40) / 2**24, limited=limited, idle=not queued, now=now
                )
                draw = (self.draws[port] >> 40) / 2**24
                self.draws[port] = xorshift64(self.draws[port])
                if not queued:
                    model.idle_since = now
                self.began += 1
                self.refused += verdict
                if verdict or limited:
                    while not last:
                        _, last = self.coming[port].pop(0)
            enqueue = not starts or not (verdict or limited)
        dequeue = leaves is not None and bool(self.queued[leaves])
        if dequeue:
            ctx.set(part.out_port, leaves)

        def look():
            return ctx.get(part.drop), port is not None and ctx.get(part.average[port]) / 2**AVERAGE_FRACTION

        drop, average = await self.ticks.tick(look, comes=port is not None, enqueue=enqueue, dequeue=dequeue)
        if starts:
            self.worst = max(self.worst, abs(average - before))
            if abs(model.probability - draw) > CLOSE:
                assert drop == verdict, f"tick {now}, port {port}"
        if dequeue:
            self.queued[leaves].pop(0)
        if enqueue:
            self.queued[port].append(last)
        if dequeue and not self.queued[leaves]:
            self.models[leaves].idle_since = now
        for p, queued in enumerate(self.queued):
            ctx.set(part.cells[p], len(queued))
            ctx.set(part.frames[p], sum(queued))


async def set_up(ctx, part, settings, packet_ticks, seeds):
    for port, (given, ticks) in enumerate(zip(settings, packet_ticks, strict=True)):
        words = red_words(given, ticks)
        for name in ("levels", "weights", "idle"):
            ctx.set(getattr(part, f"{name}_port"), port)
            for field, value in words[f"red_{name}"].items():
                ctx.set(getattr(part, name)[field], value)
            ctx.set(getattr(part, f"{name}_en"), 1)
        ctx.set(part.seed_port, port)
        ctx.set(part.seed, seeds[port])
        ctx.set(part.seed_en, 1)
        await ctx.tick()
        for name in ("levels", "weights", "idle", "seed"):
            ctx.set(getattr(part, f"{name}_en"), 0)
        await ctx.tick()
    ctx.set(part.enabled, (1 << len(settings)) - 1)
    ctx.set(part.waits, sum(given.wait << port for port, given in enumerate(settings)))


def model_of(settings, packet_ticks):
    return RedPort(
        settings.low, settings.high, settings.weight, settings.max_probability, settings.wait, packet_ticks
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_average_and_verdicts_are_those_of_ns2(width):
    """Frames of one to three cells into three queues that fill, drain and become idle, some refused by a limit."""
    settings = (
        RedSettings(weight=0.05, max_probability=0.2),
        RedSettings(low=3, high=9.5, weight=0.02, wait=False),
        RedSettings(low=2, high=6, weight=0.3, max_probability=1.0),
    )
    packet_ticks = (16.0, 4.0, 32.0)  # their rates are exact
    rng, seeds = random.Random(5), [0x9E3779B97F4A7C15, 88172645463325252, 1]

    async def test(ctx, part, ticks):
        await set_up(ctx, part, settings, packet_ticks, seeds)
        queues = Queues(ctx, part, ticks, [model_of(*each) for each in zip(settings, packet_ticks, strict=True)], seeds)
        busy = [0.5] * 3
        for step in range(4000 if width == WIDE else 1500):
            if step % 50 == 0:
                busy = [rng.choice([0.1, 0.45, 0.7]) for _ in range(3)]
                if not any(queues.queued):
                    ticks.now += rng.choice([0, 100, 3000])
            port = rng.randrange(3)
            if not queues.coming[port]:
                count = rng.choice([1, 1, 2, 3])
                queues.coming[port] = [(k == 0, k == count - 1) for k in range(count)]
            comes = port if rng.random() < busy[port] * 1.4 else None
            await queues.tick(comes, limited=rng.random() < 0.02, leaves=rng.randrange(3) if rng.random() < 0.7 else None)
        assert queues.worst < 2e-5
        assert queues.refused > 30
        assert queues.began - queues.refused > 200

    run(width, lambda slot: RandomEarlyDetection(slot, ports=3), test)
