"""Random early detection against ns-2's algorithm in floats, on both datapaths."""

import random
from dataclasses import replace
from functools import partial

import pytest
from pydantic import ValidationError

from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.settings import from_document
from bentpipe_hdl.switch.control import PortSettings, SwitchPort, SwitchSettings, SwitchVc, VcSettings, options_for
from bentpipe_hdl.switch.options import Setup, options_of, options_word
from bentpipe_hdl.switch.options.queue_limit.control import QueueLimit
from bentpipe_hdl.switch.options.red.control import Red, RedSettings, packet_ticks, red_seed, red_words
from bentpipe_hdl.switch.options.red.early_detection import AVERAGE_FRACTION, RandomEarlyDetection
from bentpipe_hdl.switch.registers import REASONS
from bentpipe_hdl.switch.switch import Switch
from models.aal5 import segment
from models.cell import Cell, Header
from models.red import RedPort, gaps, xorshift64
from models.switch import Drop, Vc
from models.switch import Switch as Model
from unit.hdl import bench
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.test_switch_parts import run
from unit.hdl.test_switch_rtl import Judge, compare_counters, configure

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
        self.judged, self.totals = [0] * len(models), [0.0] * len(models)

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
                if queued:
                    self.judged[port] += 1
                    self.totals[port] += model.average
                else:
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


async def set_up(ctx, part, settings, times, seeds):
    for port, (given, ticks) in enumerate(zip(settings, times, strict=True)):
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


def model_of(settings, ticks):
    return RedPort(settings.low, settings.high, settings.weight, settings.max_probability, settings.wait, ticks)


