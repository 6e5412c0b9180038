"""The path of a cell through a switch: the joints at which plugins see it, and the core's part between them.

A joint is a point of the path where an option may have a say. :class:`ArrivingCell` has those from the look-up to the
queue, :class:`LeavingCell` those from the scheduler to egress; plugins are called there one after the other
(:mod:`.options.plugin`), see the values as they are, and may replace some of them. This module names no option.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import wiring

from bentpipe_hdl.cell import CellHeader
from bentpipe_hdl.sim_hints import branch_first
from bentpipe_hdl.switch.core.core import Core
from bentpipe_hdl.switch.core.vc_table import VcField
from bentpipe_hdl.switch.registers import REASON_BITS, REASONS

__all__ = ["ArrivingCell", "CellPath", "LeavingCell", "arrive", "leave"]


@dataclass
class ArrivingCell:
    """The cell of the tick, from the look-up to the queue. From which clock of a narrow tick each value is there, its
    owner says.

    Members
    -------
    core : Core
    now : Value
    present : Value
        A cell arrives in this tick, and the switch is not clearing.
    header : CellHeader
    port : Value
        Its input port.
    policy : data.View
        Its VC's.
    inside : Value or None
        It was made in the switch; None: none is.
    arrival : Signal
        A cell arrives, with the commit.
    known : Signal
        It is of a known VC.
    vc : Signal
    known_arrival : Signal
        With the commit: it arrives, is of a known VC, and is to be queued or dropped here.
    in_path : Signal
        It is of no VC of its own, but of a virtual path; also what is made in the switch.
    found, found_vc : Value
        The look-ups' answer. Joint ``find``: plugins may replace it.
    admissible : Value
        A cell arrives that no plugin before has claimed or refused. Joints ``claim`` and ``check``.
    passes : Value
        Likewise in the commit: ``known_arrival``. Joint ``check``.
    clp, pti : Value
        As admission sees them. Joint ``check``.
    queued_pti : Value
        As it is queued. Joint ``check``.
    local : Value or None
        A plugin made it for the switch itself, so that no other plugin polices it; None: none does. Joint ``claim``.
    enqueue : Signal
        With the commit: it is queued.
    lost : Signal
        With the commit: it is dropped.
    starts_queue : Signal
        It is queued, and its VC had no cells queued.
    length : Signal
        Cells queued of its VC, before it.
    queue_empty : Value
        None are.
    """

    core: Core
    now: Value
    present: Value
    header: Any
    port: Value
    policy: Any
    inside: Value | None
    found: Value
    found_vc: Value
    admissible: Value
    passes: Value
    clp: Value
    pti: Value
    queued_pti: Value
    arrival: Signal
    known: Signal
    vc: Signal
    known_arrival: Signal
    in_path: Signal
    enqueue: Signal
    lost: Signal
    starts_queue: Signal
    length: Signal
    queue_empty: Value
    local: Value | None = None
    _refusals: list[tuple[Value, Value, int, str, Value]] = field(default_factory=list)

    @property
    def state(self) -> Any:
        """Return the state that plugins keep of the cell's VC (``vc_fields`` written as "state")."""
        return self.core.vc_table.a_state

    def refuse(self, objects: Value, held: str, *, reason: str, keeps: VcField, state: Value) -> None:
        """Refuse the cell where ``objects`` is high: plugins behind do not see it, and no state of the VC changes but
        ``keeps``, which becomes ``state``. ``held`` is the name of the pipeline register behind ``objects``."""
        settled = self.core.build.slot.pipe(objects, held)
        self.admissible, self.passes = self.admissible & ~objects, self.passes & ~settled
        self._refusals.append((objects, settled, REASONS.index(reason), keeps.name, state))

    def verdict(self, drop: Value) -> tuple[Value, Value, Any]:
        """Return whether the cell is dropped, why, and the VC's new state, by admission (``drop``) and by refusals."""
        admission, m = self.core.admission, self.core.build.m
        if not self._refusals:
            return drop, admission.reason, admission.new_state
        reason, after = Signal(REASON_BITS, name="reason"), Signal(self.core.vc_table.rows["state"], name="state")
        m.d.comb += [reason.eq(admission.reason), after.eq(admission.new_state)]
        for _, settled, *_ in self._refusals:
            drop = drop | settled
        for objects, _, index, keeps, new in reversed(self._refusals):  # the first that objects has the last word
            with m.If(objects):
                m.d.comb += [reason.eq(index), after.eq(self.state)]
            m.d.comb += after[keeps].eq(new)
        return drop, reason, after


