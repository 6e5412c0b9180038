"""Sessions at random times, of some blocks each, whose sizes, number and distance have distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from bentpipe.apps.blocks import BLOCK, LATE, LATE_BLOCKS, BlockSource
from bentpipe.apps.draws import Distribution, RandomStream
from bentpipe.apps.settings import DRAWN, OCTETS, SPAN, TIMES, ApplicationSpec, AppSetting, FlowRequest, Problem
from bentpipe.declarations import REQUIRED
from bentpipe.ip.udp import STAMP_OCTETS

__all__ = ["APPLICATION", "SessionModel", "Sessions"]

_LEAST_PS: Final = 1_000_000
"""From one session to the next: simulated time goes on."""


@final
@dataclass(frozen=True)
class SessionModel:
    """The random quantities of sessions.

    Parameters
    ----------
    block, gap : Distribution
        Octets of a block, and from one session to the next in ps.
    count : Distribution or None
        Blocks of a session; None: one.
    """

    block: Distribution
    gap: Distribution
    count: Distribution | None = None


@final
class Sessions(BlockSource):
    """At the begin of each session its blocks are due, all at once; sizes, number and the time to the next are
    drawn."""

    def __init__(
        self,
        model: SessionModel,
        draws: RandomStream,
        size_octets: int | None = None,
        duration_ps: int = 0,
        skip_late: bool = False,
    ) -> None:
        super().__init__("sessions", size_octets, duration_ps, skip_late)
        self.model = model
        self.draws = draws
        self.more: int = 0  # blocks of this session that are still to be drawn

    def begin(self, now_ps: int) -> int:
        self._open()
        return now_ps

    def _open(self) -> None:
        count = self.model.count
        self.more = 1 if count is None else self.draws.draw(count)

    def draw(self) -> int:
        return self.draws.draw(self.model.block)

    def after(self, due_ps: int) -> int:
        self.more -= 1
        if self.more > 0:
            return due_ps
        self._open()
        return due_ps + max(_LEAST_PS, self.draws.draw(self.model.gap))


def _check(given: FlowRequest) -> Problem:
    if given.protocol == "udp" and given.values["block"].lowest() < STAMP_OCTETS:
        return (
            "block",
            f"over UDP a block has {STAMP_OCTETS} octets and more, as it carries a stamp: give it a least size",
        )
    return None


def _make(given: FlowRequest) -> Sessions:
    v = given.values
    draws = RandomStream(given.seed, given.number)
    model = SessionModel(v["block"], v["gap"], v["count"])
    return Sessions(model, draws, given.size, given.duration_ps, v["late"] == "skip")


APPLICATION: Final = ApplicationSpec(
    "sessions",
    "sessions at random times, of some blocks each; sizes, number and distance drawn from distributions",
    (
        AppSetting("block", OCTETS, REQUIRED, "octets of a block", DRAWN, word=BLOCK[0], also=BLOCK[1]),
        AppSetting("gap", SPAN, REQUIRED, "from one session to the next", DRAWN),
        AppSetting("count", TIMES, None, "blocks of a session; one unless given", DRAWN),
        LATE,
    ),
    _make,
    _check,
    report=LATE_BLOCKS,
)
