"""OAM: cells of flows that end here are taken before admission; the switch's own come in through the injection mux."""

from amaranth.hdl import Signal
from amaranth.lib.wiring import Out

from bentpipe_hdl.switch.options.oam.oam import Oam as Part
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class Oam(Plugin):
    """The switch reports the tick's OAM cell, for one clock, registered as ``o`` is.

    Members
    -------
    report_valid : Out(1)
        The tick's cell is to be reported.
    report_own : Out(1)
        It is an OAM cell of the switch's own, queued or dropped.
    report_consumed : Out(1)
        It is an OAM cell that ended in the switch.
    """

    options = ("oam",)
    order = Order.MANAGE

    @staticmethod
    def members(*, vcs, ports):
        return {"report_valid": Out(1), "report_own": Out(1), "report_consumed": Out(1)}

    def build(self, build, others):
        self.part = build.m.submodules.oam = Part(build.slot, width=build.width, vcs=build.vcs, ports=build.ports)
        self.offer, self.due = self.part.offer, self.part.due

    def claim(self, m, cell):
        cell.local = self.part.own
        cell.admissible = cell.admissible & ~self.part.takes

    def report(self, m, cell, valid, outputs):
        own, consumed, report = Signal(name="own"), Signal(name="consumed"), Signal(name="report")
        with m.If(cell.arrival):
            m.d.comb += [own.eq(self.part.own), consumed.eq(self.part.takes), report.eq(valid | own | consumed)]
        m.d.sync += [
            outputs.report_own.eq(own),
            outputs.report_consumed.eq(consumed),
            outputs.report_valid.eq(report),
        ]
        return report

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)


PLUGIN = Oam