@dataclass
class LeavingCell:
    """The turn of a port, from the scheduler to egress. Plugins may replace, in the joint ``depart``, all from ``vc``
    on.

    Members
    -------
    core : Core
    port, serve : Value
        With the commit: this port sends.
    gone : Signal
        The VC is torn down.
    more : Signal
        It has further cells.
    sends : Signal
        A cell of the buffer goes out.
    goes_on_at : Signal
        The port of the VC's next cell.
    vc, header_vc : Value
        Whose rows are read, and whose header leaves.
    message : Value or None
        What leaves is a cell that a plugin makes, not one of the buffer; None: never.
    dequeue : Value
        A cell leaves the buffer.
    asks : Value
        The scheduler's ``serve``.
    stays : Value
        No cell goes out: the port's clock stays.
    rejoin : Value
        The VC joins its round again.
    join, join_vc, join_port : Value
        What joins a round.
    rounds : component
        Whose ``busy``, ``changes``, ``begins``, ``still_busy`` the port rate scheduler follows.
    begins : Value
        Of these.
    clock_join_port, clock_rejoin_port : Value
        Where a port's clock may begin.
    plain : bool
        A port's clock begins only where a VC joins that had no cells.
    clp, pti, vci : Value
        Of the header as it leaves.
    """

    core: Core
    port: Value
    serve: Value
    gone: Signal
    more: Signal
    sends: Signal
    goes_on_at: Signal
    vc: Value
    header_vc: Value
    dequeue: Value
    asks: Value
    stays: Value
    rejoin: Value
    join: Value
    join_vc: Value
    join_port: Value
    rounds: Any
    begins: Value
    clock_join_port: Value
    clock_rejoin_port: Value
    clp: Value
    pti: Value
    vci: Value
    message: Value | None = None
    plain: bool = True


@dataclass(frozen=True)
class CellPath:
    """The whole path, for what plugins connect last.

    Members
    -------
    core : Core
    now : Value
    arriving : ArrivingCell
    leaving : LeavingCell
    """

    core: Core
    now: Value
    arriving: ArrivingCell
    leaving: LeavingCell


def arrive(core: Core, plugins: Sequence[Any]) -> ArrivingCell:
    """Build the path of the arriving cell: find its VC, admit it, queue it or count its loss."""
    m, slot, arrival, table = core.build.m, core.build.slot, core.arrival, core.vc_table
    present, known_arrival = arrival.there & ~table.clearing, Signal(name="known_arrival")
    came = Signal(name="arrival")
    with m.If(slot.commit), m.If(present):
        m.d.comb += came.eq(1)
    with slot.gate_when(came):
        found, found_vc = core.lookup.find(arrival.header, arrival.port)
        cell = ArrivingCell(
            core=core, now=core.build.now, present=present, header=arrival.header, port=arrival.port,
            policy=table.a_policy, inside=core.injection and core.injection.inside, found=found, found_vc=found_vc,
            admissible=came, passes=known_arrival, clp=arrival.header.clp, pti=arrival.header.pti,
            queued_pti=core.admission.new_pti, arrival=came, known=Signal(name="known"),
            vc=Signal(range(core.build.vcs), name="vc"), known_arrival=known_arrival, in_path=Signal(name="in_path"),
            enqueue=Signal(name="enqueue"), lost=Signal(name="lost"), starts_queue=Signal(name="starts_queue"),
            length=Signal(core.buffer.count_bits, name="length"),
            queue_empty=table.a_arrival.tail == table.a_departure.head,
        )  # fmt: skip
        for plugin in plugins:
            plugin.find(m, cell)
        _identify(cell)
    for plugin in plugins:
        plugin.claim(m, cell)
    admissible, dropped = cell.admissible, slot.pipe(core.admission.drop, "drop_held")
    for plugin in plugins:
        plugin.check(m, cell)
    _admit(cell, admissible, *cell.verdict(dropped))
    _enqueue(cell)
    branch_first(known_arrival, 1, seldom=0)
    branch_first(cell.enqueue, 2, seldom=0)
    return cell


