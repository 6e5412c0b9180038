"""The one processor of a host, which every segment and datagram costs some time."""

from __future__ import annotations

import random
from collections import deque
from typing import Final, final

from bentpipe.hosts.clock import HostClock
from bentpipe.hosts.endpoint import TransportEndpoint
from bentpipe.hosts.scheduler import NEVER, Scheduler, Timer
from bentpipe.tcp.segment import Segment
from bentpipe_sim.interface import AheadNetwork

__all__ = ["Processor"]

_NOTHING: Final = 0
_RECEIVE: Final = 1
_SEND: Final = 2
_CALL: Final = 3


@final
class Processor(Timer):
    """The processor of a host: every segment takes time; all connections share it, and the clock interrupts it.

    A segment that arrives waits for the processor, costs ``receive_cost``, and only then reaches TCP; the segments that
    TCP answers with cost ``send_cost`` each, one after another, before the next arrival's turn comes (a softnet run
    goes to its end), and are given to the interface as they are ready.

    Members
    -------
    busy_ps : int
        Time spent on segments and datagrams, clock interrupts not counted.
    early_until : int
        The time (ps) up to which segments are given to the network when the processor begins with them; -1: none is.
    network : AheadNetwork or None
        The network that gets these segments.
    """

    _end: TransportEndpoint  # whose segment it works on, and that: neither is in a queue any more
    _came: Segment | None
    _leaves: Segment

    def __init__(
        self, scheduler: Scheduler, clock: HostClock, costs: tuple[int, int], spread: float, draws: random.Random
    ) -> None:
        self.scheduler = scheduler
        self.clock = clock
        self.interrupted: bool = clock.cost_ps > 0
        self.send_cost: int = costs[0]
        self.receive_cost: int = costs[1]
        self.spread: float = spread
        self.busy_ps: int = 0
        self._random = draws
        self._inputs: deque[tuple[TransportEndpoint, Segment | None]] = deque()
        self._outputs: deque[tuple[TransportEndpoint, Segment]] = deque()
        self._calls: deque[Timer] = deque()
        self._doing: int = _NOTHING
        self._done_ps: int = 0
        self.early_until: int = -1
        self.network: AheadNetwork | None = None
        self._is_put: bool = False

    def waiting(self) -> int:
        """Return how many received segments and datagrams wait; the one that it works on is not among them."""
        return len(self._inputs)

    def least_send_cost(self) -> int:
        """Return the least time (ps) that any segment or datagram takes before it is sent."""
        return self.send_cost - int(self.send_cost * self.spread) - 1 if self.spread else self.send_cost

    def sends_at(self) -> int:
        """Return when it may give the interface what it works on (ps); :data:`NEVER` if that is not to be sent."""
        return self._done_ps if self._doing >= _SEND and not self._is_put else NEVER

    def receive(self, end: TransportEndpoint, segment: Segment | None, now: int) -> None:
        """Take an input: a segment, or (None) a datagram that the end keeps.

        When the processor has worked on it, the end takes it.
        """
        if self._doing:
            self._inputs.append((end, segment))
        elif self.receive_cost == 0:
            end.take(segment, now)
        else:
            self._end = end
            self._came = segment
            self._start(_RECEIVE, self.receive_cost)

    def send(self, end: TransportEndpoint, out: list[Segment]) -> None:
        """Send the segments of an end; as each has been worked on, the end puts it to the interface."""
        for segment in out:
            if self._doing:
                self._outputs.append((end, segment))
            elif self.send_cost == 0:
                end.put(segment)
            else:
                self._end = end
                self._leaves = segment
                self._start(_SEND, self.send_cost)
        out.clear()

    def call(self, work: Timer) -> None:
        """Make a system call that sends a datagram: ``work`` fires when the processor has done it.

        Inputs, which arrive by the network's interrupts, are served first.
        """
        self._calls.append(work)
        if not self._doing:
            self._start(_CALL, self.send_cost)

    def _start(self, doing: int, cost: int) -> None:
        """Start work on the free processor."""
        self._doing = doing
        if self.spread:
            cost += int(cost * self.spread * (2.0 * self._random.random() - 1.0))
        self.busy_ps += cost
        scheduler = self.scheduler
        now = scheduler.now
        self._done_ps = done = self.clock.after(now, cost) if self.interrupted else now + cost
        scheduler.at(done, self)
        if doing == _SEND and done <= self.early_until:
            network = self.network
            assert network is not None
            self._is_put = True
            network.delay(done)
            self._end.put(self._leaves)
            network.delay(-1)

    def fire(self, now: int) -> None:
        """End the work on a segment or call, and start the next one."""
        doing = self._doing
        if doing == _SEND:
            if self._is_put:
                self._is_put = False
            else:
                self._end.put(self._leaves)
        elif doing == _RECEIVE:
            self._end.take(self._came, now)
        else:
            self._calls.popleft().fire(now)
        if self._outputs:
            self._end, self._leaves = self._outputs.popleft()
            self._start(_SEND, self.send_cost)
        elif self._inputs:
            self._end, self._came = self._inputs.popleft()
            self._start(_RECEIVE, self.receive_cost)
        elif self._calls:
            self._start(_CALL, self.send_cost)
        else:
            self._doing = _NOTHING
