"""AAL5 reassembly, a PDU a VC at a time, with every error told apart (I.363.5 clause 9)."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum

from ..cell import NEVER, TIME_BITS, CellHeader, comes, due_tick
from ..lookup import Lookup
from ..setup import SETUP_BITS, SetUps
from .crc32 import INIT, RESIDUE, advance_cell, crc32_word, swapped

__all__ = ["Verdict", "build_reassembler"]


class Verdict(enum.Enum, shape=3):
    """How the reassembly of a PDU ended."""

    OK = 0
    CRC = 1
    LENGTH = 2
    LOST_LAST = 3
    OVERLENGTH = 4
    ABORT = 5
    TIMEOUT = 6


AGE_BITS = 32
"""Bits of the tick in which a PDU began, modulo 2**32: twice the longest time-out."""


def build_reassembler(m: Module, nic, slot, csr, tables, clearing, clear_vc, clear):
    """Build the receive half of a :class:`~bentpipe_hdl.nodes.nic.Nic` into ``m``. Returns its due tick."""
    vcs = nic.vcs
    vc_bits = (vcs - 1).bit_length()
    nni = csr.setting("nni")
    lookup = Lookup(m, slot, csr, vcs=vcs, ports=1, nni=nni)
    limits = slot.store("rx_limits", 11, vcs)
    index, word, en = csr.table("rx_limit")
    limits.write(index, word, en)
    partial = data.StructLayout({"crc": 32, "cells": 11, "over": 1, "setup": SETUP_BITS})
    partials = slot.store("rx_partials", partial, vcs)
    setups = SetUps(m, slot, "rx", vcs, index, en, lambda vc: partials.read(vc).setup)
    received = slot.store("rx_received", 32, vcs)
    verdicts = slot.store("rx_verdicts", 32, 8 * vcs)
    unknown, hec_errors, oam, over_cells = Signal(32), Signal(32), Signal(32), Signal(32)

    if slot.wide:
        header, bad = nic.i.header, nic.i.hec_error
        arrives = nic.i.valid & ~clearing
    else:
        soc = nic.i.valid & nic.i.soc
        header = CellHeader(slot.hold(nic.i.word, soc, "rx_held_header"))
        bad = slot.hold(nic.i.hec_error, soc, "rx_held_hec_error")
        arrived = Signal()
        with m.If(soc):
            m.d.sync += arrived.eq(1)
        with m.Elif(slot.commit):
            m.d.sync += arrived.eq(0)
        arrives = arrived & ~clearing
    known, vc = Signal(), Signal(vc_bits)
    with slot.only(arrives):
        found, found_vc = lookup.find(header, Signal(0))
        m.d.comb += [known.eq(slot.settle(found, "rx_found")), vc.eq(slot.settle(found_vc, "rx_found_vc"))]
    kept, state, setup = Signal(partial), Signal(partial), Signal(SETUP_BITS)
    limit = Signal(11)
    user, last, over, takes, drops_over, ours = (Signal() for _ in range(6))
    m.d.comb += [
        kept.eq(partials.read(vc)),
        setup.eq(setups.read(vc)),
        state.eq(kept),
        limit.eq(limits.read(vc)),
        user.eq(~header.pti[2]),
        last.eq(header.pti[0]),
        over.eq(slot.settle(state.over | (state.cells >= limit), "rx_over")),
    ]
    with m.If(kept.setup != setup):  # the VC has been set up since
        m.d.comb += [state.crc.eq(INIT), state.cells.eq(0), state.over.eq(0)]
    with m.If(slot.commit), m.If(arrives):
        with m.If(bad):
            m.d.sync += hec_errors.eq(hec_errors + 1)
        with m.Elif(~known):
            m.d.sync += unknown.eq(unknown + 1)
        with m.Elif(~user):
            m.d.sync += oam.eq(oam + 1)
        with m.Else():
            m.d.comb += ours.eq(1)
            with m.If(over):
                m.d.comb += drops_over.eq(1)
                m.d.sync += over_cells.eq(over_cells + 1)
            with m.Else():
                m.d.comb += takes.eq(1)
    received.write(vc, received.read(vc) + 1, takes, clear=(clearing, clear_vc, 0))

    datapath = _wide if slot.wide else _narrow
    expires, swept = Signal(), Signal(vc_bits)  # the reassembly timer gives a PDU up, in a tick without a cell
    finish, f_vc, f_state, f_last, f_over, crc_after, trailer, gone = datapath(
        m, nic, tables, ours, takes, vc, state, last, over, expires, swept
    )

    # The end of a cell: state, and for a PDU's last cell the verdict
    length = Signal(16)
    cells = Signal(11)
    high, low, whole, enough, tight = Signal(17), Signal(17), Signal(), Signal(), Signal()
    verdict = Signal(Verdict)
    m.d.comb += [
        length.eq(Cat(trailer[24:32], trailer[16:24])),
        cells.eq(f_state.cells + 1),
        high.eq(cells * 48),
        low.eq(f_state.cells * 48),
        enough.eq(high >= length + 8),
        tight.eq(low < length + 8),
        whole.eq(crc_after == RESIDUE),
    ]
    with m.If(f_over):
        m.d.comb += verdict.eq(Verdict.OVERLENGTH)
    with m.Elif(whole & (length == 0)):
        m.d.comb += verdict.eq(Verdict.ABORT)
    with m.Elif(~tight & ~whole):
        m.d.comb += verdict.eq(Verdict.LOST_LAST)
    with m.Elif(~tight | ~enough):
        m.d.comb += verdict.eq(Verdict.LENGTH)
    with m.Elif(~whole):
        m.d.comb += verdict.eq(Verdict.CRC)
    with m.Else():
        m.d.comb += verdict.eq(Verdict.OK)
    new = Signal(partial)
    m.d.comb += [new.crc.eq(INIT), new.setup.eq(slot.hold(setup, ours, "rx_f_setup"))]
    with m.If(~f_last):
        m.d.comb += [
            new.crc.eq(crc_after),
            new.cells.eq(Mux(f_over, f_state.cells, cells)),
            new.over.eq(f_over),
        ]
    cleared = Signal(partial)
    m.d.comb += cleared.crc.eq(INIT)
    partials.write(f_vc, new, finish, clear=(clearing, clear_vc, cleared))
    ends = Signal()
    with m.If(finish & f_last):
        m.d.comb += ends.eq(1)
    was_open = slot.hold(_is_open(kept), ours, "rx_was_open")
    begins, opens, closes = Signal(), Signal(), Signal()
    with m.If(finish):
        m.d.comb += [
            begins.eq(~f_last & ~_is_open(f_state)),
            opens.eq(~f_last & ~was_open),
            closes.eq(f_last & was_open),
        ]
    timer = _Timer(m, nic, slot, csr)
    timer.count(opens, closes, begins, f_vc, slot.hold(nic.time.now, ours, "rx_began"))
    due, gives_up = timer.sweep(partials, setups, swept, expires, arrives)
    forgotten = Signal(partial)
    m.d.comb += [forgotten.crc.eq(INIT), forgotten.setup.eq(setups.read(swept))]
    partials.write(swept, forgotten, gives_up)
    index = Signal(vc_bits + 3)
    if slot.wide:
        m.d.comb += index.eq(Cat(verdict, f_vc))
        verdicts.write(index, verdicts.read(index) + 1, ends, clear=(clearing, clear, 0))
    else:  # counted a clock later, when the counter has been read
        counts = Signal()
        m.d.sync += counts.eq(ends)
        with m.If(ends):
            m.d.sync += index.eq(Cat(verdict, f_vc))
        ready = Signal()
        m.d.sync += ready.eq(counts)
        verdicts.write(index, verdicts.read(index) + 1, ready, clear=(clearing, clear, 0))
    timeouts = Signal(vc_bits + 3)
    m.d.comb += timeouts.eq(Cat(Verdict.TIMEOUT, swept))
    verdicts.write(timeouts, verdicts.read(timeouts) + 1, expires)
    if slot.wide:
        m.d.sync += [nic.rx_valid.eq(0), nic.rx_last.eq(0)]
    with m.If(gone):
        m.d.sync += [nic.rx_status.eq(Verdict.TIMEOUT), nic.rx_length.eq(0), nic.rx_uu.eq(0), nic.rx_cpi.eq(0)]
        if slot.wide:
            m.d.sync += [nic.rx_last.eq(1), nic.rx_vc.eq(swept)]
    with m.If(ends):
        m.d.sync += [
            nic.rx_status.eq(verdict),
            nic.rx_length.eq(length),
            nic.rx_uu.eq(trailer[:8]),
            nic.rx_cpi.eq(trailer[8:16]),
        ]
        if slot.wide:
            m.d.sync += nic.rx_last.eq(1)
    if slot.wide:
        with m.If(finish):
            m.d.sync += [nic.rx_vc.eq(f_vc), nic.rx_index.eq(f_state.cells)]
        with m.If(takes):
            m.d.sync += [nic.rx_valid.eq(1), nic.rx_payload.eq(nic.i.payload)]

    csr.status("rx_unknown", unknown)
    csr.status("rx_hec", hec_errors)
    csr.status("rx_oam", oam)
    csr.status("rx_over", over_cells)
    csr.counters("rx_cells", received.read)
    csr.counters("rx_pdus", verdicts.read)
    return due


def _is_open(state):
    """Whether a VC's PDU has begun."""
    return (state.cells != 0) | state.over