def _identify(cell: ArrivingCell) -> None:
    """Find the VC of the cell; a cell made in the switch brings its VC with it."""
    m, slot, injection, arrival = cell.core.build.m, cell.core.build.slot, cell.core.injection, cell.core.arrival
    if injection:
        cell.found, cell.found_vc = cell.found | injection.inside, Mux(injection.inside, injection.vc, cell.found_vc)
    found, found_vc = slot.pipe(cell.found, "found"), slot.pipe(cell.found_vc, "found_vc")
    m.d.comb += [cell.vc.eq(found_vc), cell.known.eq(found & ~arrival.hec_error & cell.policy.enabled)]


def _admit(cell: ArrivingCell, admissible: Value, drop: Value, reason: Value, state: Any) -> None:
    """Queue the cell or drop it, and count what is dropped."""
    core, m = cell.core, cell.core.build.m
    admission, counters, table, stray = core.admission, core.counters, core.vc_table, Signal(name="stray")
    with m.If(admissible):
        with m.If(cell.known):
            m.d.comb += cell.known_arrival.eq(1)
            with m.If(drop):
                m.d.comb += cell.lost.eq(1)
            with m.Else():
                m.d.comb += cell.enqueue.eq(1)
        with m.Else():
            m.d.comb += stray.eq(1)
    m.d.comb += [
        table.arrives.eq(cell.arrival),
        table.arriving.eq(cell.vc),
        table.state.eq(state),
        table.state_en.eq(cell.known_arrival),
        admission.arrives.eq(cell.admissible),
        admission.vc.eq(cell.vc),
        admission.clp.eq(cell.clp),
        admission.pti.eq(cell.pti),
        admission.policy.eq(cell.policy),
        admission.length.eq(cell.length),
        admission.occupancy.eq(core.buffer.occupancy),
        admission.state.eq(cell.state),
        counters.lost.eq(cell.lost),
        counters.vc.eq(cell.vc),
        counters.reason.eq(reason),
        counters.stray.eq(stray),
        counters.port.eq(cell.port),
        counters.hec_error.eq(core.arrival.hec_error),
    ]


def _enqueue(cell: ArrivingCell) -> None:
    """Append the cell to its VC's queue."""
    core, m, slot = cell.core, cell.core.build.m, cell.core.build.slot
    buffer, table, empty = core.buffer, core.vc_table, Signal(name="empty")
    with slot.gate_when(cell.arrival):
        m.d.comb += [
            empty.eq(slot.pipe(cell.queue_empty, "empty_held")),
            cell.length.eq(table.a_arrival.accepted - table.a_departure.departed),
        ]
    with m.If(cell.enqueue), m.If(empty):
        m.d.comb += cell.starts_queue.eq(1)
    m.d.comb += [
        table.arrival.tail.eq(buffer.place),
        table.arrival.accepted.eq(table.a_arrival.accepted + 1),
        table.arrival_en.eq(cell.enqueue),
        buffer.enqueue.eq(cell.enqueue),
        buffer.tail.eq(table.a_arrival.tail),
        buffer.clp.eq(core.admission.new_clp),
        buffer.pti.eq(cell.queued_pti),
        core.egress.tail.eq(table.a_arrival.tail),
        core.egress.enqueue.eq(cell.enqueue),
    ]
    wiring.connect(m, core.cells_in, core.egress.i)


def leave(arriving: ArrivingCell, plugins: Sequence[Any]) -> LeavingCell:
    """Build the path of the leaving cell: its port and VC, whether the VC still exists, whether it has more cells."""
    core, m, table = arriving.core, arriving.core.build.m, arriving.core.vc_table
    buffer, scheduler, rates = core.buffer, core.scheduler, core.port_rate_scheduler
    gone, more, goes_on_at = Signal(name="gone"), Signal(name="more"), Signal.like(rates.port, name="goes_on_at")
    cell = LeavingCell(
        core=core, port=rates.port, serve=rates.serve, gone=gone, more=more, sends=Signal(name="sends"),
        goes_on_at=goes_on_at, vc=scheduler.vc, header_vc=scheduler.vc, dequeue=rates.serve, asks=rates.serve,
        stays=gone, rejoin=more, join=arriving.starts_queue, join_vc=arriving.vc, join_port=arriving.policy.port,
        rounds=scheduler, begins=scheduler.begins, clock_join_port=arriving.policy.port,
        clock_rejoin_port=goes_on_at, clp=buffer.next_clp, pti=buffer.next_pti, vci=table.d_header.vci,
    )  # fmt: skip
    for plugin in plugins:
        plugin.depart(m, cell)
    _dequeue(cell, arriving)
    _schedule(cell, arriving)
    _send(cell)
    branch_first(cell.serve, 0)
    branch_first(more, 4)
    return cell


