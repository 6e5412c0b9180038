"""A count of cells for each VC: it observes what is queued, and has an output of the switch."""

from amaranth.lib.wiring import Out

from bentpipe_hdl.switch.options.cell_count.cell_counter import CellCounter
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class CellCount(Plugin):
    """The switch's output ``interrupt`` is high from the commit in which a VC reaches its threshold until software
    writes ``COUNT_REACHED``."""

    options = ("cell_count",)
    order = Order.ADMIT

    @staticmethod
    def members(*, vcs, ports):
        return {"interrupt": Out(1)}

    def build(self, build, others):
        self.part = build.m.submodules.cell_counter = CellCounter(build.slot, vcs=build.vcs)

    def report(self, m, cell, valid, outputs):
        m.d.comb += outputs.interrupt.eq(self.part.reached.any())
        return valid

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)


PLUGIN = CellCount