@pytest.mark.parametrize("width", WIDTHS)
def test_average_and_verdicts_are_those_of_ns2(width):
    """Frames of one to three cells into three queues that fill, drain and become idle, some refused by a limit."""
    settings = (
        RedSettings(weight=0.05, max_probability=0.2),
        RedSettings(low=3, high=9.5, weight=0.02, wait=False),
        RedSettings(low=2, high=6, weight=0.3, max_probability=1.0),
    )
    times = (16.0, 4.0, 32.0)  # their rates are exact
    rng, seeds = random.Random(5), [0x9E3779B97F4A7C15, 88172645463325252, 1]

    async def test(ctx, part, ticks):
        await set_up(ctx, part, settings, times, seeds)
        queues = Queues(ctx, part, ticks, [model_of(*each) for each in zip(settings, times, strict=True)], seeds)
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
            await queues.tick(
                comes, limited=rng.random() < 0.02, leaves=rng.randrange(3) if rng.random() < 0.7 else None
            )
        assert queues.worst < 2e-5
        assert [ctx.get(part.judged[p]) for p in range(3)] == queues.judged
        assert sum(ctx.get(part.refused[p]) for p in range(3)) == queues.refused
        for p, total in enumerate(queues.totals):  # each average cut to 8 fraction bits
            assert 0 <= total - ctx.get(part.total[p]) / 256 < (queues.judged[p] + 1) / 256
        assert queues.refused > 30
        assert queues.began - queues.refused > 200

    run(width, partial(RandomEarlyDetection, ports=3), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_switch_refuses_frames_as_the_model_does(width):
    """RED at two ports, a limit at two, of which one has both; frames of six VCs, OAM cells between them."""
    rng, periods = random.Random(3), [5, 6, 5.25]
    given = [
        PortSettings(red=RedSettings(low=0.5, high=4, weight=0.3, max_probability=0.8, packet_time_ps=2 * 10**6)),
        PortSettings(red=RedSettings(low=1, high=5, weight=0.2, wait=False, packet_time_ps=10**6), queue_limit=5),
        PortSettings(queue_limit=3),
    ]
    setup = Setup(SwitchSettings(buffer_cells=64), [SwitchPort(settings=one) for one in given], (), "1/s")
    red = {
        port: (model_of(one.red, packet_ticks(one.red, 0)), red_seed("1/s", port))
        for port, one in enumerate(given)
        if one.red
    }
    vcs = [Vc(k % 3, 0, 32 + k, k // 2, 0, 64 + k, ppd=True, epd=k == 1) for k in range(6)]
    model = Model(vcs, ports=3, capacity=64, limits={1: 5, 2: 3}, red=red)

    async def test(bench):
        await configure(bench, model, periods)
        for option in QueueLimit(), Red():
            await bench.apply(lambda csr, option=option: option.configure(csr, setup))
        judge = Judge(bench, model)
        frames = [[] for _ in vcs]
        load = 0.5
        for step in range(1500 if width == WIDE else 700):
            if step % 100 == 0:
                load = 1.3 - load
            arrival = None
            if rng.random() < load:
                k = rng.randrange(6)
                if rng.random() < 0.05:
                    arrival = Arrival(Cell(Header(0, 32 + k, 5), bytes(48)), k % 3)
                else:
                    if not frames[k]:
                        frames[k] = segment(Header(0, 32 + k), rng.randbytes(rng.choice([1, 40, 41, 100, 160])))
                    arrival = Arrival(frames[k].pop(0), k % 3)
            await judge.tick(arrival)
        for _ in range(400):
            await judge.tick()
        await judge.finish()
        await compare_counters(bench, model, judge.high_water)
        assert judge.told == judge.dropped

    bench.run_compiled(
        Switch(width=width, vcs=8, cells=64, ports=3, options=options_word(["queue_limit", "red"])), test, seed=1
    )
    seen = sum((vc.drops for vc in vcs), start=type(vcs[0].drops)())
    assert seen[Drop.RED] > 10
    assert seen[Drop.LIMIT] > 20
    assert sum(vc.sent for vc in vcs) > 100


@pytest.mark.parametrize("width", WIDTHS)
def test_a_frame_that_epd_refuses_counts_once_and_for_epd(width):
    """Also when the frame takes RED's average above its lower threshold, from which on RED itself would refuse it."""
    node = Switch(width=width, vcs=2, cells=16, ports=2, options=options_word(["red"]))
    frame = Arrival(Cell(Header(0, 40, 1, 0), bytes(48)))  # of one cell

    def set_up(csr):
        csr.processing_delay = 1
        for port in range(2):
            csr.period[port] = 200 << 16
        lookup_table(2, {(0, 0, 40): 0}).write(csr)
        csr.vc_policy[0] = {"limit": 16, "port": 1, "ppd": 1, "epd": 1, "enabled": 1}
        csr.red_levels[1], csr.red_weights[1] = {"low": 5 << 15, "high": 9 << 16}, {"keep": 0, "slope": 1 << 24}
        csr.red_seed[1], csr.red_enabled = 1, 2

    async def test(bench):
        await bench.reset()
        await bench.apply(set_up)
        for threshold, frames in (2, 8), (16, 1), (2, 1):  # of ten frames four are queued, one of which leaves at once
            await bench.set("epd_threshold", threshold)
            for _ in range(frames):
                await bench.tick(frame)
                await bench.tick()
        dropped = {name: await bench.get("dropped", k) for k, name in enumerate(REASONS)}
        assert {name: count for name, count in dropped.items() if count} == {"epd": 6}
        assert await bench.get("accepted", 0) == 4
        assert await bench.get("red_refused", 1) == 0

    bench.run_compiled(node, test)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"red": {"low": 15.0, "high": 5.0}}, "5 is not above low, which is 15, by a frame or more"),
        ({"red": {"low": -1.0}}, "-1.0 is out of range 0 to 32768"),
        ({"red": {"weight": 0.0}}, "0.0 is out of range 1e-05 to 1"),
        ({"red": {"weight": 1.5}}, "1.5 is out of range 1e-05 to 1"),
        ({"red": {"max_probability": 1.1}}, "1.1 is out of range 1e-05 to 1"),
        ({"red": {"packet_time": "0 s"}}, "'0 s' is out of range 1 us to 10 s"),
        ({"queue_limit": 0}, "0 is out of range 1..32768"),
    ],
)
def test_what_red_cannot_be_is_refused_in_a_line(given, message):
    with pytest.raises(ValidationError) as raised:
        from_document(PortSettings, given)
    assert [error["msg"] for error in raised.value.errors()] == [message]


@pytest.mark.parametrize("settings", [PortSettings(red=RedSettings()), PortSettings(queue_limit=9)])
def test_a_port_that_refuses_frames_needs_vcs_whose_frames_are_known(settings):
    vcs = [SwitchVc(0, 0, 32, 1, 0, 32, VcSettings(policy=policy)) for policy in ("ppd", "tail")]
    ports = [SwitchPort(), SwitchPort(settings=settings)]
    (option,) = options_of(options_for(Setup(SwitchSettings(), ports, vcs)))
    assert not list(option.check(Setup(SwitchSettings(), ports, vcs[:1])))
    (message,) = option.check(Setup(SwitchSettings(), ports, vcs))
    assert message.endswith("of port 1 refuses whole frames: a VC to it has policy 'tail', give it 'ppd' or 'epd'")
    more = [replace(vcs[0], settings=VcSettings(), credits_in=9), replace(vcs[1], ends_path=True)]
    (message,) = option.check(Setup(SwitchSettings(), ports, more))
    assert message.endswith("of port 1 refuses whole frames: a VC to it has credits, and nothing of it is dropped; "
                         "give one or the other")  # fmt: skip
    assert not list(option.check(Setup(SwitchSettings(), ports, more[1:])))
    elsewhere = [replace(vc, out_port=0) for vc in more]
    assert not list(option.check(Setup(SwitchSettings(), ports, elsewhere)))


