"""A delay that changes: the link tells with each cell the tick in which it arrives."""

from amaranth.lib.wiring import Out

from bentpipe_hdl.cell import TIME_BITS
from bentpipe_hdl.link.options.path.path import Path as Part
from bentpipe_hdl.link.options.plugin import LinkPlugin

__all__ = ["PLUGIN"]


class Path(LinkPlugin):
    """The link tells when its cells arrive.

    Members
    -------
    o_end : Out(48)
        The tick in which the cell at ``o`` arrives; beside each cell.
    """

    lets_pass = False

    @staticmethod
    def members():
        return {"o_end": Out(TIME_BITS)}

    def build(self, m, slot, csr, link):
        self._link = link
        self.part = Part(m, slot, csr, link.time)
        m.d.comb += link.o_end.eq(self.part.due)

    def lose(self, path, gone):
        """Run after all other plugins: ``gone`` is final."""
        self.part.send(path.carried & ~gone, path.errors.delay, path.later)
        return gone


PLUGIN = Path
