"""Early packet discard by the queue of a port (Romanow and Floyd 1995)."""

from collections.abc import Sequence

from amaranth.hdl import Array, Signal, Value

from bentpipe_hdl.switch.core.admission import Stage, Verdict

__all__ = ["PortEpd"]


class PortEpd(Stage):
    """EPD by port: it refuses a frame when its port's queue is at a threshold or above, unless its VC's EPD has its
    own."""

    reason = "epd"

    def __init__(self, thresholds: Sequence[Value]):
        self._thresholds = thresholds

    def decide(self, m, slot, cell):
        threshold = Signal(16, name="port_epd_threshold")
        m.d.comb += threshold.eq(slot.pipe(Array(self._thresholds)[cell.policy.port], "arriving_port_epd_threshold"))
        above = (threshold != 0) & (cell.port_cells >= threshold)
        return Verdict(cell.starts & cell.policy.epd & ~cell.policy.epd_own & above)
