"""The probability that a TCP transfer has a retransmission time-out, by splitting.

A transfer begins with the run. Its levels are first those of a queue, then numbers of PDUs that the flow has lost, as
the ledger knows them. A trial goes on from a level to the next, to the first time-out, or to the transfer's end. What
the trials give is in :mod:`bentpipe.results.rare_timeouts`. A trial's random numbers come from the experiment's seed
and the trial's place (batch, level, number).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from bentpipe.experiment.document.tables import LEAST_EFFORT
from bentpipe.experiment.run.splitting import starts
from bentpipe.results.rare_timeouts import Level, Outcome, Stage, sum_up

if TYPE_CHECKING:
    from bentpipe.experiment.resolve.specs import Experiment
    from bentpipe.experiment.run.branch import Branch, Branches
    from bentpipe_sim.network import Network

__all__ = ["RareTimeouts"]

_PILOT: Final = 100
"""Trials that look for the next level of the queue."""
_SHARE: Final = 0.2
"""Share of the pilot's trials that reach the next level, at least."""
_END_PS: Final = 10**10
"""Time between two looks at anything else: the end of the transfer, and losses while the queue is low."""

_log = logging.getLogger(__name__)


class RareTimeouts:
    """The trials of an experiment with ``[rare_timeout]``.

    Parameters
    ----------
    experiment : Experiment
    branches : Branches
        Of the network with its hosts, at the beginning.
    network : Network
    """

    key: Final = "rare_timeout"

    def __init__(self, experiment: Experiment, branches: Branches, network: Network) -> None:
        assert experiment.rare_timeout is not None
        table = experiment.rare_timeout
        self._table, self._seed, self._end_ps = table, experiment.seed, experiment.duration_ps
        self._branches, self._network = branches, network
        names = [flow.name for flow in branches.engine.flows]
        self._flow = names.index(table.flow)
        self._vc = next(flow.vc for flow in experiment.flows if flow.name == table.flow)
        self._effort = max(LEAST_EFFORT, table.effort * experiment.duration_ps // experiment.full_ps)
        self._first = branches.take()
        self._levels: list[Level] = []
        self._high = 0  # cells queued: from here on, lost PDUs are looked for in short steps
        self._cells = 0

    def split(self, stopped: Callable[[], Any], progress: Callable[[float], None]) -> dict[str, Any]:
        """Run all trials from the beginning of the transfer; return the estimate.

        If something stops them, the estimate is of the completed batches. The network is left as it was. ``progress``
        is called with the share of completed batches.
        """
        batches: list[list[Stage]] = []
        planned = self._table.repeats
        with self._branches.kept():
            plain = self._outcome()
            queue = [*self._table.levels] or self._pilot(stopped)
            self._high = max(queue, default=1)
            self._levels = [*(Level("queue", k) for k in queue), *(Level("lost", k) for k in self._table.losses)]
            for number in range(planned):
                stages = None if stopped() is not None else self._batch(f"{self._seed} {number}", stopped)
                if stages is None:
                    break
                batches.append(stages)
                progress((number + 1) / planned)
        return sum_up(self._table.flow, str(self._table.port), batches, planned, self._cells, plain is Outcome.TIMEOUT)

    def _batch(self, seed: str, stopped: Callable[[], Any]) -> list[Stage] | None:
        """Return the trials of a batch by level; None: something stopped them."""
        stages = [Stage(level) for level in (None, *self._levels)]
        states = [self._first]
        for k, stage in enumerate(stages):
            if not states:
                break
            above = self._levels[k] if k < len(self._levels) else None
            reached: list[Branch] = []
            draw = random.Random(f"{seed} {k}")
            for trial, begin in enumerate(starts(len(states), self._effort, draw)):
                if stopped() is not None:
                    return None
                self._branches.give(states[begin], f"{seed} {k} {trial}")
                outcome = self._go(above)
                stage.add(outcome)
                if outcome is Outcome.REACHED:
                    reached.append(self._branches.take())
            states = reached
        return stages

    def _go(self, above: Level | None) -> Outcome:
        """Run to the level ``above``, the first time-out, the transfer's end or the run's end; return which it was."""
        gauge, before = self._branches.gauge, self._branches.counts().came
        while True:
            now = self._branches.engine.now_ps
            outcome = self._outcome(above) or (Outcome.UNFINISHED if now >= self._end_ps else None)
            if outcome is not None:
                break
            step = _END_PS
            if above is not None and above.what == "queue":
                gauge.arm(above.value, False)
            elif above is not None and self._high:
                if self._branches.counts().queue < self._high:
                    gauge.arm(self._high, False)
                else:
                    step = self._table.step_ps
            self._branches.engine.run(min(self._end_ps, now + step))
        self._cells += self._branches.counts().came - before
        return outcome

    def _outcome(self, above: Level | None = None) -> Outcome | None:
        """Return how a trial ends at this moment; None: it goes on."""
        flow = self._branches.engine.flows[self._flow]
        if flow.report(self._branches.engine.now_ps).timeouts:
            return Outcome.TIMEOUT
        if flow.finished:
            return Outcome.ENDED
        if above is None:
            return None
        if above.what == "queue":
            return Outcome.REACHED if self._branches.counts().queue >= above.value else None
        return Outcome.REACHED if self._network.lost_pdus(self._vc) >= above.value else None

    def _pilot(self, stopped: Callable[[], Any]) -> Sequence[int]:
        """Choose levels of the queue: each is reached from the one below by about a fifth of the trials.

        There are no more levels where a fifth of the trials has a time-out, or where the queue grows no further.
        """
        levels: list[int] = []
        states, gauge = [self._first], self._branches.gauge
        while stopped() is None:
            seed = f"{self._seed} pilot {len(levels)}"
            plan = starts(len(states), _PILOT, random.Random(seed))
            highest, timeouts = [], 0
            for trial, begin in enumerate(plan):
                self._branches.give(states[begin], f"{seed} {trial}")
                gauge.heights()
                most = self._branches.counts().queue
                timeouts += self._go(None) is Outcome.TIMEOUT
                ended = [k for k, cycles in enumerate(gauge.heights()) if cycles]
                highest.append(max(most, self._branches.counts().most, *ended, 0))
            last = levels[-1] if levels else 0
            above = sorted(highest, reverse=True)[max(0, int(_SHARE * _PILOT) - 1)]
            if timeouts >= _SHARE * _PILOT or above <= last:
                break
            reached = []
            for trial, begin in enumerate(plan):
                self._branches.give(states[begin], f"{seed} {trial}")
                if self._go(Level("queue", above)) is Outcome.REACHED:
                    reached.append(self._branches.take())
            if not reached:
                break
            levels.append(above)
            states = reached
        _log.info("levels: %s", ", ".join(map(str, levels)) or "none")
        return levels
