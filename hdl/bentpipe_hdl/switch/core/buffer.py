"""The cell buffer: places, linked to a queue a VC and to a list of free ones."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["CellBuffer"]


class CellBuffer(wiring.Component):
    """Places for ``cells`` cells, and one more for each VC: that of its next cell is always reserved.

    A queue is known by two places that its owner keeps: its head, where the oldest cell is, and its tail, which is
    reserved. At first both are the VC's own number. A cell is queued at the tail, and ``place`` is the new tail; one
    that leaves does so from the head, and ``next`` is the new head. Places are free in a list (last in, first out), or
    have never been used. One cell may come and one leave in a tick: the place of that which leaves is then reserved for
    the VC of that which comes.

    What is kept of a cell beside its payload is its CLP and PTI, and what else is ``kept``: the port that it is for,
    whether its place is a shared one, its VCI.

    Members
    -------
    enqueue : In
        A cell is queued, at the end of the tick's decision. Only while ``occupancy`` is below ``cells``.
    tail, clp, pti : In
        Its place, and what is kept of it.
    place : Out
        Reserved for the next cell of that VC.
    dequeue, head : In
        A cell leaves, and its place. It is not the tail of its queue.
    may_dequeue : In
        Narrow: ``dequeue`` will be high in this tick if this is when ``head`` is read; with ``may_stay``: perhaps.
    next, next_clp, next_pti : Out
        The place of the queue's next cell, or its tail; the leaving cell's CLP and PTI. On the narrow datapath from the
        second clock after ``at`` on.
    occupancy, high_water : Out
        Cells in the buffer, now and at most (at the ends of ticks).
    restart : In
        ``high_water`` begins again.
    NAME : In, next_NAME : Out
        What else is kept, by its name: of the cell that arrives, and of that which leaves, as ``next_pti``.

    Parameters
    ----------
    slot : TickSchedule
    cells, vcs : int
    at : int
        Narrow: the clock in which ``head`` is taken.
    kept : Mapping
        What else, shapes by names.
    may_stay : bool
        What is to leave may stay.
    """

    def __init__(
        self,
        slot: TickSchedule,
        *,
        cells: int,
        vcs: int,
        at: int,
        kept: Mapping[str, Any] | None = None,
        may_stay: bool = False,
    ):
        self._slot, self._cells, self._vcs, self._at, self._may_stay = slot, cells, vcs, at, may_stay
        self.place_bits = (cells + vcs - 1).bit_length()
        self.count_bits = (cells + 1).bit_length()
        self._more = dict(kept or {})
        super().__init__(
            {
                "enqueue": In(1),
                "tail": In(self.place_bits),
                "clp": In(1),
                "pti": In(3),
                "place": Out(self.place_bits),
                "dequeue": In(1),
                "may_dequeue": In(1),
                "head": In(self.place_bits),
                "next": Out(self.place_bits),
                "next_clp": Out(1),
                "next_pti": Out(3),
                "occupancy": Out(self.count_bits),
                "high_water": Out(self.count_bits),
                "restart": In(1),
                **{name: In(shape) for name, shape in self._more.items()},
                **{f"next_{name}": Out(shape) for name, shape in self._more.items()},
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.enqueue, self.dequeue)
        occupancy, enqueue, dequeue = self.occupancy, self.enqueue, self.dequeue
        layout = data.StructLayout({"next": self.place_bits, "clp": 1, "pti": 3, **self._more})
        depth = self._cells + self._vcs
        self.links = links = slot.store("links", layout, depth, apart=True, whole=True, bounded=True)
        self.free_head = free_head = Signal(self.place_bits)
        self.used = used = Signal(self.count_bits)  # of the places behind the VCs' own; those above have never been

        # One read of a link a tick: of the place that leaves, or of the first free one
        leaves = dequeue if slot.wide else self.may_dequeue
        link = links.read(Mux(leaves, self.head, free_head), at=self._at, to="link")
        free_link = link
        if self._may_stay and not slot.wide:  # what is to leave may stay: then the first free one is wanted
            free_link = links.read(free_head, at=self._at + 1, to="free_link")
        from_list = Signal()
        new_link = Signal(layout)
        m.d.comb += [
            self.next.eq(link.next),
            self.next_clp.eq(link.clp),
            self.next_pti.eq(link.pti),
            from_list.eq(used != occupancy),  # places that were used, and hold no cell, are in the list
            self.place.eq(Mux(dequeue, self.head, Mux(from_list, free_head, used + self._vcs))),
            new_link.next.eq(Mux(enqueue, self.place, free_head)),
            new_link.pti.eq(self.pti),
            new_link.clp.eq(self.clp),
        ]
        for name in self._more:
            m.d.comb += [new_link[name].eq(getattr(self, name)), getattr(self, f"next_{name}").eq(link[name])]
        links.write(Mux(enqueue, self.tail, self.head), new_link, enqueue | dequeue)
        with m.If(enqueue), m.If(~dequeue):
            m.d.sync += occupancy.eq(occupancy + 1)
            with m.If(occupancy >= self.high_water):
                m.d.sync += self.high_water.eq(occupancy + 1)
            with m.If(from_list):
                m.d.sync += free_head.eq(free_link.next)
            with m.Else():
                m.d.sync += used.eq(used + 1)
        with m.If(dequeue), m.If(~enqueue):
            m.d.sync += [occupancy.eq(occupancy - 1), free_head.eq(self.head)]
        with m.If(self.restart):
            m.d.sync += self.high_water.eq(occupancy)
        return m
