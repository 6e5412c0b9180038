"""CreditAudit to VCs in turn, as long as any has cells of which it is not known what became of them."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cell import NEVER, TIME_BITS, due_tick
from ..tick_schedule import TickSchedule

__all__ = ["STEP_BITS", "CreditAudit"]

STEP_BITS = 32


class CreditAudit(wiring.Component):
    """The audit of credits: it visits the VCs 0 to ``last`` in turn, one each ``step`` ticks (round-robin
    resynchronisation).

    It stops when a whole round has found no ``open`` VC and none has started.

    Members
    -------
    now, step, last : In
        The present tick; the interval in ticks, 1 to 2**31; the last VC of a round.
    starts : In
        With the commit: a VC may be open from now on.
    may : In
        A visit is permitted in this tick; otherwise it is made in the next tick that permits it.
    wants, visits, visited, open : Out, Out, Out, In
        A visit is due; a visit is made in this tick (narrow: both valid from clock 1 on); the VC; the VC is open, valid
        at the commit.
    due : Out
        Due tick.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int):
        self._slot = slot
        vc = range(vcs)
        self.on, self.visit = Signal(), Signal(TIME_BITS)
        super().__init__(
            {
                "now": In(TIME_BITS),
                "step": In(STEP_BITS),
                "last": In(vc),
                "starts": In(1),
                "may": In(1),
                "wants": Out(1),
                "visits": Out(1),
                "visited": Out(vc),
                "open": In(1),
                "due": Out(TIME_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, now, on, visit = self._slot.within(m), self.now, self.on, self.visit
        slot.with_commit(self.starts)
        goes_on, following = Signal(), Signal(TIME_BITS)
        there = slot.pipe((visit + ~now)[:TIME_BITS][STEP_BITS:].any(), "visit_there")  # not to come any more
        m.d.comb += [
            self.wants.eq(on & there),
            self.visits.eq(self.wants & self.may),
            following.eq(due_tick((now + self.step)[:TIME_BITS])),
            self.due.eq(Mux(on, visit, NEVER)),
        ]
        with m.If(slot.commit), m.If(self.visits):
            m.d.sync += [visit.eq(following), self.visited.eq(self.visited + 1), goes_on.eq(goes_on | self.open)]
            with m.If(self.visited >= self.last):
                m.d.sync += [self.visited.eq(0), on.eq(goes_on | self.open | self.starts), goes_on.eq(0)]
        with m.If(self.starts):
            m.d.sync += goes_on.eq(1)
            with m.If(~on):
                m.d.sync += [on.eq(1), visit.eq(following)]
        return m