def _dequeue(cell: LeavingCell, arriving: ArrivingCell) -> None:
    """Take the cell off its VC's queue; of a VC that is torn down it is flushed."""
    core, m, slot = cell.core, cell.core.build.m, cell.core.build.slot
    buffer, table, rates, flushes = core.buffer, core.vc_table, core.port_rate_scheduler, Signal(name="flushes")
    enabled, may_dequeue = table.d_policy.enabled, rates.may_serve
    with slot.gate_when(cell.serve):
        m.d.comb += [
            cell.gone.eq(~enabled if cell.message is None else ~enabled & ~cell.message),
            cell.goes_on_at.eq(Mux(cell.gone, cell.port, table.d_policy.port)),
        ]
    same = slot.pipe(arriving.vc == cell.vc, "same_vc")
    with m.If(cell.dequeue):
        with m.If(cell.gone):
            m.d.comb += flushes.eq(1)
        with m.Else():
            m.d.comb += cell.sends.eq(1)
        m.d.comb += cell.more.eq((buffer.next != table.d_arrival.tail) | (arriving.enqueue & same))
    m.d.comb += [
        table.departs.eq(cell.serve),
        table.departing.eq(cell.vc),
        table.headed.eq(cell.header_vc),
        table.departure.head.eq(buffer.next),
        table.departure.departed.eq(table.d_departure.departed + 1),
        table.departure_en.eq(cell.dequeue),
        buffer.dequeue.eq(cell.dequeue),
        buffer.may_dequeue.eq(may_dequeue if cell.message is None else may_dequeue & ~cell.message),
        buffer.head.eq(table.d_departure.head),
        core.counters.flushed.eq(flushes),
    ]


def _schedule(cell: LeavingCell, arriving: ArrivingCell) -> None:
    """Connect the schedulers of VCs and ports to the VCs that join and continue."""
    build, scheduler, rates = cell.core.build, cell.core.scheduler, cell.core.port_rate_scheduler
    build.m.d.comb += [
        scheduler.port.eq(cell.port),
        scheduler.serve.eq(cell.asks),
        scheduler.join.eq(cell.join),
        scheduler.join_vc.eq(cell.join_vc),
        scheduler.join_port.eq(cell.join_port),
        scheduler.rejoin.eq(cell.rejoin),
        scheduler.rejoin_port.eq(cell.goes_on_at),
        rates.now.eq(build.now),
        rates.delay.eq(build.settings["processing_delay"]),
        rates.busy.eq(cell.rounds.busy),
        rates.flushes.eq(cell.stays),
        rates.join_port.eq(cell.clock_join_port),
        rates.rejoin_port.eq(cell.clock_rejoin_port),
        rates.changes.eq(cell.rounds.changes),
        rates.begins.eq(cell.begins),
        rates.joins.eq(arriving.starts_queue if cell.plain else 1),
        rates.rejoins.eq(cell.more & (cell.goes_on_at != cell.port) if cell.plain else 1),
        rates.still_busy.eq(cell.rounds.still_busy),
    ]


def _send(cell: LeavingCell) -> None:
    """Put the cell out with its new header; no GFC is sent."""
    core, m = cell.core, cell.core.build.m
    egress, header = core.egress, Signal(CellHeader, name="out_header")
    way = Cat(cell.vci, core.vc_table.d_header.vpi)
    m.d.comb += [
        header.clp.eq(cell.clp),
        header.pti.eq(cell.pti),
        Value.cast(header)[4:].eq(Mux(core.build.settings["nni"].bit_select(cell.port, 1), way, way[:24])),
        egress.head.eq(core.vc_table.d_departure.head),
        egress.send.eq(cell.sends if cell.message is None else cell.sends | (cell.serve & cell.message)),
        egress.header.eq(header),
        egress.port.eq(cell.port),
    ]
