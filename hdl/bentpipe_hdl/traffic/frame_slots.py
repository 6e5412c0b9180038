"""The grid of slots of a line whose cells have places in frames."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from ..cell import FRACTION_BITS, TIME_BITS
from ..plcp import NIBBLE, SLOTS, TRAILER
from ..tick_schedule import TickSchedule

__all__ = ["FrameSlots"]

DUE_BITS = TIME_BITS + FRACTION_BITS

LONG_AGO = 13
"""A grid that is 2**13 ticks behind begins again."""


class FrameSlots:
    """The PLCP's slots (G.804; ANSI T1.624): 12 in a frame, then a trailer of 13 or 14 nibbles.

    Of three frames the first has a trailer of 13 nibbles, the second one of 14, and the third one of 13 or 14,
    whichever brings the next frame closer to where three frames of 125 us end: so the rate of cells is exactly 12 in a
    third of ``cycle``. A grid that is not set, or long behind, begins with the present tick.

    Parameters
    ----------
    m, slot : Module, TickSchedule
        What it is built in.
    name : str
        Of its registers.
    now, length, cycle : Value
        The present tick; a slot, and three frames, in ticks with 16 fraction bits; length 0: there is no grid.

    Attributes
    ----------
    at : Signal
        When the next slot begins: ticks with 16 fraction bits.
    reached : Value
        It does in this tick; valid from clock 1 on (narrow).
    begins : Signal
        The same, as the tick commits.
    following : Signal
        When the slot behind that begins; valid from clock 2 on (narrow).
    end : Signal
        The tick in which the last bit of the slot that began last leaves.
    """

    def __init__(self, m: Module, slot: TickSchedule, name: str, now, length, cycle):
        self.at = at = Signal(DUE_BITS, name=f"{name}_at")
        self.begins, self.following = Signal(name=f"{name}_begins"), Signal(DUE_BITS, name=f"{name}_following")
        ends_at, started = Signal(DUE_BITS, name=f"{name}_cycle_ends"), Signal(name=f"{name}_started")
        place, frame = Signal(range(SLOTS), name=f"{name}_place"), Signal(2, name=f"{name}_frame")
        framed, behind = length != 0, Signal(TIME_BITS, name=f"{name}_behind")
        m.d.comb += behind.eq(now - at[FRACTION_BITS:])
        self.reached = slot.pipe(framed & (~started | ~behind[-1]), f"{name}_reached")
        anew = slot.pipe(~started | (behind[LONG_AGO:-1].any() & ~behind[-1]), f"{name}_anew")
        with m.If(slot.commit), m.If(self.reached):
            m.d.comb += self.begins.eq(1)
        last, third = Signal(name=f"{name}_last"), Signal(name=f"{name}_third")
        m.d.comb += [last.eq(place == SLOTS - 1), third.eq(frame == 2)]
        short, early = Signal(DUE_BITS, name=f"{name}_short"), Signal(DUE_BITS, name=f"{name}_early")
        self.end, ended = Signal(TIME_BITS, name=f"{name}_end"), Signal(DUE_BITS, name=f"{name}_ended")
        here, first = Cat(Const(0, FRACTION_BITS), now), Signal(DUE_BITS, name=f"{name}_first")
        stuffs = last & Mux(third, ~early[-1], frame == 1)
        with slot.gate_when(self.reached):
            m.d.comb += [
                short.eq(slot.pipe(at + length + Mux(last, TRAILER, 0), f"{name}_short_held")),
                early.eq(slot.pipe(ends_at - short - NIBBLE // 2, f"{name}_early_held")),
                first.eq(slot.pipe(here + length, f"{name}_first_held")),
                ended.eq(Mux(anew, first, slot.pipe(at + length, f"{name}_ended_held"))),
                self.following.eq(Mux(anew, first, Mux(stuffs, short + NIBBLE, short))),
            ]
        with m.If(self.begins):
            m.d.sync += [at.eq(self.following), self.end.eq(ended[FRACTION_BITS:])]
            with m.If(anew):
                m.d.sync += [started.eq(1), ends_at.eq(here + cycle), place.eq(1), frame.eq(0)]
            with m.Else():
                m.d.sync += place.eq(Mux(last, 0, place + 1))
                with m.If(last):
                    m.d.sync += frame.eq(Mux(third, 0, frame + 1))
                    with m.If(third):
                        m.d.sync += ends_at.eq(ends_at + cycle)
        with m.If(~framed):
            m.d.sync += started.eq(0)
