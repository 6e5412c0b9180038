"""Wires with delay between nodes, and the arbiter of the cells that wait at the inputs of a node."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.aal5.crc32 import crc32_word
from bentpipe_hdl.cell import NARROW, NEVER, TIME_BITS, WORDS_A_CELL, CellSignature

__all__ = ["STAMP_BITS", "Inputs", "Wire"]

STAMP_BITS = 8
"""Low bits of an arrival's tick: no cell waits longer at an input."""


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
        CRC-32 (that of AAL5, not complemented) of all cells: header, payload, tick, ``hec_error << 16`` and the tick's
        upper bits.
    lost, late : Out(16)
        Cells that found the wire full, and that should have come in the tick in which they were given; wrap.
    """

    def __init__(self, *, cells):
        if cells not in [1 << k for k in range(2, 18)]:
            raise ValueError(f"cells must be a power of two from 4 to 131072, not {cells!r}")
        self.cells = cells
        super().__init__(
            {
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
        )

    def elaborate(self, platform):
        m = Module()
        bits = self.cells.bit_length() - 1
        m.submodules.words = words = memory.Memory(shape=32, depth=16 * self.cells, init=[])
        m.submodules.dues = dues = memory.Memory(shape=TIME_BITS + 1, depth=self.cells, init=[])
        put, get = words.write_port(), words.read_port(domain="sync")
        put_due, get_due = dues.write_port(), dues.read_port(domain="sync")
        write, fetched, read = Signal(bits), Signal(bits), Signal(bits)

        # In
        start = self.i.valid & self.i.soc
        place, full, keeps = Signal(4), Signal(), Signal()
        end, given, hec = Signal(TIME_BITS), Signal(TIME_BITS), Signal()
        sent, due = Signal(TIME_BITS), Signal(TIME_BITS)
        stage = Signal(4)
        m.d.comb += [
            full.eq((write + 1)[:bits] == read),
            put.addr.eq(Cat(Mux(self.i.soc, 0, place), write)),
            put.data.eq(self.i.word),
            put.en.eq(self.i.valid & Mux(self.i.soc, ~full, keeps)),
            put_due.addr.eq(write),
            put_due.data.eq(Cat(due, hec)),
            put_due.en.eq(stage[3] & keeps),
        ]
        # `write` moves on when all words are in: the next cell's header comes in the next tick
        closing = Signal()
        m.d.comb += closing.eq(self.i.valid & ~self.i.soc & (place == WORDS_A_CELL - 1))
        with m.If(self.i.valid):
            m.d.sync += place.eq(Mux(self.i.soc, 1, place + 1))
        m.d.sync += stage.eq(Cat(start, stage[:-1]))
        with m.If(start):
            m.d.sync += [end.eq(Mux(self.sends, self.end, self.now)), given.eq(self.now), hec.eq(self.i.hec_error)]
            m.d.sync += keeps.eq(~full)
            with m.If(full):
                m.d.sync += self.lost.eq(self.lost + 1)
        ahead = Signal(TIME_BITS)
        m.d.comb += ahead.eq(end - given)
        with m.If(stage[0]):
            m.d.sync += sent.eq(Mux(ahead[-1], given, end))
        with m.If(stage[1]):
            m.d.sync += due.eq(sent + self.delay)
        with m.If(stage[3] & keeps & (due == given)):
            m.d.sync += self.late.eq(self.late + 1)
        with m.If(closing & keeps):
            m.d.sync += write.eq(write + 1)

        # The dues of the first two cells, in registers
        first, second = (Signal(TIME_BITS + 1, name=n) for n in ("first", "second"))
        has_first, has_second, waits = Signal(), Signal(), Signal(2)
        m.d.comb += get_due.addr.eq(fetched)
        gives = Signal()
        m.d.comb += gives.eq(self.tick & self.take)
        with m.If(gives):
            m.d.sync += [first.eq(second), has_first.eq(has_second), has_second.eq(0), waits.eq(0)]
        with m.Elif(waits == 0), m.If((fetched != write) & ~(has_first & has_second)):
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

        # The CRC goes on for two clocks behind the cell
        word, adds, tail = Signal(32), Signal(), Signal(2)
        m.d.sync += [
            word.eq(Mux(tail[0], given[:32], Mux(tail[1], Cat(given[32:], hec), self.i.word))),
            adds.eq(self.i.valid | tail.any()),
            tail.eq(Cat(closing, tail[0])),
        ]
        with m.If(adds):
            m.d.sync += self.check.eq(crc32_word(self.check, word))
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
