"""Credit of VCs: how many cells each may still send."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..tick_schedule import TickSchedule
from .cells import COUNT_BITS

__all__ = ["CreditGate", "is_plausible", "may_send"]


def may_send(sent, freed, share, count_bits=COUNT_BITS):
    """Return whether a VC of which so many cells were sent and freed (modulo ``2**count_bits``) may send another one;
    without a share it always may."""
    return (share == 0) | ((sent - freed)[:count_bits] < share)


def is_plausible(count, freed, sent, count_bits=COUNT_BITS):
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
        Narrow: the clocks in which ``lookup_vc``, ``departing_vc`` and ``arriving_vc`` are valid.
    count_bits : int

    Members
    -------
    lookup, lookup_vc, lookup_sent, lookup_share : In
        A VC is updated or audited; the VC; its cells sent; its share. Wide: while ``lookup`` is low, the outputs for
        this VC are 0. Narrow: the latter two are valid two clocks after the VC, as for the other two VCs. The decision
        is valid a clock or two later.
    update, count : In
        A count of freed cells of ``lookup_vc`` has arrived; the count.
    lookup_allowed, outstanding : Out
        ``lookup_vc`` may send, after the update; not all of its cells are freed.
    departing_vc, departing_sent, departing_share, departing_allowed : In, In, In, Out
        The VC of the departing cell, its values, and whether it may send another cell after this one.
    arriving_vc, arriving_sent, arriving_share, arriving_allowed : In, In, In, Out
        The VC of the arriving cell, its values, and whether it may send a cell.
    departing_valid, arriving_valid : In
        Wide: the decisions for the departing and the arriving VC are used.
    clearing, clear : In
    freed_of, freed : In, Out
        A VC and its count, read by software.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, at: tuple[int, int, int], count_bits: int = COUNT_BITS):
        self._slot, self._vcs, self._at, self._count_bits = slot, vcs, at, count_bits
        vc, count = range(vcs), count_bits
        rows = {}
        for name in ("lookup", "departing", "arriving"):
            rows |= {
                f"{name}_vc": In(vc),
                f"{name}_sent": In(count),
                f"{name}_share": In(16),
                f"{name}_allowed": Out(1),
            }
        super().__init__(
            {
                **rows,
                "lookup": In(1),
                "update": In(1),
                "count": In(count),
                "outstanding": Out(1),
                "departing_valid": In(1),
                "arriving_valid": In(1),
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
        new_freed, updated = Signal(bits), Signal()
        with slot.gate_when(self.lookup):
            old_freed = store.read(self.lookup_vc, at=self._at[0], to="lookup_freed")
            m.d.comb += [
                updated.eq(
                    slot.pipe(self.update & is_plausible(self.count, old_freed, self.lookup_sent, bits), "updated_held")
                ),
                new_freed.eq(Mux(updated, self.count, old_freed)),
                self.lookup_allowed.eq(
                    slot.pipe(may_send(self.lookup_sent, new_freed, self.lookup_share, bits), "lookup_allowed_held")
                ),
                self.outstanding.eq((self.lookup_share != 0) & (self.lookup_sent != new_freed)),
            ]
        write_en = Signal()
        with m.If(slot.commit), m.If(updated):
            m.d.comb += write_en.eq(1)
        store.write(self.lookup_vc, self.count, write_en, clear=(self.clearing, self.clear, 0))
        for name, at, valid, next_cells in (
            ("departing", self._at[1], self.departing_valid, 1),
            ("arriving", self._at[2], self.arriving_valid, 0),
        ):
            vc, sent, share = (getattr(self, f"{name}{suffix}") for suffix in ("_vc", "_sent", "_share"))
            with slot.gate_when(valid):
                stored = store.read(vc, at=at, to=f"{name}_freed")
                same_vc = slot.pipe(updated & (self.lookup_vc == vc), f"{name}_same_vc")
                allowed = may_send(sent + next_cells, Mux(same_vc, self.count, stored), share, bits)
                m.d.comb += getattr(self, f"{name}_allowed").eq(slot.pipe(allowed, f"{name}_allowed_held"))
        return m
