"""Wires with delay between nodes, and the arbiter of the cells that wait at the inputs of a node."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.records import RECORD_WORDS, RecordSignature
from bentpipe_hdl.aal5.crc32 import POLYNOMIAL
from bentpipe_hdl.cell import NARROW, NEVER, TIME_BITS, WORDS_A_CELL, CellSignature

__all__ = ["STAMP_BITS", "Inputs", "LongWire", "Wire"]

STAMP_BITS = 8
"""Low bits of an arrival's tick: no cell waits longer at an input."""


def _wire_members():
    return {
        "i": In(CellSignature(NARROW)),
        "end": In(TIME_BITS),
        "tick": In(1),
        "now": In(TIME_BITS),
        "following": In(TIME_BITS),
        "delay": In(31),
        "sends": In(1),
        "o": Out(CellSignature(NARROW)),
        "offers": Out(1),
        "stamp": Out(STAMP_BITS),
        "more": Out(1),
        "take": In(1),
        "due": Out(TIME_BITS),
        "check": Out(32),
        "lost": Out(16),
        "late": Out(16),
    }


class Wire(wiring.Component):
    """A wire with delay: it keeps the cells of an output until they arrive.

    A cell arrives ``delay`` ticks after its last bit was sent, or after the tick in which it was given. The wire is
    also the delay memory of a link.

    A cell is offered from its tick on, and given in the tick that begins with ``time.tick`` and ``take``, from the
    second clock after on. It comes in the tick after the one in which it was given to the wire at the earliest.

    Parameters
    ----------
    cells : int
        A power of two from 4 on; it holds one cell less.

    Members
    -------
    i : In(CellSignature)
    end : In(48)
        With the cell's header: the tick in which its last bit leaves.
    tick, now, following : In
    delay, sends : In(31), In(1)
    o : Out(CellSignature)
    offers, stamp, more : Out(1), Out(8), Out(1)
        A cell has arrived; in which tick, its low bits; and another one behind it.
    take : In(1)
    due : Out(48)
        The tick of the first cell; ``NEVER`` if there is none.
    check : Out(32)
        Signature of all cells, of these words of each: header, payload, the tick's lower 32 bits, ``hec_error << 16``
        with the tick's upper bits. For each word the register is multiplied by x modulo the generator of AAL5's
        CRC-32, and the word is added: a multiple-input signature register. A CRC-32 would be five times as large.
    lost, late : Out(16)
        Cells that found the wire full, and that should have come in the tick in which they were given; wrap.
    """

    def __init__(self, *, cells):
        if cells not in [1 << k for k in range(2, 18)]:
            raise ValueError(f"cells must be a power of two from 4 to 131072, not {cells!r}")
        self.cells = cells
        super().__init__(_wire_members())

    def elaborate(self, platform):
        m = Module()
        m.submodules.begin = begin = _Begin()
        m.submodules.end = end = _End(cells=self.cells)
        _join(m, self, begin, end)
        m.d.comb += [
            begin.full.eq(end.full),
            end.word.eq(begin.word),
            end.place.eq(begin.place),
            end.puts.eq(begin.puts),
            end.given_due.eq(begin.due),
            end.puts_due.eq(begin.puts_due),
            end.whole.eq(begin.whole),
        ]
        return m


