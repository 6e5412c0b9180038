"""The deframer: words of a line into overhead, alarms and cells."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sim_hints import rarely_changes, usually
from bentpipe_hdl.sonet.align import Aligner
from bentpipe_hdl.sonet.bip import FrameParity, fold, ones, total
from bentpipe_hdl.sonet.delineation import State
from bentpipe_hdl.sonet.demapper import CellDemapper
from bentpipe_hdl.sonet.pointer import ConcatenationIndicator, PathState, PointerInterpreter, PointerState
from bentpipe_hdl.sonet.scrambler import FrameKey
from bentpipe_hdl.sonet.tables import RECEIVED

__all__ = ["Deframer"]


class Deframer(wiring.Component):
    """The deframer: it aligns, descrambles, checks the parities, follows the pointer, and takes the cells out of the
    SPE.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    line : In(8 * width), signal : In(1)
        As in :class:`Aligner`.
    cell : Out(416), valid : Out(1), hec_error : Out(1), corrected : Out(1), idle : Out(1)
        As in :class:`CellDemapper`.
    received : Out(Struct)
        The overhead as it came last. Multi-byte fields have their first byte in the low bits.
    row : Out(4), row_strobe : Out(1)
        A row's transport overhead is in ``received``.
    path_row : Out(4), path_strobe : Out(1)
        The same for the path overhead.
    parity_strobe, b3_strobe, b1_errors, b2_errors, b3_errors : Out
        With ``parity_strobe``, ``parity_strobe`` and ``b3_strobe``: bit errors of the frame or SPE before.
    sef, lof, los, in_frame : Out(1)
        As in :class:`Aligner`.
    path_ais, lop : Out(1)
        The path's state, of its pointer and its concatenation indicators.
    positive, negative, new_pointer, ndf : Out(1)
        Strobes of the pointer interpreter.
    pointer_strobe : Out(1), early : Out(1)
        Strobe: the pointer has been interpreted; the first words of a row, in which that happens.
    pointer : Out(10)
        The offset that holds.
    state : Out(State)
        Of cell delineation.
    stop : In(1)
        There is no path (a defect of the line): no cells.
    """

    def __init__(self, geometry):
        self._geometry = geometry
        n = geometry.n
        super().__init__(
            {
                "line": In(8 * geometry.width),
                "signal": In(1, init=1),
                "cell": Out(416),
                "valid": Out(1),
                "hec_error": Out(1),
                "corrected": Out(1),
                "idle": Out(1),
                "received": Out(data.StructLayout(RECEIVED)),
                "row": Out(4),
                "row_strobe": Out(1),
                "path_row": Out(4),
                "path_strobe": Out(1),
                "parity_strobe": Out(1),
                "b1_errors": Out(4),
                "b2_errors": Out(range(8 * n + 1)),
                "b3_strobe": Out(1),
                "b3_errors": Out(4),
                "sef": Out(1),
                "lof": Out(1),
                "los": Out(1),
                "in_frame": Out(1),
                "path_ais": Out(1),
                "lop": Out(1, init=1),
                "early": Out(1),
                "pointer_strobe": Out(1),
                "positive": Out(1),
                "negative": Out(1),
                "new_pointer": Out(1),
                "ndf": Out(1),
                "pointer": Out(10),
                "state": Out(State),
                "stop": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g = self._geometry
        bits = 8 * g.width
        m.submodules.aligner = aligner = Aligner(g)
        m.submodules.key = key = FrameKey(g)
        m.submodules.parity = parity = FrameParity(g)
        m.submodules.interpreter = interpreter = PointerInterpreter()
        m.submodules.path = path = PathState(g.n)
        m.submodules.demapper = demapper = CellDemapper(g)
        m.d.comb += [
            aligner.line.eq(self.line),
            aligner.signal.eq(self.signal),
            self.sef.eq(aligner.sef),
            self.lof.eq(aligner.lof),
            self.los.eq(aligner.los),
            self.in_frame.eq(aligner.in_frame),
            self.cell.eq(demapper.cell),
            self.valid.eq(demapper.valid),
            self.hec_error.eq(demapper.hec_error),
            self.corrected.eq(demapper.corrected),
            self.idle.eq(demapper.idle),
            self.state.eq(demapper.state),
            self.pointer.eq(interpreter.active),
            self.path_ais.eq(path.state == PointerState.AIS),
            self.lop.eq(path.state == PointerState.LOP),
        ]

        # Descrambled words and their place.
        word = Signal(bits)
        row = Signal(4)
        column = Signal(range(g.row_words))
        with m.If(aligner.column == g.toh_words - 1), m.If(aligner.row == 0):
            m.d.comb += key.preset.eq(1)
        plain = Signal()  # a word that is not scrambled
        with m.If(aligner.column < g.toh_words), m.If(aligner.row == 0):
            m.d.comb += plain.eq(1)
        with m.If(plain):
            m.d.sync += word.eq(aligner.word)
        with m.Else():
            m.d.sync += word.eq(aligner.word ^ key.key)
        m.d.sync += [row.eq(aligner.row), column.eq(aligner.column)]
        toh_word = usually(Signal())
        # A row's first words: until its overhead has been looked at, and the parities of row 4 have been counted.
        with m.If(aligner.column < g.toh_words):
            m.d.sync += [toh_word.eq(1), self.early.eq(1)]
        with m.Elif(self.early):
            m.d.sync += toh_word.eq(0)
            words = Mux(aligner.row == 4, 7, 2) if g.wide else 7
            with m.If(aligner.column >= g.toh_words + words):
                m.d.sync += self.early.eq(0)
        for signal in (
            self.early, self.row_strobe, self.parity_strobe, self.pointer_strobe, self.path_strobe, self.b3_strobe,
        ):  # fmt: skip
            usually(signal)
        for signal in (self.positive, self.negative, self.new_pointer, self.ndf):
            rarely_changes(signal)
        m.d.comb += [
            parity.word.eq(word),
            parity.start.eq((row == 0) & (column == 0)),
            parity.toh.eq(toh_word),
            parity.section.eq(row < 3),
        ]

        toh = self._transport(m, g, word, row, column, toh_word, parity)
        self._pointer(m, g, toh, row, column, interpreter, path)
        self._path(m, g, toh, word, row, column, toh_word, interpreter, path, demapper, aligner)
        return m

    def _transport(self, m, g, word, row, column, toh_word, parity):
        """Collect a row's transport overhead and put it out in the clock of ``row_strobe``."""
        n = g.n
        received = self.received
        toh = Signal(24 * n)
        with m.If(toh_word):
            m.d.sync += toh.eq(Cat(toh, word)[-24 * n :])
        full = usually(Signal())  # `toh` is complete
        lead = [toh[8 * n * k : 8 * n * k + 8] for k in range(3)]
        b1, b2 = Signal(8), Signal(8 * n)
        counting = usually(Signal())
        first = Signal()  # a whole frame has been seen in frame
        taken = {  # row: what is taken from it
            0: [received.j0.eq(lead[2])],
            1: [received.e1.eq(lead[1]), received.f1.eq(lead[2]), b1.eq(lead[0] ^ parity.b1)],
            2: [received.dcc1.eq(Cat(lead))],
            4: [
                received.k1.eq(lead[1]),
                received.k2.eq(lead[2]),
                b2.eq(toh[: 8 * n] ^ parity.b2),
                counting.eq(1),
            ],
            5: [received.dcc2.eq(Cat(lead))],
            6: [received.dcc3.eq(Cat(lead))],
            7: [received.dcc4.eq(Cat(lead))],
            8: [
                received.s1.eq(lead[0]),
                received.m1.eq(toh[8 * (n + 2) : 8 * (n + 3)]),
                received.e2.eq(lead[2]),
                first.eq(self.in_frame),
            ],
        }
        with m.If(self.early):  # a new alignment begins there, too
            m.d.sync += full.eq(column == g.toh_words - 1)
            m.d.sync += [self.row_strobe.eq(0), self.parity_strobe.eq(0), counting.eq(0)]
            with m.If(full):
                m.d.sync += [self.row.eq(row), self.row_strobe.eq(1)]
                if g.wide:
                    with m.Switch(row):
                        for k, values in taken.items():
                            with m.Case(k):
                                m.d.sync += values
        if not g.wide:
            for k, values in taken.items():
                full_row = Signal(name=f"full{k}")
                m.d.sync += full_row.eq((column == g.toh_words - 1) & (row == k))
                with m.If(full_row):
                    m.d.sync += values
        # The ones of B2 in three steps: a byte, eight bytes, all.
        some = [Signal(4, name=f"ones{k}") for k in range(n + 1)]
        more = [Signal(7, name=f"sum{k}") for k in range(-(-n // 8))]
        second = usually(Signal())
        third = usually(Signal())
        with m.If(self.early):
            m.d.sync += [second.eq(counting & first & self.in_frame), third.eq(second)]
            with m.If(counting):
                m.d.sync += [some[k].eq(ones(b2[8 * k : 8 * k + 8])) for k in range(n)]
                m.d.sync += some[n].eq(ones(b1))
            with m.If(second):
                m.d.sync += [more[k].eq(total(some[:n][8 * k : 8 * k + 8])) for k in range(len(more))]
            with m.If(third):
                m.d.sync += [self.b1_errors.eq(some[n]), self.b2_errors.eq(total(more)), self.parity_strobe.eq(1)]
        return toh

    def _pointer(self, m, g, toh, row, column, interpreter, path):
        n = g.n
        indicators = [ConcatenationIndicator() for _ in range(n - 1)]
        for k, indicator in enumerate(indicators, 1):
            m.submodules[f"indicator{k}"] = indicator
            m.d.comb += [indicator.strobe.eq(path.strobe), path.states[k].eq(indicator.following)]
        at = 0 if g.wide else n // g.width  # word that has H2
        strobe, missed = usually(Signal()), usually(Signal())
        have = strobe if g.wide else Signal()
        no_line = self.los | self.lof
        with m.If(self.early):
            there = (row == 3) & (column == at)
            m.d.sync += [have.eq(there & (self.in_frame | no_line)), missed.eq(there & (~self.in_frame | no_line))]
        late_missed = missed
        if not g.wide:
            late_missed = usually(Signal())
            with m.If(self.early):
                m.d.sync += late_missed.eq(missed)
        m.d.comb += [interpreter.strobe.eq(strobe), interpreter.missed.eq(late_missed)]
        m.d.comb += [indicator.missed.eq(late_missed) for indicator in indicators]
        if g.wide:
            m.d.comb += [path.strobe.eq(strobe), path.states[0].eq(interpreter.following)]
            with m.If(strobe):
                words = Signal(16 * n)  # all H1, then all H2
                m.d.comb += words.eq(toh[: 16 * n])
                with m.If(no_line):
                    m.d.comb += words.eq(~Const(0, 16 * n))
                pairs = [(words[8 * k : 8 * k + 8], words[8 * (n + k) : 8 * (n + k + 1)]) for k in range(n)]
                m.d.comb += interpreter.word.eq(Cat(*reversed(pairs[0])))
                for indicator, pair in zip(indicators, pairs[1:], strict=True):
                    m.d.comb += Cat(indicator.conc, indicator.ais).eq(Cat(*indicator.classify(*pair)))
        else:  # toh is a shift register: the newest word is on top; its H1 and H2 are kept for a clock
            h2 = toh[-8 * g.width :][:8]
            h1 = toh[-8 * g.width - 8 * n :][:8]
            kept = Signal(16)
            m.d.comb += interpreter.word.eq(kept)
            with m.If(self.early):
                m.d.sync += strobe.eq(have)
                with m.If(have):
                    m.d.sync += kept.eq(Mux(no_line, 0xFFFF, Cat(h2, h1)))
            # When all H2 are there, those of the others: a clock for what they are and one for their states. That is a
            # clock or more before the SPE goes on.
            all_there = Signal()
            pairs = [(toh[8 * (n + k) :][:8], toh[8 * (2 * n + k) :][:8]) for k in range(1, n)]
            m.d.comb += path.states[0].eq(interpreter.state)
            with m.If(self.early):
                m.d.sync += [
                    all_there.eq((row == 3) & (column == 2 * n // g.width - 1) & (self.in_frame | no_line)),
                    path.strobe.eq(all_there),
                ]
                with m.If(all_there):
                    for indicator, pair in zip(indicators, pairs, strict=True):
                        conc, ais = indicator.classify(*pair)
                        m.d.sync += [indicator.conc.eq(conc & ~no_line), indicator.ais.eq(ais | no_line)]
        with m.If(strobe):
            m.d.sync += [
                self.pointer_strobe.eq(1),
                self.positive.eq(interpreter.positive),
                self.negative.eq(interpreter.negative),
                self.new_pointer.eq(interpreter.jump),
                self.ndf.eq(interpreter.flagged),
            ]
        with m.Elif(self.pointer_strobe):
            m.d.sync += [
                self.pointer_strobe.eq(0),
                self.positive.eq(0),
                self.negative.eq(0),
                self.new_pointer.eq(0),
                self.ndf.eq(0),
            ]

    def _path(self, m, g, toh, word, row, column, toh_word, interpreter, path, demapper, aligner):
        """Cut the SPE out of the frame, one word later than the overhead."""
        n, width = g.n, g.width
        bits = 8 * width
        norm = path.state == PointerState.NORM
        late = Signal(bits)
        late_toh = usually(Signal())
        m.d.sync += [late.eq(word), late_toh.eq(toh_word)]
        unit = Signal(10)  # of `late`, counted from H3
        with m.If(interpreter.strobe):
            m.d.sync += unit.eq(0)

        # Words of the SPE, as they come. A row of it begins with a narrow word, and with any unit of a wide one, always
        # the same; where a new SPE cuts off the old one, rows of both may begin in one word.
        spe = Signal(bits)
        valid = Signal()
        edge, spe_row = Signal(), Signal(4)  # of `spe`: a row begins in it, the first of them
        cut = Signal()  # the SPE that begins here cut off the one before
        next_row = Signal(4)
        next_column = Signal(range(g.spe_words))
        emit = Signal()
        begin, as_expected = Signal(), Signal()  # an SPE begins in the emitted word; where the one before ends
        coming = usually(Signal())  # an SPE begins in the next word to be emitted (wide words)
        m.d.sync += valid.eq(emit)
        with m.If(emit):
            m.d.sync += [next_column.eq(next_column + 1), edge.eq((next_column == 0) | begin)]
            with m.If(next_column == 0):
                m.d.sync += [spe_row.eq(next_row), cut.eq(0)]
            with m.If(next_column == g.spe_words - 1):
                m.d.sync += [next_column.eq(0), next_row.eq(Mux(next_row == 8, 0, next_row + 1))]

        # The SPE's place is known from the next J1 after H1 and H2 that confirm the pointer: after a new alignment, and
        # after frames that were out of frame or without a line.
        located, placed = rarely_changes(Signal(), 1), rarely_changes(Signal(), 1)
        whole = Signal()  # the sum of the SPE's words began with a J1
        with m.If(begin):
            m.d.sync += [placed.eq(1), next_row.eq(0), next_column.eq(1), cut.eq(~as_expected)]
        with m.If(self.early), m.If(~norm | ~interpreter.sure | ~self.in_frame):  # as of the frame before at the strobe
            m.d.sync += [located.eq(0), placed.eq(0), whole.eq(0), coming.eq(0)]
        with m.If(path.strobe & (interpreter.confirmed if g.wide else interpreter.sure)):
            m.d.sync += located.eq(1)
        with m.If(aligner.found):
            m.d.sync += [located.eq(0), placed.eq(0), whole.eq(0), coming.eq(0)]

        active = interpreter.active
        if g.wide:
            hold = Signal(16 * n)
            held = Signal(2)
            at, coming_at = Signal(2), Signal(2)  # the unit with which rows begin; with which that SPE begins
            now = Signal()  # J1 is in the word that is emitted with the one that came
            spe_rows = Signal(3)  # of `spe`: units with which a row begins
            skip = rarely_changes(Signal())  # the first unit of the word is stuff
            with m.If(coming & emit):  # another one may follow at once, see below
                m.d.sync += coming.eq(0)
            with m.If(interpreter.strobe):
                m.d.sync += skip.eq(interpreter.positive)
                # H3 in a negative movement; the interpreter's answer is for this very word
                with m.If(interpreter.negative):
                    h3 = late[16 * n :]
                    m.d.sync += held.eq(held + 1)
                    with m.Switch(held):
                        with m.Case(0):
                            m.d.sync += hold[: 8 * n].eq(h3)
                        with m.Case(1):
                            m.d.sync += hold[8 * n :].eq(h3)
                        with m.Default():
                            m.d.comb += emit.eq(1)
                            m.d.sync += [held.eq(0), spe.eq(Cat(hold, h3))]
            with m.If(~late_toh):
                m.d.sync += unit.eq(unit + 3)
                with m.If(skip):  # two units
                    m.d.sync += skip.eq(0)
                    with m.Switch(held):
                        with m.Case(0):
                            m.d.sync += [hold.eq(late[8 * n :]), held.eq(2)]
                        with m.Case(1):
                            m.d.comb += emit.eq(1)
                            m.d.sync += [spe.eq(Cat(hold[: 8 * n], late[8 * n :])), held.eq(0)]
                        with m.Default():
                            m.d.comb += emit.eq(1)
                            m.d.sync += [
                                spe.eq(Cat(hold, late[8 * n : 16 * n])),
                                hold[: 8 * n].eq(late[16 * n :]),
                                held.eq(1),
                            ]
                with m.Else():
                    m.d.comb += emit.eq(1)
                    with m.Switch(held):
                        with m.Case(0):
                            m.d.sync += spe.eq(late)
                        with m.Case(1):
                            m.d.sync += [
                                spe.eq(Cat(hold[: 8 * n], late[: 16 * n])),
                                hold[: 8 * n].eq(late[16 * n :]),
                            ]
                        with m.Default():
                            m.d.sync += [spe.eq(Cat(hold, late[: 8 * n])), hold.eq(late[8 * n :])]
                # J1 is so many units behind the word's first one, and so many behind those that are to be emitted.
                ahead, behind = Signal(10), Signal(3)
                m.d.comb += [ahead.eq(active - unit), behind.eq(held + ahead[:2] - skip)]
                with m.If((ahead < 3) & located & ~(skip & (ahead == 0))):
                    with m.If((behind < 3) & ~(skip & (held == 0))):
                        m.d.comb += now.eq(1)
                    with m.Else():
                        m.d.sync += [coming.eq(1), coming_at.eq(Mux(behind < 3, behind, behind - 3))]
            # Units of the emitted word in which an SPE, and in which any row of one, begins.
            starts, rows = Signal(3), Signal(3)
            with m.If(coming & emit):
                m.d.comb += starts.bit_select(coming_at, 1).eq(1)
            with m.If(now):
                m.d.comb += starts.bit_select(behind[:2], 1).eq(1)
            m.d.comb += [begin.eq(starts != 0), rows.eq(starts)]
            with m.If(next_column == 0):  # of the old SPE, in front of a new one
                with m.Switch(at):
                    for k in range(3):
                        with m.Case(k):
                            m.d.comb += as_expected.eq((next_row == 0) & (starts == 1 << k))
                            with m.If(starts[: k + 1] == 0):
                                m.d.comb += rows[k].eq(1)
            with m.If(emit):
                m.d.sync += spe_rows.eq(rows)
            with m.If(begin):
                with m.If((next_column != 0) | ((starts | rows) == starts)):
                    m.d.sync += spe_row.eq(0)
                m.d.sync += at.eq(Mux(starts[2], 2, starts[1]))
        else:
            stuffed = Signal()  # the unit after H3 in this row is stuff
            from_h3 = Signal()
            payload = Signal()  # `spe` is neither path overhead nor stuff
            with m.If(interpreter.strobe):
                m.d.sync += [stuffed.eq(interpreter.positive), from_h3.eq(interpreter.negative)]
            words = g.words_per_unit
            sub = Signal(range(max(2, words)))
            in_h3, near_h3 = Signal(), Signal()  # of `late`
            m.d.sync += [
                in_h3.eq(toh_word & (row == 3) & (column >= 2 * words)),
                near_h3.eq((row == 3) & (column < 4 * words)),
            ]
            none = near_h3 & stuffed
            with m.If(late_toh):
                m.d.comb += emit.eq(in_h3 & from_h3)
            with m.Else():
                m.d.comb += emit.eq(~none)
                m.d.sync += sub.eq(sub + 1)
                with m.If(sub == words - 1):
                    m.d.sync += [sub.eq(0), unit.eq(unit + 1)]
                m.d.comb += [
                    begin.eq(located & (unit == active) & (sub == 0) & ~none),
                    as_expected.eq((next_row == 0) & (next_column == 0)),
                ]
            with m.If(interpreter.strobe):
                m.d.sync += sub.eq(0)
            with m.If(emit):
                m.d.sync += [spe.eq(late), payload.eq((next_column >= g.poh_words) & ~begin)]
            with m.If(begin):
                m.d.sync += spe_row.eq(0)

        # B3 and the path overhead.
        received = self.received
        sum_ = Signal(bits)
        b3 = Signal(8)
        b3_bad = Signal(8)
        known = Signal()
        counting = usually(Signal())
        after = usually(Signal(2))  # the clocks after a row's first word
        with m.If(after != 0):
            m.d.sync += [self.path_strobe.eq(0), self.b3_strobe.eq(0), counting.eq(0), after.eq(after - 1)]
            with m.If(counting):
                m.d.sync += [self.b3_errors.eq(ones(b3_bad)), self.b3_strobe.eq(1)]
        byte, front, back = Signal(8), Signal(bits), Signal(bits)  # the row's first byte; in front of it, from it on
        m.d.comb += [byte.eq(spe[:8]), back.eq(spe), demapper.word.eq(spe)]
        with m.If(valid):
            m.d.sync += sum_.eq(sum_ ^ spe)
            with m.If(edge):
                m.d.sync += [self.path_row.eq(spe_row), self.path_strobe.eq(placed), after.eq(Mux(spe_row == 1, 2, 1))]
                with m.Switch(spe_row):
                    with m.Case(0):
                        m.d.sync += [
                            received.j1.eq(byte),
                            sum_.eq(back),
                            b3.eq(fold(sum_ ^ front)),
                            known.eq(whole & ~cut),
                            whole.eq(placed),
                        ]
                    with m.Case(1):
                        m.d.sync += [b3_bad.eq(byte ^ b3), counting.eq(known & placed)]
                    for k, name in {2: "c2", 3: "g1", 4: "f2", 5: "h4", 6: "z3", 7: "z4", 8: "n1"}.items():
                        with m.Case(k):
                            m.d.sync += received[name].eq(byte)

        m.d.comb += demapper.lost.eq(~placed | self.stop | aligner.dark)
        if g.wide:
            m.d.comb += demapper.push.eq(valid & placed)
            self._rows_of_a_word(m, g, spe, spe_rows, valid & edge, demapper, byte, front, back)
            # The second row that begins in a word is that of a new SPE: its J1 follows a clock later.
            two = Signal()
            later, later_byte = usually(Signal()), Signal(8)
            m.d.comb += two.eq(spe_rows & (spe_rows - 1) != 0)
            with m.If(valid & edge & two):
                m.d.sync += [later.eq(1), sum_.eq(back), known.eq(0), whole.eq(placed)]
                m.d.sync += later_byte.eq(Mux(spe_rows[2], spe[16 * n :][:8], spe[8 * n :][:8]))
            with m.If(later):
                m.d.sync += [later.eq(0), self.path_row.eq(0), self.path_strobe.eq(placed), received.j1.eq(later_byte)]
                m.d.sync += after.eq(Mux(after == 2, 2, 1))
        else:
            m.d.comb += demapper.push.eq(valid & placed & payload)

    def _rows_of_a_word(self, m, g, spe, rows, edge, demapper, byte, front, back):
        """Take the path overhead out of a wide word."""
        n, width, stuff = g.n, g.width, g.stuff_bytes
        with m.If(edge), m.Switch(rows):
            for which in range(1, 8):
                places = [k for k in range(3) if which >> k & 1]
                first, last = places[0], places[-1]
                with m.Case(which):
                    parts, used = [], 0
                    for k in places:
                        parts.append(spe[8 * used : 8 * n * k])
                        used = n * k + stuff
                    none = Const(0, 8 * stuff * len(places))
                    m.d.comb += [
                        byte.eq(spe[8 * n * first :][:8]),
                        front.eq(spe[: 8 * n * first]),
                        back.eq(Cat(Const(0, 8 * n * last), spe[8 * n * last :])),
                        demapper.word.eq(Cat(none, *parts, spe[8 * used :])[: 8 * width]),
                        demapper.short.eq(len(places)),
                    ]
