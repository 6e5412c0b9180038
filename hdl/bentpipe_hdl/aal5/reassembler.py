"""AAL5 reassembly, a PDU a VC at a time, with every error told apart (I.363.5 clause 9)."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from ..cell import TIME_BITS, WIDE, CellHeader, CellSignature, TimeSignature
from ..generations import Generations
from ..sim_hints import branch_first
from .crc32 import INIT, RESIDUE, CrcTables, advance_cell, crc32_word
from .timer import TIMEOUT_BITS, ReassemblyTimer

__all__ = ["COUNTERS", "PduSignature", "Reassembler", "Verdict"]


class Verdict(enum.Enum, shape=3):
    """The result of the reassembly of a PDU."""

    OK = 0
    CRC = 1
    LENGTH = 2
    LOST_LAST = 3
    OVERLENGTH = 4
    ABORT = 5
    TIMEOUT = 6


COUNTERS = ("unknown", "hec", "oam", "over")
"""Cells that are dropped: of unknown VCs, with a bad HEC, OAM and RM cells, beyond the limit of their PDU."""


class PduSignature(wiring.Signature):
    """A received PDU, with the members that :class:`~..nic.nic.Nic` documents."""

    def __init__(self, width, vcs):
        octets = {"payload": Out(384)} if width == WIDE else {"word": Out(32)}
        super().__init__(
            {
                "valid": Out(1),
                "vc": Out(range(vcs)),
                "index": Out(11),
                **octets,
                "last": Out(1),
                "status": Out(Verdict),
                "length": Out(16),
                "uu": Out(8),
                "cpi": Out(8),
                "efci": Out(1),
            }
        )


class Reassembler(wiring.Component):
    """The AAL5 reassembler: it makes PDUs of cells.

    Parameters
    ----------
    slot : TickSchedule
        The node's.
    width : int
    vcs : int
    tables : CrcTables, optional
        The node's, at 416 bits; without, it has its own.

    Members
    -------
    time : In
    i : In
        The cells.
    arrives, header, bad, known, vc : In
        A cell is there to be decided on in this tick; its header; it has a bad HEC; it is of a known VC; that. Narrow:
        valid from clock 7 on, to the commit.
    o : Out
        To the host.
    limit_index, limit, limit_en : In
        Writes the table of the most cells of a VC's PDU, and sets the VC up.
    timeout : In
        Ticks after which a PDU is given up (:class:`~.timer.ReassemblyTimer`).
    unknown, hec, oam, over : Out
        Counters of cells (``COUNTERS``).
    cells_index : In, cells : Out; pdus_index : In, pdus : Out
        Cells taken of a VC, its PDUs by verdict (``vc<<3 | verdict``), for a reader at any time: in the same clock
        (wide), in the next (narrow).
    due : Out
        Due tick.
    busy : Out
        Words of a cell are under way; low at 416 bits.
    clearing, clear : In
        While ``clearing`` is high, entry ``clear`` of each table is cleared.
    """

    def __init__(self, slot, *, width, vcs, tables=None):
        self._slot, self._tables, self.width, self.vcs = slot, tables, width, vcs
        self.timer = ReassemblyTimer(slot, vcs=vcs)
        vc, verdicts = range(vcs), range(8 * vcs)
        super().__init__(
            {
                "time": In(TimeSignature()),
                "i": In(CellSignature(width)),
                "arrives": In(1),
                "header": In(CellHeader),
                "bad": In(1),
                "known": In(1),
                "vc": In(vc),
                "o": Out(PduSignature(width, vcs)),
                "limit_index": In(vc),
                "limit": In(11),
                "limit_en": In(1),
                "timeout": In(TIMEOUT_BITS),
                **{name: Out(32) for name in COUNTERS},
                "cells_index": In(vc),
                "cells": Out(32),
                "pdus_index": In(verdicts),
                "pdus": Out(32),
                "due": Out(TIME_BITS),
                "busy": Out(1),
                "clearing": In(1),
                "clear": In(verdicts),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        limits = slot.store("limits", 11, self.vcs, block=True)
        limits.write(self.limit_index, self.limit, self.limit_en)
        partial = data.StructLayout({"crc": 32, "cells": 11, "over": 1})
        partials = slot.store("partials", partial, self.vcs, block=True, whole=True)
        setups = Generations(slot, "rx", self.vcs, self.limit_index, self.limit_en)
        m.submodules.timer = timer = self.timer
        wiring.connect(m, wiring.flipped(self.time), timer.time)
        m.d.comb += [timer.timeout.eq(self.timeout), timer.arrives.eq(self.arrives), self.due.eq(timer.due)]

        # The decision: what the cell is, and the state of its VC
        vc = self.vc
        kept, state, limit, current = Signal(partial), Signal(partial), Signal(11), Signal()
        user, last, over, takes, ours = (Signal(name=n) for n in ("user", "last", "is_over", "takes", "ours"))
        number, is_current = setups.look(vc, at=7, to="rx")
        m.d.comb += [
            kept.eq(partials.read(vc, at=7, to="partial")),
            limit.eq(limits.read(vc, at=7, to="rx_limit")),
            current.eq(is_current),
            state.eq(kept),
            user.eq(~self.header.pti[2]),
            last.eq(self.header.pti[0]),
            over.eq(slot.pipe(state.over | (state.cells >= limit), "rx_over")),
        ]
        with m.If(~current):  # the VC has been set up since
            m.d.comb += [state.crc.eq(INIT), state.cells.eq(0), state.over.eq(0)]
        with m.If(slot.commit), m.If(self.arrives):
            with m.If(self.bad):
                m.d.sync += self.hec.eq(self.hec + 1)
            with m.Elif(~self.known):
                m.d.sync += self.unknown.eq(self.unknown + 1)
            with m.Elif(~user):
                m.d.sync += self.oam.eq(self.oam + 1)
            with m.Else():
                m.d.comb += ours.eq(1)
                with m.If(over):
                    m.d.sync += self.over.eq(self.over + 1)
                with m.Else():
                    m.d.comb += takes.eq(1)
        branch_first(takes, 1, seldom=0)
        branch_first(current, 3, seldom=0)
        counts = slot.store("counts", 32, self.vcs, block=True)
        counts.write(vc, counts.read(vc, at=7, to="received") + 1, takes, clear=(self.clearing, self.clear, 0))
        m.d.comb += self.cells.eq(counts.peek(self.cells_index))

        # The end of a cell: on the wide datapath in the same clock
        now = _Cell(
            vc=vc, crc=state.crc, cells=state.cells, begun=_is_open(state), open=_is_open(kept), last=last, over=over,
            current=current, number=number, tick=self.time.now, efci=self.header.pti[1],
        )  # fmt: skip
        datapath = self._wide if slot.wide else self._narrow
        finish, f, crc, trailer, spare, gone = datapath(m, slot, ours, takes, now, timer)

        length, whole, tight, verdict = Signal(16), Signal(), Signal(), Signal(Verdict)
        m.d.comb += [
            length.eq(_length(trailer)),
            tight.eq(spare < 8),  # without this cell the PDU has no room for its octets and the trailer
            whole.eq(crc == RESIDUE),
        ]
        with m.If(f.over):
            m.d.comb += verdict.eq(Verdict.OVERLENGTH)
        with m.Elif(whole & (length == 0)):
            m.d.comb += verdict.eq(Verdict.ABORT)
        with m.Elif(~tight & ~whole):
            m.d.comb += verdict.eq(Verdict.LOST_LAST)
        with m.Elif(~tight | (spare < -40)):
            m.d.comb += verdict.eq(Verdict.LENGTH)
        with m.Elif(~whole):
            m.d.comb += verdict.eq(Verdict.CRC)
        with m.Else():
            m.d.comb += verdict.eq(Verdict.OK)
        ends = Signal()
        with m.If(finish), m.If(f.last):
            m.d.comb += ends.eq(1)
        renews = Signal()
        with m.If(finish):
            m.d.comb += [
                timer.begins.eq(~f.last & ~f.begun),
                timer.opens.eq(~f.last & ~f.open),
                timer.closes.eq(f.last & f.open),
            ]
            with m.If(~f.current):
                m.d.comb += renews.eq(1)
        m.d.comb += [timer.vc.eq(f.vc), timer.tick.eq(f.tick)]
        new, fresh = Signal(partial), Signal(partial)
        m.d.comb += [fresh.crc.eq(INIT), new.eq(fresh)]
        with m.If(~f.last):
            m.d.comb += [new.crc.eq(crc), new.cells.eq(Mux(f.over, f.cells, f.cells + 1)), new.over.eq(f.over)]
        clear, visited = (self.clearing, self.clear, fresh), timer.visited
        partials.write(f.vc, new, finish, clear=clear, others=[(timer.gives_up, visited, fresh)])
        setups.renew(f.vc, f.number, renews)

        # A PDU that is given up: never in a clock in which a cell ends
        swept = Signal(partial)
        with slot.gate_when(timer.visits):
            _, swept_current = setups.look(visited, at=3, to="swept")
            m.d.comb += [
                swept.eq(partials.read(visited, at=3, to="swept_partial")),
                timer.open.eq(_is_open(swept)),
                timer.current.eq(swept_current),
            ]

        verdicts = slot.store("verdicts", 32, 8 * self.vcs, block=True)
        ended, expired = Cat(verdict, f.vc), Cat(Verdict.TIMEOUT, visited)
        clear = (self.clearing, self.clear, 0)
        if slot.wide:
            others = [(timer.expires, expired, verdicts.read(expired) + 1)]
            verdicts.write(ended, verdicts.read(ended) + 1, ends, clear=clear, others=others)
        else:  # two clocks later, when the counter has been read
            index, asked, there = Signal(range(8 * self.vcs)), Signal(), Signal()
            m.d.sync += [asked.eq(ends | timer.expires), there.eq(asked)]
            with m.If(ends | timer.expires):
                m.d.sync += index.eq(Mux(timer.expires, expired, ended))
            verdicts.write(index, verdicts.peek(index) + 1, there, clear=clear)
        m.d.comb += self.pdus.eq(verdicts.peek(self.pdus_index))

        o = self.o
        if slot.wide:
            m.d.sync += [o.valid.eq(0), o.last.eq(0)]
        with m.If(gone):
            m.d.sync += [o.status.eq(Verdict.TIMEOUT), o.length.eq(0), o.uu.eq(0), o.cpi.eq(0), o.efci.eq(0)]
            if slot.wide:
                m.d.sync += [o.last.eq(1), o.vc.eq(timer.visited)]
        with m.If(ends):
            m.d.sync += [o.status.eq(verdict), o.length.eq(length), o.uu.eq(trailer[:8]), o.cpi.eq(trailer[8:16])]
            m.d.sync += o.efci.eq(f.efci)
            if slot.wide:
                m.d.sync += o.last.eq(1)
        if slot.wide:
            with m.If(finish):
                m.d.sync += [o.vc.eq(f.vc), o.index.eq(f.cells)]
            with m.If(takes):
                m.d.sync += [o.valid.eq(1), o.payload.eq(self.i.payload)]
        return m

    def _wide(self, m, slot, ours, takes, now, timer):
        """Return what is known when the cell is complete: a tuple of six values.

        - whether such a cell is complete in this clock
        - the state of its VC
        - the CRC of the PDU up to this cell
        - the cell's octets 40 to 43 (the trailer's first half)
        - the number of octets by which the cells before this one exceed the PDU's length
        - the timer's expiry report
        """
        payload = self.i.payload
        spare = Signal(signed(18))
        trailer = payload[320:352]
        m.d.comb += spare.eq(now.cells * 48 - _length(trailer))
        tables = self._tables or CrcTables()
        after = tables.cell(m, payload, now.crc, "rx")
        if not self._tables:
            tables.add_to(m)
        return ours, now, after, trailer, spare, timer.expires

    def _narrow(self, m, slot, ours, takes, now, timer):
        """Return the same values as :meth:`_wide`, from words.

        The CRC of the cell alone is made as its words arrive. The VC's state joins it at the end, in the first clocks
        of the next tick, before that tick's cell reads the state. Words go on to the host ``latency`` clocks later,
        when their VC is known.
        """
        latency = 14
        i, o = self.i, self.o
        count = Signal(4)
        crc, trailer = Signal(32), Signal(32)
        with m.If(i.valid & i.soc):
            m.d.sync += [count.eq(12), crc.eq(0)]
        with m.Elif(i.valid & (count != 0)):
            m.d.sync += [count.eq(count - 1), crc.eq(crc32_word(crc, i.word))]
            with m.If(count == 2):
                m.d.sync += trailer.eq(i.word)
        ended = Signal()
        m.d.sync += ended.eq(i.valid & ~i.soc & (count == 1))

        f, before, pending, taken = now.like("f"), Signal(32), Signal(), Signal()
        octets, spare = Signal(17), Signal(signed(18))
        with m.If(ours):
            m.d.sync += [pending.eq(1), before.eq(advance_cell(now.crc)), taken.eq(takes)]
            m.d.sync += octets.eq((now.cells << 5) + (now.cells << 4))
            m.d.sync += [getattr(f, name).eq(value) for name, value in vars(now).items()]
        finish = Signal()
        m.d.comb += finish.eq(pending & ended)
        with m.If(finish):
            m.d.sync += pending.eq(0)
        crc_after = Signal(32)
        m.d.sync += spare.eq(octets - _length(trailer))
        m.d.comb += crc_after.eq(crc ^ before)

        # To the host: starts in the clock in which the cell's end is known
        word = i.word
        for k in range(latency - 1):
            delayed = Signal(32, name=f"word_d{k}")
            m.d.sync += delayed.eq(word)
            word = delayed
        out = Signal(4)
        out_last = Signal()
        m.d.sync += [o.valid.eq(0), o.last.eq(0)]
        with m.If(finish):
            m.d.sync += [out.eq(12), out_last.eq(f.last), o.vc.eq(f.vc), o.index.eq(f.cells)]
            with m.If(~taken):  # only the verdict goes out
                m.d.sync += [out.eq(0), o.last.eq(f.last)]
        with m.If(out != 0):
            with m.If(~finish):
                m.d.sync += out.eq(out - 1)
            m.d.sync += [o.valid.eq(1), o.word.eq(word), o.last.eq(out_last & (out == 1))]
        # A PDU that was given up is told of between two cells
        expired, expired_vc, gone = Signal(), Signal.like(f.vc), Signal()
        m.d.comb += gone.eq(expired & (out == 0) & ~finish)
        with m.If(gone):
            m.d.sync += [o.last.eq(1), o.vc.eq(expired_vc), expired.eq(0)]
        with m.If(timer.expires):
            m.d.sync += [expired.eq(1), expired_vc.eq(timer.visited)]
        m.d.comb += self.busy.eq((count != 0) | ended | pending | (out != 0) | expired)
        return finish, f, crc_after, trailer, spare, gone


class _Cell(SimpleNamespace):
    """The values known at the end of a cell: its VC, the VC's state and its generation, and what the cell does."""

    def like(self, prefix):
        """Return registers for the values."""
        return _Cell(**{name: Signal.like(value, name=f"{prefix}_{name}") for name, value in vars(self).items()})


def _is_open(state):
    """Return whether a VC's PDU has begun."""
    return (state.cells != 0) | state.over


def _length(trailer):
    return Cat(trailer[24:32], trailer[16:24])
