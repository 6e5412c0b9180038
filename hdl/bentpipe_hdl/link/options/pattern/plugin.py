"""Losses in a pattern: a counter of cells."""

from amaranth.hdl import Signal

from bentpipe_hdl.link.options.plugin import LinkPlugin
from bentpipe_hdl.link.registers import GONE

__all__ = ["PLUGIN"]


class Pattern(LinkPlugin):
    """Lose the first ``PATTERN_LOST`` of each ``PATTERN_OF`` cells. Every cell that arrives is counted, also one
    that another plugin takes out, which is lost for that plugin's reason. A write of a register keeps the count."""

    lets_pass = False

    def build(self, m, slot, csr, link):
        self._link, self._slot = link, slot
        self._lost, self._of = csr.register("pattern_lost"), csr.register("pattern_of")
        self._count = Signal(32, name="lost_pattern")
        csr.status("lost_pattern", self._count)

    def lose(self, path, gone):
        m, slot = path.m, self._slot
        position, hit = Signal(32, name="pattern_position"), Signal(name="pattern_hit")
        among = slot.pipe(position < self._lost, "pattern_among", since=0)
        ends = slot.pipe(position + 1 >= self._of, "pattern_ends", since=0)
        m.d.comb += hit.eq(path.taken & among & ~gone)
        with m.If(path.taken):
            with m.If(ends):
                m.d.sync += position.eq(0)
            with m.Else():
                m.d.sync += position.eq(position + 1)
        with m.If(hit):
            m.d.sync += [self._link.gone_why.eq(GONE.index("pattern")), self._count.eq(self._count + 1)]
        return gone | hit


PLUGIN = Pattern
