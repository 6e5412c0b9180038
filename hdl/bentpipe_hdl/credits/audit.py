"""The audit of credits: visits to the VCs in turn while the fate of any cell is unknown."""

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

    It stops when a whole round has found open VC (``vc_open``) and none has started.

    Members
    -------
    now, step, last : In
        The present tick; the interval in ticks, 1 to 2**31; the last VC of a round.
    start : In
        With the commit: a VC may be open from now on.
    visit_allowed : In
        A visit is permitted in this tick; otherwise it is made in the next tick that permits it.
    visit_due, visit, visit_vc, vc_open : Out, Out, Out, In
        A visit is due; a visit is made in this tick (narrow: both valid from clock 1 on); the VC; the VC is open, valid
        at the commit.
    due : Out
        Due tick.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int):
        self._slot = slot
        vc = range(vcs)
        self.active, self.next_visit = Signal(), Signal(TIME_BITS)
        super().__init__(
            {
                "now": In(TIME_BITS),
                "step": In(STEP_BITS),
                "last": In(vc),
                "start": In(1),
                "visit_allowed": In(1),
                "visit_due": Out(1),
                "visit": Out(1),
                "visit_vc": Out(vc),
                "vc_open": In(1),
                "due": Out(TIME_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, now, active, next_visit = self._slot.within(m), self.now, self.active, self.next_visit
        slot.with_commit(self.start)
        open_found, following = Signal(), Signal(TIME_BITS)
        is_past = slot.pipe((next_visit + ~now)[:TIME_BITS][STEP_BITS:].any(), "visit_is_past")
        m.d.comb += [
            self.visit_due.eq(active & is_past),
            self.visit.eq(self.visit_due & self.visit_allowed),
            following.eq(due_tick((now + self.step)[:TIME_BITS])),
            self.due.eq(Mux(active, next_visit, NEVER)),
        ]
        with m.If(slot.commit), m.If(self.visit):
            m.d.sync += [
                next_visit.eq(following),
                self.visit_vc.eq(self.visit_vc + 1),
                open_found.eq(open_found | self.vc_open),
            ]
            with m.If(self.visit_vc >= self.last):
                m.d.sync += [self.visit_vc.eq(0), active.eq(open_found | self.vc_open | self.start), open_found.eq(0)]
        with m.If(self.start):
            m.d.sync += open_found.eq(1)
            with m.If(~active):
                m.d.sync += [active.eq(1), next_visit.eq(following)]
        return m
