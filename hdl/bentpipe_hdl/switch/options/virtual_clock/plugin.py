"""Virtual clock: another scheduler than round robin."""

from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.virtual_clock.virtual_clock import VirtualClock as Part

__all__ = ["PLUGIN"]


class VirtualClock(Plugin):
    options = ("virtual-clock",)
    order = Order.SCHEDULE

    def scheduler(self, build):
        self.part = Part(build.slot, vcs=build.vcs, ports=build.ports)
        self.clears = self.part.clears
        return self.part

    def depart(self, m, cell):
        cell.plain = False

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)


PLUGIN = VirtualClock