class _Timer:
    """The reassembly timer: gives up PDUs that began ``RX_TIMEOUT`` ticks ago or earlier.

    As long as any PDU is begun, the VCs are visited in turn, one each ``RX_TIMEOUT / (4 * vcs)`` ticks (at least one).
    """

    def __init__(self, m, nic, slot, csr):
        self._m, self._nic, self._slot = m, nic, slot
        self._timeout = csr.setting("rx_timeout")
        self._starts = slot.store("rx_starts", AGE_BITS, nic.vcs)
        self._open = Signal(range(nic.vcs + 1), name="rx_open")  # PDUs begun
        self._visit = Signal(TIME_BITS, name="rx_visit")
        self._step = Signal(AGE_BITS, name="rx_step")
        pace = self._timeout[(nic.vcs - 1).bit_length() + 2 :]
        m.d.comb += self._step.eq(Mux(pace == 0, 1, pace))

    def count(self, opens, closes, begins, vc, tick):
        """What a cell of ``tick`` does to the PDU of its VC: leaves one open where none was open (not even one of
        before the VC's set-up), closes it, begins it."""
        m = self._m
        self._starts.write(vc, tick[:AGE_BITS], begins)
        with m.If(opens):
            m.d.sync += self._open.eq(self._open + 1)
            with m.If(self._open == 0):
                m.d.sync += self._visit.eq(due_tick((tick + self._step)[:TIME_BITS]))
        with m.If(closes):
            m.d.sync += self._open.eq(self._open - 1)

    def sweep(self, partials, setups, swept, expires, arrives):
        """Build the visits: ``expires`` is high when the PDU of VC ``swept`` is given up. Returns the tick of the next,
        and whether the state of VC ``swept`` is to be forgotten, which it is as well if it is of before its set-up."""
        m, slot, now = self._m, self._slot, self._nic.time.now
        state, current, old, gives_up = Signal(partials._shape, name="rx_swept"), Signal(), Signal(), Signal()
        age = (now[:AGE_BITS] - self._starts.read(swept))[:AGE_BITS]
        m.d.comb += [
            state.eq(partials.read(swept)),
            current.eq(setups.read(swept) == state.setup),
            old.eq(_is_open(state) & (~current | slot.settle(age >= self._timeout, "rx_aged"))),
        ]
        on = Signal(name="rx_timer_on")
        m.d.comb += on.eq((self._open != 0) & (self._timeout != 0))
        waits = slot.settle(comes(self._visit, now, 1 << AGE_BITS), "rx_visit_comes")
        with m.If(slot.commit), m.If(on), m.If(~waits):
            with m.If(~(old & arrives)):  # else once more in the next tick
                m.d.sync += [swept.eq(swept + 1), self._visit.eq(due_tick((now + self._step)[:TIME_BITS]))]
                m.d.comb += [gives_up.eq(old), expires.eq(old & current)]
        with m.If(gives_up):
            m.d.sync += self._open.eq(self._open - 1)
        return Mux(on, self._visit, NEVER), gives_up


