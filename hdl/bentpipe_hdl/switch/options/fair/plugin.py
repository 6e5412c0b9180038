"""Selective drop and fair buffer allocation: a stage, and a count of the VCs that have cells queued."""

from bentpipe_hdl.switch.core.admission import Rank
from bentpipe_hdl.switch.options.fair.fair_share import ActiveVcs, FairShare
from bentpipe_hdl.switch.options.plugin import Order, Plugin

__all__ = ["PLUGIN"]


class Fair(Plugin):
    options = ("fair",)
    order = Order.ADMIT

    def build(self, build, others):
        csr = build.csr
        self.active = build.m.submodules.active = ActiveVcs(build.slot, vcs=build.vcs)
        settings = build.settings["epd_threshold"], csr.register("fair_share"), csr.register("fair_span")
        self.stage = FairShare(*settings, self.active.count, vcs=build.vcs, table=csr.write_port("vc_fair"))

    def stages(self):
        yield Rank.SHARE, self.stage

    def attach(self, m, csr, path):
        self.active.attach(m, csr, path)


PLUGIN = Fair
