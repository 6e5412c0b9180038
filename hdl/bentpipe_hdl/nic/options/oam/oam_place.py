"""OAM cells in the network interface: they go to the host as they are."""

from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import TIME_BITS, WIDE, WORDS_A_CELL, CellHeader, CellSignature
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["COUNTERS", "OamPlace", "is_f5", "place_members"]

COUNTERS = ("oam_taken", "oam_lost")
"""OAM cells that the host was given; those that found the place full."""


def is_f5(header):
    """Return whether a cell is one of an F5 flow, of a segment (PTI 4) or end to end (5); I.361 clause 2.2.4."""
    return header.pti[1:] == 0b10


def place_members(width, vcs):
    """Return the ports between :class:`OamPlace` and the host, seen from the place."""
    octets = {"payload": Out(384)} if width == WIDE else {"at": In(range(WORDS_A_CELL - 1)), "word": Out(32)}
    return {
        "full": Out(1),
        "vc": Out(range(vcs)),
        "pti": Out(3),
        "tick": Out(TIME_BITS),
        **octets,
        "take": In(1),
    }


class OamPlace(wiring.Component):
    """The place in which an OAM cell waits for the host. One that comes while it is full is lost, and counted.

    Parameters
    ----------
    slot : TickSchedule
    width, vcs : int

    Members
    -------
    now, i : In
        The present tick, and the cells as they come.
    takes, header, of : In
        The tick's cell is an OAM cell of a known VC; its header; that. Narrow: valid from clock 7 on, to the commit.
    full, vc, pti, tick, payload : Out
        A cell is there; its VC and PTI; the tick in which it came; at 416 bits its 48 octets.
    at : In(range(12)), word : Out(32)
        At 32 bits: one of the words of which they are, in the same clock.
    take : In
        The host has it: the place is free in the next clock, and for a cell that arrives in a tick that begins with
        this one.
    oam_taken, oam_lost : Out
        ``COUNTERS``. They wrap at 2**32.
    busy : Out
        A cell's words are under way to the place; low at 416 bits.
    """

    def __init__(self, slot: TickSchedule, *, width: int, vcs: int):
        self._slot = slot
        super().__init__(
            {
                "now": In(TIME_BITS),
                "i": In(CellSignature(width)),
                "takes": In(1),
                "header": In(CellHeader),
                "of": In(range(vcs)),
                **place_members(width, vcs),
                **{name: Out(32) for name in COUNTERS},
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        keeps, free = Signal(), Signal()
        with m.If(self.take):
            m.d.sync += self.full.eq(0)
        with m.If(slot.commit), m.If(self.takes):
            with m.If(free):
                m.d.comb += keeps.eq(1)
            with m.Else():
                m.d.sync += self.oam_lost.eq(self.oam_lost + 1)
        with m.If(keeps):
            m.d.sync += [
                self.oam_taken.eq(self.oam_taken + 1),
                self.vc.eq(self.of),
                self.pti.eq(self.header.pti),
                self.tick.eq(self.now),
            ]
        (self._wide if slot.wide else self._narrow)(m, slot, keeps, free)
        return m

    def _wide(self, m, slot, keeps, free):
        m.d.comb += free.eq(~self.full | self.take)
        with m.If(keeps):
            m.d.sync += [self.full.eq(1), self.payload.eq(self.i.payload)]

    def _narrow(self, m, slot, keeps, free):
        """Write words as they arrive, while the place is free.

        The VC of the cell is known before its last word.
        """
        i, count, coming = self.i, Signal(4), Signal()
        m.d.comb += free.eq(slot.hold(~coming & (~self.full | self.take), slot.clock(0), "place_free", since=1))
        m.submodules.words = words = memory.Memory(shape=32, depth=WORDS_A_CELL - 1, init=[])
        write, read = words.write_port(), words.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(WORDS_A_CELL - 1 - count),
            write.data.eq(i.word),
            read.addr.eq(self.at),
            self.word.eq(read.data),
            self.busy.eq(coming),
        ]
        with m.If(i.valid & i.soc):
            m.d.sync += count.eq(WORDS_A_CELL - 1)
        with m.Elif(i.valid & (count != 0)):
            m.d.sync += count.eq(count - 1)
            m.d.comb += write.en.eq(~self.full)
            with m.If((count == 1) & coming):
                m.d.sync += [coming.eq(0), self.full.eq(1)]
        with m.If(keeps):
            m.d.sync += coming.eq(1)
