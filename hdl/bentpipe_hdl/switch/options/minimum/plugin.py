"""Places of the buffer that are reserved for VCs."""

from bentpipe_hdl.switch.options.minimum.reserved_cells import ReservedCells
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class Minimum(Plugin):
    options = ("minimum",)
    order = Order.ADMIT
    vc_fields = ReservedCells.fields
    cell_fields = {"shared": 1}  # noqa: RUF012

    def build(self, build, others):
        self.part = build.m.submodules.minima = ReservedCells(build.slot, vcs=build.vcs, count_bits=build.count_bits)

    def reservations(self):
        return self.part

    def attach(self, m, csr, path):
        self.part.attach(m, csr, path)


PLUGIN = Minimum
