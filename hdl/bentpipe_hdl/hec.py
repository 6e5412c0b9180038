"""Header error control: CRC-8 with coset, and the receiver's modes (I.432.1 clause 4.3.2)."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["COSET", "POLYNOMIAL", "SYNDROMES", "UNCORRECTABLE", "HecReceiver", "error_syndrome", "hec", "remainder"]

POLYNOMIAL = 0x07
"""x^8 + x^2 + x + 1."""

COSET = 0x55
"""Added to the remainder before transmission."""


def remainder(bits, width):
    """Return the CRC-8 of the integer ``bits`` of ``width`` bits, MSB first, starting from 0 (in Python, for
    tables)."""
    crc = 0
    for i in reversed(range(width)):
        top = (crc >> 7) ^ (bits >> i & 1)
        crc = ((crc << 1) & 0xFF) ^ (POLYNOMIAL if top else 0)
    return crc


def hec(header):
    """Return the HEC octet of a 32-bit header as parities: the code is linear, so each header bit adds its own
    remainder."""
    columns = [remainder(1 << i, 32) for i in range(32)]
    masks = [sum(1 << i for i in range(32) if columns[i] >> k & 1) for k in range(8)]
    return Cat((header & mask).xor() for mask in masks) ^ COSET


SYNDROMES = [1 << i for i in range(8)] + [remainder(1 << i, 32) for i in range(32)]
"""Syndrome of an error in bit ``i`` of the 40-bit header with HEC: all different, none zero."""


UNCORRECTABLE = min(set(range(1, 256)) - set(SYNDROMES))
"""A syndrome of more than one error."""


def error_syndrome(error):
    """Return the syndrome of an error in a header of 40 bits, bit 0 the last one of the HEC: the code is linear."""
    return hec(error[8:]) ^ COSET ^ error[:8]


class HecReceiver(wiring.Component):
    """The receiver's two modes (I.432.1 figure 4): in correction mode a header with one bit error is corrected, in
    detection mode every header with an error is discarded. An error leads to detection mode, a good header back.

    The verdicts are combinational and belong to this clock's header.

    Members
    -------
    check : In(1), syndrome : In(8)
        A header, and its syndrome.
    start : In(1)
        To correction mode.
    accept, correct, discard : Out(1)
        The cell counts; it does, after correction; it is dropped.
    flip : Out(40)
        With ``correct``: the bit to invert (bit 0: last bit of the HEC).
    """

    check: In(1)
    syndrome: In(8)
    start: In(1)
    accept: Out(1)
    correct: Out(1)
    discard: Out(1)
    flip: Out(40)

    def __init__(self):
        self.detection = Signal()
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        good, single = Signal(), Signal()
        m.d.comb += good.eq(self.syndrome == 0)
        with m.If(self.check):
            m.d.comb += self.accept.eq(good)
            m.d.sync += self.detection.eq(~good)
            with m.If(~good):
                m.d.comb += [
                    self.flip.eq(Cat(self.syndrome == s for s in SYNDROMES)),
                    self.correct.eq(single & ~self.detection),
                    self.accept.eq(self.correct),
                    self.discard.eq(~self.correct),
                ]
                with m.Switch(self.syndrome[4:]):
                    for high in range(16):
                        lows = sum(1 << (s & 15) for s in SYNDROMES if s >> 4 == high)
                        with m.Case(high):
                            m.d.comb += single.eq(Const(lows, 16).bit_select(self.syndrome[:4], 1))
        with m.If(self.start):
            m.d.sync += self.detection.eq(0)
        return m
