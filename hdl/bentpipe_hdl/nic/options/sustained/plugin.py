"""Sustained rates: a second bucket of each VC in the pacer."""

from amaranth.hdl import Cat

from bentpipe_hdl.nic.options.plugin import NicPlugin

__all__ = ["PLUGIN"]


class Sustained(NicPlugin):
    arguments = {"pacer": {"sustained": True}}  # noqa: RUF012

    def transmit(self, m, csr, core):
        pacer = core.pacer
        m.d.comb += [
            Cat(pacer.rate_index, pacer.rate, pacer.rate_en).eq(Cat(csr.write_port("tx_sustained"))),
            Cat(pacer.burst_index, pacer.burst, pacer.burst_en).eq(Cat(csr.write_port("tx_burst"))),
        ]


PLUGIN = Sustained
