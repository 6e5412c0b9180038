"""A limit of frames queued for a port: a stage."""

from bentpipe_hdl.switch.core.admission import Rank
from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.queue_limit.stage import QueueLimit

__all__ = ["PLUGIN"]


class Limit(Plugin):
    options = ("queue_limit",)
    order = Order.ADMIT

    def build(self, build, others):
        self.stage = QueueLimit(build.csr.registers("queue_limit"))

    def stages(self):
        yield Rank.LIMIT, self.stage


PLUGIN = Limit
