"""Rare losses, or long waits, by splitting: a plain run whose excursions to high queues are continued again and again.

What is counted, and what comes of it, is in :mod:`bentpipe.results.splitting`. A trial's random numbers come from the
experiment's seed and the trial's place (batch, level, number), so that the same seed gives the same estimate.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from bentpipe.errors import ExperimentFailed
from bentpipe.experiment.document.tables import LEAST_EFFORT
from bentpipe.results.splitting import SplittingLevel, Tree, of_delays, sum_up_trees

if TYPE_CHECKING:
    from bentpipe.experiment.resolve.specs import Experiment
    from bentpipe.experiment.run.branch import Branch, Branches

__all__ = ["Counts", "Splitting", "Walk", "choose_levels", "grow", "starts"]

_SHARE: Final = 0.2
"""Share of the pilot's trials that reach the next level, at least. In theory e^-2 = 0.135 takes the fewest trials
(Villén-Altamirano 1994), and a little more costs little."""

_PILOT: Final = 200
"""Trials a level that look for the next one."""

_log = logging.getLogger(__name__)


class Counts(Protocol):
    """The counts of :class:`bentpipe_sim.queue_monitor.QueueMonitorCounts`."""

    @property
    def queue(self) -> int: ...
    @property
    def came(self) -> int: ...
    @property
    def lost(self) -> int:
        """Return the rare cells: those lost, or those that waited long."""
        ...

    @property
    def cycles(self) -> int: ...
    @property
    def most(self) -> int: ...


class Walk(Protocol):
    """Something with a queue that goes on in time, from any moment that it had."""

    def counts(self) -> Counts: ...

    def heights(self) -> list[int]:
        """Return how many cycles that ended since the last call had at most 0, 1, 2, … cells queued."""
        ...

    def take(self) -> Any:
        """Return the state at this moment."""
        ...

    def give(self, moment: Any, seed: str) -> None:
        """Restore a moment, with random numbers from this seed on."""
        ...

    def go(self, level: int, empty: bool, until_ps: int) -> None:
        """Run until so many cells are queued (0: any number), until none is (``empty``), or until that time."""
        ...

    def now_ps(self) -> int: ...


def starts(states: int, trials: int, draw: random.Random) -> list[int]:
    """Return the state from which each trial begins.

    Each state is used equally often, or once more; which ones are used once more is drawn. So ``trials / states``
    trials begin from each state on average.
    """
    whole, rest = divmod(trials, states)
    return [*range(states)] * whole + sorted(draw.sample(range(states), rest))


def go(walk: Walk, level: int, most_ps: int) -> bool:
    """Run until so many cells are queued and return True, or until none is and return False."""
    if level and walk.counts().queue >= level:
        return True
    end = walk.now_ps() + most_ps
    walk.go(level, True, end)
    queue = walk.counts().queue
    if level and queue >= level:
        return True
    if queue:
        reaching = f"reaching {level} cells or " if level else ""
        raise ExperimentFailed(
            f"a trial lasted {most_ps / 1e9:g} ms, as long as the whole run, without its queue "
            f"{reaching}becoming empty. "
            "Splitting needs queues that become empty now and then"
        )
    return False


def grow(
    walk: Walk,
    tree: Tree,
    states: Sequence[Any],
    levels: Sequence[int],
    effort: int,
    seed: str,
    most_ps: int,
    stopped: Callable[[], Any] = lambda: None,
) -> bool:
    """Return the trials of a batch, from the states of its excursions on; False: something stopped them."""
    for k, level in enumerate(levels):
        stage = SplittingLevel(level)
        tree.stages.append(stage)
        if not states:
            continue
        above = levels[k + 1] if k + 1 < len(levels) else 0
        reached = []
        for trial, begin in enumerate(starts(len(states), effort, random.Random(f"{seed} {level}"))):
            if stopped() is not None:
                return False
            walk.give(states[begin], f"{seed} {level} {trial}")
            before = walk.counts()
            there = go(walk, above, most_ps)
            after = walk.counts()
            stage.add(there, after.lost - before.lost, after.came - before.came)
            if there:
                reached.append(walk.take())
        states = reached
    return True


def choose_levels(walk: Walk, first_ps: int, effort: int, seed: str, most_ps: int) -> tuple[list[int], int]:
    """Choose levels with a probability of about :data:`_SHARE` from one to the next.

    From the last level, about that share of trials loses cells. Also return the number of cells that arrived for the
    port meanwhile. A plain run of ``first_ps`` gives the level that ``effort`` or more of its cycles reach. Trials from
    each level give the following one.

    Raises
    ------
    ExperimentFailed
        The queue stays empty, or reaches a level that it does not exceed and at which nothing is lost.
    """
    draw, cells = random.Random(f"{seed} pilot"), 0
    begin = walk.take()
    walk.give(begin, f"{seed} pilot")
    before = walk.counts()
    walk.heights()
    walk.go(0, False, walk.now_ps() + first_ps)
    cells += walk.counts().came - before.came
    heights = walk.heights()
    often = [height for height in range(len(heights)) if sum(heights[height:]) >= effort]
    level = max([1, *often])
    if not any(heights[1:]):
        raise ExperimentFailed("no cell is ever queued at the port: splitting has no levels to use")
    levels, states = [level], []
    walk.give(begin, f"{seed} pilot")
    before = walk.counts()
    while len(states) < _PILOT and walk.now_ps() < first_ps:
        walk.go(level, False, first_ps)
        if walk.counts().queue >= level:
            states.append(walk.take())
            walk.go(0, True, first_ps)
    cells += walk.counts().came - before.came
    while True:
        mosts, losing = [], 0
        plan = starts(len(states), _PILOT, draw)
        for trial, start in enumerate(plan):
            walk.give(states[start], f"{seed} pilot {level} {trial}")
            before = walk.counts()
            walk.go(0, True, walk.now_ps() + most_ps)
            after = walk.counts()
            cells += after.came - before.came
            mosts.append(after.most)
            losing += after.lost > before.lost
        if losing >= _SHARE * _PILOT:
            break
        above = _highest(mosts, level)
        reached = []
        for trial, start in enumerate(plan):
            walk.give(states[start], f"{seed} pilot {level} {trial}")
            before = walk.counts()
            if go(walk, above, most_ps):
                reached.append(walk.take())
            cells += walk.counts().came - before.came
        if not reached:
            if losing:
                break
            raise ExperimentFailed(
                f"from {level} cells queued the queue does not grow further in {_PILOT} trials, and nothing is lost "
                "(with 'delay': late). Give 'levels', a shorter 'delay', or another port"
            )
        levels.append(above)
        level, states = above, reached
    return levels, cells


def _highest(mosts: Sequence[int], level: int) -> int:
    """Return the highest level above this one that a share of the heights reaches, or the next level; 0 if there are
    none."""
    if not mosts:
        return 0
    ranked = sorted(mosts, reverse=True)
    return max(level + 1, ranked[max(0, -(-len(ranked) * 2 // 10) - 1)])


class _Branched:
    """The walk of an experiment's network with its hosts."""

    def __init__(self, branches: Branches) -> None:
        self._branches = branches
        self.heights = branches.gauge.heights
        self.take = branches.take
        self.give = branches.give

    def counts(self) -> Counts:
        counts = self._branches.counts()
        return counts._replace(lost=counts.late) if self._branches.gauge.late_from else counts

    def go(self, level: int, empty: bool, until_ps: int) -> None:
        self._branches.gauge.arm(level, empty)
        engine = self._branches.engine
        engine.run(until_ps)
        if engine.now_ps < until_ps and not self._branches.level_reached():
            raise ExperimentFailed(
                "all flows ended in a trial: splitting needs flows that do not end, such as endless ones"
            )

    def now_ps(self) -> int:
        return self._branches.engine.now_ps


