"""The narrow datapath of a link: gaps are drawn a clock ahead of their use, and a bit is inverted a clock."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib import memory

from bentpipe_hdl.arrival import Arrival
from bentpipe_hdl.bit_errors import GAP_BITS
from bentpipe_hdl.cell import NEVER, WORDS_A_CELL, CellHeader
from bentpipe_hdl.hec import SYNDROMES
from bentpipe_hdl.link.datapath import CELL_BITS, ERRORS_A_CELL, Datapath
from bentpipe_hdl.link.errors import GapsAhead, of_state

__all__ = ["Leaving", "NarrowDatapath"]

HEADER_BITS = len(SYNDROMES)


@dataclass(frozen=True)
class Leaving:
    """A cell whose words leave, after its errors are known.

    Members
    -------
    starts : Value
        Its header does, now.
    count, step : Value
        Words that are still to leave; the number of the next one.
    header, bad, word : Value
    """

    starts: Value
    count: Value
    step: Value
    header: Value
    bad: Value
    word: Value


class NarrowDatapath(Datapath):
    """At 32 bits."""

    def damage(self):
        link, m, slot, s = self.link, self.m, self.slot, self.errors
        soc = link.i.valid & link.i.soc
        arrival = Arrival(m, slot, link.i)
        self.sent_header, self.sent_hec_error = arrival.header, arrival.hec_error
        self.taken = taken = Signal(name="taken")
        m.d.comb += taken.eq(slot.commit & arrival.there)
        self.comes = arrival.there

        ahead = [GapsAhead(m, s, p) for p in s.processes]
        enable, gap, following_gap, used = (
            of_state(s.bad, [getattr(each, name) for each in ahead]) for name in ("enable", "gap", "next", "used")
        )

        # Marks: a row of 32 bits for each of the 12 words of payload; header and HEC in registers. There are two
        # banks: while one takes marks, the other goes out with its cell and is wiped, row by row.
        self.marks = marks = Marks(m)
        self.bank = bank = Signal(name="bank")
        header_flips, syndrome = Signal(32), Signal(8)
        hit = Signal()
        left = Signal(4)
        active = Signal()
        with m.If(soc):
            m.d.sync += [active.eq(1), left.eq(ERRORS_A_CELL), hit.eq(0), header_flips.eq(0), syndrome.eq(0)]
        place = Signal(9)
        inside, fresh = Signal(), Signal()
        m.d.comb += [
            place.eq(gap),
            inside.eq(active & enable & ~fresh & (gap < CELL_BITS) & (left != 0) & (used != 0)),
        ]
        body = Signal(9)
        m.d.comb += body.eq(place - 40)
        row = Signal(4)
        m.d.comb += row.eq(body[5:])
        # bit k of the line's order within a word: octet k // 8, its bit 7 - k % 8
        one = Signal(32)
        m.d.comb += one.eq(1 << Cat(~body[:3], body[3:5]))
        m.d.comb += [
            marks.bank.eq(bank),
            marks.row.eq(row),
            marks.one.eq(one),
        ]
        following = Signal(GAP_BITS + 1)
        m.d.comb += following.eq(gap + 1 + following_gap)
        with m.If(inside):
            m.d.sync += [hit.eq(1), left.eq(left - 1), s.error_bits.eq(s.error_bits + 1)]
            for p in s.chosen(m):
                p.ahead.use(Mux(following[GAP_BITS], Const(-1, GAP_BITS), following))
            with m.If(place < 32):
                m.d.sync += header_flips.eq(header_flips ^ (1 << (31 - place)[:5]))
            with m.If(place < HEADER_BITS):  # the syndrome of several errors is the sum of theirs
                m.d.sync += syndrome.eq(syndrome ^ Array(reversed(SYNDROMES))[place[:6]])
            with m.Else():
                m.d.comb += marks.mark.eq(1)
        with m.If(taken):
            m.d.sync += [active.eq(0), bank.eq(~bank)]
            with m.If(fresh):
                m.d.sync += fresh.eq(0)
                for each in ahead:
                    m.d.sync += each.redraw.eq(0)
                    with m.If(each.redraw):  # the first of the new gaps: drawn since the tick's start at the latest
                        each.use(each.next)
            with m.Elif(enable):
                for p in s.chosen(m):
                    m.d.sync += p.gap.eq(Mux(gap < CELL_BITS, 0, gap - CELL_BITS))
        # What was written since the last tick's start holds from this one's on.
        with m.If(link.time.tick):
            m.d.sync += s.fresh.eq(0)
            with m.If(s.fresh):
                m.d.sync += fresh.eq(1)
            for each in ahead:
                each.begin()
        self.header = self.check(hit, header_flips, syndrome, arrival.header, arrival.hec_error)
        self.filling = Cat(each.fills for each in ahead).any()

    def send(self, gone, memory_of_cells, lost, works):
        link, m, taken, marks, bank = self.link, self.m, self.taken, self.marks, self.bank
        words = WORDS_A_CELL - 1
        # A cell in work: its payload words wait here until its errors are known
        waiting = memory.Memory(shape=32, depth=32, init=[])
        m.submodules.waiting = waiting
        put, get = waiting.write_port(), waiting.read_port(domain="comb")
        in_bank, in_count = Signal(), Signal(4)
        m.d.comb += [put.addr.eq(Cat(in_count, in_bank)), put.data.eq(link.i.word)]
        with m.If(link.i.valid):
            with m.If(link.i.soc):
                m.d.sync += [in_count.eq(0), in_bank.eq(~in_bank)]
            with m.Else():
                m.d.comb += put.en.eq(1)
                m.d.sync += in_count.eq(in_count + 1)
        # Flips of the bank that is on its way out, cleared as they are used
        # (of a cell that is gone, too)
        ready, out_header, out_bad, out_bank, out_marks = Signal(), Signal(CellHeader), Signal(), Signal(), Signal()
        out_gone = Signal()
        with m.If(taken):
            m.d.sync += [
                ready.eq(1),
                out_header.eq(self.header),
                out_bad.eq(self.bad),
                out_gone.eq(gone),
                out_bank.eq(in_bank),
                out_marks.eq(bank),
            ]
        count, step, send_bank, send_marks = Signal(4), Signal(4), Signal(), Signal()
        m.d.comb += [
            get.addr.eq(Cat(step, send_bank)),
            marks.wipe_bank.eq(send_marks),
            marks.wipe_row.eq(step),
            marks.wipe.eq(count != 0),
        ]
        starts = Signal()
        m.d.comb += starts.eq(link.time.tick & ready)
        with m.If(starts):
            m.d.sync += [
                ready.eq(0),
                count.eq(words),
                step.eq(0),
                send_bank.eq(out_bank),
                send_marks.eq(out_marks),
            ]
        with m.Elif(count != 0):
            m.d.sync += [count.eq(count - 1), step.eq(step + 1)]
        word = Signal(32)
        m.d.comb += word.eq(get.data ^ marks.wiped)
        working = self.filling | works | ready | (count != 0) | link.i.valid | marks.clearing
        if memory_of_cells is not None:
            self.leaving = Leaving(starts, count, step, out_header, out_bad, word)
            return memory_of_cells.narrow(self, gone, lost, working)
        if self.offer is not None:
            self.leaving = Leaving(starts, count, step, out_header, out_bad, word)
            word = self._offered(self.leaving, ready, out_gone)
        silent = Signal()  # the cell whose words go out now is gone
        with m.If(starts):
            m.d.sync += silent.eq(out_gone)
        carried = Mux(starts, ~out_gone, (count != 0) & ~silent)
        m.d.sync += [link.o.valid.eq(carried), link.o.soc.eq(starts & ~out_gone), link.o.hec_error.eq(out_bad)]
        m.d.sync += link.o.word.eq(Mux(starts, out_header, word))
        return ~working, NEVER

    def _offered(self, cell, ready, gone):
        """Let a plugin's cell leave as one that was taken; return the word that goes out."""
        m, offer = self.m, self.offer
        decided, leaves = Signal(name="offer_decided"), Signal(name="offer_leaves")
        with m.If(offer.leaves):
            m.d.sync += [ready.eq(1), cell.header.eq(offer.header), cell.bad.eq(offer.bad), gone.eq(0), decided.eq(1)]
        with m.If(cell.starts):
            m.d.sync += [leaves.eq(decided), decided.eq(0)]
        # The words of the cell that arrived leave; a plugin may keep them.
        return Mux(leaves & (cell.count != 0), offer.word(cell.step), cell.word)