def _wide(m, nic, tables, ours, takes, vc, state, last, over, expires, swept):
    mixed = Signal(384)
    m.d.comb += mixed.eq(Cat(nic.i.payload[:32] ^ swapped(state.crc), nic.i.payload[32:]))
    after = tables.cell(mixed, "rx")
    return ours, vc, state, last, over, after, nic.i.payload[320:352], expires


def _narrow(m, nic, tables, ours, takes, vc, state, last, over, expires, swept):
    """The CRC of the cell alone is made as its words come in; the VC's state joins it at the end, in the first
    clocks of the next tick, before that tick's cell reads it. Words go on to the host ``latency`` clocks later,
    when their VC is known."""
    latency = 14
    count = Signal(4)
    crc, tail_word = Signal(32), Signal(32)
    with m.If(nic.i.valid & nic.i.soc):
        m.d.sync += [count.eq(12), crc.eq(0)]
    with m.Elif(nic.i.valid & (count != 0)):
        m.d.sync += [count.eq(count - 1), crc.eq(crc32_word(crc, nic.i.word))]
        with m.If(count == 2):
            m.d.sync += tail_word.eq(nic.i.word)
    ended = Signal()
    m.d.sync += ended.eq(nic.i.valid & ~nic.i.soc & (count == 1))

    pending, f_vc, f_last, f_over, taken = Signal(), Signal.like(vc), Signal(), Signal(), Signal()
    f_state = Signal.like(state)
    with m.If(ours):
        m.d.sync += [
            pending.eq(1),
            f_vc.eq(vc),
            f_state.eq(state),
            f_last.eq(last),
            f_over.eq(over),
            taken.eq(takes),
        ]
    finish = Signal()
    m.d.comb += finish.eq(pending & ended)
    with m.If(finish):
        m.d.sync += pending.eq(0)

    # To the host: starts in the clock in which the cell's end is known
    word = nic.i.word
    for k in range(latency - 1):
        delayed = Signal(32, name=f"rx_word_d{k}")
        m.d.sync += delayed.eq(word)
        word = delayed
    out = Signal(4)
    out_last = Signal()
    m.d.sync += [nic.rx_valid.eq(0), nic.rx_last.eq(0)]
    with m.If(finish):
        m.d.sync += [out.eq(12), out_last.eq(f_last), nic.rx_vc.eq(f_vc), nic.rx_index.eq(f_state.cells)]
        with m.If(~taken):  # only the verdict goes out
            m.d.sync += [out.eq(0), nic.rx_last.eq(f_last)]
    with m.If(out != 0):
        with m.If(~finish):
            m.d.sync += out.eq(out - 1)
        m.d.sync += [nic.rx_valid.eq(1), nic.rx_word.eq(word), nic.rx_last.eq(out_last & (out == 1))]
    # A PDU that was given up is told of between two cells
    expired, expired_vc, gone = Signal(), Signal.like(vc), Signal()
    m.d.comb += gone.eq(expired & (out == 0) & ~finish)
    with m.If(gone):
        m.d.sync += [nic.rx_last.eq(1), nic.rx_vc.eq(expired_vc), expired.eq(0)]
    with m.If(expires):
        m.d.sync += [expired.eq(1), expired_vc.eq(swept)]
    m.d.comb += nic.rx_streaming.eq((count != 0) | ended | pending | (out != 0) | expired)
    crc_after = Signal(32)
    m.d.comb += crc_after.eq(crc ^ advance_cell(f_state.crc))
    return finish, f_vc, f_state, f_last, f_over, crc_after, tail_word, gone
