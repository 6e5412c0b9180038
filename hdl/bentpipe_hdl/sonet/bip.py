"""Bit interleaved parity (GR-253 clause 3.3)."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sonet.scrambler import frame_key_parity

__all__ = ["FrameParity", "fold", "ones", "total"]


def fold(value, count=1):
    """Return the BIP-8 (``count`` = 1) or BIP-8N of a value: its bytes XORed together, every ``count``-th with each
    other."""
    step = 8 * count
    return reduce(xor, [value[i : i + step] for i in range(0, len(value), step)], Const(0, step))


def total(terms):
    """Return the sum of some values, as a balanced tree of adders."""
    terms = list(terms)
    while len(terms) > 1:
        terms = [terms[i] + terms[i + 1] if i + 1 < len(terms) else terms[i] for i in range(0, len(terms), 2)]
    return terms[0]


def ones(value):
    """Return the number of ones."""
    return total(value[i] for i in range(len(value)))


class FrameParity(wiring.Component):
    """B1 and B2 of a frame, from its words before the scrambler: B1 adds the key's own parity.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    word : In(8 * width)
        First byte in the low bits.
    start : In(1)
        The word is a frame's first; the results are those of the frame that ended.
    toh : In(1), section : In(1)
        The word is transport overhead; of rows 1 to 3.
    b1 : Out(8), b2 : Out(8 * n)
        From the clock after ``start`` for a frame's time; 0 in the first frame after reset.
    """

    def __init__(self, geometry):
        self._geometry = geometry
        super().__init__(
            {
                "word": In(8 * geometry.width),
                "start": In(1),
                "toh": In(1),
                "section": In(1),
                "b1": Out(8),
                "b2": Out(8 * geometry.n),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g = self._geometry
        key = frame_key_parity(g)
        began = Signal()
        if g.wide:
            # One wide sum for all that is not transport overhead, folded once a frame.
            body = Signal(8 * g.width)
            all_toh = Signal(8)
            line_toh = Signal(8 * g.n)
            with m.If(self.toh):  # a frame starts with it
                with m.If(self.start):
                    m.d.sync += [body.eq(0), all_toh.eq(fold(self.word)), line_toh.eq(0), began.eq(1)]
                    with m.If(began):
                        m.d.sync += [
                            self.b1.eq(fold(body) ^ all_toh ^ key),
                            self.b2.eq(fold(body, g.n) ^ line_toh),
                        ]
                with m.Else():
                    m.d.sync += all_toh.eq(all_toh ^ fold(self.word))
                    with m.If(~self.section):
                        m.d.sync += line_toh.eq(line_toh ^ fold(self.word, g.n))
            with m.Else():
                m.d.sync += body.eq(body ^ self.word)
            return m
        total = Signal(8 * g.width)
        line = Signal(8 * g.n)  # rotates by a word, so that its low end belongs to this word
        rest = 8 * g.width
        with m.If(self.start):
            m.d.sync += [total.eq(self.word), line.eq(0), began.eq(1)]
            with m.If(began):
                m.d.sync += [self.b1.eq(fold(total) ^ key), self.b2.eq(line)]
        with m.Else():
            m.d.sync += total.eq(total ^ self.word)
            with m.If(~(self.toh & self.section)):
                m.d.sync += line.eq(Cat(line[rest:], line[:rest] ^ self.word))
        return m
