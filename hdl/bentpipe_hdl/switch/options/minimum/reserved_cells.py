"""Cells of the buffer that are a VC's own."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.switch.core.vc_table import ARRIVAL, VcField
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["OWN_BITS", "ReservedCells"]

OWN_BITS = 16


class ReservedCells(wiring.Component):
    """The reserved places of the buffer: a minimum for each VC.

    A cell takes one of its VC's own places if fewer than the minimum are taken, otherwise a shared one. There are as
    many shared places as leave room for all minima. The kind of place is kept with the cell.

    So a minimum may be written at any time. A larger one holds at once, as far as there is room; a smaller one as the
    VC's cells leave. While the minima and ``capacity`` together do not exceed the buffer, and no VC has more own places
    than its minimum, a ``guaranteed`` cell finds room in it.

    Members
    -------
    minimum_vc, minimum, minimum_en : In
        Software writes a VC's minimum.
    capacity, user_capacity : In
        Shared places; those open to user cells.
    vc : In
        The VC of the arriving cell.
    came, left : In
        Counts of that VC, modulo 2**16: cells that took an own place so far, and cells that left one.
    guaranteed : Out
        The arriving cell has an own place. Narrow: from clock 10 on.
    full, user_full : Out
        There is no shared place for it; there is none for a user cell.
    enqueue : In
        The arriving cell is queued now.
    dequeue, was_shared : In
        A cell leaves; it had a shared place.
    shared : Out
        Shared places that are taken.
    """

    fields = (VcField("own_came", OWN_BITS, "arrival"), VcField("own_left", OWN_BITS, "departure"))

    def __init__(self, slot: TickSchedule, *, vcs: int, count_bits: int):
        self._slot, self._vcs = slot, vcs
        count, vc = count_bits, range(vcs)
        super().__init__(
            {
                "minimum_vc": In(vc),
                "minimum": In(OWN_BITS),
                "minimum_en": In(1),
                "capacity": In(count),
                "user_capacity": In(count),
                "vc": In(vc),
                "came": In(OWN_BITS),
                "left": In(OWN_BITS),
                "guaranteed": Out(1),
                "full": Out(1),
                "user_full": Out(1),
                "enqueue": In(1),
                "dequeue": In(1),
                "was_shared": In(1),
                "shared": Out(count),
                "clearing": In(1),
                "clear": In(vc),
            }
        )

    def attach(self, m, csr, path):
        """Connect the registers, arrivals and departures, and the parts that use the reservation."""
        buffer, context = path.core.buffer, path.core.vc_table
        m.d.comb += [
            Cat(self.minimum_vc, self.minimum, self.minimum_en).eq(Cat(csr.write_port("vc_minimum"))),
            self.capacity.eq(csr.register("shared_capacity")),
            self.user_capacity.eq(csr.register("shared_user_capacity")),
            self.vc.eq(path.arriving.vc),
            self.came.eq(context.a_arrival.own_came),
            self.left.eq(context.a_departure.own_left),
            self.enqueue.eq(path.arriving.enqueue),
            self.dequeue.eq(path.leaving.dequeue),
            self.was_shared.eq(buffer.next_shared),
            self.clearing.eq(context.clearing),
            self.clear.eq(context.clear),
            path.core.admission.reserved.eq(self.guaranteed),
            buffer.shared.eq(~self.guaranteed),
            context.arrival.own_came.eq(context.a_arrival.own_came + self.guaranteed),
            context.departure.own_left.eq(context.d_departure.own_left + ~buffer.next_shared),
        ]
        csr.status("shared", self.shared)

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.enqueue, self.dequeue)
        self.minima = minima = slot.store("minima", OWN_BITS, self._vcs)
        minima.write(self.minimum_vc, self.minimum, self.minimum_en, clear=(self.clearing, self.clear, 0))
        taken = Signal(OWN_BITS)
        m.d.comb += [
            taken.eq(self.came - self.left),
            self.guaranteed.eq(slot.pipe(taken < minima.read(self.vc, at=ARRIVAL, to="vc_minimum"), "guaranteed_held")),
            self.full.eq(slot.pipe(self.shared >= self.capacity, "shared_full")),
            self.user_full.eq(slot.pipe(self.shared >= self.user_capacity, "shared_user_full")),
        ]
        comes, goes = Signal(), Signal()
        m.d.comb += [comes.eq(self.enqueue & ~self.guaranteed), goes.eq(self.dequeue & self.was_shared)]
        with m.If(comes & ~goes):
            m.d.sync += self.shared.eq(self.shared + 1)
        with m.Elif(goes & ~comes):
            m.d.sync += self.shared.eq(self.shared - 1)
        return m
