"""The switch at its limits and in reconfiguration: too much for it, VCs set up, changed, torn down, the end of time."""

import random
from fractions import Fraction
from itertools import pairwise

import pytest
from amaranth.hdl import Fragment

from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.switch.core.port_rate_scheduler import CATCH_UP
from bentpipe_hdl.switch.options import OPTIONS
from bentpipe_hdl.switch.switch import Switch
from bentpipe_hdl.ticks import MOST_CELLS
from models.aal5 import segment
from models.cell import Cell, Header
from models.switch import Drop, Vc
from models.switch import Switch as Model
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_switch_rtl import Judge, configure, small, write_policy


def cell(vci, pti=0, octet=0):
    return Cell(Header(0, vci, pti), bytes([octet]) * 48)


def fan(ports, *, cells=64, **kwargs):
    """A VC from port 0 to each port."""
    return Model([Vc(0, 0, 32 + p, p, 0, 64 + p, **kwargs) for p in range(ports)], ports=ports, capacity=cells)


def with_switch(width, model, test, *, periods, delay=1, seed=1):
    ports = len(model.port_drops)

    async def whole(bench):
        await configure(bench, model, periods, delay)
        await test(bench)

    run(small(width, cells=12 if model.capacity <= 12 else 700, ports=ports), whole, seed)


# Rates


@pytest.mark.parametrize("width", WIDTHS)
def test_ports_that_ask_for_more_than_the_switch_moves_share_it_in_turn(width):
    """Three ports at a cell a tick each, with 20 cells each: a third for each, and none waits longer than a round."""

    async def test(bench):
        for k in range(60):
            await bench.tick(Arrival(cell(32 + k % 3)))
        await bench.ticks(80)
        assert [d.port for d in bench.came_out] == [0, 1, 2] * 20
        assert bench.came_out[-1].tick - bench.came_out[0].tick == 59

    with_switch(width, fan(3), test, periods=[1, 1, 1], delay=70)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_port_that_was_held_up_makes_up_for_64_ticks(width):
    """Three ports of 1.5 ticks a cell have a third of the ticks each, and after 300 ticks are 150 behind. Then one goes
    on alone: at a cell a tick until it has made up for 64 ticks, 128 cells later, and from there on at its rate."""

    async def test(bench):
        for k in range(300):
            await bench.tick(Arrival(cell(32 + k % 3)))
        for _ in range(230):
            await bench.tick(Arrival(cell(32)))
        await bench.ticks(480)
        alone_from = max(d.tick for d in bench.came_out if d.port)
        ticks = [d.tick for d in bench.came_out if d.port == 0 and d.tick > alone_from]
        burst = next(k for k, (a, b) in enumerate(pairwise(ticks)) if b - a > 1)
        assert abs(burst - 2 * CATCH_UP) <= 3
        rest = ticks[burst : burst + 41]
        assert rest[-1] - rest[0] == 60

    with_switch(width, fan(3, cells=700), test, periods=[1.5, 1.5, 1.5], delay=400)


@pytest.mark.parametrize("seed", range(4))
def test_every_rate_is_exact_while_the_switch_moves_their_sum(seed):
    """Random rates that fill the switch: each port's cells leave within a few ticks of its own clock, for ever."""
    rng = random.Random(seed)
    ports = 5
    shares = [rng.random() ** 2 + 0.01 for _ in range(ports)]
    periods = [Fraction(int(sum(shares) / share * 65536) + 1, 65536) for share in shares]
    assert sum(1 / period for period in periods) <= 1

    async def test(bench):
        backlog = [0] * ports
        for now in range(1500):  # what leaves is replaced, so that every port always has cells
            short = min(range(ports), key=lambda p: backlog[p])
            await bench.tick(Arrival(cell(32 + short)))
            backlog[short] += 1
            for d in bench.came_out[-1:]:
                if d.tick == now:
                    backlog[d.port] -= 1
        for p, period in enumerate(periods):
            ticks = [d.tick for d in bench.came_out if d.port == p and d.tick > 100]
            lags = [float(t - ticks[0] - period * k) for k, t in enumerate(ticks)]
            assert max(lags) - min(lags) < CATCH_UP // 2, (p, float(period), max(lags), min(lags))

    with_switch(WIDE, fan(ports, cells=400), test, periods=periods, seed=seed)


