"""Load-reactive ports: a controller sets the ports' periods."""

from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.reactive.rate_controller import RateController

__all__ = ["PLUGIN"]


class Reactive(Plugin):
    options = ("reactive",)
    order = Order.PACE
    arguments = {"port_rate_scheduler": {"carries": True}}  # noqa: RUF012

    def periods(self):
        return self.gate.periods

    def attach(self, m, csr, path):
        build = path.core.build
        self.gate = m.submodules.rates = RateController(build.slot, ports=build.ports, count_bits=build.count_bits)
        self.due = self.gate.due
        self.gate.attach(m, csr, path)


PLUGIN = Reactive
