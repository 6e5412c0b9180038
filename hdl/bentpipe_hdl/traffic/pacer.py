"""Pacing: which VC gets the line, and when (I.371)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..cell import FRACTION_BITS, NEVER, TIME_BITS, TimeSignature, due_tick
from ..generations import Generations
from .frame_slots import FrameSlots
from .gcra import Sizes, gcra
from .tournament import KEY_BITS, Tournament

__all__ = ["PERIOD_BITS", "FramedLine", "LineClock", "Pacer", "SustainedRate"]

KEY_TICKS = KEY_BITS - FRACTION_BITS
PERIOD_BITS = 40
AHEAD_BITS = PERIOD_BITS - FRACTION_BITS
"""The line's next tick is less than ``2**AHEAD_BITS`` ticks behind the next one: that of a cell after the longest
period."""

_SIZES = Sizes()

SustainedRate = data.StructLayout({"increment": _SIZES.increment, "enabled": 1})
"""I of a VC's second bucket, and whether there is one."""

SDU, SINGLE = 0b01, 0b10
"""What a VC has to send, as marks in the tournament: a PDU, a single cell."""

_Bucket = data.StructLayout({"time": _SIZES.time, "valid": 1})


class LineClock(wiring.Component):
    """The clock of a line: it sends its next cell ``period`` after the last one, or at once.

    Time is compared modulo its range: after 2**48 ticks of silence the line may seem busy, for the length of the
    longest period at most.

    Members
    -------
    time : In
    period : In
        Ticks a cell, 16 fraction bits.
    free : Out
        The line takes a cell in this tick. Narrow: valid from clock 1 on.
    sends : In
        A cell is sent in this tick: in the same clock (wide), from clock 2 on (narrow).
    soonest : Out
        The tick, later than this one, in which the line takes the next cell. Narrow: valid from clock 4 on.
    end : Out
        The tick in which the last bit of the last cell sent leaves. Narrow: valid at least from clock 3 of that cell's
        tick to clock 2 of the next cell's.
    starts : In
        The line is free from now on.
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
                "end": Out(TIME_BITS),
                "starts": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, tick, now = self._slot.within(m), self.time.tick, self.time.now
        following, after = self.next, Signal(TIME_BITS + FRACTION_BITS)
        m.d.comb += self.end.eq(following[FRACTION_BITS:])  # as it ends the next one may begin
        behind = (following[FRACTION_BITS:] + ~now)[:TIME_BITS]  # the next tick
        free = slot.hold(behind[AHEAD_BITS:].any(), tick, "line_free", since=1)
        late = slot.hold(~behind.all(), tick, "line_late", since=1)  # it is not this tick
        m.d.comb += self.free.eq(free)
        with slot.gate_when(self.sends):
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
        m.d.comb += self.soonest.eq(slot.pipe(Mux(past, (now + 1)[:TIME_BITS], then), "soonest_held"))
        with m.If(self.starts):
            m.d.sync += following.eq(Cat(Const(0, FRACTION_BITS), now))
        return m


class FramedLine(wiring.Component):
    """The clock of a line with places for cells in frames: it sends a cell as a slot of :class:`.FrameSlots` begins.

    The grid continues without cells, and the node is due for every slot. A cell is sent in the tick in which its slot
    begins, or waits for the next slot. No two slots begin within two ticks, so no post falls between them.

    Members
    -------
    time, free, sends, soonest, end, starts
        As for :class:`LineClock`; a cell ends with its slot.
    length, cycle : In
        Length of a slot, and of three frames: ticks, 16 fraction bits.
    due : Out
        The tick in which the next slot begins.
    """

    def __init__(self, slot):
        self._slot = slot
        super().__init__(
            {
                "time": In(TimeSignature()),
                "length": In(32),
                "cycle": In(32),
                "free": Out(1),
                "sends": In(1),
                "soonest": Out(TIME_BITS),
                "end": Out(TIME_BITS),
                "starts": In(1),
                "due": Out(TIME_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        grid = FrameSlots(m, slot, "slot", self.time.now, self.length, self.cycle)
        begins = Mux(grid.reached, grid.following, grid.at)[FRACTION_BITS:]
        m.d.comb += [
            self.free.eq(grid.reached),
            self.soonest.eq(slot.pipe(begins, "soonest_held")),
            self.end.eq(grid.end),
            self.due.eq(due_tick(grid.at[FRACTION_BITS:])),
        ]
        return m


class Pacer(wiring.Component):
    """The pacer: it gives the line to the VC whose cell is due first, and advances that VC's due time.

    After each cell a VC's due time moves on by its period from ``max(due, now - tolerance)``: virtual scheduling of
    GCRA (I.371). A tick sends a cell or takes a post. The VC of the next cell is chosen a tick or more ahead
    (``fetch``); a post that found a cell being sent comes first in the next tick, as a line with less than two ticks
    a cell leaves it no other.

    A VC that comes again keeps its due time, unless that is past, or further ahead than a period (left over from long
    ago), or the VC has been set up since.

    With ``sustained`` a VC may have a second bucket, GCRA(1/SCR, BT): its cells are due when both let one go, and no
    cell goes a fraction of a tick early, as without. The tournament's one key is enough for the first bucket: where the
    second holds a cell up, it does so for longer than the first would have, as its increment is the longer one.

    Parameters
    ----------
    slot : TickSchedule
        The node's.
    vcs : int
    sustained : bool
    framed : bool
        The line has slots in frames (:class:`FramedLine`): ``length`` and ``cycle`` instead of ``line_period``, and
        ``slot_due`` besides ``due``.
    credits : bool
        VCs may have to wait for credit (:mod:`bentpipe_hdl.nic.options.credits`).
    singles : bool
        A VC may be posted a single cell, too, whether it has a PDU or not. That goes as the VC's next cell, except for
        one that was fetched already.

    Members
    -------
    time : In
    line_period, tolerance : In
        Ticks a cell of the line, 16 fraction bits; ticks that a VC may catch up.
    period_index, period, period_en : In
        Writes the table of the VCs' periods.
    rate_index, rate, rate_en, burst_index, burst, burst_en : In
        With ``sustained``: writes the tables of second buckets, I and whether it is there, and L.
    set_up_vc, set_up : In
        The VC is set up.
    post, post_vc, post_fits : In
        A VC's PDU waits to be taken; ``post_fits``: it is one that can be sent.
    vc, sends, posts, accepts, changes : Out
        The tick's VC, and what happens to it: it sends the cell that was fetched; a post for it is taken, which
        counts if it is accepted; any of both. Narrow: valid from clock 1 on, the last two from clock 4 on, to the
        commit.
    last : In
        It sends the last cell of its PDU: in the same clock (wide), from clock 4 on (narrow).
    fetch, fetch_vc : Out
        This VC's cell is the next to be sent. One clock.
    end : Out
        The tick in which the last bit of the cell that was sent last leaves, as for :class:`LineClock`.
    due : Out
        Due tick.
    clearing, clear : In
        As for :class:`~.tournament.Tournament`.
    lookup_request, lookup_vc, probe_request, probe_vc, allowed, waiting, wakeup : In
        With ``credits``: requests to look up a VC and to send a VC's probe, and the state of the tick's VC; as for
        :mod:`bentpipe_hdl.nic.options.credits`.
    lookup_grant, probe_grant : Out
        The tick looks up ``vc``, or sends a probe of it. Narrow: from clock 1 on.
    post_single : In
        With ``singles``: the post is a single cell.
    single, fetch_single : Out
        What happens to the tick's VC is about a single cell (narrow: from clock 1 on, as ``sends``); so is ``fetch``.
    emptied : Out
        The VC has nothing more to send, after what happens. Narrow: from clock 5 on.
    """

    def __init__(self, slot, *, vcs, sustained=False, credits=False, framed=False, singles=False):
        self._slot, self.vcs, self._sustained, self._credits, self._framed = slot, vcs, sustained, credits, framed
        self._singles = singles
        self.tournament, self.fetched = Tournament(slot, vcs=vcs, marks=2 if singles else 0), Signal()
        self.line = FramedLine(slot) if framed else LineClock(slot)
        bits = (vcs - 1).bit_length()
        frames = {"length": In(32), "cycle": In(32), "slot_due": Out(TIME_BITS)}
        held = {
            "lookup_request": In(1),
            "lookup_vc": In(bits),
            "probe_request": In(1),
            "probe_vc": In(bits),
            "allowed": In(1),
            "waiting": In(1),
            "wakeup": In(1),
            "lookup_grant": Out(1),
            "probe_grant": Out(1),
        }
        alone = {"post_single": In(1), "single": Out(1), "fetch_single": Out(1), "emptied": Out(1)}
        super().__init__(
            {
                **(held if credits else {}),
                **(alone if singles else {}),
                "time": In(TimeSignature()),
                **(frames if framed else {"line_period": In(PERIOD_BITS)}),
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
                "end": Out(TIME_BITS),
                "due": Out(TIME_BITS, init=NEVER),
                "clearing": In(1),
                "clear": In(bits + 1),
            }
            | (
                {
                    "rate_index": In(bits),
                    "rate": In(SustainedRate),
                    "rate_en": In(1),
                    "burst_index": In(bits),
                    "burst": In(_SIZES.limit),
                    "burst_en": In(1),
                }
                if sustained
                else {}
            )
        )

    def elaborate(self, platform):
        m = Module()
        slot, commit, now = self._slot.within(m), self._slot.commit, self.time.now
        vc, sends, posts = self.vc, self.sends, self.posts
        m.submodules.tournament, m.submodules.line = tournament, line = self.tournament, self.line
        periods = slot.store("periods", PERIOD_BITS, self.vcs, block=True)
        periods.write(self.period_index, self.period, self.period_en)
        setups = Generations(slot, "tx", self.vcs, self.set_up_vc, self.set_up)

        # What the tick does
        fetched, fetched_vc, waited = self.fetched, Signal.like(vc), Signal()
        post = slot.hold(self.post & ~self.clearing, self.time.tick, "post_there", since=1)
        wiring.connect(m, wiring.flipped(self.time), line.time)
        m.d.comb += [line.starts.eq(self.clearing), line.sends.eq(sends), self.end.eq(line.end)]
        if self._framed:
            m.d.comb += [line.length.eq(self.length), line.cycle.eq(self.cycle), self.slot_due.eq(line.due)]
        else:
            m.d.comb += line.period.eq(self.line_period)
        if self._credits:
            # A probe takes a cell time of the line, and the tournament ignores it; a lookup takes the place of a post
            m.d.comb += [
                self.probe_grant.eq(self.probe_request & line.free & ~(post & waited)),
                line.sends.eq(sends | self.probe_grant),
                self.lookup_grant.eq(self.lookup_request & ~sends & ~self.probe_grant),
                posts.eq(post & ~sends & ~self.probe_grant & ~self.lookup_grant),
            ]
            goes = line.free & ~(post & waited)  # which is known last
            may_send = goes & ~self.probe_request
            other_vc = Mux(self.lookup_request, self.lookup_vc, self.post_vc)
            tick_vc = Mux(goes, Mux(self.probe_request, self.probe_vc, Mux(fetched, fetched_vc, other_vc)), other_vc)
        else:
            m.d.comb += posts.eq(post & ~sends)
            may_send, tick_vc = line.free & ~(post & waited), Mux(sends, fetched_vc, self.post_vc)
        with m.If(fetched), m.If(may_send):
            m.d.comb += sends.eq(1)
        m.d.comb += vc.eq(tick_vc)

        # The VC's next due time
        leaf, period = Signal(tournament.entry), Signal(PERIOD_BITS)
        number, current = setups.look(vc, at=1, to="tx")
        m.d.comb += [
            tournament.vc.eq(vc),
            leaf.eq(tournament.leaf),
            period.eq(periods.read(vc, at=1, to="tx_period")),
        ]
        start = (now - Mux(sends, self.tolerance, 0))[:KEY_TICKS]  # a cell's next is reckoned from here on
        earliest = slot.pipe(Cat(Const(0, FRACTION_BITS), start), "earliest")
        lag = Signal(KEY_BITS)
        comes, keeps, accepts, key = Signal(), Signal(), Signal(), Signal(KEY_BITS)
        after, longest = self._second(m, slot, fetched_vc, period, current) if self._sustained else (None, period)
        m.d.comb += [
            lag.eq(leaf.key - earliest),
            comes.eq(lag.any() & ~lag[PERIOD_BITS:].any() & _is_within(slot, lag, longest, leaf.key, earliest)),
            keeps.eq(Mux(sends, ~lag[-1], (current & comes) | leaf.valid if self._singles else current & comes)),
        ]
        with m.If(posts):
            if self._singles:
                m.d.comb += accepts.eq(Mux(self.post_single, ~leaf.marks[1], ~leaf.marks[0] & self.post_fits))
            else:
                m.d.comb += accepts.eq(
                    ~leaf.valid & self.post_fits & ~self.waiting if self._credits else ~leaf.valid & self.post_fits
                )
        if after is not None:
            step = Mux(sends, period, 0)
            kept, anew = (
                slot.pipe((base + step)[:KEY_BITS], name) for base, name in ((leaf.key, "kept"), (earliest, "anew"))
            )
            first = Signal(KEY_BITS)
            m.d.comb += [first.eq(Mux(slot.pipe(keeps, "keeps"), kept, anew)), key.eq(first)]
            with m.If(sends & after.valid & ~(after.time[:KEY_BITS] - first)[KEY_BITS - 1]):
                m.d.comb += key.eq(after.time)
        else:
            m.d.comb += key.eq(Mux(slot.pipe(keeps, "keeps"), leaf.key, earliest) + Mux(sends, period, 0))
        m.d.comb += self.accepts.eq(accepts if slot.wide else slot.hold(accepts, slot.clock(3), "accepts", since=4))
        changes, changed, stays = self.changes, Signal(), ~(sends & self.last)
        if self._singles:
            stays = self._single(m, slot, leaf, accepts)
        m.d.comb += changes.eq(sends | self.accepts)
        if self._credits:
            enters, stays = changes | self.wakeup, stays & self.allowed
        else:
            enters = changes
        with m.If(commit), m.If(enters):
            m.d.comb += changed.eq(1)
        m.d.comb += [
            tournament.change.eq(changed if slot.wide else enters),
            tournament.valid.eq(stays),
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
        whole = first.key[FRACTION_BITS:]
        if self._sustained:  # no cell of a contract goes a fraction of a tick before it is due
            whole = whole + first.key[:FRACTION_BITS].any()
        m.d.comb += [
            gap.eq(line.soonest[:KEY_TICKS] - whole),
            eligible.eq(first.valid & ~gap[-1]),
        ]
        m.d.sync += self.fetch.eq(0)
        with m.If(commit):
            with m.If(post):
                m.d.sync += waited.eq(~posts)
            with m.If(decides):
                m.d.sync += [fetched.eq(eligible), self.fetch.eq(eligible)]
                with m.If(eligible):
                    m.d.sync += [fetched_vc.eq(first.vc), self.fetch_vc.eq(first.vc)]
                    if self._singles:
                        m.d.sync += self.fetch_single.eq(first.marks[1])
        wait, goes, decided = (
            slot.pipe(value, f"{name}_held")
            for name, value in (("gap", gap), ("eligible", eligible), ("decides", decides))
        )
        when = _next_due(slot, line.soonest, goes, wait)
        with m.If(commit if slot.wide else slot.clock(12)), m.If(decided):
            m.d.sync += self.due.eq(when)
            with m.If(~first.valid):
                m.d.sync += self.due.eq(NEVER)
        return m

    def _single(self, m, slot, leaf, accepts):
        """Return whether the tick's VC has something more to send, by its marks."""
        sends, posts = self.sends, self.posts
        single = self.fetch_single  # until the next fetch, which comes with a cell that is sent
        after = Signal(2)
        m.d.comb += [self.single.eq(Mux(sends, single, posts & self.post_single)), after.eq(leaf.marks)]
        with m.If(sends):
            m.d.comb += after.eq(leaf.marks & ~Mux(single, SINGLE, Mux(self.last, SDU, 0)))
        with m.Elif(accepts):
            m.d.comb += after.eq(leaf.marks | Mux(self.post_single, SINGLE, SDU))
        m.d.comb += self.tournament.marks.eq(after)
        stays = after.any()
        m.d.comb += self.emptied.eq(~(stays if slot.wide else slot.hold(stays, slot.clock(4), "stays", since=5)))
        return stays

    def _second(self, m, slot, sender, period, current):
        """Return the second bucket of the VC that sends: from when on it lets the next cell go, and whether there is
        one; and how far ahead the tick's VC may be due.

        On the narrow datapath what it needs is read in the tick's first clock, when it is known who may send."""
        rates = slot.store("sustained_rates", SustainedRate, self.vcs, block=True)
        bursts = slot.store("sustained_bursts", _SIZES.limit, self.vcs, block=True)
        buckets = slot.store("sustained_buckets", _Bucket, self.vcs, block=True)
        clear = self.clearing, self.clear[: len(self.vc)], 0
        rates.write(self.rate_index, self.rate, self.rate_en, clear=clear)
        bursts.write(self.burst_index, self.burst, self.burst_en)
        rate, bucket, after, posted = Signal(SustainedRate), Signal(_Bucket), Signal(_Bucket), Signal(SustainedRate)
        if slot.wide:
            with m.If(self.sends | self.posts | self.lookup_grant if self._credits else self.sends | self.posts):
                m.d.comb += [rate.eq(rates.read(self.vc)), posted.eq(rate)]
        else:
            m.d.comb += [
                rate.eq(rates.read(sender, at=0, to="sender_rate")),
                posted.eq(rates.read(self.vc, at=1, to="posted_rate")),
            ]
        with slot.gate_when(self.sends & rate.enabled):
            m.d.comb += bucket.eq(buckets.read(sender, at=0, to="sender_bucket"))
            due = gcra(
                m, slot, "sustained", _SIZES, now=self.time.now, earliest=bucket.time, started=bucket.valid,
                increment=rate.increment, limit=bursts.read(sender, at=0, to="sender_burst"),
            )  # fmt: skip
            m.d.comb += after.time.eq(due.after)
        m.d.comb += after.valid.eq(rate.enabled)
        kept, new = Signal(), Signal(_Bucket)
        with m.If(slot.commit):
            with m.If(self.sends):
                m.d.comb += [kept.eq(1), new.eq(after)]
            with m.Elif(self.accepts & ~current):
                m.d.comb += kept.eq(1)  # the VC has been set up
        slot.with_commit(kept)
        buckets.write(self.vc, new, kept, clear=clear)
        return after, Mux(posted.enabled, posted.increment, period)


def _is_within(slot, lag, longest, key, earliest):
    """Return whether ``lag``, of less than 2**40, is ``longest`` at most; ``lag`` is ``key - earliest``. Narrow: by the
    sign of a sum of three, which is there as soon as the difference."""
    return lag[:PERIOD_BITS] <= longest if slot.wide else ~(earliest + longest - key)[KEY_BITS - 1]


def _next_due(slot, soonest, goes, wait):
    """Return the due tick of the next cell: ``soonest`` if it goes then, or ``-wait`` ticks later, less one. Narrow:
    both are compared with ``NEVER`` beside the sum."""
    later = (soonest + ~wait)[:TIME_BITS]
    if slot.wide:
        return due_tick(Mux(goes, soonest, later))
    never = Mux(goes, soonest == NEVER, (soonest ^ wait)[:TIME_BITS] == 0)
    return Mux(goes, soonest, later) & Cat(~never, Const(-1, TIME_BITS - 1))
