"""Cells that were not queued, counted by VC and reason, or by port; and those queued with another header."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.switch.registers import REASON_BITS
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Changes", "Counters"]

COUNT = 10
"""Narrow: the clock in which a count is read, to be written in the one after the commit."""


class Counters(wiring.Component):
    """Counters of drops. All wrap at 2**32.

    Members
    -------
    clearing, clear : In
        After reset: entry ``clear`` of a table is to be cleared.
    lost, vc, reason : In
        A cell of this VC is dropped now.
    stray, port, hec_error : In
        A cell is dropped that no known VC has, or that has a bad HEC.
    flushed : In
        A cell leaves the buffer without being sent.
    dropped_index, unknown_port, hec_port : In, dropped, unknown, hec : Out
        Software reads: by ``vc << REASON_BITS | reason``, by port; a clock later on the narrow datapath.
    flushes : Out
        Cells that left without being sent.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, ports: int):
        self._slot, self._vcs, self._ports = slot, vcs, ports
        self.entries = vcs << REASON_BITS
        self.clears = max(self.entries, 2 << (ports - 1).bit_length())  # both are powers of two
        port, index = range(ports), range(self.entries)
        super().__init__(
            {
                "clearing": In(1),
                "clear": In(range(self.clears)),
                "lost": In(1),
                "vc": In(range(vcs)),
                "reason": In(REASON_BITS),
                "stray": In(1),
                "port": In(port),
                "hec_error": In(1),
                "flushed": In(1),
                "dropped_index": In(index),
                "dropped": Out(32),
                "unknown_port": In(port),
                "unknown": Out(32),
                "hec_port": In(port),
                "hec": Out(32),
                "flushes": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.lost, self.stray, self.flushed)
        drops = slot.store("drops", 32, self.entries, block=True)
        index = Signal(range(self.entries))
        m.d.comb += index.eq(Cat(self.reason, self.vc))
        dropped = drops.read(index, at=COUNT, to="dropped_before")
        # The reason may hang on what the commit changes: it counts as it was in the commit's clock
        drops.write(
            slot.pipe(index, "lost_index"),
            dropped + 1,
            slot.later(self.lost, "counts_lost"),
            clear=(self.clearing, self.clear[: len(index)], 0),
        )
        m.d.comb += self.dropped.eq(drops.peek(self.dropped_index))

        strays = slot.store("strays", 32, 2 * self._ports)
        stray = Signal(range(2 * self._ports))
        m.d.comb += stray.eq(Cat(self.hec_error, self.port[: (self._ports - 1).bit_length()]))
        strayed = strays.read(stray, at=COUNT, to="strayed_before")
        strays.write(
            stray,
            strayed + 1,
            slot.later(self.stray, "counts_stray"),
            clear=(self.clearing, self.clear[: len(stray)], 0),
        )
        m.d.comb += [
            self.unknown.eq(strays.peek(Cat(Const(0, 1), self.unknown_port))),
            self.hec.eq(strays.peek(Cat(Const(1, 1), self.hec_port))),
        ]
        with m.If(self.flushed):
            m.d.sync += self.flushes.eq(self.flushes + 1)
        return m


class Changes(wiring.Component):
    """Counters of cells that were queued with CLP or EFCI newly set, by VC. Both wrap at 2**32.

    Members
    -------
    clearing, clear : In
        After reset: the counters of VC ``clear`` are to be cleared.
    queued, vc, tagged, marked : In
        A cell of this VC is queued now; its CLP bit was set here, or its EFCI bit.
    tagged_vc, marked_vc : In, tags, marks : Out
        Software reads; a clock later on the narrow datapath.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int):
        self._slot, self._vcs = slot, vcs
        vc = range(vcs)
        super().__init__(
            {
                "clearing": In(1),
                "clear": In(vc),
                "queued": In(1),
                "vc": In(vc),
                "tagged": In(1),
                "marked": In(1),
                "tagged_vc": In(vc),
                "tags": Out(32),
                "marked_vc": In(vc),
                "marks": Out(32),
            }
        )

    def attach(self, m, csr, path):
        """Connect the counted events, and the registers that software reads."""
        m.d.comb += [
            self.clearing.eq(path.core.vc_table.clearing),
            self.clear.eq(path.core.vc_table.clear),
            self.queued.eq(path.arriving.enqueue),
            self.vc.eq(path.arriving.vc),
            self.tagged.eq(path.core.admission.tagged),
            self.marked.eq(path.core.admission.marked),
        ]
        csr.read_port("tagged", self.tagged_vc, self.tags)
        csr.read_port("marked", self.marked_vc, self.marks)

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.queued)
        counted = data.StructLayout({"tags": 32, "marks": 32})
        changes = slot.store("changes", counted, self._vcs, block=True)
        counts, new = Signal(), Signal(counted)
        with m.If(self.queued):
            m.d.comb += counts.eq(self.tagged | self.marked)
        before = changes.read(self.vc, at=COUNT, to="changes_before")
        tagged, marked = slot.pipe(self.tagged, "was_tagged"), slot.pipe(self.marked, "was_marked")
        m.d.comb += [new.tags.eq(before.tags + tagged), new.marks.eq(before.marks + marked)]
        changes.write(self.vc, new, slot.later(counts, "counts_changes"), clear=(self.clearing, self.clear, 0))
        m.d.comb += [self.tags.eq(changes.peek(self.tagged_vc).tags), self.marks.eq(changes.peek(self.marked_vc).marks)]
        return m
