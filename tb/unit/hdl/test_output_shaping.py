"""Shaping at a switch's output: what leaves conforms to the VC's contract, and at once when it does."""

import random
from fractions import Fraction

import pytest

from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.switch import Switch
from models.cell import Cell, Header
from models.gcra import LeakyBucket
from models.shaper import Shaper, burst_tolerance
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_shaping import units

VCS, PORTS, CELLS = 8, 3, 200


def shaped(width, contracts, test, *, periods=(4.0, 2.5, 6.0), delay=5, seed=1, options=("shape",)):
    """Run ``test`` with a switch whose VC k goes from port 0 to port ``k % 3``, with its buckets as (I, L)."""

    async def whole(bench):
        await bench.reset()
        await bench.set("processing_delay", delay)
        for port, period in enumerate(periods):
            await bench.set("period", units(period), port)
        for vc in range(VCS):
            await bench.set("vc_policy", {"limit": 0xFFFF, "port": vc % PORTS, "enabled": 1}, vc)
            await bench.set("vc_header", {"vci": 100 + vc}, vc)
            for k, (increment, limit) in enumerate(contracts.get(vc, ())):
                await bench.set("shape_limit", units(limit), 2 * vc + k)
                await bench.set("shape_rate", {"increment": units(increment), "enabled": 1}, 2 * vc + k)
        await bench.apply(lookup_table(VCS, {(0, 0, 100 + vc): vc for vc in range(VCS)}).write)
        await test(bench)

    run(Switch(width=width, vcs=VCS, cells=CELLS, ports=PORTS, options=options_word(options)), whole, seed)


def cell(vc):
    return Arrival(Cell(Header(0, 100 + vc), bytes(48)))


def times(bench):
    """Ticks in which each VC's cells left."""
    found = {}
    for departure in bench.came_out:
        found.setdefault(departure.as_header().vci - 100, []).append(departure.tick)
    return found


def contract(rng):
    peak = Fraction(rng.randrange(3 << 16, 30 << 16), 65536)
    sustained = Fraction(units(peak * rng.choice([1, 2, 5])), 65536)
    cdvt = rng.choice([0, 3, 20])
    return (peak, cdvt), (sustained, burst_tolerance(rng.choice([1, 2, 6]), peak, sustained) + cdvt)


def test_what_leaves_conforms_at_both_widths_alike():
    """Random cells of shaped VCs and of two others at three ports; none is early, all leave in the end."""
    rng = random.Random("output")
    contracts = {vc: contract(rng) for vc in range(VCS - 2)}
    script = [rng.randrange(VCS) if rng.random() < 0.3 else None for _ in range(250)]
    found = []
    for width in WIDTHS:

        async def test(bench):
            for vc in script:
                await bench.tick(None if vc is None else cell(vc))
            await bench.ticks(900)
            found.append(([(d.tick, d.header) for d in bench.came_out], await bench.get("occupancy")))
            for vc, ticks in times(bench).items():
                for size in contracts.get(vc, ()):
                    bucket = LeakyBucket(*size)
                    assert all(bucket.conforms(tick) for tick in ticks), (vc, size)

        shaped(width, contracts, test)
    wide, narrow = found
    assert wide == narrow
    assert wide[1] == 0
    assert len(wide[0]) == sum(vc is not None for vc in script)


