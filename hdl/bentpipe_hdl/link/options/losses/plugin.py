"""Listed losses."""

from bentpipe_hdl.link.options.losses.losses import Losses as Part
from bentpipe_hdl.link.options.plugin import LinkPlugin

__all__ = ["PLUGIN"]


class Losses(LinkPlugin):
    def build(self, m, slot, csr, link):
        self.part = Part(m, slot, csr)
        self.acts = self.part.enable

    def lose(self, path, gone):
        """Return whether the cell is lost by the list; this plugin is the first, so no other has taken the cell out."""
        del gone
        return self.part.decide(path.sent_header, path.sent_hec_error, path.taken)


PLUGIN = Losses
