"""Cells out of the payload of an SPE (I.432.1 clause 4.3 and 7.3)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.functions import computed
from bentpipe_hdl.sim_hints import rarely_changes
from bentpipe_hdl.sonet.delineation import CELL, Delineation, State, octets_reversed, syndrome_of
from bentpipe_hdl.sonet.scrambler import payload_delay

__all__ = ["CellDemapper"]


class CellDemapper(wiring.Component):
    """The cell demapper: it delineates cells, checks and corrects headers, descrambles, and drops idle and unassigned
    cells.

    HUNT tests every byte position. A cell arrives out 2 clocks (wide) or 7 clocks (narrow) after the word with its last
    byte.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    word : In(8 * width), push : In(1), short : In(2)
        Payload, first byte in the low bits; the lowest ``short * stuff_bytes`` bytes are none (wide words only).
    lost : In(1)
        There is no payload: go to HUNT.
    cell : Out(416), valid : Out(1)
        A user cell, or a discarded one.
    hec_error : Out(1), corrected : Out(1)
        With ``valid``: the header has an uncorrectable error; it had a bit error.
    idle : Out(1)
        Strobe for an idle or unassigned cell (VPI and VCI are 0).
    state : Out(State)
    """

    def __init__(self, geometry):
        self._geometry = geometry
        super().__init__(
            {
                "word": In(8 * geometry.width),
                "push": In(1),
                "short": In(2),
                "lost": In(1),
                "cell": Out(416),
                "valid": Out(1),
                "hec_error": Out(1),
                "corrected": Out(1),
                "idle": Out(1),
                "state": Out(State),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g = self._geometry
        width = g.width
        size = CELL - 1 + width
        m.submodules.automaton = automaton = Delineation()
        rarely_changes(automaton.state.as_value(), State.SYNC.value)
        for signal in (self.hec_error, self.corrected):
            rarely_changes(signal)
        m.d.comb += [self.state.eq(automaton.state), automaton.lost.eq(self.lost)]
        word, push, short = self.word, self.push, self.short
        if not g.wide:
            word, push = Signal(8 * width), Signal()
            m.d.sync += [word.eq(self.word), push.eq(self.push)]
        hunting = automaton.state == State.HUNT

        window = Signal(8 * size)  # the newest byte on top
        have = Signal(range(CELL))  # bytes of the cell that has begun
        total = Signal(range(CELL + width))
        count = Signal(range(width + 1))
        syndrome = Signal(8)
        checking = Signal()  # `window` (wide) or `cell` (narrow) has a cell
        complete = Signal()  # `window` has one from byte `place` on
        place = Signal(range(width))

        def take(used):  # the top bytes of the word
            m.d.comb += count.eq(used)
            m.d.sync += window.eq(Cat(window[8 * used :], word[8 * (width - used) :]))

        m.d.sync += complete.eq(0)
        m.d.comb += count.eq(0)
        with m.If(push):
            if g.wide:
                with m.Switch(short):
                    for k in range(1, 4):
                        with m.Case(k):
                            take(width - k * g.stuff_bytes)
                    with m.Default():
                        take(width)
            else:
                take(width)
            m.d.comb += total.eq(have + count)
            with m.If(~hunting):
                m.d.sync += have.eq(total)
                with m.If(total >= CELL):
                    rest = Signal(range(width))
                    m.d.comb += rest.eq(total - CELL)
                    m.d.sync += [have.eq(rest), complete.eq(1), place.eq(width - 1 - rest)]
        if g.wide:
            whole, body = Signal(40), Signal(384)
            m.d.comb += [
                checking.eq(complete),
                whole.eq(window.bit_select(Cat(Const(0, 3), place), 40)),
                body.eq(window.bit_select(Cat(Const(0, 3), place + 5), 384)),
                syndrome.eq(syndrome_of(whole)),
            ]
            computed("header_syndrome", "received", syndrome, whole)
        else:
            taken = Signal()
            cell = Signal(424)
            whole, body = cell[:40], cell[40:]
            m.d.sync += [taken.eq(complete), checking.eq(taken)]
            with m.If(complete):
                m.d.sync += cell.eq(window.bit_select(Cat(Const(0, 3), place), 424) if width > 1 else window)
            with m.If(taken):
                m.d.sync += syndrome.eq(syndrome_of(whole))

        skip = self._hunt(m, automaton, hunting, window, have, count)
        m.d.comb += automaton.syndrome.eq(syndrome)
        with m.If(checking), m.If(~skip):
            m.d.comb += automaton.check.eq(1)
        with m.If(self.valid):
            m.d.sync += [self.valid.eq(0), self.hec_error.eq(0), self.corrected.eq(0)]
        m.d.sync += self.idle.eq(0)
        give = Signal()
        with m.If(checking), m.If(~hunting):
            m.d.comb += give.eq(1)
            m.d.sync += skip.eq(0)
        self._deliver(m, automaton, give, whole, body)
        return m

    def _hunt(self, m, automaton, hunting, window, have, count):
        """Find headers that end in the bytes of the last word; the oldest good one wins. Return whether the next
        header is that which was found, and no confirmation of itself."""
        width = self._geometry.width
        size = CELL - 1 + width
        fresh = rarely_changes(Signal(range(width + 1)))
        since = Signal(range(width + 1))
        hits = rarely_changes(Signal(width))
        skip = rarely_changes(Signal())
        with m.If(hunting):
            m.d.sync += hits.eq(0)
            m.d.sync += [fresh.eq(count), since.eq(count)]
            for i in range(width):  # i bytes after the header's last one
                at = size - 5 - i
                header = window[8 * at : 8 * (at + 5)]
                with m.If(fresh > i):
                    m.d.sync += hits[i].eq(syndrome_of(header) == 0)
            with m.If(hits.any()):
                start = Signal(range(5 + 3 * width))
                later = Signal(range(width))
                for i in range(width):
                    with m.If(hits[i]):
                        m.d.comb += later.eq(i)
                m.d.comb += start.eq(5 + later + since + count)
                m.d.sync += have.eq(start)
                for k in range(1, (5 + 3 * width - 1) // CELL + 1):
                    with m.If(start >= CELL * k):
                        m.d.sync += have.eq(start - CELL * k)
                m.d.sync += [fresh.eq(0), hits.eq(0), skip.eq(1)]
                m.d.comb += automaton.found.eq(~self.lost)
        with m.Else():
            m.d.sync += fresh.eq(0)
        return skip

    def _deliver(self, m, automaton, give, whole, body):
        """Give a cell out, or drop it, by its header's verdict."""
        g = self._geometry
        before = Signal(48)
        header = Signal(32)
        empty = Signal()
        verdicts = [automaton.accept, automaton.correct, automaton.discard, automaton.flip]
        if not g.wide:  # a clock later; the cell stays for more than that
            late = [Signal(len(value), name=f"late{k}") for k, value in enumerate(verdicts)]
            with m.If(give):
                m.d.sync += [a.eq(b) for a, b in zip(late, verdicts, strict=True)]
            verdicts = late
            late_give, last_give = Signal(), Signal()
            m.d.sync += [late_give.eq(give), last_give.eq(late_give)]
            give = last_give
        accept, correct, discard, flip = verdicts
        right = octets_reversed(whole[:32]) ^ Mux(correct, flip[8:], 0)
        if not g.wide:  # one more for the header
            with m.If(late_give):
                m.d.sync += [header.eq(right), empty.eq(right[4:28] == 0)]
        last, plain = Signal(48), Signal(384)
        m.d.comb += [last.eq(before), plain.eq(body ^ payload_delay(last, body))]
        if g.wide:
            computed("descramble_cell", "received", plain, body, last)
        with m.If(give):
            m.d.sync += before.eq(body[-48:])
            if g.wide:
                m.d.comb += header.eq(octets_reversed(whole[:32]))
                with m.If(correct):
                    m.d.comb += header.eq(octets_reversed(whole[:32]) ^ flip[8:])
                m.d.comb += empty.eq(header[4:28] == 0)  # VPI and VCI of a UNI
            with m.If(accept & empty):
                m.d.sync += self.idle.eq(1)
            with m.Elif(accept | discard):
                m.d.sync += [
                    self.cell.eq(Cat(plain, header)),
                    self.valid.eq(1),
                    self.hec_error.eq(discard),
                    self.corrected.eq(correct),
                ]
