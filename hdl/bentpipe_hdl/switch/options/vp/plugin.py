"""Virtual paths: a second look-up by VPI alone; cells keep their VCIs."""

from amaranth.hdl import Cat, Mux, Signal

from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.vp.control import paths_of

__all__ = ["PLUGIN"]


class VirtualPaths(Plugin):
    options = ("vp",)
    order = Order.IDENTIFY
    cell_fields = {"vci": 16}  # noqa: RUF012

    def build(self, build, others):
        self._lookup = Lookup(
            build.m, build.slot, build.csr, vcs=build.vcs, ports=build.ports, nni=build.settings["nni"],
            name="vp_lookup", entries=paths_of(build.vcs), paths=True,
        )  # fmt: skip

    def find(self, m, cell):
        """Find the virtual path of a cell.

        A cell made in the switch counts as one of a path: its maker knows the VCI, or it is 0.
        """
        found, vc = self._lookup.find(cell.header, cell.port)
        made_here = 0 if cell.inside is None else cell.inside
        m.d.comb += cell.in_path.eq(cell.core.build.slot.pipe(found & ~cell.found, "found_path") | made_here)
        cell.found, cell.found_vc = cell.found | found, Mux(cell.found, cell.found_vc, vc)

    def check(self, m, cell):
        """Let OAM cells of a path (F4 flows, VCI 3 or 4) pass as such, with their PTI unchanged."""
        manages, queued_pti = Signal(name="manages"), Signal(3, name="queued_pti")
        with m.If(cell.in_path):
            m.d.comb += manages.eq((cell.header.vci == 3) | (cell.header.vci == 4))
        m.d.comb += [
            cell.core.buffer.vci.eq(cell.header.vci),
            queued_pti.eq(Cat(cell.queued_pti[:2], cell.header.pti[2])),
        ]
        cell.pti, cell.queued_pti = cell.pti | (manages << 2), queued_pti

    def depart(self, m, cell):
        cell.vci = Mux(cell.vci == 0, cell.core.buffer.next_vci, cell.vci)


PLUGIN = VirtualPaths
