"""OAM: cells of flows that end here are taken before admission; the switch's own come in through the inlet."""

from amaranth.hdl import Signal

from ..oam import Oam as Part
from .base import Plugin

__all__ = ["Oam"]


class Oam(Plugin):
    options = ("oam",)

    def build(self, with_):
        self.part = with_.m.submodules.oam = Part(with_.slot, width=with_.width, vcs=with_.vcs, ports=with_.ports)
        self.offer, self.due = self.part.offer, self.part.due

    def claim(self, m, cell):
        self._inside = cell.inside
        cell.own = self.part.own
        cell.arrives = cell.arrives & ~self.part.takes

    def tell(self, m, cell, lost, outputs):
        own, took, tells = Signal(name="own"), Signal(name="took"), Signal(name="tells")
        with m.If(cell.take):
            m.d.comb += [own.eq(self.part.own), took.eq(self.part.takes), tells.eq(lost | own | took)]
        m.d.sync += [outputs.own.eq(own), outputs.took.eq(took), outputs.tells.eq(tells)]
        return tells

    def attach(self, m, csr, tick):
        self.part.attach(m, csr, tick, self._inside)
