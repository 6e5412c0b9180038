"""Cells that a link makes: what the datapath lets leave in ticks without a cell."""

from amaranth.lib.wiring import Out

from bentpipe_hdl.link.options.extra.extra import Extra as Part
from bentpipe_hdl.link.options.plugin import LinkPlugin

__all__ = ["PLUGIN"]


class Extra(LinkPlugin):
    """Cells that the link makes.

    Members
    -------
    o_extra : Out(2)
        The cell that leaves is one that the link made (1: a duplicate, 2: a misinserted cell); at 416 bits together
        with ``o``.
    """

    lets_pass = False

    @staticmethod
    def members():
        return {"o_extra": Out(2)}

    def build(self, m, slot, csr, link):
        self._link, self._wide = link, slot.wide
        self.part = Part(m, slot, csr, link.time)
        self.offer = self.part.offer

    def lose(self, path, gone):
        self.part.make(path, gone, self._link.o_extra)
        self.due, self.works = self.part.due, self.part.works
        return gone

    def sent(self, path):
        if not self._wide:
            self.part.keep(path.leaving)


PLUGIN = Extra
