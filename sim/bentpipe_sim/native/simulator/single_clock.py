"""The fast path of a simulation with one clock.

:meth:`SingleClock.run` does what :meth:`.engine.Engine.advance` does, edge by edge, while only that clock changes. Two
things save most of the time:

- While a single testbench is left, it advances the clock itself: ``await ctx.tick()`` calls the compiled design and
  goes on, without a return to the loop (:attr:`.engine.Engine.direct`). :mod:`.context` has that part.
- Edges at which no testbench runs are made by one call of the compiled design.

Whatever else happens ends the fast path: a write to a register, or another trigger.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["SingleClock"]


class SingleClock:
    """The one clock of a simulation, only one edge of which has an effect on the design.

    Members
    -------
    edge : Edge
        That edge.
    half : int
        Femtoseconds from an edge to the next.
    horizon : float
        The time, in femtoseconds, from which on no edge is taken.
    fire : function
        Make the edge in the compiled design.
    function, address : int
        Addresses of the same function and of its argument.
    """

    __slots__ = (
        "address",
        "clock",
        "compiled",
        "edge",
        "engine",
        "fire",
        "function",
        "half",
        "horizon",
        "is_monitored",
        "is_usable",
        "level",
        "other",
        "slot",
        "timeline",
    )

    def __init__(self, engine: Any, clock: Any):
        self.engine, self.clock, self.slot, self.half = engine, clock, clock.slot, clock.half
        is_rising = bool(clock.rising.mask)
        self.edge, self.other = (clock.rising, clock.falling) if is_rising else (clock.falling, clock.rising)
        self.level = int(is_rising)
        self.is_usable = bool(self.edge.mask) and not self.other.mask
        self.horizon: float = 0
        self.timeline, self.compiled = engine.state.timeline, engine.compiled
        self.is_monitored = bool(engine.monitors.clocked)
        if self.is_usable:
            self.fire = engine.fire_of(self.edge.mask)
            self.function, self.address = engine.addresses_of(self.edge.mask)

    def run(self, deadline: int | None) -> bool:
        """Run, as long as only this clock changes. Return whether there is nothing more to do."""
        engine, clock, timeline = self.engine, self.clock, self.timeline
        horizon = self.horizon = math.inf if deadline is None else deadline
        try:
            while self._is_alone():
                if self.slot.curr == self.level:  # nothing notices the other edge
                    clock.at += self.half
                    if clock.at >= horizon:
                        self._set_level(1 - self.level)
                        timeline.now = clock.at
                        return True
                if self._skip():
                    timeline.now = clock.at
                else:
                    self._edge(deadline)
                    if timeline.wakers:
                        engine.find_next()
                    else:
                        timeline.now = clock.at
                if timeline.now >= horizon if deadline is not None else not engine.is_critical():
                    return True
            return False
        finally:
            engine.direct = engine.direct_waiter = None

    def _is_alone(self) -> bool:
        """Return whether nothing but this clock can change anything."""
        engine = self.engine
        state = engine.state
        is_busy = engine.is_eager or self.timeline.wakers or state.pending or engine.active or engine.struck
        return not (is_busy or engine.mask or self.other.waiters or len(self.slot.wakers) > 2)

    def _set_level(self, level: int) -> None:
        self.slot.curr = self.slot.next = level
        self.clock.write(level)
        self.compiled.stale = True

    def _edge(self, deadline: int | None) -> None:
        """Make the edge, then run the testbenches that it wakes."""
        engine, edge = self.engine, self.edge
        self.timeline.now = self.clock.at
        self.clock.at += self.half
        if self.slot.curr != self.level:
            self._set_level(self.level)
        if edge.waiters:
            edge.strike()
        if self.is_monitored:
            engine.monitors.check(edge.mask)
        self.fire()
        self.compiled.stale = True
        if engine.living == 1 and not self.is_monitored:
            self._hand_over(deadline)
        engine.run_testbenches()
        if engine.state.pending:
            engine.step_design()
            engine.run_testbenches()

    def _hand_over(self, deadline: int | None) -> None:
        """Let the last testbench advance this clock itself, if the simulation does not end before it does."""
        engine, waiters = self.engine, self.edge.waiters
        if deadline is None and engine.last_testbench().background:
            return
        if not waiters:
            engine.direct = self
        elif waiters[0].is_lasting:  # it is the only one that an edge leaves
            engine.direct_waiter = waiters[0]

    # Clocks at which no testbench runs

    def _skip(self) -> bool:
        """Make all edges at which no testbench has to be asked. Return whether there were some."""
        waiters, at = self.edge.waiters, self.clock.at
        if self.is_monitored or (waiters and waiters[0].count < 2):
            return False
        count: float = math.inf if waiters else 0
        if self.horizon < math.inf:
            count = -((at - self.horizon) // (2 * self.half))
        for waiter in waiters:
            count = min(count, waiter.idle_clocks())
        if count < 1:
            return False
        for waiter in waiters:
            waiter.count -= count
        if self.slot.curr != self.level:
            self._set_level(self.level)
        self.advance(int(count))
        return True

    def advance(self, count: int) -> None:
        """Make so many edges; the first one is the next of the clock."""
        self.engine.clocks_of(self.edge.mask)(count)
        self.clock.at += (2 * count - 1) * self.half
        self.compiled.stale = True

    def repeat(self, count: int) -> bool:
        """Make all but the last of so many edges within a testbench. Return whether there was time for all."""
        clock = self.clock
        last = clock.at + (2 * count - 1) * self.half
        if last >= self.horizon:
            return False
        if count > 1:
            clock.at += self.half
            self.advance(count - 1)
        return True
