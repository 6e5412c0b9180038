"""Selective drop and fair buffer allocation: with the buffer above its threshold, frames of VCs with more than their
share are refused (Goyal, Jain, Kalyanaraman, Fahmy, Kim, ICC 1997; Heinanen and Kilkki 1995)."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.switch.core.admission import Stage, Verdict
from bentpipe_hdl.switch.core.vc_table import ARRIVAL
from bentpipe_hdl.switch.options.fair.control import SHARE_FRACTION
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["ActiveVcs", "FairShare"]

Fair = data.StructLayout({"selective": 1, "allocation": 1})
"""How a VC's share is looked at: an entry of the register VC_FAIR."""


class ActiveVcs(wiring.Component):
    """Counts the VCs that have cells in the buffer.

    Members
    -------
    begins, ends : In
        The queue of a VC stops being empty now; one becomes empty.
    count : Out
    """

    def __init__(self, slot: TickSchedule, *, vcs: int):
        self._slot = slot
        super().__init__({"begins": In(1), "ends": In(1), "count": Out(range(vcs + 1))})

    def attach(self, m, csr, path):
        """Connect the VCs that become active and idle, and the count that software reads."""
        m.d.comb += [
            self.begins.eq(path.arriving.starts_queue),
            self.ends.eq(path.leaving.dequeue & ~path.leaving.more),
        ]
        csr.status("active_vcs", self.count)

    def elaborate(self, platform):
        m = Module()
        self._slot.with_commit(self.begins, self.ends)
        with m.If(self.begins), m.If(~self.ends):
            m.d.sync += self.count.eq(self.count + 1)
        with m.If(self.ends), m.If(~self.begins):
            m.d.sync += self.count.eq(self.count - 1)
        return m


class FairShare(Stage):
    """Selective drop and fair buffer allocation: from ``threshold`` cells on, frames of VCs above their share are
    refused.

    With X cells in the buffer, Y of the VC, N VCs that have any, the threshold R, the capacity K and the factor Z:
    *selective drop* refuses when ``Y * N > Z * X``; *fair buffer allocation* when ``Y * N > Z * X * (1 + (K - X) / (X -
    R))``, which for X above R is ``Y * N * (X - R) > Z * (K - R) * X``, and never at R itself.

    Parameters
    ----------
    threshold, share, span : Value
        R; Z and ``Z * (K - R)``, with 12 fraction bits.
    active : Value
        N.
    vcs : int
    table : tuple
        ``(index, data, en)`` with which software writes how each VC's share is looked at.
    """

    reason = "fair"

    def __init__(self, threshold: Value, share: Value, span: Value, active: Value, *, vcs: int, table):
        self._threshold, self._share, self._span, self._active = threshold, share, span, active
        self._vcs, self._table = vcs, table

    def prepare(self, slot):
        self._modes = slot.store("vc_fair", Fair, self._vcs)
        self._modes.write(*self._table)

    def decide(self, m, slot, cell):
        mode = data.View(Fair, self._modes.read(cell.vc, at=ARRIVAL, to="fair_mode"))
        count, active = len(cell.occupancy), len(self._active)
        above, over = Signal(name="fair_above"), Signal(name="fair_over")
        beyond = Signal(count, name="fair_beyond")
        weight = Signal(active + count, name="fair_weight")
        bound = Signal(len(self._span) + count, name="fair_bound")
        with slot.gate_when(cell.starts):
            m.d.comb += [
                above.eq(slot.pipe(cell.occupancy >= self._threshold, "fair_held")),
                beyond.eq(cell.occupancy - self._threshold),
                weight.eq(Mux(mode.allocation, slot.pipe(self._active * beyond, "fair_weight_held"), self._active)),
                bound.eq(
                    Mux(
                        mode.allocation,
                        slot.pipe(self._span * cell.occupancy, "fair_span_held"),
                        slot.pipe(self._share * cell.occupancy, "fair_share_held"),
                    )
                ),
            ]
            load = slot.pipe(cell.length * weight, "fair_load") << SHARE_FRACTION
            m.d.comb += over.eq(load > slot.pipe(bound, "fair_bound_held"))
        return Verdict(cell.starts & (mode.selective | mode.allocation) & above & over)
