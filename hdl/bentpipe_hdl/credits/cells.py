"""The cells with which two ends of a line keep each other's counts: credit cells and probes."""

from amaranth.hdl import Array, Cat, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..cell import WORDS_A_CELL, CellSignature
from ..crc10 import CRC10_BITS, crc10_cell, crc10_holds, crc10_word

__all__ = ["COUNT_BITS", "CREDIT", "PROBE", "RM", "Message", "MessageReceiver", "payload_of", "words_of"]

RM = 0b110
"""PTI of a resource management cell (I.361 clause 2.2.4)."""

PROTOCOL = 0xA2
"""The RM protocol identifier. 1 is ABR's (I.371 clause 7.1); the cells of the AN2 switch are not published."""

CREDIT, PROBE = 0, 1
"""Message types: how many cells of the VC left the buffer of the line's far end, or were lost before it; how many were
sent on the VC, to be answered by a credit cell."""

COUNT_BITS = 32

Message = data.StructLayout({"count": COUNT_BITS, "probe": 1})

UNUSED = 0x6A
"""What is in octets that mean nothing (I.610 clause 10.1; TM 4.0, table 5-4)."""


def _octets(value):
    """Return a 32-bit value in the order of transmission: its most significant octet in the low bits."""
    return Cat(value[24:32], value[16:24], value[8:16], value[0:8])


def payload_of(message):
    """Return the payload of such a cell, 384 bits.

    Its parts are: protocol identifier, message type, two octets of 0, the count with its most significant octet first,
    38 octets of 6A hex, six bits of 0, and the CRC-10.
    """
    covered = Cat(
        Const(PROTOCOL, 8),
        message.probe,
        Const(0, 23),
        _octets(message.count),
        Const(_filled(38), 8 * 38),
        Const(0, 16),
    )
    crc = crc10_cell(covered)
    return Cat(covered[:368], crc[8:], Const(0, 6), crc[:8])


def _filled(octets):
    return int.from_bytes(bytes([UNUSED]) * octets, "little")


def words_of(m, message):
    """Return the same as an array of twelve words; the last is a clock later than the message."""
    payload = payload_of(message)
    last = Signal(32, name="message_last_word")
    m.d.sync += last.eq(payload[352:])
    return Array([*(payload[32 * k : 32 * k + 32] for k in range(11)), last])


class MessageReceiver(wiring.Component):
    """The receiver of credit cells: it keeps the content of an RM cell for the tick after that in which it arrived.

    Parameters
    ----------
    slot : TickSchedule
    width : int
    ports : int

    Members
    -------
    i : In(CellSignature)
    capture : In
        With the commit: the tick's cell is such a cell for this node.
    valid, good, message : Out
        In the next tick: a cell was captured; its CRC-10 holds and it is of this protocol; its content. Narrow:
        ``valid`` from clock 0 on, the others from clock 2 on, to the commit.
    """

    def __init__(self, slot, *, width, ports):
        self._slot = slot
        super().__init__(
            {
                "i": In(CellSignature(width, ports)),
                "capture": In(1),
                "valid": Out(1),
                "good": Out(1),
                "message": Out(Message),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.capture)
        with m.If(slot.commit):
            m.d.sync += self.valid.eq(self.capture)
        (self._wide if slot.wide else self._narrow)(m, slot)
        return m

    def _wide(self, m, slot):
        payload = self.i.payload
        with m.If(self.capture):
            m.d.sync += [
                self.good.eq(crc10_holds(payload) & _ours(payload[:32])),
                self.message.probe.eq(payload[8]),
                self.message.count.eq(_octets(payload[32:64])),
            ]

    def _narrow(self, m, slot):
        """Receive a message in words of 32 bits.

        The last word arrives in clock 0 of the next tick at the latest, the second word of the next cell in clock 1.
        """
        left, crc = Signal(4), Signal(CRC10_BITS)
        ours, good, message = Signal(), Signal(), Signal(Message)
        after, word = Signal(CRC10_BITS), self.i.word
        m.d.comb += after.eq(crc10_word(crc, word))
        with m.If(self.i.valid & self.i.soc):
            m.d.sync += [left.eq(WORDS_A_CELL - 1), crc.eq(0)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), crc.eq(after)]
            with m.If(left == 12):
                m.d.sync += [ours.eq(_ours(word)), message.probe.eq(word[8])]
            with m.If(left == 11):
                m.d.sync += message.count.eq(_octets(word))
            with m.If(left == 1):
                m.d.sync += good.eq(ours & (after == 0))
        with m.If(slot.clock(1)):
            m.d.sync += [self.good.eq(good), self.message.eq(message)]
        slot.clocks.holds(self.good, 2)
        slot.clocks.holds(self.message, 2)


def _ours(word):
    """Return whether a payload with this begin belongs to this protocol."""
    return Cat(word[:8], word[9:]) == PROTOCOL
