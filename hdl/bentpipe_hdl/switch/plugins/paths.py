"""Virtual paths: a second look-up by VPI alone; cells keep their VCIs."""

from amaranth.hdl import Cat, Mux, Signal

from ...lookup import Lookup
from ..options.vp import paths_of
from .base import Plugin

__all__ = ["VirtualPaths"]


class VirtualPaths(Plugin):
    options = ("vp",)
    cell_fields = {"vci": 16}  # noqa: RUF012

    def build(self, with_):
        self._lookup = Lookup(
            with_.m, with_.slot, with_.csr, vcs=with_.vcs, ports=with_.ports, nni=with_.settings["nni"],
            name="vp_lookup", entries=paths_of(with_.vcs), paths=True,
        )  # fmt: skip

    def find(self, m, cell):
        found, vc = self._lookup.find(cell.header, cell.port)
        made_here = 0 if cell.inside is None else cell.inside  # of such its maker knows the VCI, or it is 0
        m.d.comb += cell.in_path.eq(cell.build.slot.settle(found & ~cell.found, "found_path") | made_here)
        cell.found, cell.found_vc = cell.found | found, Mux(cell.found, cell.found_vc, vc)

    def check(self, m, cell):
        """A path's OAM cells are known by their VCI (F4), and keep their PTI, too."""
        manages, queued_pti = Signal(name="manages"), Signal(3, name="queued_pti")
        with m.If(cell.in_path):
            m.d.comb += manages.eq((cell.header.vci == 3) | (cell.header.vci == 4))
        m.d.comb += [
            cell.buffer.vci.eq(cell.header.vci),
            queued_pti.eq(Cat(cell.queued_pti[:2], cell.header.pti[2])),
        ]
        cell.pti, cell.queued_pti = cell.pti | (manages << 2), queued_pti

    def depart(self, m, cell):
        cell.vci = Mux(cell.vci == 0, cell.buffer.next_vci, cell.vci)
