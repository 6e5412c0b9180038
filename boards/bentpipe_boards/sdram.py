"""FIFOs of records in an SDRAM: the delay memory of long lines.

A line's cells go in and come out in their order. So memory is only used in whole bursts, one after the other.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.records import BOX, RECORD_WORDS, RecordSignature, ends_of

__all__ = ["BURST", "Command", "SdramFifos", "SdramSignature", "SdramTimes"]

BURST: Final = 8
"""Halfwords of a read or write command; a record takes four commands."""
MODE: Final = 0b0_00_010_0_011
"""The chip's mode register: sequential bursts of 8, CAS latency of 2 clocks."""
COLUMN_BITS, BANK_BITS, ROW_BITS = 9, 2, 13
"""Address bits of a chip of 256 Mbit with 16 data lines (AS4C16M16SA, IS42S16160G, MT48LC16M16A2)."""
PLACE_BITS: Final = COLUMN_BITS + BANK_BITS + ROW_BITS - 5
"""Width of a record's place: 32 MB hold 2**19 records."""
_HALVES: Final = 2 * RECORD_WORDS


class Command:
    """RAS, CAS and WE of a command, low active, the first in the highest bit."""

    MODE, REFRESH, PRECHARGE, ACTIVATE, WRITE, READ, NOP = 0b000, 0b001, 0b010, 0b011, 0b100, 0b101, 0b111


@dataclass(frozen=True)
class SdramTimes:
    """The chip's least times in ns, of the slowest of the chips above, and the longest time between refreshes.

    Members
    -------
    clock_hz : int
    init : int
        From power-up to the first command.
    rcd, rp, ras, rc, rfc, wr : int
        Row to column; precharge; row active; row to row; refresh; from the last word to precharge.
    refresh : int
        The mean time from refresh to refresh.
    """

    clock_hz: int
    init: int = 200_000
    rcd: int = 20
    rp: int = 20
    ras: int = 45
    rc: int = 66
    rfc: int = 70
    wr: int = 15
    refresh: int = 7812

    def clocks(self, name: str) -> int:
        """Return the fewest clocks that last this long; for ``refresh`` the most that do not last longer."""
        exact = getattr(self, name) * self.clock_hz / 1e9
        return int(exact) if name == "refresh" else max(1, ceil(exact))


class SdramSignature(wiring.Signature):
    """The chip's pins, as the controller drives them; CKE is high, CS and DQM are low. The chip takes them with the
    next edge.

    Members
    -------
    command : Out(3)
        As for :class:`Command`.
    bank, address : Out(2), Out(13)
    out, drives : Out(16), Out(1)
        Data, and whether the controller drives the data lines.
    data : In(16)
    """

    def __init__(self):
        super().__init__(
            {
                "command": Out(3, init=Command.NOP),
                "bank": Out(BANK_BITS),
                "address": Out(ROW_BITS),
                "out": Out(16),
                "drives": Out(1),
                "data": In(16),
            }
        )


