"""Duplicated and misinserted cells: which, when, and with what."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory

from bentpipe_hdl.cell import NEVER, TIME_BITS, CellHeader, due_tick, earlier
from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.link.datapath import Offer
from bentpipe_hdl.link.gap import Gap, xorshift
from bentpipe_hdl.link.options.extra.control import MADE
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Extra"]


class Extra:
    """The generator of extra cells, each of which leaves in the first tick in which no cell arrives.

    **Duplicates.** Each cell that the link does not lose is duplicated with probability ``DUPLICATE``. The copy is that
    of the cell as the receiver has it, bit errors and header check included. There is a place for one copy; a cell that
    is to be duplicated while a copy waits is not, and counts in ``MADE_MISSED``.

    **Misinserted cells.** The times between them are geometric, in ticks. Their header is ``MISINSERT_HEADER``, or that
    of a user cell of the VC that sent the last cell, within a PDU. Their payload is the state of the generator at their
    tick, six times. While the line is cut none is made. There is a place for one, behind a copy.

    After a write of a register of misinsertion the time to the next one is drawn anew; it has no memory.

    Parameters
    ----------
    m, slot, csr, time
        The link's.

    Attributes
    ----------
    offer : Offer
    due, works : Value
        When it has something to do; it has now.
    """

    def __init__(self, m: Module, slot: TickSchedule, csr: CsrMap, time):
        self._m, self._slot, self._now = m, slot, time.now
        self._share = csr.register("duplicate")
        self._draws, self._times = Signal(64, init=1, name="duplicates"), Signal(64, init=1, name="misinsertions")
        csr.register("duplicate_seed", self._draws)
        csr.register("misinsert_seed", self._times)
        self._enable = csr.register("misinsert_enable")
        self._mantissa, self._shift = csr.register("misinsert_mantissa"), csr.register("misinsert_shift")
        self._own, self._header = csr.register("misinsert_own"), csr.register("misinsert_header")
        self._fresh, self._next = Signal(name="misinsert_fresh"), Signal(TIME_BITS, name="misinsert_next")
        for name in ("enable", "mantissa", "shift", "seed"):
            with csr.written(f"misinsert_{name}"):
                m.d.sync += self._fresh.eq(1)
        self._counts = {name: Signal(32, name=f"made_{name}") for name in (*MADE, "missed")}
        for name, count in self._counts.items():
            csr.status(f"made_{name}", count)
        # The copy, the misinserted cell, and since when one waits
        self._copy, self._copy_header, self._copy_bad = Signal(name="copy"), Signal(32), Signal(name="copy_bad")
        self._stray, self._stray_payload = Signal(name="stray"), Signal(64, name="stray_payload")
        self._last, self._since = Signal(32, name="last_header"), Signal(TIME_BITS, name="extra_since")
        self._copy_payload = Signal(384, name="copy_payload") if slot.wide else None
        header = Mux(self._copy, self._copy_header, Mux(self._own, self._header, self._last))
        stray = Cat([self._stray_payload] * 6)
        self.offer = Offer(
            self._copy | self._stray, CellHeader(header), self._copy & self._copy_bad,
            Mux(self._copy, self._copy_payload, stray) if slot.wide else Const(0),
            self._narrow_word, Signal(name="extra_leaves"),
        )  # fmt: skip
        waits = Mux(self._copy | self._stray, self._since, NEVER)
        self.due = earlier(waits, Mux(self._enable, due_tick(self._next), NEVER))
        self.works = self._fresh & self._enable

    def _count(self, name):
        return self._counts[name].eq(self._counts[name] + 1)

    def make(self, path, gone, kind):
        """Decide on the tick: ``gone``, the cell that was taken is lost. ``kind`` is told with a cell that leaves."""
        m, slot, now = self._m, self._slot, self._now
        leaves = self.offer.leaves
        m.d.sync += kind.eq(0)
        with m.If(leaves):
            m.d.sync += kind.eq(Mux(self._copy, 1, 2))
            with m.If(self._copy):
                m.d.sync += [self._copy.eq(0), self._count("copies")]
            with m.Else():
                m.d.sync += [self._stray.eq(0), self._count("misinserted")]
        self._copies(path, gone)
        cut = Const(0, 1) if path.cut is None else path.cut
        self._strays(leaves & ~self._copy, cut)
        with m.If(path.taken):
            m.d.sync += self._last.eq(path.sent_header.as_value() & 0xFFFFFFF0)
        with m.If(slot.commit):
            m.d.sync += self._since.eq(now + 1)

    def _copies(self, path, gone):
        m, slot = self._m, self._slot
        hit = slot.pipe(self._draws[33:] < self._share, "duplicate_hit", since=0)
        self.copies = copies = Signal(name="duplicates_cell")
        with m.If(path.taken & (self._share != 0)):
            m.d.sync += self._draws.eq(xorshift(self._draws))
            with m.If(hit & ~gone):
                with m.If(self._copy):
                    m.d.sync += self._count("missed")
                with m.Else():
                    m.d.comb += copies.eq(1)
        with m.If(copies):
            m.d.sync += [self._copy.eq(1), self._copy_header.eq(path.header), self._copy_bad.eq(path.bad)]
            if slot.wide:
                m.d.sync += self._copy_payload.eq(Mux(path.hit, path.damaged, path.link.i.payload))

    def _strays(self, leaves, cut):
        m, slot, now = self._m, self._slot, self._now
        m.submodules.misinsert_gap = unit = Gap(pipelined=not slot.wide)
        m.d.comb += [unit.mantissa.eq(self._mantissa), unit.shift.eq(self._shift)]
        over, draws = Signal(name="misinsert_over"), Signal(name="misinsert_draws")
        m.d.comb += over.eq(self._enable & ~self._fresh & ~(now - self._next)[TIME_BITS - 1])
        state = xorshift(self._times)
        with m.If(slot.commit):
            with m.If(self._fresh):
                m.d.comb += draws.eq(self._enable)
                m.d.sync += self._fresh.eq(0)
            with m.Elif(over):
                m.d.comb += draws.eq(1)
                with m.If(self._stray & ~leaves):
                    m.d.sync += self._count("missed")
                with m.Elif(~cut):
                    m.d.sync += [self._stray.eq(1), self._stray_payload.eq(self._times)]
            with m.If(cut):
                m.d.sync += self._stray.eq(0)
        longest = 1 << TIME_BITS - 2
        until = Signal(TIME_BITS, name="misinsert_until")
        m.d.comb += until.eq(now + 1 + Mux(unit.gap > longest, longest, unit.gap))
        with m.If(draws):
            m.d.sync += self._times.eq(state)
        if slot.wide:
            with m.If(draws):
                m.d.comb += unit.state.eq(state)
                m.d.sync += self._next.eq(until)
            return
        since = Signal(TIME_BITS, name="misinsert_since")
        stages = Signal(Gap.LATENCY + 1, name="misinsert_stages")
        m.d.comb += unit.state.eq(self._times)
        m.d.sync += stages.eq(Cat(draws, stages[:-1]))
        with m.If(draws):
            m.d.sync += since.eq(now)
        with m.If(stages[-1]):
            m.d.sync += self._next.eq((since + 1 + Mux(unit.gap > longest, longest, unit.gap))[:TIME_BITS])
        self.works = self.works | stages.any()

    def _narrow_word(self, step):
        """Return a word of the cell that leaves, at 32 bits."""
        m = self._m
        leaves_copy, payload = Signal(name="leaves_copy"), Signal(64, name="leaves_payload")
        with m.If(self.offer.leaves):
            m.d.sync += [leaves_copy.eq(self._copy), payload.eq(self._stray_payload)]
        self._words = memory.Memory(shape=32, depth=16, init=[])
        m.submodules.copy_words = self._words
        read = self._words.read_port(domain="comb")
        m.d.comb += read.addr.eq(step)
        return Mux(leaves_copy, read.data, Mux(step[0], payload[32:], payload[:32]))

    def keep(self, leaving):
        """Keep the words of a cell that is duplicated, as they leave, at 32 bits."""
        m = self._m
        will, keeps, write = Signal(name="copy_will_be_kept"), Signal(name="copy_is_kept"), self._words.write_port()
        with m.If(leaving.starts):
            m.d.sync += [keeps.eq(will), will.eq(0)]
        with m.If(self.copies):
            m.d.sync += will.eq(1)
        m.d.comb += [
            write.addr.eq(leaving.step),
            write.data.eq(leaving.word),
            write.en.eq(keeps & (leaving.count != 0)),
        ]
