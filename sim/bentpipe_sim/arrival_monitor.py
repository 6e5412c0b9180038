"""1-point cell delay variation (I.356) of a VC at a node, counted by the event loop as the cells arrive.

The reference clock has the period T of a peak cell rate. Cell k arrives at a_k, and the clock expects it at c_k: c_0 is
a_0, c_(k+1) = max(c_k, a_k) + T. The 1-point CDV is y_k = c_k - a_k. It is positive for a cell that arrives early, in a
clump, and negative behind a gap. As long as no cell failed before, cell k conforms to GCRA(T, tau) if and only if
y_k <= tau.
"""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_hdl.ticks import RATIO, cell_period, duration

from .channels import LedgerHop
from .loop import Loop

__all__ = ["ArrivalCounts", "ArrivalMonitor"]


@dataclass(frozen=True)
class ArrivalCounts:
    """Counts of cells that arrived so far.

    Members
    -------
    cells : int
        Cells of the VC that arrived with a valid header, OAM cells included.
    nonconforming : int
        Of these, cells that do not conform to GCRA(1/PCR, CDVT).
    cdv_max_ps, cdv_min_ps : int
        Greatest and least 1-point CDV.
    """

    cells: int
    nonconforming: int
    cdv_max_ps: int
    cdv_min_ps: int


@dataclass(eq=False)
class ArrivalMonitor:
    """The cells of a VC at one node; made by :meth:`~bentpipe_sim.network.Network.watch_arrivals`.

    Members
    -------
    hop : LedgerHop
        The node, and the port at which the VC comes in.
    pcr_bps : float
        Peak cell rate of the reference clock, in bits of cells a second.
    cdvt_ps : int
        Tolerance against which cells are judged.
    """

    loop: Loop
    hop: LedgerHop
    pcr_bps: float
    cdvt_ps: int
    _number: int = -1

    @property
    def period(self) -> int:
        """T, in units of 2**-16 ticks; ValueError as for :func:`~bentpipe_hdl.ticks.cell_period`."""
        return cell_period(self.pcr_bps)

    def lay(self) -> None:
        """Begin, in a network that is made and has no cells yet."""
        hop = self.hop
        place = (hop.port, hop.key, hop.mask, self.period, duration(self.cdvt_ps))
        self._number = self.loop.watch_arrivals(hop.node.index, self.loop.ffi.new("bp_arrival_place *", place))

    def counts(self) -> ArrivalCounts:
        """Return the counts so far."""
        found = self.loop.ffi.new("bp_arrival_counts *")
        self.loop.arrivals(self._number, found)
        return ArrivalCounts(found.cells, found.nonconforming, _ps(found.most), _ps(found.least))


def _ps(units: int) -> int:
    """Return a time in units of 2**-16 ticks as picoseconds, the nearest."""
    ps, ticks = RATIO
    return (2 * units * ps + 65536 * ticks) // (2 * 65536 * ticks)
