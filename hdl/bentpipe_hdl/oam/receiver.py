"""The decoder of OAM cells of fault management (I.610 clause 10), on both datapaths."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..cell import WORDS_A_CELL, CellSignature
from ..crc10 import CRC10_BITS, crc10_holds, crc10_word
from ..tick_schedule import TickSchedule
from .cells import FAULT_MANAGEMENT, LOOPBACK, NOT_LOOPED

__all__ = ["LOCATION_BITS", "TAG_BITS", "OamMessage", "OamReceiver"]

LOCATION_BITS = 128
"""A location or source ID: octet ``k`` in bits ``8k`` to ``8k+7``, as in a payload."""

TAG_BITS = 32

OamMessage = data.StructLayout(
    {
        "function": 4,
        "fault": 1,
        "indication": 1,
        "tag": TAG_BITS,
        "to_ends": 1,
        "to_all": 1,
        "to_node": 1,
        "from_node": 1,
    }
)
"""Contents of a payload: function type; whether the OAM type is fault management; of a loopback cell, indication and
tag, whether its location ID means end points (all ones), all points (all zeros) or this node, and whether its source ID
is this node's.
"""

_KNOWN = 8
"""Narrow: the clock from which the location ID is known, the sixth word of the payload."""


class OamReceiver(wiring.Component):
    """The receiver of OAM cells: it keeps the content of a captured cell for the tick after its arrival.

    Parameters
    ----------
    slot : TickSchedule
    width : int
    ports : int

    Members
    -------
    i : In(CellSignature)
        Narrow: cells start in clock 1 at the latest.
    location : In
        This node's ID; 16 octets of 6A hex: it has none, and nothing is for it or from it.
    decode : In
        Wide: the tick's cell may be captured.
    loopback_to_node : Out
        The tick's cell is a loopback cell to be looped, and its location ID is this node's. Narrow: from clock 8 on.
    capture : In
        With the commit: the tick's cell is kept.
    good, message : Out
        In the next tick: the CRC-10 of a captured cell holds; its content. Narrow: from clock 2 on, to the commit.
    """

    def __init__(self, slot: TickSchedule, *, width: int, ports: int):
        self._slot = slot
        super().__init__(
            {
                "i": In(CellSignature(width, ports)),
                "location": In(LOCATION_BITS),
                "decode": In(1),
                "loopback_to_node": Out(1),
                "capture": In(1),
                "good": Out(1),
                "message": Out(OamMessage),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.capture)
        self._has_location = has_location = Signal()
        m.d.comb += has_location.eq(self.location != int.from_bytes(NOT_LOOPED, "little"))
        (self._wide if slot.wide else self._narrow)(m, slot)
        return m

    def _wide(self, m, slot):
        payload, received = self.i.payload, Signal(OamMessage)
        at, source = payload[48:176], payload[176:304]
        with slot.gate_when(self.decode):
            m.d.comb += [
                received.function.eq(payload[:4]),
                received.fault.eq(payload[4:8] == FAULT_MANAGEMENT),
                received.indication.eq(payload[8]),
                received.tag.eq(Cat(payload[40:48], payload[32:40], payload[24:32], payload[16:24])),
                received.to_ends.eq(at.all()),
                received.to_all.eq(at == 0),
                received.to_node.eq((at == self.location) & self._has_location),
                received.from_node.eq((source == self.location) & self._has_location),
                self.loopback_to_node.eq(
                    received.fault & (received.function == LOOPBACK) & received.indication & received.to_node
                ),
            ]
        with m.If(self.capture):
            m.d.sync += [self.good.eq(crc10_holds(payload)), self.message.eq(received)]

    def _narrow(self, m, slot):
        """Receive an OAM cell in words of 32 bits.

        The last word arrives in clock 0 of the next tick at the latest, the first word of the next payload in clock 1.
        """
        word, left, crc, after = self.i.word, Signal(4), Signal(CRC10_BITS), Signal(CRC10_BITS)
        received, good, loopback, location = Signal(OamMessage), Signal(), Signal(), self.location
        m.d.comb += after.eq(crc10_word(crc, word))
        pieces = {  # of each word but the first: of the location ID, of the source ID, and what they are to be
            1: [("at", word[16:], location[:16])],
            **{k: [("at", word, location[32 * k - 48 : 32 * k - 16])] for k in range(2, 5)},
            5: [("at", word[:16], location[112:]), ("source", word[16:], location[:16])],
            **{k: [("source", word, location[32 * k - 176 : 32 * k - 144])] for k in range(6, 9)},
            9: [("source", word[:16], location[112:])],
        }
        with m.If(self.i.valid & self.i.soc):
            m.d.sync += [
                left.eq(WORDS_A_CELL - 1),
                crc.eq(0),
                loopback.eq(0),
                received.to_ends.eq(1),
                received.to_all.eq(1),
                received.to_node.eq(self._has_location),
                received.from_node.eq(self._has_location),
            ]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), crc.eq(after)]
            with m.If(left == 1):
                m.d.sync += good.eq(after == 0)
            with m.If(left == 12):
                m.d.sync += [
                    received.function.eq(word[:4]),
                    received.fault.eq(word[4:8] == FAULT_MANAGEMENT),
                    received.indication.eq(word[8]),
                    received.tag[16:].eq(Cat(word[24:32], word[16:24])),
                ]
            with m.If(left == 11):
                m.d.sync += received.tag[:16].eq(Cat(word[8:16], word[:8]))
            for k, parts in pieces.items():
                with m.If(left == 12 - k):
                    for of, piece, own_piece in parts:
                        if of == "at":
                            m.d.sync += [
                                received.to_ends.eq(received.to_ends & piece.all()),
                                received.to_all.eq(received.to_all & (piece == 0)),
                                received.to_node.eq(received.to_node & (piece == own_piece)),
                            ]
                        else:
                            m.d.sync += received.from_node.eq(received.from_node & (piece == own_piece))
            with m.If(left == 7):
                to_node = received.to_node & (word[:16] == location[112:])
                m.d.sync += loopback.eq(
                    received.fault & (received.function == LOOPBACK) & received.indication & to_node
                )
        m.d.comb += self.loopback_to_node.eq(loopback)
        with m.If(slot.clock(1)):
            m.d.sync += [self.good.eq(good), self.message.eq(received)]
        slot.clocks.holds(loopback, _KNOWN)
        slot.clocks.holds(self.good, 2)
        slot.clocks.holds(self.message, 2)
