"""Histograms of queues and delays: they observe alone."""

from bentpipe_hdl.switch.core.vc_table import DEPARTURE
from bentpipe_hdl.switch.options.histograms.histograms import Histograms as Part
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class Histograms(Plugin):
    options = ("histograms",)
    order = Order.ADMIT

    def build(self, build, others):
        self._wide = build.slot.wide
        self.part = build.m.submodules.histograms = Part(
            build.slot, vcs=build.vcs, ports=build.ports, places=build.places, at=DEPARTURE + 2
        )
        self.clears = self.part.clears

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)

    def busy(self):
        if not self._wide:
            yield self.part.pending


PLUGIN = Histograms
