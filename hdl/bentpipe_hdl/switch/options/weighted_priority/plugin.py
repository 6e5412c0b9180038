"""FIFO ports, weights and priorities: another scheduler than round robin."""

from bentpipe_hdl.switch.core.vc_table import DEPARTURE, VcField
from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.weighted_priority.control import PRIORITIES
from bentpipe_hdl.switch.options.weighted_priority.weighted_priority import WeightedPriorityScheduler

__all__ = ["PLUGIN"]


class WeightedPriority(Plugin):
    """Virtual clock, which is of all ports of a switch, goes before it."""

    options = ("fifo", "shares")
    order = Order.SCHEDULE

    part = None

    def scheduler(self, build):
        if "virtual-clock" in self.given:
            return None
        self._by_cell, weighted = "fifo" in self.given, "shares" in self.given
        self.part = WeightedPriorityScheduler(
            build.slot, vcs=build.vcs, ports=build.ports, at=DEPARTURE - 2,
            places=build.places if self._by_cell else 0, weighted=weighted, priorities=PRIORITIES if weighted else 1,
        )  # fmt: skip
        if self._by_cell:
            self.vc_fields = (VcField("kept", self.part.Kept, "arrival"),)
        return self.part

    def depart(self, m, cell):
        if self.part is None:
            return
        cell.plain = False
        if self._by_cell:
            cell.clock_join_port = self.part.joins_at

    def attach(self, m, csr, path):
        if self.part is not None:
            self.part.attach(m, csr, path)


PLUGIN = WeightedPriority
