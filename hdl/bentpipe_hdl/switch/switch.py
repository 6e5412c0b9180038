"""The shared-buffer switch: its parts, and what passes between them in a tick."""

from functools import reduce
from operator import itemgetter, or_
from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arrival import Arrival
from ..cell import TIME_BITS, WIDE, CellHeader, check_width, earlier, node_members
from ..csr import CsrMap, CsrSignature
from ..lookup import Lookup
from ..slot import Slot
from ..steady import decides
from .admission import Admission, ClpThreshold, EarlyPacketDiscard, FullBuffer, OamReserve, Rank
from .buffer import CellBuffer
from .context import DEPARTURE, VcContext, VcField
from .control import REASON_BITS, switch_registers
from .counters import Changes, Counters
from .egress import Egress
from .inlet import Inlet
from .options import options_of
from .plugins import ArrivingCell, Build, LeavingCell, plugins_of
from .port_clock import COMMIT, PortClock
from .port_queues import PortQueues
from .scheduler import RoundRobin
from .tick import Tick

__all__ = ["Switch"]


class Switch(wiring.Component):
    """An output-queued ATM switch module: one cell buffer shared by all VCs, a linked-list queue a VC.

    A cell is looked up by (port, VPI, VCI), gets its VC's outgoing VPI/VCI, is queued or dropped, and leaves in its
    VC's turn (round robin over the VCs of its port that have cells, or as its options have it) at the rate of its port.

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

    **Set-up and tear-down.** A VC's queue, counters and frame state start anew when its ``VC_POLICY`` is written with
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
    drop, drop_vc, drop_reason, drop_accepted : Out
        For one clock, registered as ``o`` is: the cell of this VC that came with the tick was dropped, for the reason
        (in the order of ``control.REASONS``), after so many of its VC had been accepted (modulo 2**32). So whoever
        watches knows which cell of the VC it was, and need not look at those that are not dropped. Where cells are made
        in the switch, ``drop_pti`` is its PTI: it may be one of those.
    tells, own, took : Out
        Of a switch with OAM, likewise: something is to be told of the tick's cell; it is an OAM cell of the switch's
        own, queued or dropped; it is one that was taken.
    time, status, csr

    Raises
    ------
    ValueError
        A parameter out of its range.

    Notes
    -----
    Counters of cells wrap at 2**32. ``HIGH_WATER`` is that of the occupancy at the ends of ticks. After reset the
    tables are cleared, a clock for each VC and reason (``idle`` is low): no VC is enabled, whatever was in the look-up;
    cells that arrive meanwhile are lost. Clause: I.361, TM 4.0 (af-tm-0056) clause 5.8.
    """

    def __init__(self, *, width=WIDE, vcs=64, cells=8192, ports=4, options=0):
        check_width(width)
        self.registers = switch_registers(vcs=vcs, cells=cells, ports=ports, options=options)
        self.width, self.vcs, self.cells, self.ports = width, vcs, cells, ports
        self.options = options_of(options)
        drop = {
            "drop": Out(1),
            "drop_vc": Out(range(vcs)),
            "drop_reason": Out(REASON_BITS),
            "drop_accepted": Out(32),
        }
        if any(option.name == "oam" for option in self.options):
            drop |= {"tells": Out(1), "own": Out(1), "took": Out(1)}
        if any(option.makes_cells for option in self.options):
            drop["drop_pti"] = Out(3)
        super().__init__({**node_members(width, ports), "o_end": Out(TIME_BITS), "csr": In(CsrSignature()), **drop})

    def elaborate(self, platform):
        m = Module()
        slot = Slot(m, self.time, self.width, commit=COMMIT)
        csr = CsrMap(m, self.csr, self.registers)
        parts = self._parts(m, slot, csr)
        cell = self._arrive(m, slot, csr, parts)
        leaving = self._depart(m, csr, parts, cell)
        self._attach(m, csr, parts, cell, leaving)
        self._registers(m, csr, parts)
        self._status(m, slot, parts)
        return slot.checked(m)

    def _parts(self, m, slot, csr):
        """The core, built for its plugins, and these."""
        vcs, cells, ports, width = self.vcs, self.cells, self.ports, self.width
        plugins = plugins_of(self.options)
        capacity, epd_threshold, clp_threshold, self._delay, nni = (
            csr.setting(name) for name in ("capacity", "epd_threshold", "clp_threshold", "processing_delay", "nni")
        )
        build = Build(
            m, slot, csr, width, vcs, ports, (cells + 1).bit_length(), cells + vcs,
            {"epd_threshold": epd_threshold, "nni": nni},
            {name: plugin for plugin in plugins for name in plugin.options},
        )  # fmt: skip
        for plugin in plugins:
            plugin.build(build)

        def core(part):
            return {key: value for plugin in plugins for key, value in plugin.core.get(part, {}).items()}

        ranked = [
            (Rank.BUFFER_EPD, EarlyPacketDiscard(epd_threshold)),
            (Rank.FULL, FullBuffer(capacity, _only(plugin.shared_places() for plugin in plugins))),
            (Rank.RESERVE, OamReserve(csr.setting("user_capacity"))),
            (Rank.CLP, ClpThreshold(clp_threshold)),
            *(stage for plugin in plugins for stage in plugin.stages()),
        ]
        stages = [stage for _, stage in sorted(ranked, key=itemgetter(0))]
        offers = [plugin.offer for plugin in plugins if plugin.offer is not None]  # the first goes first
        inlet, i = None, wiring.flipped(self.i)
        if offers:
            inlet = m.submodules.inlet = Inlet(slot, width=width, ports=ports, vcs=vcs, offers=len(offers))
            wiring.connect(m, i, inlet.i)
            for mine, offer in zip(inlet.offers, offers, strict=True):
                wiring.connect(m, offer, mine)
            i = inlet.o
            csr.status("injected", inlet.injected)
        arrival = Arrival(m, slot, inlet.o if inlet else self.i)
        lookup = Lookup(m, slot, csr, vcs=vcs, ports=ports, nni=nni)
        counts_ports = any(option.needs_port_queues for option in self.options)
        buffer = m.submodules.buffer = CellBuffer(
            slot, cells=cells, vcs=vcs, at=DEPARTURE + 2,
            kept={
                **({"port": range(max(ports, 2))} if counts_ports else {}),
                **{name: shape for plugin in plugins for name, shape in plugin.cell_fields.items()},
            },
            **core("buffer"),
        )  # fmt: skip
        scheduler = m.submodules.scheduler = _only(plugin.scheduler(build) for plugin in plugins) or RoundRobin(
            slot, vcs=vcs, ports=ports, at=DEPARTURE - 2, **core("scheduler")
        )
        queues = changes = None
        if counts_ports:
            queues = m.submodules.port_queues = PortQueues(slot, ports=ports, count_bits=buffer.count_bits)
        counters = m.submodules.counters = Counters(slot, vcs=vcs, ports=ports)
        context = m.submodules.context = VcContext(
            slot, vcs=vcs, ports=ports, clears=max(counters.clears, *(plugin.clears for plugin in plugins), 0),
            fields=(
                VcField("tail", buffer.place_bits, "arrival", starts_as_index=True),
                VcField("accepted", 32, "arrival"),
                VcField("head", buffer.place_bits, "departure", starts_as_index=True),
                VcField("departed", 32, "departure"),
                *Admission.fields(stages),
                *(field for plugin in plugins for field in plugin.vc_fields),
            ),
            **core("context"),
        )  # fmt: skip
        if inlet:
            m.d.comb += inlet.hold.eq(context.clearing)
        admission = m.submodules.admission = Admission(
            slot, vcs=vcs, count_bits=buffer.count_bits, state=context.rows["state"], stages=stages,
            port_queues=counts_ports, **core("admission"),
        )  # fmt: skip
        port_clock = m.submodules.port_clock = PortClock(slot, ports=ports, **core("port_clock"))
        egress = m.submodules.egress = Egress(slot, width=width, ports=ports, places=cells + vcs, **core("egress"))
        if any(option.changes_cells for option in self.options):
            changes = m.submodules.changes = Changes(slot, vcs=vcs)
        return SimpleNamespace(
            build=build, plugins=plugins, i=i, inlet=inlet, arrival=arrival, lookup=lookup, buffer=buffer,
            scheduler=scheduler, queues=queues, counters=counters, context=context, admission=admission,
            port_clock=port_clock, egress=egress, changes=changes, nni=nni,
        )  # fmt: skip

    def _arrive(self, m, slot, csr, parts):
        """A cell comes: whose is it, and is it queued?"""
        arrival, context, admission, buffer = parts.arrival, parts.context, parts.admission, parts.buffer
        header, policy, inlet = arrival.header, context.a_policy, parts.inlet
        take, known, vc, seen = Signal(), Signal(), Signal(range(self.vcs)), Signal()
        enqueue, lost, stray, in_path = Signal(), Signal(), Signal(), Signal()
        with m.If(slot.commit), m.If(arrival.there & ~context.clearing):
            m.d.comb += take.eq(1)
        with slot.only(take):
            found, found_vc = parts.lookup.find(header, arrival.port)
            cell = ArrivingCell(
                build=parts.build, now=self.time.now, context=context, admission=admission, buffer=buffer,
                header=header, port=arrival.port, take=take, known=known, vc=vc, seen=seen, in_path=in_path,
                inside=inlet and inlet.inside, found=found, found_vc=found_vc, arrives=take, passes=seen,
                clp=header.clp, pti=header.pti, queued_pti=admission.new_pti,
            )  # fmt: skip
            for plugin in parts.plugins:
                plugin.find(m, cell)
            if inlet:
                cell.found, cell.found_vc = cell.found | inlet.inside, Mux(inlet.inside, inlet.vc, cell.found_vc)
            found, found_vc = slot.settle(cell.found, "found"), slot.settle(cell.found_vc, "found_vc")
            m.d.comb += [vc.eq(found_vc), known.eq(found & ~arrival.hec_error & policy.enabled)]
        for plugin in parts.plugins:
            plugin.claim(m, cell)
        came, dropped = cell.arrives, slot.settle(admission.drop, "drop_held")
        for plugin in parts.plugins:
            plugin.check(m, cell)
        drop, reason, state = cell.verdict(m, dropped, admission.reason, admission.new_state)
        with m.If(came):
            with m.If(known):
                m.d.comb += seen.eq(1)
                with m.If(drop):
                    m.d.comb += lost.eq(1)
                with m.Else():
                    m.d.comb += enqueue.eq(1)
            with m.Else():
                m.d.comb += stray.eq(1)
        empty, length = Signal(), Signal(buffer.count_bits)
        no_cell = context.a_arrival.tail == context.a_departure.head
        with slot.only(take):
            m.d.comb += [
                empty.eq(slot.settle(no_cell, "empty_held")),
                length.eq(context.a_arrival.accepted - context.a_departure.departed),
            ]
        begins = Signal()
        with m.If(enqueue), m.If(empty):
            m.d.comb += begins.eq(1)
        m.d.comb += [
            context.arrives.eq(take),
            context.arriving.eq(vc),
            context.arrival.tail.eq(buffer.place),
            context.arrival.accepted.eq(context.a_arrival.accepted + 1),
            context.arrival_en.eq(enqueue),
            context.state.eq(state),
            context.state_en.eq(seen),
            admission.arrives.eq(cell.arrives),
            admission.vc.eq(vc),
            admission.clp.eq(cell.clp),
            admission.pti.eq(cell.pti),
            admission.policy.eq(policy),
            admission.length.eq(length),
            admission.occupancy.eq(buffer.occupancy),
            admission.state.eq(context.a_state),
            buffer.enqueue.eq(enqueue),
            buffer.tail.eq(context.a_arrival.tail),
            buffer.clp.eq(admission.new_clp),
            buffer.pti.eq(cell.queued_pti),
            parts.counters.lost.eq(lost),
            parts.counters.vc.eq(vc),
            parts.counters.reason.eq(reason),
            parts.counters.stray.eq(stray),
            parts.counters.port.eq(arrival.port),
            parts.counters.hec_error.eq(arrival.hec_error),
            parts.egress.tail.eq(context.a_arrival.tail),
            parts.egress.enqueue.eq(enqueue),
        ]
        wiring.connect(m, parts.i, parts.egress.i)
        m.d.sync += self.drop.eq(lost)
        tells = lost
        for plugin in parts.plugins:
            tells = plugin.tell(m, cell, tells, self)
        with m.If(tells):
            m.d.sync += [
                self.drop_vc.eq(vc),
                self.drop_reason.eq(reason),
                self.drop_accepted.eq(context.a_arrival.accepted),
            ]
            if inlet:
                m.d.sync += self.drop_pti.eq(header.pti)
        decides(seen, 1, seldom=0)
        decides(enqueue, 2, seldom=0)
        return SimpleNamespace(
            cell=cell, enqueue=enqueue, begins=begins, length=length, no_cell=no_cell, policy=policy,
        )  # fmt: skip

    def _depart(self, m, csr, parts, came):
        """A cell leaves: of which port and VC? Is the VC still there, and does it go on?"""
        context, buffer, scheduler, clock = parts.context, parts.buffer, parts.scheduler, parts.port_clock
        slot, port, serve, d_policy = parts.build.slot, clock.port, clock.serve, context.d_policy
        gone, sends, flushes, more = Signal(), Signal(), Signal(), Signal()
        goes_on_at, begins = Signal.like(port), came.begins
        cell = LeavingCell(
            build=parts.build, scheduler=scheduler, context=context, buffer=buffer, port=port, serve=serve, gone=gone,
            more=more, goes_on_at=goes_on_at, vc=scheduler.vc, header_vc=scheduler.vc, message=None, dequeue=serve,
            asks=serve, stays=gone, rejoin=more, join=begins, join_vc=came.cell.vc, join_port=came.policy.port,
            rounds=scheduler, begins=scheduler.begins, clock_join_port=came.policy.port,
            clock_rejoin_port=goes_on_at, plain=True, clp=buffer.next_clp, pti=buffer.next_pti,
            vci=context.d_header.vci,
        )  # fmt: skip
        for plugin in parts.plugins:
            plugin.depart(m, cell)
        is_message = cell.message is not None
        with slot.only(serve):
            m.d.comb += [
                gone.eq(~d_policy.enabled & ~cell.message if is_message else ~d_policy.enabled),
                goes_on_at.eq(Mux(gone, port, d_policy.port)),
            ]
        same = slot.settle(came.cell.vc == cell.vc, "same_vc")
        with m.If(cell.dequeue):
            with m.If(gone):
                m.d.comb += flushes.eq(1)
            with m.Else():
                m.d.comb += sends.eq(1)
            m.d.comb += more.eq((buffer.next != context.d_arrival.tail) | (came.enqueue & same))
        decides(serve, 0)
        decides(more, 4)
        out_header = Signal(CellHeader)
        way = Cat(cell.vci, context.d_header.vpi)  # no GFC is sent
        m.d.comb += [
            out_header.clp.eq(cell.clp),
            out_header.pti.eq(cell.pti),
            Value.cast(out_header)[4:].eq(Mux(parts.nni.bit_select(port, 1), way, way[:24])),
            context.departs.eq(serve),
            context.departing.eq(cell.vc),
            context.headed.eq(cell.header_vc),
            context.departure.head.eq(buffer.next),
            context.departure.departed.eq(context.d_departure.departed + 1),
            context.departure_en.eq(cell.dequeue),
            buffer.dequeue.eq(cell.dequeue),
            buffer.may_dequeue.eq(clock.may_serve & ~cell.message if is_message else clock.may_serve),
            buffer.head.eq(context.d_departure.head),
            scheduler.port.eq(port),
            scheduler.serve.eq(cell.asks),
            scheduler.join.eq(cell.join),
            scheduler.join_vc.eq(cell.join_vc),
            scheduler.join_port.eq(cell.join_port),
            scheduler.rejoin.eq(cell.rejoin),
            scheduler.rejoin_port.eq(goes_on_at),
            clock.now.eq(self.time.now),
            clock.delay.eq(self._delay),
            clock.busy.eq(cell.rounds.busy),
            clock.flushes.eq(cell.stays),
            clock.join_port.eq(cell.clock_join_port),
            clock.rejoin_port.eq(cell.clock_rejoin_port),
            clock.changes.eq(cell.rounds.changes),
            clock.begins.eq(cell.begins),
            clock.joins.eq(begins if cell.plain else 1),
            clock.rejoins.eq(more & (goes_on_at != port) if cell.plain else 1),
            clock.still_busy.eq(cell.rounds.still_busy),
            parts.counters.flushed.eq(flushes),
            parts.egress.head.eq(context.d_departure.head),
            parts.egress.send.eq(sends | (serve & cell.message) if is_message else sends),
            parts.egress.header.eq(out_header),
            parts.egress.port.eq(port),
        ]
        wiring.connect(m, wiring.flipped(self.o), parts.egress.o)
        m.d.comb += self.o_end.eq(clock.end)
        return SimpleNamespace(cell=cell, sends=sends)

    def _attach(self, m, csr, parts, came, left):
        """What plugins take from the whole."""
        cell, leaving, plugins = came.cell, left.cell, parts.plugins
        tick = Tick(
            slot=parts.build.slot, now=self.time.now, buffer=parts.buffer, context=parts.context,
            scheduler=parts.scheduler, admission=parts.admission, port_clock=parts.port_clock, egress=parts.egress,
            queues=parts.queues, periods=csr.settings("period"), i=parts.i,
            there=parts.arrival.there & ~parts.context.clearing, known=cell.known, take=cell.take, seen=cell.seen,
            comes=cell.passes, enqueue=came.enqueue, begins=came.begins, header=cell.header, vc=cell.vc,
            policy=came.policy, in_path=cell.in_path, length=came.length, empty=came.no_cell, serve=leaving.serve,
            port=leaving.port, dequeue=leaving.dequeue, sends=left.sends, d_vc=leaving.vc, gone=leaving.gone,
            stays=leaving.stays, more=leaving.more, goes_on_at=leaving.goes_on_at,
        )  # fmt: skip
        for part in (parts.changes, parts.queues, *plugins):
            if part:
                part.attach(m, csr, tick)
        clock, gates = parts.port_clock, [plugin.gate for plugin in plugins if plugin.gate is not None]
        for name, come in (("stalled", "stalled"), ("still_stalled", "still_stalled"), ("rechecks", "changes")):
            if gates:
                m.d.comb += getattr(clock, name).eq(reduce(or_, (getattr(gate, come) for gate in gates)))
        periods = _only(plugin.periods() for plugin in plugins) or tick.periods
        m.d.comb += [one.eq(period) for one, period in zip(clock.period, periods, strict=True)]

    def _registers(self, m, csr, parts):
        """What software reads and writes of the core."""
        buffer, context, counters = parts.buffer, parts.context, parts.counters
        csr.status("occupancy", buffer.occupancy)
        csr.status("high_water", buffer.high_water)
        with csr.written("high_water"):
            m.d.comb += buffer.restart.eq(1)
        csr.status("flushed", counters.flushes)
        for name, index, entry, en in (
            ("vc_policy", context.policy_vc, context.policy, context.policy_en),
            ("vc_header", context.header_vc, context.header, context.header_en),
        ):
            at, word, written = csr.table(name)
            m.d.comb += [index.eq(at), Value.cast(entry).eq(word), en.eq(written)]
        csr.counts("accepted", context.arrival_of, context.arrival_row.accepted)
        csr.counts("departed", context.departure_of, context.departure_row.departed)
        csr.counts("dropped", counters.dropped_index, counters.dropped)
        csr.counts("unknown", counters.unknown_port, counters.unknown)
        csr.counts("hec", counters.hec_port, counters.hec)
        csr.finish()

    def _status(self, m, slot, parts):
        """Until when the node has nothing to do."""
        context, plugins = parts.context, parts.plugins
        due = [parts.port_clock.due, *(plugin.due for plugin in plugins if plugin.due is not None)]
        works = [
            context.clearing, *([parts.inlet.waits] if parts.inlet else []),
            *(bit for plugin in plugins for bit in plugin.works()),
        ]  # fmt: skip
        if not slot.wide:
            works += [parts.egress.streams, self.i.valid]
        m.d.comb += [
            parts.counters.clearing.eq(context.clearing),
            parts.counters.clear.eq(context.clear),
            self.status.due.eq(reduce(earlier, due)),
            self.status.idle.eq(~reduce(or_, works)),
        ]
        for bit in (bit for plugin in plugins for bit in plugin.urgent()):
            with m.If(bit):
                m.d.comb += self.status.due.eq(0)  # long past: the next tick is wanted


def _only(given):
    """The one that is there, if any."""
    return next((one for one in given if one is not None), None)
