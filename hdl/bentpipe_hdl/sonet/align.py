"""Frame search and alignment, SEF, LOF and LOS (GR-253 clause 6.2.1.1)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sim_hints import rarely_changes

__all__ = ["LOF_FRAMES", "LOS_PER_SECOND", "SEF_FRAMES", "Aligner", "dark_bytes", "dark_words", "los_words"]

SEF_FRAMES = 4
"""Consecutive errored framing patterns that lead out of frame."""

LOF_FRAMES = 24
"""3 ms of frames, to declare LOF and to clear it."""

LOS_PER_SECOND = 50_000
"""Zeros for 1/50000 s, 20 us, are a loss of signal."""

DARK_BYTES = 8
"""Zero bytes in a row that the scrambler makes impossible in practice (2**-64): cells stop at once."""


def dark_words(geometry):
    """Return the number of words of zeros, of at least ``DARK_BYTES`` together, that stop cells."""
    return -(-DARK_BYTES // geometry.width)


def dark_bytes(geometry):
    """Return the number of zero bytes, wherever in a word they begin, that stop cells: 0.9 us at most."""
    return (dark_words(geometry) + 1) * geometry.width - 1


def los_words(geometry):
    """Return the number of words of zeros that declare LOS: 20 us, rounded up."""
    return -(-geometry.words_per_second // LOS_PER_SECOND)


class _State(enum.Enum, shape=unsigned(2)):
    HUNT = 0
    CHECK = 1
    FRAME = 2


class Aligner(wiring.Component):
    """The frame aligner: it finds A1A1A1A2A2A2 at any bit offset, and puts out words that begin where frames begin.

    Latency 1 clock, plus the alignment's shift of up to one word.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    line : In(8 * width)
        First received byte in the low bits, first bit of a byte on top; frames may begin at any bit.
    signal : In(1)
        The line's receiver sees a signal; low means LOS.
    word : Out(8 * width), row : Out(4), column : Out(range(row_words))
        An aligned word, still scrambled, and its place.
    in_frame : Out(1), sef : Out(1), lof : Out(1), los : Out(1)
        SEF goes after two good patterns in a row, the first of which may be the one that was found.
    dark : Out(1)
        Zeros so long that they cannot be data, from the clock after the last of ``dark_words`` of them on.
    found : Out(1)
        Strobe: a new alignment.
    """

    def __init__(self, geometry):
        self._geometry = geometry
        super().__init__(
            {
                "line": In(8 * geometry.width),
                "signal": In(1, init=1),
                "word": Out(8 * geometry.width),
                "row": Out(4),
                "column": Out(range(geometry.row_words)),
                "in_frame": Out(1),
                "sef": Out(1, init=1),
                "lof": Out(1),
                "los": Out(1),
                "dark": Out(1),
                "found": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g = self._geometry
        n, width = g.n, g.width
        bits = 8 * width
        words = -(-(width + n + 3) // width)  # words from a frame's first bit to the pattern's end, at any offset
        search_bytes = words * width - (n - 3)
        size = max(search_bytes, 2 * width)

        older = Signal(8 * (size - width))
        window = Signal(8 * size)
        m.d.comb += window.eq(Cat(older, self.line))
        m.d.sync += older.eq(window[bits:])

        # Data path: `width` + 1 bytes from the shift on, then the shift within bytes.
        by_bytes = rarely_changes(Signal(range(width)))  # of a line that begins at a byte, as in a simulation
        by_bits = rarely_changes(Signal(3))
        span = Signal(8 * (width + 1))
        aligned = Signal(bits)
        two = Cat(window[-2 * bits :])
        offset = Cat(Const(0, 3), by_bytes)
        if width > 1:
            with m.If(by_bytes == 0):
                m.d.comb += span.eq(two[: 8 * width + 8])
            with m.Else():
                m.d.comb += span.eq(two.bit_select(offset, 8 * width + 8))
        else:
            m.d.comb += span.eq(two)
        with m.If(by_bits == 0):
            m.d.comb += aligned.eq(span[:bits])
        with m.Else():
            for k in range(width):
                pair = Cat(span[8 * k + 8 : 8 * k + 16], span[8 * k : 8 * k + 8])
                m.d.comb += aligned[8 * k : 8 * k + 8].eq(pair.bit_select((-by_bits)[:3], 8))
        m.d.sync += self.word.eq(aligned)

        last = Signal()
        m.d.comb += last.eq(self.column == g.row_words - 1)
        m.d.sync += self.column.eq(self.column + 1)
        with m.If(last):
            m.d.sync += [self.column.eq(0), self.row.eq(Mux(self.row == 8, 0, self.row + 1))]

        # The pattern, where it should be.
        pattern = bytes([0xF6] * n + [0x28] * n)
        last_word = (n + 2) // width
        so_far = Signal()
        match, checking = Signal(), Signal()
        state = rarely_changes(Signal(_State), _State.FRAME.value)
        for signal in (self.lof, self.los, self.dark):
            rarely_changes(signal)
        bad = Signal(range(SEF_FRAMES))
        once = Signal()  # one good pattern since the last loss
        m.d.comb += [self.in_frame.eq(state == _State.FRAME), self.sef.eq(~self.in_frame)]
        with m.If(self.row == 0):
            for k in range((n - 3) // width, last_word + 1):
                with m.If(self.column == k):
                    lo, hi = max(n - 3, k * width), min(n + 3, (k + 1) * width)
                    wanted = Const(int.from_bytes(pattern[lo:hi], "little"), 8 * (hi - lo))
                    here = self.word[8 * (lo - k * width) : 8 * (hi - k * width)] == wanted
                    first = k == (n - 3) // width
                    m.d.comb += match.eq(here if first else here & so_far)
                    m.d.sync += so_far.eq(match)
            with m.If(self.column == last_word):
                m.d.comb += checking.eq(1)
        looked, fits = checking, match
        if not g.wide:  # a clock later
            looked, fits = Signal(), Signal()
            m.d.sync += [looked.eq(checking & ~self.found), fits.eq(match)]
        with m.If(looked):
            m.d.sync += once.eq(fits)
            with m.If(fits & once):
                m.d.sync += self.los.eq(0)
            with m.If(state == _State.CHECK):
                m.d.sync += [state.eq(Mux(fits, _State.FRAME, _State.HUNT)), bad.eq(0)]
            with m.If(self.in_frame):
                with m.If(fits):
                    m.d.sync += bad.eq(0)
                with m.Else():
                    m.d.sync += bad.eq(bad + 1)
                    with m.If(bad == SEF_FRAMES - 1):
                        m.d.sync += state.eq(_State.HUNT)

        # Search
        hits = rarely_changes(Signal(bits))
        with m.If(state == _State.HUNT):
            tail = window[-8 * search_bytes :]
            order = Signal(8 * search_bytes)  # bits as they came
            m.d.comb += order.eq(Cat(tail[8 * (i // 8) + 7 - i % 8] for i in range(8 * search_bytes)))
            key = int.from_bytes(b"\xf6\xf6\xf6\x28\x28\x28", "big")
            terms = []
            for j in range(48):
                piece = order[j : j + bits]
                terms.append(piece if key >> (47 - j) & 1 else ~piece)
            while len(terms) > 1:
                terms = [terms[i] & terms[i + 1] if i + 1 < len(terms) else terms[i] for i in range(0, len(terms), 2)]
            m.d.sync += hits.eq(terms[0])
            with m.If(hits.any()):
                m.d.comb += self.found.eq(1)
                which = Signal(range(bits))
                m.d.comb += which.eq(_first_one(hits))
                m.d.sync += [
                    by_bits.eq(which[:3]),
                    by_bytes.eq(which[3:]),
                    self.column.eq(words - 1),
                    self.row.eq(0),
                    state.eq(_State.CHECK),
                    once.eq(1),
                    hits.eq(0),
                ]

        # LOF: time out of frame is added up; time in frame counts only without a gap.
        out_frames = Signal(range(LOF_FRAMES + 1))
        in_frames = Signal(range(LOF_FRAMES + 1))
        with m.If(last), m.If(self.row == 8):
            with m.If(self.in_frame):
                with m.If(in_frames == LOF_FRAMES - 1):
                    m.d.sync += [self.lof.eq(0), out_frames.eq(0)]
                with m.Else():
                    m.d.sync += in_frames.eq(in_frames + 1)
            with m.Else():
                m.d.sync += in_frames.eq(0)
                with m.If(out_frames == LOF_FRAMES - 1):
                    m.d.sync += self.lof.eq(1)
                with m.Else():
                    m.d.sync += out_frames.eq(out_frames + 1)

        # LOS
        limit = los_words(g)
        run = rarely_changes(Signal(range(limit + 1)))
        with m.If((self.line == 0) | ~self.signal):
            with m.If(run != limit):
                m.d.sync += run.eq(run + 1)
            with m.If((run == limit) | ~self.signal):
                m.d.sync += [self.los.eq(1), once.eq(0)]
            m.d.sync += self.dark.eq(run >= dark_words(g) - 1)
        with m.Elif(run != 0):
            with m.If(run == limit):
                m.d.sync += [self.los.eq(1), once.eq(0)]
            m.d.sync += [run.eq(0), self.dark.eq(0)]
        return m


def _first_one(value):
    """Return the index of the only, or of some, one in ``value``."""
    size = len(value)
    count = (size - 1).bit_length()
    masks = [sum(1 << i for i in range(size) if i >> b & 1) for b in range(count)]
    return Cat((value & mask).any() for mask in masks)
