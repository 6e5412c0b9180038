"""Amaranth's own library in the native simulator: every signal, before and after each clock, as in Amaranth's."""

import warnings

import pytest
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.lib import cdc, crc, fifo
from amaranth.lib.crc.catalog import CRC8_AUTOSAR, CRC32_ETHERNET

from models.simulators import BOTH, everything, unlike

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # "copy the module into your project"
    from amaranth.lib import coding


class Synchronizers(Elaboratable):
    """All of ``amaranth.lib.cdc``."""

    def __init__(self):
        self.i, self.o, self.n = Signal(3), Signal(3), Signal(8)
        self.reset, self.out, self.pulse, self.pulsed = Signal(), Signal(), Signal(), Signal()

    def elaborate(self, platform):
        m = Module()
        m.domains += [ClockDomain("sync", async_reset=True), ClockDomain("fast")]
        m.submodules.ff = cdc.FFSynchronizer(self.i, self.o, o_domain="fast", stages=3)
        m.submodules.async_ff = cdc.AsyncFFSynchronizer(self.reset, self.out, o_domain="fast")
        m.submodules.reset = cdc.ResetSynchronizer(self.reset, domain="sync")
        m.submodules.pulse = pulse = cdc.PulseSynchronizer("sync", "fast")
        m.d.comb += [pulse.i.eq(self.pulse), self.pulsed.eq(pulse.o)]
        m.d.sync += self.n.eq(self.n + 1)
        return m


def processor(algorithm, width):
    return crc.Processor(crc.Parameters(algorithm, data_width=width))


ONE, TWO = ("sync",), ("sync", "fast")
FIFO = ("w_data", "w_en", "r_en")
DESIGNS = {
    "SyncFIFO": (lambda: fifo.SyncFIFO(width=9, depth=5), FIFO, ONE),
    "SyncFIFOBuffered": (lambda: fifo.SyncFIFOBuffered(width=80, depth=6), FIFO, ONE),
    "AsyncFIFO": (lambda: fifo.AsyncFIFO(width=8, depth=8, r_domain="sync", w_domain="fast"), FIFO, TWO),
    "AsyncFIFOBuffered": (
        lambda: fifo.AsyncFIFOBuffered(width=8, depth=9, r_domain="sync", w_domain="fast"),
        FIFO,
        TWO,
    ),
    "CRC-32": (lambda: processor(CRC32_ETHERNET, 16), ("data", "valid", "start"), ONE),
    "CRC-8": (lambda: processor(CRC8_AUTOSAR, 8), ("data", "valid", "start"), ONE),
    "PriorityEncoder": (lambda: coding.PriorityEncoder(70), ("i",), ()),
    "Decoder": (lambda: coding.Decoder(7), ("i", "n"), ()),
    "GrayEncoder": (lambda: coding.GrayEncoder(12), ("i",), ()),
    "GrayDecoder": (lambda: coding.GrayDecoder(12), ("i",), ()),
    "synchronizers": (Synchronizers, ("i", "reset", "pulse"), TWO),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_every_signal_is_the_same(name):
    make, inputs, domains = DESIGNS[name]
    found = []
    for kind in BOTH:
        design = make()
        often = [(Value.cast(getattr(design, i)), 0.15 if i == "reset" else 0.6) for i in inputs]
        found.append(everything(kind, design, often, 60, domains))
    assert unlike(*found) is None
