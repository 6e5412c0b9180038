"""The framer: cells and overhead into scrambled words of an STS-Nc."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sim_hints import rarely_changes, usually
from bentpipe_hdl.sonet.bip import FrameParity, fold
from bentpipe_hdl.sonet.geometry import LAST_POINTER
from bentpipe_hdl.sonet.mapper import CellMapper
from bentpipe_hdl.sonet.pointer import PointerGenerator
from bentpipe_hdl.sonet.scrambler import FrameKey
from bentpipe_hdl.sonet.tables import FORCE, FRAMER_SETTINGS

__all__ = ["Framer", "FramerForce"]

FramerForce = data.StructLayout(dict.fromkeys(FORCE, 1))
"""What a framer does wrong on purpose, as long as a bit is set."""


class Framer(wiring.Component):
    """The framer: it maps cells into an SPE, the SPE by its pointer into frames, and scrambles them. One word a clock.

    A byte of row 1 column 1 is on ``line`` one clock after reset. B1, B2 and B3 of the first frame are 0.

    Parameters
    ----------
    geometry : Geometry
    pointer : int
        The offset after reset.

    Members
    -------
    line : Out(8 * width)
        First transmitted byte in the low bits.
    cell, valid, ready
        As in :class:`CellMapper`.
    j0, j1, j0_sent, j1_sent : In(8), Out(1)
        The byte that goes out with the next frame or SPE; ``j0_sent`` and ``j1_sent`` ask for another.
    overhead : In(Struct)
        Overhead that is sent as it is set; C2 is 0x13 for ATM. Multi-byte fields have their first byte in the low bits.
    rei_l : In(8), rei_l_sent : Out(1)
        M1; the strobe tells that this count has been sent.
    rei_p : In(4), rei_p_sent : Out(1)
        The same for G1.
    rdi_l : In(1), rdi_p : In(3)
        Sent in K2 (instead of its low bits) and in G1 bits 5 to 7.
    force : In(FramerForce), hec_mask : In(8)
        Errors on purpose.
    drift, increment, decrement, jump, target, served
        As in :class:`PointerGenerator`.
    moved : Out(1)
        Strobe, after it has decided.
    active : Out(10), positive, negative : Out(1)
        The pointer's offset and what it did in this frame.
    frame : Out(1)
        Strobe, once a frame.
    user, idle : Out(1)
        Strobes: a cell of this kind was mapped.
    """

    def __init__(self, geometry, pointer=522):
        self._geometry = geometry
        self._pointer = pointer
        super().__init__(
            {
                "line": Out(8 * geometry.width),
                "cell": In(416),
                "valid": In(1),
                "ready": Out(1),
                "j0": In(8, init=1),
                "j1": In(8),
                "j0_sent": Out(1),
                "j1_sent": Out(1),
                "overhead": In(data.StructLayout({k: bits for k, (bits, _) in FRAMER_SETTINGS.items()})),
                "rei_l": In(8),
                "rei_l_sent": Out(1),
                "rei_p": In(4),
                "rei_p_sent": Out(1),
                "rdi_l": In(1),
                "rdi_p": In(3),
                "force": In(FramerForce),
                "hec_mask": In(8),
                "drift": In(24),
                "increment": In(1),
                "decrement": In(1),
                "jump": In(1),
                "target": In(10),
                "served": Out(1),
                "moved": Out(1),
                "active": Out(10),
                "positive": Out(1),
                "negative": Out(1),
                "frame": Out(1),
                "user": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g = self._geometry
        width = g.width
        m.submodules.mapper = mapper = CellMapper(g)
        m.submodules.key = key = FrameKey(g)
        m.submodules.parity = parity = FrameParity(g)
        m.submodules.pointer = pointer = PointerGenerator(self._pointer)
        m.d.comb += [
            mapper.cell.eq(self.cell),
            mapper.valid.eq(self.valid),
            mapper.hec_mask.eq(self.hec_mask),
            self.ready.eq(mapper.ready),
            self.user.eq(mapper.user),
            self.idle.eq(mapper.idle),
            pointer.drift.eq(self.drift),
            pointer.increment.eq(self.increment),
            pointer.decrement.eq(self.decrement),
            pointer.jump.eq(self.jump),
            pointer.target.eq(self.target),
            self.served.eq(pointer.served),
            self.active.eq(pointer.active),
            self.positive.eq(pointer.positive),
            self.negative.eq(pointer.negative),
        ]

        # Where the next word of the line is in the frame.
        column = Signal(range(g.row_words))
        row = Signal(4)
        last = usually(Signal())
        toh_word = usually(Signal(init=1))
        for signal in (self.frame, self.j0_sent, self.j1_sent, self.rei_l_sent, self.rei_p_sent, self.moved):
            usually(signal)
        m.d.sync += toh_word.eq(last if g.wide else last | (column + 1 < g.toh_words))
        m.d.sync += last.eq(column == g.row_words - 2)
        m.d.sync += column.eq(column + 1)
        with m.If(last):
            m.d.sync += [column.eq(0), row.eq(Mux(row == 8, 0, row + 1))]

        # The transport overhead of the next row, prepared in the last word of the row before.
        self._transport(m, g, row, last, toh_word, pointer, parity)
        # The SPE, and its words against the frame's columns: the pointer.
        word = (self._wide if g.wide else self._narrow)(m, g, row, column, toh_word, pointer, mapper)

        start = Signal()
        section = Signal()
        out = Signal(8 * width)
        m.d.comb += [section.eq(row < 3), out.eq(word)]
        forced = self.force.as_value().any()
        with m.If(forced):
            with m.If(self.force.ais_l & ~(toh_word & section)):
                m.d.comb += out.eq(~Const(0, 8 * width))
            with m.If(self.force.ais_p & (~toh_word | (row == 3))):
                m.d.comb += out.eq(~Const(0, 8 * width))
        m.d.comb += [
            parity.word.eq(out),
            parity.start.eq(start),
            parity.toh.eq(toh_word),
            parity.section.eq(section),
        ]
        m.d.sync += [self.frame.eq(start), self.line.eq(out ^ key.key)]
        with m.If(toh_word), m.If(row == 0):
            with m.If(column == 0):
                m.d.comb += start.eq(1)
            with m.If(column == g.toh_words - 1):
                m.d.comb += key.preset.eq(1)
            m.d.sync += self.line.eq(out)
        with m.If(forced), m.If(self.force.los):
            m.d.sync += self.line.eq(0)
        return m

    def _transport(self, m, g, row, last, toh_word, pointer, parity):
        n = g.n
        o = self.overhead
        force = self.force

        def group(first, rest=0):
            return Cat(first, Const(int.from_bytes(bytes([rest] * (n - 1)), "little"), 8 * (n - 1)))

        def const_bytes(values):
            return Const(int.from_bytes(bytes(values), "little"), 8 * len(values))

        ids = const_bytes(range(2, n + 1))
        a1 = Const(int.from_bytes(b"\xf6" * n, "little"), 8 * n)
        a1 = Mux(force.framing, ~a1, a1)
        a2 = Const(int.from_bytes(b"\x28" * n, "little"), 8 * n)
        first_row = int.from_bytes(b"\xf6" * n + b"\x28" * n + bytes(range(1, n + 1)), "little")
        toh = self._toh = Signal(24 * n, init=first_row)
        others = Signal(16)
        k2 = Signal(8)
        word = pointer.word
        ss = o.ss
        m.d.comb += [
            others.eq(Cat(Const(0x3FF, 10), ss, Const(0b1001, 4))),
            k2.eq(o.k2),
        ]
        with m.If(self.rdi_l | force.rdi_l):
            m.d.comb += k2[:3].eq(0b110)
        with m.If(toh_word):  # the clock after `last`, and no other strobes then
            m.d.sync += [self.j0_sent.eq(0), self.rei_l_sent.eq(0), self.moved.eq(0)]
        with m.If(last), m.If(row == 0):
            m.d.comb += pointer.prepare.eq(1)
        with m.If(last), m.If(row == 1):
            m.d.comb += pointer.step.eq(1)
        with m.If(last):
            with m.If(row == 1):
                m.d.sync += self.moved.eq(1)
            with m.Switch(row):
                with m.Case(8):
                    m.d.sync += [toh.eq(Cat(a1, a2, self.j0, ids)), self.j0_sent.eq(1)]
                with m.Case(0):
                    b1 = parity.b1 ^ force.b1.replicate(8)
                    m.d.sync += toh.eq(Cat(group(b1), group(o.e1), group(o.f1)))
                with m.Case(1):
                    m.d.sync += toh.eq(Cat(*(group(o.dcc1[i : i + 8]) for i in (0, 8, 16))))
                with m.Case(2):
                    first = Cat(word[:10], ss, word[12:] ^ force.pointer.replicate(4))
                    with m.If(force.concatenation):
                        m.d.comb += others.eq(first)
                    words = [first, *[others] * (n - 1)]
                    m.d.sync += toh.eq(Cat(*(w[8:] for w in words), *(w[:8] for w in words), Const(0, 8 * n)))
                with m.Case(3):
                    b2 = parity.b2 ^ force.b2.replicate(8 * n)
                    m.d.sync += toh.eq(Cat(b2, group(o.k1), group(k2)))
                with m.Case(7):
                    m1 = Cat(Const(0, 16), self.rei_l, Const(0, 8 * (n - 3)))
                    m.d.sync += toh.eq(Cat(group(o.s1), m1, group(o.e2)))
                    m.d.sync += self.rei_l_sent.eq(1)
                for k, dcc in zip((4, 5, 6), (o.dcc2, o.dcc3, o.dcc4), strict=True):
                    with m.Case(k):
                        m.d.sync += toh.eq(Cat(*(group(dcc[i : i + 8]) for i in (0, 8, 16))))
        if not g.wide:
            with m.Elif(toh_word):
                m.d.sync += toh.eq(toh[8 * g.width :])

    def _wide_spe(self, m, g, fetch, restart, unit, mapper):
        """Make the words of the SPE, one in the clock after each ``fetch``.

        With ``restart`` a new SPE begins with a unit of that word, and the part of the old SPE before it is kept: J1
        may be in any unit of a word.
        """
        o = self.overhead
        n, width, stuff = g.n, g.width, g.stuff_bytes
        column = Signal(range(g.spe_words), init=1)
        row = Signal(4)
        at = Signal(2)  # the unit of a row's first word that begins with path overhead
        parity = Signal(8 * width)
        b3 = Signal(8)
        fresh = Signal(8 * width)
        spe = Signal(8 * width)
        # The path overhead of the next row is chosen while the row before it is on its way.
        prepared = Signal(8)
        old = Signal()  # a row of the old SPE begins in this word
        m.d.comb += old.eq((column == 0) & (~restart | (at < unit)))
        m.d.sync += [self.j1_sent.eq(0), self.rei_p_sent.eq(0)]

        def insert(*places):
            """Insert path overhead and stuff before units of the payload, given as pairs of a unit and a byte."""
            parts, used = [], 0
            for count, (k, byte) in enumerate(places):
                parts += [mapper.word[8 * used : 8 * (n * k - stuff * count)], byte, Const(0, 8 * (stuff - 1))]
                used = n * k - stuff * count
            return fresh.eq(Cat(*parts, mapper.word[8 * used :])[: 8 * width])

        with m.If(fetch):
            m.d.sync += [spe.eq(fresh), parity.eq(parity ^ fresh), column.eq(column + 1)]
            m.d.comb += [fresh.eq(mapper.word), mapper.pull.eq(1)]
            with m.If(column == g.spe_words - 1):
                m.d.sync += [column.eq(0), row.eq(Mux(row == 8, 0, row + 1))]
            with m.If(column == 1):
                g1 = Cat(Const(0, 1), self.rdi_p, self.rei_p)
                path = (b3 ^ self.force.b3.replicate(8), o.c2, g1, o.f2, o.h4, o.z3, o.z4, o.n1, self.j1)
                with m.Switch(row):
                    for k, value in enumerate(path):
                        with m.Case(k):
                            m.d.sync += prepared.eq(value)
            with m.If(old):
                m.d.comb += mapper.short.eq(1)
                with m.If(row == 3):
                    m.d.sync += self.rei_p_sent.eq(1)
                with m.Switch(at):
                    for k in range(3):
                        with m.Case(k):
                            m.d.comb += insert((k, prepared))
                            with m.If(row == 0):
                                m.d.sync += [parity.eq(fresh[8 * n * k :]), b3.eq(fold(parity ^ fresh[: 8 * n * k]))]
                                m.d.sync += self.j1_sent.eq(1)
            with m.If(restart):
                m.d.sync += [column.eq(1), row.eq(0), at.eq(unit), self.j1_sent.eq(1)]
                m.d.comb += mapper.short.eq(1)
                with m.Switch(unit):
                    for k in range(3):
                        with m.Case(k):
                            m.d.comb += insert((k, self.j1))
                            m.d.sync += [parity.eq(fresh[8 * n * k :]), b3.eq(fold(parity ^ fresh[: 8 * n * k]))]
                            for first in range(k):
                                with m.If(old & (at == first)):
                                    m.d.comb += [insert((first, prepared), (k, self.j1)), mapper.short.eq(2)]
                                    with m.If(row == 0):  # the old SPE is all within this word
                                        m.d.sync += b3.eq(fold(fresh[8 * n * first : 8 * n * k]))
        return spe

    def _narrow_spe(self, m, g, fetch, restart, mapper):
        """Make the words of the SPE, one in the clock after each ``fetch``, and the one with J1 after ``restart``.

        Flags hold the place of the next word in the SPE.
        """
        o = self.overhead
        bits = 8 * g.width
        column = Signal(range(g.spe_words), init=1)
        row = Signal(4)
        at_byte, at_second, at_end = Signal(), Signal(init=1), Signal()  # first, second and last column
        at_overhead = Signal(init=g.poh_words > 1)  # path overhead or fixed stuff
        parity, b3, prepared = Signal(bits), Signal(8), Signal(8)
        fresh, spe = Signal(bits), Signal(bits)
        with m.If(restart):
            m.d.comb += fresh.eq(self.j1)
        with m.Elif(at_byte):
            m.d.comb += fresh.eq(prepared)
        with m.Elif(~at_overhead):
            m.d.comb += [fresh.eq(mapper.word), mapper.pull.eq(fetch)]
        m.d.sync += [self.j1_sent.eq(0), self.rei_p_sent.eq(0)]
        with m.If(fetch | restart):
            m.d.sync += [
                spe.eq(fresh),
                parity.eq(parity ^ fresh),
                column.eq(column + 1),
                at_byte.eq(at_end),
                at_second.eq(at_byte),
                at_overhead.eq(at_end | (column < g.poh_words - 1)),
                at_end.eq(column == g.spe_words - 2),
            ]
            with m.If(at_end):
                m.d.sync += [column.eq(0), row.eq(Mux(row == 8, 0, row + 1))]
            with m.If(restart):
                m.d.sync += [
                    column.eq(1),
                    row.eq(0),
                    at_byte.eq(0),
                    at_second.eq(1),
                    at_overhead.eq(g.poh_words > 1),
                    at_end.eq(0),
                ]
            with m.If(restart | (at_byte & (row == 0))):
                m.d.sync += [parity.eq(fresh), b3.eq(fold(parity)), self.j1_sent.eq(1)]
            with m.Elif(at_byte & (row == 3)):
                m.d.sync += self.rei_p_sent.eq(1)
            with m.Elif(at_second):  # of the next row
                g1 = Cat(Const(0, 1), self.rdi_p, self.rei_p)
                path = (b3 ^ self.force.b3.replicate(8), o.c2, g1, o.f2, o.h4, o.z3, o.z4, o.n1, self.j1)
                with m.Switch(row):
                    for k, value in enumerate(path):
                        with m.Case(k):
                            m.d.sync += prepared.eq(value)
        return spe

    def _wide(self, m, g, row, column, toh_word, pointer, mapper):
        """Make a frame in words of 3N bytes."""
        n, width = g.n, g.width
        toh = self._toh
        word = Signal(8 * width)
        first_row = row == 3
        into_h3 = Signal()
        hold = Signal(16 * n)  # units of the SPE's last word that are still to be sent
        held = Signal(2)
        stuff = rarely_changes(Signal())  # the word begins with a unit of stuff
        # A new SPE begins after so many more units of the old one, from the word that is fetched next on.
        fetch, restart, unit = Signal(), Signal(), Signal(2)
        waiting = rarely_changes(Signal(init=1))  # for the first SPE, too
        left = Signal(10, init=(self._pointer - 522) % (LAST_POINTER + 1))
        spe = self._wide_spe(m, g, fetch, restart, unit, mapper)
        empty = rarely_changes(Signal(init=1))  # there is no SPE's word yet
        with m.If(empty):
            m.d.comb += fetch.eq(1)
            m.d.sync += empty.eq(0)
        with m.If(waiting & fetch):
            with m.If(left < 3):
                m.d.comb += [restart.eq(1), unit.eq(left)]
                m.d.sync += waiting.eq(0)
            with m.Else():
                m.d.sync += left.eq(left - 3)
        with m.If(pointer.jumping), m.If((row == 2) & (column == g.row_words - 3)):  # the next word fetched is the last
            m.d.sync += [waiting.eq(1), left.eq(pointer.active + 3 - held)]
        with m.If(toh_word):
            m.d.comb += word.eq(toh)
            m.d.comb += into_h3.eq(pointer.negative & first_row)
            m.d.sync += stuff.eq(pointer.positive & first_row)
            with m.If(into_h3):
                with m.If(held == 0):
                    m.d.comb += [word.eq(Cat(toh[: 16 * n], spe[: 8 * n])), fetch.eq(1)]
                    m.d.sync += [hold.eq(spe[8 * n :]), held.eq(2)]
                with m.Else():
                    m.d.comb += word.eq(Cat(toh[: 16 * n], hold[: 8 * n]))
                    m.d.sync += [hold.eq(hold[8 * n :]), held.eq(held - 1)]
        with m.Elif(stuff):
            none = Const(0, 8 * n)
            m.d.sync += stuff.eq(0)
            with m.Switch(held):
                with m.Case(0):
                    m.d.comb += [word.eq(Cat(none, spe[: 16 * n])), fetch.eq(1)]
                    m.d.sync += [hold.eq(spe[16 * n :]), held.eq(1)]
                with m.Case(1):
                    m.d.comb += [word.eq(Cat(none, hold[: 8 * n], spe[: 8 * n])), fetch.eq(1)]
                    m.d.sync += [hold.eq(spe[8 * n :]), held.eq(2)]
                with m.Default():
                    m.d.comb += word.eq(Cat(none, hold))
                    m.d.sync += held.eq(0)
        with m.Else():
            m.d.comb += fetch.eq(1)
            with m.Switch(held):
                with m.Case(0):
                    m.d.comb += word.eq(spe)
                with m.Case(1):
                    m.d.comb += word.eq(Cat(hold[: 8 * n], spe[: 16 * n]))
                    m.d.sync += hold.eq(spe[16 * n :])
                with m.Default():
                    m.d.comb += word.eq(Cat(hold, spe[: 8 * n]))
                    m.d.sync += hold.eq(spe[8 * n :])
        return word

    def _narrow(self, m, g, row, column, toh_word, pointer, mapper):
        """Make a frame in words of N/3 bytes or less; ``fetch`` and ``restart`` are decided a clock ahead."""
        width, words = g.width, g.words_per_unit
        toh = self._toh
        word = Signal(8 * width)
        unit = Signal(10, init=522)  # of the next word outside the overhead, counted from H3
        sub = Signal(range(words))  # word within a unit
        ends = Signal()  # with this word a unit ends
        first_row = row == 3
        # A new SPE's first word is fetched while the last word of the unit before its place is sent.
        at_once = self._pointer == 522  # the place is the frame's first one outside the overhead
        fetch, restart = Signal(), Signal(init=at_once)
        waiting = rarely_changes(Signal(init=not at_once))  # for the first SPE, too
        before = Signal(10, init=(self._pointer - 1) % (LAST_POINTER + 1))
        here = Signal()
        spe = self._narrow_spe(m, g, fetch, restart, mapper)
        m.d.comb += ends.eq(sub == words - 1)
        with m.If(fetch):
            m.d.comb += word.eq(spe)
        with m.Elif(toh_word):
            m.d.comb += word.eq(toh[: 8 * width])
        with m.If(~toh_word):
            m.d.sync += [sub.eq(Mux(ends, 0, sub + 1)), unit.eq(unit + ends)]
        m.d.sync += fetch.eq(1)
        with m.If((column < g.toh_words - 1) | (column == g.row_words - 1)):  # overhead follows
            h3_follows = (column >= 2 * words - 1) & (column < 3 * words - 1)
            m.d.sync += fetch.eq(pointer.negative & first_row & h3_follows)
        with m.Elif(pointer.positive & first_row & (column < 4 * words - 1)):
            m.d.sync += fetch.eq(0)
        # A unit is three words or more: the comparison is a clock old and still true.
        m.d.sync += [here.eq(unit == before), restart.eq(0)]
        with m.If(waiting & here & (sub == words - 2)):
            m.d.sync += [restart.eq(1), waiting.eq(0)]
        with m.If(row == 2):
            with m.If(column == g.row_words - words - 1):  # unit 782 follows
                with m.If(pointer.jumping):
                    m.d.sync += [before.eq(Mux(pointer.active == 0, LAST_POINTER, pointer.active - 1)), waiting.eq(1)]
            with m.If(column == g.row_words - 1):
                m.d.sync += unit.eq(0)
        return word
