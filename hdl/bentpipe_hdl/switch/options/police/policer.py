"""Usage parameter control: which cells of a VC keep to its contract (I.371; TM 4.1 clause 5.3)."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.switch.core.frame_discard import Frame, follow_frame
from bentpipe_hdl.switch.core.vc_table import ARRIVAL, VcField
from bentpipe_hdl.tick_schedule import TickSchedule
from bentpipe_hdl.traffic.gcra import Sizes, gcra

__all__ = ["BUCKETS", "CONTRACT", "POLICED", "Policer", "rate_layout"]

BUCKETS = 2
"""Buckets of a VC."""

CONTRACT = ARRIVAL
"""Narrow: the clock in which a VC's contract is read."""

COUNT = 10
"""Narrow: the clock in which the count of tagged cells is read, to be written in the one after the commit."""


def rate_layout(sizes):
    """Return the layout of a bucket's contract: the increment I, the cells that it applies to, and its action."""
    return data.StructLayout({"increment": sizes.increment, "enabled": 1, "tag": 1, "clp0": 1, "packets": 1})


POLICED = VcField("policed", data.StructLayout({"started": BUCKETS, "frame": Frame}), "state")
"""What is kept of a VC with its other state: which buckets had a cell since it was set up, and where in its frame it
is."""


