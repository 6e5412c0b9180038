"""Counts what became of test cells on their way: lost, errored, misinserted; blocks; delays."""

from types import SimpleNamespace

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import NEVER, TIME_BITS, due_tick
from bentpipe_hdl.tick_schedule import TickSchedule

from .cells import STAMP_BITS
from .generator import COUNT_BITS

__all__ = ["CELLS", "EVENTS", "TestCellAnalyser", "classes_of"]

CELLS = ("errored", "lost", "misinserted", "secb_errored", "secb_lost", "secb_misinserted", "in_order", "skipped")
"""Counts of cells: of three kinds; those of them in severely errored cell blocks; cells in order, of which the delay is
known; cells that were not judged, as the analyser was out of step."""

EVENTS = ("pending", "resyncs", "blocks", "secbs")
"""Counts: cells with a wrong CRC-16 of which it is not known yet what they were; changes to another sequence; cell
blocks; severely errored cell blocks."""

NEXT = 9
"""Narrow: the clock in which the histogram is read."""


def classes_of(vcs: int) -> int:
    """Return the number of classes of the delay histogram: all are cleared while the node's tables are."""
    return min(512, 8 * vcs)


class TestCellAnalyser(wiring.Component):
    """The analyser of test cells: it judges a cell in the tick after its arrival, by its sequence number and CRC-16.

    E is the next number that is expected, u the cells with a wrong CRC since the last one that was right. A cell with
    the number SN and d = SN - E, modulo 2**32:

    - 0 <= d <= 2**16: min(d, u) cells were errored, the other max(d - u, 0) lost, max(u - d, 0) misinserted. E becomes
      SN + 1.
    - -2**16 <= d < 0: misinserted, an old cell or one that came twice; E stays.
    - else: not judged. If the next cell with a right CRC goes on from it, E goes on from there.

    Blocks of I.356 are of 2**``size`` consecutive numbers; more than ``limit`` outcomes that are errored, lost or
    misinserted make one severely errored. Within a gap errored cells count as before lost ones.

    The delay of a cell in order is the difference of the time stamps. The histogram is of the delay minus that of the
    first cell (2-point CDV). Its classes are 2**``class_width`` times 10 ns wide; the first and the last one are open.

    Parameters
    ----------
    slot : TickSchedule
    vcs : int
        Of the node.

    Members
    -------
    now : In
        The present tick.
    clearing, clear : In
        While ``clearing`` is high, class ``clear`` becomes 0.
    asked : In
        In the clock in which software writes ``known``: it starts again. Counters go on.
    known, first : In
        E is ``first`` at the start; else the first cell with a right CRC says it.
    size, limit, class_width : In
    valid, good, number, stamp, came : In
        As for :class:`.receiver.TestCellReceiver`.
    errored, lost, … : Out
        ``CELLS`` and ``EVENTS``.
    delay_sum, delay_min, delay_max, reference : Out
        Delays in 10 ns: their sum (64 bits), the least, the greatest, that of the first cell; all but the sum since the
        start.
    synced : Out
    index, cells : In, Out
        A class of the histogram, for a reader at any time.
    due, busy : Out
    """

    __test__ = False

    def __init__(self, slot: TickSchedule, *, vcs: int):
        self._slot, self.classes = slot, classes_of(vcs)
        super().__init__(
            {
                "now": In(TIME_BITS),
                "clearing": In(1),
                "clear": In(range(self.classes)),
                "asked": In(1),
                "known": In(1),
                "first": In(32),
                "size": In(5),
                "limit": In(16),
                "class_width": In(5),
                "valid": In(1),
                "good": In(1),
                "number": In(32),
                "stamp": In(STAMP_BITS),
                "came": In(STAMP_BITS),
                **{name: Out(COUNT_BITS) for name in CELLS},
                **{name: Out(32) for name in EVENTS},
                "delay_sum": Out(64),
                "delay_min": Out(STAMP_BITS, init=(1 << STAMP_BITS) - 1),
                "delay_max": Out(STAMP_BITS),
                "reference": Out(STAMP_BITS),
                "synced": Out(1),
                "index": In(range(self.classes)),
                "cells": Out(32),
                "due": Out(TIME_BITS),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        restart, at_once = Signal(), Signal(TIME_BITS)
        self._expected, self._candidate, self._has_candidate = Signal(32), Signal(32), Signal()
        self._block = SimpleNamespace(errored=Signal(17), lost=Signal(17), misinserted=Signal(32))
        self._has_reference = Signal()
        classes, counted = slot.store("classes", 32, self.classes, block=True), Signal()
        with slot.gate_when(self.valid):
            found = self._place(m, slot)
            blocks = self._blocks(m, slot, found)
            delay = self._delay(m, slot, classes)
        slot.with_commit(counted)
        classes.write(delay.place, delay.before + 1, counted, clear=(self.clearing, self.clear, 0))
        m.d.comb += self.cells.eq(classes.peek(self.index))
        with m.If(slot.commit):
            with m.If(restart):
                self._start(m)
                m.d.sync += restart.eq(0)
            with m.Elif(self.valid & ~self.good):
                m.d.sync += self.pending.eq(self.pending + 1)
            with m.Elif(self.valid & found.in_order):
                self._count(m, found, blocks)
                self._time(m, delay)
                m.d.comb += counted.eq(1)
            with m.Elif(self.valid & found.behind):
                m.d.sync += [
                    self.misinserted.eq(self.misinserted + 1),
                    self._block.misinserted.eq(self._block.misinserted + 1),
                    self._has_candidate.eq(0),
                ]
            with m.Elif(self.valid):
                m.d.sync += [
                    self.skipped.eq(self.skipped + 1),
                    self._candidate.eq(self.number + 1),
                    self._has_candidate.eq(1),
                ]
        with m.If(self.asked):
            m.d.sync += restart.eq(1)
        with m.If(self.asked | slot.commit):
            m.d.sync += at_once.eq(due_tick(self.now))
        m.d.comb += self.due.eq(Mux(restart | self.valid, at_once, NEVER))
        if not slot.wide:
            m.d.comb += self.busy.eq(restart | self.valid)
        return m

    @staticmethod
    def _stages(m, slot):
        """Return ``stage(value, name)``, which is :meth:`~bentpipe_hdl.tick_schedule.TickSchedule.pipe`, and
        ``named(value, name)``. Both give a signal: what is no signal is built again wherever it is used."""

        def named(value, name):
            signal = Signal.like(value, name=name)
            m.d.comb += signal.eq(value)
            return signal

        return (named if slot.wide else slot.pipe), named

    def _start(self, m):
        m.d.sync += [
            self.synced.eq(self.known),
            self._expected.eq(self.first),
            self.pending.eq(0),
            self._has_candidate.eq(0),
            *(part.eq(0) for part in vars(self._block).values()),
            self._has_reference.eq(0),
            self.reference.eq(0),
            self.delay_min.eq((1 << STAMP_BITS) - 1),
            self.delay_max.eq(0),
        ]

    def _place(self, m, slot):
        """Return the position of the cell in the sequence, and the contents of the gap before it."""
        stage, named = self._stages(m, slot)
        ahead = stage((self.number - self._expected)[:32], "ahead")
        agrees = stage(self._has_candidate & (self.number == self._candidate), "agrees")
        near = named(~ahead[17:].any() & ~(ahead[16] & ahead[:16].any()), "near")
        back = named(ahead[16:].all(), "back")
        resumes = named(self.synced & ~near & ~back & agrees, "resumes_now")
        anew = stage(~self.synced | resumes, "anew")
        found = SimpleNamespace(
            anew=anew,
            resumes=stage(resumes, "resumes"),
            in_order=stage(~self.synced | near | resumes, "in_order_now"),
            behind=stage(back, "behind"),
        )
        gap = found.gap = stage(Mux(~self.synced | resumes, 0, ahead[:17]), "gap")
        bad = named(Mux(anew, 0, self.pending), "bad")
        errored = found.errored = stage(Mux(bad < gap, bad, gap)[:17], "gap_errored")
        found.lost = named((gap - errored)[:17], "gap_lost")
        found.extra = named((bad - errored)[:32], "gap_extra")
        found.start = named(Mux(anew, self.number, self._expected)[:16], "gap_start")
        return found

    def _blocks(self, m, slot, found):
        """Return the effect of the gap and the cell on blocks.

        ``head`` cells of the gap are in the block in which it begins, ``whole`` in blocks without a received cell,
        ``tail`` in the block of the cell.
        """
        stage, named = self._stages(m, slot)
        gap, errored, kept = found.gap, found.errored, {}
        for name, part in vars(self._block).items():
            kept[name] = named(Mux(found.anew, 0, part), f"kept_{name}")
        mask = Signal(16)
        m.d.comb += mask.eq((1 << self.size) - 1)
        room = stage(((mask - (found.start & mask))[:16] + 1)[:17], "room")
        crosses = stage(gap >= room, "crosses")
        rest = stage(Mux(gap >= room, gap - room, 0)[:17], "rest")
        head = stage(Mux(gap >= room, room, gap)[:17], "head")
        tail = stage(rest & mask, "tail")
        whole = named((rest - tail)[:17], "whole")
        whole_blocks = stage((rest >> self.size)[:17], "whole_blocks")
        head_errored = stage(Mux(errored < head, errored, head)[:17], "head_errored")
        rest_errored = named((errored - head_errored)[:17], "rest_errored")
        whole_errored = stage(Mux(rest_errored < whole, rest_errored, whole)[:17], "whole_errored")
        tail_errored = named((rest_errored - whole_errored)[:17], "tail_errored")
        first = SimpleNamespace(
            errored=stage((kept["errored"] + head_errored)[:17], "first_errored"),
            lost=stage((kept["lost"] + head - head_errored)[:17], "first_lost"),
            misinserted=stage((kept["misinserted"] + found.extra)[:32], "first_misinserted"),
        )
        closes = stage(crosses | (gap + 1 == room), "closes")
        first_severe = stage(closes & (first.errored + first.lost + first.misinserted > self.limit), "first_severe")
        closes_tail = stage(crosses & (tail == mask), "closes_tail")
        tail_severe = stage(crosses & (tail == mask) & (tail > self.limit), "tail_severe")
        tail_lost = named((tail - tail_errored)[:17], "tail_lost")
        return SimpleNamespace(
            crosses=crosses,
            closes=closes,
            closes_tail=closes_tail,
            first=first,
            tail=SimpleNamespace(errored=tail_errored, lost=tail_lost, misinserted=0),
            blocks=stage(whole_blocks + closes + closes_tail, "block_count"),
            secbs=stage(whole_blocks + first_severe + tail_severe, "secb_count"),
            errored=stage(
                Mux(first_severe, first.errored, 0) + whole_errored + Mux(tail_severe, tail_errored, 0),
                "severe_errored",
            ),
            lost=stage(
                Mux(first_severe, first.lost, 0) + (whole - whole_errored)[:17] + Mux(tail_severe, tail_lost, 0),
                "severe_lost",
            ),
            misinserted=stage(Mux(first_severe, first.misinserted, 0), "severe_misinserted"),
        )

    def _count(self, m, found, blocks):
        """Count a cell in order."""
        m.d.sync += [
            self._expected.eq(self.number + 1),
            self.synced.eq(1),
            self.pending.eq(0),
            self._has_candidate.eq(0),
            self.in_order.eq(self.in_order + 1),
            self.errored.eq(self.errored + found.errored),
            self.lost.eq(self.lost + found.lost),
            self.misinserted.eq(self.misinserted + found.extra),
            self.resyncs.eq(self.resyncs + found.resumes),
            self.skipped.eq(self.skipped + Mux(found.anew, self.pending, 0)),
            self.blocks.eq(self.blocks + blocks.blocks),
            self.secbs.eq(self.secbs + blocks.secbs),
            self.secb_errored.eq(self.secb_errored + blocks.errored),
            self.secb_lost.eq(self.secb_lost + blocks.lost),
            self.secb_misinserted.eq(self.secb_misinserted + blocks.misinserted),
        ]
        for name, part in vars(self._block).items():
            first, tail = getattr(blocks.first, name), getattr(blocks.tail, name)
            m.d.sync += part.eq(Mux(blocks.crosses, Mux(blocks.closes_tail, 0, tail), Mux(blocks.closes, 0, first)))

    def _delay(self, m, slot, classes):
        """Return the delay of the cell, and the class that counts it, with its present count."""
        stage, _ = self._stages(m, slot)
        below = self.classes // 4
        delay = stage((self.came - self.stamp)[:STAMP_BITS], "delay")
        reference = Mux(self._has_reference, self.reference, delay)
        varied = Signal(signed(STAMP_BITS))
        m.d.comb += varied.eq(stage((delay - reference)[:STAMP_BITS], "variation"))
        place = Signal(signed(STAMP_BITS + 1))
        m.d.comb += place.eq(stage(varied >> self.class_width, "class_place") + below)
        bounded = Signal(range(self.classes))
        with m.If(place < 0):
            m.d.comb += bounded.eq(0)
        with m.Elif(place >= self.classes):
            m.d.comb += bounded.eq(self.classes - 1)
        with m.Else():
            m.d.comb += bounded.eq(place)
        at = stage(bounded, "class_at")
        before = Signal(32)
        m.d.comb += before.eq(classes.read(at, at=NEXT, to="class_before"))
        return SimpleNamespace(delay=delay, reference=reference, place=at, before=before)

    def _time(self, m, found):
        delay = found.delay
        m.d.sync += [
            self.delay_sum.eq(self.delay_sum + delay),
            self.reference.eq(found.reference),
            self._has_reference.eq(1),
        ]
        with m.If(delay < self.delay_min):
            m.d.sync += self.delay_min.eq(delay)
        with m.If(delay > self.delay_max):
            m.d.sync += self.delay_max.eq(delay)
