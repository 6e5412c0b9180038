"""Shaping at a switch's output: a VC's cell does not go before its contract lets it (I.371; TM 4.1)."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import NEVER, TIME_BITS, due_tick
from bentpipe_hdl.switch.core.port_rate_scheduler import earliest_due, is_before
from bentpipe_hdl.switch.core.vc_table import DEPARTURE
from bentpipe_hdl.tick_schedule import TickSchedule
from bentpipe_hdl.traffic.gcra import Sizes, gcra

__all__ = ["BUCKETS", "Shaper"]

BUCKETS = 2
"""Buckets of a VC: one for its peak rate, one for its sustained rate."""


def _rate_layout(sizes):
    """Return the layout of an entry of the table ``shape_rate``: a bucket's increment I, and whether the bucket is
    used."""
    return data.StructLayout({"increment": sizes.increment, "enabled": 1})


class Shaper(wiring.Component):
    """The shaper: it holds back a VC's next cell until both of its buckets, GCRA(I, L) each, permit it.

    A VC with cells is in its port's round as ever. In its turn it is asked when its next cell may go; if that is later,
    it goes to the end of the round without a cell. A port all of whose VCs have been asked so, one after the other,
    sleeps until the first of them may send, or until another VC joins its round; a port that asks goes behind those
    that do not. So a cell goes in the first tick in which it conforms if its VC is alone at its port, and if not, at
    most as many ticks later as the port's round has VCs, and other ports send.

    Parameters
    ----------
    slot : TickSchedule
    vcs, ports : int
    sizes : Sizes
        With ticks of 48 bits.

    Members
    -------
    rate_index, rate, rate_en, limit_index, limit, limit_en : In
        Writes I, or L, of bucket ``index % 2`` of VC ``index // 2``.
    now : In
    serve, port, vc : In
        A port is served now; its number; the VC that is served there. At 32 bits the VC is valid from clock
        ``DEPARTURE`` on.
    gone : In
        The VC is there no more: its cells are not held.
    held : Out
        The VC's cell may not go yet. Narrow: valid from clock ``DEPARTURE + 3`` on.
    members, stays : In
        How many VCs are in the round of ``port``; the VC stays in it after its turn, if it is held.
    sent : In
        Its cell goes.
    joins : In
        A bit a port: a VC joins its round now, otherwise than after its turn there.
    searching : Out
        A bit a port: it asks its VCs, and none could send since it began.
    stalled, still_stalled : Out
        A bit a port: it sleeps; and after this tick.
    wakes, changes : Out
        A bit a port: it wakes up now, and may send from the next tick on; any does.
    due : Out
        When the first port wakes up, or ``NEVER``.
    clearing, clear : In
        After reset: entry ``clear`` of a table is to be cleared.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, ports: int, sizes: Sizes = Sizes()):  # noqa: B008  # it is frozen
        self._slot, self._vcs, self._ports, self._sizes = slot, vcs, ports, sizes
        self._rate = _rate_layout(sizes)
        self._bucket = data.StructLayout({"time": sizes.time, "started": 1})
        vc, entry = range(vcs), range(BUCKETS * vcs)
        super().__init__(
            {
                "rate_index": In(entry),
                "rate": In(self._rate),
                "rate_en": In(1),
                "limit_index": In(entry),
                "limit": In(sizes.limit),
                "limit_en": In(1),
                "now": In(TIME_BITS),
                "serve": In(1),
                "port": In(range(max(ports, 2))),
                "vc": In(vc),
                "gone": In(1),
                "held": Out(1),
                "members": In(range(vcs + 1)),
                "stays": In(1),
                "sent": In(1),
                "joins": In(ports),
                "searching": Out(ports),
                "stalled": Out(ports),
                "still_stalled": Out(ports),
                "wakes": Out(ports),
                "changes": Out(1),
                "due": Out(TIME_BITS),
                "clearing": In(1),
                "clear": In(vc),
            }
        )

    def attach(self, m, csr, path, joins):
        """Connect the tables, the ports as they are served, and the ports whose round a VC ``joins``."""
        m.d.comb += [
            Cat(self.rate_index, self.rate, self.rate_en).eq(Cat(csr.write_port("shape_rate"))),
            Cat(self.limit_index, self.limit, self.limit_en).eq(Cat(csr.write_port("shape_limit"))),
            self.now.eq(path.now),
            self.serve.eq(path.leaving.serve),
            self.port.eq(path.leaving.port),
            self.vc.eq(path.leaving.vc),
            self.gone.eq(path.leaving.gone),
            self.stays.eq(path.leaving.goes_on_at == path.leaving.port),
            self.members.eq(path.core.scheduler.members),
            self.sent.eq(path.leaving.sends),
            self.joins.eq(joins),
            self.clearing.eq(path.core.vc_table.clearing),
            self.clear.eq(path.core.vc_table.clear),
            path.core.port_rate_scheduler.searching.eq(self.searching),
            path.core.port_rate_scheduler.restarts.eq(self.wakes),
        ]

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.serve, self.sent, self.joins)
        held, until = self._held(m, slot)
        self._sleep(m, slot, held, until)
        return m

    def _held(self, m, slot):
        """Return whether the VC's cell is held, and until when."""
        clear, sizes = (self.clearing, self.clear, 0), self._sizes
        early, first = Signal(BUCKETS), []
        self.rates, self.limits, self.buckets = [
            [slot.store(f"shape_{name}{k}", shape, self._vcs, block=True) for k in range(BUCKETS)]
            for name, shape in (("rates", self._rate), ("limits", sizes.limit), ("buckets", self._bucket))
        ]
        for k, (rates, limits, buckets) in enumerate(zip(self.rates, self.limits, self.buckets, strict=True)):
            mine = self.rate_en & (self.rate_index[0] == k)
            rates.write(self.rate_index[1:], self.rate, mine, clear=clear)
            limits.write(self.limit_index[1:], self.limit, self.limit_en & (self.limit_index[0] == k))
            rate, bucket, new = Signal(self._rate), Signal(self._bucket), Signal(self._bucket)
            whole = Signal(TIME_BITS, name=f"first_tick{k}")
            with slot.gate_when(self.serve):
                m.d.comb += rate.eq(rates.read(self.vc, at=DEPARTURE, to=f"shape_rate{k}"))
                with slot.gate_when(rate.enabled):
                    m.d.comb += bucket.eq(buckets.read(self.vc, at=DEPARTURE, to=f"shape_bucket{k}"))
                    due = gcra(
                        m, slot, f"shape{k}", sizes, now=self.now, earliest=bucket.time, started=bucket.started,
                        increment=rate.increment, limit=limits.read(self.vc, at=DEPARTURE, to=f"shape_limit{k}"),
                    )  # fmt: skip
                    m.d.comb += [
                        early[k].eq(rate.enabled & due.early),
                        whole.eq(bucket.time[sizes.fraction :] + bucket.time[: sizes.fraction].any()),
                        new.time.eq(due.after),
                    ]
            m.d.comb += new.started.eq(1)
            uses = Signal(name=f"uses{k}")
            with m.If(self.sent):
                m.d.comb += uses.eq(rate.enabled)
            slot.with_commit(uses)
            buckets.write(self.vc, new, uses, clear=clear)
            first.append(slot.pipe(whole, f"first_tick_held{k}"))
        held, until = Signal(), Signal(TIME_BITS)
        with slot.gate_when(self.serve):
            m.d.comb += [
                held.eq(early.any() & ~self.gone),
                until.eq(Mux(early[0] & ~(early[1] & is_before(first[0], first[1])), first[0], first[1])),
            ]
        m.d.comb += self.held.eq(held)
        return held, slot.pipe(until, "until_held")

    def _sleep(self, m, slot, held, until):
        """Let ports sleep until one of their VCs may send."""
        now, ports = self.now, self._ports
        run = Array(Signal(range(self._vcs + 1), name=f"run{p}") for p in range(ports))  # VCs asked in vain
        soonest = Array(Signal(TIME_BITS, name=f"soonest{p}") for p in range(ports))  # when the first of them may
        wake = [Signal(TIME_BITS, name=f"wake{p}") for p in range(ports)]
        turns, all_asked, sleeps = Signal(), Signal(), Signal()
        soon = Signal(TIME_BITS)
        with slot.gate_when(self.serve):
            known = self.searching.bit_select(self.port, 1) & is_before(soonest[self.port], until)
            m.d.comb += [
                soon.eq(Mux(known, soonest[self.port], until)),
                all_asked.eq(run[self.port] + 1 >= self.members),
            ]
        soon = slot.pipe(soon, "soon_held")
        with m.If(self.serve), m.If(held & self.stays):
            m.d.comb += [turns.eq(1), sleeps.eq(all_asked & is_before((now + 1)[:TIME_BITS], soon))]
        slot.with_commit(turns)
        asleep = self.stalled
        for p in range(ports):
            mine = self.serve & (self.port == p)
            with m.If(slot.commit):
                m.d.comb += self.wakes[p].eq(asleep[p] & ~is_before(now, wake[p]))
            m.d.comb += self.still_stalled[p].eq((asleep[p] & ~self.wakes[p] | mine & sleeps) & ~self.joins[p])
            with m.If(mine):
                m.d.sync += [self.searching[p].eq(0), run[p].eq(0)]
                with m.If(turns & ~all_asked):
                    m.d.sync += [self.searching[p].eq(1), run[p].eq(run[p] + 1), soonest[p].eq(soon)]
                with m.If(sleeps):
                    m.d.sync += wake[p].eq(due_tick((soon - 1)[:TIME_BITS]))
            with m.If(self.joins[p]):
                m.d.sync += [self.searching[p].eq(0), run[p].eq(0)]
            with m.If(slot.commit):
                m.d.sync += asleep[p].eq(self.still_stalled[p])
        m.d.comb += self.changes.eq(self.wakes.any())
        m.d.comb += self.due.eq(earliest_due(m, asleep, wake) if slot.wide else NEVER)