class LongWire(wiring.Component):
    """A wire whose cells are in an external memory, except for the first few.

    Such a memory is slow: while ``holds`` is high no tick may begin and none may be skipped. So the wire behaves as
    :class:`Wire` at any clock.

    Parameters
    ----------
    cells : int
        Cells that the wire holds, a power of two.

    Members
    -------
    fifo : Out(RecordSignature)
        A cell is a record: header, payload, due tick, in whose upper word bit 16 is a HEC error.
    holds : Out(1)
        The memory is not ready for the next tick.

    The others are those of :class:`Wire`.
    """

    def __init__(self, *, cells):
        self.cells = cells
        super().__init__({**_wire_members(), "fifo": Out(RecordSignature()), "holds": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.begin = begin = _Begin()
        m.submodules.end = end = _End(cells=4)
        _join(m, self, begin, end)
        fifo = self.fifo
        held, begins, moved = Signal(range(self.cells + 1)), Signal(), Signal()
        m.d.comb += [
            begins.eq(begin.puts & (begin.place == 0)),
            begin.full.eq((held == self.cells) | ~fifo.room),
        ]
        m.d.sync += held.eq(held + begins - moved)

        # In: the due tick goes behind the cell
        tail = Signal(3)
        m.d.sync += tail.eq(Cat(begin.whole, tail[:-1]))
        m.d.comb += [
            fifo.put.eq(begin.puts | tail.any()),
            fifo.put_word.eq(Mux(tail[0], begin.due[:32], Mux(tail[1], begin.due[32:], Mux(tail[2], 0, begin.word)))),
        ]

        # Out: a record goes to the memory at the end; the word that is asked for comes a clock later
        moves, at, came, low = Signal(), Signal(range(RECORD_WORDS)), Signal(range(RECORD_WORDS + 1)), Signal(32)
        m.d.sync += came.eq(RECORD_WORDS)
        m.d.comb += [
            fifo.at.eq(at),
            end.word.eq(fifo.word),
            end.place.eq(came),
            end.puts.eq(came < WORDS_A_CELL),
            end.given_due.eq(Cat(low, fifo.word)),
            end.puts_due.eq(came == WORDS_A_CELL + 1),
            end.whole.eq(end.puts_due),
            fifo.take.eq(end.puts_due),
            moved.eq(end.puts_due),
        ]
        with m.If(came == WORDS_A_CELL):
            m.d.sync += low.eq(fifo.word)
        pause = Signal()  # the next record may be there two clocks after the last one was taken
        m.d.sync += pause.eq(end.puts_due)
        with m.If(moves):
            m.d.sync += [came.eq(at), at.eq(at + 1)]
            with m.If(at == WORDS_A_CELL + 1):
                m.d.sync += moves.eq(0)
        with m.Elif(fifo.waits & ~end.full & (came == RECORD_WORDS) & ~pause):
            m.d.sync += [moves.eq(1), at.eq(0)]

        m.d.sync += self.holds.eq(((held != 0) & ~end.knows) | end.fetches | ~fifo.room)
        return m


def _join(m, wire, begin, end):
    """Connect the members that every wire has to its beginning and its end."""
    for name in ("i", "o"):
        of = begin if name == "i" else end
        for member in getattr(wire, name).signature.members:
            outer, inner = getattr(getattr(wire, name), member), getattr(getattr(of, name), member)
            m.d.comb += inner.eq(outer) if name == "i" else outer.eq(inner)
    for part, taken, given in (
        (begin, ("end", "now", "delay", "sends"), ("check", "lost", "late")),
        (end, ("tick", "following", "take"), ("offers", "stamp", "more", "due")),
    ):
        m.d.comb += [getattr(part, name).eq(getattr(wire, name)) for name in taken]
        m.d.comb += [getattr(wire, name).eq(getattr(part, name)) for name in given]


class _Begin(wiring.Component):
    """The beginning of a wire: it computes when each cell is due, and counts cells.

    Members
    -------
    i, end, now, delay, sends, check, lost, late
        As for :class:`Wire`.
    full : In(1)
        Valid with a cell's header: there is no room for the cell.
    word, place, puts : Out(32), Out(4), Out(1)
        A word of a cell that is kept, its index in the cell, and whether there is one.
    due, puts_due : Out(49), Out(1)
        The tick at which the cell is due, and in the top bit whether its header had an error. Valid from ``puts_due``,
        some clocks after the header, until the next cell.
    whole : Out(1)
        High with the last word of a cell that is kept.
    """

    def __init__(self):
        taken = ("i", "end", "now", "delay", "sends", "check", "lost", "late")
        members = _wire_members()
        super().__init__(
            {name: members[name] for name in taken}
            | {
                "full": In(1),
                "word": Out(32),
                "place": Out(range(WORDS_A_CELL)),
                "puts": Out(1),
                "due": Out(TIME_BITS + 1),
                "puts_due": Out(1),
                "whole": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        start = self.i.valid & self.i.soc
        place, keeps = Signal(4), Signal()
        end, given, hec = Signal(TIME_BITS), Signal(TIME_BITS), Signal()
        sent, due = Signal(TIME_BITS), Signal(TIME_BITS)
        stage, closing = Signal(4), Signal()
        m.d.comb += [
            self.word.eq(self.i.word),
            self.place.eq(Mux(self.i.soc, 0, place)),
            self.puts.eq(self.i.valid & Mux(self.i.soc, ~self.full, keeps)),
            self.due.eq(Cat(due, hec)),
            self.puts_due.eq(stage[3] & keeps),
            closing.eq(self.i.valid & ~self.i.soc & (place == WORDS_A_CELL - 1)),
            self.whole.eq(closing & keeps),
        ]
        with m.If(self.i.valid):
            m.d.sync += place.eq(Mux(self.i.soc, 1, place + 1))
        m.d.sync += stage.eq(Cat(start, stage[:-1]))
        with m.If(start):
            m.d.sync += [end.eq(Mux(self.sends, self.end, self.now)), given.eq(self.now), hec.eq(self.i.hec_error)]
            m.d.sync += keeps.eq(~self.full)
            with m.If(self.full):
                m.d.sync += self.lost.eq(self.lost + 1)
        ahead = Signal(TIME_BITS)
        m.d.comb += ahead.eq(end - given)
        with m.If(stage[0]):
            m.d.sync += sent.eq(Mux(ahead[-1], given, end))
        with m.If(stage[1]):
            m.d.sync += due.eq(sent + self.delay)
        with m.If(stage[3] & keeps & (due == given)):
            m.d.sync += self.late.eq(self.late + 1)

        # The signature goes on for two clocks behind the cell
        word, adds, tail = Signal(32), Signal(), Signal(2)
        m.d.sync += [
            word.eq(Mux(tail[0], given[:32], Mux(tail[1], Cat(given[32:], hec), self.i.word))),
            adds.eq(self.i.valid | tail.any()),
            tail.eq(Cat(closing, tail[0])),
        ]
        with m.If(adds):
            m.d.sync += self.check.eq(_signature(self.check, word))
        return m


def _signature(register, word):
    """Return the register one word later: that of a multiple-input signature register."""
    return (register << 1)[:32] ^ word ^ Mux(register[31], POLYNOMIAL, 0)


class _End(wiring.Component):
    """The end of a wire: its cells in block memory until they are taken.

    Parameters
    ----------
    cells : int
        Places for cells, a power of two; one of them stays free.

    Members
    -------
    tick, following, o, offers, stamp, more, take, due
        As for :class:`Wire`.
    word, place, puts, given_due, puts_due, whole : In
        As for :class:`_Begin`; a cell's tick is written before its last word, or with it.
    full : Out(1)
    knows, fetches : Out(1)
        The due ticks of the first two cells are known; one of them is being read.
    """

    def __init__(self, *, cells):
        self.cells = cells
        taken = ("tick", "following", "o", "offers", "stamp", "more", "take", "due")
        members = _wire_members()
        super().__init__(
            {name: members[name] for name in taken}
            | {
                "word": In(32),
                "place": In(4),
                "puts": In(1),
                "given_due": In(TIME_BITS + 1),
                "puts_due": In(1),
                "whole": In(1),
                "full": Out(1),
                "knows": Out(1),
                "fetches": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.cells.bit_length() - 1
        # No row is used that is read while it is written. Block memory also for the few rows of ticks: a network on a
        # board needs more LUTs than block memories, and memories of LUTs are hard to route
        m.submodules.words = words = memory.Memory(shape=32, depth=16 * self.cells, init=[], attrs={"no_rw_check": 1})
        m.submodules.dues = dues = memory.Memory(
            shape=TIME_BITS + 1, depth=self.cells, init=[], attrs={"ram_style": "block", "no_rw_check": 1}
        )
        put, get = words.write_port(), words.read_port(domain="sync")
        put_due, get_due = dues.write_port(), dues.read_port(domain="sync")
        write, fetched, read = Signal(bits), Signal(bits), Signal(bits)
        m.d.comb += [
            self.full.eq((write + 1)[:bits] == read),
            put.addr.eq(Cat(self.place, write)),
            put.data.eq(self.word),
            put.en.eq(self.puts),
            put_due.addr.eq(write),
            put_due.data.eq(self.given_due),
            put_due.en.eq(self.puts_due),
        ]
        # `write` moves on when all words are in: the next cell's header comes later
        with m.If(self.whole):
            m.d.sync += write.eq(write + 1)

        # The dues of the first two cells, in registers
        first, second = (Signal(TIME_BITS + 1, name=n) for n in ("first", "second"))
        has_first, has_second, waits = Signal(), Signal(), Signal(2)
        m.d.comb += [
            get_due.addr.eq(fetched),
            self.knows.eq(has_first & has_second),
            self.fetches.eq((fetched != write) & ~self.knows),
        ]
        gives = Signal()
        m.d.comb += gives.eq(self.tick & self.take)
        with m.If(gives):
            m.d.sync += [first.eq(second), has_first.eq(has_second), has_second.eq(0), waits.eq(0)]
        with m.Elif(waits == 0), m.If(self.fetches):
            m.d.sync += waits.eq(1)
        with m.Elif(waits == 1):
            m.d.sync += waits.eq(2)
        with m.Else():
            m.d.sync += [waits.eq(0), fetched.eq(fetched + 1)]
            with m.If(has_first):
                m.d.sync += [second.eq(get_due.data), has_second.eq(1)]
            with m.Else():
                m.d.sync += [first.eq(get_due.data), has_first.eq(1)]
        until_first, until_second = (Signal(TIME_BITS, name=n) for n in ("until_first", "until_second"))
        m.d.sync += [
            until_first.eq(first - self.following),
            until_second.eq(second - self.following),
            self.offers.eq(has_first & (until_first[-1] | (until_first == 0))),
            self.more.eq(has_second & (until_second[-1] | (until_second == 0))),
            self.due.eq(Mux(has_first, first[:TIME_BITS], NEVER)),
        ]
        m.d.comb += self.stamp.eq(first[:STAMP_BITS])

        # Out: the port has the header while the cell waits
        going, step, cell, bad = Signal(), Signal(4), Signal(bits), Signal()
        m.d.comb += get.addr.eq(Mux(going, Cat(step, cell), Cat(Const(0, 4), read)))
        m.d.sync += [  # a block memory's output is late in its clock, and the way to the node is long
            self.o.valid.eq(going),
            self.o.soc.eq(going & (step == 1)),
            self.o.word.eq(get.data),
            self.o.hec_error.eq(bad),
        ]
        with m.If(gives):
            m.d.sync += [going.eq(1), step.eq(1), cell.eq(read), bad.eq(first[-1]), read.eq(read + 1)]
        with m.Elif(going):
            m.d.sync += step.eq(step + 1)
            with m.If(step == WORDS_A_CELL):
                m.d.sync += going.eq(0)
        return m


class Inputs(wiring.Component):
    """The arbiter of the wires that lead to a node: the first cell to arrive is next; simultaneous ones take turns.

    It decides before the tick, by the state of some clocks ago.

    Members
    -------
    offers, more : In(ports)
    stamps : In(8 * ports)
    following : In(8)
    tick : In(1)
    port : Out(range(ports))
        With ``takes``: the port whose cell is taken with the tick.
    takes : Out(1)
    """

    def __init__(self, *, ports):
        self.ports = ports
        super().__init__(
            {
                "offers": In(ports),
                "more": In(ports),
                "stamps": In(STAMP_BITS * ports),
                "following": In(STAMP_BITS),
                "tick": In(1),
                "port": Out(range(ports)),
                "takes": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        n = self.ports
        if n == 1:
            m.d.sync += self.takes.eq(self.offers)
            return m
        ages = [Signal(STAMP_BITS, name=f"age{p}") for p in range(n)]
        for p, age in enumerate(ages):
            stamp = self.stamps.word_select(p, STAMP_BITS)
            m.d.sync += age.eq(Mux(self.offers[p], self.following - stamp, 0))
        # Which are the oldest
        offers, oldest = Signal(n), Signal(n)
        m.d.sync += offers.eq(self.offers)
        for p in range(n):
            older = [offers[q] & (ages[q] > ages[p]) for q in range(n) if q != p]
            m.d.sync += oldest[p].eq(offers[p] & ~Cat(older).any())
        # Of these the first from `turn` on
        turn, chosen = Signal(range(n)), Signal(n)
        behind = Signal(n)
        m.d.comb += behind.eq(oldest & (Const((1 << n) - 1, n) << turn)[:n])
        which = Mux(behind.any(), behind, oldest)
        m.d.sync += [chosen.eq(which & (~which + 1)), self.takes.eq(oldest.any())]
        for p in range(n):
            with m.If(chosen[p]):
                m.d.comb += self.port.eq(p)
        waits = Signal()
        m.d.sync += waits.eq((self.offers & ~chosen).any() | (self.more & chosen).any())
        with m.If(self.tick & self.takes & waits):
            m.d.sync += turn.eq(Mux(self.port == n - 1, 0, self.port + 1))
        return m
