"""Arrival of each cell at the end of a path whose delay changes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from bentpipe_hdl.cell import FRACTION_BITS, TIME_BITS
from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Path"]

_LONG_AGO = (1 << TIME_BITS) - (1 << 40)
"""As the tick of a cell that never was: 2**40 ticks before tick 0."""


class Path:
    """The path of a link: it gives each cell its due tick, the tick in which it arrives.

    A cell of tick T would arrive in tick T + ``DELAY``, its *target*. The delay of a cell is that of its tick, so a
    write of ``DELAY`` changes nothing for cells that are under way. While the delay does not shrink, each target is
    later than all due ticks before, and is the due tick.

    **Order kept** (``PATH_MERGE`` = 0). A cell whose target is not later than the due tick of the cell before it waits:
    it is due ``PATH_SPACING`` after that cell, which is the line's cell time. Fractions of a tick are kept, so that
    cells that wait for each other arrive at the line's rate.

    **Merged** (``PATH_MERGE`` = 1). There are two paths, each of which keeps its order, and cells arrive by their due
    ticks. A cell takes the path whose last cell is due latest, but before the cell's target; so it overtakes cells of
    the other path. If the last cells of both paths are not due before the target, it waits on the path whose last cell
    is due first, until ``PATH_SPACING`` after that cell. Two cells may be due in one tick, one of each path: whoever
    receives them takes one after the other.

    Times are compared modulo half their range.

    Parameters
    ----------
    m, slot, csr, time
        The link's.

    Members
    -------
    due : Signal
        Due tick of the cell that was taken last.
    """

    def __init__(self, m: Module, slot: TickSchedule, csr: CsrMap, time):
        self._m, self._slot, self._now = m, slot, time.now
        self._merge, self._spacing = csr.register("path_merge"), csr.register("path_spacing")
        # When the last cells of both paths are due: the later one and the earlier one, in units of 2**-16 ticks
        bits, init = TIME_BITS + FRACTION_BITS, _LONG_AGO << FRACTION_BITS
        self._last, self._first = (Signal(bits, init=init, name=f"path_{name}") for name in ("last", "first"))
        self.due = Signal(TIME_BITS, name="path_due")
        self._held, self._overtook = Signal(32, name="path_held"), Signal(32, name="path_overtook")
        csr.status("path_held", self._held)
        csr.status("path_overtook", self._overtook)

    def send(self, sent, delay, later=None):
        """Give the cell of the tick its due tick, if it is ``sent``. ``later``: ticks by which its target is later, if
        a plugin says so."""
        m, slot = self._m, self._slot
        target = slot.pipe((self._now + delay)[:TIME_BITS], "path_target", since=0)
        if later is not None:
            target = slot.pipe((target + later)[:TIME_BITS], "path_target_later")
        wide = TIME_BITS + FRACTION_BITS
        behind = (Mux(self._merge, self._first, self._last) + self._spacing)[:wide]
        behind = slot.pipe(behind, "path_behind", since=0)
        waits = slot.pipe(_reached(self._last[FRACTION_BITS:], target), "path_waits")  # for the later one
        waits_for_both = slot.pipe(_reached(self._first[FRACTION_BITS:], target), "path_waits_for_both")
        swaps = slot.pipe(_reached(behind, self._last), "path_swaps")
        due = Signal(wide, name="path_due_now")
        held = waits & (~self._merge | waits_for_both)
        m.d.comb += due.eq(Mux(held, behind, Cat(Const(0, FRACTION_BITS), target)))
        with m.If(sent):
            m.d.sync += self.due.eq(due[FRACTION_BITS:])
            with m.If(~waits | ~self._merge):
                m.d.sync += self._last.eq(due)
            with m.Elif(waits_for_both & swaps):
                m.d.sync += [self._first.eq(self._last), self._last.eq(due)]
            with m.Else():
                m.d.sync += self._first.eq(due)
            with m.If(held):
                m.d.sync += self._held.eq(self._held + 1)
            with m.Elif(waits):
                m.d.sync += self._overtook.eq(self._overtook + 1)


def _reached(tick, other):
    """Return whether ``tick`` is ``other`` or later."""
    return ~(tick - other)[len(tick) - 1]
