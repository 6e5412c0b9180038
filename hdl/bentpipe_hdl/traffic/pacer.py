"""Pacing: which VC gets the line, and when (I.371)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cell import FRACTION_BITS, NEVER, TIME_BITS, TimeSignature, due_tick
from ..setup import SetUps
from .tournament import KEY_BITS, Tournament

__all__ = ["PERIOD_BITS", "LineClock", "Pacer"]

KEY_TICKS = KEY_BITS - FRACTION_BITS
PERIOD_BITS = 40
AHEAD_BITS = PERIOD_BITS - FRACTION_BITS
"""The line's next tick is less than ``2**AHEAD_BITS`` ticks behind the next one: that of a cell after the longest
period."""


class LineClock(wiring.Component):
    """When a line takes its next cell: ``period`` after the last one, or at once.

    Time is compared modulo its range: after 2**48 ticks of silence the line may seem busy, for the length of the
    longest period at most.

    Members
    -------
    time : In
    period : In
        Ticks a cell, 16 fraction bits.
    free : Out
        It takes a cell in this tick; there from clock 1 on (narrow).
    sends : In
        It does, in this tick: in the same clock (wide), from clock 2 on (narrow).
    soonest : Out
        The tick, a later one, in which it takes the next one; there from clock 4 on (narrow).
    starts : In
        It is free from now on.
    """

    def __init__(self, slot):
        self._slot = slot
        self.next = Signal(TIME_BITS + FRACTION_BITS)
        super().__init__(
            {
                "time": In(TimeSignature()),
                "period": In(PERIOD_BITS),
                "free": Out(1),
                "sends": In(1),
                "soonest": Out(TIME_BITS),
                "starts": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, tick, now = self._slot.within(m), self.time.tick, self.time.now
        following, after = self.next, Signal(TIME_BITS + FRACTION_BITS)
        behind = (following[FRACTION_BITS:] + ~now)[:TIME_BITS]  # the next tick
        free = slot.hold(behind[AHEAD_BITS:].any(), tick, "line_free", since=1)
        late = slot.hold(~behind.all(), tick, "line_late", since=1)  # it isn't this tick
        m.d.comb += self.free.eq(free)
        with slot.only(self.sends):
            m.d.comb += after.eq(Mux(late, Cat(Const(0, FRACTION_BITS), now), following) + self.period)
        with m.If(slot.commit if slot.wide else slot.clock(2)), m.If(self.sends):
            m.d.sync += following.eq(after)
        then = Signal(TIME_BITS)
        m.d.comb += then.eq(following[FRACTION_BITS:])
        if slot.wide:
            with m.If(self.sends):
                m.d.comb += then.eq(after[FRACTION_BITS:])
        else:
            slot.clocks.holds(then, 3)
        past = (then + ~now)[:TIME_BITS][AHEAD_BITS:].any()
        m.d.comb += self.soonest.eq(slot.settle(Mux(past, (now + 1)[:TIME_BITS], then), "soonest_held"))
        with m.If(self.starts):
            m.d.sync += following.eq(Cat(Const(0, FRACTION_BITS), now))
        return m


class Pacer(wiring.Component):
    """Gives the line to the VC whose cell is due first, and moves that VC's due time on.

    After each cell a VC's due time moves on by its period from ``max(due, now - tolerance)``: virtual scheduling of
    GCRA (I.371). A tick sends a cell or takes a post. The VC of the next cell is chosen a tick or more ahead
    (``fetch``); a post that found a cell being sent comes first in the next tick, as a line with less than two ticks
    a cell leaves it no other.

    A VC that comes again keeps its due time, unless that is past, or further ahead than a period (left over from long
    ago), or the VC has been set up since.

    Parameters
    ----------
    slot : Slot
        The node's.
    vcs : int

    Members
    -------
    time : In
    line_period, tolerance : In
        Ticks a cell of the line, 16 fraction bits; ticks that a VC may catch up.
    period_index, period, period_en : In
        Writes the table of the VCs' periods.
    set_up_vc, set_up : In
        The VC is set up.
    post, post_vc, post_fits : In
        A VC's PDU waits to be taken; ``post_fits``: it is one that can be sent.
    vc, sends, posts, accepts, changes : Out
        The tick's VC, and what happens to it: it sends the cell that was fetched; a post for it is taken, which
        counts if it is accepted; any of both. Narrow: there from clock 1 on, the last two from clock 4 on, to the
        commit.
    last : In
        It sends the last cell of its PDU: in the same clock (wide), from clock 4 on (narrow).
    fetch, fetch_vc : Out
        This VC's cell is the next to be sent. One clock.
    due : Out
        Due tick.
    clearing, clear : In
        As of :class:`~.tournament.Tournament`.
    """

    def __init__(self, slot, *, vcs):
        self._slot, self.vcs = slot, vcs
        self.tournament, self.line, self.fetched = Tournament(slot, vcs=vcs), LineClock(slot), Signal()
        bits = (vcs - 1).bit_length()
        super().__init__(
            {
                "time": In(TimeSignature()),
                "line_period": In(PERIOD_BITS),
                "tolerance": In(24),
                "period_index": In(bits),
                "period": In(PERIOD_BITS),
                "period_en": In(1),
                "set_up_vc": In(bits),
                "set_up": In(1),
                "post": In(1),
                "post_vc": In(bits),
                "post_fits": In(1),
                "vc": Out(bits),
                "sends": Out(1),
                "posts": Out(1),
                "accepts": Out(1),
                "changes": Out(1),
                "last": In(1),
                "fetch": Out(1),
                "fetch_vc": Out(bits),
                "due": Out(TIME_BITS, init=NEVER),
                "clearing": In(1),
                "clear": In(bits + 1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, commit, now = self._slot.within(m), self._slot.commit, self.time.now
        vc, sends, posts = self.vc, self.sends, self.posts
        m.submodules.tournament, m.submodules.line = tournament, line = self.tournament, self.line
        periods = slot.store("periods", PERIOD_BITS, self.vcs, block=True)
        periods.write(self.period_index, self.period, self.period_en)
        setups = SetUps(slot, "tx", self.vcs, self.set_up_vc, self.set_up)

        # What the tick does
        fetched, fetched_vc, waited = self.fetched, Signal.like(vc), Signal()
        post = slot.hold(self.post & ~self.clearing, self.time.tick, "post_there", since=1)
        wiring.connect(m, wiring.flipped(self.time), line.time)
        m.d.comb += [line.period.eq(self.line_period), line.starts.eq(self.clearing), line.sends.eq(sends)]
        with m.If(fetched), m.If(line.free & ~(post & waited)):
            m.d.comb += sends.eq(1)
        m.d.comb += [posts.eq(post & ~sends), vc.eq(Mux(sends, fetched_vc, self.post_vc))]

        # The VC's next due time
        leaf, period = Signal(tournament.entry), Signal(PERIOD_BITS)
        number, current = setups.look(vc, at=1, to="tx")
        m.d.comb += [
            tournament.vc.eq(vc),
            leaf.eq(tournament.leaf),
            period.eq(periods.read(vc, at=1, to="tx_period")),
        ]
        start = (now - Mux(sends, self.tolerance, 0))[:KEY_TICKS]  # a cell's next is reckoned from here on
        earliest = slot.settle(Cat(Const(0, FRACTION_BITS), start), "earliest")
        lag = Signal(KEY_BITS)
        comes, keeps, accepts, key = Signal(), Signal(), Signal(), Signal(KEY_BITS)
        m.d.comb += [
            lag.eq(leaf.key - earliest),
            comes.eq(lag.any() & ~lag[PERIOD_BITS:].any() & (lag[:PERIOD_BITS] <= period)),  # in a period at most
            keeps.eq(Mux(sends, ~lag[-1], current & comes)),
            key.eq(Mux(slot.settle(keeps, "keeps"), leaf.key, earliest) + Mux(sends, period, 0)),
        ]
        with m.If(posts):
            m.d.comb += accepts.eq(~leaf.valid & self.post_fits)
        m.d.comb += self.accepts.eq(accepts if slot.wide else slot.hold(accepts, slot.clock(3), "accepts", since=4))
        changes, changed = self.changes, Signal()
        m.d.comb += changes.eq(sends | self.accepts)
        with m.If(commit), m.If(changes):
            m.d.comb += changed.eq(1)
        m.d.comb += [
            tournament.change.eq(changed if slot.wide else changes),
            tournament.valid.eq(~(sends & self.last)),
            tournament.key.eq(key),
            tournament.clearing.eq(self.clearing),
            tournament.clear.eq(self.clear),
        ]
        renews = Signal()
        with m.If(changed), m.If(self.accepts), m.If(~current):
            m.d.comb += renews.eq(1)
        setups.renew(vc, number, renews)

        # The next cell
        first, decides, gap = tournament.root, Signal(), Signal(signed(KEY_TICKS))
        eligible = Signal()
        with m.If(sends | ~fetched), m.If(sends | first.valid):
            m.d.comb += decides.eq(1)
        m.d.comb += [
            gap.eq(line.soonest[:KEY_TICKS] - first.key[FRACTION_BITS:]),
            eligible.eq(first.valid & ~gap[-1]),
        ]
        m.d.sync += self.fetch.eq(0)
        with m.If(commit):
            with m.If(post):
                m.d.sync += waited.eq(sends)
            with m.If(decides):
                m.d.sync += [fetched.eq(eligible), self.fetch.eq(eligible)]
                with m.If(eligible):
                    m.d.sync += [fetched_vc.eq(first.vc), self.fetch_vc.eq(first.vc)]
        wait, goes, decided = (
            slot.settle(value, f"{name}_held")
            for name, value in (("gap", gap), ("eligible", eligible), ("decides", decides))
        )
        when = due_tick(Mux(goes, line.soonest, (line.soonest + ~wait)[:TIME_BITS]))
        with m.If(commit if slot.wide else slot.clock(12)), m.If(decided):
            m.d.sync += self.due.eq(when)
            with m.If(~first.valid):
                m.d.sync += self.due.eq(NEVER)
        return m
