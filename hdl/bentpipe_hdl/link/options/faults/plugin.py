"""Outages and bursts: a second process of bit errors, and cells that are taken out."""

from amaranth.lib.wiring import Out

from bentpipe_hdl.link.options.faults.faults import Faults as Part
from bentpipe_hdl.link.options.plugin import LinkPlugin
from bentpipe_hdl.link.registers import GONE

__all__ = ["PLUGIN"]


class Faults(LinkPlugin):
    """The link's output ``gone_why``: why the cell that arrived with the tick is gone, if it is, the place in
    ``registers.GONE``; registered."""

    @staticmethod
    def members():
        return {"gone_why": Out(range(len(GONE)))}

    def build(self, m, slot, csr, link):
        self._link = link
        self.part = Part(m, slot, csr, link.time)
        self.bad, self.acts, self.cut = self.part.bad, self.part.acts, self.part.outage

    def lose(self, path, gone):
        gone, why = self.part.decide(path.taken, gone)
        self.due, self.works = self.part.due, self.part.works
        with path.m.If(gone):
            path.m.d.sync += self._link.gone_why.eq(why)
        return gone


PLUGIN = Faults
