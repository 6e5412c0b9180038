"""Timers fire in the order of their times, those of one instant as they were set; plain Python has its own queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.hosts.scheduler import NEVER, Scheduler, Timer


class Recorded(Timer):
    """Notes when it fires, and sets others then."""

    def __init__(self, run: Run, name: int) -> None:
        self.run = run
        self.name = name

    def fire(self, now: int) -> None:
        self.run.fired.append((now, self.name))
        self.run.set_some(now)


class Run:
    """Timers that set timers: ``plan`` says how many, and how long after."""

    def __init__(self, plan: list[list[int]]) -> None:
        self.scheduler = Scheduler()
        self.plan = plan
        self.fired: list[tuple[int, int]] = []
        self.names = 0
        self.waiting: list[tuple[int, int]] = []

    def set_some(self, now: int) -> None:
        for delay in self.plan.pop() if self.plan else []:
            self.names += 1
            self.waiting.append((now + delay, self.names))
            self.scheduler.at(now + delay, Recorded(self, self.names))


@pytest.mark.plain_hosts
@given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=25))
def test_timers_fire_by_time_and_then_as_they_were_set(plan: list[list[int]]) -> None:
    run = Run(plan)
    scheduler = run.scheduler
    run.set_some(0)
    while run.waiting:
        assert scheduler.due == min(run.waiting)[0]
        assert [time for time, _ in scheduler.pending()] == sorted(time for time, _ in run.waiting)
        scheduler.now = scheduler.due
        before = len(run.fired)
        scheduler.fire()
        for now, name in run.fired[before:]:
            assert now == scheduler.now
            # Of those that were set when it fired, the first: those that were set later have greater numbers.
            assert (now, name) == min(run.waiting)
            run.waiting.remove((now, name))
    assert scheduler.due == NEVER and scheduler.pending() == []
