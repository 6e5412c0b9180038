"""AAL5 segmentation: PDUs of many VCs to cells on one line (I.363.5 clause 9)."""

from contextlib import nullcontext

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..cell import WIDE, CellHeader, CellSignature, TimeSignature
from ..credits.cells import RM, Message, payload_of, words_of
from .crc32 import INIT, CrcTables, crc32_word, swapped

__all__ = ["Segmenter"]


class Segmenter(wiring.Component):
    """The AAL5 segmenter: it makes cells of PDUs, with padding and trailer; :class:`~..traffic.pacer.Pacer` chooses the
    VC.

    Parameters
    ----------
    slot : TickSchedule
        The node's.
    width : int
    vcs : int
    tables : CrcTables, optional
        The node's, at 416 bits; without, it has its own.
    messages : bool
        There are cells that are made here.
    singles : bool
        There are single cells: they go as the host gives them, and leave the VC's PDU as it is.
    inserts : bool
        There is a VC whose cells are made elsewhere in the node. It has no PDU.

    Members
    -------
    time : In
    o : Out
        The cells, in the tick after that in which they are decided on.
    vc, sends, changes : In
        The tick's VC, as the pacer has it: it sends a cell; it does, or a PDU for it is accepted.
    length, uu, cpi : In
        Of the PDU that is posted.
    last : Out
        The VC's next cell is its PDU's last; valid from clock 4 on (narrow).
    done, done_vc : Out
        The last cell of this VC's PDU has been chosen for the line. One clock.
    block : In(384), or word : In(32), word_next : Out(1)
        The octets, as for :class:`~..nic.nic.Nic`.
    header_index, header, header_en : In
        Writes the table of the VCs' headers.
    message_send, message, sent : In, In, Out
        With ``messages``: the VC sends an RM cell with this message; its cells sent so far, in the same clock (wide),
        from clock 3 on (narrow).
    single, pti : In
        With ``singles``: what happens to the VC is about a single cell, and no PDU; the PTI of the one that is sent.
    done_single : Out
        ``done`` is of a single cell.
    insert : In
        With ``inserts``: the tick's VC is that one, and what happens to it is about no single cell. Narrow: from clock
        2 on.
    insert_block : In(384), or insert_word : In(32), insert_next : Out(1)
        The octets of its cell, as ``block`` or ``word`` and ``word_next``; ``word_next`` stays low.
    count_index : In, count : Out
        Cells sent of this VC, for a reader at any time: in the same clock (wide), in the next (narrow).
    busy : Out
        Words of a cell are under way; low at 416 bits.
    clearing, clear : In
        While ``clearing`` is high, the count of VC ``clear`` becomes 0.
    """

    def __init__(self, slot, *, width, vcs, tables=None, **kinds):
        if wrong := kinds.keys() - {"messages", "singles", "inserts"}:
            raise TypeError(f"no kind of cells: {', '.join(sorted(wrong))}")
        messages, singles, inserts = (bool(kinds.get(name)) for name in ("messages", "singles", "inserts"))
        self._slot, self._tables, self.vcs, self._messages, self._singles = slot, tables, vcs, messages, singles
        self._inserts = inserts
        vc = range(vcs)
        message_ports = {"message_send": In(1), "message": In(Message), "sent": Out(32)}
        alone = {"single": In(1), "pti": In(3), "done_single": Out(1)}
        host = {"block": In(384)} if width == WIDE else {"word": In(32), "word_next": Out(1)}
        other = {"insert_block": In(384)} if width == WIDE else {"insert_word": In(32), "insert_next": Out(1)}
        super().__init__(
            {
                **({"insert": In(1), **other} if inserts else {}),
                **(message_ports if messages else {}),
                **(alone if singles else {}),
                "time": In(TimeSignature()),
                "o": Out(CellSignature(width)),
                "vc": In(vc),
                "sends": In(1),
                "changes": In(1),
                "length": In(16),
                "uu": In(8),
                "cpi": In(8),
                "last": Out(1),
                "done": Out(1),
                "done_vc": Out(vc),
                **host,
                "header_index": In(vc),
                "header": In(CellHeader),
                "header_en": In(1),
                "count_index": In(vc),
                "count": Out(32),
                "busy": Out(1),
                "clearing": In(1),
                "clear": In(vc),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        headers = slot.store("headers", CellHeader, self.vcs, block=True)
        headers.write(self.header_index, self.header, self.header_en)
        layout = data.StructLayout({"left": 16, "length": 16, "uu": 8, "cpi": 8, "first": 1})
        jobs = slot.store("jobs", layout, self.vcs, block=True)
        counts = slot.store("counts", 32, self.vcs, block=True)
        m.d.comb += self.count.eq(counts.peek(self.count_index))

        vc, sends, alone = self.vc, self.sends, self._alone()
        job, last = Signal(layout), Signal()
        m.d.comb += [
            job.eq(jobs.read(vc, at=1, to="job")),
            last.eq(slot.pipe(job.left <= 40, "last_held")),
            self.last.eq(last if alone is None else last & ~alone),
        ]
        changed, sending = Signal(), Signal()
        with m.If(slot.commit), m.If(self.changes):
            m.d.comb += changed.eq(1 if alone is None else ~alone)
            with m.If(sends):
                m.d.comb += sending.eq(1)
        after = Signal(layout)
        with m.If(sends):
            m.d.comb += [after.eq(job), after.left.eq(Mux(job.left < 48, 0, job.left - 48)), after.first.eq(0)]
        with m.Else():
            m.d.comb += [
                after.left.eq(self.length),
                after.length.eq(self.length),
                after.uu.eq(self.uu),
                after.cpi.eq(self.cpi),
                after.first.eq(1),
            ]
        jobs.write(vc, after, changed)
        sent = counts.read(vc, at=1, to="sent_before")
        counts.write(vc, sent + 1, sending, clear=(self.clearing, self.clear, 0))
        m.d.sync += self.done.eq(0)
        with m.If(sending), m.If(self._done(last)):
            m.d.sync += [self.done.eq(1), self.done_vc.eq(vc)]
            if self._singles:
                m.d.sync += self.done_single.eq(self.single)

        # Of the cell that goes out: in the same clock (wide), in the next tick (narrow)
        single, pti = (None, None) if alone is None else self._single(m, slot, sending, alone)
        ends = last if single is None else last & ~single
        header, out_header = Signal(CellHeader), Signal(CellHeader)
        m.d.comb += [
            header.eq(headers.read(vc, at=1, to="header_held")),
            out_header.eq(header),
            out_header.pti.eq(ends if single is None else Mux(single, pti, ends)),
        ]
        message_start = None
        if self._messages:
            message_start = Signal()
            with m.If(slot.commit), m.If(self.message_send):
                m.d.comb += message_start.eq(1)
            m.d.comb += self.sent.eq(sent)
        (self._wide if slot.wide else self._narrow)(m, slot, sending, job, ends, out_header, message_start, single)
        return m

    def _alone(self):
        """Return whether the tick's VC sends a cell that is not part of a PDU; None: it never does."""
        if self._singles and self._inserts:
            return self.single | self.insert
        return self.single if self._singles else self.insert if self._inserts else None

    def _done(self, last):
        """Return whether the host has to give another PDU or single cell after this cell."""
        if self._inserts:
            last = last & ~self.insert
        return last | self.single if self._singles else last

    def _single(self, m, slot, sending, alone):
        """Return whether the departing cell is not part of a PDU, and its PTI."""
        pti_now = self.pti if self._singles else Const(0, 3)
        if self._singles and self._inserts:
            pti_now = Mux(self.insert, 0, self.pti)
        if slot.wide:
            return alone, pti_now
        single, pti = Signal(name="out_single"), Signal(3, name="out_pti")
        with m.If(sending):
            m.d.sync += [single.eq(alone), pti.eq(pti_now)]
        return single, pti

    def _wide(self, m, slot, sending, job, last, header, message_start, single):
        """Make one cell a clock.

        The CRC of the last cell covers 44 octets: they are moved up by four, behind zeros.
        """
        crcs = slot.store("crcs", 32, self.vcs, whole=True)
        crc = Signal(32)
        m.d.comb += crc.eq(Mux(job.first, INIT, crcs.read(self.vc)))
        short = Signal()  # the PDU ends in this cell
        m.d.comb += short.eq(job.left < 48 if single is None else (job.left < 48) & ~single)
        kept = Signal(384)
        m.d.comb += kept.eq(self.block & (Const((1 << 384) - 1, 384) >> (384 - (job.left[:6] << 3))[:9]))
        octets, covered, start = Signal(384), Signal(384), Signal(32)  # octets of the cell, except for the CRC
        m.d.comb += octets.eq(self.block)
        with m.If(short):
            m.d.comb += octets.eq(kept)
        with m.If(last):
            m.d.comb += octets.word_select(10, 32).eq(_trailer(job))
        if self._inserts:
            with m.If(self.insert):
                m.d.comb += octets.eq(self.insert_block)
        m.d.comb += [covered.eq(octets), start.eq(crc)]
        with m.If(last):
            mixed = Cat(octets[:32] ^ swapped(crc), octets[32:352])
            m.d.comb += [covered.eq(Cat(Const(0, 32), mixed)), start.eq(0)]
        tables = self._tables or CrcTables()
        after = tables.cell(m, covered, start, "tx")
        if not self._tables:
            tables.add_to(m)
        crcs.write(self.vc, after, sending if single is None else sending & ~single)
        m.d.sync += self.o.valid.eq(0)
        with m.If(sending):
            m.d.sync += [self.o.valid.eq(1), self.o.header.eq(header), self.o.payload.eq(octets)]
            with m.If(last):
                m.d.sync += self.o.payload[352:].eq(swapped(~after))
        if self._messages:
            with m.If(message_start):
                m.d.sync += [
                    self.o.valid.eq(1),
                    self.o.header.eq(_resource_management(header)),
                    self.o.payload.eq(payload_of(self.message)),
                ]

    def _narrow(self, m, slot, sending, job, last, header, message_start, single):
        """Send 13 words in the tick after the decision, with four octets of the CRC a clock.

        Values that were read of the VC stay in its registers until then.
        """
        crcs = slot.store("crcs", 32, self.vcs, block=True)
        vc = slot.hold(self.vc, slot.clock(2), "vc_held", since=3)
        stored = crcs.read(self.vc, at=2, to="stored")
        vc, job, last, header, stored = (
            _of_last_tick(m, slot, value, name)
            for name, value in (("vc", vc), ("job", job), ("last", last), ("header", header), ("crc", stored))
        )
        chosen, starts = Signal(), Signal()
        m.d.comb += starts.eq(self.time.tick & chosen)
        with m.If(starts):
            m.d.sync += chosen.eq(0)
        with m.If(sending):
            m.d.sync += chosen.eq(1)
        crc, crc_vc = Signal(32), Signal.like(vc)
        count, left = Signal(4), Signal(6)
        closing, keep = Signal(), Signal()
        in_pdu, of_pdu = nullcontext, nullcontext  # the cell that starts, the words under way
        octets_in, inserting = self.word, None
        if self._inserts:
            octets_in, inserting = self._insert(m, slot, sending, starts, count)
        if single is not None:
            single = _of_last_tick(m, slot, single, "single")
            covers = Signal()
            in_pdu, of_pdu = (lambda: m.If(~single)), (lambda: m.If(covers))
        trailer = Signal(32)
        m.d.sync += [self.o.valid.eq(0), self.o.soc.eq(0), keep.eq(0)]
        m.d.comb += self.word_next.eq(count != 0 if inserting is None else (count != 0) & ~inserting)
        crcs.write(crc_vc, crc, keep)
        with m.If(starts):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.soc.eq(1),
                self.o.word.eq(header),
                count.eq(12),
                left.eq(Mux(job.left < 48, job.left, 48)),
            ]
            if single is not None:
                m.d.sync += covers.eq(~single)
                with m.If(single):
                    m.d.sync += left.eq(48)
            with in_pdu():
                m.d.sync += crc_vc.eq(vc)
            m.d.sync += [trailer.eq(_trailer(job)), closing.eq(last)]
            with in_pdu():
                with m.If(job.first):
                    m.d.sync += crc.eq(INIT)
                with m.Elif(vc != crc_vc):
                    m.d.sync += crc.eq(stored)
        word = Signal(32)
        m.d.comb += word.eq(octets_in)
        with m.Switch(left):
            for octets in range(4):
                with m.Case(octets):
                    m.d.comb += word.eq(octets_in & ((1 << 8 * octets) - 1))
        with m.If(closing & (count == 2)):
            m.d.comb += word.eq(trailer)
        with m.If(closing & (count == 1)):
            m.d.comb += word.eq(swapped(~crc))
        with m.If(count != 0):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.word.eq(word),
                count.eq(count - 1),
                left.eq(Mux(left < 4, 0, left - 4)),
            ]
            with of_pdu():
                m.d.sync += [crc.eq(crc32_word(crc, word)), keep.eq(count == 1)]
        message_busy = self._send_message(m, header, message_start) if self._messages else Const(0)
        m.d.comb += self.busy.eq(chosen | (count != 0) | keep | message_busy)

    def _insert(self, m, slot, sending, starts, count):
        """Return the words of the departing cell, and whether they are made elsewhere."""
        chosen, inserting = Signal(name="out_insert"), Signal()
        with m.If(sending):
            m.d.sync += chosen.eq(self.insert)
        chosen = _of_last_tick(m, slot, chosen, "insert")
        with m.If(starts):
            m.d.sync += inserting.eq(chosen)
        m.d.comb += self.insert_next.eq((count != 0) & inserting)
        return Mux(inserting, self.insert_word, self.word), inserting

    def _send_message(self, m, header, message_start):
        """Send the twelve words of a message in the tick after that in which it is chosen; return whether they are
        under way.

        The next message may be chosen before the last word is out.
        """
        chosen, message, message_r, left = Signal(), Signal(Message), Signal(Message), Signal(4)
        words = words_of(m, message_r)
        with m.If(self.time.tick & chosen):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.soc.eq(1),
                self.o.word.eq(_resource_management(header)),
                message_r.eq(message),
                left.eq(12),
                chosen.eq(0),
            ]
        with m.Elif(left != 0):
            m.d.sync += [self.o.valid.eq(1), self.o.word.eq(words[12 - left]), left.eq(left - 1)]
        with m.If(message_start):
            m.d.sync += [chosen.eq(1), message.eq(self.message)]
        return chosen | (left != 0)


def _resource_management(header):
    """Return the header of an RM cell of the VC."""
    return Cat(Const(0, 1), Const(RM, 3), Value.cast(header)[4:])


def _trailer(job):
    """Return UU, CPI and length in the order of transmission."""
    return Cat(job.uu, job.cpi, job.length[8:], job.length[:8])


def _of_last_tick(m, slot, value, name):
    """Return the value that the last tick has left, for use in the first clocks of a tick."""
    signal = Signal.like(value, name=f"last_{name}")
    m.d.comb += signal.eq(value)
    slot.clocks.holds(signal, 0)
    return signal