class SdramFifos(wiring.Component):
    """FIFOs of records in one SDRAM, each in a part of its own.

    A record that finds nothing of its FIFO in the SDRAM goes past it; so a short FIFO is fast: with two FIFOs at OC-3c
    a record can be taken 200 clocks after its first word at the latest. A record in the SDRAM is written in one burst
    and read in one, each of some 43 clocks. Bursts are given in turn.

    Parameters
    ----------
    times : SdramTimes
    fifos : int
        From 1 on.
    records : int
        That the SDRAM holds of each FIFO, a power of two; all together at most 2**19.
    pin_clocks : int
        Clocks that registers at the pins add, out and in together.

    Members
    -------
    chip : Out(SdramSignature)
    fifo : In(RecordSignature), an array
    ready : Out(1)
        The chip can be used: 200 us after reset.

    Notes
    -----
    The chip's clock is to be an eighth of a clock before the core's, and to leave through the same kind of cell as the
    other pins, 4.5 ns after the edge. Then commands stay for an eighth of a clock behind the chip's edge (1 ns is
    needed). Its data, there from 6 ns after an edge until 2.5 ns after the next, are sampled by the core's next but one
    edge, with room for set-up down to periods of 11 ns, and 4.5 ns of hold at 20 ns. An inverted clock has no such edge
    at 50 MHz.
    """

    def __init__(self, times, *, fifos, records, pin_clocks=0):
        places = fifos * records
        if fifos < 1 or records not in [1 << k for k in range(1, PLACE_BITS + 1)] or places > 1 << PLACE_BITS:
            raise ValueError(f"{fifos} FIFOs of {records!r} records: powers of two, of {1 << PLACE_BITS} in all")
        if times.clocks("refresh") < 4 * _HALVES:
            raise ValueError(f"clock_hz must be at least {4 * _HALVES * 1e9 / times.refresh:.0f}, not {times.clock_hz}")
        self._times, self._fifos, self._records = times, fifos, records
        self._pin_clocks = pin_clocks
        super().__init__({"chip": Out(SdramSignature()), "fifo": In(RecordSignature()).array(fifos), "ready": Out(1)})

    def elaborate(self, platform):
        m = Module()
        ends = ends_of(m, self.fifo, self._records)
        due, refreshed = self._refreshes(m)
        job, grants = self._choose(m, ends)
        self._work(m, ends, job, grants, due, refreshed)
        return m

    def _refreshes(self, m):
        """Return whether the chip is to be refreshed, and the signal that acknowledges it."""
        period = self._times.clocks("refresh") - 1
        left, due, refreshed = Signal(range(period + 1), init=period), Signal(), Signal()
        m.d.sync += left.eq(Mux(left == 0, period, left - 1))
        with m.If(left == 0):
            m.d.sync += due.eq(1)
        with m.Elif(refreshed):
            m.d.sync += due.eq(0)
        return due, refreshed

    def _choose(self, m, ends):
        """Return the next job, and which jobs exist: for each FIFO to write, to read, or to bypass the SDRAM."""
        wanted = Signal(3 * len(ends))
        for k, end in enumerate(ends):
            has, room, empty = end.inbox.level != 0, end.outbox.level < BOX - 1, end.held == 0
            m.d.comb += wanted[3 * k : 3 * k + 3].eq(
                Cat(has & ~(empty & room) & ~end.held[-1], ~empty & room, has & empty & room)
            )
        job = data.StructLayout({"kind": range(3), "fifo": range(max(2, len(ends)))})
        chosen, turn, any_ = Signal(job), Signal(range(len(wanted))), Signal()
        with m.Switch(turn):
            for first in range(len(wanted)):
                with m.Case(first):
                    for k in reversed(range(len(wanted))):  # the last one goes before the others
                        number = (first + k) % len(wanted)
                        with m.If(wanted[number]):
                            m.d.comb += [chosen.kind.eq(number % 3), chosen.fifo.eq(number // 3), any_.eq(1)]
        m.d.sync += turn.eq(Mux(turn == len(wanted) - 1, 0, turn + 1))
        return chosen, any_

    def _work(self, m, ends, chosen, any_, due, refreshed):
        """Execute one job after the other."""
        w = _Work(self._times, Signal.like(chosen))
        words = Array(end.inbox.get_word for end in ends)
        index = Signal(range(_HALVES))  # of the halfword that follows
        m.d.comb += [w.word.eq(words[w.job.fifo]), index.eq(w.step + 1)]
        arrives, arrived, ends_read = self._arrivals(m, w)
        for k, end in enumerate(ends):
            mine = w.job.fifo == k
            m.d.comb += [
                end.inbox.get_at.eq(Mux(w.copies | w.copied, w.step, index[1:])),
                end.inbox.take.eq(w.takes & mine),
                end.outbox.put_word.eq(arrived),
                end.outbox.put.eq(mine & (w.copied | arrives)),
            ]
        m.d.sync += [self.chip.command.eq(Command.NOP), self.chip.drives.eq(0)]
        with m.FSM():
            self._prepare(m, w)
            with m.State("IDLE"):
                m.d.sync += [w.job.eq(chosen), w.step.eq(0), w.got.eq(0)]
                with m.If(due):
                    m.d.comb += refreshed.eq(1)
                    m.d.sync += self.chip.command.eq(Command.REFRESH)
                    w.then(m, "rfc", 0, "WAIT")
                with m.Elif(any_):
                    m.next = "BEGIN"
                    with m.If(chosen.kind == 2):
                        m.next = "COPY"
            self._open(m, w, ends)
            self._burst(m, w, ends_read)
            with m.State("COPY"):
                m.d.comb += w.copies.eq(1)
                m.d.sync += w.step.eq(w.step + 1)
                with m.If(w.step == RECORD_WORDS - 1):
                    m.next = "COPIED"
            with m.State("COPIED"):
                m.d.comb += w.takes.eq(1)
                w.then(m, None, 1, "WAIT")

    def _arrivals(self, m, w):
        """Return whether a word has come out of the SDRAM, the word that goes to the other end, and whether it was the
        record's last. A word comes four clocks after its command: the chip takes that a clock later, has its CAS
        latency, and there is a register here. Registers at the pins add their clocks."""
        sampled, low, coming = Signal(16), Signal(16), Signal(4 + self._pin_clocks)
        m.d.sync += [sampled.eq(self.chip.data), coming.eq(Cat(w.reads, coming)), w.copied.eq(w.copies)]
        arrives, arrived, last = Signal(), Signal(32), Signal()
        with m.If(coming[-1]):
            m.d.sync += [low.eq(sampled), w.got.eq(w.got + 1)]
        m.d.comb += [
            arrived.eq(Mux(w.copied, w.word, Cat(low, sampled))),
            arrives.eq(coming[-1] & w.got[0]),
            last.eq(coming[-1] & (w.got == _HALVES - 1)),
        ]
        return arrives, arrived, last

    def _prepare(self, m, w):
        """Start the chip: precharge, eight refreshes, the mode."""
        chip = self.chip
        with m.State("POWER"):
            m.d.sync += w.wait.eq(w.wait + 1)
            with m.If(w.wait == self._times.clocks("init")):
                m.d.sync += [chip.command.eq(Command.PRECHARGE), chip.address.eq(1 << 10)]
                w.then(m, "rp", 0, "PREPARE")
        with m.State("PREPARE"):
            m.d.sync += w.wait.eq(w.wait - 1)
            with m.If(w.wait == 0):
                m.d.sync += w.refreshes.eq(w.refreshes + 1)
                with m.If(w.refreshes == 8):
                    m.d.sync += [chip.command.eq(Command.MODE), chip.address.eq(MODE), chip.bank.eq(0)]
                    w.then(m, None, 2, "WAIT")
                with m.Else():
                    m.d.sync += chip.command.eq(Command.REFRESH)
                    w.then(m, "rfc", 0, "PREPARE")
        with m.State("WAIT"):
            m.d.sync += w.wait.eq(w.wait - 1)
            with m.If(w.wait == 0):
                m.d.sync += self.ready.eq(1)
                m.next = "IDLE"

    def _open(self, m, w, ends):
        """Open the row of the record that is next."""
        with m.State("BEGIN"):
            for k, end in enumerate(ends):
                first = k * self._records
                with m.If(w.job.fifo == k):
                    with m.If(w.job.kind == 0):
                        m.d.sync += [w.place.eq(first + end.write), end.write.eq(end.write + 1)]
                        m.d.sync += end.held.eq(end.held + 1)
                    with m.Else():
                        m.d.sync += [w.place.eq(first + end.read), end.read.eq(end.read + 1)]
                        m.d.sync += end.held.eq(end.held - 1)
            m.next = "ACTIVATE"
        with m.State("ACTIVATE"):
            m.d.sync += [
                self.chip.command.eq(Command.ACTIVATE),
                self.chip.bank.eq(w.place[4:]),
                self.chip.address.eq(w.place[4 + BANK_BITS :]),
                w.step.eq(-1),  # the first word is read in the clock before the burst
            ]
            w.then(m, "rcd", -1, "ROW")
        with m.State("ROW"):
            m.d.sync += w.wait.eq(w.wait - 1)
            with m.If(w.wait <= 1):
                m.d.sync += w.step.eq(0)
                m.next = "BURST"

    def _burst(self, m, w, ends_read):
        """Issue four commands without a gap; the last one closes the row."""
        chip, step, writes = self.chip, w.step, w.job.kind == 0
        with m.State("BURST"):
            m.d.sync += step.eq(step + 1)
            with m.If(step[:3] == 0):
                closes = step[3:] == _HALVES // BURST - 1
                m.d.sync += [
                    chip.command.eq(Mux(writes, Command.WRITE, Command.READ)),
                    chip.address.eq(Cat(step[:5], w.place[:4], Const(0, 1), closes)),
                ]
            with m.If(writes):
                m.d.sync += [chip.drives.eq(1), chip.out.eq(w.word.word_select(step[0], 16))]
            with m.Else():
                m.d.comb += w.reads.eq(1)
            with m.If(step == _HALVES - 1):
                with m.If(writes):
                    m.d.comb += w.takes.eq(1)
                    w.then(m, "rp", self._times.clocks("wr") + 1, "WAIT")
                with m.Else():
                    m.next = "READ"
        with m.State("READ"), m.If(ends_read):
            w.then(m, "rp", 0, "WAIT")


class _Work:
    """The registers of the job that is being done, and what its states tell each other.

    Members
    -------
    job, place : Signal
        What, for which FIFO; the record's place in the SDRAM.
    step, got, wait, refreshes : Signal
        Halfwords or words that were begun; that came; clocks to wait; refreshes since power-up.
    word, reads, takes, copies, copied : Signal
        The inbox's word; a halfword is asked for; the inbox's record is done with; a word passes the SDRAM by; has
        passed.
    """

    def __init__(self, times, job):
        self._times, self.job = times, job
        self.place, self.got = Signal(PLACE_BITS), Signal(range(_HALVES))
        self.step, self.wait, self.refreshes = (
            Signal(range(_HALVES + 1)),
            Signal(range(times.clocks("init") + 1)),
            Signal(4),
        )
        self.word, self.reads, self.takes, self.copies, self.copied = Signal(32), Signal(), Signal(), Signal(), Signal()

    def then(self, m, name, more, state):
        """Wait for a time by its name and some clocks in the next state."""
        m.d.sync += self.wait.eq((self._times.clocks(name) if name else 0) + more)
        m.next = state
