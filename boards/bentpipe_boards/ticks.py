"""A board's time: stepped up to the tick that is asked for, or paced by a clock. Idle ticks are skipped.

Stepped time has no relation to real time. Paced time follows it and is never ahead. :class:`RealTime` counts the ticks
of real time, and :class:`Ticks` decides when a tick begins. A board whose plan has no VLANs has stepped time alone.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.bridge import RunSignature
from bentpipe_hdl.cell import NEVER, TIME_BITS, TimeSignature

__all__ = ["PACE_BITS", "SETTLED", "LagSignature", "RealTime", "Ticks"]

SETTLED = 39
"""Clocks from a change of ``following`` until all that depends on it is there: tick or no tick, skip or none."""

PACE_BITS = 32
"""Fraction bits of the phase accumulator, and bits of the pace."""

_FAR_BITS = 40
"""Ticks that time skips where nothing is due: 54 hours, of which no comparison of times takes notice."""
_COUNT_BITS = 32
_MOST = (1 << _COUNT_BITS) - 1


class LagSignature(wiring.Signature):
    """The lag of a board's time behind real time, as its registers show it.

    Members
    -------
    now : Out(32)
        Ticks whose time has passed and that have neither begun nor been skipped. 0 without a pace.
    most : Out(32)
        The greatest value of ``now`` since the pace was written.
    late : Out(32)
        Ticks that began when the time of the next tick had come, since the pace was written.

    All three saturate.
    """

    def __init__(self):
        super().__init__({"now": Out(_COUNT_BITS), "most": Out(_COUNT_BITS), "late": Out(_COUNT_BITS)})


class RealTime(wiring.Component):
    """Real time in ticks: a phase accumulator.

    Real time begins at tick ``following`` in the first clock with ``going`` after ``restart``. It advances by
    ``pace / 2**32`` ticks a clock from then on, also while no tick begins, until the next ``restart``. ``now`` is the
    whole part, a clock late. So it is never ahead, and its average rate is exact.

    Members
    -------
    pace : In(32)
        Ticks a clock, 32 fraction bits.
    restart : In(1)
        The pace has a new value: real time stops, and the lag is cleared.
    going : In(1)
        The board's time may advance.
    following, begins : In(48), In(1)
        The board's next tick; it begins in this clock.
    now : Out(48)
        The present tick of real time; valid with ``runs``.
    runs : Out(1)
        Real time advances. It is low without a pace.
    lag : Out(LagSignature)
        Two clocks late.
    """

    pace: In(PACE_BITS)
    restart: In(1)
    going: In(1)
    following: In(TIME_BITS)
    begins: In(1)
    now: Out(TIME_BITS)
    runs: Out(1)
    lag: Out(LagSignature())

    def elaborate(self, platform):
        m = Module()
        phase, carry = Signal(PACE_BITS), Signal()
        with m.If(self.runs):
            m.d.sync += [Cat(phase, carry).eq(phase + self.pace), self.now.eq(self.now + carry)]
        with m.Elif(self.going & (self.pace != 0)):
            m.d.sync += [self.runs.eq(1), self.now.eq(self.following), phase.eq(0), carry.eq(0)]

        behind, begun = Signal(TIME_BITS), Signal()
        m.d.sync += begun.eq(self.begins & self.runs)
        m.d.comb += behind.eq(self.now - self.following)
        lag = self.lag
        with m.If(~self.runs | behind[-1]):
            m.d.sync += lag.now.eq(0)
        with m.Else():
            m.d.sync += lag.now.eq(Mux(behind > _MOST, _MOST, behind))
        with m.If(lag.now > lag.most):
            m.d.sync += lag.most.eq(lag.now)
        with m.If(begun & (lag.now != 0) & (lag.late != _MOST)):
            m.d.sync += lag.late.eq(lag.late + 1)
        with m.If(self.restart):
            m.d.sync += [self.runs.eq(0), lag.now.eq(0), lag.most.eq(0), lag.late.eq(0), begun.eq(0)]
        return m


class Ticks(wiring.Component):
    """The generator of a board's ticks.

    Without a pace a tick begins as soon as the one before is over. With a pace it also waits for its time: tick T
    begins when real time is T or later (:class:`RealTime`). A board that is behind does not wait until it has caught
    up.

    ``following`` may be ahead of real time where the network is idle: it is the due tick for which the board waits.
    When something happens before, ``following`` goes back to the next tick of real time.

    Parameters
    ----------
    paced : bool
        Time may have a pace; without it there is neither :class:`RealTime` nor free-running time.

    Members
    -------
    run : In(RunSignature)
        While ``free`` is high, a run ends at once and is ``stopped``.
    free : In(1)
        Time goes on without a run; with ``paced`` alone, as the next three.
    pace, restart : In(32), In(1)
        As for :class:`RealTime`; pace 0 is stepped time.
    lag : Out(LagSignature)
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

    def __init__(self, *, paced):
        self._paced = paced
        pace = {"free": In(1), "pace": In(PACE_BITS), "restart": In(1), "lag": Out(LagSignature())}
        super().__init__(
            {
                "run": In(RunSignature()),
                **(pace if paced else {}),
                "time": Out(TimeSignature()),
                "following": Out(TIME_BITS),
                "clocks": In(8),
                "skips": In(1),
                "halts": In(1),
                "event": In(1),
                "idle": In(1),
                "due": In(TIME_BITS),
                "holds": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        following, until, running = self.following, Signal(TIME_BITS), self.run.running
        left, settling = Signal(8), Signal(range(SETTLED + 1))
        free, ready, tick = Signal(), Signal(), Signal()
        m.d.comb += [ready.eq((left == 0) & (settling == 0)), self.run.following.eq(following)]
        # Each is there two clocks after what it is made of
        past, ahead, never, beyond = Signal(), Signal(TIME_BITS), Signal(), Signal()
        may_skip, ends, stop = Signal(), Signal(), Signal()
        m.d.sync += [
            past.eq(following > until),
            ahead.eq(self.due - following),
            never.eq(self.due == NEVER),
            beyond.eq(self.due > until),
            may_skip.eq(self.skips & self.idle & (never | (~ahead[-1] & (ahead != 0)))),
            ends.eq(stop | (self.halts & self.event) | free),
            self.time.tick.eq(0),
        ]
        # With a pace: the time of the next tick has not come; nor that of the one before; it is not to be waited for
        early, waits, back, now = Signal(), Signal(), Signal(), Signal(TIME_BITS)
        if self._paced:
            m.submodules.real = real = RealTime()
            was_free, distance = Signal(), Signal(TIME_BITS)
            wiring.connect(m, real.lag, wiring.flipped(self.lag))
            m.d.comb += [
                free.eq(self.free & was_free & (self.pace != 0)),
                real.pace.eq(self.pace),
                real.restart.eq(self.restart),
                real.going.eq((running | free) & ready),
                real.following.eq(following),
                real.begins.eq(tick),
                now.eq(real.now),
                distance.eq(following - now),
            ]
            m.d.sync += [
                was_free.eq(self.free),
                early.eq((self.pace != 0) & (~real.runs | (~distance[-1] & (distance != 0)))),
                waits.eq(real.runs & ~distance[-1] & (distance > 1)),
                back.eq(~self.idle | (~never & ahead[-1]) | (running & ends) | ~(running | free)),
            ]
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(settling != 0):
            m.d.sync += settling.eq(settling - 1)
        with m.If(self.holds):
            m.d.sync += settling.eq(SETTLED)
        with m.If(self.run.stop & running):
            m.d.sync += stop.eq(1)
        with m.If(ready):
            with m.If(waits & back):
                m.d.sync += [following.eq(now + 1), settling.eq(SETTLED)]
            with m.Elif(running & ((ends & ~waits) | (past & ~early))):
                m.d.sync += [running.eq(0), self.run.stopped.eq(~past)]
            with m.Elif((running & ~past) | free):
                with m.If(may_skip & ~waits):
                    end = Mux(free, now + (1 << _FAR_BITS), until + 1)
                    m.d.sync += [
                        following.eq(Mux(never | (beyond & ~free), end, self.due)), settling.eq(SETTLED),
                    ]  # fmt: skip
                with m.Elif(~early):
                    m.d.comb += tick.eq(1)
                    m.d.sync += [
                        self.time.tick.eq(1), self.time.now.eq(following), following.eq(following + 1),
                        left.eq(self.clocks - 1), settling.eq(SETTLED),
                    ]  # fmt: skip
        with m.If(self.run.start):
            m.d.sync += [until.eq(self.run.until), running.eq(1), stop.eq(0), settling.eq(SETTLED)]
        if self._paced:
            with m.If(self.free & ~was_free):
                m.d.sync += settling.eq(SETTLED)
        return m
