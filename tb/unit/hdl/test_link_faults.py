"""Outages and bursts of errors in the link's RTL: exact where lengths are, the same at both widths, when it is due."""

import random

import pytest

from bentpipe_hdl.bit_errors import scale_of, scale_of_length
from bentpipe_hdl.link.control import LOSS_ONE
from bentpipe_hdl.link.link import Link
from models.cell import Cell, Header
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run

NEVER = (1 << 48) - 1


def random_cell(rng):
    return Cell(Header(vpi=1, vci=rng.randrange(32, 65536)), rng.randbytes(48))


async def turns_on(bench, good, bad, *, cells, loss=(0.0, 0.0), bad_ber=0.0, ber=0.0, seed=7, length=0):
    """States of these mean lengths; the first, good, goes on for ``length``."""
    for k, (mean, share) in enumerate(zip((good, bad), loss, strict=True)):
        mantissa, shift = scale_of_length(mean)
        await bench.set("length_mantissa", mantissa, k)
        await bench.set("length_shift", shift, k)
        await bench.set("loss", round(share * LOSS_ONE), k)
    for prefix, ratio in (("", ber), ("bad_", bad_ber)):
        if ratio:
            mantissa, shift = scale_of(ratio)
            await bench.set(f"{prefix}error_mantissa", mantissa)
            await bench.set(f"{prefix}error_shift", shift)
            await bench.set(f"{prefix}seed", seed + len(prefix))
            await bench.set(f"{prefix}gap", 50)
            await bench.set(f"{prefix}error_enable", 1)
    await bench.set("length_seed", seed + 1)
    await bench.set("loss_seed", seed + 2)
    await bench.set("burst_cells", int(cells))
    await bench.set("length", length)
    await bench.set("burst_enable", 1)


@pytest.mark.parametrize("width", WIDTHS)
def test_states_of_one_cell_take_turns(width):
    """Two cells are good, the one that finds the setting and the one behind it; then every other is lost."""
    rng = random.Random(1)

    async def test(bench):
        await bench.reset()
        await turns_on(bench, 1, 1, cells=True, loss=(0, 1), length=1)
        cells = [random_cell(rng) for _ in range(20)]
        for cell in cells:
            await bench.tick(Arrival(cell))
            await bench.ticks(rng.randrange(3))
        await bench.ticks(3)
        assert [out.payload for out in bench.came_out] == [cell.payload for cell in [cells[0], *cells[1::2]]]
        assert await bench.get("lost_burst") == await bench.get("bad_cells") == 9
        assert await bench.get("bad_states") == 10

    run(Link(width=width, faults=1), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_states_of_one_tick_take_turns_whether_cells_come_or_not(width):
    rng = random.Random(2)

    async def test(bench):
        await bench.reset()
        await turns_on(bench, 1, 1, cells=False, loss=(0, 1), length=4)
        began, sent = bench.now, []
        for _ in range(60):
            cell = random_cell(rng) if rng.random() < 0.5 else None
            if cell and (bench.now <= began + 4 or (bench.now - began) % 2 == 0):
                sent.append(cell.payload)
            await bench.tick(Arrival(cell) if cell else None)
        await bench.ticks(3)
        assert [out.payload for out in bench.came_out] == sent

    run(Link(width=width, faults=1), test)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("cells", "seen"), [(False, [0, 0, 1, 1, 0, 0, 1, 1]), (True, [0, 1, 0, 1, 0, 1, 0, 1])]
)  # a cell comes in each second tick
def test_lengths_that_become_cells_or_times_hold_for_the_present_state(width, cells, seen):
    """States of one step: the present one ends with the second cell, or tick, from then on, whatever was left of it."""

    async def test(bench):
        bench.now = 1000
        await bench.reset()
        await turns_on(bench, 1, 1, cells=cells, length=1 << 20)
        for _ in range(5):
            await bench.tick(Arrival(random_cell(random.Random(1))))
        await bench.set("burst_cells", int(not cells))
        if cells:
            assert not bench.ctx.get(bench.node.status.idle)
        found = []
        for k in range(len(seen)):
            await bench.tick(None if k % 2 else Arrival(random_cell(random.Random(k))))
            found.append(await bench.get("bad"))
        assert found == seen

    run(Link(width=width, faults=1), test)