class Marks:
    """Two banks of rows of 32 marks, in LUT memories: one write port each, which marking and wiping share.

    Attributes
    ----------
    bank, row, one, mark : Signal
        Inverts the marks ``one`` of a row at ``mark``.
    wipe_bank, wipe_row, wipe : Signal
        Clears a row at ``wipe``; never of the bank that is marked in the same clock.
    wiped : Signal
        That row as it was.
    clearing : Signal
        High for 16 clocks after reset, in which both banks are cleared.
    """

    def __init__(self, m):
        self.bank, self.row, self.one, self.mark = Signal(), Signal(4), Signal(32), Signal()
        self.wipe_bank, self.wipe_row, self.wipe = Signal(), Signal(4), Signal()
        self.wiped = Signal(32)
        self.clearing = Signal()
        clear = Signal(5, name="marks_clear")
        m.d.comb += self.clearing.eq(~clear[-1])
        with m.If(self.clearing):
            m.d.sync += clear.eq(clear + 1)
        for k in range(2):
            bank = memory.Memory(shape=32, depth=16, init=[])
            m.submodules[f"marks{k}"] = bank
            read, write = bank.read_port(domain="comb"), bank.write_port()
            wipes = self.wipe & (self.wipe_bank == k)
            addr = Signal(4, name=f"marks_row{k}")
            m.d.comb += [
                addr.eq(Mux(wipes, self.wipe_row, self.row)),
                read.addr.eq(addr),
                write.addr.eq(addr),
                write.data.eq(Mux(wipes, 0, read.data ^ self.one)),
                write.en.eq(wipes | (self.mark & (self.bank == k))),
            ]
            with m.If(self.clearing):
                m.d.comb += [write.addr.eq(clear[:4]), write.data.eq(0), write.en.eq(1)]
            with m.If(wipes):
                m.d.comb += self.wiped.eq(read.data)
