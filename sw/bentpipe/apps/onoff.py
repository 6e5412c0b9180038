"""Blocks at a constant rate while on, nothing while off."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.blocks import BLOCK, LATE, LATE_BLOCKS, BlockSource, blocks_fit, positive
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.settings import OCTETS, SPAN, ApplicationSpec, AppSetting, Column, FlowRequest, Report, Test
from bentpipe.declarations import REQUIRED
from bentpipe_hdl.units import RATE

__all__ = ["APPLICATION", "TIMES", "OnOff"]

TIMES: Final = ("exponential", "fixed")
"""How the on and off times are chosen."""

_PS_PER_S: Final = 1_000_000_000_000


@final
class OnOff(BlockSource):
    """Blocks at ``rate_bps`` while on, nothing while off; it begins on.

    Parameters
    ----------
    on_ps, off_ps : int
        How long, or for exponential times how long in the mean.
    times : str
        One of :data:`TIMES`.
    """

    def __init__(
        self,
        block_octets: int,
        rate_bps: int,
        on_ps: int,
        off_ps: int,
        times: str,
        draws: RandomStream,
        size_octets: int | None = None,
        duration_ps: int = 0,
        skip_late: bool = False,
    ) -> None:
        super().__init__("onoff", size_octets, duration_ps, skip_late)
        positive("block_octets", block_octets)
        positive("rate_bps", rate_bps)
        positive("on_ps", on_ps)
        positive("off_ps", off_ps)
        if times not in TIMES:
            raise ValueError(f"times must be one of {', '.join(TIMES)}, not {times!r}")
        self.block_octets = block_octets
        self.period_ps = max(1, block_octets * 8 * _PS_PER_S // rate_bps)
        self.on_ps = on_ps
        self.off_ps = off_ps
        self.exponential = times == "exponential"
        self.draws = draws
        self.off_at = 0
        self.bursts = 0

    def begin(self, now_ps: int) -> int:
        self._on(now_ps)
        return now_ps

    def _on(self, now_ps: int) -> None:
        self.bursts += 1
        self.off_at = now_ps + (self.draws.exponential(self.on_ps) if self.exponential else self.on_ps)

    def draw(self) -> int:
        return self.block_octets

    def after(self, due_ps: int) -> int:
        due = due_ps + self.period_ps
        while due >= self.off_at:
            due = self.off_at + (self.draws.exponential(self.off_ps) if self.exponential else self.off_ps)
            self._on(due)
        return due

    def facts(self, now_ps: int) -> dict[str, Fact]:
        facts = super().facts(now_ps)
        facts["bursts"] = self.bursts
        return facts


def _make(given: FlowRequest) -> OnOff:
    v = given.values
    draws = RandomStream(given.seed, given.number)
    skip = v["late"] == "skip"
    return OnOff(v["block"], v["rate"], v["on"], v["off"], v["times"], draws, given.size, given.duration_ps, skip)


APPLICATION: Final = ApplicationSpec(
    "onoff",
    "blocks at a constant rate while on, nothing while off",
    (
        AppSetting("block", OCTETS, REQUIRED, "octets a block", word=BLOCK[0], also=BLOCK[1]),
        AppSetting("rate", RATE, REQUIRED, "rate of the blocks' octets while on", unit="b/s"),
        AppSetting("on", SPAN, REQUIRED, "length of an on time (exponential: mean)", unit="s"),
        AppSetting("off", SPAN, REQUIRED, "length of an off time", unit="s"),
        AppSetting("times", TIMES, TIMES[0], "distribution of the times"),
        LATE,
    ),
    _make,
    blocks_fit,
    tests=(Test("onoff", "blocks at a rate while on, nothing while off"),),
    report=Report(
        LATE_BLOCKS.title,
        (*LATE_BLOCKS.columns, Column("bursts", "", "number of on times")),
        LATE_BLOCKS.shown_with,
    ),
)
