"""Application ``my_model``: blocks of one size at random times.

Change :class:`MyModel` (when the next block is due, and how long it is) and the settings in ``APPLICATION``.
``bentpipe help apps --plugin my_model.py`` shows what users see of it.
"""

from __future__ import annotations

from typing import Final

from bentpipe.apps.blocks import LATE_BLOCKS, BlockSource, blocks_fit
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.settings import OCTETS, SPAN, ApplicationSpec, AppSetting, FlowRequest
from bentpipe.declarations import REQUIRED

__all__ = ["APPLICATION", "MyModel"]


class MyModel(BlockSource):
    """Blocks of one size; the time from one to the next is exponentially distributed (a Poisson process)."""

    def __init__(self, given: FlowRequest) -> None:
        super().__init__("my_model", given.size, given.duration_ps, skip_late=False)
        self.block_octets: int = given.values["block"]
        self.gap_ps: int = given.values["gap"]
        self.draws = RandomStream(given.seed, given.number)  # from the experiment's seed and the flow's number alone

    def begin(self, now_ps: int) -> int:
        return now_ps + self.draws.exponential(self.gap_ps)

    def draw(self) -> int:
        return self.block_octets

    def after(self, due_ps: int) -> int:
        return due_ps + self.draws.exponential(self.gap_ps)


APPLICATION: Final = ApplicationSpec(
    "my_model",
    "blocks of one size at random times",
    (
        AppSetting("block", OCTETS, REQUIRED, "octets of a block"),
        AppSetting("gap", SPAN, REQUIRED, "mean time from one block to the next"),
    ),
    MyModel,
    blocks_fit,
    report=LATE_BLOCKS,
)
