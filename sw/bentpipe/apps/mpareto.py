"""Sessions that begin at random and last for Pareto distributed times, each with a block an interval: M/Pareto."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.blocks import BLOCK, LATE_BLOCKS
from bentpipe.apps.count_source import CountSource
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.fgn import HURST, check_interval
from bentpipe.apps.settings import OCTETS, SPAN, ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report
from bentpipe.declarations import REQUIRED
from bentpipe_hdl.units import COUNT, NUMBER

__all__ = ["APPLICATION", "Sessions", "mean_length"]


def _zeta(s: float) -> float:
    """Return Riemann's zeta function for s > 1, by the formula of Euler and Maclaurin."""
    n = 20
    total = sum(k**-s for k in range(1, n))
    return (
        total
        + n ** (1 - s) / (s - 1)
        + n**-s / 2
        + s * n ** (-s - 1) / 12
        - s * (s + 1) * (s + 2) * n ** (-s - 3) / 720
    )


def mean_length(least: int, shape: float) -> float:
    """Return the mean of a session's intervals: those of a Pareto distributed time from ``least`` on, rounded down."""
    beyond = _zeta(shape) - sum(i**-shape for i in range(1, least + 1))
    return least + least**shape * beyond


@final
class Sessions(CountSource):
    """In each interval a block of each session that is under way.

    Sessions begin as a Poisson process. One has ``least`` (1 - u) ** (-1 / shape) intervals, rounded down.
    With a shape from 1 to 2 the number under way is long-range dependent: H = (3 - shape) / 2 (Cox 1984). It begins as
    it is in the long run.

    Members
    -------
    sessions : float
        Under way in the mean.
    shape : float
    least : int
        Intervals of the shortest session.
    mean : float
        Intervals of a session.
    """

    def __init__(self, given: FlowRequest) -> None:
        v = given.values
        super().__init__("mpareto", v["block"], v["interval"], given.size, given.duration_ps)
        self.sessions: float = v["sessions"]
        self.shape: float = 3.0 - 2.0 * v["hurst"]
        self.least: int = v["least"]
        self.mean = mean_length(self.least, self.shape)
        self.draws = RandomStream(given.seed, given.number)
        self.ends: list[int] = []  # a heap: the interval behind each session's last
        self.interval = -1
        self.begun = 0

    def count_of_next(self) -> int:
        self.interval += 1
        now, ends = self.interval, self.ends
        if now == 0:
            ends.extend(self._rest() for _ in range(self.draws.poisson(self.sessions)))
            heapify(ends)
        else:
            while ends and ends[0] <= now:
                heappop(ends)
            for _ in range(self.draws.poisson(self.sessions / self.mean)):
                heappush(ends, now + int(self.least * (1.0 - self.draws.share()) ** (-1.0 / self.shape)))
                self.begun += 1
        return len(ends)

    def _rest(self) -> int:
        """Return the intervals that a session under way has left, this one included.

        The probability of i is in proportion to that of a session with i intervals or more.
        """
        draws, least, shape = self.draws, self.least, self.shape
        if draws.share() * self.mean < least:
            return draws.uniform(1, least)
        while True:  # from the continuous distribution, with the share of it that the discrete one has
            i = 1 + int(least * (1.0 - draws.share()) ** (-1.0 / (shape - 1.0)))
            if i >= 2**53:  # beyond the end of any run
                return i
            inside = ((i - 1) ** (1.0 - shape) - i ** (1.0 - shape)) / (shape - 1.0)
            if draws.share() * inside < i**-shape:
                return i

    def facts(self, now_ps: int) -> dict[str, Fact]:
        facts = super().facts(now_ps)
        facts["sessions_begun"] = self.begun
        return facts


def _check(given: FlowRequest) -> Problem:
    return check_interval(given, given.values["sessions"] + 6 * given.values["sessions"] ** 0.5)


APPLICATION: Final = ApplicationSpec(
    "mpareto",
    "sessions of Pareto distributed lengths, each with a block an interval (M/Pareto, long-range dependent)",
    (
        AppSetting("block", OCTETS, REQUIRED, "octets a block", word=BLOCK[0], also=BLOCK[1]),
        AppSetting("interval", SPAN, REQUIRED, "from one block of a session to its next", unit="s"),
        AppSetting("sessions", NUMBER.within(0.1, 10_000.0, name="sessions"), REQUIRED, "under way, in the mean"),
        AppSetting(
            "hurst", HURST.within(0.51, 0.95, name="Hurst parameter"), 0.8, "Hurst parameter; Pareto's shape is 3 - 2 H"
        ),
        AppSetting("least", COUNT.within(1, 10_000), 1, "intervals of the shortest session"),
    ),
    Sessions,
    _check,
    report=Report(
        LATE_BLOCKS.title,
        (*LATE_BLOCKS.columns, Column("sessions_begun", "", "sessions that began in the run")),
        LATE_BLOCKS.shown_with,
    ),
)
