"""Duplicated and misinserted cells and patterns of losses on a link: against the models, at both widths."""

import itertools
import math
import random

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.link.link import Link
from bentpipe_hdl.link.options.extra.control import OPTION as EXTRA
from bentpipe_hdl.link.options.faults.control import LOSS_ONE
from bentpipe_hdl.ticks import TICKS_A_SECOND
from models.cell import Cell, Header
from models.extra import duplicated, in_pattern
from models.gilbert import Z99
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run

SHAPE = {"faults": 1, "pattern": 1, "extra": 1}


def random_cells(count, busy, seed=1):
    """Cells with the ticks in which they come; a tick has one with probability ``busy``."""
    rng, tick = random.Random(seed), 0
    for _ in range(count):
        while rng.random() >= busy:
            tick += 1
        yield tick, Cell(Header(vpi=1, vci=rng.randrange(32, 65536), pti=rng.randrange(8)), rng.randbytes(48))
        tick += 1


def as_left(bench):
    return [(each.tick, each.header, each.payload) for each in bench.came_out]


@pytest.mark.parametrize("busy", [0.3, 0.9])
@pytest.mark.parametrize("width", WIDTHS)
def test_duplicates_leave_in_the_first_tick_without_a_cell(width, busy):
    cells = [*random_cells(300, busy)]
    model, missed = duplicated(cells, 0.25, 12345)
    found = []

    async def test(bench):
        await bench.reset()
        await bench.set("duplicate_seed", 12345)
        await bench.set("duplicate", LOSS_ONE // 4)
        for tick, cell in cells:
            await bench.ticks(tick - bench.now)
            await bench.tick(Arrival(cell))
        await bench.ticks(4)
        found.extend(as_left(bench))
        assert await bench.get("made_copies") == sum(left.copy for left in model)
        assert await bench.get("made_missed") == missed

    run(Link(width=width, **SHAPE), test)
    assert found == [(left.tick, int(left.cell.header), left.cell.payload) for left in model]
    assert sum(left.copy for left in model) > 20 and (missed > 10) == (busy > 0.5)


def misinserted(width, ticks, per_tick, vc=None, cells=()):
    """The misinserted cells of so many ticks: tick, header and payload; what else left."""
    found, settings = [], LinkSettings(misinsert_vc=vc)
    coming = dict(cells)

    async def test(bench):
        await bench.reset()
        await bench.set("misinsert_seed", 0x9E3779B97F4A7C15)
        await bench.apply(lambda csr: EXTRA.apply(csr, settings))
        await bench.apply(
            lambda csr: [
                setattr(csr, name, value)
                for name, value in EXTRA.values_of("misinsert", per_tick * float(TICKS_A_SECOND)).items()
            ]
        )
        for tick in range(ticks):
            await bench.tick(Arrival(coming[tick]) if tick in coming else None)
        found.extend(as_left(bench))
        found.append(await bench.get("made_misinserted"))

    run(Link(width=width, **SHAPE), test)
    return found


def test_both_widths_misinsert_the_same_cells_in_the_same_ticks():
    cells = [*random_cells(200, 0.5)]
    wide, narrow = (misinserted(width, 500, 1 / 20, cells=cells) for width in WIDTHS)
    assert wide == narrow
    ours = {(tick, int(cell.header), cell.payload) for tick, cell in cells}
    made = [each for each in wide[:-1] if each not in ours]
    assert len(made) == wide[-1] > 10
    of_vcs = {int(cell.header) & ~15 for _, cell in cells} | {0}
    assert all(header in of_vcs and payload == payload[:8] * 6 for _, header, payload in made)
    assert len({payload for _, _, payload in made}) == len(made)


def test_times_between_misinserted_cells_are_geometric():
    """The number of errors and the share of short times are within the 99 % interval."""
    ticks, rate = 60_000, 1 / 40
    *found, count = misinserted(WIDTHS[0], ticks, rate, vc="3/77")
    assert abs(count - ticks * rate) < Z99 * math.sqrt(ticks * rate)
    assert {header for _, header, _ in found} == {3 << 20 | 77 << 4}
    times = [after - before for (before, *_), (after, *_) in itertools.pairwise(found)]
    short = 1 - (1 - rate) ** 20
    share = sum(time <= 20 for time in times) / len(times)
    assert abs(share - short) < Z99 * math.sqrt(short * (1 - short) / len(times))


def test_no_cell_is_misinserted_in_an_outage():
    async def test(bench):
        await bench.reset()
        await bench.apply(lambda csr: setattr(csr, "outage", 1))
        await bench.apply(lambda csr: [setattr(csr, *each) for each in EXTRA.values_of("misinsert", 5000).items()])
        bench.skip(100_000)
        await bench.ticks(5)
        assert not bench.came_out

    run(Link(**SHAPE), test)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("lost", "of"), [(1, 7), (3, 10), (2, 2)])
def test_the_first_cells_of_each_so_many_are_lost(width, lost, of):
    cells, pattern, why = [*random_cells(60, 0.8)], in_pattern(lost, of), []

    async def test(bench):
        await bench.reset()
        await bench.set("pattern_of", of)
        await bench.set("pattern_lost", lost)
        for tick, cell in cells:
            await bench.ticks(tick - bench.now)
            await bench.tick(Arrival(cell))
        await bench.ticks(3)
        why.extend(as_left(bench))
        assert await bench.get("lost_pattern") == 60 - len(why)

    run(Link(width=width, **SHAPE), test)
    kept = [each for each, gone in zip(cells, pattern, strict=False) if not gone]
    assert why == [(tick, int(cell.header), cell.payload) for tick, cell in kept]


def test_a_link_that_makes_cells_has_no_memory_for_the_delay():
    with pytest.raises(ValueError, match="a link has extra or delay_cells, not both"):
        Link(extra=1, delay_cells=16)
