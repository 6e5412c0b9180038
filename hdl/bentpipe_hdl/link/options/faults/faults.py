"""Outages and errors that come in bursts: when a link loses cells, and which of two states it is in."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In

from bentpipe_hdl.cell import NEVER, TIME_BITS, TimeSignature, due_tick
from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.link.gap import Gap, xorshift
from bentpipe_hdl.link.options.faults.control import LOST
from bentpipe_hdl.link.registers import GONE
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Faults"]

LONGEST = 1 << TIME_BITS - 2
"""Ticks or cells that a state lasts at most: times are compared modulo half their range."""


class Faults:
    """The Gilbert-Elliott process, and outages.

    **States** (Gilbert 1960, Elliott 1963). The line is good or bad by turns. How long a state lasts is geometric, in
    ticks, whatever passes meanwhile, or in cells: drawn when it begins, from the generator ``LENGTH_SEED``. With
    probability ``LOSS`` of the state a cell is lost (``LOSS_SEED``). Bit errors in the bad state are a process of
    their own, with gap, ratio and generator; while it goes on, that of the good state rests, and the other way round:
    a geometric gap has no memory, so that in each state bits are hit independently at its ratio. A state that ends
    with tick T (or with a cell) is the next one's from tick T + 1 (the next cell) on.

    **Outage.** While it lasts each cell is lost; states go on meanwhile.

    What is lost counts in errors and in the header check like other cells, so that the same bits of the others are hit.

    **Changes in a run.** Lengths hold from the next state on, ratios from the next cell. When lengths become times
    instead of cells, or cells instead of times, the rest of the present state is drawn anew, since a length has no
    memory. A write of ``LENGTH`` sets how many ticks, or cells behind the next, the present state goes on. Seeds are to
    be written while the process is off.

    Parameters
    ----------
    m, slot, csr, time
        The link's.

    Attributes
    ----------
    bad : Signal
        The state in which the tick's cell arrives.
    acts : Value
        Cells may be lost, or are of the bad state, or lead to it.
    due, works : Value
        When the state ends, ``NEVER`` if cells end it; it is to begin again, or (narrow) a length is being drawn.
    """

    def __init__(self, m: Module, slot: TickSchedule, csr: CsrMap, time: In(TimeSignature())):
        self._m, self._slot, self._csr, self._now = m, slot, csr, time.now
        self.outage, self._enable = csr.register("outage"), csr.register("burst_enable")
        self._by_cells = csr.register("burst_cells")
        self._mantissas, self._shifts = csr.registers("length_mantissa"), csr.registers("length_shift")
        self._loss = csr.registers("loss")
        self._lengths, self._losses = Signal(64, init=1), Signal(64, init=1)
        csr.register("length_seed", self._lengths)
        csr.register("loss_seed", self._losses)
        self._length = csr.register("length")
        self.bad = Signal(name="bad_state")
        csr.status("bad", self.bad)
        self._until = Signal(TIME_BITS, name="state_until")
        self._restart = Signal(name="state_restart")  # the state's length was written: it begins with the next tick
        self._counts_cells = Signal(name="state_counts_cells")  # the present state's end is a number of cells
        timed = self._enable & ~self._by_cells
        self.acts = self.outage | self._enable | self.bad
        self.due = Mux(timed, due_tick(self._until), NEVER)
        self.works = timed & (self._restart | self._counts_cells)
        self._counts = {name: Signal(32, name=name) for name in ("bad_cells", "bad_states", *LOST)}
        for name, count in self._counts.items():
            csr.status(name if name in ("bad_cells", "bad_states") else f"lost_{name}", count)

    def decide(self, taken, listed):
        """Return ``(gone, why)`` for the cell that is ``taken``: whether it is lost, and the index of the reason in
        ``GONE``."""
        m, slot = self._m, self._slot
        following, hit, draws, loss = Signal(64), Signal(), Signal(), Signal(32)
        with slot.gate_when(taken & self._enable):
            m.d.comb += loss.eq(Mux(self.bad, self._loss[1], self._loss[0]))
        with slot.gate_when(loss != 0):
            m.d.comb += [
                following.eq(xorshift(self._losses)),
                hit.eq(slot.pipe(following[33:] < loss, "loss_hit")),
            ]
        gone, why = Signal(name="gone_any"), Signal(range(len(GONE)), name="gone_why")
        with m.If(taken):
            with m.If(self._enable):
                m.d.comb += draws.eq(loss != 0)
                m.d.sync += self._count("bad_cells", self.bad)
            with m.If(draws):
                m.d.sync += self._losses.eq(following)
            with m.If(listed):
                m.d.comb += [gone.eq(1), why.eq(GONE.index("listed"))]
            with m.Elif(self.outage):
                m.d.comb += [gone.eq(1), why.eq(GONE.index("outage"))]
                m.d.sync += self._count("outage")
            with m.Elif(draws & hit):
                m.d.comb += [gone.eq(1), why.eq(GONE.index("burst"))]
                m.d.sync += self._count("burst")
        self._states(taken)
        return gone, why

    def _count(self, name, by=1):
        return self._counts[name].eq(self._counts[name] + by)

    def _states(self, taken):
        m, slot = self._m, self._slot
        passed, restart = Signal(TIME_BITS, name="state_cells"), self._restart
        position, ends, over, redraws = Signal(TIME_BITS), Signal(), Signal(), Signal()
        m.submodules.length_gap = unit = Gap(pipelined=not slot.wide)
        becomes = self.bad ^ ends if slot.wide else self.bad
        m.d.comb += [
            position.eq(Mux(self._by_cells, passed, self._now)),
            over.eq(~(position - self._until)[TIME_BITS - 1]),
        ]
        for name, (good, bad) in (("mantissa", self._mantissas), ("shift", self._shifts)):
            # on the narrow datapath the unit takes them some clocks after its state
            scale = slot.pipe(Mux(becomes, bad, good), f"length_{name}", since=0)
            m.d.comb += getattr(unit, name).eq(scale)
        with m.If(slot.commit), m.If(self._enable):
            with m.If(taken):
                m.d.sync += passed.eq(passed + 1)
            with m.If(taken | ~self._by_cells):
                with m.If(restart):
                    m.d.sync += [self._until.eq(position + _most(m, self._length, "length_given")), restart.eq(0)]
                with m.Elif(self._counts_cells != self._by_cells):
                    m.d.comb += redraws.eq(1)
                with m.Elif(over):
                    m.d.comb += ends.eq(1)
                m.d.sync += self._counts_cells.eq(self._by_cells)
        with m.If(ends):
            m.d.sync += self.bad.eq(~self.bad)
            m.d.sync += self._count("bad_states", ~self.bad)
        draws, since, until = Signal(), Signal(TIME_BITS), Signal(TIME_BITS)
        with m.If(ends | redraws):
            m.d.comb += draws.eq(1)
            m.d.sync += self._lengths.eq(xorshift(self._lengths))
        m.d.comb += [since.eq(self._until), until.eq(since + 1 + _most(m, unit.gap, "length_drawn"))]
        if slot.wide:
            with m.If(redraws):
                m.d.comb += since.eq(position - 1)
            with m.If(draws):
                m.d.comb += unit.state.eq(xorshift(self._lengths))
                m.d.sync += self._until.eq(until)
        else:
            with m.If(redraws):
                m.d.sync += self._until.eq(position - 1)
            stages = Signal(Gap.LATENCY + 1, name="length_stages")
            m.d.sync += stages.eq(Cat(draws, stages[:-1]))
            m.d.comb += unit.state.eq(self._lengths)
            with m.If(stages[-1]):
                m.d.sync += self._until.eq(until)
            self.works |= stages.any()
        with self._csr.written("length"):
            m.d.sync += [restart.eq(1), self._until.eq(self._now)]  # due at once: that tick is over


def _most(m, length, name):
    """Return ``length``, at most the longest duration of a state."""
    kept = Signal(TIME_BITS, name=name)
    m.d.comb += kept.eq(Mux(length > LONGEST, LONGEST, length))
    return kept
