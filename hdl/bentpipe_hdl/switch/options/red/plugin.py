"""RED: a stage, and beside it the averages of the ports' queues."""

from bentpipe_hdl.switch.core.admission import Rank
from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.red.early_detection import EarlyDetection, RandomEarlyDetection

__all__ = ["PLUGIN"]


class Red(Plugin):
    options = ("red",)
    order = Order.ADMIT

    def build(self, build, others):
        self.part = build.m.submodules.red = RandomEarlyDetection(
            build.slot, ports=build.ports, count_bits=build.count_bits
        )
        limit = others.get("queue_limit")
        self.stage = EarlyDetection(self.part, limit and limit.stage)

    def stages(self):
        yield Rank.EARLY, self.stage

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)


PLUGIN = Red
