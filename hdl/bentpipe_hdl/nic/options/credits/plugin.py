"""Credits: a part that holds VCs back in the pacer, takes credit cells and sends probes."""

from amaranth.hdl import Cat
from amaranth.lib import wiring

from bentpipe_hdl.credits.cells import RM
from bentpipe_hdl.nic.options.credits.nic_credits import COUNTERS, NicCredits
from bentpipe_hdl.nic.options.plugin import NicPlugin

__all__ = ["PLUGIN"]


class Credits(NicPlugin):
    arguments = {"pacer": {"credits": True}, "segmenter": {"messages": True}}  # noqa: RUF012

    def receive(self, m, csr, core):
        nic, pacer, tx, rx = core.nic, core.pacer, core.segmenter, core.reassembler
        part = self._part = m.submodules.credits = NicCredits(core.slot, width=nic.width, vcs=nic.vcs)
        self.takes = part.takes
        wiring.connect(m, wiring.flipped(nic.i), part.i)
        m.d.comb += [
            part.now.eq(nic.time.now),
            part.clear.eq(core.clear),
            part.step.eq(csr.register("credit_step")),
            part.last.eq(csr.register("credit_last")),
            Cat(part.share_vc, part.share, part.share_en).eq(Cat(csr.write_port("tx_share"))),
            part.vc.eq(pacer.vc),
            part.sent.eq(tx.sent),
            part.sends.eq(pacer.sends),
            part.ends.eq(core.ends),
            part.posts.eq(pacer.posts),
            part.accepts.eq(pacer.accepts),
            part.lookup_grant.eq(pacer.lookup_grant),
            part.probe_grant.eq(pacer.probe_grant),
            *(
                getattr(pacer, n).eq(getattr(part, n))
                for n in ("lookup_request", "lookup_vc", "probe_request", "probe_vc")
            ),
            *(getattr(pacer, n).eq(getattr(part, n)) for n in ("allowed", "waiting", "wakeup")),
            tx.message_send.eq(pacer.probe_grant),
            tx.message.eq(part.message),
        ]
        index, entry, written = csr.write_port("rx_back")
        m.d.comb += [
            part.back_vc.eq(index),
            part.back.vc.eq(entry),
            part.back.takes.eq(entry[12]),
            part.back_en.eq(written),
        ]
        for name in COUNTERS:
            csr.status(f"credit_{name}", getattr(part, name))
        csr.read_port("tx_freed", part.freed_of, part.freed)
        m.d.comb += [
            part.clearing.eq(core.clearing),
            part.there.eq(core.arrives),
            part.known.eq(rx.known & ~core.arrival.hec_error),
            part.arriving.eq(rx.vc),
            part.rm.eq(core.arrival.header.pti == RM),
        ]

    def due(self):
        yield self._part.due


PLUGIN = Credits
