"""The link: propagation delay and bit errors on a line, and the header check behind them."""

from contextlib import nullcontext

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..arrival import Arrival
from ..bit_errors import GAP_BITS
from ..cell import NEVER, TIME_BITS, WIDE, WORDS_A_CELL, CellHeader, check_width, earlier, node_members
from ..csr import CsrMap, CsrSignature
from ..hec import UNCORRECTABLE, HecReceiver, error_syndrome
from ..slot import Slot
from ..steady import decides
from .control import GONE, link_registers
from .faults import Faults
from .gap import Gap, inject, xorshift
from .losses import Losses

__all__ = ["ERRORS_A_CELL", "Link"]

ERRORS_A_CELL = 8
"""Most bit errors that one cell gets. At 1e-3, the highest rate, one cell in 10**9 would have more."""

CELL_BITS = 424

ROOM_BITS = 40
"""Of a link's room: cells that go by meanwhile are fewer than 2**32."""


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

    **Faults.** Outages, and a Gilbert-Elliott process with a good and a bad state (:class:`~.faults.Faults`); its bad
    state has bit errors of its own. A link is built with them or without.

    **Listed losses.** Named cells or PDUs of a VC are taken out (:class:`~.losses.Losses`), before the errors, which
    hit the same places of the other cells with and without.

    **Delay.** A cell of tick T leaves in tick T + ``DELAY``. With ``delay_cells`` the link has the memory for that;
    without, its output comes in tick T + 1 and whoever carries it on (the native harness) holds it for the rest. Times
    are compared modulo half their range.

    **Cells that go by.** At 416 bits and without delay memory most cells change nothing of a link but a count and the
    gap. Whoever carries them on may let a cell with a good header go by untouched instead of giving it to the link,
    while ``room`` has its 424 bits, and tell in a clock without a tick how many have gone: ``passed``. All is then as
    if they had come in at ``i``, but for what came out.

    Parameters
    ----------
    width : int
        Datapath, 416 or 32 bits.
    delay_cells : int
        Cells that the link can hold on their way, a power of two to 65536; 0 for none.
    faults : int
        1: with outages and bursts of errors.

    Members
    -------
    i, o, time, status, csr
        The faces of a node. ``i.hec_error`` passes on.
    error : Out(1)
        For one clock, at 416 bits together with ``o`` (without delay memory): the cell that came with the tick has bit
        errors.
    passed : In(32), room : Out(40)
        At 416 bits without delay memory: cells that went by since the last clock, and bits that may go by from now on.
        No cell comes, and no register is accessed, in a clock with ``passed``.
    gone_why : Out
        With faults: why the cell that came with the tick is gone, if it is, the place in ``control.GONE``; registered.

    Notes
    -----
    Counters wrap at 2**32. A cell that finds the delay memory full is lost and counted. At 32 bits ``idle`` is low for
    16 clocks after reset; errors are to be switched on after that.
    """

    def __init__(self, *, width=WIDE, delay_cells=0, faults=0):
        check_width(width)
        self.width, self.delay_cells, self.with_faults = width, delay_cells, bool(faults)
        self.registers = link_registers(delay_cells=delay_cells, faults=faults)
        why = {"gone_why": Out(range(len(GONE)))} if faults else {}
        self.lets_pass = width == WIDE and not delay_cells
        passing = {"passed": In(32), "room": Out(ROOM_BITS)} if self.lets_pass else {}
        super().__init__({**node_members(width, 1), "csr": In(CsrSignature()), "error": Out(1), **why, **passing})

    def elaborate(self, platform):
        m = Module()
        slot = Slot(m, self.time, self.width, commit=12)
        csr = CsrMap(m, self.csr, self.registers)
        losses = Losses(m, slot, csr)
        faults = self._faults = Faults(m, slot, csr, self.time) if self.with_faults else None
        s = _Settings(None if faults is None else faults.bad)
        taken, header, hec_error, marks = (self._wide_errors if slot.wide else self._narrow_errors)(m, slot, s)
        s.registers(m, csr, slot.wide)  # behind what uses them: a write goes before what the same clock's cell does
        if slot.wide:
            gone = losses.decide(CellHeader(self.i.header), self.i.hec_error, taken)
        else:
            gone = losses.decide(self._held, self._held_hec_error, taken)
        self._fault_works = Const(0, 1)
        if faults is not None:
            gone, why = faults.decide(taken, gone)
            self._fault_works = faults.works
            with m.If(gone):
                m.d.sync += self.gone_why.eq(why)

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
        if self.lets_pass:
            self._let_pass(m, s, cells, losses)
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

    def _let_pass(self, m, s, cells, losses):
        """Cells that go by, as long as nothing but their number and their bits counts."""
        p = s.processes[0]  # that of the good state
        works = s.fresh | losses.enable | self._receiver.detection
        if self._faults is not None:
            works |= self._faults.acts
        far = ~p.enable | p.gap[ROOM_BITS:].any()
        m.d.comb += self.room.eq(Mux(works, 0, Mux(far, Const(-1, ROOM_BITS), p.gap)))
        with m.If(self.passed != 0):
            m.d.sync += cells.eq(cells + self.passed)
            with m.If(p.enable):
                m.d.sync += p.gap.eq(p.gap - self.passed * CELL_BITS)

    # The wide datapath: a cell, its errors and its check in one clock

    def _wide_errors(self, m, slot, s):
        taken = Signal()
        with m.If(slot.commit), m.If(self.i.valid):
            m.d.comb += taken.eq(1)
        hit = Signal()
        enable, gap, state, mantissa, shift = (s.now(m, slot, name, taken) for name in _PROCESS)
        with m.If(taken), m.If(enable), m.If(~s.fresh), m.If(gap < CELL_BITS):
            m.d.comb += hit.eq(1)
        decides(hit, 0)
        first_bit = Const(1 << (CELL_BITS - 1), CELL_BITS)  # bit 423 - k is bit k of the line's order
        with m.If(hit):  # the work of a cell with errors
            flips, count, gap_after, state_after = inject(
                m, CELL_BITS, ERRORS_A_CELL, gap=gap, state=state, mantissa=mantissa, shift=shift,
                one=lambda place: first_bit >> place, draws=hit, flips=Const(0, CELL_BITS), count=Const(0, 4),
            )  # fmt: skip
        with m.If(taken), m.If(enable), m.If(~s.fresh):
            with m.If(hit):
                m.d.sync += s.error_bits.eq(s.error_bits + count)
            for p in s.chosen(m):
                with m.If(hit):
                    m.d.sync += [p.gap.eq(gap_after), p.state.eq(state_after)]
                with m.Else():
                    m.d.sync += p.gap.eq(gap - CELL_BITS)
        for p in s.processes:
            m.submodules[f"first_{p.prefix}gap"] = unit = Gap()
            m.d.comb += [unit.mantissa.eq(p.mantissa), unit.shift.eq(p.shift)]
            with m.If(s.fresh), m.If(taken):
                m.d.sync += [s.fresh.eq(0), p.redraw.eq(0)]
                with m.If(p.redraw):
                    m.d.comb += unit.state.eq(xorshift(p.state))
                    m.d.sync += [p.gap.eq(unit.gap), p.state.eq(unit.state)]

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
        m.submodules.receiver = receiver = self._receiver = HecReceiver()
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
            m.d.comb += [self.status.idle.eq(~self._fault_works), self.status.due.eq(self._due(NEVER))]
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
        soonest = self._due(_due_tick(used != 0, due))
        m.d.comb += [self.status.idle.eq(~self._fault_works), self.status.due.eq(soonest)]

    def _due(self, due):
        """The due tick of the node: that of its cells, or that of its faults."""
        return due if self._faults is None else earlier(self._faults.due, due)

    # The narrow datapath: a gap drawn a clock ahead of its use, a bit inverted a clock

    def _narrow_errors(self, m, slot, s):
        soc = self.i.valid & self.i.soc
        arrival = Arrival(m, slot, self.i)
        held = self._held = arrival.header
        self._held_hec_error, taken = arrival.hec_error, Signal()
        m.d.comb += taken.eq(slot.commit & arrival.there)

        ahead = [_Ahead(m, s, p) for p in s.processes]
        enable, gap, following_gap, used = (
            _pick(s.bad, [getattr(each, name) for each in ahead]) for name in ("enable", "gap", "next", "used")
        )

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
            with m.Elif(place < 40):
                m.d.sync += hec_flips.eq(hec_flips ^ (1 << (39 - place)[:3]))
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
        with m.If(self.time.tick):
            m.d.sync += s.fresh.eq(0)
            with m.If(s.fresh):
                m.d.sync += fresh.eq(1)
            for each in ahead:
                each.begin()
        checked = Signal(CellHeader)
        fixed, bad = self._check(m, taken, hit, header_flips, hec_flips, held, checked)
        self._filling = Cat(each.fills for each in ahead).any()
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
        working = self._filling | self._fault_works | ready | (count != 0) | self.i.valid | marks.clearing
        if not self.delay_cells:
            silent = Signal()  # the cell whose words go out now is gone
            with m.If(starts):
                m.d.sync += silent.eq(out_gone)
            carried = Mux(starts, ~out_gone, (count != 0) & ~silent)
            m.d.sync += [self.o.valid.eq(carried), self.o.soc.eq(starts & ~out_gone), self.o.hec_error.eq(out_bad)]
            m.d.sync += self.o.word.eq(Mux(starts, out_header, word))
            m.d.comb += [self.status.idle.eq(~working), self.status.due.eq(self._due(NEVER))]
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
            self.status.due.eq(self._due(_due_tick(used != 0, get_head.data.due))),
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


_PROCESS = ("enable", "gap", "state", "mantissa", "shift")
"""What a process of bit errors has."""


def _pick(bad, pair):
    """The value of the state: of the only one, or of two."""
    return pair[0] if bad is None else Mux(bad, pair[1], pair[0])


class _Process:
    """A process of bit errors: the registers, and the state that software may write.

    Attributes
    ----------
    redraw : Signal
        The rate was written, after the gap.
    new_gap, gap_written, new_state, state_written : Signal
        On the narrow datapath, what was written: while a cell is being hit, ``gap`` and ``state`` are its own.
    """

    def __init__(self, prefix):
        self.prefix = prefix
        self.enable, self.redraw = Signal(name=f"{prefix}enable"), Signal(name=f"{prefix}redraw")
        self.mantissa, self.shift = Signal(24, name=f"{prefix}mantissa"), Signal(6, name=f"{prefix}shift")
        self.gap, self.state = Signal(GAP_BITS, name=f"{prefix}gap"), Signal(64, init=1, name=f"{prefix}state")
        self.new_gap, self.new_state = Signal(GAP_BITS, name=f"new_{prefix}gap"), Signal(64, name=f"new_{prefix}state")
        self.gap_written, self.state_written = Signal(name=f"{prefix}gap_new"), Signal(name=f"{prefix}state_new")

    def registers(self, m, csr, wide, fresh):
        rates = {f"{self.prefix}error_{name}": getattr(self, name) for name in ("enable", "mantissa", "shift")}
        gap, state = (self.gap, self.state) if wide else (self.new_gap, self.new_state)
        for name, signal in (*rates.items(), (f"{self.prefix}gap", gap), (f"{self.prefix}seed", state)):
            csr.setting(name, signal)
        enable, *scale = rates
        for name in (enable, *scale, f"{self.prefix}seed"):
            with csr.written(name):
                m.d.sync += fresh.eq(1)
        for name in scale:
            with csr.written(name):
                m.d.sync += self.redraw.eq(1)
        with csr.written(f"{self.prefix}gap"):
            m.d.sync += [self.redraw.eq(0), self.gap_written.eq(0 if wide else 1)]
        with csr.written(f"{self.prefix}seed"):
            m.d.sync += self.state_written.eq(0 if wide else 1)


class _Ahead:
    """Narrow: a process's gaps drawn ahead, as its settings were at the tick's start: state -> gap, some clocks later
    -> queue.

    Attributes
    ----------
    enable, redraw : Signal
    gap, next, used : Signal
        Good bits before the next error; behind it, the first in the queue; gaps there.
    fills : Value
        The queue is being filled.
    """

    DEPTH = 16

    def __init__(self, m, s, p):
        self._m, self._s, self._p = m, s, p
        p.ahead = self
        queue = memory.Memory(shape=GAP_BITS, depth=self.DEPTH, init=[])
        m.submodules[f"{p.prefix}gap_queue"] = queue
        push, pull = queue.write_port(), queue.read_port(domain="comb")
        self._head, self._tail = Signal(5, name=f"{p.prefix}head"), Signal(5, name=f"{p.prefix}tail")
        self.used = Signal(5, name=f"{p.prefix}used")
        m.submodules[f"{p.prefix}gap_unit"] = unit = Gap(pipelined=True)
        self._ahead = Signal(64, name=f"{p.prefix}ahead")  # from which gaps are drawn; p.state is that of those used
        self.enable, self.redraw = Signal(name=f"{p.prefix}enable_now"), Signal(name=f"{p.prefix}redraw_now")
        self._mantissa = Signal.like(p.mantissa, name=f"{p.prefix}mantissa_now")
        self._shift = Signal.like(p.shift, name=f"{p.prefix}shift_now")
        self._drawing = Signal(Gap.LATENCY, name=f"{p.prefix}drawing")
        draw = Signal(name=f"{p.prefix}draw")
        m.d.comb += [
            self.used.eq(self._tail - self._head),
            draw.eq(self.used < self.DEPTH - Gap.LATENCY - 1),
            unit.state.eq(self._ahead),
            unit.mantissa.eq(self._mantissa),
            unit.shift.eq(self._shift),
        ]
        with m.If(draw):
            m.d.sync += self._ahead.eq(xorshift(self._ahead))
        m.d.sync += self._drawing.eq(Cat(draw, self._drawing[:-1]))
        drawn = self._drawing[-1]
        m.d.comb += [push.addr.eq(self._tail[:4]), push.data.eq(unit.gap), push.en.eq(drawn)]
        m.d.comb += pull.addr.eq(self._head[:4])
        with m.If(drawn):
            m.d.sync += self._tail.eq(self._tail + 1)
        self.gap, self.next = p.gap, pull.data
        self.fills = draw | self._drawing.any()

    def use(self, gap):
        """Take the first gap of the queue; that before the next error is ``gap``."""
        p = self._p
        self._m.d.sync += [p.gap.eq(gap), self._head.eq(self._head + 1), p.state.eq(xorshift(p.state))]

    def begin(self):
        """What was written since the last tick's start holds from this one's on."""
        m, p = self._m, self._p
        state = Signal(64, name=f"{p.prefix}state_from_now")
        m.d.comb += state.eq(Mux(p.state_written, p.new_state, p.state))
        m.d.sync += [p.redraw.eq(0), p.gap_written.eq(0), p.state_written.eq(0), p.state.eq(state)]
        m.d.sync += self.redraw.eq(p.redraw | (self.redraw & ~p.gap_written))
        with m.If(p.gap_written):
            m.d.sync += p.gap.eq(p.new_gap)
        with m.If(self._s.fresh):
            m.d.sync += [self.enable.eq(p.enable), self._mantissa.eq(p.mantissa), self._shift.eq(p.shift)]
            m.d.sync += [self._ahead.eq(xorshift(state)), self._head.eq(0), self._tail.eq(0), self._drawing.eq(0)]


class _Settings:
    """The registers of a link.

    Attributes
    ----------
    processes : list of _Process
        Of bit errors: one, or one a state.
    bad : Signal or None
        Which of two goes on.
    fresh : Signal
        The errors' settings were written: the next cell is to pass unhurt.
    """

    def __init__(self, bad):
        self.bad = bad
        self.processes = [_Process(prefix) for prefix in ("", "bad_")[: 1 if bad is None else 2]]
        self.delay, self.error_bits, self.fresh = Signal(32, init=1), Signal(32), Signal()

    def now(self, m, slot, name, taken):
        """A member of the process that goes on, while a cell is ``taken``."""
        values = [getattr(p, name) for p in self.processes]
        if self.bad is None:
            return values[0]
        chosen = Signal.like(values[0], name=f"{name}_chosen")
        with slot.only(taken):
            m.d.comb += chosen.eq(_pick(self.bad, values))
        return chosen

    def chosen(self, m):
        """Each process, in a context that holds while it goes on."""
        for k, p in enumerate(self.processes):
            with nullcontext() if self.bad is None else m.If(self.bad == k):
                yield p

    def registers(self, m, csr, wide):
        csr.setting("delay", self.delay)
        for p in self.processes:
            p.registers(m, csr, wide, self.fresh)
