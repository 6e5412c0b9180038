"""A simulation of the schedule of networks in parts shows what more threads than a machine has cores would gain.

A network runs in the parts of so many threads, but on one, and each window is recorded: from which tick to which a
part ran, and how long that took. Then threads are simulated that go through the same ticks by the rules of
``csrc/parts.cpp``. A thread has parts of its own, and takes one of another thread if none of them can go on for some
time. A part may be ahead of those before it by the delay of the wires between them, and each thread has some turns in a
stretch at least.

Left out: threads share caches and memory, and clock rates fall when many cores work.
"""

from __future__ import annotations

import heapq
import math
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bentpipe.bench.cases import PS
from bentpipe.bench.parts import CASES

__all__ = [
    "HAND_OVER_S",
    "PATIENCE_S",
    "THREADS",
    "TURNS",
    "Dependence",
    "Recording",
    "Share",
    "Window",
    "draw",
    "elapsed",
    "gain",
    "record",
]

THREADS: Final = tuple(range(1, 17))
HAND_OVER_S: Final = 0.3e-6
"""Seconds to hand a window over to another thread (docs/decisions/015)."""

PATIENCE_S: Final = 15e-6
"""Seconds that a thread waits before it takes a part of another one: ``PATIENCE`` in ``csrc/parts.cpp``."""

TURNS: Final = 16
"""Turns of a thread in a stretch, at least: ``TURNS`` in ``csrc/parts.cpp``."""

_NONE: Final = -1
"""The part of a thread that has waited long enough for its own."""

_OUTLIER: Final = 5
"""A window that took so many times as long as most of its part, a tick, was interrupted by something else."""
_WINDOWS: Final = 40_000


class Window(NamedTuple):
    """A part ran from a tick to another one, both included, in so many seconds."""

    part: int
    first: int
    last: int
    seconds: float


class Dependence(NamedTuple):
    """A part may be ahead of the ticks that another one has done by less than ``ahead`` ticks."""

    part: int
    on: int
    ahead: int


class Share(NamedTuple):
    """The first part of each thread, then the number of parts; of each part the most ticks of a turn."""

    first: Sequence[int]
    turn: Sequence[int]


