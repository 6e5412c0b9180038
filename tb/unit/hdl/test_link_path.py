"""A link's delay changes while cells are under way: when each arrives, by the definition, at both widths."""

import random
from fractions import Fraction

import pytest

from bentpipe_hdl.link.link import Link
from models.cell import Cell, Header
from models.path import MovingPath
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run

SPACING = Fraction(7, 4) + Fraction(1, 65536)


def random_cell(rng):
    return Cell(Header(vpi=1, vci=rng.randrange(32, 65536)), rng.randbytes(48))


@pytest.mark.parametrize("begin", [0, (1 << 48) - 500])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_cells_arrive_as_the_definition_says(width, merged, begin):
    """Delays that shrink and grow at random, cells as near as a tick to each other, the end of time among them."""
    rng = random.Random(merged)
    model, wanted, found = MovingPath(merged, SPACING), [], []

    async def test(bench):
        bench.now = begin
        await bench.reset()
        await bench.set("path_merge", int(merged))
        await bench.set("path_spacing", int(SPACING * 65536))
        delay = 1
        for _ in range(300):
            if rng.random() < 0.15:
                delay = rng.choice((1, 5, 30, 100, 140))
                await bench.set("delay", delay)
            cell = random_cell(rng) if rng.random() < 0.5 else None
            if cell:
                wanted.append((cell.payload, model.send(bench.now, delay) % (1 << 48)))
            await bench.tick(Arrival(cell) if cell else None)
        await bench.ticks(3)
        found.extend(zip((cell.payload for cell in bench.came_out), bench.ends, strict=True))
        assert await bench.get("path_held") == model.held > 10
        assert await bench.get("path_overtook") == model.overtook
        assert (model.overtook > 10) == merged

    run(Link(width=width, path=1), test)
    assert found == wanted


def test_a_path_that_moves_and_a_memory_for_the_delay_do_not_go_together():
    with pytest.raises(ValueError, match="a link has path or delay_cells, not both"):
        Link(path=1, delay_cells=16)
