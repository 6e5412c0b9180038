"""The shared-buffer switch: a core and plugins.

The core (:mod:`.core`) is what every switch has, :mod:`.path` the way of a cell through it, and each folder of
:mod:`.options` a mechanism that hooks into that way. This module names no option.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import TIME_BITS, WIDE, check_width, earlier, node_members
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.switch.control import switch_registers
from bentpipe_hdl.switch.core.core import Build, Core
from bentpipe_hdl.switch.core.port_rate_scheduler import COMMIT
from bentpipe_hdl.switch.options import options_of
from bentpipe_hdl.switch.options.plugin import Plugins
from bentpipe_hdl.switch.path import CellPath, arrive, leave
from bentpipe_hdl.switch.registers import REASON_BITS
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Switch"]

SETTINGS = ("capacity", "epd_threshold", "clp_threshold", "processing_delay", "nni", "user_capacity")
"""Settings of the core, which are registers: parts and plugins are built with them."""


class Switch(wiring.Component):
    """An output-queued ATM switch module: one cell buffer shared by all VCs, a linked-list queue a VC.

    A cell is looked up by (port, VPI, VCI), gets its VC's outgoing VPI/VCI, is queued or dropped, and leaves in its
    VC's turn (round robin over the VCs of its port that have cells, or as an option has it) at the rate of its port.

    **Dropping.** ``Q`` is the number of cells in the buffer. A cell is dropped as *full* when ``Q >= CAPACITY`` or its
    VC has ``limit`` cells queued. A cell with CLP=1 is dropped as *clp* when ``Q >= CLP_THRESHOLD``. For AAL5 user
    cells (PTI below 4) of a VC with PPD or EPD: the first cell of a frame decides: EPD (asked first) refuses the
    whole frame when the queue is at or above its threshold, the CLP threshold does likewise, and with PPD so does a
    full buffer. Once a later cell is dropped (only *full* does that), PPD drops the rest of the frame but its last
    cell, which is let through if there is room; if even that is lost, the following frame is dropped too up to its
    last cell, so that no receiver joins two half frames to one. OAM and RM cells (PTI 4 to 7) are queued or dropped
    by ``full`` and ``clp`` alone and touch no frame state (TM 4.0 clause 5.8; Romanow and Floyd 1995). Where a VC is in
    its frame is kept whatever its policy, so that a change of policy takes effect from the next cell on.

    **Timing.** A cell may leave its port when ``now >= next``, and then ``next += PERIOD``: the port's rate is exact
    in the long run even if a tick's turn goes to another port. A cell that finds its port idle sets ``next`` to
    ``max(next, now + PROCESSING_DELAY)``; so the delay is what a cell meets in an unloaded switch, and is hidden in the
    queueing of a loaded one. A tick takes one cell in and gives one out; of several ports due, the first behind
    the port that sent last goes first. A port that has to wait makes up for at most ``CATCH_UP`` ticks: whoever sets
    the periods sees to it that all ports together have no more than a cell a tick. A cell leaves at the earliest in
    the tick after it came in. Times are compared modulo half their range.

    **Set-up and tear-down.** A VC's queue, counters and frame state start again when its ``VC_POLICY`` is written with
    ``enabled`` 0: what it has queued then leaves the buffer in its port's turns, one cell a tick, without going out
    (``FLUSHED``). A new ``port`` holds for all cells that are queued from then on, and for those queued already from
    the VC's next turn on.

    **Within a tick** the arrival is admitted first, as if the departure had not yet freed its place; if both concern
    the same port's round, the arriving cell's VC joins it first. If the departure is its port's last cell, an arriving
    cell of another VC finds the port idle; one of the same VC continues its queue.

    Parameters
    ----------
    width : int
        Datapath, 416 or 32 bits.
    vcs : int
        Number of VCs, a power of two, 2 to 4096.
    cells : int
        Size of the buffer in cells, 1 to 65535. (``vcs`` more are built: each VC has its next cell's place reserved.)
    ports : int
        Ports in and out, 1 to 16.
    options : int
        Mechanisms that it has besides, a bit each (:data:`.options.OPTIONS`).

    Members
    -------
    i, o : cells in and out
        A cell of tick T comes out in tick T+1 at the earliest. Not ``hec_error``: such cells are dropped here.
    o_end : Out
        With a cell in ``o`` (narrow: with its header): the tick in which its last bit leaves, by the clock of its
        port's line at the capacity that the port had when it began; of a port that makes up for ticks, perhaps a past
        one.
    drop, drop_vc, drop_reason, drop_accepted, drop_pti : Out
        For one clock, registered as ``o`` is: the cell of this VC that came with the tick was dropped, for the reason
        (in the order of ``control.REASONS``), after so many of its VC had been accepted (modulo 2**32). So whoever
        watches knows which cell of the VC it was, and need not look at those that are not dropped. Where cells are made
        in the switch, ``drop_pti`` is its PTI: it may be one of those.
    … : Out
        What its options' plugins report (:meth:`.options.plugin.Plugin.members`).
    time, status, csr
        The faces of a node.

    Raises
    ------
    ValueError
        A parameter out of its range.

    Notes
    -----
    Counters of cells wrap at 2**32. ``HIGH_WATER`` is that of the occupancy at the ends of ticks. After reset the
    tables are cleared, a clock for each VC and reason (``idle`` is low): no VC is enabled, whatever was in the look-up;
    cells that arrive meanwhile are lost.

    Handshake: cells have no back-pressure; a cell in a tick each way, of any port.

    Latency: in ticks. A cell of tick T comes out in tick T+1 at the earliest, ``PROCESSING_DELAY`` later if its port is
    idle.

    Source: I.361 (header), TM 4.0 (af-tm-0056) clause 5.8 (frames).
    """

    def __init__(self, *, width=WIDE, vcs=64, cells=8192, ports=4, options=0):
        check_width(width)
        self.registers = switch_registers(vcs=vcs, cells=cells, ports=ports, options=options)
        self.width, self.vcs, self.cells, self.ports = width, vcs, cells, ports
        self.options = options_of(options)
        more = {}
        for plugin in Plugins.of(self.options):
            more |= plugin.members(vcs=vcs, ports=ports)
        if any(option.makes_cells for option in self.options):
            more["drop_pti"] = Out(3)
        super().__init__(
            {
                **node_members(width, ports),
                "o_end": Out(TIME_BITS),
                "csr": In(CsrSignature()),
                "drop": Out(1),
                "drop_vc": Out(range(vcs)),
                "drop_reason": Out(REASON_BITS),
                "drop_accepted": Out(32),
                **more,
            }
        )

    @property
    def documented_by(self):
        """Classes that describe ports of options."""
        return tuple(type(plugin) for plugin in Plugins.of(self.options))

    def elaborate(self, platform):
        m = Module()
        slot = TickSchedule(m, self.time, self.width, commit=COMMIT)
        csr = CsrMap(m, self.csr, self.registers)
        settings = {name: csr.register(name) for name in SETTINGS}
        build = Build(m, slot, csr, self.time.now, self.width, self.vcs, self.cells, self.ports, settings)
        plugins = Plugins.of(self.options)
        core = Core.of(build, self.i, plugins.build(build, self.options))
        arriving = arrive(core, plugins)
        self._report(m, arriving, plugins)
        leaving = leave(arriving, plugins)
        wiring.connect(m, wiring.flipped(self.o), core.egress.o)
        m.d.comb += self.o_end.eq(core.port_rate_scheduler.end)
        path = CellPath(core, self.time.now, arriving, leaving)
        for part in (core.changes, core.port_queues, *plugins):
            if part is not None:
                part.attach(m, csr, path)
        core.connect_periods(plugins.periods(), plugins.gates())
        core.connect_registers()
        csr.finish()
        core.connect_clearing()
        self._status(m, core, plugins)
        return slot.checked(m)

    def _report(self, m, cell, plugins):
        """Report a cell that is dropped, and what plugins report of others."""
        m.d.sync += self.drop.eq(cell.lost)
        valid = cell.lost
        for plugin in plugins:
            valid = plugin.report(m, cell, valid, self)
        with m.If(valid):
            m.d.sync += [
                self.drop_vc.eq(cell.vc),
                self.drop_reason.eq(cell.core.counters.reason),
                self.drop_accepted.eq(cell.core.vc_table.a_arrival.accepted),
            ]
            if cell.core.injection:
                m.d.sync += self.drop_pti.eq(cell.header.pti)

    def _status(self, m, core, plugins):
        """Connect ``idle`` and ``due``: until when the node has nothing to do."""
        due = [core.port_rate_scheduler.due, *(plugin.due for plugin in plugins if plugin.due is not None)]
        busy = [core.vc_table.clearing, *([core.injection.waits] if core.injection else [])]
        busy += [bit for plugin in plugins for bit in plugin.busy()]
        if not core.build.slot.wide:
            busy += [core.egress.streams, self.i.valid]
        m.d.comb += [self.status.due.eq(reduce(earlier, due)), self.status.idle.eq(~reduce(or_, busy))]
        for bit in (bit for plugin in plugins for bit in plugin.urgent()):
            with m.If(bit):
                m.d.comb += self.status.due.eq(0)  # long past: the next tick is wanted