class Recording(NamedTuple):
    """The windows of a run on one thread, the dependences of its parts, and how several threads would share them."""

    parts: int
    windows: Sequence[Window]
    dependences: Sequence[Dependence]
    share: Share | None = None

    def share_of(self, threads: int) -> Share:
        """Return the recorded share; without one, equal numbers of parts a thread, and turns of any length."""
        if self.share is not None and threads > 1:
            return self.share
        return Share([k * self.parts // threads for k in range(threads + 1)], [1 << 62] * self.parts)


def record(case: str, threads: int = 1) -> Recording:
    """Run a network of ``bentpipe.bench.parts``, in the parts that it has with so many threads, on one thread.

    Returns
    -------
    Recording
    """
    make, count, delay_ps = CASES[case]
    network = make(count, delay_ps, threads=threads)
    begin = 2 * delay_ps / PS + 0.02
    network.run(int(begin * PS))
    loop = network.loop
    loop.record_windows()
    span = 0.2 / count
    for turn in range(1, 51):
        network.run(int((begin + turn * span) * PS))
        if loop.recorded_windows(loop.ffi.NULL, 0) > _WINDOWS:
            break
    size = loop.recorded_windows(loop.ffi.NULL, 0)
    rows = loop.ffi.new("bp_window[]", size)
    loop.recorded_windows(rows, size)
    windows = [Window(row.part, row.first, row.last, row.nanoseconds / 1e9) for row in rows]
    size = loop.dependences(loop.ffi.NULL, 0)
    links = loop.ffi.new("bp_dependence[]", max(1, size))
    loop.dependences(links, size)
    dependences = [Dependence(links[k].part, links[k].on, links[k].ahead) for k in range(size)]
    parts = network.parts_and_threads[0]
    first, turn = loop.ffi.new("uint32_t[]", min(threads, parts) + 1), loop.ffi.new("uint64_t[]", parts)
    loop.share(min(threads, parts), first, turn)
    share = Share(list(first), list(turn))
    network.close()
    return Recording(parts, without_outliers(windows), dependences, share)


def gain(case: str, threads: int) -> float:
    """Return how many times as fast a network of ``bentpipe.bench.parts`` is on so many threads as on one, in the same
    parts."""
    if threads == 1:
        return 1.0
    recording = record(case, threads)
    return elapsed(recording, 1) / elapsed(recording, threads) if recording.parts > 1 else 1.0


def without_outliers(windows: Sequence[Window]) -> list[Window]:
    """Return the windows, where those that something interrupted take the median time a tick of their part."""
    paces: defaultdict[int, list[float]] = defaultdict(list)
    for each in windows:
        paces[each.part].append(each.seconds / (each.last - each.first + 1))
    usual = {part: statistics.median(found) for part, found in paces.items()}
    found = []
    for each in windows:
        ticks = each.last - each.first + 1
        wrong = each.seconds > _OUTLIER * usual[each.part] * ticks
        found.append(each._replace(seconds=usual[each.part] * ticks) if wrong else each)
    return found


class _Costs:
    """The seconds that a part takes up to a tick; within a window they grow evenly."""

    def __init__(self, windows: Iterable[Window]) -> None:
        self._firsts: list[int] = []
        self._rows: list[tuple[float, float]] = []  # seconds before, a tick
        spent = 0.0
        for each in windows:
            self._firsts.append(each.first)
            self._rows.append((spent, each.seconds / (each.last - each.first + 1)))
            spent += each.seconds

    def upto(self, tick: int) -> float:
        """Return the seconds for all ticks before this one."""
        k = bisect_right(self._firsts, tick) - 1
        if k < 0:
            return 0.0
        before, pace = self._rows[k]
        return before + pace * (tick - self._firsts[k])


def elapsed(
    recording: Recording, threads: int, hand_over_s: float = HAND_OVER_S, patience_s: float = PATIENCE_S
) -> float:
    """Return the seconds that so many threads would take for the recorded run."""
    by_part: defaultdict[int, list[Window]] = defaultdict(list)
    for each in recording.windows:
        by_part[each.part].append(each)
    costs = [_Costs(by_part[part]) for part in range(recording.parts)]
    before: list[list[tuple[int, int]]] = [[] for _ in range(recording.parts)]
    for part, on, ahead in recording.dependences:
        before[part].append((on, ahead))
    following = [by_part[part][0].first for part in range(recording.parts)]
    total, share = 0.0, recording.share_of(min(threads, recording.parts))
    for end in _stretches(by_part):
        total += _stretch(costs, before, following, end, share, (hand_over_s, patience_s))
    return total


def _stretches(by_part: Mapping[int, Sequence[Window]]) -> list[int]:
    """Return the ticks at which all parts were together: a run goes in stretches, after which threads meet."""
    ends = [{window.last for window in windows} for windows in by_part.values()]
    return sorted(set.intersection(*ends))


def _stretch(
    costs: Sequence[_Costs],
    before: Sequence[Sequence[tuple[int, int]]],
    following: list[int],
    end: int,
    share: Share,
    delays_s: tuple[float, float],
) -> float:
    """Take all parts from the tick that follows those that they have done to the end of a stretch; return the time.
    ``delays_s`` are those of a hand-over and before a part of another thread is taken, seconds."""
    count, threads, now = len(costs), len(share.first) - 1, 0.0
    hand_over_s, patience_s = delays_s if threads > 1 else (0.0, 0.0)
    turns = 1 if threads == 1 else -(-TURNS * threads // count)
    most = (end - following[0]) // turns + 1
    taken = [False] * count
    running: list[tuple[float, int, int, int]] = []  # until when, thread, part, last tick
    again: list[list[int]] = [[] for _ in range(threads)]  # parts that a thread still gives a turn in this round
    idle = [*range(threads)]
    patient = [math.inf] * threads  # until when a thread waits for its own parts
    own = [range(share.first[k], share.first[k + 1]) for k in range(threads)]

    def reach(part: int) -> int:
        turn = min(most, share.turn[part])
        return min([end, following[part] + turn - 1, *(following[on] + ahead - 1 for on, ahead in before[part])])

    def begin(thread: int) -> bool:
        takes = now >= patient[thread]
        others = [(own[thread].stop + k) % count for k in range(count - len(own[thread]))] if takes else []
        for part in (*again[thread], *own[thread], *others):
            last = reach(part)
            if not taken[part] and last >= following[part]:
                again[thread] = [each for each in own[thread] if each > part] if part in own[thread] else []
                taken[part] = True
                spent = costs[part].upto(last + 1) - costs[part].upto(following[part])
                if part in own[thread]:
                    patient[thread] = math.inf
                heapq.heappush(running, (now + spent + hand_over_s, thread, part, last))
                return True
        if patient[thread] == math.inf:
            patient[thread] = now + patience_s
            heapq.heappush(running, (patient[thread], thread, _NONE, end))
        return False

    while True:
        idle = [thread for thread in idle if not begin(thread)]
        if min(following) > end:
            return now
        now, thread, part, last = heapq.heappop(running)
        if part != _NONE:
            following[part], taken[part] = last + 1, False
            idle.append(thread)


def draw(found: Mapping[str, Sequence[float]], file: Path) -> None:
    """Plot how many times as fast each network is by the number of threads."""
    from matplotlib.figure import Figure

    from bentpipe.plots.style import COLOURS, styled

    with styled():
        figure = Figure(figsize=(5.2, 3.4), layout="constrained")
        axis: Any = figure.subplots()
        axis.plot(THREADS, THREADS, ":", color="0.6", linewidth=1)
        for (case, gains), colour in zip(found.items(), COLOURS, strict=False):
            axis.plot(THREADS, gains, "o-", color=colour, markersize=3, label=case)
        axis.set_xlabel("threads (simulated schedule)")
        axis.set_ylabel("times as fast as one thread in parts")
        axis.set_ylim(0, None)
        axis.legend(fontsize=7)
        figure.savefig(file)
