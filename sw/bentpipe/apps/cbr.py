"""Constant rate: blocks at fixed times."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.blocks import BLOCK, LATE, LATE_BLOCKS, PERIODIC, BlockSource, blocks_fit, periodic, positive
from bentpipe.apps.settings import OCTETS, SPAN, TIMES, ApplicationSpec, AppSetting, FlowRequest, Problem, Test
from bentpipe.declarations import REQUIRED
from bentpipe_hdl.units import RATE

__all__ = ["APPLICATION", "Cbr"]

_PS_PER_S: Final = 1_000_000_000_000


@final
class Cbr(BlockSource):
    """Constant rate: a block of ``block_octets`` every ``period_ps``, ``count`` of them at once."""

    def __init__(
        self,
        block_octets: int,
        period_ps: int,
        count: int = 1,
        size_octets: int | None = None,
        duration_ps: int = 0,
        skip_late: bool = False,
    ) -> None:
        super().__init__("cbr", size_octets, duration_ps, skip_late)
        positive("block_octets", block_octets)
        positive("period_ps", period_ps)
        positive("count", count)
        self.block_octets = block_octets
        self.period_ps = period_ps
        self.count = count
        self.drawn = 0

    def draw(self) -> int:
        return self.block_octets

    def after(self, due_ps: int) -> int:
        self.drawn += 1
        if self.drawn == self.count:
            self.drawn = 0
            return due_ps + self.period_ps
        return due_ps


def _check(given: FlowRequest) -> Problem:
    period, rate = given.values["period"], given.values["rate"]
    if period is None and rate is None:
        return "", "cbr needs 'period' or 'rate'"
    if period is not None and rate is not None:
        return "rate", "give either 'period' or 'rate'"
    return blocks_fit(given)


def _make(given: FlowRequest) -> Cbr:
    v = given.values
    period = v["period"] or v["block"] * v["count"] * 8 * _PS_PER_S // v["rate"]
    return Cbr(v["block"], period, v["count"], given.size, given.duration_ps, v["late"] == "skip")


APPLICATION: Final = ApplicationSpec(
    "cbr",
    "constant rate: blocks at fixed times",
    (
        AppSetting("block", OCTETS, REQUIRED, "octets a block", word=BLOCK[0], also=BLOCK[1]),
        AppSetting("period", SPAN, None, "time between blocks; give this or the rate", unit="us"),
        AppSetting("rate", RATE, None, "rate of the blocks' octets, instead of the period"),
        AppSetting("count", TIMES, 1, "blocks each period"),
        LATE,
    ),
    _make,
    _check,
    tests=(
        Test("cbr", "a block at fixed times; with bounds, random sizes or random times", PERIODIC, periodic),
        Test("burst", "`cbr` that leaves late blocks out", PERIODIC, periodic, {"late": "skip"}),
        Test("burstq", "`cbr` that queues late blocks", PERIODIC, periodic, {"late": "queue"}),
    ),
    report=LATE_BLOCKS,
)
