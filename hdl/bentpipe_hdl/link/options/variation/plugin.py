"""Cell delay variation: the datapath's ``later``, which the moving path adds to the delay."""

from bentpipe_hdl.link.options.plugin import LinkPlugin
from bentpipe_hdl.link.options.variation.variation import Variation as Part

__all__ = ["PLUGIN"]


class Variation(LinkPlugin):
    lets_pass = False

    def build(self, m, slot, csr, link):
        self.part = Part(m, slot, csr)

    def lose(self, path, gone):
        path.later = self.part.draw(path.carried)
        return gone


PLUGIN = Variation
