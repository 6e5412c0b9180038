"""Point to multipoint: a FIFO between the look-up and admission, whose cells come in through the inlet."""

from ..copier import COPIED, Copier
from .base import Plugin

__all__ = ["Copies"]


class Copies(Plugin):
    options = ("copies",)
    vc_fields = (COPIED,)

    def build(self, with_):
        self.part = with_.m.submodules.copier = Copier(with_.slot, width=with_.width, ports=with_.ports, vcs=with_.vcs)
        self.offer = self.part.offer

    def check(self, m, cell):
        copier = self.part
        m.d.comb += [
            copier.inside.eq(cell.inside),
            copier.arrives.eq(cell.arrives),
            copier.user.eq(~cell.pti[2]),
            copier.last.eq(cell.pti[0]),
            copier.header.eq(cell.header),
            copier.header.clp.eq(cell.clp),
        ]
        cell.refuse(copier.refuse, "refused_held", reason="copies", keeps=COPIED, state=copier.new_state)

    def attach(self, m, csr, tick):
        self.part.attach(m, csr, tick)

    def works(self):
        yield self.part.waiting.any()

    def urgent(self):
        yield self.part.busy
