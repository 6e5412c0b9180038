"""Early packet discard by the queue of a port: a stage."""

from bentpipe_hdl.switch.core.admission import Rank
from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.port_epd.stage import PortEpd

__all__ = ["PLUGIN"]


class PortQueueEpd(Plugin):
    options = ("port_epd",)
    order = Order.ADMIT

    def build(self, build, others):
        self.stage = PortEpd(build.csr.registers("port_epd_threshold"))

    def stages(self):
        yield Rank.QUEUE_EPD, self.stage


PLUGIN = PortQueueEpd
