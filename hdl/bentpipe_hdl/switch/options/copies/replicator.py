"""Copies of the cells of point-to-multipoint VCs (ATM Forum UNI 3.1 clause 5.6), a cell for each leaf."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import NARROW, WORDS_A_CELL, CellHeader, CellSignature
from bentpipe_hdl.switch.core.frame_discard import Frame, follow_frame
from bentpipe_hdl.switch.core.injection import TAKEN, OfferSignature
from bentpipe_hdl.switch.core.vc_table import ARRIVAL, VcField
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["CELLS", "COPIED", "MulticastReplicator"]

CELLS = 32
"""Cells that wait to be copied at most: as many as fit into one block memory of 32 bits on the narrow datapath."""

LOOK, FOLLOW = 2, 4
"""Narrow: the clocks in which it is read who is next, and with which VC the cell after goes on."""

WORDS = 16
"""Narrow: words from one cell to the next in the memory."""

COPIED = VcField("copied", Frame, "state")
"""What is kept of a VC with its other state: where it is in its frame, and whether that is refused."""


class MulticastReplicator(wiring.Component):
    """The replicator: it keeps the cells of VCs with leaves, and offers one copy for each leaf.

    A chain of VCs leads from the root, as whose cell the first copy is queued, from leaf to leaf. A cell that arrives
    for a VC with a next one is kept in a FIFO. The first cell in the FIFO is offered for the next VC; when it is
    taken there, for the VC after that, until a VC has no next. Then comes the second cell in the FIFO. So N leaves,
    with the root, take exactly N ticks in which a cell is taken. Only cells from outside are copied, never a copy.

    **No room.** A cell that finds the FIFO full is refused, for all leaves; in VCs with PPD or EPD all of its frame is
    (:mod:`bentpipe_hdl.switch.core.frame_discard`). What leaves in the same tick does not make room yet.

    **Changes of a chain** hold for cells that wait: who is next is looked up when the copy before it was taken. A write
    to the table costs two ticks in which nothing is offered, so that from the next tick on no copy goes where the
    chain no longer leads. A VC that is taken out keeps its own entry until no cell waits that it was copied for: else
    those cells end with it. A chain that leads into a circle ends after ``vcs - 1`` copies (``endless``).

    Parameters
    ----------
    slot : TickSchedule
    width, ports : int
    vcs : int
    cells : int
        That wait at most, a power of two.

    Members
    -------
    entry_vc, entry, entry_en : In
        Software writes whether a VC has a next one, and which.
    clearing, clear : In
        After reset: entry ``clear`` of the table is to be cleared.
    i : In(CellSignature), inside : In
        The cell of the tick, whether it was made in the switch (behind :mod:`bentpipe_hdl.switch.core.injection`).
    arrives, vc, user, last, framed, state : In
        The cell; frames count for its VC; the VC's state. While ``arrives`` is low, outputs are 0 on the wide datapath.
    refuse, new_state : Out
        There is no room for it. Narrow: valid from clock ``ARRIVAL + 2`` on.
    seen : In
        Commit: the cell is one of a known VC, and not discarded by others before.
    header : In
        Of the cell, as its copies are to have it. Narrow: at the end of the tick.
    offer : Out(OfferSignature)
    waiting : Out
        Cells in the FIFO.
    busy : Out
        Something is to be done in the next tick: some wait, or the table was written.
    made : Out
        Copies taken, modulo 2**32.
    endless : Out
        Cells whose chain did not end, modulo 2**32.
    """

    def __init__(self, slot: TickSchedule, *, width: int, ports: int, vcs: int, cells: int = CELLS):
        self._slot, self._vcs, self._cells = slot, vcs, cells
        self._entry = data.StructLayout({"next": range(vcs), "valid": 1})
        vc = range(vcs)
        super().__init__(
            {
                "entry_vc": In(vc),
                "entry": In(self._entry),
                "entry_en": In(1),
                "clearing": In(1),
                "clear": In(vc),
                "i": In(CellSignature(width, ports)),
                "inside": In(1),
                "arrives": In(1),
                "vc": In(vc),
                "user": In(1),
                "last": In(1),
                "framed": In(1),
                "state": In(COPIED.shape),
                "refuse": Out(1),
                "new_state": Out(COPIED.shape),
                "seen": In(1),
                "header": In(CellHeader),
                "offer": Out(OfferSignature(width, vcs)),
                "waiting": Out(range(cells + 1)),
                "busy": Out(1),
                "made": Out(32),
                "endless": Out(32),
            }
        )

    def attach(self, m, csr, path):
        """Connect the registers, the arriving cell and the state of its VC."""
        index, entry, written = csr.write_port("vc_copies")
        wiring.connect(m, path.core.cells_in, self.i)
        m.d.comb += [
            self.entry_vc.eq(index),
            Value.cast(self.entry).eq(entry),
            self.entry_en.eq(written),
            self.clearing.eq(path.core.vc_table.clearing),
            self.clear.eq(path.core.vc_table.clear),
            self.vc.eq(path.arriving.vc),
            self.framed.eq(path.arriving.policy.ppd | path.arriving.policy.epd),
            self.state.eq(path.core.vc_table.a_state.copied),
            self.seen.eq(path.arriving.passes),
        ]
        for name in ("waiting", "made", "endless"):
            csr.status(f"copies_{name}", getattr(self, name))

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.seen)
        row = data.StructLayout({"root": range(self._vcs), "header": CellHeader})
        self.table = table = slot.store("next_vcs", self._entry, self._vcs, block=True)
        self.rows = rows = slot.store("roots", row, self._cells)
        table.write(self.entry_vc, self.entry, self.entry_en, clear=(self.clearing, self.clear, 0))

        # The cell that arrives: is it to be copied, and is there room?
        state, new_state = self.state, self.new_state
        full, finds_none, rest, arriving_row = Signal(), Signal(), Signal(), Signal(self._entry)
        framed = self.framed & self.user
        m.d.comb += full.eq(self.waiting == self._cells)
        with slot.gate_when(self.arrives & ~self.inside):
            m.d.comb += [
                arriving_row.eq(table.read(self.vc, at=ARRIVAL, to="arriving_next")),
                finds_none.eq(arriving_row.valid & full & ~self.inside),
                rest.eq(framed & state.inside & (state.refused | (state.cut & ~self.last)) & ~self.inside),
                self.refuse.eq(finds_none | rest),
            ]
        with slot.gate_when(self.arrives):
            m.d.comb += new_state.eq(state)
            with m.If(~self.inside):
                follow_frame(
                    m, state, new_state, user=self.user, last=self.last, framed=framed, refuses=finds_none,
                    cuts=finds_none,
                )  # fmt: skip
        keeps, comes = Signal(), Signal(name="comes")
        ends = slot.commit if slot.wide else slot.clock(TAKEN)
        with m.If(self.seen):
            m.d.comb += keeps.eq(arriving_row.valid & ~self.refuse & ~self.inside)
        slot.with_commit(keeps)
        kept = Signal(row)
        m.d.comb += [kept.root.eq(self.vc), kept.header.eq(self.header)]
        head, tail = Signal(range(self._cells)), Signal(range(self._cells))
        rows.write(tail, kept, keeps)
        if slot.wide:
            m.d.comb += comes.eq(keeps)
        else:
            with m.If(keeps):
                m.d.sync += comes.eq(1)
            with m.Elif(ends):
                m.d.sync += comes.eq(0)
            slot.clocks.holds(comes, TAKEN)
        (self._wide if slot.wide else self._narrow)(m, slot, head, tail, keeps, full)

        # The first in the FIFO: the VC that it was copied for last, the one that it is offered for
        offer, there, written = self.offer, Signal(), Signal()
        before, leaf, header, copies = (
            Signal(shape) for shape in (range(self._vcs),) * 2 + (CellHeader, range(self._vcs))
        )
        m.d.comb += [offer.there.eq(there & ~written), offer.vc.eq(leaf), offer.header.eq(header)]
        after, first, second = Signal(self._entry), Signal(self._entry), Signal(row)
        here = Signal(range(self._vcs))
        with slot.gate_when(self.waiting.any()):
            with m.If(there):
                m.d.comb += here.eq(leaf)
            with m.Else():
                m.d.comb += here.eq(before)
            m.d.comb += after.eq(table.read(here, at=LOOK, to="after"))
            m.d.comb += second.eq(rows.read((head + 1)[: len(head)], at=LOOK, to="second"))
            m.d.comb += first.eq(table.read(second.root, at=FOLLOW, to="first_leaf"))
        m.d.comb += self.busy.eq(self.waiting.any() | written)
        goes, spent = Signal(), Signal()
        m.d.comb += spent.eq(copies + offer.taken == self._vcs - 1)
        with m.If(ends):
            with m.If(comes):
                m.d.sync += tail.eq(tail + 1)
            with m.If(offer.taken):
                m.d.sync += [before.eq(leaf), copies.eq(copies + 1), self.made.eq(self.made + 1)]
            with m.If(self.waiting.any() & ~written & (offer.taken | ~there)):
                with m.If(after.valid & ~spent):
                    m.d.sync += [leaf.eq(after.next), there.eq(1)]
                with m.Else():
                    m.d.comb += goes.eq(1)
                    m.d.sync += [there.eq(0), head.eq(head + 1)]
                    with m.If(after.valid):
                        m.d.sync += self.endless.eq(self.endless + 1)
                    with m.If(self.waiting > 1):
                        m.d.sync += [
                            before.eq(second.root),
                            header.eq(second.header),
                            leaf.eq(first.next),
                            there.eq(first.valid),
                            copies.eq(0),
                        ]
            with m.If(comes & (self.waiting == goes)):  # it is the first
                m.d.sync += [
                    before.eq(self.vc),
                    header.eq(self.header),
                    leaf.eq(arriving_row.next),
                    there.eq(1),
                    copies.eq(0),
                ]
            with m.If(written):  # what was looked up may be of before
                m.d.sync += [there.eq(0), written.eq(0)]
            m.d.sync += self.waiting.eq(self.waiting + comes - goes)
        with m.If(self.entry_en):
            m.d.sync += written.eq(1)
        return m

    def _wide(self, m, slot, head, tail, keeps, full):
        del full
        self.payloads = payloads = slot.store("kept_payloads", 384, self._cells)
        payloads.write(tail, self.i.payload, keeps)
        with slot.gate_when(self.waiting.any()):
            m.d.comb += self.offer.payload.eq(payloads.read(head))

    def _narrow(self, m, slot, head, tail, keeps, full):
        """Write words as they arrive, at the place of the next cell, whether it is kept or not."""
        del keeps
        words = slot.store("kept_words", NARROW, self._cells * WORDS, block=True)
        base, room, place = Signal.like(tail), Signal(), Signal(range(WORDS_A_CELL))
        word, comes = Signal(NARROW), Signal()
        starts = self.i.valid & self.i.soc  # in clock 1; the last word is written when `tail` has moved on
        m.d.sync += [word.eq(self.i.word), comes.eq(self.i.valid & ~self.i.soc)]
        slot.clocks.strobe(comes, 3)
        with m.If(starts):
            m.d.sync += [base.eq(tail), room.eq(~full), place.eq(0)]
        with m.Elif(comes):
            m.d.sync += place.eq(place + 1)
        words.write(base * WORDS + place, word, comes & ~self.inside & room)
        m.d.sync += self.offer.word.eq(words.peek(head * WORDS + self.offer.place))
