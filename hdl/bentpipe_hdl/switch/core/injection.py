"""Injection of cells made inside a switch, in ticks in which no cell arrives."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import NARROW, WIDE, WORDS_A_CELL, CellHeader, CellSignature
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["InjectionMux", "OfferSignature"]

WORDS = WORDS_A_CELL - 1

STARTS = 1
"""Narrow: the clock of a tick in which all cells start behind the inlet."""

TAKEN = 12
"""Narrow: the clock in which a part is told that its cell is taken, with the place of its last word."""


class OfferSignature(wiring.Signature):
    """A cell that a part of a switch offers as one that came for a VC. What it offers it holds until it is taken.

    Parameters
    ----------
    width : int
        416 or 32.
    vcs : int

    Members
    -------
    there : Out
        A cell is offered. Its clocks: changed with a tick's commit or after ``taken``; looked at in the next tick.
    vc : Out
        Whose it is, instead of a look-up.
    header : Out
        Of it CLP and PTI count, and the VCI where the switch keeps it.
    payload : Out
        At 416 bits: octet ``k`` in bits ``8k`` to ``8k+7``.
    place : In, word : Out
        At 32 bits: of which of the twelve words of the payload ``word`` is to be, two clocks later.
    inside : In
        The tick's cell is the one that is offered here. Narrow: from clock 2 to the end of the tick, whatever is
        offered meanwhile.
    taken : In
        For one clock, the tick's (narrow: clock ``TAKEN``): from the next tick on another cell may be offered.
    """

    def __init__(self, width, vcs):
        payload = {"payload": Out(384)} if width == WIDE else {"place": In(range(WORDS)), "word": Out(NARROW)}
        answers = {"inside": In(1), "taken": In(1)}
        super().__init__({"there": Out(1), "vc": Out(range(vcs)), "header": Out(CellHeader), **payload, **answers})


class InjectionMux(wiring.Component):
    """The injection multiplexer: it puts cells made in the switch between arriving ones.

    A cell from outside comes in its tick, whatever is offered. In a tick without one the first offer that there is is
    taken: the second waits until the first has none. On the narrow datapath cells start in clock 1: one that comes in
    clock 0 is a clock later behind the inlet, so that no two of them overlap.

    Parameters
    ----------
    slot : TickSchedule
    width, ports, vcs : int
    offers : int
        Parts that offer cells.

    Members
    -------
    i : In(CellSignature), o : Out(CellSignature)
        ``o.port`` is 0 and ``o.hec_error`` low with a cell of the switch's own.
    offers : In(OfferSignature) each
    hold : In
        None is taken.
    inside, vc : Out
        The tick's cell is one of its own, and its VC; narrow: from clock 2 on.
    waits : Out
        Some cell is offered.
    injected : Out
        Cells taken, modulo 2**32.
    """

    def __init__(self, slot: TickSchedule, *, width: int, ports: int, vcs: int, offers: int):
        self._slot, self._ports = slot, ports
        super().__init__(
            {
                "i": In(CellSignature(width, ports)),
                "o": Out(CellSignature(width, ports)),
                "offers": In(OfferSignature(width, vcs)).array(offers),
                "hold": In(1),
                "inside": Out(1),
                "vc": Out(range(vcs)),
                "waits": Out(1),
                "injected": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        there = Signal(len(self.offers))
        m.d.comb += [there.eq(Cat(offer.there for offer in self.offers)), self.waits.eq(there.any())]
        (self._wide if slot.wide else self._narrow)(m, slot, there)
        with m.If(reduce(or_, (offer.taken for offer in self.offers))):
            m.d.sync += self.injected.eq(self.injected + 1)
        return m

    def _first(self, m, there, *pairs):
        """Assign what the first offer that there is has."""
        for k, offer in enumerate(self.offers):
            with m.Elif(there[k]) if k else m.If(there[k]):
                m.d.comb += [target.eq(getattr(offer, name)) for target, name in pairs]

    def _wide(self, m, slot, there):
        for name in ("valid", "port", "hec_error", "header", "payload"):
            m.d.comb += getattr(self.o, name).eq(getattr(self.i, name))
        with m.If(slot.commit), m.If(~self.i.valid & ~self.hold & self.waits):
            m.d.comb += [self.inside.eq(1), self.o.valid.eq(1), self.o.port.eq(0), self.o.hec_error.eq(0)]
            for k, offer in enumerate(self.offers):
                with m.Elif(there[k]) if k else m.If(there[k]):
                    m.d.comb += [
                        offer.inside.eq(1),
                        offer.taken.eq(1),
                        self.vc.eq(offer.vc),
                        self.o.header.eq(offer.header),
                        self.o.payload.eq(offer.payload),
                    ]

    def _narrow(self, m, slot, there):
        # Cells of clock 0 are delayed by a clock: `late`, from clock 1 to clock 0 of the next tick
        came, late, starts = Signal(), Signal(), Signal()
        m.d.comb += starts.eq(self.i.valid & self.i.soc)
        with m.If(slot.clock(0)):
            m.d.sync += late.eq(starts)
        for name in ("valid", "soc", "port", "hec_error", "word"):
            before, now = Signal.like(getattr(self.i, name), name=f"before_{name}"), getattr(self.i, name)
            m.d.sync += before.eq(now)
            m.d.comb += getattr(self.o, name).eq(Mux(late, before, now))
        with m.If(slot.clock(0)), m.If(~late & starts):
            m.d.comb += [self.o.valid.eq(0), self.o.soc.eq(0)]

        # One of ours: its header in clock 1, and then its words
        header, vc = Signal(CellHeader), Signal.like(self.vc)
        takes, chosen, left = Signal(), Signal(len(self.offers)), Signal(range(WORDS + 1))
        place, wanted = Signal(range(WORDS)), Signal(range(WORDS))  # of the word of the next clock; of the one after it
        self._first(m, there, (header, "header"), (vc, "vc"))
        m.d.comb += [
            came.eq(late | starts),
            takes.eq(slot.clock(STARTS) & ~came & ~self.hold & self.waits),
        ]
        with m.If(slot.clock(STARTS)):
            m.d.sync += self.inside.eq(takes)
        with m.If(takes):
            m.d.comb += [
                self.o.valid.eq(1),
                self.o.soc.eq(1),
                self.o.port.eq(0),
                self.o.hec_error.eq(0),
                self.o.word.eq(header),
            ]
            m.d.sync += [self.vc.eq(vc), chosen.eq(there & -there), left.eq(WORDS)]
            m.d.comb += wanted.eq(1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
            m.d.comb += [self.o.valid.eq(1), self.o.soc.eq(0), wanted.eq(Mux(left <= 2, 0, place + 1))]
        m.d.sync += place.eq(wanted)
        for k, offer in enumerate(self.offers):
            with m.If(chosen[k] & (left != 0)):
                m.d.comb += self.o.word.eq(offer.word)
            m.d.comb += [
                offer.place.eq(wanted),
                offer.inside.eq(self.inside & chosen[k]),
                offer.taken.eq(slot.clock(TAKEN) & offer.inside),
            ]
        slot.clocks.holds(self.inside, STARTS + 1)
        slot.clocks.holds(self.vc, STARTS + 1)
