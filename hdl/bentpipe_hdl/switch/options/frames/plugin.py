"""Ports that send cells in the slots of frames: a timer stalls them between."""

from bentpipe_hdl.switch.options.frames.slot_timer import SlotTimer
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class Frames(Plugin):
    options = ("frames",)
    order = Order.PACE
    arguments = {"port_rate_scheduler": {"slotted": True}}  # noqa: RUF012

    def attach(self, m, csr, path):
        self.gate = m.submodules.frames = SlotTimer(path.core.build.slot, ports=path.core.build.ports)
        self.due = self.gate.due
        self.gate.attach(m, csr, path)


PLUGIN = Frames
