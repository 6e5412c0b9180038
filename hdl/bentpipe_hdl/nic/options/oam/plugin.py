"""Single cells of the host, and the place for OAM cells that arrive."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.nic.options.oam.oam_place import COUNTERS, OamPlace, is_f5, place_members
from bentpipe_hdl.nic.options.plugin import NicPlugin

__all__ = ["PLUGIN"]


class Oam(NicPlugin):
    """The interface's ports for it: ``post_single``: the post is a single cell, whose length means nothing; ``fetch``
    asks for its 48 octets with ``fetch_single``, and ``cell_pti`` has to be there with them, until the next ``fetch``;
    ``done`` is of it with ``done_single``. ``oam_…``: an OAM cell that arrived, as for :class:`.oam_place.OamPlace`."""

    arguments = {"pacer": {"singles": True}, "segmenter": {"singles": True}}  # noqa: RUF012

    @staticmethod
    def members(*, width, vcs):
        return {
            "post_single": In(1),
            "cell_pti": In(3),
            "fetch_single": Out(1),
            "done_single": Out(1),
            **{f"oam_{name}": member for name, member in place_members(width, vcs).items()},
        }

    def transmit(self, m, csr, core):
        core.ends = core.pacer.emptied

    def receive(self, m, csr, core):
        nic, pacer, tx, rx, header = core.nic, core.pacer, core.segmenter, core.reassembler, core.arrival.header
        place = self._place = m.submodules.oam = OamPlace(core.slot, width=nic.width, vcs=nic.vcs)
        self.takes = place.takes
        wiring.connect(m, wiring.flipped(nic.i), place.i)
        m.d.comb += [
            pacer.post_single.eq(core.of_host(nic.post_single)),
            tx.single.eq(pacer.single),
            tx.pti.eq(nic.cell_pti),
            nic.fetch_single.eq(pacer.fetch_single),
            nic.done_single.eq(tx.done_single),
            place.now.eq(nic.time.now),
            place.takes.eq(core.arrives & rx.known & ~core.arrival.hec_error & is_f5(header)),
            place.header.eq(header),
            place.of.eq(rx.vc),
            place.take.eq(nic.oam_take),
        ]
        for name, member in place_members(nic.width, nic.vcs).items():
            if member.flow is Out:
                m.d.comb += getattr(nic, f"oam_{name}").eq(getattr(place, name))
        if not core.slot.wide:
            m.d.comb += place.at.eq(nic.oam_at)
        for name in COUNTERS:
            csr.status(name, getattr(place, name))

    def busy(self):
        yield self._place.busy


PLUGIN = Oam
