"""Histograms of queues and delays: they only look."""

from ..context import DEPARTURE
from ..histograms import Histograms as Part
from .base import Plugin

__all__ = ["Histograms"]


class Histograms(Plugin):
    options = ("histograms",)

    def build(self, with_):
        self._wide = with_.slot.wide
        self.part = with_.m.submodules.histograms = Part(
            with_.slot, vcs=with_.vcs, ports=with_.ports, places=with_.places, at=DEPARTURE + 2
        )
        self.clears = self.part.clears

    def attach(self, m, csr, tick):
        self.part.attach(m, csr, tick)

    def works(self):
        if not self._wide:
            yield self.part.pending
