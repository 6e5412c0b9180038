"""Cell delay variation: shares of additional delays by the distribution, at both widths; cells that overtake."""

import math

import pytest

from bentpipe_hdl.link.control import LinkSettings, ReorderSettings, VariationSettings
from bentpipe_hdl.link.link import Link
from bentpipe_hdl.link.options.faults.control import LOSS_ONE
from bentpipe_hdl.link.options.variation.control import table_of
from bentpipe_hdl.ticks import TICK_PS
from models.cell import Cell, Header
from models.gilbert import Z99
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run

CELL = Cell(Header(vpi=1, vci=99), bytes(48))
MEAN = 40 * TICK_PS
KINDS = {
    "uniform": ({}, lambda t: t / (2 * MEAN)),
    "exponential": ({}, lambda t: 1 - math.exp(-t / MEAN)),
    "normal": (
        {"deviation_ps": round(8 * TICK_PS)},
        lambda t: 0.5 + 0.5 * math.erf((t - MEAN) / (8 * TICK_PS * 2**0.5)),
    ),
    "pareto": ({"shape": 3.0}, lambda t: 1 - (MEAN * 2 / 3 / t) ** 3),
}


def delays(settings, width, cells, apart, early=0.0):
    """The additional delay of each cell, which come so many ticks apart."""
    sent, found = [], []

    async def test(bench):
        await bench.reset()
        for number, (low, rise) in enumerate(table_of(settings)):
            await bench.set("variation", low | rise << 24, number)
        await bench.set("variation_seed", 12345)
        await bench.set("variation_early", round(early * LOSS_ONE))
        await bench.set("variation_enable", 1)
        await bench.set("path_merge", int(settings.order == "merged"))
        for _ in range(cells):
            sent.append(bench.now)
            await bench.tick(Arrival(CELL))
            bench.skip(apart - 1)
        await bench.ticks(3)
        found.extend(end - at - 1 for at, end in zip(sent, bench.ends, strict=True))
        found.append(await bench.get("variation_cells"))

    run(Link(width=width, path=1, variation=1), test)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_those_of_the_distribution(kind):
    """At the quartiles, within the 99 % interval."""
    more, share_below = KINDS[kind]
    settings = LinkSettings(variation=VariationSettings(distribution=kind, mean_ps=round(MEAN), **more))
    cells = 2500
    *found, _ = delays(settings, WIDTHS[0], cells, 5000)
    table = [low for low, _ in table_of(settings)]
    for at in (64, 128, 192):
        wanted = share_below((table[at] - 0.5) * TICK_PS)
        share = sum(delay < table[at] for delay in found) / cells
        assert abs(share - wanted) < Z99 * math.sqrt(wanted * (1 - wanted) / cells) + 0.5 / 256, (at, share, wanted)


def test_shares_are_those_of_a_histogram():
    """Each delay has its weight, but for the straight lines between points of the table."""
    weights = {10: 3.0, 25: 0.0, 40: 5.0, 90: 2.0}
    rows = tuple((round(ticks * TICK_PS), weight) for ticks, weight in weights.items())
    settings = LinkSettings(variation=VariationSettings(distribution="histogram", histogram=rows))
    cells = 2500
    *found, _ = delays(settings, WIDTHS[0], cells, 5000)
    for ticks, weight in weights.items():
        share, wanted = found.count(ticks) / cells, weight / 10
        assert abs(share - wanted) <= Z99 * math.sqrt(wanted * (1 - wanted) / cells) + 2 / 256, (ticks, share)
    assert min(found) == 10 and max(found) == 90


def test_both_widths_draw_the_same():
    settings = LinkSettings(variation=VariationSettings(distribution="exponential", mean_ps=round(MEAN)))
    wide, narrow = (delays(settings, width, 100, 3) for width in WIDTHS)
    assert wide == narrow and len(set(wide)) > 20


def test_a_share_of_the_cells_overtakes():
    reorder = ReorderSettings(share=0.01, by_ps=round(30 * TICK_PS))
    settings = LinkSettings(order="merged", delay_ps=round(100 * TICK_PS), reorder=reorder)
    cells = 4000
    *found, early = delays(settings, WIDTHS[0], cells, 5, early=0.01)
    assert {*found} <= {0, 30, 31, 32} and found.count(0) == early
    assert abs(early / cells - 0.01) < Z99 * math.sqrt(0.01 * 0.99 / cells)


def test_a_link_that_varies_has_a_path():
    with pytest.raises(ValueError, match="a link with variation has path, too"):
        Link(variation=1)
