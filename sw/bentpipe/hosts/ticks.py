"""BSD's timers of a host: a fast tick each 200 ms, a slow one each 500 ms of the host's own clock.

BSD asks every connection at every tick. Here a tick costs by what is due: an end that was used since the last one is
asked what it waits for, and then left alone until that tick has come.
"""

from __future__ import annotations

import heapq
from typing import final

from bentpipe.hosts.clock import HostClock
from bentpipe.hosts.endpoint import RESTS, TransportEndpoint
from bentpipe.hosts.scheduler import Scheduler, Timer

__all__ = ["FastTick", "SlowTick", "Ticks"]


@final
class Ticks:
    """The ticks of one host.

    Members
    -------
    count : int
        Slow ticks so far: the time of TCP's timers.
    epoch : int
        Ticks of both kinds so far. An end whose own epoch is another one goes through :meth:`use` before it is used.
    asked : int
        How often an end was asked what it waits for, or told that it has come.
    """

    def __init__(self, scheduler: Scheduler, clock: HostClock, fast_ps: int, slow_ps: int) -> None:
        self.count: int = 0
        self.epoch: int = 0
        self.asked: int = 0
        self._fast: list[TransportEndpoint] = []
        self._slow: list[TransportEndpoint] = []
        self._due: list[tuple[int, int, TransportEndpoint]] = []
        scheduler.at(fast_ps, FastTick(self, scheduler, clock.fast_ps))
        scheduler.at(slow_ps, SlowTick(self, scheduler, clock.slow_ps))

    def use(self, end: TransportEndpoint, now: int) -> None:
        """Bring an end up to the present slow tick, when it is used for the first time since a tick."""
        if end.epoch == RESTS:
            end.wake()
        end.epoch = self.epoch
        if end.tick != self.count:
            end.tick = self.count
            end.slow_tick(self.count, now)
        if not end.in_fast:
            end.in_fast = True
            self._fast.append(end)
        if not end.in_slow:
            end.in_slow = True
            self._slow.append(end)

    def fast(self, now: int) -> None:
        """Serve the fast tick, each 200 ms."""
        self.epoch += 1
        used = self._fast
        if not used:
            return
        self._fast = []
        self.asked += len(used)
        waiting: list[TransportEndpoint] = []
        for end in used:
            end.in_fast = False
            if end.delayed():
                waiting.append(end)
        waiting.sort(key=_order)
        for end in waiting:
            self.use(end, now)
            end.fast_tick(now)
            end.done(now)

    def slow(self, now: int) -> None:
        """Serve the slow tick, each 500 ms."""
        self.epoch += 1
        self.count += 1
        count = self.count
        due = self._due
        used = self._slow
        self._slow = []
        self.asked += len(used)
        for end in used:
            end.in_slow = False
            tick = end.next_tick()
            if tick and (end.armed == 0 or tick < end.armed):
                end.armed = tick
                heapq.heappush(due, (tick, end.order, end))
        waiting: list[TransportEndpoint] = []
        while due and due[0][0] <= count:
            tick, _, end = heapq.heappop(due)
            if end.armed == tick:  # else it was armed again, for an earlier one
                end.armed = 0
                waiting.append(end)
        self.asked += len(waiting)
        waiting.sort(key=_order)
        for end in waiting:
            if end.epoch == RESTS:
                self._rested(end, now)
                continue
            self.use(end, now)
            end.done(now)

    def _rested(self, end: TransportEndpoint, now: int) -> None:
        """Serve a resting end that was armed for this tick.

        It may have been armed before it rested, for another timer; then it is armed again.
        """
        tick = end.next_tick()
        if tick <= self.count:
            end.expire(now)
        else:
            end.armed = tick
            heapq.heappush(self._due, (tick, end.order, end))


def _order(end: TransportEndpoint) -> int:
    return end.order


@final
class FastTick(Timer):
    """The host's 200 ms timer."""

    def __init__(self, ticks: Ticks, scheduler: Scheduler, period_ps: int) -> None:
        self.ticks = ticks
        self.scheduler = scheduler
        self.period_ps = period_ps

    def fire(self, now: int) -> None:
        self.scheduler.at(now + self.period_ps, self)
        self.ticks.fast(now)


@final
class SlowTick(Timer):
    """The host's 500 ms timer."""

    def __init__(self, ticks: Ticks, scheduler: Scheduler, period_ps: int) -> None:
        self.ticks = ticks
        self.scheduler = scheduler
        self.period_ps = period_ps

    def fire(self, now: int) -> None:
        self.scheduler.at(now + self.period_ps, self)
        self.ticks.slow(now)