class Policer(wiring.Component):
    """The policer: it tests each cell of a VC by two buckets, GCRA(I, L) each, and discards or tags non-conforming
    cells.

    A bucket is of all the VC's cells (CLP 0+1, OAM cells among them), or of those that come with CLP=0. A cell that
    one of its buckets finds early is discarded, or gets CLP=1 if it has CLP=0 and all that object say ``tag``. A
    discarded cell leaves every bucket as it was. A tagged one leaves that which tagged it, and those of CLP=0 cells,
    as they were, and counts in the other. The VC's first cell conforms to all.

    With ``packets`` the discipline of frames (:mod:`bentpipe_hdl.switch.core.frame_discard`) is around that:
    once a user cell of an AAL5 frame is discarded, the rest of it is, whatever the buckets would say, and uses nothing
    of them.

    A contract may be written at any time, I and L apart, and holds from the next tick on: the time at which the next
    cell conforms stays, at most an ``I`` of the new contract away. A bucket that is not ``enabled`` has no state.

    Parameters
    ----------
    slot : TickSchedule
    vcs : int
    sizes : Sizes

    Members
    -------
    rate_index, rate, rate_en, limit_index, limit, limit_en : In
        Writes I and flags, or L, of bucket ``index % 2`` of VC ``index // 2``.
    now : In
    arrives, vc, clp, user, last, state : In
        A cell, its VC's state. While ``arrives`` is low, all outputs are 0 on the wide datapath.
    discard, new_clp, new_state : Out
        Narrow: valid from clock ``CONTRACT + 3`` on.
    seen : In
        Commit: the cell is one of a known VC.
    clearing, clear : In
        After reset: entry ``clear`` of a table is to be cleared.
    tagged_index : In, tagged : Out
        Software reads how many cells of a VC were tagged, modulo 2**32; a clock later on the narrow datapath.

    Notes
    -----
    Times are compared modulo 2**48 ticks: after so many ticks of silence, 1.5 years, the first cells may find less
    of their ``L``, or be early, for ``L`` and an ``I`` at most.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, sizes: Sizes = Sizes()):  # noqa: B008  # it is frozen
        self._slot, self._vcs, self._sizes = slot, vcs, sizes
        self._rate = rate_layout(sizes)
        vc, entry = range(vcs), range(BUCKETS * vcs)
        super().__init__(
            {
                "rate_index": In(entry),
                "rate": In(self._rate),
                "rate_en": In(1),
                "limit_index": In(entry),
                "limit": In(sizes.limit),
                "limit_en": In(1),
                "now": In(sizes.ticks),
                "arrives": In(1),
                "vc": In(vc),
                "clp": In(1),
                "user": In(1),
                "last": In(1),
                "state": In(POLICED.shape),
                "discard": Out(1),
                "new_clp": Out(1),
                "new_state": Out(POLICED.shape),
                "seen": In(1),
                "clearing": In(1),
                "clear": In(vc),
                "tagged_index": In(vc),
                "tagged": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.seen)
        self.rates, self.limits, self.times = rates, limits, times = [
            [slot.store(f"{name}{k}", shape, self._vcs, block=True) for k in range(BUCKETS)]
            for name, shape in (
                ("police_rates", self._rate),
                ("police_limits", self._sizes.limit),
                ("bucket_times", self._sizes.time),
            )
        ]
        for k in range(BUCKETS):
            mine = self.rate_en & (self.rate_index[0] == k)
            rates[k].write(self.rate_index[1:], self.rate, mine, clear=(self.clearing, self.clear, 0))
            limits[k].write(self.limit_index[1:], self.limit, self.limit_en & (self.limit_index[0] == k))
        state, new_state = self.state, self.new_state
        asked, objects, counts = Signal(BUCKETS), Signal(BUCKETS), Signal(BUCKETS)
        hard, tags = Signal(BUCKETS), Signal()  # that object and do not tag; the cell is tagged
        framed, dropped, rest, goes_on = Signal(), Signal(), Signal(), Signal()
        dues = []
        contracts = [Signal(self._rate, name=f"contract{k}") for k in range(BUCKETS)]
        with slot.gate_when(self.arrives):
            for k, contract in enumerate(contracts):
                m.d.comb += contract.eq(rates[k].read(self.vc, at=CONTRACT, to=f"rate_held{k}"))
                with slot.gate_when(contract.enabled):
                    due = gcra(
                        m, slot, f"bucket{k}", self._sizes, now=self.now, started=state.started[k],
                        earliest=times[k].read(self.vc, at=CONTRACT, to=f"bucket_held{k}"),
                        limit=limits[k].read(self.vc, at=CONTRACT, to=f"limit_held{k}"), increment=contract.increment,
                    )  # fmt: skip
                    dues.append(due)
                    m.d.comb += [
                        asked[k].eq(contract.enabled & ~(contract.clp0 & self.clp)),
                        objects[k].eq(asked[k] & due.early),
                        hard[k].eq(objects[k] & (self.clp | ~contract.tag)),
                    ]
                with m.If(contract.enabled & contract.packets):
                    m.d.comb += framed.eq(self.user)
            m.d.comb += [
                rest.eq(framed & state.frame.inside & (state.frame.refused | (state.frame.cut & ~self.last))),
                dropped.eq(hard.any()),
                goes_on.eq(~rest & ~dropped),
                tags.eq(goes_on & objects.any()),
                self.discard.eq(~goes_on),
                self.new_clp.eq(self.clp | tags),
                new_state.eq(state),
            ]
            for k, contract in enumerate(contracts):
                m.d.comb += [
                    counts[k].eq(goes_on & asked[k] & ~objects[k] & ~(contract.clp0 & tags)),
                    new_state.started[k].eq(contract.enabled & (state.started[k] | counts[k])),
                ]
            follow_frame(
                m, state.frame, new_state.frame, user=self.user, last=self.last, framed=framed, refuses=dropped,
                cuts=dropped,
            )  # fmt: skip

        # What is kept of it, if the cell was one of a known VC
        tagging = Signal()
        with m.If(self.seen):
            m.d.comb += tagging.eq(tags)
        slot.with_commit(tagging)
        for k, due in enumerate(dues):
            uses = Signal(name=f"uses{k}")
            with m.If(self.seen):
                m.d.comb += uses.eq(counts[k])
            slot.with_commit(uses)
            times[k].write(self.vc, due.after, slot.later(uses, f"used{k}"))
        tagged = slot.store("tagged_cells", 32, self._vcs, block=True)
        before = Signal(32)
        with slot.gate_when(tags):
            m.d.comb += before.eq(tagged.read(self.vc, at=COUNT, to="tagged_before"))
        tagged.write(self.vc, before + 1, slot.later(tagging, "counts_tagged"), clear=(self.clearing, self.clear, 0))
        m.d.comb += self.tagged.eq(tagged.peek(self.tagged_index))
        return m