# Set-up, change, tear-down


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_set_up_anew_starts_with_a_new_frame(width):
    """EPD refuses a VC's frame; the VC is torn down in its middle and set up again: its first frame comes through."""
    model = Model([Vc(0, 0, 32, 1, 0, 64, epd=True, ppd=True)], ports=3, capacity=12, epd_threshold=0)

    async def test(bench):
        await bench.tick(Arrival(cell(32)))
        await write_policy(bench, 0, model.vcs[0], enabled=False)
        await bench.set("epd_threshold", 12)
        await bench.ticks(2)
        await write_policy(bench, 0, model.vcs[0])
        for k in range(3):
            await bench.tick(Arrival(cell(32, int(k == 2), k)))
        await bench.ticks(20)
        assert [d.payload[0] for d in bench.came_out] == [0, 1, 2]
        assert await bench.get("dropped", 1) == 1

    with_switch(width, model, test, periods=[2, 2, 2])


@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_torn_down_vc_had_queued_is_flushed(width):
    """The cells of the VC leave the buffer without being sent, one a tick; another VC of the port uses the line
    meanwhile.
    """
    model = Model([Vc(0, 0, 32, 1, 0, 64), Vc(0, 0, 33, 1, 0, 65)], ports=3, capacity=12)

    async def test(bench):
        for k in range(10):
            await bench.tick(Arrival(cell(32 + k % 2, octet=k)))
        before = len(bench.came_out)
        await write_policy(bench, 0, model.vcs[0], enabled=False)
        await bench.tick(Arrival(cell(32)))  # unknown now
        await bench.ticks(200)
        rest = bench.came_out[before:]
        sent = {vci: sum(d.as_header().vci == vci for d in bench.came_out) for vci in (64, 65)}
        assert sum(d.as_header().vci == 64 for d in rest) <= 2  # on its way out already
        flushed = await bench.get("flushed")
        assert flushed == 5 - sent[64] > 0
        assert sent[65] == 5
        assert [await bench.get("departed"), await bench.get("departed", 1)] == [5, 5]
        assert [await bench.get("occupancy"), await bench.get("unknown")] == [0, 1]

    with_switch(width, model, test, periods=[30, 30, 30])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_with_a_port_that_is_not_there_is_unknown(width):
    """The cells of the VC are counted and take no place of the buffer."""
    model = Model([Vc(0, 0, 32, 1, 0, 64), Vc(0, 0, 33, 2, 0, 65)], ports=3, capacity=4)

    async def test(bench):
        wrong = Vc(0, 0, 32, 3, 0, 64)
        await write_policy(bench, 0, wrong)
        for _ in range(6):
            await bench.tick(Arrival(cell(32)))
            await bench.tick(Arrival(cell(33)))
        await bench.ticks(40)
        assert {d.port for d in bench.came_out} == {2}
        assert len(bench.came_out) == 6
        assert [await bench.get("unknown"), await bench.get("occupancy"), await bench.get("accepted")] == [6, 0, 0]

    with_switch(width, model, test, periods=[2, 2, 2])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_busy_vc_goes_to_its_new_port(width):
    """A VC whose queue never empties gets another port: from its next turn on it leaves there, every cell once."""
    model = Model([Vc(0, 0, 32, 1, 0, 64), Vc(0, 0, 33, 2, 0, 65)], ports=3, capacity=40)

    async def test(bench):
        judge = Judge(bench, model)
        for k in range(100):
            if k == 40:
                await judge.change(0, out_port=2)
            await judge.tick(Arrival(cell(32 + (k % 3 == 0), octet=k)) if k % 2 else None)
        for _ in range(200):
            await judge.tick()
        ports = [d.port for d in bench.came_out if d.as_header().vci == 64]
        first = ports.index(2)
        assert 5 < first < 25
        assert set(ports[:first]) == {1}
        assert set(ports[first:]) == {2}
        assert model.occupancy == 0

    with_switch(width, model, test, periods=[4, 4, 4])


