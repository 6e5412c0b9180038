"""The payload pattern on a board: a generator that continues an SDU, a checker that recognises the continuation, and a
memory of records that a cell can be withdrawn from.

The pattern is that of :mod:`bentpipe_sim.pattern`: words of 64 bits, each of them the word before plus a constant. So
the last 16 octets of the pattern give all octets that follow. Neither part knows the key or the offset of a stream, and
neither multiplies. An SDU crosses the bridge as its first cells, and the rest is continued. The checker withholds a
cell only if all its octets continue the octets before it. So the host knows all octets of an SDU, whatever they are.

The *place* of an octet is its index in its word of the pattern, 0 to 7. It is the same for the first octet of each cell
of an SDU, as a cell has six words.
"""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CellRecords", "PatternChecker", "PatternGenerator", "continued", "place_after"]

_GOLDEN = tuple(0x9E3779B97F4A7C15.to_bytes(8, "little"))
"""Octets by which each word exceeds the word before."""
_WORDS = 12
"""Words of 32 bits in a cell."""
_FIRST = 2
"""The clock, after that in which a cell begins, of its first word."""
_DONE = _FIRST + _WORDS
_SAMPLE = 8
"""The word of a cell whose first octet shows the place, beside the octet eight before."""
COUNT_BITS = 11


def continued(before, carry, place):
    """Return four octets, and the carry from them, given the four octets eight places before.

    Parameters
    ----------
    before : Value(32)
    carry : Value(1)
        From the addition of the four octets before; of no effect at place 0.
    place : Value(3)
        Place of the first of the four octets.

    Returns
    -------
    tuple
        The octets as a word, the first one lowest; the carry.
    """
    added = Array(
        Const(sum(_GOLDEN[(first + k) % 8] << 8 * k for k in range(4)), 32) for first in range(8)
    )[place]  # fmt: skip
    # A bit behind each octet leads its carry on, or ends it behind place 7
    left, right = [Const(1, 1)], [carry & (place != 0)]
    for k in range(4):
        left += [before[8 * k : 8 * k + 8], place != 7 - k]
        right += [added[8 * k : 8 * k + 8], Const(0, 1)]
    total = Cat(left) + Cat(right)
    return Cat(total[1 + 9 * k : 9 + 9 * k] for k in range(4)), total[37]


def place_after(octet, before):
    """Return whether an octet may continue the one eight before it, and its place if it does.

    The octets of the constant differ by more than a carry, so an octet's increase is possible at one place alone.
    """
    increase = (octet - before)[:8]
    hits = [(increase == step) | (increase == step + 1) for step in _GOLDEN]
    return Cat(hits).any(), Cat(Cat(hit for k, hit in enumerate(hits) if k >> bit & 1).any() for bit in range(3))