class Splitting:
    """A run with splitting: the engine of its plain run, which watches the queue on the way, then the trials.

    Parameters
    ----------
    experiment : Experiment
    branches : Branches
        Of the network with its hosts, at the beginning.

    """

    key: Final = "splitting"

    def __init__(self, experiment: Experiment, branches: Branches) -> None:
        assert experiment.splitting is not None
        self._table, self._seed = experiment.splitting, experiment.seed
        self._branches, self._walk = branches, _Branched(branches)
        self._end_ps = experiment.duration_ps
        parts = self._table.repeats + 1  # in the first the network fills
        self._ends = [experiment.duration_ps * part // parts for part in range(1, parts + 1)]
        self._effort = max(LEAST_EFFORT, self._table.effort * experiment.duration_ps // experiment.full_ps)
        self._levels = [*self._table.levels]
        self._pilot = 0
        self._trees: list[Tree] = []
        self._states: list[list[Branch]] = []
        self._tree = Tree()
        self._kept: list[Branch] = []
        self._draw = random.Random(f"{self._seed} excursions")
        self._begun = self._inside = False
        self._mark = self._began = self._walk.counts()

    def _begin(self) -> None:
        """Choose the levels, unless they are given; the run is where it was then."""
        if not self._levels:
            with self._branches.kept():
                self._levels, self._pilot = choose_levels(
                    self._walk, self._ends[0], self._effort, f"{self._seed}", self._end_ps
                )
            _log.info("levels: %s", ", ".join(map(str, self._levels)))
        self._branches.gauge.arm(self._levels[0], False)

    def run(self, until_ps: int, progress: Callable[[int], bool | None] | None = None) -> int:
        """Run as the engine does and return the time reached; keep the excursions of the plain run."""
        if not self._begun:
            self._begun = True
            self._begin()
        branches, gauge, first = self._branches, self._branches.gauge, self._levels[0]
        while True:
            target = min(until_ps, self._ends[0]) if self._ends else until_ps
            now = branches.engine.run(target, progress)
            counts = self._walk.counts()
            if not self._inside and counts.queue >= first:
                self._inside = True
                self._tree.outside += counts.lost - self._mark.lost
                self._excursion()
                gauge.arm(0, True)
            elif self._inside and counts.queue == 0:
                self._inside, self._mark = False, counts
                gauge.arm(first, False)
            elif now < target:
                return now
            if self._ends and now >= self._ends[0]:
                self._end_batch()
            if now >= until_ps:
                return now

    def _excursion(self) -> None:
        """Keep a random sample of a batch's excursions, as many as there are trials, each equally likely."""
        self._tree.excursions += 1
        if len(self._kept) < self._effort:
            self._kept.append(self._branches.take())
        elif (place := self._draw.randrange(self._tree.excursions)) < self._effort:
            self._kept[place] = self._branches.take()

    def _end_batch(self) -> None:
        now, began, tree = self._walk.counts(), self._began, self._tree
        tree.came, tree.lost, tree.cycles = (
            now.came - began.came,
            now.lost - began.lost,
            now.cycles - began.cycles,
        )
        if not self._inside:
            tree.outside += now.lost - self._mark.lost
        self._began = self._mark = now
        tree.heights = self._branches.gauge.heights()
        if len(self._ends) <= self._table.repeats:
            self._trees.append(tree)
            self._states.append(self._kept)
        self._ends.pop(0)
        self._tree, self._kept = Tree(), []

    def split(self, stopped: Callable[[], Any], progress: Callable[[float], None]) -> dict[str, Any]:
        """Run all trials from the excursions of the plain run; return the estimates.

        If something stops them, the estimates are of the completed batches. The network is left as it was.
        ``progress`` is called with the share of completed batches.
        """
        if stopped() is not None:
            return self._sum_up(0)
        self._branches.gauge.verify()
        with self._branches.kept():
            for number, (tree, states) in enumerate(zip(self._trees, self._states, strict=True)):
                seed = f"{self._seed} {number}"
                if not grow(self._walk, tree, states, self._levels, self._effort, seed, self._end_ps, stopped):
                    return self._sum_up(number)
                states.clear()
                progress((number + 1) / len(self._trees))
                self._branches.gauge.verify()
                rare = "lost" if self._table.delay_ps is None else "late"
                _log.info("batch %d: %g of %d cells %s", number + 1, tree.losses(), tree.came, rare)
        return self._sum_up(len(self._trees))

    def _sum_up(self, done: int) -> dict[str, Any]:
        """Return the results of so many complete batches, and of the plain run."""
        port, planned = str(self._table.port), self._table.repeats
        found = sum_up_trees(port, self._trees, self._pilot, self._table.reach, done=done, planned=planned)
        return found if self._table.delay_ps is None else of_delays(found, self._table.delay_ps)
