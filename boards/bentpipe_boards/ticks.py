"""Stepped time: ticks up to the one that is asked for, or to the first event; those in which nothing happens are
skipped."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.bridge import RunSignature
from bentpipe_hdl.cell import NEVER, TIME_BITS, TimeSignature

__all__ = ["SETTLED", "Ticks"]

SETTLED = 39
"""Clocks from a change of ``following`` until all that depends on it is there: tick or no tick, skip or none."""


class Ticks(wiring.Component):
    """The generator of a board's ticks.

    Members
    -------
    run : In(RunSignature)
    time : Out(TimeSignature)
    following : Out(48)
        The next tick; from the clock with ``time.tick`` on.
    clocks : In(8), skips : In(1), halts : In(1)
        Settings: clocks of a tick; whether idle ticks are skipped, and whether a run stops at ``event``.
    event : In(1)
        The run is to stop after this tick. It settles within the tick.
    idle, due : In(1), In(48)
        Nothing happens before tick ``due`` while ``idle`` is high.
    holds : In(1)
        A memory is not ready for the next tick. Valid within the tick; the settling time starts anew after it.
    """

    run: In(RunSignature())
    time: Out(TimeSignature())
    following: Out(TIME_BITS)
    clocks: In(8)
    skips: In(1)
    halts: In(1)
    event: In(1)
    idle: In(1)
    due: In(TIME_BITS)
    holds: In(1)

    def elaborate(self, platform):
        m = Module()
        following, until = self.following, Signal(TIME_BITS)
        left, settling = Signal(8), Signal(range(SETTLED + 1))
        # Each is there two clocks after what it is made of
        past, ahead, never, beyond = Signal(), Signal(TIME_BITS), Signal(), Signal()
        may_skip, ends, stop = Signal(), Signal(), Signal()
        m.d.sync += [
            past.eq(following > until),
            ahead.eq(self.due - following),
            never.eq(self.due == NEVER),
            beyond.eq(self.due > until),
            may_skip.eq(self.skips & self.idle & (never | (~ahead[-1] & (ahead != 0)))),
            ends.eq(past | stop | (self.halts & self.event)),
            self.time.tick.eq(0),
        ]
        m.d.comb += self.run.following.eq(following)
        ready = Signal()
        m.d.comb += ready.eq(self.run.running & (left == 0) & (settling == 0))
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(settling != 0):
            m.d.sync += settling.eq(settling - 1)
        with m.If(self.holds):
            m.d.sync += settling.eq(SETTLED)
        with m.If(self.run.stop & self.run.running):
            m.d.sync += stop.eq(1)
        with m.If(ready):
            with m.If(ends):
                m.d.sync += [self.run.running.eq(0), self.run.stopped.eq(~past)]
            with m.Elif(may_skip):
                m.d.sync += [following.eq(Mux(never | beyond, until + 1, self.due)), settling.eq(SETTLED)]
            with m.Else():
                m.d.sync += [
                    self.time.tick.eq(1), self.time.now.eq(following), following.eq(following + 1),
                    left.eq(self.clocks - 1), settling.eq(SETTLED),
                ]  # fmt: skip
        with m.If(self.run.start):
            m.d.sync += [until.eq(self.run.until), self.run.running.eq(1), stop.eq(0), settling.eq(SETTLED)]
        return m