@pytest.mark.parametrize("width", WIDTHS)
def test_epd_switched_on_in_the_middle_of_a_frame_spares_the_frame(width):
    """A frame that began under tail drop is queued to its last cell, though the threshold would refuse a new one."""
    model = Model([Vc(0, 0, 32, 1, 0, 64)], ports=3, capacity=12, epd_threshold=0)

    async def test(bench):
        judge = Judge(bench, model)
        cells = segment(Header(0, 32), bytes(200))
        for k, each in enumerate([*cells, *cells]):
            if k == 2:
                await judge.change(0, ppd=True, epd=True)
            await judge.tick(Arrival(each))
        for _ in range(40):
            await judge.tick()
        assert model.vcs[0].accepted == len(cells)
        assert model.vcs[0].drops == {Drop.EPD: len(cells)}
        assert [await bench.get("accepted"), await bench.get("dropped", 1)] == [len(cells)] * 2

    with_switch(width, model, test, periods=[2, 2, 2])


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_random_changes_of_policy_and_port(width):
    """Policies and ports that change at any time under load: every cell leaves once, where the model says."""
    rng = random.Random(11)
    vcs = [Vc(k % 3, 0, 32 + k, rng.randrange(3), 0, 64 + k) for k in range(8)]
    model = Model(vcs, ports=3, capacity=12, epd_threshold=6)
    frames = [[] for _ in vcs]

    async def test(bench):
        judge = Judge(bench, model)
        for step in range(600 if width == WIDE else 250):
            if step % 25 == 24:
                for k in rng.sample(range(8), 3):
                    ppd, epd = rng.random() < 0.7, rng.random() < 0.5
                    await judge.change(k, out_port=rng.randrange(3), ppd=ppd, epd=epd)
            k = rng.randrange(8)
            if not frames[k]:
                frames[k] = segment(Header(0, 32 + k), rng.randbytes(rng.choice([1, 40, 100, 300])))
            await judge.tick(Arrival(frames[k].pop(0), vcs[k].in_port) if rng.random() < 0.8 else None)
        for _ in range(80):
            await judge.tick()
        assert model.occupancy == 0
        assert await bench.get("occupancy") == 0

    with_switch(width, model, test, periods=[2.5, 4, 3.25])


# The end of the 48-bit time


@pytest.mark.parametrize("width", WIDTHS)
def test_time_wraps_under_load(width):
    """The same cells at the same distances across the end of the time."""
    results = []
    for start in (0, (1 << 48) - 25):

        async def test(bench, start=start):
            bench.now = (start - (1 << 30)) % (1 << 48)  # each port has sent, long ago
            for k in range(3):
                await bench.tick(Arrival(cell(32 + k)))
            await bench.ticks(20)
            bench.came_out.clear()
            bench.now = start
            for k in range(20):
                await bench.tick(Arrival(cell(32 + k % 3, octet=k)))
                bench.now %= 1 << 48
            for _ in range(80):
                await bench.tick()
                bench.now %= 1 << 48
            results.append([((d.tick - start) % (1 << 48), d.port, d.payload) for d in bench.came_out])

        with_switch(width, fan(3), test, periods=[3.5, 4, 5.25], delay=3)
    assert results[0] == results[1]
    assert len(results[0]) == 20


@pytest.mark.parametrize("idle", [(1 << 47) - 3, (1 << 47) + 5, 3 << 46])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_port_that_was_idle_for_long_is_no_slower(width, idle):
    """Half the range of the time and more may pass between two cells of a port."""

    async def test(bench):
        await bench.tick(Arrival(cell(32)))
        await bench.ticks(10)
        bench.now = (bench.now + idle) % (1 << 48)
        arrived = bench.now
        await bench.tick(Arrival(cell(32)))
        await bench.ticks(6)
        assert [d.tick for d in bench.came_out][1:] == [arrived + 2]

    with_switch(width, fan(3), test, periods=[4, 4, 4], delay=2)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_largest_buffer_goes_with_every_option(width):
    """Registers and values are wide enough for its counts."""
    Fragment.get(Switch(width=width, vcs=4, cells=MOST_CELLS, ports=2, options=(1 << len(OPTIONS)) - 1), None)
    with pytest.raises(ValueError, match=r"^cells must be from 1 to 65535, not 65536$"):
        Switch(cells=MOST_CELLS + 1)
