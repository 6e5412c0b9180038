"""EFCI: a stage that marks."""

from bentpipe_hdl.switch.core.admission import Rank
from bentpipe_hdl.switch.options.efci.congestion_indication import CongestionIndication
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class Efci(Plugin):
    options = ("efci",)
    order = Order.ADMIT

    def build(self, build, others):
        csr = build.csr
        thresholds = csr.register("efci_threshold"), csr.registers("port_efci_threshold")
        self.stage = CongestionIndication(*thresholds, vcs=build.vcs, table=csr.write_port("vc_efci_threshold"))

    def stages(self):
        yield Rank.MARKS, self.stage


PLUGIN = Efci
