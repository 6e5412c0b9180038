"""Counts of queued cells by VC, each with a threshold."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.slot import Slot

__all__ = ["CellCounter"]

COUNT = 10
"""Narrow: the clock in which a count and its threshold are read, to be compared and written behind the commit."""


class CellCounter(wiring.Component):
    """Counts cells of each VC, modulo 2**32, and the VCs whose count has become their threshold.

    Members
    -------
    clearing, clear : In
        After reset: the count of VC ``clear`` is to be cleared.
    queued, vc : In
        A cell of this VC is queued now.
    threshold_vc, threshold, threshold_en : In
        Software writes the threshold of a VC; 0: none.
    restart : In
        Software clears ``reached``; a VC that reaches its threshold in the same clock counts.
    reached, last : Out
        How many times a count has become its threshold, and of which VC the last time.
    cells_of : In, cells : Out
        Software reads a count; a clock later on the narrow datapath.
    """

    def __init__(self, slot: Slot, *, vcs: int):
        self._slot, self._vcs = slot, vcs
        vc = range(vcs)
        super().__init__(
            {
                "clearing": In(1),
                "clear": In(vc),
                "queued": In(1),
                "vc": In(vc),
                "threshold_vc": In(vc),
                "threshold": In(32),
                "threshold_en": In(1),
                "restart": In(1),
                "reached": Out(32),
                "last": Out(vc),
                "cells_of": In(vc),
                "cells": Out(32),
            }
        )

    def attach(self, m, csr, path):
        """Connect what is counted, and the registers."""
        index, threshold, written = csr.table("count_threshold")
        m.d.comb += [
            self.clearing.eq(path.core.vc_table.clearing),
            self.clear.eq(path.core.vc_table.clear),
            self.queued.eq(path.arriving.enqueue),
            self.vc.eq(path.arriving.vc),
            self.threshold_vc.eq(index),
            self.threshold.eq(threshold),
            self.threshold_en.eq(written),
        ]
        csr.status("count_reached", self.reached)
        with csr.written("count_reached"):
            m.d.comb += self.restart.eq(1)
        csr.status("count_vc", self.last)
        csr.counts("count_cells", self.cells_of, self.cells)

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.queued)
        clear = (self.clearing, self.clear, 0)
        counts = slot.store("counted_cells", 32, self._vcs, block=True)
        thresholds = slot.store("count_thresholds", 32, self._vcs, block=True)
        thresholds.write(self.threshold_vc, self.threshold, self.threshold_en, clear=clear)
        before = counts.read(self.vc, at=COUNT, to="counted_before")
        limit = thresholds.read(self.vc, at=COUNT, to="count_limit")
        counted, new, hits = slot.later(self.queued, "counts_queued"), Signal(32), Signal()
        m.d.comb += [new.eq(before + 1), hits.eq(counted & (new == limit) & (limit != 0))]
        counts.write(self.vc, new, counted, clear=clear)
        m.d.comb += self.cells.eq(counts.peek(self.cells_of))
        with m.If(hits):
            m.d.sync += [self.last.eq(self.vc), self.reached.eq(self.reached + 1)]
        with m.If(self.restart):
            m.d.sync += self.reached.eq(hits)
        return m
