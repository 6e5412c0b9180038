"""The reassembly timer of AAL5."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cell import NEVER, TIME_BITS, TimeSignature, due_tick

__all__ = ["TIMEOUT_BITS", "ReassemblyTimer"]

TIMEOUT_BITS = 32
"""Bits of a time-out and of the tick in which a PDU began: twice the longest time-out."""


class ReassemblyTimer(wiring.Component):
    """The reassembly timer: it finds the PDUs that began ``timeout`` ticks ago or earlier.

    As long as any PDU is begun, the VCs are visited in turn, one each ``timeout / (4 * vcs)`` ticks (at least one).

    Parameters
    ----------
    slot : TickSchedule
        The node's.
    vcs : int

    Members
    -------
    time : In
    timeout : In
        Ticks; 0: no PDU is given up.
    vc, tick : In
        The VC of a cell that ended, and the tick in which it came, with one or two of
    begins, opens, closes : In
        the cell is the first of its PDU; it leaves a PDU open where none was (not even one of before the VC's set-up);
        it closes an open one.
    visits, visited : Out
        This tick visits the VC; ``visited`` is valid from clock 0 on (narrow).
    open, current : In
        The VC visited has a PDU begun, which is of after its set-up; valid at the commit.
    arrives : In
        A cell arrived in this tick. A PDU is not given up in it, but in the next.
    gives_up, expires : Out
        With the commit: the state of the VC visited is to be forgotten; and its PDU is told of as given up.
    due : Out
        Due tick.
    """

    def __init__(self, slot, *, vcs):
        self._slot, self.vcs = slot, vcs
        self.visit = Signal(TIME_BITS)
        super().__init__(
            {
                "time": In(TimeSignature()),
                "timeout": In(TIMEOUT_BITS),
                "vc": In(range(vcs)),
                "tick": In(TIME_BITS),
                "begins": In(1),
                "opens": In(1),
                "closes": In(1),
                "visits": Out(1),
                "visited": Out(range(vcs)),
                "open": In(1),
                "current": In(1),
                "arrives": In(1),
                "gives_up": Out(1),
                "expires": Out(1),
                "due": Out(TIME_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, now = self._slot.within(m), self.time.now
        starts = slot.store("starts", TIMEOUT_BITS, self.vcs, block=True)
        starts.write(self.vc, self.tick[:TIMEOUT_BITS], self.begins)
        begun = Signal(range(self.vcs + 1))  # PDUs
        visit = self.visit
        pace, step = self.timeout[(self.vcs - 1).bit_length() + 2 :], Signal(TIMEOUT_BITS)
        m.d.comb += step.eq(slot.pipe(Mux(pace == 0, 1, pace), "step_held", since=0))

        with m.If(self.opens):
            m.d.sync += begun.eq(begun + 1)
            with m.If(begun == 0):
                m.d.sync += visit.eq(due_tick((self.tick + step)[:TIME_BITS]))
        with m.If(self.closes):
            m.d.sync += begun.eq(begun - 1)

        on = Signal()
        m.d.comb += on.eq(slot.pipe((self.timeout != 0) & (begun != 0), "on_held"))
        there = slot.pipe((visit + ~now)[:TIME_BITS][TIMEOUT_BITS:].any(), "visit_there")  # not to come any more
        with m.If(slot.commit), m.If(on), m.If(there):
            m.d.comb += self.visits.eq(1)
        old = Signal()
        with slot.gate_when(self.visits):
            age = (now[:TIMEOUT_BITS] - starts.read(self.visited, at=3, to="start"))[:TIMEOUT_BITS]
            m.d.comb += old.eq(self.open & (~self.current | slot.pipe(age >= self.timeout, "aged")))
        with m.If(self.visits), m.If(~(old & self.arrives)):  # else once more in the next tick
            m.d.sync += [self.visited.eq(self.visited + 1), visit.eq(due_tick((now + step)[:TIME_BITS]))]
            with m.If(old):
                m.d.comb += self.gives_up.eq(1)
                with m.If(self.current):
                    m.d.comb += self.expires.eq(1)
        with m.If(self.gives_up):
            m.d.sync += begun.eq(begun - 1)
        m.d.comb += self.due.eq(slot.pipe(Mux(on, visit, NEVER), "due_held"))
        return m
