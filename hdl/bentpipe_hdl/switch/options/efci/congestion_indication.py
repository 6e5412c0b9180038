"""Explicit forward congestion indication: user cells are marked where a queue is long (I.371, TM 4.0 clause 5.8.6)."""

from collections.abc import Sequence

from amaranth.hdl import Array, Signal, Value

from bentpipe_hdl.switch.core.admission import Stage, Verdict
from bentpipe_hdl.switch.core.vc_table import ARRIVAL

__all__ = ["CongestionIndication"]


class CongestionIndication(Stage):
    """Marks user cells when buffer, port or VC have so many cells or more. A threshold of 0 is none.

    Parameters
    ----------
    threshold : Value
        Of the buffer.
    ports : sequence of Value
        Those of the ports.
    vcs : int
    table : tuple
        ``(index, data, en)`` with which software writes those of the VCs.
    """

    reason = "full"  # it never drops

    def __init__(self, threshold: Value, ports: Sequence[Value], *, vcs: int, table):
        self._threshold, self._ports, self._vcs, self._table = threshold, ports, vcs, table

    def prepare(self, slot):
        self._own = slot.store("vc_efci", 16, self._vcs)
        self._own.write(*self._table)

    def decide(self, m, slot, cell):
        vc_threshold, port_threshold = Signal(16, name="efci_own"), Signal(16, name="efci_port")
        marks = Signal(name="efci_marks")
        m.d.comb += [
            vc_threshold.eq(self._own.read(cell.vc, at=ARRIVAL, to="vc_efci_threshold")),
            port_threshold.eq(slot.pipe(Array(self._ports)[cell.policy.port], "port_efci_threshold")),
        ]
        m.d.comb += marks.eq(
            slot.pipe((self._threshold != 0) & (cell.occupancy >= self._threshold), "efci_held")
            | slot.pipe((vc_threshold != 0) & (cell.length >= vc_threshold), "efci_own_held")
            | ((port_threshold != 0) & (cell.port_cells >= port_threshold))
        )
        return Verdict(mark=marks)
