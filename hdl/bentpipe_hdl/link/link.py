"""The link: propagation delay and bit errors on a line, and the header check behind them."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..arrival import Arrival
from ..bit_errors import GAP_BITS
from ..cell import NEVER, TIME_BITS, WIDE, WORDS_A_CELL, CellHeader, check_width, node_members
from ..csr import CsrMap, CsrSignature
from ..hec import UNCORRECTABLE, HecReceiver, error_syndrome
from ..slot import Slot
from .control import link_registers
from .gap import Gap, inject, xorshift
from .losses import Losses

__all__ = ["ERRORS_A_CELL", "Link"]

ERRORS_A_CELL = 8
"""Most bit errors that one cell gets. At 1e-3, the highest rate, one cell in 10**9 would have more."""

CELL_BITS = 424


def _reached(due, now):
    """Tick ``due`` is there or past, as long as it is less than half the range of the time away."""
    return ~(now - due)[TIME_BITS - 1]


def _due_tick(there, due):
    """The due tick of a node: ``NEVER`` if nothing is there; a tick early where it has that number."""
    return Mux(there, Mux(due == NEVER, NEVER - 1, due), NEVER)


class Link(wiring.Component):
    """One direction of a line: delay, random bit errors in header and payload alike, and the receiver's HEC check.

    **Errors.** The 424 bits of each cell (its HEC among them) are hit independently. The link counts good bits down
    from ``GAP``; where they end, a bit is inverted and the next gap is drawn (:class:`~.gap.Gap`) from a xorshift64
    generator, which ``SEED`` starts. The same seed gives the same errors in the same cells. A first gap written by
    software places an error at will. Only cells are hit, not the idle cells between them.

    **Changes in a run.** A write holds for the cells that come in later ticks. ``GAP`` counts from the next cell. After
    a write of any other register of the errors the next cell passes unhurt, and its bits do not count: in its time the
    narrow datapath draws its gaps anew. Behind it the new settings hold. If the rate was written (``ERROR_MANTISSA`` or
    ``ERROR_SHIFT``), and ``GAP`` was not after it, the gap under way ends with that cell, and another is drawn at the
    new rate: a geometric gap has no memory. Both datapaths hit the same bits of the same cells.

    **Header check** (I.432.1 clause 4.3.2.2). In correction mode a single-bit error is corrected and any other
    passes on as ``hec_error``; after any error the receiver is in detection mode, in which every error passes on as
    ``hec_error``, until a good header. An error pattern that is a code word goes unnoticed, and one that
    looks like a single error is miscorrected: as on a real line.

    **Listed losses.** Named cells or PDUs of a VC are taken out (:class:`~.losses.Losses`), before the errors, which
    hit the same places of the other cells with and without.

    **Delay.** A cell of tick T leaves in tick T + ``DELAY``. With ``delay_cells`` the link has the memory for that;
    without, its output comes in tick T + 1 and whoever carries it on (the native harness) holds it for the rest. Times
    are compared modulo half their range.

    Parameters
    ----------
    width : int
        Datapath, 416 or 32 bits.
    delay_cells : int
        Cells that the link can hold on their way, a power of two to 65536; 0 for none.

    Members
    -------
    i, o, time, status, csr
        The faces of a node. ``i.hec_error`` passes on.
    error : Out(1)
        For one clock, at 416 bits together with ``o`` (without delay memory): the cell that came with the tick has bit
        errors.

    Notes
    -----
    Counters wrap at 2**32. A cell that finds the delay memory full is lost and counted. At 32 bits ``idle`` is low for
    16 clocks after reset; errors are to be switched on after that.
    """

    def __init__(self, *, width=WIDE, delay_cells=0):
        check_width(width)
        self.width, self.delay_cells = width, delay_cells
        self.registers = link_registers(delay_cells=delay_cells)
        super().__init__({**node_members(width, 1), "csr": In(CsrSignature()), "error": Out(1)})

    def elaborate(self, platform):
        m = Module()
        slot = Slot(m, self.time, self.width, commit=12)
        csr = CsrMap(m, self.csr, self.registers)
        s = _Settings()
        losses = Losses(m, slot, csr)
        taken, header, hec_error, marks = (self._wide_errors if slot.wide else self._narrow_errors)(m, slot, s)
        s.registers(m, csr, slot.wide)  # behind what uses them: a write goes before what the same clock's cell does
        if slot.wide:
            gone = losses.decide(CellHeader(self.i.header), self.i.hec_error, taken)
        else:
            gone = losses.decide(self._held, self._held_hec_error, taken)

        cells, errored, corrected, rejected = (
            Signal(32, name=n) for n in ("cells", "errored", "corrected", "rejected")
        )
        fixed, bad, hit = hec_error
        m.d.sync += self.error.eq(taken & hit)
        with m.If(taken):
            m.d.sync += cells.eq(cells + 1)
            with m.If(hit):
                m.d.sync += errored.eq(errored + 1)
            with m.If(fixed):
                m.d.sync += corrected.eq(corrected + 1)
            with m.If(bad):
                m.d.sync += rejected.eq(rejected + 1)
        lost = Signal(32)
        csr.status("cells", cells)
        csr.status("errored", errored)
        csr.status("corrected", corrected)
        csr.status("rejected", rejected)
        csr.status("error_bits", s.error_bits)
        csr.status("lost", lost)
        csr.finish()
        out = self._wide_out if slot.wide else self._narrow_out
        out(m, slot, s, taken, gone, header, bad, marks, lost)
        return slot.checked(m)

    # The wide datapath: a cell, its errors and its check in one clock

    def _wide_errors(self, m, slot, s):
        taken = Signal()
        with m.If(slot.commit), m.If(self.i.valid):
            m.d.comb += taken.eq(1)
        hit = Signal()
        with m.If(taken), m.If(s.enable), m.If(~s.fresh), m.If(s.gap < CELL_BITS):
            m.d.comb += hit.eq(1)
        first_bit = Const(1 << (CELL_BITS - 1), CELL_BITS)  # bit 423 - k is bit k of the line's order
        with m.If(hit):  # the work of a cell with errors
            flips, count, gap, state = inject(
                m, CELL_BITS, ERRORS_A_CELL, gap=s.gap, state=s.state, mantissa=s.mantissa, shift=s.shift,
                one=lambda place: first_bit >> place, draws=hit, flips=Const(0, CELL_BITS), count=Const(0, 4),
            )  # fmt: skip
        with m.If(taken), m.If(s.enable), m.If(~s.fresh):
            with m.If(hit):
                m.d.sync += [s.gap.eq(gap), s.state.eq(state), s.error_bits.eq(s.error_bits + count)]
            with m.Else():
                m.d.sync += s.gap.eq(s.gap - CELL_BITS)
        m.submodules.first_gap = unit = Gap()
        m.d.comb += [unit.mantissa.eq(s.mantissa), unit.shift.eq(s.shift)]
        with m.If(s.fresh), m.If(taken):
            m.d.sync += [s.fresh.eq(0), s.redraw.eq(0)]
            with m.If(s.redraw):
                m.d.comb += unit.state.eq(xorshift(s.state))
                m.d.sync += [s.gap.eq(unit.gap), s.state.eq(unit.state)]

        # Header and HEC come first on the line, with their upper bits first
        header_flips, hec_flips = flips[392:424], flips[384:392]
        header, checked = Signal(CellHeader), Signal(CellHeader)
        m.d.comb += header.eq(self.i.header)
        fixed, bad = self._check(m, taken, hit, header_flips, hec_flips, header, checked)
        damaged = Signal(384)
        m.d.comb += damaged.eq(self.i.payload ^ Cat(flips[376 - 8 * k : 384 - 8 * k] for k in range(48)))
        return taken, checked, (fixed, bad, hit), (damaged, hit)

    def _check(self, m, taken, hit, header_flips, hec_flips, header, checked):
        """The header as the receiver takes it, and whether it was corrected or is bad."""
        m.submodules.receiver = receiver = HecReceiver()
        m.d.comb += [receiver.check.eq(taken), checked.eq(header)]
        with m.If(hit):
            m.d.comb += [
                receiver.syndrome.eq(error_syndrome(Cat(hec_flips, header_flips))),
                checked.eq(header.as_value() ^ header_flips),
            ]
            with m.If(receiver.correct):
                m.d.comb += checked.eq(header.as_value() ^ header_flips ^ receiver.flip[8:])
        with m.If(self.i.hec_error if self.width == WIDE else self._held_hec_error):
            m.d.comb += receiver.syndrome.eq(UNCORRECTABLE)
        return receiver.correct, receiver.discard

    def _wide_out(self, m, slot, s, taken, gone, header, bad, payload, lost):
        damaged, hit = payload
        m.d.sync += self.o.valid.eq(0)
        if not self.delay_cells:
            with m.If(taken):
                m.d.sync += [
                    self.o.valid.eq(~gone),
                    self.o.hec_error.eq(bad),
                    self.o.header.eq(header),
                    self.o.payload.eq(self.i.payload),
                ]
                with m.If(hit):
                    m.d.sync += self.o.payload.eq(damaged)
            m.d.comb += [self.status.idle.eq(1), self.status.due.eq(NEVER)]
            return
        entry = data.StructLayout({"payload": 384, "header": 32, "hec_error": 1, "due": TIME_BITS})
        cells = slot.store("delayed", entry, self.delay_cells)
        bits = self.delay_cells.bit_length() - 1
        read, write, due = Signal(bits + 1), Signal(bits + 1), Signal(TIME_BITS)
        used = Signal(bits + 1)
        m.d.comb += used.eq(write - read)
        puts, gives = Signal(), Signal()
        with m.If(taken), m.If(~gone):
            with m.If(used[-1]):
                m.d.sync += lost.eq(lost + 1)
            with m.Else():
                m.d.comb += puts.eq(1)
        with m.If(slot.commit), m.If((used != 0) & _reached(due, self.time.now)):
            m.d.comb += gives.eq(1)
        put = Signal(entry)
        m.d.comb += [
            put.payload.eq(Mux(hit, damaged, self.i.payload)),
            put.header.eq(header),
            put.hec_error.eq(bad),
            put.due.eq(self.time.now + s.delay - 1),
        ]
        cells.write(write[:bits], put, puts)
        head = Signal(entry)
        m.d.comb += head.eq(cells.read(read[:bits]))
        following = cells.read((read + 1)[:bits]).due
        with m.If(puts):
            m.d.sync += write.eq(write + 1)
            with m.If(used == 0):
                m.d.sync += due.eq(put.due)
        with m.If(gives):
            m.d.sync += [
                read.eq(read + 1),
                self.o.valid.eq(1),
                self.o.hec_error.eq(head.hec_error),
                self.o.header.eq(head.header),
                self.o.payload.eq(head.payload),
            ]
            with m.If(used > 1):
                m.d.sync += due.eq(following)
            with m.Elif(puts):
                m.d.sync += due.eq(put.due)
        m.d.comb += [self.status.idle.eq(1), self.status.due.eq(_due_tick(used != 0, due))]

    # The narrow datapath: a gap drawn a clock ahead of its use, a bit inverted a clock

    def _narrow_errors(self, m, slot, s):
        soc = self.i.valid & self.i.soc
        arrival = Arrival(m, slot, self.i)
        held = self._held = arrival.header
        self._held_hec_error, taken = arrival.hec_error, Signal()
        m.d.comb += taken.eq(slot.commit & arrival.there)

        # Gaps drawn ahead: state -> gap, some clocks later -> queue
        depth = 16
        queue = memory.Memory(shape=GAP_BITS, depth=depth, init=[])
        m.submodules.gap_queue = queue
        push, pull = queue.write_port(), queue.read_port(domain="comb")
        head, tail = Signal(5), Signal(5)
        used = Signal(5)
        m.submodules.gap_unit = unit = Gap(pipelined=True)
        stages = Gap.LATENCY
        ahead = Signal(64)  # the state from which gaps are drawn; s.state is that of the gaps used
        enable, mantissa, shift = Signal(), Signal.like(s.mantissa), Signal.like(s.shift)  # as of the tick's start
        fresh, redraw = Signal(), Signal()
        drawing = Signal(stages)
        draw = Signal()
        m.d.comb += [
            used.eq(tail - head),
            draw.eq(used < depth - stages - 1),
            unit.state.eq(ahead),
            unit.mantissa.eq(mantissa),
            unit.shift.eq(shift),
        ]
        with m.If(draw):
            m.d.sync += ahead.eq(xorshift(ahead))
        m.d.sync += drawing.eq(Cat(draw, drawing[:-1]))
        m.d.comb += [push.addr.eq(tail[:4]), push.data.eq(unit.gap), push.en.eq(drawing[-1]), pull.addr.eq(head[:4])]
        with m.If(drawing[-1]):
            m.d.sync += tail.eq(tail + 1)

        # Marks: a row of 32 bits for each of the 12 words of payload; header and HEC in registers. There are two
        # banks: while one takes marks, the other goes out with its cell and is wiped, row by row.
        marks = _Marks(m)
        bank = Signal()
        header_flips, hec_flips = Signal(32), Signal(8)
        hit = Signal()
        left = Signal(4)
        active = Signal()
        with m.If(soc):
            m.d.sync += [active.eq(1), left.eq(ERRORS_A_CELL), hit.eq(0), header_flips.eq(0), hec_flips.eq(0)]
        place = Signal(9)
        inside = Signal()
        m.d.comb += [
            place.eq(s.gap),
            inside.eq(active & enable & ~fresh & (s.gap < CELL_BITS) & (left != 0) & (used != 0)),
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
        m.d.comb += following.eq(s.gap + 1 + pull.data)
        with m.If(inside):
            m.d.sync += [
                hit.eq(1),
                left.eq(left - 1),
                head.eq(head + 1),
                s.state.eq(xorshift(s.state)),
                s.gap.eq(Mux(following[GAP_BITS], Const(-1, GAP_BITS), following)),
                s.error_bits.eq(s.error_bits + 1),
            ]
            with m.If(place < 32):
                m.d.sync += header_flips.eq(header_flips ^ (1 << (31 - place)[:5]))
            with m.Elif(place < 40):
                m.d.sync += hec_flips.eq(hec_flips ^ (1 << (39 - place)[:3]))
            with m.Else():
                m.d.comb += marks.mark.eq(1)
        with m.If(taken):
            m.d.sync += [active.eq(0), bank.eq(~bank)]
            with m.If(fresh):
                m.d.sync += [fresh.eq(0), redraw.eq(0)]
                with m.If(redraw):  # the first of the new gaps: drawn since the tick's start at the latest
                    m.d.sync += [s.gap.eq(pull.data), head.eq(head + 1), s.state.eq(xorshift(s.state))]
            with m.Elif(enable):
                m.d.sync += s.gap.eq(Mux(s.gap < CELL_BITS, 0, s.gap - CELL_BITS))
        # What was written since the last tick's start holds from this one's on.
        state = Signal(64, name="state_now")
        m.d.comb += state.eq(Mux(s.state_written, s.new_state, s.state))
        with m.If(self.time.tick):
            m.d.sync += [s.fresh.eq(0), s.redraw.eq(0), s.gap_written.eq(0), s.state_written.eq(0), s.state.eq(state)]
            m.d.sync += redraw.eq(s.redraw | (redraw & ~s.gap_written))
            with m.If(s.gap_written):
                m.d.sync += s.gap.eq(s.new_gap)
            with m.If(s.fresh):
                m.d.sync += [fresh.eq(1), enable.eq(s.enable), mantissa.eq(s.mantissa), shift.eq(s.shift)]
                m.d.sync += [ahead.eq(xorshift(state)), head.eq(0), tail.eq(0), drawing.eq(0)]
        checked = Signal(CellHeader)
        fixed, bad = self._check(m, taken, hit, header_flips, hec_flips, held, checked)
        self._filling = (used < depth - stages - 1) | drawing.any()
        return taken, checked, (fixed, bad, hit), (marks, bank)

    def _narrow_out(self, m, slot, s, taken, gone, header, bad, marks, lost):
        marks, bank = marks
        words = WORDS_A_CELL - 1
        # A cell in work: its payload words wait here until its errors are known
        waiting = memory.Memory(shape=32, depth=32, init=[])
        m.submodules.waiting = waiting
        put, get = waiting.write_port(), waiting.read_port(domain="comb")
        in_bank, in_count = Signal(), Signal(4)
        m.d.comb += [put.addr.eq(Cat(in_count, in_bank)), put.data.eq(self.i.word)]
        with m.If(self.i.valid):
            with m.If(self.i.soc):
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
                out_header.eq(header),
                out_bad.eq(bad),
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
        m.d.comb += starts.eq(self.time.tick & ready)
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
        working = self._filling | ready | (count != 0) | self.i.valid | marks.clearing
        if not self.delay_cells:
            silent = Signal()  # the cell whose words go out now is gone
            with m.If(starts):
                m.d.sync += silent.eq(out_gone)
            carried = Mux(starts, ~out_gone, (count != 0) & ~silent)
            m.d.sync += [self.o.valid.eq(carried), self.o.soc.eq(starts & ~out_gone), self.o.hec_error.eq(out_bad)]
            m.d.sync += self.o.word.eq(Mux(starts, out_header, word))
            m.d.comb += [self.status.idle.eq(~working), self.status.due.eq(NEVER)]
            return
        self._narrow_delay(m, slot, s, taken, gone, starts, count, step, out_header, out_bad, word, working, lost)

    def _narrow_delay(self, m, slot, s, taken, gone, starts, count, step, header, bad, word, working, lost):
        """Cells in a memory of words, 16 places a cell; the header and its due tick in a memory of their own."""
        bits = self.delay_cells.bit_length() - 1
        words = memory.Memory(shape=32, depth=self.delay_cells * 16, init=[])
        heads = memory.Memory(shape=data.StructLayout({"header": 32, "hec_error": 1, "due": TIME_BITS}),
                              depth=self.delay_cells, init=[])  # fmt: skip
        m.submodules.delayed, m.submodules.delayed_heads = words, heads
        put, get = words.write_port(), words.read_port(domain="sync")
        put_head, get_head = heads.write_port(), heads.read_port(domain="sync")
        for port in (get, get_head):  # words follow each other whatever the clock of the tick
            slot.clocks.holds(port.data, 0)
        read, write, used = Signal(bits + 1), Signal(bits + 1), Signal(bits + 1)
        m.d.comb += used.eq(write - read)
        # Decided in the tick in which the cell came in; its words come out of the first half in the next
        keeps, due = Signal(), Signal(TIME_BITS)
        with m.If(taken):
            m.d.sync += [keeps.eq(~used[-1] & ~gone), due.eq(self.time.now + s.delay - 1)]
            with m.If(used[-1] & ~gone):
                m.d.sync += lost.eq(lost + 1)
        m.d.comb += [
            put_head.addr.eq(write[:bits]),
            put_head.data.header.eq(header),
            put_head.data.hec_error.eq(bad),
            put_head.data.due.eq(due),
            put_head.en.eq(starts & keeps),
        ]
        with m.If(put_head.en):
            m.d.sync += write.eq(write + 1)
        place = Signal(bits)
        with m.If(put_head.en):
            m.d.sync += place.eq(write[:bits])
        m.d.comb += [put.addr.eq(Cat(step, place)), put.data.eq(word), put.en.eq((count != 0) & keeps)]

        m.d.comb += get_head.addr.eq(read[:bits])
        known = Signal(2)  # the head read belongs to `read`
        m.d.sync += known.eq(Cat(used != 0, known[0]))
        gives, chosen = Signal(), Signal()
        m.d.comb += gives.eq(slot.commit & known.all() & _reached(get_head.data.due, self.time.now))
        out_header, out_bad, from_place = Signal(32), Signal(), Signal(bits)
        with m.If(gives):
            m.d.sync += [
                chosen.eq(1),
                read.eq(read + 1),
                known.eq(0),
                out_header.eq(get_head.data.header),
                out_bad.eq(get_head.data.hec_error),
                from_place.eq(read[:bits]),
            ]
        out_step, out_count, goes = Signal(4), Signal(4), Signal()
        m.d.comb += [
            goes.eq(self.time.tick & chosen),
            get.addr.eq(Cat(Mux(goes, 0, out_step), from_place)),
        ]
        m.d.sync += [self.o.valid.eq(0), self.o.soc.eq(0)]
        with m.If(goes):
            m.d.sync += [
                self.o.valid.eq(1), self.o.soc.eq(1), self.o.hec_error.eq(out_bad), self.o.word.eq(out_header),
                chosen.eq(0), out_count.eq(12), out_step.eq(1),
            ]  # fmt: skip
        with m.Elif(out_count != 0):
            m.d.sync += [
                self.o.valid.eq(1), self.o.word.eq(get.data), out_count.eq(out_count - 1), out_step.eq(out_step + 1),
            ]  # fmt: skip
        waits = known.all() & ~chosen & (out_count == 0)
        m.d.comb += [
            self.status.due.eq(_due_tick(used != 0, get_head.data.due)),
            self.status.idle.eq(~working & ((used == 0) | waits) & ~chosen & (out_count == 0)),
        ]


class _Marks:
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


class _Settings:
    """The registers of a link, and the state that software may write.

    Attributes
    ----------
    fresh : Signal
        The errors' settings were written: the next cell is to pass unhurt.
    redraw : Signal
        And the rate was, after the gap.
    new_gap, gap_written, new_state, state_written : Signal
        On the narrow datapath, what was written: while a cell is being hit, ``gap`` and ``state`` are its own.
    """

    def __init__(self):
        self.delay = Signal(32, init=1)
        self.enable = Signal()
        self.mantissa, self.shift = Signal(24), Signal(6)
        self.gap, self.state = Signal(GAP_BITS), Signal(64, init=1)
        self.fresh, self.redraw = Signal(), Signal()
        self.new_gap, self.new_state = Signal(GAP_BITS), Signal(64)
        self.gap_written, self.state_written = Signal(), Signal()
        self.error_bits = Signal(32)

    def registers(self, m, csr, wide):
        csr.setting("delay", self.delay)
        csr.setting("error_enable", self.enable)
        csr.setting("error_mantissa", self.mantissa)
        csr.setting("error_shift", self.shift)
        gap, state = (self.gap, self.state) if wide else (self.new_gap, self.new_state)
        csr.setting("gap", gap)
        csr.setting("seed", state)
        for name in ("error_enable", "error_mantissa", "error_shift", "seed"):
            with csr.written(name):
                m.d.sync += self.fresh.eq(1)
        for name in ("error_mantissa", "error_shift"):
            with csr.written(name):
                m.d.sync += self.redraw.eq(1)
        with csr.written("gap"):
            m.d.sync += [self.redraw.eq(0), self.gap_written.eq(0 if wide else 1)]
        with csr.written("seed"):
            m.d.sync += self.state_written.eq(0 if wide else 1)
