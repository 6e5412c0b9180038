"""The payload memory, and cells on their way out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import NARROW, WORDS_A_CELL, CellHeader, CellSignature
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Egress", "MessageFormat"]

BANK = 8192
"""Words of a bank of the narrow payload memory: as many block memories as words have bits in pairs, nothing between
them and the bank's output register."""

LATENCY = 10
"""Narrow: clocks by which words are held back on their way in, until the place reserved for their VC's next cell is
known."""

WORDS = WORDS_A_CELL - 1


@dataclass(frozen=True)
class MessageFormat:
    """The payload of cells that are made at the output, not queued.

    Members
    -------
    shape : shape-castable
        Of a message.
    payload : function of a message
        Its 384 bits.
    words : function of a module and a message
        The same as an array of twelve words; the last may be a clock late.
    """

    shape: Any
    payload: Callable[[Any], Any]
    words: Callable[[Module, Any], Any]


class Egress(wiring.Component):
    """The egress: it keeps the payload of each cell in its place, and puts out departing cells with their new headers.

    On the narrow datapath 12 words a cell go in, to the place reserved for the VC's next cell, whether the cell is
    accepted or not; and out in the tick after the decision.

    Members
    -------
    i : In(CellSignature)
    tail : In
        The place for the payload that comes in. Narrow: from the clock before ``LATENCY`` on.
    enqueue : In
        Wide: it is kept.
    head : In
        The place of the cell that leaves.
    send, header, port : In
        A cell leaves now, with this header to this port.
    send_message, message : In
        With ``messages``: what is sent is not what is in a place, but a cell with this message.
    o : Out(CellSignature)
    streams : Out
        Words are moving (narrow).

    Parameters
    ----------
    slot : TickSchedule
    width, ports : int
    places : int
        Of the payload memory.
    messages : MessageFormat, optional
        There are cells that are made here.
    """

    def __init__(
        self, slot: TickSchedule, *, width: int, ports: int, places: int, messages: MessageFormat | None = None
    ):
        self._slot, self._places, self._messages = slot, places, messages
        place = range(places)
        super().__init__(
            {
                **({"send_message": In(1), "message": In(messages.shape)} if messages else {}),
                "i": In(CellSignature(width, ports)),
                "tail": In(place),
                "enqueue": In(1),
                "head": In(place),
                "send": In(1),
                "header": In(CellHeader),
                "port": In(range(ports)),
                "o": Out(CellSignature(width, ports)),
                "streams": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.enqueue, self.send)
        (self._wide if slot.wide else self._narrow)(m, slot)
        return m

    def _wide(self, m, slot):
        payloads = slot.store("payloads", 384, self._places, bounded=True)
        payloads.write(self.tail, self.i.payload, self.enqueue)
        payload = payloads.read(self.head)
        m.d.sync += self.o.valid.eq(0)
        with m.If(self.send):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.port.eq(self.port),
                self.o.header.eq(self.header),
                self.o.payload.eq(payload),
            ]
            if self._messages:
                with m.If(self.send_message):
                    m.d.sync += self.o.payload.eq(self._messages.payload(self.message))

    def _narrow(self, m, slot):
        addr_bits = (self._places * WORDS - 1).bit_length()

        # In: word k of a cell whose header came in clock h is written in clock h + k + LATENCY
        delayed, starts = self.i.word, self.i.valid & self.i.soc
        for k in range(LATENCY):
            word, start = Signal(NARROW, name=f"word_d{k}"), Signal(name=f"soc_d{k}")
            m.d.sync += [word.eq(delayed), start.eq(starts)]
            delayed, starts = word, start
        slot.clocks.strobe(starts, LATENCY)  # a header comes in clock 0 or 1
        write_addr, left = Signal(addr_bits), Signal(4)
        tail_addr = slot.pipe((self.tail * WORDS)[:addr_bits], "tail_addr")
        with m.If(starts):
            m.d.sync += [left.eq(WORDS), write_addr.eq(tail_addr)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), write_addr.eq(write_addr + 1)]

        # Out: the first word's address is there from the clock after the decision on, its bank's output a clock later,
        # and its bank's register another clock later, in the tick's first clock at the earliest. There the words wait
        # for the tick; then one follows the other.
        chosen, primes = Signal(name="chosen"), Signal()
        slot.clocks.holds(chosen, 0)  # of the next tick behind the commit
        sending = Signal(4)
        header, port = Signal(CellHeader), Signal.like(self.port)
        read_addr = Signal(addr_bits)
        starts_now, primed = slot.clock(0) & chosen, slot.clock(WORDS_A_CELL - 1) & chosen
        head_addr = slot.pipe((self.head * WORDS)[:addr_bits], "head_addr")
        m.d.sync += primes.eq(primed)
        with m.If(primed | starts_now | (sending != 0)):
            m.d.sync += read_addr.eq(read_addr + 1)
        with m.If(self.send):
            m.d.sync += [chosen.eq(1), header.eq(self.header), port.eq(self.port), read_addr.eq(head_addr)]
        word = self._banks(m, slot, write_addr, delayed, left != 0, read_addr, primes | (sending != 0))
        if self._messages:  # kept once more: the next cell is chosen before the last word of this one is out
            shape = self._messages.shape
            is_message, message, is_message_r, message_r = Signal(), Signal(shape), Signal(), Signal(shape)
            with m.If(self.send):
                m.d.sync += [is_message.eq(self.send_message), message.eq(self.message)]
            with m.If(starts_now):
                m.d.sync += [is_message_r.eq(is_message), message_r.eq(message)]
            word = Mux(is_message_r, self._messages.words(m, message_r)[WORDS - sending], word)
        m.d.sync += [self.o.valid.eq(0), self.o.soc.eq(0)]
        with m.If(starts_now):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.soc.eq(1),
                self.o.port.eq(port),
                self.o.word.eq(header),
                chosen.eq(0),
                sending.eq(WORDS),
            ]
        with m.Elif(sending != 0):
            m.d.sync += [self.o.valid.eq(1), self.o.word.eq(word), sending.eq(sending - 1)]
        m.d.comb += self.streams.eq(chosen | (sending != 0) | (left != 0))

    def _banks(self, m, slot, write_addr, data, en, read_addr, follows):
        """Return the memory's word for ``read_addr`` of two clocks before, if it ``follows`` in the clock between."""
        depth, words = self._places * WORDS, []
        bits = (BANK - 1).bit_length()
        bank, bank_read = Signal(range(-(-depth // BANK))), Signal(range(-(-depth // BANK)))
        m.d.sync += bank.eq(read_addr[bits:])
        with m.If(follows):
            m.d.sync += bank_read.eq(bank)
        for k in range(-(-depth // BANK)):
            part = slot.store(f"payloads{k}", NARROW, min(BANK, depth - k * BANK), block=True, apart=True)
            part.write(write_addr[:bits], data, en & (write_addr[bits:] == k))
            word, output = Signal(NARROW, name=f"bank_word{k}"), part.peek(read_addr[:bits])
            with m.If(follows):
                m.d.sync += word.eq(output)
            words.append(word)
        return Array(words)[bank_read]
