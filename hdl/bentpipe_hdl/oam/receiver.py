"""The decoder of OAM cells of fault management (I.610 clause 10), on both datapaths."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..cell import WORDS_A_CELL, CellSignature
from ..crc10 import CRC10_BITS, crc10_holds, crc10_word
from ..tick_schedule import TickSchedule
from .cells import FAULT_MANAGEMENT, LOOPBACK, NOT_LOOPED

__all__ = ["LOCATION_BITS", "TAG_BITS", "OamReceiver", "Said"]

LOCATION_BITS = 128
"""A location or source ID: octet ``k`` in bits ``8k`` to ``8k+7``, as in a payload."""

TAG_BITS = 32

Said = data.StructLayout(
    {"function": 4, "fault": 1, "indication": 1, "tag": TAG_BITS, "ends": 1, "all": 1, "here": 1, "mine": 1}
)
"""Contents of a payload: function type; whether the OAM type is fault management; of a loopback cell, indication and
tag, whether its location ID means end points (all ones), all points (all zeros) or this node, and whether its source ID
is this node's.
"""

_KNOWN = 8
"""Narrow: the clock from which the location ID is known, the sixth word of the payload."""


class OamReceiver(wiring.Component):
    """The receiver of OAM cells: it keeps the content of a cell that is ``taken`` for the tick after its arrival.

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
    looks : In
        Wide: the tick's cell may be taken.
    asks_here : Out
        The tick's cell is a loopback cell to be looped, its location ID is this node's. Narrow: from clock 8 on.
    takes : In
        With the commit: the tick's cell is kept.
    good, said : Out
        In the next tick: of a cell that was taken, its CRC-10 holds; what it says. Narrow: from clock 2 on, to the
        commit.
    """

    def __init__(self, slot: TickSchedule, *, width: int, ports: int):
        self._slot = slot
        super().__init__(
            {
                "i": In(CellSignature(width, ports)),
                "location": In(LOCATION_BITS),
                "looks": In(1),
                "asks_here": Out(1),
                "takes": In(1),
                "good": Out(1),
                "said": Out(Said),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.takes)
        self._named = named = Signal()
        m.d.comb += named.eq(self.location != int.from_bytes(NOT_LOOPED, "little"))
        (self._wide if slot.wide else self._narrow)(m, slot)
        return m

    def _wide(self, m, slot):
        payload, said = self.i.payload, Signal(Said)
        at, source = payload[48:176], payload[176:304]
        with slot.gate_when(self.looks):
            m.d.comb += [
                said.function.eq(payload[:4]),
                said.fault.eq(payload[4:8] == FAULT_MANAGEMENT),
                said.indication.eq(payload[8]),
                said.tag.eq(Cat(payload[40:48], payload[32:40], payload[24:32], payload[16:24])),
                said.ends.eq(at.all()),
                said.all.eq(at == 0),
                said.here.eq((at == self.location) & self._named),
                said.mine.eq((source == self.location) & self._named),
                self.asks_here.eq(said.fault & (said.function == LOOPBACK) & said.indication & said.here),
            ]
        with m.If(self.takes):
            m.d.sync += [self.good.eq(crc10_holds(payload)), self.said.eq(said)]

    def _narrow(self, m, slot):
        """Receive an OAM cell in words of 32 bits.

        The last word arrives in clock 0 of the next tick at the latest, the first word of the next payload in clock 1.
        """
        word, left, crc, after = self.i.word, Signal(4), Signal(CRC10_BITS), Signal(CRC10_BITS)
        said, good, asks, location = Signal(Said), Signal(), Signal(), self.location
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
                asks.eq(0),
                said.ends.eq(1),
                said.all.eq(1),
                said.here.eq(self._named),
                said.mine.eq(self._named),
            ]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), crc.eq(after)]
            with m.If(left == 1):
                m.d.sync += good.eq(after == 0)
            with m.If(left == 12):
                m.d.sync += [
                    said.function.eq(word[:4]),
                    said.fault.eq(word[4:8] == FAULT_MANAGEMENT),
                    said.indication.eq(word[8]),
                    said.tag[16:].eq(Cat(word[24:32], word[16:24])),
                ]
            with m.If(left == 11):
                m.d.sync += said.tag[:16].eq(Cat(word[8:16], word[:8]))
            for k, parts in pieces.items():
                with m.If(left == 12 - k):
                    for of, piece, mine in parts:
                        if of == "at":
                            m.d.sync += [
                                said.ends.eq(said.ends & piece.all()),
                                said.all.eq(said.all & (piece == 0)),
                                said.here.eq(said.here & (piece == mine)),
                            ]
                        else:
                            m.d.sync += said.mine.eq(said.mine & (piece == mine))
            with m.If(left == 7):
                here = said.here & (word[:16] == location[112:])
                m.d.sync += asks.eq(said.fault & (said.function == LOOPBACK) & said.indication & here)
        m.d.comb += self.asks_here.eq(asks)
        with m.If(slot.clock(1)):
            m.d.sync += [self.good.eq(good), self.said.eq(said)]
        slot.clocks.holds(asks, _KNOWN)
        slot.clocks.holds(self.good, 2)
        slot.clocks.holds(self.said, 2)
