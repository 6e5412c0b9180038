"""The hysteresis rate controller by itself, against its model, on both datapaths."""

import random
from contextlib import nullcontext
from fractions import Fraction
from functools import partial

import pytest

from bentpipe_hdl.cell import NEVER, WIDE
from bentpipe_hdl.switch.options.reactive.control import ReactiveSettings
from bentpipe_hdl.switch.options.reactive.rate_controller import TAKES, RateController
from bentpipe_hdl.ticks import cell_period
from bentpipe_hdl.units import MAX_RATE_BPS
from models.reactive import Hysteresis, Line
from unit.hdl.bench import WIDTHS
from unit.hdl.test_switch_parts import run

CELL = cell_period(1000)
RATES = [
    1, 2, 7, 20, 56, 64, 100, 144, 1000, 1544, 2048, 10_000, 33_333, 40_704, 98_148, 100_000, 149_760, 299_993, 577_777,
    599_040,
]  # fmt: skip


def controller(ports):
    return partial(RateController, ports=ports, count_bits=14)


def set_up(ctx, node, port, **settings):
    for name, value in ({"cell": CELL, "weight": 65536} | settings).items():
        ctx.set(getattr(node, name)[port], value)


async def begin(ctx, node, ticks, port, packets=0):
    """Write the settings of a port's control in a tick."""
    ctx.set(node.control_port, port)
    ctx.set(node.control, 1 | packets << 1)
    await ticks.tick(control_en=1)


async def serve(ctx, node, ticks, port):
    """A cell leaves: the time that it takes the line."""
    ctx.set(node.port, port)
    return await ticks.tick(lambda: ctx.get(node.periods[port]) + ctx.get(node.carry), serve=1)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("seed", range(3))
