"""Which cells are refused or marked first: thresholds, shares of the buffer, guaranteed cells, RED."""

from ..admission import PortEpd as PortEpdStage
from ..admission import QueueLimit as QueueLimitStage
from ..admission import Rank
from ..efci import CongestionIndication
from ..fair import ActiveVcs
from ..fair import FairShare as FairShareStage
from ..minimum import GuaranteedCells
from ..red import EarlyDetection, RandomEarlyDetection
from .base import Plugin

__all__ = ["Efci", "FairShare", "Minimum", "PortEpd", "QueueLimit", "Red"]


class Minimum(Plugin):
    options = ("minimum",)
    vc_fields = GuaranteedCells.fields
    cell_fields = {"shared": 1}  # noqa: RUF012
    core = {"admission": {"minima": True}}  # noqa: RUF012

    def build(self, with_):
        self.part = with_.m.submodules.minima = GuaranteedCells(with_.slot, vcs=with_.vcs, count_bits=with_.count_bits)

    def shared_places(self):
        return self.part

    def attach(self, m, csr, tick):
        self.part.attach(m, csr, tick)


class FairShare(Plugin):
    options = ("fair",)

    def build(self, with_):
        csr = with_.csr
        self.active = with_.m.submodules.active = ActiveVcs(with_.slot, vcs=with_.vcs)
        settings = with_.settings["epd_threshold"], csr.setting("fair_share"), csr.setting("fair_span")
        self._stage = FairShareStage(*settings, self.active.count, vcs=with_.vcs, table=csr.table("vc_fair"))

    def stages(self):
        yield Rank.FAIR, self._stage

    def attach(self, m, csr, tick):
        self.active.attach(m, csr, tick)


class PortEpd(Plugin):
    options = ("port_epd",)

    def build(self, with_):
        self._stage = PortEpdStage(with_.csr.settings("port_epd_threshold"))

    def stages(self):
        yield Rank.PORT_EPD, self._stage


class Efci(Plugin):
    options = ("efci",)

    def build(self, with_):
        csr = with_.csr
        thresholds = csr.setting("efci_threshold"), csr.settings("port_efci_threshold")
        self._stage = CongestionIndication(*thresholds, vcs=with_.vcs, table=csr.table("vc_efci_threshold"))

    def stages(self):
        yield Rank.MARKS, self._stage


class QueueLimit(Plugin):
    options = ("queue_limit",)

    def build(self, with_):
        self.stage = QueueLimitStage(with_.csr.settings("queue_limit"))

    def stages(self):
        yield Rank.LIMIT, self.stage


class Red(Plugin):
    options = ("red",)

    def build(self, with_):
        self.part = with_.m.submodules.red = RandomEarlyDetection(
            with_.slot, ports=with_.ports, count_bits=with_.count_bits
        )
        limit = with_.plugins.get("queue_limit")
        self._stage = EarlyDetection(self.part, limit and limit.stage)

    def stages(self):
        yield Rank.EARLY, self._stage

    def attach(self, m, csr, tick):
        self.part.attach(m, csr, tick)
