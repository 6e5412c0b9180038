"""Blocks of random sizes at random times."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.blocks import BLOCK, LATE, LATE_BLOCKS, PERIODIC, BlockSource, blocks_fit, periodic, positive
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.settings import BOUNDS, OCTETS, SPAN, ApplicationSpec, AppSetting, FlowRequest, Test
from bentpipe.declarations import REQUIRED

__all__ = ["APPLICATION", "RandomBlocks"]


@final
class RandomBlocks(BlockSource):
    """Blocks whose sizes and whose gaps (from one to the next) are drawn uniformly between bounds, these included."""

    def __init__(
        self,
        block_octets: tuple[int, int],
        gap_ps: tuple[int, int],
        draws: RandomStream,
        size_octets: int | None = None,
        duration_ps: int = 0,
        skip_late: bool = False,
    ) -> None:
        super().__init__("random", size_octets, duration_ps, skip_late)
        for name, (low, high) in (("block_octets", block_octets), ("gap_ps", gap_ps)):
            positive(name, low)
            if high < low:
                raise ValueError(f"{name} has a lower bound greater than the upper bound: {low} and {high}")
        self.low_octets, self.high_octets = block_octets
        self.low_ps, self.high_ps = gap_ps
        self.draws = draws

    def draw(self) -> int:
        return self.draws.uniform(self.low_octets, self.high_octets)

    def after(self, due_ps: int) -> int:
        return due_ps + self.draws.uniform(self.low_ps, self.high_ps)


def _make(given: FlowRequest) -> RandomBlocks:
    v = given.values
    draws = RandomStream(given.seed, given.number)
    return RandomBlocks(v["block"], v["gap"], draws, given.size, given.duration_ps, v["late"] == "skip")


APPLICATION: Final = ApplicationSpec(
    "random",
    "blocks of random sizes at random times, drawn uniformly",
    (
        AppSetting("block", OCTETS, REQUIRED, "bounds of the size of a block", BOUNDS, word=BLOCK[0], also=BLOCK[1]),
        AppSetting("gap", SPAN, REQUIRED, "bounds of the time from one block to the next", BOUNDS),
        LATE,
    ),
    _make,
    blocks_fit,
    tests=(Test("random", "`cbr` by the name that fits bounds", PERIODIC, periodic),),
    report=LATE_BLOCKS,
)