def test_it_does_what_its_model_does(width, seed):
    """Three ports, each with settings and a queue of its own: capacity by capacity, cell by cell."""
    rng = random.Random(seed)
    ports = 3
    models, lines, packets, intervals = [], [], [], []

    async def test(ctx, node, ticks):
        looks, due = [], []
        for port in range(ports):
            least, most = sorted(rng.choice([0, 1, 20, 5000, 599_040, rng.randrange(2_396_160)]) for _ in range(2))
            low, high = sorted(rng.randrange(40 << 8) for _ in range(2))
            up, down, weight = rng.randrange(most // 2 + 2), rng.randrange(most // 2 + 2), rng.choice([1, 9999, 65536])
            models.append(
                Hysteresis(Fraction(low, 256), Fraction(high, 256), up, down, least, most, Fraction(weight, 65536))
            )
            intervals.append(rng.randrange(20, 60))
            packets.append(rng.randrange(2))
            first = rng.randrange(least, most + 1)
            set_up(
                ctx, node, port, low=low, high=high, up=up, down=down, floor=least, ceiling=most, initial=first,
                interval=intervals[-1], weight=weight,
            )  # fmt: skip
            await begin(ctx, node, ticks, port, packets[-1])
            await ticks.tick()  # the first look is in the tick after the write
            models[-1].begin(first)
            looks.append(ticks.now - 1 + intervals[-1])
            for _ in range(TAKES):
                await ticks.tick()
            assert ctx.get(node.capacity[port]) == models[-1].capacity
            lines.append(Line(CELL, models[-1].capacity) if models[-1].capacity else None)
        changes, busy_until = {}, 0
        for now in range(ticks.now, ticks.now + 500):
            queues = [[rng.randrange(45) for _ in range(2)] for _ in range(ports)]
            for port in range(ports):
                ctx.set(node.cells[port], queues[port][0])
                ctx.set(node.frames[port], queues[port][1])
            due = [port for port in range(ports) if looks[port] <= now]
            if due and now > busy_until:
                port = due[0]
                models[port].look(queues[port][packets[port]])
                looks[port] += intervals[port] if looks[port] + intervals[port] > now else now + intervals[port]
                busy_until = now + TAKES
                changes[now + TAKES] = port
            port = rng.randrange(ports)
            stalled = ctx.get(node.stalled) >> port & 1
            assert stalled == (lines[port] is None)
            if stalled or rng.random() < 0.3:
                await ticks.tick()
            else:
                assert await serve(ctx, node, ticks, port) == lines[port].next(), (now, port)
            if now in changes:
                port = changes.pop(now)
                assert ctx.get(node.capacity[port]) == models[port].capacity, now
                lines[port] = Line(CELL, models[port].capacity) if models[port].capacity else None

    run(width, controller(ports), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_rate_is_exact(width):
    """20 rates from 1 kb/s to 599.04 Mb/s: after any number of cells the time is that of the rate, rounded down to
    2**-16 ticks, so that over ten minutes no rate is off by as much as 1e-9."""

    async def test(ctx, node, ticks):
        for rate in RATES:
            set_up(ctx, node, 0, floor=rate, ceiling=rate, initial=rate, interval=1 << 20)
            await begin(ctx, node, ticks, 0)
            for _ in range(TAKES + 1):
                await ticks.tick()
            assert ctx.get(node.capacity[0]) == rate
            passed = 0
            for n in range(1, 41):
                passed += await serve(ctx, node, ticks, 0)
                assert passed == n * CELL // rate, (rate, n)
            ten_minutes = 600 * 1000 * rate // 424
            assert abs(1 - Fraction(ten_minutes * CELL // rate * rate, ten_minutes * CELL)) < Fraction(1, 10**9)

    run(width, controller(1), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_floor_of_0_stalls_the_port_until_its_queue_grows(width):
    async def test(ctx, node, ticks):
        set_up(ctx, node, 1, low=2 << 8, high=4 << 8, up=3, down=9, floor=0, ceiling=5, interval=50)
        await begin(ctx, node, ticks, 1)
        seen = []
        for queue in (0, 4, 5, 9, 3, 2, 1):
            ctx.set(node.cells[1], queue)
            for _ in range(50):
                await ticks.tick()
            seen.append((ctx.get(node.capacity[1]), ctx.get(node.stalled)))
        assert seen == [(0, 2), (0, 2), (3, 0), (5, 0), (5, 0), (5, 0), (0, 2)]

    run(width, controller(2), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_port_that_is_no_longer_reactive_has_its_own_rate_again_and_doesnt_stall(width):
    async def test(ctx, node, ticks):
        set_up(ctx, node, 0, ceiling=5, interval=50)
        ctx.set(node.period[0], 777)
        await begin(ctx, node, ticks, 0)
        for _ in range(20):
            await ticks.tick()
        assert (ctx.get(node.stalled), ctx.get(node.reactive)) == (1, 1)
        ctx.set(node.control, 0)
        await ticks.tick(control_en=1)
        assert (ctx.get(node.stalled), ctx.get(node.due)) == (0, NEVER)
        assert await serve(ctx, node, ticks, 0) == 777

    run(width, controller(1), test)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("wait", [0, 3, TAKES + 1])
@pytest.mark.parametrize("between", [None, 1])
def test_a_port_that_begins_or_begins_anew_stalls_until_its_rate_is_known(width, wait, between):
    """The settings of a port are written, and written again ``wait`` ticks later with other values, after the control
    was switched off or not. Capacity is within floor and ceiling in each tick, and there is a rate when the port does
    not stall.
    """

    async def test(ctx, node, ticks):
        set_up(ctx, node, 1, floor=20, ceiling=30, initial=50, interval=1000)
        await begin(ctx, node, ticks, 1)
        for _ in range(wait):
            await ticks.tick()
        if between is not None:
            ctx.set(node.control, 0)
            await ticks.tick(control_en=1)
            for _ in range(between):
                await ticks.tick()
        set_up(ctx, node, 1, floor=70, ceiling=80, initial=10, interval=1000)
        await begin(ctx, node, ticks, 1)
        stalled = 0
        while ctx.get(node.stalled):
            assert ctx.get(node.stalled) == ctx.get(node.reactive) == 2
            assert ctx.get(node.capacity[1]) == 70
            await ticks.tick()
            stalled += 1
        assert stalled == 1 + TAKES
        assert ctx.get(node.capacity[1]) == 70
        assert await serve(ctx, node, ticks, 1) == CELL // 70

    run(width, controller(2), test)


def test_its_due_tick_is_that_of_what_it_does_next():
    """The due tick is that of a look, of its end although another port is changed meanwhile, and of the next look."""

    async def test(ctx, node, ticks):
        for port in range(2):
            set_up(ctx, node, port, ceiling=5, initial=3, interval=50)
        await begin(ctx, node, ticks, 0)
        assert ctx.get(node.due) <= ticks.now
        await ticks.tick()
        look = ticks.now - 1
        assert ctx.get(node.due) == look + TAKES
        ctx.set(node.control_port, 1)
        ctx.set(node.control, 0)
        await ticks.tick(control_en=1)
        await ticks.tick()
        assert ctx.get(node.due) == look + TAKES
        while ticks.now <= look + TAKES:
            await ticks.tick()
        assert (ctx.get(node.capacity[0]), ctx.get(node.due)) == (3, look + 50)

    run(WIDE, controller(2), test)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"floor_bps": 20_500}, "20500 b/s is no multiple of 1 kb/s"),
        ({"floor_bps": -1000}, "out of range"),
        ({"low": 6001}, "6001 is above high, which is 6000"),
        ({"floor_bps": 200_000_000}, "200 Mb/s is above the ceiling of 100 Mb/s"),
        ({"ceiling_bps": MAX_RATE_BPS + 1000}, "out of range"),
        ({"interval_ps": 0}, "out of range"),
        ({"average": 0.0}, "out of range"),
        ({"counted": "bits"}, "unknown value 'bits'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    given = {"floor_bps": 20_000, "ceiling_bps": 100_000_000, "low": 2000, "high": 6000}
    with pytest.raises(ValueError, match=message):
        ReactiveSettings(**(given | settings))


@pytest.mark.parametrize(
    ("initial", "message"), [(19_000, "19 kb/s is not"), (None, ""), (20_000, ""), (100_001_000, "100")]
)
def test_a_port_begins_between_floor_and_ceiling(initial, message):
    given = ReactiveSettings(floor_bps=20_000, ceiling_bps=100_000_000, low=2000, high=6000, initial_bps=initial)
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        given.check_start()
