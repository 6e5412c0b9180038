"""Credit of VCs: how many cells each may still send."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..tick_schedule import TickSchedule
from .cells import COUNT_BITS

__all__ = ["CreditGate", "believed", "may_send"]


def may_send(sent, freed, share, count_bits=COUNT_BITS):
    """Return whether a VC of which so many cells were sent and freed (modulo ``2**count_bits``) may send another one;
    without a share it always may."""
    return (share == 0) | ((sent - freed)[:count_bits] < share)


def believed(count, freed, sent, count_bits=COUNT_BITS):
    """Return whether a count of freed cells is between the previous count and the number of cells sent.

    Any other count is from before a reset, or belongs to misrouted cells of another VC.
    """
    return (count - freed)[:count_bits] <= (sent - freed)[:count_bits]


class CreditGate(wiring.Component):
    """The credit gate: it keeps how many of each VC's cells the line's far end has freed, and decides whether a VC may
    send.

    A count that arrives in a tick is used by that tick's decisions.

    Parameters
    ----------
    slot : TickSchedule
    vcs : int
    at : (int, int, int)
        Narrow: the clocks in which ``looked``, ``departing`` and ``arriving`` are taken.
    count_bits : int

    Members
    -------
    looks, looked, looked_sent, looked_share : In
        A VC is updated or visited (wide: while ``looks`` is low, the values below are 0); the VC; its cells sent; its
        share. Narrow: the latter two are valid two clocks after the VC was taken, as for the other two VCs. The
        decision is valid a clock or two later.
    tells, count : In
        A count of freed cells of the looked VC has arrived; the count.
    looked_may, outstanding : Out
        The looked VC may send, after the update; not all of its cells are freed.
    departing, departing_sent, departing_share, departing_may : In, In, In, Out
        The VC of the departing cell, its values, and whether it may send another cell after this one.
    arriving, arriving_sent, arriving_share, arriving_may : In, In, In, Out
        The VC of the arriving cell, its values, and whether it may send a cell.
    leaves, arrives : In
        Wide: the decisions for the departing and the arriving VC are used.
    clearing, clear : In
    freed_of, freed : In, Out
        A VC and its count, read by software.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, at: tuple[int, int, int], count_bits: int = COUNT_BITS):
        self._slot, self._vcs, self._at, self._count_bits = slot, vcs, at, count_bits
        vc, count = range(vcs), count_bits
        asked = {}
        for name in ("looked", "departing", "arriving"):
            asked |= {name: In(vc), f"{name}_sent": In(count), f"{name}_share": In(16), f"{name}_may": Out(1)}
        super().__init__(
            {
                **asked,
                "looks": In(1),
                "tells": In(1),
                "count": In(count),
                "outstanding": Out(1),
                "leaves": In(1),
                "arrives": In(1),
                "clearing": In(1),
                "clear": In(vc),
                "freed_of": In(vc),
                "freed": Out(count),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, bits = self._slot.within(m), self._count_bits
        self.store = store = slot.store("freed", bits, self._vcs, block=True)
        m.d.comb += self.freed.eq(store.peek(self.freed_of))
        now, takes = Signal(bits), Signal()
        with slot.gate_when(self.looks):
            before = store.read(self.looked, at=self._at[0], to="looked_freed")
            m.d.comb += [
                takes.eq(slot.pipe(self.tells & believed(self.count, before, self.looked_sent, bits), "takes_held")),
                now.eq(Mux(takes, self.count, before)),
                self.looked_may.eq(
                    slot.pipe(may_send(self.looked_sent, now, self.looked_share, bits), "looked_may_held")
                ),
                self.outstanding.eq((self.looked_share != 0) & (self.looked_sent != now)),
            ]
        commits = Signal()
        with m.If(slot.commit), m.If(takes):
            m.d.comb += commits.eq(1)
        store.write(self.looked, self.count, commits, clear=(self.clearing, self.clear, 0))
        for name, at, wanted, more in (
            ("departing", self._at[1], self.leaves, 1),
            ("arriving", self._at[2], self.arrives, 0),
        ):
            vc, sent, share = (getattr(self, f"{name}{suffix}") for suffix in ("", "_sent", "_share"))
            with slot.gate_when(wanted):
                kept = store.read(vc, at=at, to=f"{name}_freed")
                told = slot.pipe(takes & (self.looked == vc), f"{name}_told")
                may = may_send(sent + more, Mux(told, self.count, kept), share, bits)
                m.d.comb += getattr(self, f"{name}_may").eq(slot.pipe(may, f"{name}_may_held"))
        return m
