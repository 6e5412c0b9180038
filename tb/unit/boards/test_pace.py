"""Paced time beside a model of a few lines: never ahead of real time, at an exact rate, with exact figures of the lag;
and stepped time, clock by clock."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from benches.build import library
from benches.compiled import Compiled
from bentpipe_boards.ticks import SETTLED, Ticks
from bentpipe_hdl.cell import NEVER

ONE = 1 << 32
FASTEST = 40
"""Clocks of a tick, at least."""


@dataclass
class _Model:
    """Real time and the lag, from what a board shows: its next tick, and the ticks that begin.

    Real time is ``elapsed * pace / 2**32`` ticks behind ``origin``, a whole number of clocks after it began.
    """

    pace: int
    origin: int
    elapsed: int = -1
    lags: list[int] = field(default_factory=lambda: [0, 0])
    lates: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def now(self) -> int:
        return self.origin + max(0, self.elapsed) * self.pace // ONE

    def clock(self, following: int, begun: int | None) -> None:
        """Count a clock in which ``following`` is the next tick, and with whose edge ``begun`` begins."""
        self.lags.append(max(0, self.now - following))
        if begun is not None:
            assert begun <= self.now, f"tick {begun} begins in tick {self.now} of real time"
        self.lates.append(self.lates[-1] + (begun is not None and self.now > begun))
        self.elapsed += 1


class _Bench:
    """The generator of ticks, and a network: a PDU waits for the next tick, which makes work in ``bursts`` of later
    ones."""

    def __init__(self, pace: int | None, bursts: tuple[int, ...] = (1, 2, 3, 7, 30)) -> None:
        self.node = Compiled(library(Ticks(paced=pace is not None)))
        self.ports = self.node.ports
        self.pace, self.bursts = pace or 0, bursts
        self.dues: list[int] = []
        self.ticks: list[tuple[int, int]] = []
        self.clocks = 0
        self.model: _Model | None = None
        for name, value in (("clocks", FASTEST), ("skips", 1), ("halts", 1), ("idle", 1), ("due", NEVER)):
            self.set(name, value)
        if pace is not None:
            self.set("pace", pace)

    def set(self, name: str, value: int) -> None:
        self.ports[name].set(value)

    def get(self, name: str) -> int:
        self.node.settle()
        return self.ports[name].get()

    def wake(self) -> None:
        """A PDU waits from now on."""
        self.set("idle", 0)

    def clock(self) -> None:
        self.node.settle()
        before = self.ports["following"].get()
        self.node.edge()
        self.node.settle()
        self.clocks += 1
        tick = self.ports["time_now"].get() if self.ports["time_tick"].get() else None
        if self.model is not None:
            self.model.clock(before, tick)
        if tick is not None:
            self.ticks.append((self.clocks, tick))
            assert not self.dues or self.dues[0] >= tick, f"tick {self.dues[0]} was skipped"
            works = {each for each in self.dues if each > tick}
            if not self.ports["idle"].get():
                self.set("idle", 1)
                works |= {tick + each for each in self.bursts}
            self.dues = sorted(works)
            self.set("due", self.dues[0] if self.dues else NEVER)

    def begin(self) -> None:
        """Begin free-running time; real time begins when all has settled."""
        origin = self.get("following")
        self.set("free", 1)
        for _ in range(SETTLED + 2):
            self.clock()
        self.model = _Model(self.pace, origin)

    def run(self, clocks: int) -> None:
        """Pass time, and compare the figures in each clock: two of the three are a clock later."""
        assert self.model is not None
        most = max(self.model.lags[:-1])
        for _ in range(clocks):
            self.clock()
            shown = tuple(self.ports[f"lag_{name}"].get() for name in ("now", "most", "late"))
            most = max(most, self.model.lags[-2])
            assert shown == (self.model.lags[-1], most, self.model.lates[-2]), self.clocks


def _pace(clocks: float) -> int:
    """Return the pace of a tick in so many clocks."""
    return round(ONE / clocks)


@pytest.mark.parametrize(
    "pace",
    # The last one begins each tick a clock later than 16 clocks a tick would, from the first tick on
    [_pace(50.0), _pace(30.0), _pace(13.27), _pace(1.7), ONE // 16 - 1],
    ids=["50 clocks", "30 clocks", "75 MHz", "1.7 clocks", "16 clocks and a little"],
)
def test_figures_of_the_lag_are_exact_under_random_load(pace: int) -> None:
    bench, rng = _Bench(pace), random.Random(1)
    bench.begin()
    for _ in range(70):
        bench.run(rng.choice((1, 30, 700, 1500)))
        bench.wake()
    bench.run(3000)
    assert bench.model is not None and bench.model.lags[-1] == 0 and not bench.dues
    assert len(bench.ticks) > 150
    assert bench.model.lates[-1] > 50 or pace == _pace(50.0)


def test_a_due_tick_begins_in_time_and_an_idle_network_costs_no_tick() -> None:
    bench = _Bench(_pace(13.27), bursts=(400, 900))
    bench.begin()
    bench.run(5000)
    assert not bench.ticks
    bench.wake()
    bench.run(16_000)
    assert bench.model is not None
    (first, tick), *later = bench.ticks
    assert tick > 370, "the time before has been skipped"
    assert [each - tick for _, each in later] == [400, 900]
    for clock, each in later:
        # The first clock of its time, and three for real time, its comparison and the tick
        assert 0 <= (clock - first) - (each - tick) * 13.27 + 40 < 14 + 40
        assert bench.model.lates[-1] <= 1


def test_the_average_rate_is_exact_over_a_long_run() -> None:
    # Each tick works, so that the last one shows real time to the tick
    pace = 61_356_677
    bench = _Bench(pace, bursts=())
    bench.set("skips", 0)
    bench.begin()
    clocks = 200_000
    for _ in range(clocks):
        bench.clock()
    assert bench.model is not None and max(bench.model.lags) == 0
    # In its last clock but 4 at most the tick was due
    assert (clocks - 5) * pace // ONE <= bench.ticks[-1][1] <= clocks * pace // ONE
    assert [tick for _, tick in bench.ticks] == list(range(len(bench.ticks)))


def test_time_that_was_held_is_measured_and_caught_up() -> None:
    bench = _Bench(_pace(13.27), bursts=(5, 6))
    bench.begin()
    bench.run(500)
    bench.wake()
    bench.run(30)
    bench.set("holds", 1)
    bench.run(20_000)
    model = bench.model
    assert model is not None and model.lags[-1] > 1400, "the lag is there while it is held"
    assert model.lates[-1] == 0 and not bench.ticks
    bench.set("holds", 0)
    bench.run(500)
    assert model.lags[-1] == 0 and model.lates[-1] == 3, "idle ticks are skipped, and the late ones counted"
    bench.set("pace", bench.pace)
    bench.set("restart", 1)
    bench.clock()
    bench.set("restart", 0)
    assert [bench.get(f"lag_{name}") for name in ("now", "most", "late")] == [0, 0, 0]


def test_real_time_goes_on_while_the_board_is_stopped() -> None:
    bench = _Bench(_pace(13.27), bursts=())
    bench.begin()
    bench.run(1000)
    bench.set("free", 0)
    bench.run(3000)
    model = bench.model
    assert model is not None and not bench.ticks
    assert model.lags[-1] > 140 and bench.get("run_following") <= model.now - 140
    bench.set("free", 1)
    bench.run(200)
    assert model.lags[-1] == 0


@pytest.mark.parametrize("pace", [None, 0, _pace(100.0)], ids=["unpaced", "stepped", "paced"])
def test_a_run_ends_after_its_last_tick(pace: int | None) -> None:
    bench = _Bench(pace, bursts=(3, 50))
    for until in (20, 21, 90):
        bench.set("run_until", until)
        bench.set("run_start", 1)
        begun = bench.clocks
        bench.clock()
        bench.set("run_start", 0)
        bench.wake()
        while bench.get("run_running"):
            bench.clock()
            assert bench.clocks < 20_000
        assert bench.get("run_following") == until + 1 and not bench.get("run_stopped")
        assert bench.clocks - begun < 500 or pace
    assert bench.clocks > 90 * 100 or not pace
    assert all(clock >= tick * bench.pace / ONE for clock, tick in bench.ticks)


@pytest.mark.parametrize("pace", [None, 0, _pace(100.0)], ids=["unpaced", "stepped", "paced"])
def test_a_run_that_is_stopped_says_up_to_which_tick_time_has_passed(pace: int | None) -> None:
    bench = _Bench(pace, bursts=(3,))
    bench.set("run_until", 1000)
    bench.set("run_start", 1)
    bench.clock()
    bench.set("run_start", 0)
    for _ in range(2000 if pace else 20):
        bench.clock()
    bench.set("run_stop", 1)
    for _ in range(200):
        bench.clock()
    assert not bench.get("run_running") and bench.get("run_stopped")
    assert bench.get("run_following") in (range(20, 23) if pace else range(1))


@pytest.mark.parametrize("pace", [None, 0], ids=["unpaced", "stepped"])
def test_stepped_time_takes_as_many_clocks_as_ever(pace: int | None) -> None:
    """A decision each 40 clocks: a tick, or a skip of any length; the last one ends the run."""
    bench = _Bench(pace, bursts=(1, 2, 3, 7, 30))
    bench.set("run_until", 100)
    bench.set("run_start", 1)
    bench.wake()
    bench.clock()
    bench.set("run_start", 0)
    while bench.get("run_running"):
        bench.clock()
    # After ticks 0 to 3 a skip to each of 7, 30 and 101
    decisions = [(1, 0), (2, 1), (3, 2), (4, 3), (6, 7), (8, 30)]
    assert bench.ticks == [(1 + 40 * at, tick) for at, tick in decisions]
    assert bench.clocks == 1 + 40 * 10
