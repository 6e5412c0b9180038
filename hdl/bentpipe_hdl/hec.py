"""Header error control: CRC-8 with coset, single-bit correction (I.432.1 clause 4.3.2)."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["COSET", "POLYNOMIAL", "HecCorrector", "hec"]

POLYNOMIAL = 0x07
"""x^8 + x^2 + x + 1."""

COSET = 0x55
"""Added to the remainder before transmission."""


def remainder(bits, width):
    """CRC-8 of the integer ``bits`` of ``width`` bits, MSB first, starting from 0 (in Python, for tables)."""
    crc = 0
    for i in reversed(range(width)):
        top = (crc >> 7) ^ (bits >> i & 1)
        crc = ((crc << 1) & 0xFF) ^ (POLYNOMIAL if top else 0)
    return crc


def hec(header):
    """The HEC octet of a 32-bit header, as parities: the code is linear, each header bit adds its own remainder."""
    columns = [remainder(1 << i, 32) for i in range(32)]
    masks = [sum(1 << i for i in range(32) if columns[i] >> k & 1) for k in range(8)]
    return Cat((header & mask).xor() for mask in masks) ^ COSET


SYNDROMES = [1 << i for i in range(8)] + [remainder(1 << i, 32) for i in range(32)]
"""Syndrome of an error in bit ``i`` of the 40-bit header with HEC: all different, none zero."""


class HecCorrector(wiring.Component):
    """Checks one received header of 40 bits against its HEC and corrects a single-bit error.

    Purely combinational. Which of the two verdicts counts depends on the mode of the receiver (correction or
    detection, I.432.1 figure 4), which is its user's state.

    Members
    -------
    header : In(40)
        GFC in bits 39:36 down to the HEC in bits 7:0.
    good : Out(1)
        The syndrome is zero.
    correctable : Out(1)
        The syndrome is that of one bit error.
    corrected : Out(40)
        ``header`` with that bit inverted; ``header`` itself where not ``correctable``.
    """

    header: In(40)
    good: Out(1)
    correctable: Out(1)
    corrected: Out(40)

    def elaborate(self, platform):
        m = Module()
        syndrome = Signal(8)
        flip = Signal(40)
        m.d.comb += [
            syndrome.eq(hec(self.header[8:]) ^ self.header[:8]),
            flip.eq(Cat(syndrome == s for s in SYNDROMES)),
            self.good.eq(syndrome == 0),
            self.correctable.eq(flip.any()),
            self.corrected.eq(self.header ^ flip),
        ]
        return m