@pytest.mark.parametrize("wait", [True, False])
def test_the_numbers_of_frames_between_refused_ones_are_uniform(wait):
    """With the queue held at nine frames, as its average is too: from 1/p to 2/p or from 1 to 1/p, with p = 0.08."""
    found = []

    async def test(ctx, part, ticks):
        settings = RedSettings(weight=1.0, max_probability=0.2, wait=wait)
        await set_up(ctx, part, [settings], [64.0], [0x2545F4914F6CDD1D])
        ctx.set(part.cells[0], 9)
        ctx.set(part.frames[0], 9)
        ctx.set(part.first, 1)
        await ticks.tick(comes=1)  # passes, as the average was below
        since = 1
        for _ in range(4000):
            since += 1
            if await ticks.tick(lambda: ctx.get(part.drop), comes=1):
                found.append(since)
                since = 0

    run(WIDE, partial(RandomEarlyDetection, ports=1), test)
    found = found[1:]
    expected = gaps(0.08, wait=wait)
    mean = sum((n + 1) * chance for n, chance in enumerate(expected))
    spread = sum((n + 1 - mean) ** 2 * chance for n, chance in enumerate(expected))
    ours, half = sum(found) / len(found), 2.576 * (spread / len(found)) ** 0.5
    print(f"wait {wait}: theory {mean:.3f}, ours {ours:.3f} +- {half:.3f}, {len(found)} gaps")
    assert abs(ours - mean) < half
    assert {n for n, chance in enumerate(expected, 1) if chance > 0} >= set(found)
    chi = sum((found.count(n) - len(found) * chance) ** 2 / (len(found) * chance)
              for n, chance in enumerate(expected, 1) if chance > 0.01)  # fmt: skip
    freedom = sum(chance > 0.01 for chance in expected) - 1
    assert chi < freedom + 2.326 * (2 * freedom) ** 0.5 + 4  # about 99 %


def test_the_average_is_within_the_stated_error_of_floats():
    """At the default weight, with queues of up to 50 frames."""
    rng, settings = random.Random(6), RedSettings()
    errors = []

    async def test(ctx, part, ticks):
        await set_up(ctx, part, [settings], [64.0], [1])
        ctx.set(part.cells[0], 99)
        ctx.set(part.first, 1)
        average, level = 0.0, 0
        for step in range(3000):
            if step % 200 == 0:
                level = rng.choice([0, 10, 40])
            queued = level + rng.randrange(11)
            average += settings.weight * (queued - average)
            ctx.set(part.frames[0], queued)
            await ticks.tick(comes=1)
            errors.append(abs(ctx.get(part.average[0]) / 2**AVERAGE_FRACTION - average))

    run(WIDE, partial(RandomEarlyDetection, ports=1), test)
    assert max(errors) < (2**-21 + 50 * 2**-25) / settings.weight < 1e-3


@pytest.mark.parametrize(
    ("left", "came", "kept"),
    [(1000, 1000 + 40 * 16 + 15, 0.9**41), (2**48 - 100, 60, 0.9**11), (1000, 1000 + 2**33, 0)],
    ids=["whole packets", "across the wrap of time", "longer than counts"],
)
@pytest.mark.parametrize("width", WIDTHS)
def test_idle_time_counts_in_whole_packets(width, left, came, kept):
    async def test(ctx, part, ticks):
        await set_up(ctx, part, [RedSettings(weight=0.1)], [16.0], [1])
        ctx.set(part.first, 1)

        async def tick(now, **strobes):
            ticks.now = now
            ctx.set(part.now, now)
            await ticks.tick(**strobes)

        ctx.set(part.cells[0], 9)
        ctx.set(part.frames[0], 8)
        await tick(left - 9, comes=1)
        await tick(left - 8)
        before = ctx.get(part.average[0])
        ctx.set(part.cells[0], 1)
        ctx.set(part.frames[0], 1)
        await tick(left, dequeue=1)
        ctx.set(part.cells[0], 0)
        ctx.set(part.frames[0], 0)
        await tick(came, comes=1)
        await tick(came + 1)
        assert ctx.get(part.average[0]) == pytest.approx(before * kept, abs=2)

    run(width, partial(RandomEarlyDetection, ports=1), test)
