"""Cell delineation (I.432.1 clause 4.3): where cells begin in an SPE, by their headers' HEC."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.hec import COSET, SYNDROMES, HecReceiver

__all__ = ["ALPHA", "CELL", "DELTA", "Delineation", "State", "octets_reversed", "syndrome_of"]

ALPHA = 7
"""Consecutive bad headers that lead from SYNC to HUNT."""

DELTA = 6
"""Consecutive good headers that lead from PRESYNC to SYNC."""

CELL = 53
"""Octets of a cell."""


def _syndrome_masks():
    """Return a mask for each bit of the syndrome: the bits that count in a 40-bit header, first byte in the low
    bits."""
    masks = []
    for k in range(8):
        bits = [i for i in range(40) if SYNDROMES[i] >> k & 1]  # bit 0: last of the HEC
        masks.append(sum(1 << (8 * (4 - i // 8) + i % 8) for i in bits))
    return masks


_MASKS = _syndrome_masks()


def syndrome_of(header):
    """Return the syndrome of a header of 40 bits, first byte in the low bits."""
    return Cat((header & mask).xor() for mask in _MASKS) ^ COSET


def octets_reversed(value):
    """Return 32 bits with their first octet in the low bits instead of the high ones, or back."""
    return Cat(value[24:32], value[16:24], value[8:16], value[0:8])


class State(enum.Enum, shape=unsigned(2)):
    """States of cell delineation (I.432.1 figure 5)."""

    HUNT = 0
    PRESYNC = 1
    SYNC = 2


class Delineation(wiring.Component):
    """The two automata of the receiver: cell delineation, and the modes of the HEC (:class:`~..hec.HecReceiver`).

    One header a clock. ``accept`` and the other verdicts are combinational and belong to this clock's header.

    Members
    -------
    found : In(1)
        A good header was found in HUNT.
    check : In(1), syndrome : In(8)
        A header at a cell boundary, and its syndrome.
    lost : In(1)
        Go to HUNT: there is no payload.
    state : Out(State)
    accept, correct, discard : Out(1)
        In SYNC: the cell counts; it does, after correction; it is dropped.
    flip : Out(40)
        With ``correct``: the header bit to invert (bit 0: last bit of the HEC).
    """

    found: In(1)
    check: In(1)
    syndrome: In(8)
    lost: In(1)
    state: Out(State)
    accept: Out(1)
    correct: Out(1)
    discard: Out(1)
    flip: Out(40)

    def __init__(self):
        self.count = Signal(range(max(ALPHA, DELTA)))
        self.receiver = HecReceiver()
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        count = self.count
        m.submodules.receiver = receiver = self.receiver
        good = Signal()
        m.d.comb += [
            good.eq(self.syndrome == 0),
            receiver.syndrome.eq(self.syndrome),
            self.accept.eq(receiver.accept),
            self.correct.eq(receiver.correct),
            self.discard.eq(receiver.discard),
            self.flip.eq(receiver.flip),
        ]
        with m.If(self.found), m.If(self.state == State.HUNT):
            m.d.sync += [self.state.eq(State.PRESYNC), count.eq(0)]
        with m.If(self.check):
            with m.Switch(self.state):
                with m.Case(State.PRESYNC):
                    m.d.sync += count.eq(count + 1)
                    with m.If(~good):
                        m.d.sync += self.state.eq(State.HUNT)
                    with m.Elif(count == DELTA - 1):
                        m.d.comb += receiver.start.eq(1)
                        m.d.sync += [self.state.eq(State.SYNC), count.eq(0)]
                with m.Case(State.SYNC):
                    m.d.comb += receiver.check.eq(1)
                    m.d.sync += count.eq(0)
                    with m.If(~good):
                        m.d.sync += count.eq(count + 1)
                        with m.If(count == ALPHA - 1):
                            m.d.sync += [self.state.eq(State.HUNT), count.eq(0)]
        with m.If(self.lost):
            m.d.sync += [self.state.eq(State.HUNT), count.eq(0)]
        return m
