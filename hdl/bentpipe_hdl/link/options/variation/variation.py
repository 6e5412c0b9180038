"""Random additional delays of cells, drawn from a table of quantiles."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data

from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.link.gap import xorshift
from bentpipe_hdl.link.options.variation.control import POINTS
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Variation"]


class Variation:
    """The generator of each cell's additional delay.

    8 bits of the generator's state pick a row of the table ``VARIATION``, and 16 bits a place between this row and the
    next: the inverse of the distribution, straight between ``POINTS`` points. With probability ``VARIATION_EARLY`` the
    cell takes no additional delay instead. The generator moves on with each cell that arrives.

    Parameters
    ----------
    m, slot, csr
        The link's.
    """

    def __init__(self, m: Module, slot: TickSchedule, csr: CsrMap):
        self._m, self._slot = m, slot
        self._enable, self._early = csr.register("variation_enable"), csr.register("variation_early")
        self._state = Signal(64, init=1, name="variation_state")
        csr.register("variation_seed", self._state)
        self._layout = data.StructLayout({"low": 24, "rise": 24})
        self._rows = slot.store("variation_rows", self._layout, POINTS)
        index, word, en = csr.write_port("variation")
        row = Signal(self._layout, name="variation_written")
        m.d.comb += row.as_value().eq(word)
        self._rows.write(index, row, en)
        self._count = Signal(32, name="variation_cells")
        csr.status("variation_cells", self._count)

    def draw(self, taken) -> Signal:
        """Return the additional delay of the cell, in ticks; the generator moves on at ``taken``."""
        m, slot, state = self._m, self._slot, self._state
        row, later, early = Signal(self._layout, name="variation_row"), Signal(26, name="variation_ticks"), Signal()
        index = state[56:]
        m.d.comb += row.eq(self._rows.read(index, at=1, to="variation_row_held"))
        between = slot.product(row.rise, state[40:56], "variation_between")
        m.d.comb += early.eq(slot.pipe(state[8:39] < self._early, "variation_early_held", since=0))
        ticks = slot.pipe((row.low + (between >> 16))[:25], "variation_sum")
        m.d.comb += later.eq(Mux(self._enable & ~early, ticks, Const(0)))
        with m.If(taken & self._enable):
            m.d.sync += state.eq(xorshift(state))
            with m.If(early):
                m.d.sync += self._count.eq(self._count + 1)
        return later
