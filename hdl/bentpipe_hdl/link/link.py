"""The link: propagation delay and bit errors on a line, and the header check behind them. A datapath
(:mod:`.wide`, :mod:`.narrow`) and plugins of its :mod:`.options`; this module names no option."""

from functools import reduce
from operator import or_

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import WIDE, check_width, earlier, node_members
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.link.control import link_registers
from bentpipe_hdl.link.datapath import CELL_BITS, ERRORS_A_CELL
from bentpipe_hdl.link.errors import LinkErrors
from bentpipe_hdl.link.narrow import NarrowDatapath
from bentpipe_hdl.link.options import shape_of
from bentpipe_hdl.link.options.plugin import plugins_of
from bentpipe_hdl.link.wide import WideDatapath
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["CELL_BITS", "ERRORS_A_CELL", "Link"]

ROOM_BITS = 40
"""Width of a link's ``room``: fewer than 2**32 cells pass meanwhile."""


class Link(wiring.Component):
    """One direction of a line: delay, random bit errors in header and payload alike, and the receiver's HEC check.

    **Errors.** The 424 bits of each cell (its HEC among them) are hit independently. The link counts good bits down
    from ``GAP``; where they end, a bit is inverted and the next gap is drawn (:class:`~.gap.Gap`) from a xorshift64
    generator, which ``SEED`` starts. The same seed gives the same errors in the same cells. A first gap written by
    software places an error at will. Only cells are hit, not the idle cells between them.

    **Changes in a run.** A write holds for the cells that come in later ticks. ``GAP`` counts from the next cell. After
    a write of any other register of the errors the next cell passes unhurt, and its bits do not count: in its time the
    narrow datapath draws its gaps anew. Behind it the new settings hold. If the rate was written (``ERROR_MANTISSA`` or
    ``ERROR_SHIFT``), and ``GAP`` was not after it, the gap under way ends with that cell, and another is drawn at the
    new rate: a geometric gap has no memory. Both datapaths hit the same bits of the same cells.

    **Header check** (I.432.1 clause 4.3.2.2). In correction mode a single-bit error is corrected and any other
    passes on as ``hec_error``; after any error the receiver is in detection mode, in which every error passes on as
    ``hec_error``, until a good header. An error pattern that is a code word goes unnoticed, and one that
    looks like a single error is miscorrected: as on a real line.

    **Faults.** Outages, and a Gilbert-Elliott process with a good and a bad state (:mod:`.options.faults`); its bad
    state has bit errors of its own. A link is built with them or without.

    **Listed losses.** Named cells or PDUs of a VC are taken out (:mod:`.options.losses`), before the errors, which
    hit the same places of the other cells with and without.

    **Delay.** A cell of tick T leaves in tick T + ``DELAY``. With ``delay_cells`` the link has the memory for that;
    without, its output comes in tick T + 1 and whoever carries it on (the native harness) holds it for the rest. Times
    are compared modulo half their range.

    **Cells that go by.** At 416 bits and without delay memory most cells change nothing of a link but a count and the
    gap. Whoever carries them on may let a cell with a good header go by untouched instead of giving it to the link,
    while ``room`` has its 424 bits, and tell in a clock without a tick how many have gone: ``passed``. All is then as
    if they had come in at ``i``, except for what came out.

    Parameters
    ----------
    width : int
        Datapath, 416 or 32 bits.
    **shape : int
        Parts of the shape, by the names of options (:data:`.options.OPTIONS`).

    Members
    -------
    i, o, time, status, csr
        The faces of a node. ``i.hec_error`` passes on.
    error : Out(1)
        For one clock, at 416 bits together with ``o`` (without delay memory): the cell that arrived with the tick has
        bit errors.
    passed : In(32), room : Out(40)
        At 416 bits without delay memory: cells that went by since the last clock, and bits that may go by from now on.
        No cell arrives, and no register is accessed, in a clock with ``passed``.
    … : Out
        What its options' plugins have (:meth:`.options.plugin.LinkPlugin.members`).

    Notes
    -----
    Counters wrap at 2**32. A cell that finds the delay memory full is lost and counted. At 32 bits ``idle`` is low for
    16 clocks after reset; errors are to be switched on after that.

    Handshake: cells have no back-pressure; a cell in a tick each way.

    Latency: in ticks. A cell of tick T comes out in tick T+1, or ``DELAY`` later with delay memory.

    Source: I.432.1 clause 4.3.2 (HEC).
    """

    def __init__(self, *, width=WIDE, **shape):
        check_width(width)
        self.width, self.options = width, shape_of(shape)
        self.registers = link_registers(**shape)
        plugins = plugins_of(self.options)
        more = {name: member for plugin in plugins for name, member in plugin.members().items()}
        self.lets_pass = width == WIDE and all(
            plugin.lets_pass and plugin.memory_of_cells is None for plugin in plugins
        )
        passing = {"passed": In(32), "room": Out(ROOM_BITS)} if self.lets_pass else {}
        super().__init__({**node_members(width, 1), "csr": In(CsrSignature()), "error": Out(1), **more, **passing})

    @property
    def documented_by(self):
        """Classes that describe ports of options."""
        return tuple(type(plugin) for plugin in plugins_of(self.options))

    def elaborate(self, platform):
        m = Module()
        slot = TickSchedule(m, self.time, self.width, commit=12)
        csr = CsrMap(m, self.csr, self.registers)
        plugins = plugins_of(self.options)
        for plugin in plugins:
            plugin.build(m, slot, csr, self)
        errors = LinkErrors(_only(plugin.bad for plugin in plugins))
        offer = _only(plugin.offer for plugin in plugins)
        path = (WideDatapath if slot.wide else NarrowDatapath)(self, m, slot, errors, offer)
        path.cut = _only(plugin.cut for plugin in plugins)
        errors.registers(
            m, csr, slot.wide
        )  # behind what uses them: a write goes before what the same clock's cell does
        gone = Const(0, 1)
        for plugin in plugins:
            gone = plugin.lose(path, gone)
        cells, lost = self._count(m, csr, path)
        if self.lets_pass:
            self._let_pass(m, path, cells, plugins)
        csr.finish()
        works = [plugin.works for plugin in plugins if plugin.works is not None]
        memory = _only(plugin.memory_of_cells for plugin in plugins)
        idle, due = path.send(gone, memory, lost, reduce(or_, works) if works else Const(0, 1))
        for plugin in plugins:
            plugin.sent(path)
            due = due if plugin.due is None else earlier(plugin.due, due)
        m.d.comb += [self.status.idle.eq(idle), self.status.due.eq(due)]
        return slot.checked(m)

    def _count(self, m, csr, path):
        """Count cells and errors; return the counts of all cells, and of those that find no place."""
        names = ("cells", "errored", "corrected", "rejected")
        cells, errored, corrected, rejected = (Signal(32, name=name) for name in names)
        m.d.sync += self.error.eq(path.taken & path.hit)
        with m.If(path.taken):
            m.d.sync += cells.eq(cells + 1)
            for count, counts in ((errored, path.hit), (corrected, path.fixed), (rejected, path.bad)):
                with m.If(counts):
                    m.d.sync += count.eq(count + 1)
        lost = Signal(32, name="lost")
        for name, count in zip(names, (cells, errored, corrected, rejected), strict=True):
            csr.status(name, count)
        csr.status("error_bits", path.errors.error_bits)
        csr.status("lost", lost)
        return cells, lost

    def _let_pass(self, m, path, cells, plugins):
        """Let cells pass without evaluation, as long as only their number and their bits count."""
        errors = path.errors
        p = errors.processes[0]  # that of the good state
        acts = [plugin.acts for plugin in plugins if plugin.acts is not None]
        works = reduce(or_, [errors.fresh, *acts, path.receiver.detection])
        far = ~p.enable | p.gap[ROOM_BITS:].any()
        m.d.comb += self.room.eq(Mux(works, 0, Mux(far, Const(-1, ROOM_BITS), p.gap)))
        with m.If(self.passed != 0):
            m.d.sync += cells.eq(cells + self.passed)
            with m.If(p.enable):
                m.d.sync += p.gap.eq(p.gap - self.passed * CELL_BITS)


def _only(given):
    """Return the only part that is not None, if there is one."""
    return next((one for one in given if one is not None), None)