@pytest.mark.parametrize("delay_cells", [0, 16])
def test_a_state_that_time_ends_is_due_then(delay_cells):
    """Whoever drives the node may leave out the ticks before: across the end of time, too."""

    async def test(bench):
        bench.now = (1 << 48) - 300
        await bench.reset()
        bench.ctx.set(bench.node.time.now, bench.now)
        assert bench.ctx.get(bench.node.status.due) == NEVER
        await turns_on(bench, 1, 1, cells=False, length=200)
        assert bench.ctx.get(bench.node.status.due) <= bench.now
        began = bench.now
        await bench.tick()
        for k in range(10):
            due = bench.ctx.get(bench.node.status.due)
            assert due == (began + 200 + k) % (1 << 48) - (began + 200 + k == NEVER)
            assert await bench.get("bad") == k % 2
            bench.now = due
            await bench.tick()
        await bench.set("burst_enable", 0)
        assert bench.ctx.get(bench.node.status.due) == NEVER

    run(Link(faults=1, delay_cells=delay_cells), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_an_outage_loses_every_cell_and_nothing_else(width):
    rng = random.Random(3)

    async def test(bench):
        await bench.reset()
        kept = []
        for k in range(30):
            if k in (10, 20):
                await bench.set("outage", int(k == 10))
            cell = random_cell(rng)
            if not 10 <= k < 20:
                kept.append(cell.payload)
            await bench.tick(Arrival(cell))
        await bench.ticks(3)
        assert [out.payload for out in bench.came_out] == kept
        assert [await bench.get(name) for name in ("cells", "lost_outage", "lost_burst", "dropped")] == [30, 10, 0, 0]

    run(Link(width=width, faults=1), test)


@pytest.mark.parametrize("cells", [True, False])
def test_both_datapaths_lose_and_hit_the_same(cells):
    """Short states, errors in both, losses in both; what is gone says why."""
    found = []
    for width in WIDTHS:

        async def test(bench):
            rng, gaps = random.Random(4), random.Random(5)
            await bench.reset()
            await turns_on(bench, 7.5, 3.2, cells=cells, loss=(0.05, 0.4), ber=1e-3, bad_ber=9e-4, seed=99, length=5)
            for k in range(500):
                if k == 250:
                    await bench.set("loss", LOSS_ONE // 10, 1)
                await bench.tick(Arrival(random_cell(rng)))
                await bench.ticks(gaps.choice((0, 0, 1, 4)))
            await bench.ticks(3)
            names = ("cells", "errored", "error_bits", "bad", "bad_cells", "bad_states", "lost_burst")
            message = {name: await bench.get(name) for name in names}
            found.append((message, [(out.tick, out.header, out.payload) for out in bench.came_out]))

        run(Link(width=width, faults=1), test)
    assert found[0] == found[1]
    (named, came_out), _ = found
    assert named["cells"] == 500 == len(came_out) + named["lost_burst"]
    assert 80 < named["bad_cells"] < 220 and named["lost_burst"] > 30 and named["error_bits"] > 80


def test_errors_of_one_state_rest_while_the_other_goes_on():
    """Both processes hit what a link with only one of them hits, of the bits that passed in their states."""
    rng = random.Random(6)
    cells = [random_cell(rng) for _ in range(240)]

    def errors(ber, bad_ber, good, bad):
        hit = []

        async def test(bench):
            await bench.reset()
            await turns_on(bench, good, bad, cells=True, ber=ber, bad_ber=bad_ber, length=0)
            for cell in cells:
                await bench.tick(Arrival(cell))
            await bench.ticks(3)
            for cell, out in zip(cells, bench.came_out, strict=True):
                hit.append(int.from_bytes(cell.payload, "big") ^ int.from_bytes(out.payload, "big"))

        run(Link(faults=1), test)
        return hit

    both = errors(1e-3, 8e-4, 1, 1)  # the first cell passes unhurt, then they take turns, the good state first
    good = errors(1e-3, 0, 1e12, 1)  # all good but the third cell
    bad = errors(0, 8e-4, 1, 1e12)  # all bad from the third cell on
    assert both[1::2] == [good[1], *good[3:]][: len(both[1::2])]
    assert both[2::2] == bad[2 : 2 + len(both[2::2])]
    assert sum(map(bool, both[1::2])) > 10 < sum(map(bool, both[2::2]))
