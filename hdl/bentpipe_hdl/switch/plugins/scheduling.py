"""Other schedulers than round robin."""

from ..context import DEPARTURE, VcField
from ..options.scheduling import PRIORITIES
from ..turns import Turns as TurnsPart
from ..virtual_clock import VirtualClock as VirtualClockPart
from .base import Plugin

__all__ = ["Turns", "VirtualClock"]


class Turns(Plugin):
    """FIFO, weights and priorities."""

    options = ("fifo", "shares")

    part = None

    def scheduler(self, with_):
        if "virtual-clock" in self.given:  # which is of all ports
            return None
        self._by_cell, weighted = "fifo" in self.given, "shares" in self.given
        self.part = TurnsPart(
            with_.slot, vcs=with_.vcs, ports=with_.ports, at=DEPARTURE - 2,
            places=with_.places if self._by_cell else 0, weighted=weighted, priorities=PRIORITIES if weighted else 1,
        )  # fmt: skip
        if self._by_cell:
            self.vc_fields = (VcField("kept", self.part.Kept, "arrival"),)
        return self.part

    def depart(self, m, cell):
        if self.part is None:
            return
        cell.plain = False
        if self._by_cell:
            cell.clock_join_port = self.part.joins_at

    def attach(self, m, csr, tick):
        if self.part is not None:
            self.part.attach(m, csr, tick)


class VirtualClock(Plugin):
    options = ("virtual-clock",)

    def scheduler(self, with_):
        self.part = VirtualClockPart(with_.slot, vcs=with_.vcs, ports=with_.ports)
        self.clears = self.part.clears
        return self.part

    def depart(self, m, cell):
        cell.plain = False

    def attach(self, m, csr, tick):
        self.part.attach(m, csr, tick)
