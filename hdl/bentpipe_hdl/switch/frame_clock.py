"""Slots of frames: when a port may send that has places for cells on a grid."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cell import FRACTION_BITS, NEVER, TIME_BITS, due_tick, earlier
from ..slot import Slot
from .options.frames import NIBBLE, SLOTS, TRAILER

__all__ = ["FrameClock"]

DUE_BITS = TIME_BITS + FRACTION_BITS

LONG_AGO = 13
"""A clock that is 2**13 ticks behind begins anew."""


class FrameClock(wiring.Component):
    """The PLCP's slots (G.804; ANSI T1.624): 12 in a frame, then a trailer of 13 or 14 nibbles.

    The grid goes on whether there are cells or not. As a slot begins, a cell that could leave takes it, and its port
    may send from the next tick on, until it has sent one cell; otherwise the slot passes with an idle cell, and what
    comes in its course waits for the next one. Of three frames the first has a trailer of 13 nibbles, the second one
    of 14, and the third one of 13 or 14, whichever brings the next frame closer to where three frames of 125 us end:
    so the rate of cells is exactly 12 in a third of ``cycle``. A port that others hold up for a whole slot loses that.

    A clock that is not set, or long behind, begins with the present tick.

    Members
    -------
    now : In
    slot0, cycle0 … : In
        Of a port: a slot, and three frames, in ticks with 16 fraction bits; slot 0: no frames.
    ripe : In
        A bit a port: it has a cell that could leave, but for the slot.
    serve, port : In
        A port sends now.
    stalled, still_stalled, changes : Out
        A bit a port: it may not send; what becomes of these now, when ``changes`` is high.
    due : Out
        When the next slot begins.
    """

    def __init__(self, slot: Slot, *, ports: int):
        self._slot, self._ports = slot, ports
        super().__init__(
            {
                "now": In(TIME_BITS),
                "slot": In(32).array(ports),
                "cycle": In(32).array(ports),
                "ripe": In(ports),
                "serve": In(1),
                "port": In(range(max(ports, 2))),
                "stalled": Out(ports),
                "still_stalled": Out(ports),
                "changes": Out(1),
                "due": Out(TIME_BITS, init=NEVER),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        due, changes = Const(NEVER, TIME_BITS), []
        for p in range(self._ports):
            framed = self.slot[p] != 0
            at, open_ = Signal(DUE_BITS, name=f"slot_at{p}"), Signal(name=f"slot_open{p}")
            begins, opens = self._grid(m, slot, p, framed, at), Signal(name=f"slot_opens{p}")
            sends = Signal(name=f"slot_used{p}")
            with m.If(self.serve), m.If(self.port == p):
                m.d.comb += sends.eq(1)
            m.d.comb += opens.eq(Mux(begins, self.ripe[p] & ~sends, open_ & ~sends))
            with m.If(begins | sends):
                m.d.sync += open_.eq(opens)
            m.d.comb += [self.stalled[p].eq(framed & ~open_), self.still_stalled[p].eq(framed & ~opens)]
            soonest = Signal(TIME_BITS, name=f"slot_due{p}")
            m.d.comb += soonest.eq(earlier(Mux(framed, due_tick(at[FRACTION_BITS:]), NEVER), due))
            due = soonest
            changes.append(begins)
        m.d.comb += [self.due.eq(due), self.changes.eq(Cat(changes).any())]
        return m

    def _grid(self, m, slot, p, framed, at):
        """A port's grid; whether a slot begins now."""
        now = self.now
        ends_at = Signal(DUE_BITS, name=f"cycle_ends{p}")
        place, frame = Signal(range(SLOTS), name=f"slot_place{p}"), Signal(2, name=f"slot_frame{p}")
        started, begins = Signal(name=f"slot_started{p}"), Signal(name=f"slot_begins{p}")
        behind = Signal(TIME_BITS, name=f"slot_behind{p}")
        m.d.comb += behind.eq(now - at[FRACTION_BITS:])
        reached = slot.settle(~behind[-1], f"slot_reached{p}")
        anew = slot.settle(~started | behind[LONG_AGO:-1].any(), f"slot_anew{p}")
        with m.If(slot.commit), m.If(framed), m.If(reached | ~started):
            m.d.comb += begins.eq(1)
        last, third = Signal(name=f"slot_last{p}"), Signal(name=f"slot_third{p}")
        m.d.comb += [last.eq(place == SLOTS - 1), third.eq(frame == 2)]
        short, early = Signal(DUE_BITS, name=f"frame_short{p}"), Signal(DUE_BITS, name=f"frame_early{p}")
        with slot.only(begins):
            m.d.comb += [
                short.eq(slot.settle(at + self.slot[p] + Mux(last, TRAILER, 0), f"frame_short_held{p}")),
                early.eq(slot.settle(ends_at - short - NIBBLE // 2, f"frame_early_held{p}")),
            ]
        stuffs = last & Mux(third, ~early[-1], frame == 1)
        with m.If(begins):
            with m.If(anew):
                here = Cat(Const(0, FRACTION_BITS), now)
                m.d.sync += [
                    started.eq(1),
                    at.eq(here + self.slot[p]),
                    ends_at.eq(here + self.cycle[p]),
                    place.eq(1),
                    frame.eq(0),
                ]
            with m.Else():
                m.d.sync += [at.eq(Mux(stuffs, short + NIBBLE, short)), place.eq(Mux(last, 0, place + 1))]
                with m.If(last):
                    m.d.sync += frame.eq(Mux(third, 0, frame + 1))
                    with m.If(third):
                        m.d.sync += ends_at.eq(ends_at + self.cycle[p])
        with m.If(~framed):
            m.d.sync += started.eq(0)
        return begins
