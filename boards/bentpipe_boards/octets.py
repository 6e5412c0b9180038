"""Frames as octets: COBS and CRC-32, both ways (:mod:`bentpipe_sim.board.protocol`)."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["FrameReceiver", "FrameSender", "crc32_octet"]

_POLYNOMIAL = 0xEDB88320
"""CRC-32 with the first bit of an octet its lowest (IEEE 802.3)."""
_RESIDUE = 0xDEBB20E3
"""The register after a frame and its CRC."""


def _advanced(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


def crc32_octet(crc, octet):
    """Return the register one octet later, as flat XORs."""
    columns = [_advanced(1 << k) for k in range(8)]
    mixed = [crc[k] ^ octet[k] for k in range(8)]
    shifted = Cat(crc[8:], Const(0, 8))
    return Cat(reduce(xor, [mixed[k] for k in range(8) if columns[k] >> bit & 1], shifted[bit]) for bit in range(32))


class FrameReceiver(wiring.Component):
    """Octets to the words of frames, a word in the clock after its last octet.

    Members
    -------
    rx, rx_valid : In
    word, word_valid, index : Out
        A word of a frame that may turn out to be damaged, and its place.
    good, bad : Out(1)
        A frame, or what was none, has ended. With ``good``: its ``head``, and its ``length`` in words with the CRC.
    """

    def __init__(self, *, words):
        self.words = words
        super().__init__(
            {
                "rx": In(8),
                "rx_valid": In(1),
                "word": Out(32),
                "word_valid": Out(1),
                "index": Out(range(words)),
                "good": Out(1),
                "bad": Out(1),
                "head": Out(32),
                "length": Out(range(words + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        left, follows = Signal(8), Signal()  # octets of the block; a 0 comes before the next
        begun, spoilt = Signal(), Signal()
        octet, valid = Signal(8), Signal()
        crc, phase, shift = Signal(32, init=0xFFFFFFFF), Signal(2), Signal(24)
        length = self.length
        m.d.comb += octet.eq(Mux(left == 0, 0, self.rx))
        m.d.sync += [self.good.eq(0), self.bad.eq(0), self.word_valid.eq(0)]
        with m.If(self.rx_valid):
            with m.If(self.rx == 0):
                whole = (left == 0) & ~spoilt & (phase == 0) & (length > 1) & (crc == _RESIDUE)
                m.d.sync += [self.good.eq(begun & whole), self.bad.eq(begun & ~whole), begun.eq(0)]
            with m.Elif(~begun):
                m.d.sync += [
                    begun.eq(1), left.eq(self.rx - 1), follows.eq(self.rx != 0xFF), spoilt.eq(0), phase.eq(0),
                    crc.eq(0xFFFFFFFF), length.eq(0),
                ]  # fmt: skip
            with m.Elif(left == 0):
                m.d.comb += valid.eq(follows)
                m.d.sync += [left.eq(self.rx - 1), follows.eq(self.rx != 0xFF)]
            with m.Else():
                m.d.comb += valid.eq(1)
                m.d.sync += left.eq(left - 1)
        with m.If(valid):
            m.d.sync += [crc.eq(crc32_octet(crc, octet)), phase.eq(phase + 1), shift.eq(Cat(shift[8:], octet))]
            with m.If(phase == 3):
                m.d.sync += [self.word.eq(Cat(shift, octet)), self.index.eq(length)]
                with m.If(length == self.words):
                    m.d.sync += spoilt.eq(1)
                with m.Else():
                    m.d.sync += [self.word_valid.eq(1), length.eq(length + 1)]
                    with m.If(length == 0):
                        m.d.sync += self.head.eq(Cat(shift, octet))
        return m


class FrameSender(wiring.Component):
    """A frame to octets.

    Members
    -------
    start : In(1)
        Send a frame: its ``head``; if it is a ``whole`` one, ``count`` words behind it.
    index, word : Out, In
        The word at a place, in the clock after.
    busy : Out(1)
    tx, tx_valid, tx_ready : Out, Out, In
    """

    def __init__(self, *, words):
        self.words = words
        super().__init__(
            {
                "start": In(1),
                "head": In(32),
                "whole": In(1),
                "count": In(range(words + 1)),
                "index": Out(range(words)),
                "word": In(32),
                "busy": Out(1),
                "tx": Out(8),
                "tx_valid": Out(1),
                "tx_ready": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.block = block = memory.Memory(shape=8, depth=256, init=[])
        put, get = block.write_port(), block.read_port(domain="sync")
        crc, shift, phase = Signal(32), Signal(32), Signal(2)
        count, place = Signal.like(self.count), Signal.like(self.count)
        ends = Signal()  # what is in `shift` is the CRC
        filled, gone = Signal(8), Signal(8)
        over, last = Signal(), Signal()  # the word ends with this block; the frame does
        octet = shift[:8]
        m.d.comb += [self.index.eq(place), put.addr.eq(filled), put.data.eq(octet), get.addr.eq(gone)]
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += [
                    crc.eq(0xFFFFFFFF), shift.eq(self.head), phase.eq(0), count.eq(Mux(self.whole, self.count, 0)),
                    place.eq(0), ends.eq(0), filled.eq(0), over.eq(0),
                ]  # fmt: skip
                with m.If(self.start):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [self.tx.eq(0), self.tx_valid.eq(1)]
                with m.If(self.tx_ready):
                    m.next = "FILL"
            with m.State("FILL"):
                m.d.sync += [gone.eq(0), phase.eq(phase + 1), shift.eq(shift >> 8)]
                with m.If(~ends):
                    m.d.sync += crc.eq(crc32_octet(crc, octet))
                with m.If(octet != 0):
                    m.d.comb += put.en.eq(1)
                    m.d.sync += filled.eq(filled + 1)
                with m.If(phase == 3):
                    m.next = "NEXT"
                with m.If((octet == 0) | (filled == 253)):
                    m.next = "CODE"
                    m.d.sync += over.eq(phase == 3)  # of the word
            with m.State("NEXT"):
                m.d.sync += [over.eq(0), gone.eq(0)]
                with m.If(ends):
                    m.d.sync += last.eq(1)
                    m.next = "CODE"
                with m.Elif(place == count):
                    m.d.sync += [ends.eq(1), shift.eq(~crc)]
                    m.next = "FILL"
                with m.Else():
                    m.next = "WORD"
            with m.State("WORD"):
                m.d.sync += [shift.eq(self.word), place.eq(place + 1)]
                m.next = "FILL"
            with m.State("CODE"):
                m.d.comb += [self.tx.eq(filled + 1), self.tx_valid.eq(1)]
                with m.If(self.tx_ready):
                    m.next = "LOOK"
            with m.State("LOOK"):  # the memory's port has the octet at `gone` in the next clock
                m.next = "GIVE"
                with m.If(gone == filled):
                    m.d.sync += filled.eq(0)
                    m.next = "FILL"
                    with m.If(last):
                        m.next = "END"
                    with m.Elif(over):
                        m.next = "NEXT"
            with m.State("GIVE"):
                m.d.comb += [self.tx.eq(get.data), self.tx_valid.eq(1)]
                with m.If(self.tx_ready):
                    m.d.sync += gone.eq(gone + 1)
                    m.next = "LOOK"
            with m.State("END"):
                m.d.sync += last.eq(0)
                m.d.comb += [self.tx.eq(0), self.tx_valid.eq(1)]
                with m.If(self.tx_ready):
                    m.next = "IDLE"
        return m