@pytest.mark.parametrize("mbs", [1, 5])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_alone_at_its_port_leaves_in_the_first_tick_that_conforms(width, mbs):
    """However long the port has waited: a tick earlier the cell would not conform, or the line not be free."""
    peak, sustained = Fraction(units("6.3"), 65536), Fraction(units("31.7"), 65536)
    buckets = (peak, Fraction(0)), (sustained, burst_tolerance(mbs, peak, sustained))

    async def test(bench):
        for _ in range(12):
            await bench.tick(cell(0))
        while await bench.get("occupancy"):
            await bench.ticks(20)
        await bench.ticks(3)
        model, ticks = Shaper([*buckets]), times(bench)[0]
        assert len(ticks) == 12
        for k, tick in enumerate(ticks):
            if k:
                assert tick == model.due(ticks[k - 1] + 1)
            model.sent(tick)

    shaped(width, {0: buckets}, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_held_vcs_keep_others_neither_waiting_nor_faster_than_the_line(width):
    """Port 0 has a VC that waits for long; another one's cells leave at the line's rate meanwhile, after the switch's
    delay, and no closer than that."""

    async def test(bench):
        for _ in range(2):
            await bench.tick(cell(0))
        await bench.ticks(60)
        start = bench.now
        for _ in range(6):
            await bench.tick(cell(3))
        await bench.ticks(250)
        found = times(bench)
        assert found[3] == [start + 5 + 1 + 4 * k for k in range(6)]  # VC 0 is asked first
        assert found[0][1] - found[0][0] == 200

    shaped(width, {0: ((200, 0),)}, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_many_vcs_that_wait_do_not_hold_a_full_line_up(width):
    """Ports 0 and 2 have VCs that wait; port 1 is full, and keeps its rate."""

    async def test(bench):
        for vc in (0, 3, 6, 2, 5, 0, 3, 6, 2, 5):
            await bench.tick(cell(vc))
        for _ in range(90):
            await bench.tick(cell(1))
        await bench.ticks(3)
        ticks = [tick for tick in times(bench)[1] if tick > 30]
        assert len(ticks) > 25
        for k, tick in enumerate(ticks):
            assert abs(tick - ticks[0] - 2.5 * k) <= 3

    rates = {vc: ((increment, 0),) for vc, increment in ((0, 41), (3, 43), (6, 47), (2, 53), (5, 59))}
    shaped(width, rates, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_that_ends_leaves_without_waiting_for_its_contract_but_in_its_turn(width):
    async def test(bench):
        for _ in range(5):
            await bench.tick(cell(0))
        await bench.ticks(20)
        await bench.set("vc_policy", 0, 0)
        await bench.ticks(250)
        assert await bench.get("occupancy") == 0
        assert await bench.get("flushed") == 4
        assert len(bench.came_out) == 1

    shaped(width, {0: ((200, 0),)}, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_an_idle_switch_that_holds_cells_may_be_skipped(width):
    """While it is idle, the ticks until it is due may be left out."""
    results = []
    for skips in (False, True):

        async def test(bench, skips=skips):
            for vc in (0, 3, 0, 3, 4, 4, 0):
                await bench.tick(cell(vc))
            left = 0
            while bench.now < 400:
                ctx, status = bench.ctx, bench.node.status
                due = ctx.get(status.due)
                if skips and ctx.get(status.idle) and due > bench.now:
                    left += min(due, 400) - bench.now
                    bench.skip(min(due, 400) - bench.now)
                await bench.tick()
            results.append([(d.tick, d.header) for d in bench.came_out])
            assert not skips or not bench.wide or left > 100

        shaped(width, {0: ((90, 0),), 3: ((70, 0),), 4: ((33, 10),)}, test)
    assert results[0] == results[1]
    assert len(results[0]) == 7


@pytest.mark.parametrize("width", WIDTHS)
def test_a_held_vc_that_moves_to_another_port_is_not_waited_for(width):
    """Three VCs wait at a port that sleeps. The first moves away when it is served; the third leaves when it is due."""

    async def test(bench):
        for vc in (0, 3, 6, 0, 3, 6):
            await bench.tick(cell(vc))
        await bench.ticks(30)
        await bench.set("vc_policy", {"limit": 0xFFFF, "port": 1, "enabled": 1}, 0)
        await bench.ticks(280)
        found = times(bench)
        assert 60 <= found[6][1] - found[6][0] <= 63
        assert 120 <= found[3][1] - found[3][0] <= 123
        assert 200 <= found[0][1] - found[0][0] <= 203

    shaped(width, {vc: ((increment, 0),) for vc, increment in ((0, 200), (3, 120), (6, 60))}, test)
