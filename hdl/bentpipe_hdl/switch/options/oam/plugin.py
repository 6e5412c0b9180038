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
    tells : Out(1)
        The tick's cell is to be reported.
    own : Out(1)
        It is an OAM cell of the switch's own, queued or dropped.
    took : Out(1)
        It is an OAM cell that the switch took.
    """

    options = ("oam",)
    order = Order.MANAGE

    @staticmethod
    def members(*, vcs, ports):
        return {"tells": Out(1), "own": Out(1), "took": Out(1)}

    def build(self, build, others):
        self.part = build.m.submodules.oam = Part(build.slot, width=build.width, vcs=build.vcs, ports=build.ports)
        self.offer, self.due = self.part.offer, self.part.due

    def claim(self, m, cell):
        cell.local = self.part.own
        cell.admissible = cell.admissible & ~self.part.takes

    def report(self, m, cell, valid, outputs):
        own, took, tells = Signal(name="own"), Signal(name="took"), Signal(name="tells")
        with m.If(cell.arrival):
            m.d.comb += [own.eq(self.part.own), took.eq(self.part.takes), tells.eq(valid | own | took)]
        m.d.sync += [outputs.own.eq(own), outputs.took.eq(took), outputs.tells.eq(tells)]
        return tells

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)


PLUGIN = Oam
