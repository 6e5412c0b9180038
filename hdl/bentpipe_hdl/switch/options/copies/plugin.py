"""Point to multipoint: a FIFO between the look-up and admission, whose cells arrive through the injection mux."""

from bentpipe_hdl.switch.options.copies.replicator import COPIED, MulticastReplicator
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class Copies(Plugin):
    options = ("copies",)
    order = Order.REPLICATE
    vc_fields = (COPIED,)

    def build(self, build, others):
        self.part = build.m.submodules.copier = MulticastReplicator(
            build.slot, width=build.width, ports=build.ports, vcs=build.vcs
        )
        self.offer = self.part.offer

    def check(self, m, cell):
        part = self.part
        m.d.comb += [
            part.inside.eq(cell.inside),
            part.arrives.eq(cell.admissible),
            part.user.eq(~cell.pti[2]),
            part.last.eq(cell.pti[0]),
            part.header.eq(cell.header),
            part.header.clp.eq(cell.clp),
        ]
        cell.refuse(part.refuse, "refused_held", reason="copies", keeps=COPIED, state=part.new_state)

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)

    def busy(self):
        yield self.part.waiting.any()

    def urgent(self):
        yield self.part.busy


PLUGIN = Copies
