"""Credits: RM cells end here, VCs without credit stay out of the rounds, and cells that carry counts leave."""

from amaranth.hdl import Mux, Signal

from ...credits.cells import RM
from ..context import VcField
from ..credits import Credits as Part
from .base import Plugin

__all__ = ["Credits"]


class Credits(Plugin):
    options = ("credits",)
    vc_fields = (VcField("holds", 1, "arrival"), VcField("held", 1, "departure"))
    core = {"context": {"looks": True}, "egress": {"messages": True}}  # noqa: RUF012

    def build(self, with_):
        self.part = with_.m.submodules.credits = Part(with_.slot, width=with_.width, vcs=with_.vcs, ports=with_.ports)
        self.due = self.part.due

    def claim(self, m, cell):
        cell.arrives = cell.arrives & ~(cell.known & (cell.header.pti == RM))

    def depart(self, m, cell):
        part = self.part
        cell.vc, cell.header_vc, cell.message = part.departing, part.header_vc, part.control
        cell.dequeue = cell.asks = Signal(name="dequeue")
        m.d.comb += cell.dequeue.eq(cell.serve & ~part.control)
        cell.join, cell.join_vc, cell.join_port = part.join, part.join_vc, part.join_port
        cell.rejoin = part.rejoin
        cell.rounds, cell.begins, cell.plain = part, part.begins, False
        cell.clock_join_port, cell.clock_rejoin_port = part.join_port, part.rejoin_port
        cell.clp = cell.clp & ~part.control
        cell.pti = Mux(part.control, RM, cell.pti)

    def attach(self, m, csr, tick):
        self.part.attach(m, csr, tick)
