"""Slots in frames: the pacer's line takes cells in these."""

from bentpipe_hdl.nic.options.plugin import NicPlugin

__all__ = ["PLUGIN"]


class Frames(NicPlugin):
    arguments = {"pacer": {"framed": True}}  # noqa: RUF012
    drives_line = True

    def transmit(self, m, csr, core):
        self._pacer = core.pacer
        m.d.comb += [core.pacer.length.eq(csr.register("line_slot")), core.pacer.cycle.eq(csr.register("line_cycle"))]

    def due(self):
        yield self._pacer.slot_due


PLUGIN = Frames
