"""loopback: round trips of OAM cells of a VC, to its far end or to a switch on its way (I.610)."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.round_trips import RoundTrips
from bentpipe.apps.settings import SPAN, TIMES, ApplicationSpec, AppSetting, Column, FlowRequest, Report
from bentpipe.declarations import TEXT

__all__ = ["APPLICATION", "LoopbackCells"]


@final
class LoopbackCells(RoundTrips):
    """A source of loopback cells: one each ``interval_ps``, timed until it is back.

    Parameters
    ----------
    interval_ps, count, duration_ps : int
        As for :class:`~bentpipe.apps.round_trips.RoundTrips`.
    """

    def __init__(self, interval_ps: int, count: int = 0, duration_ps: int = 0) -> None:
        super().__init__("loopback", 48, interval_ps, count, duration_ps)

    def facts(self, now_ps: int) -> dict[str, Fact]:
        """Return the application's counts; the flow knows how many cells are lost."""
        counts: dict[str, Fact] = {"loopback_sent": self.sent, "loopback_returned": self.came}
        return counts | self.times()


def _make(given: FlowRequest) -> LoopbackCells:
    v = given.values
    return LoopbackCells(v["interval"], v["count"] or 0, given.duration_ps)


APPLICATION: Final = ApplicationSpec(
    "loopback",
    "round trips of a VC's loopback cells (I.610) to its far end or a switch, at fixed times; hosts need `oam = true`",
    (
        AppSetting("interval", SPAN, 10**12, "time between cells", word="period", unit="s"),
        AppSetting("count", TIMES, None, "number of cells; default: endless", word="repeats", ends=True),
        AppSetting(
            "at",
            TEXT,
            None,
            "switch that returns the cells (PTI 4), by name or location ID; default: the sink (PTI 5)",
        ),
    ),
    _make,
    protocols=("oam",),
    takes=("duration",),
    report=Report(
        "Loopback",
        (
            Column("loopback_sent", "", "loopback cells sent", "sent"),
            Column("loopback_returned", "", "cells that came back within 5 s", "returned"),
            Column("loopback_lost", "", "cells that did not come back in 5 s", "not back in 5 s"),
            Column("loopback_min_ps", "ps", "shortest round trip", "min"),
            Column("loopback_mean_ps", "ps", "their mean", "mean"),
            Column("loopback_max_ps", "ps", "the longest", "max"),
            Column("loopback_mdev_ps", "ps", "their standard deviation", "mdev"),
        ),
    ),
)