class PatternGenerator(wiring.Component):
    """The generator of payload: it passes on the cells that are given, and makes those behind them.

    A cell may be made if the cell before it on its VC ended with 16 octets of the pattern at least. That cell was given
    or made. Cells of VCs may be interleaved; a cell takes 15 clocks.

    Parameters
    ----------
    vcs : int

    Members
    -------
    begin : In(1)
        A cell begins; the next three are valid in this clock.
    vc, place : In(range(vcs)), In(3)
        Its VC, and the place of its first octet.
    given : In(1)
        It is given.
    given_word : In(32)
        Its words, from the clock after ``begin`` on.
    word, word_valid : Out(32), Out(1)
        Twelve words, from the second clock after ``begin`` on.
    """

    def __init__(self, *, vcs):
        self.vcs = vcs
        super().__init__(
            {
                "begin": In(1),
                "vc": In(range(vcs)),
                "place": In(3),
                "given": In(1),
                "given_word": In(32),
                "word": Out(32),
                "word_valid": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # Of each VC the last two words that went, the first of them with the carry behind both
        m.submodules.rows = rows = memory.Memory(
            shape=33, depth=2 * self.vcs, init=[], attrs={"ram_style": "block", "no_rw_check": 1}
        )
        put, get = rows.write_port(), rows.read_port(domain="sync")
        vc, place, given = Signal.like(self.vc), Signal(3), Signal()
        clock = Signal(range(_DONE + 2))  # since `begin`; 0: no cell
        m.d.sync += clock.eq(Mux(self.begin, 1, Mux((clock == 0) | (clock == _DONE + 1), 0, clock + 1)))
        with m.If(self.begin):
            m.d.sync += [vc.eq(self.vc), place.eq(self.place), given.eq(self.given)]
        given_word, last, before, carry = Signal(32), Signal(32), Signal(32), Signal()
        made, made_carry = continued(before, carry, place ^ (clock[0] << 2))
        m.d.comb += [
            get.addr.eq(Cat(~self.begin, Mux(self.begin, self.vc, vc))),
            self.word.eq(Mux(given, given_word, made)),
            self.word_valid.eq((clock >= _FIRST) & (clock < _DONE)),
            put.en.eq(clock >= _DONE),
            put.addr.eq(Cat(clock == _DONE + 1, vc)),
            put.data.eq(Mux(clock == _DONE, Cat(before, carry), last)),
        ]
        m.d.sync += given_word.eq(self.given_word)
        with m.If(clock == 1):
            m.d.sync += Cat(before, carry).eq(get.data)
        with m.Elif(self.word_valid):
            m.d.sync += [before.eq(Mux(clock == _FIRST, get.data, last)), last.eq(self.word), carry.eq(made_carry)]
        return m


class PatternChecker(wiring.Component):
    """The checker of payload: it tells for each cell whether all its octets continue those before it.

    A cell is withheld if it does, and is neither the first nor the last of its SDU. The place is found anew in each
    cell, from the increase of one octet. If that octet has the increase by chance, the next cell does not continue and
    so is not withheld. Cells of VCs may be interleaved; a cell takes 17 clocks.

    Parameters
    ----------
    vcs : int

    Members
    -------
    valid, word, vc : In(1), In(32), In(range(vcs))
        The twelve words of a cell, one in each clock.
    first : In(1)
        With the first word: it is the first cell of an SDU.
    last : In(1)
        With the last word: it is the last one.
    done : Out(1)
        The cell has been checked, 14 clocks after its first word; the members below are valid.
    withheld : Out(1)
    done_vc : Out(range(vcs))
    place, count : Out(3), Out(11)
        So many cells directly before this one were withheld, and this is the place of their first octets.
    """

    def __init__(self, *, vcs):
        self.vcs = vcs
        super().__init__(
            {
                "valid": In(1),
                "word": In(32),
                "vc": In(range(vcs)),
                "first": In(1),
                "last": In(1),
                "done": Out(1),
                "withheld": Out(1),
                "done_vc": Out(range(vcs)),
                "place": Out(3),
                "count": Out(COUNT_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # Of each VC: its last two words; place and carry with the first, whether there is a place with the second; then
        # the number of cells that were withheld
        m.submodules.rows = rows = memory.Memory(
            shape=36, depth=4 * self.vcs, init=[], attrs={"ram_style": "block", "no_rw_check": 1}
        )
        put, get = rows.write_port(), rows.read_port(domain="sync")
        clock = Signal(range(_DONE + 3))  # since a cell's first word; 0: no cell
        begins, first, last, knows, finds = Signal(), Signal(), Signal(), Signal(), Signal()
        word, checked, former, before = (Signal(32, name=n) for n in ("came", "checked", "former", "before"))
        place, carry, wrong = Signal(3), Signal(), Signal(4)
        m.d.comb += begins.eq(self.valid & (clock == 0))
        m.d.sync += clock.eq(Mux(clock == 0, begins, Mux(clock == _DONE + 2, 0, clock + 1)))
        with m.If(begins):
            m.d.sync += [self.done_vc.eq(self.vc), first.eq(self.first)]
        with m.If(self.valid):
            m.d.sync += last.eq(self.last)
        goes = Signal()
        m.d.comb += goes.eq((clock >= _FIRST) & (clock < _DONE))
        m.d.sync += [word.eq(self.word), checked.eq(word)]

        made, made_carry = continued(before, carry, place ^ (clock[0] << 2))
        found, found_place = place_after(checked[:8], before[:8])
        with m.If(clock == 1):
            m.d.sync += [Cat(before, place, carry).eq(get.data), self.place.eq(get.data[32:35]), wrong.eq(0)]
        with m.Elif(goes):
            m.d.sync += [former.eq(checked), before.eq(former), carry.eq(made_carry)]
            m.d.sync += wrong.eq(wrong | Cat((made ^ checked).word_select(k, 8).any() for k in range(4)))
        with m.If(clock == _FIRST):
            m.d.sync += [Cat(before, knows).eq(get.data), finds.eq(0)]
        with m.If(clock == _FIRST + 1):
            m.d.sync += self.count.eq(Mux(first, 0, get.data))
        # What a cell that continues shows is the place that it has
        with m.If((clock == _FIRST + _SAMPLE) & found):
            m.d.sync += [finds.eq(1), place.eq(found_place)]
        m.d.comb += [
            get.addr.eq(Mux(clock == 0, Cat(Const(0, 2), self.vc), Cat(clock[:2], self.done_vc))),
            self.done.eq(clock == _DONE),
            self.withheld.eq(knows & ~wrong.any() & ~first & ~last),
            put.en.eq(clock >= _DONE),
            put.addr.eq(Cat((clock - _DONE)[:2], self.done_vc)),
        ]
        with m.Switch(clock):
            with m.Case(_DONE):
                m.d.comb += put.data.eq(Cat(before, place, carry))
            with m.Case(_DONE + 1):
                m.d.comb += put.data.eq(Cat(former, finds))
            with m.Default():
                m.d.comb += put.data.eq(Mux(self.withheld, self.count + 1, 0))
        return m


class CellRecords(wiring.Component):
    """The memory of a host port's records: words in order, among them cells that are kept or withdrawn when they end.

    Parameters
    ----------
    words : int
        A power of two.

    Members
    -------
    put, word : In(1), In(32)
        A word is added.
    begin : In(1)
        A cell begins: a place is left free for its head. Until it ends, only its words are added.
    end, keeps, head : In(1), In(1), In(32)
        The cell ends. It is kept, and this is its head; or it is withdrawn.
    level : Out
        Words to be read.
    r_data, r_en : Out(32), In(1)
        The first of them; take it. The next one is there in the second clock after ``r_en``.
    lost : Out(1)
        A word, or a head's place, was not added: the memory is full.
    """

    def __init__(self, *, words):
        self.words = words
        super().__init__(
            {
                "put": In(1),
                "word": In(32),
                "begin": In(1),
                "end": In(1),
                "keeps": In(1),
                "head": In(32),
                "level": Out(range(words + 1)),
                "r_data": Out(32),
                "r_en": In(1),
                "lost": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = memory.Memory(shape=32, depth=self.words, init=[], attrs={"no_rw_check": 1})
        put, get = words.write_port(), words.read_port(domain="sync")
        bits = self.words.bit_length()  # one more than of an address, to tell full from empty
        write, kept, read, used = (Signal(bits, name=n) for n in ("write", "kept", "read", "used"))
        going, adds, full = Signal(), Signal(), Signal()
        m.d.comb += [
            used.eq(write - read),
            full.eq(used == self.words),
            adds.eq(self.put | self.begin),
            self.lost.eq(adds & full),
            put.addr.eq(Mux(self.end, kept, write)),
            put.data.eq(Mux(self.end, self.head, self.word)),
            put.en.eq((self.put & ~full) | (self.end & self.keeps)),
            self.level.eq(kept - read),
            get.addr.eq(read),
            self.r_data.eq(get.data),
        ]
        with m.If(adds & ~full):
            m.d.sync += write.eq(write + 1)
            with m.If(~going & ~self.begin):
                m.d.sync += kept.eq(write + 1)
        with m.If(self.begin):
            m.d.sync += going.eq(1)
        with m.If(self.end):
            m.d.sync += going.eq(0)
            with m.If(self.keeps):
                m.d.sync += kept.eq(write)
            with m.Else():
                m.d.sync += write.eq(kept)
        with m.If(self.r_en & (self.level != 0)):
            m.d.sync += read.eq(read + 1)
        return m
