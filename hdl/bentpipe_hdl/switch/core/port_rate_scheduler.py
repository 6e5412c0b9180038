"""Scheduling of output ports: when each port may send, and which port sends next."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import FRACTION_BITS, NEVER, TIME_BITS
from bentpipe_hdl.sim_hints import branch_first
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["CATCH_UP", "PortRateScheduler", "earliest_due", "is_before"]

CATCH_UP = 64
"""Most ticks that a port, held up by the others, is behind its clock and makes up for."""

DUE_BITS = TIME_BITS + FRACTION_BITS
PERIOD_BITS = 24 + FRACTION_BITS

SERVED, JOINED, REJOINED = 3, 9, 10
"""Narrow: the clocks in which the port that sends, that which a VC joins, and that which the sending VC joins again
have their turn in the one arithmetic for all."""

COMMIT = REJOINED + 1
"""Narrow: the clock of the commit."""


def is_before(a, b):
    """Return whether tick ``a`` is before tick ``b``, if they are less than half the range of the time apart."""
    return (a - b)[TIME_BITS - 1]


class PortRateScheduler(wiring.Component):
    """The ports' own clocks: each may send a cell when ``now >= next``, and then ``next += period``.

    Of several ports that may, the first behind the one that sent last is served. One that has to wait makes up for at
    most ``CATCH_UP`` ticks. When a port's round begins, ``next`` becomes ``now + delay`` unless it is later. Times are
    compared modulo half their range.

    The cell that is sent has the line until the new ``next``, which never goes back: a cell at a new rate ends behind
    one that was sent at the rate before.

    On the narrow datapath one arithmetic does it for all ports, one after the other, and ``due`` tells only whether
    any port has cells.

    What stalls ports is outside: with ``carries`` it sets periods as time goes, with ``slotted`` ports wait for slots
    of their lines, with ``searches`` a port that has nothing to send in its turn goes behind the others.

    Members
    -------
    now, delay, period0, period1 … : In
        The present tick, and the settings: ticks, ticks with 16 fraction bits.
    busy : In
        A bit a port: it has cells.
    serve, port : Out
        A port sends now, and which. Narrow: ``port`` is valid from clock 2 on.
    may_serve : Out
        One will in this tick. Narrow: from clock 1 on.
    flushes : In
        The cell leaves without being sent, and the port's clock stays.
    changes, begins, still_busy, join_port, rejoin_port : In
        From the scheduler: what happens to the rounds now. None begins but at ``join_port`` and at ``rejoin_port``,
        and none ends but the one that sends.
    joins, rejoins : In
        Wide: a round may begin at ``join_port``; at ``rejoin_port``, if one sends.
    end : Out
        The tick in which the last bit of the cell that was sent last leaves its port; of one in a slot, that of the
        slot. A register.
    due : Out
        The first tick in which a port may send, or ``NEVER``.
    stalled, still_stalled, rechecks : In
        With any of these: a bit a port, it may not send; what becomes of these now, when ``rechecks`` is high.
    carry : In
        With ``carries``: 2**-16 ticks more for the port that sends.
    ripe : Out
        With ``slotted``: a bit a port, it could send now, stalled or not.
    in_slot, slot_end : In
        With ``slotted``: the port that sends does so in a slot, and the tick in which the last bit of that leaves.
    searching, restarts : In
        With ``searches``: a bit a port: it goes behind those that do not search; its clock begins again with the next
        tick.
    """

    def __init__(
        self, slot: TickSchedule, *, ports: int, carries: bool = False, slotted: bool = False, searches: bool = False
    ):
        self._slot, self._ports, self._carries, self._slotted, self._searches = slot, ports, carries, slotted, searches
        self._stalls = carries or slotted or searches
        self._knows = slot.wide and not self._stalls
        if self._knows:  # whose ``due`` is, the tick of the first of the other busy ports, and whether there are any
            self.first, self.rest, self.several = Signal(range(max(ports, 2))), Signal(TIME_BITS), Signal()
        port = range(max(ports, 2))
        stalls = {
            "stalled": In(ports),
            "still_stalled": In(ports),
            "rechecks": In(1),
        }
        super().__init__(
            {
                "now": In(TIME_BITS),
                "delay": In(24),
                "period": In(PERIOD_BITS).array(ports),
                "busy": In(ports),
                "serve": Out(1),
                "may_serve": Out(1),
                "port": Out(port),
                "flushes": In(1),
                "joins": In(1, init=1),
                "rejoins": In(1, init=1),
                "join_port": In(port),
                "rejoin_port": In(port),
                "changes": In(1),
                "begins": In(ports),
                "still_busy": In(ports),
                "end": Out(TIME_BITS),
                "due": Out(TIME_BITS, init=NEVER),
                **(stalls if self._stalls else {}),
                **({"carry": In(1)} if self._carries else {}),
                **({"ripe": Out(ports), "in_slot": In(1), "slot_end": In(TIME_BITS)} if slotted else {}),
                **({"searching": In(ports), "restarts": In(ports)} if searches else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, ports, now = self._slot.within(m), self._ports, self.now
        slot.with_commit(self.changes, self.begins)
        self.next = next_ = Array(Signal(DUE_BITS, name=f"next{p}") for p in range(ports))
        ready, first_ready = Signal(ports), Signal(ports)
        comes, asks = Signal(), Signal()  # a port's tick is here; perhaps those of several
        with m.If(self.busy.any()):
            m.d.comb += comes.eq(~is_before(now, self.due))
        if self._knows:
            with m.If(comes), m.If(self.several):
                m.d.comb += branch_first(asks, 3, seldom=1).eq(~is_before(now, self.rest))
        else:
            m.d.comb += asks.eq(comes)
        with slot.gate_when(asks):
            for p in range(ports):
                open_ = self.busy[p] & ~self.stalled[p] if self._stalls else self.busy[p]
                may = slot.pipe(open_ & ~is_before(now, next_[p][FRACTION_BITS:]), f"ready_held{p}")
                m.d.comb += ready[p].eq(may)
        if self._slotted:
            for p in range(ports):
                m.d.comb += self.ripe[p].eq(self.busy[p] & ~is_before(now, next_[p][FRACTION_BITS:]))
        behind, all_behind = Signal(ports), (1 << ports) - 2  # the ports behind the one that sent last
        last = Signal(range(max(ports, 2)), init=ports - 1)
        may_go = ready
        if self._searches:
            may_go = Signal(ports)
            m.d.comb += may_go.eq(Mux((ready & ~self.searching).any(), ready & ~self.searching, ready))
        m.d.comb += first_ready.eq(Mux((may_go & behind).any(), may_go & behind, may_go))
        port, any_ready = Signal.like(self.port), Signal()
        with slot.gate_when(asks):
            for p in reversed(range(ports)):
                with m.If(first_ready[p]):
                    m.d.comb += port.eq(p)
        if self._knows:
            with m.If(comes):
                m.d.comb += any_ready.eq(1)
                with m.If(asks):
                    m.d.comb += any_ready.eq(ready.any())
                with m.Else():
                    m.d.comb += port.eq(self.first)
        else:
            m.d.comb += any_ready.eq(ready.any())
        m.d.comb += [self.port.eq(slot.pipe(port, "port_held")), self.may_serve.eq(any_ready)]
        with m.If(slot.commit), m.If(any_ready):
            m.d.comb += self.serve.eq(1)
        with m.If(self.serve):
            if slot.wide:  # what it is, is seldom asked
                m.d.sync += last.eq(self.port)
            else:
                m.d.sync += behind.eq((all_behind << self.port)[:ports])
        if slot.wide:
            m.d.comb += behind.eq((all_behind << last)[:ports])
            after = self._wide(m, slot)
        else:
            after = self._narrow(m, slot)
        end = after[FRACTION_BITS:]
        with m.If(self.serve):
            m.d.sync += self.end.eq(Mux(self.in_slot, self.slot_end, end) if self._slotted else end)
        return m

    def _wide(self, m, slot):
        now, next_, port, period = self.now, self.next, self.port, Array(self.period)
        earliest, after = Signal(TIME_BITS), Signal(DUE_BITS)
        m.d.comb += earliest.eq(now + self.delay)
        late = is_before((next_[port][FRACTION_BITS:] + CATCH_UP)[:TIME_BITS], now)  # of a port that may send
        base = Mux(late, _ticks((now - CATCH_UP)[:TIME_BITS]), next_[port])
        more = period[port] + self.carry if self._carries else period[port]
        m.d.comb += after.eq(Mux(self.flushes, next_[port], base + more))
        begun = []  # whether a round begins, where, and the clock there
        for name, may, joined in (
            ("join", self.joins, self.join_port),
            ("rejoin", self.serve & self.rejoins, self.rejoin_port),
        ):  # of these only one may be the port that sends
            begins, new = Signal(name=f"{name}_begins"), Signal(DUE_BITS, name=f"{name}_next")
            ahead = Signal(TIME_BITS, name=f"{name}_ahead")
            with m.If(may):
                m.d.comb += begins.eq(self.begins.bit_select(joined, 1))
            with m.If(begins):
                was = Mux(self.serve & (joined == port), after, next_[joined])
                m.d.comb += [ahead.eq(was[FRACTION_BITS:] - now), new.eq(was)]
                with m.If((ahead < self.delay) | _past(ahead)):
                    m.d.comb += new.eq(_ticks(earliest))
            with m.If(slot.commit), m.If(begins):
                m.d.sync += next_[joined].eq(new)
            begun.append((begins, joined, new))
        served = Signal(DUE_BITS)
        m.d.comb += served.eq(after)
        for begins, joined, new in begun:
            with m.If(begins), m.If(joined == port):
                m.d.comb += served.eq(new)
        with m.If(slot.commit), m.If(self.serve):  # behind those that begin: of these only one may be this port
            m.d.sync += next_[port].eq(served)
        if self._searches:
            for p in range(self._ports):
                with m.If(slot.commit & self.restarts[p]):
                    m.d.sync += next_[p].eq(_ticks((now + 1)[:TIME_BITS]))
        if self._knows:
            self._follow(m, slot, after, begun)
            return after
        times = self._times(m, after, begun)
        with m.If(slot.commit), m.If(self.changes):
            m.d.sync += self.due.eq(earliest_due(m, self._open(self.still_busy), times))
        if self._stalls:
            with m.If(self.rechecks & ~(slot.commit & self.changes)):
                m.d.sync += self.due.eq(earliest_due(m, self._open(self.busy), times, "rechecked"))
        return after

    def _follow(self, m, slot, after, begun):
        """Update the first port and the times of the others (wide).

        No comparison is needed for a port that continues before any other is due, for the only busy port, for the last
        one to end, and for one that begins while none sends.
        """
        calm, (joins, _, at_join), (rejoins, _, _) = Signal(), *begun
        # One that is not the first had its tick at ``rest`` or later, and now is due later still
        with m.If(self.still_busy == self.busy), m.If(~joins & ~rejoins):
            m.d.comb += calm.eq(~self.several | is_before(after[FRACTION_BITS:], self.rest))
        with m.If(slot.commit), m.If(self.changes):
            with m.If(self.serve):
                with m.If(calm):
                    m.d.sync += self.due.eq(after[FRACTION_BITS:])
                with m.Elif(self.still_busy == 0):
                    m.d.sync += self.due.eq(NEVER)
                with m.Else():
                    best, which, second, several = self._first_two(m, self._times(m, after, begun))
                    m.d.sync += [self.due.eq(best), self.first.eq(which), self.rest.eq(second)]
                    m.d.sync += self.several.eq(several)
            with m.Elif(joins):
                joined = at_join[FRACTION_BITS:]
                with m.If(~self.busy.any()):
                    m.d.sync += [self.due.eq(joined), self.first.eq(self.join_port)]
                with m.Else():
                    m.d.sync += self.several.eq(1)
                    with m.If(is_before(joined, self.due)):
                        m.d.sync += [self.due.eq(joined), self.first.eq(self.join_port), self.rest.eq(self.due)]
                    with m.Elif(~self.several | is_before(joined, self.rest)):
                        m.d.sync += self.rest.eq(joined)

    def _first_two(self, m, times):
        """Compare the ports that stay busy.

        Return the earliest tick, its port's number, the earliest tick of the other ports, and whether there are others.
        """
        best, which, second = Const(NEVER, TIME_BITS), Const(0, len(self.first)), Const(NEVER, TIME_BITS)
        two = Const(0)
        for p, tick in enumerate(times):
            soonest, number = Signal(TIME_BITS, name=f"soonest{p}"), Signal.like(self.first, name=f"number{p}")
            following, several = Signal(TIME_BITS, name=f"following{p}"), Signal(name=f"several{p}")
            m.d.comb += [soonest.eq(best), number.eq(which), following.eq(second), several.eq(two)]
            with m.If(self.still_busy[p]):
                found = self.still_busy[:p].any()
                m.d.comb += several.eq(found)
                with m.If(~found | is_before(tick, best)):
                    m.d.comb += [soonest.eq(tick), number.eq(p), following.eq(best)]
                with m.Elif(~two | is_before(tick, second)):
                    m.d.comb += following.eq(tick)
            best, which, second, two = soonest, number, following, several
        return best, which, second, two

    def _times(self, m, after, begun):
        """Return the next ticks of all ports (wide)."""
        times = []
        for p in range(self._ports):
            new = Signal(DUE_BITS, name=f"new_next{p}")
            m.d.comb += new.eq(self.next[p])
            with m.If(self.serve), m.If(self.port == p):
                m.d.comb += new.eq(after)
            for begins, joined, at in begun:
                with m.If(begins), m.If(joined == p):
                    m.d.comb += new.eq(at)
            if self._searches:
                with m.If(self.restarts[p]):
                    m.d.comb += new.eq(_ticks((self.now + 1)[:TIME_BITS]))
            times.append(new[FRACTION_BITS:])
        return times

    def _open(self, busy):
        return busy & ~self.still_stalled if self._stalls else busy

    def _narrow(self, m, slot):
        now, next_, period = self.now, self.next, Array(self.period)
        after = Signal(DUE_BITS)
        turn = slot.time_share("port_turn", {SERVED: self.port, JOINED: self.join_port, REJOINED: self.rejoin_port})
        whole, alive = Signal(DUE_BITS), Signal()
        m.d.comb += [whole.eq(next_[turn]), alive.eq(self.may_serve & ~self.flushes & (self.join_port == self.port))]
        # When a VC joins the port that sends, its clock is as it will be then
        there = slot.pipe(
            slot.time_share("next_now", {SERVED: whole, JOINED: Mux(alive, after, whole)}), "next_of_turn"
        )
        turn_period = slot.pipe(period[turn], "period_of_turn")
        ahead = Signal(TIME_BITS)
        m.d.comb += ahead.eq(there[FRACTION_BITS:] - now)
        early = slot.pipe((ahead < self.delay) | _past(ahead), "early")
        early_before = slot.pipe(early, "early_before")
        catches_up = ahead[CATCH_UP.bit_length() - 1 :].all() | (ahead == 0)  # of a port that may send
        late = slot.pipe(~catches_up, "late")
        base = slot.pipe(Mux(late, _ticks((now - CATCH_UP)[:TIME_BITS]), there), "base")
        more = turn_period + self.carry if self._carries else turn_period
        m.d.comb += after.eq(slot.keep(base + more, JOINED - 1, "after"))
        earliest = slot.pipe((now + self.delay)[:TIME_BITS], "earliest")
        begun = slot.pipe(self.begins, "begun")

        # First that of the port which sends is written, then those of the ports whose rounds begin
        served, begin = Signal(self._ports), Signal(self._ports)
        for p in range(self._ports):
            m.d.comb += [
                served[p].eq(self.serve & ~self.flushes & (self.port == p)),
                begin[p].eq(begun[p] & Mux(self.join_port == p, early_before, early)),
            ]
        new = slot.time_share("new_next", {COMMIT: after, COMMIT + 1: _ticks(earliest)})
        writes = slot.time_share("writes", {COMMIT: served, COMMIT + 1: begin})
        for p in range(self._ports):
            with m.If(writes[p]):
                m.d.sync += next_[p].eq(new)
            if self._searches:
                with m.If(slot.commit & self.restarts[p]):
                    m.d.sync += next_[p].eq(_ticks((now + 1)[:TIME_BITS]))
        m.d.comb += self.due.eq(Mux(self.busy.any(), now, NEVER))
        return after


def _ticks(whole):
    """Return a time in ticks with fraction bits."""
    return Cat(Const(0, FRACTION_BITS), whole)


def _past(ahead):
    """Return whether an idle port's next tick is in the past.

    It is a period ahead at most: if it seems further ahead, it was long ago, before time wrapped. The longest period
    counts, since the period may have changed.
    """
    return ahead[PERIOD_BITS - FRACTION_BITS :].any()


def earliest_due(m, busy, times, name="soonest"):
    """Return the earliest of the ``times``, in ticks, that are ``busy``; NEVER if none is."""
    best, found = Const(NEVER, TIME_BITS), Const(0)
    for p, (b, t) in enumerate(zip(busy, times, strict=True)):
        chosen = Signal(TIME_BITS, name=f"{name}{p}")
        m.d.comb += chosen.eq(best)
        with m.If(b & (~found | is_before(t, best))):
            m.d.comb += chosen.eq(t)
        best, found = chosen, found | b
    return best
