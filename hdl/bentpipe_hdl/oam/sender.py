"""The payloads of OAM cells of fault management that a node sends (I.610 clause 10), on both datapaths."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import In, Out

from ..cell import WIDE, WORDS_A_CELL, CellSignature
from ..crc10 import CRC10_BITS, crc10_cell, crc10_word
from ..crc10_octets import crc10
from ..tick_schedule import TickSchedule
from .cells import AIS, CONTINUITY_CHECK, FAULT_MANAGEMENT, LOOPBACK, PAYLOAD_OCTETS, RDI, UNUSED
from .receiver import LOCATION_BITS, TAG_BITS

__all__ = ["PLACES", "Kind", "OamSender"]

PLACES = 8
"""For loopback cells that are to go back; one of them is for the payload that is coming in."""

WORDS = WORDS_A_CELL - 1


class Kind(Enum, shape=3):
    """The kind of an OAM cell."""

    AIS = 0
    RDI = 1
    CONTINUITY_CHECK = 2
    REQUEST = 3
    RETURN = 4


_FUNCTION = {
    Kind.AIS: AIS, Kind.RDI: RDI, Kind.CONTINUITY_CHECK: CONTINUITY_CHECK, Kind.REQUEST: LOOPBACK,
}  # fmt: skip

_CONTENT_BITS = 304
"""Bits from the beginning of a payload on that may be others than in another cell."""

_FILL = int.from_bytes(bytes([UNUSED] * (PAYLOAD_OCTETS - 2)), "little")


def _looped():
    """Return the bits that change in a payload with a correct CRC when its loopback indication goes from 1 to 0."""
    octets = bytes([0, 1]) + bytes(PAYLOAD_OCTETS - 2)
    return int.from_bytes(octets[:46] + crc10(octets).to_bytes(2, "big"), "little")


class OamSender(wiring.Component):
    """The sender of OAM cells: it keeps payloads that will be sent back, and makes others.

    An AIS cell has this node's ID as the defect's location. An RDI cell tells neither type nor location. A request is a
    loopback cell to be looped, with this node's ID as its source. A cell that goes back is as it came, except for its
    loopback indication and its CRC.

    Parameters
    ----------
    slot : TickSchedule
    width, ports : int

    Members
    -------
    i : In(CellSignature)
        Narrow: cells start in clock 1.
    capture : In
        With the commit: the tick's payload is kept in place ``to``. (Narrow: every payload is, from clock 4 of its tick
        to clock 2 of the next.)
    to, source : In
        The place that a payload goes to; that from which one goes back.
    kind, location, target, tag : In
        What goes; this node's ID; of a request, where it is to be looped, and its tag. They stand until the last word
        was asked for.
    enable : In
        Wide: the payload is wanted.
    payload : Out
        Wide.
    place, word : In, Out
        Narrow: 0 but while words are asked for, then 1 to 11 in consecutive clocks; the word two clocks later.
    """

    def __init__(self, slot: TickSchedule, *, width: int, ports: int):
        self._slot = slot
        wide = width == WIDE
        super().__init__(
            {
                "i": In(CellSignature(width, ports)),
                "capture": In(1),
                "to": In(range(PLACES)),
                "source": In(range(PLACES)),
                "kind": In(Kind),
                "location": In(LOCATION_BITS),
                "target": In(LOCATION_BITS),
                "tag": In(TAG_BITS),
                **({"enable": In(1), "payload": Out(384)} if wide else {"place": In(range(WORDS)), "word": Out(32)}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.capture)
        (self._wide if slot.wide else self._narrow)(m, slot)
        return m

    def _made(self, m):
        """Return the first 46 octets of a cell made by the node."""
        content, tag = Signal(_CONTENT_BITS), self.tag
        m.d.comb += content.eq(Const(_FILL & (1 << _CONTENT_BITS) - 1, _CONTENT_BITS))
        with m.Switch(self.kind):
            for kind, function in _FUNCTION.items():
                with m.Case(kind):
                    m.d.comb += content[:8].eq(FAULT_MANAGEMENT << 4 | function)
        with m.If(self.kind == Kind.AIS):
            m.d.comb += content[16 : 16 + LOCATION_BITS].eq(self.location)
        with m.If(self.kind == Kind.REQUEST):
            m.d.comb += content[8:].eq(
                Cat(Const(1, 8), tag[24:], tag[16:24], tag[8:16], tag[:8], self.target, self.location)
            )
        return Cat(content, Const(_FILL >> _CONTENT_BITS, 368 - _CONTENT_BITS))

    def _wide(self, m, slot):
        store = slot.store("returns", 384, PLACES)
        store.write(self.to, self.i.payload, self.capture)
        with slot.gate_when(self.enable):
            with m.If(self.kind == Kind.RETURN):
                m.d.comb += self.payload.eq(store.read(self.source) ^ Const(_looped(), 384))
            with m.Else():
                made = self._made(m)
                crc = crc10_cell(Cat(made, Const(0, 16)))
                m.d.comb += self.payload.eq(Cat(made, crc[8:], Const(0, 6), crc[:8]))

    def _narrow(self, m, slot):
        store = slot.store("returns", 32, 16 * PLACES)

        # In: word k comes in clock 2 + k, and is written two clocks later
        words, index, left = [Signal(32, name=f"word_d{k}") for k in range(2)], Signal(4), Signal(4)
        starts = [Signal(name=f"soc_d{k}") for k in range(2)]
        for delayed, now in ((words, self.i.word), (starts, self.i.valid & self.i.soc)):
            m.d.sync += [delayed[0].eq(now), delayed[1].eq(delayed[0])]
        with m.If(starts[1]):
            m.d.sync += [left.eq(WORDS), index.eq(0)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), index.eq(index + 1)]
        store.write(Cat(index, self.to), words[1], left != 0)

        # Out: a word a clock, with the CRC of those before it
        place, back, made, crc = Signal(range(WORDS)), Signal(32), Signal(32), Signal(CRC10_BITS)
        mask = Array(Const(_looped() >> 32 * k & 0xFFFFFFFF, 32) for k in range(WORDS))[place]
        m.d.sync += [place.eq(self.place), back.eq(store.peek(Cat(self.place, self.source)) ^ mask)]
        whole = self._made(m)
        fill, end = Const(0x6A6A, 16), Signal(CRC10_BITS)
        now = Array([*(whole[32 * k : 32 * k + 32] for k in range(WORDS - 1)), fill])[place]
        m.d.comb += end.eq(crc10_word(crc, fill, 22))
        m.d.sync += [
            crc.eq(crc10_word(Mux(place == 0, 0, crc), now)),
            made.eq(Mux(place == WORDS - 1, Cat(fill, end[8:], Const(0, 6), end[:8]), now)),
        ]
        m.d.comb += self.word.eq(Mux(self.kind == Kind.RETURN, back, made))
