"""Credits: RM cells end here, VCs without credit stay out of the rounds, and cells that carry counts leave."""

from amaranth.hdl import Mux, Signal

from bentpipe_hdl.credits.cells import RM, Message, payload_of, words_of
from bentpipe_hdl.switch.core.egress import MessageFormat
from bentpipe_hdl.switch.core.vc_table import VcField
from bentpipe_hdl.switch.options.credits.credits import Credits as Part
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class Credits(Plugin):
    options = ("credits",)
    order = Order.CONTROL
    vc_fields = (VcField("holds", 1, "arrival"), VcField("held", 1, "departure"))
    arguments = {  # noqa: RUF012
        "vc_table": {"lookup": True},
        "egress": {"messages": MessageFormat(Message, payload_of, words_of)},
    }

    def build(self, build, others):
        self.part = build.m.submodules.credits = Part(build.slot, width=build.width, vcs=build.vcs, ports=build.ports)
        self.due = self.part.due

    def claim(self, m, cell):
        cell.admissible = cell.admissible & ~(cell.known & (cell.header.pti == RM))

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

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)


PLUGIN = Credits
