"""The shared-buffer switch: its parts, and what passes between them in a tick."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arrival import Arrival
from ..cell import TIME_BITS, WIDE, CellHeader, check_width, earlier, node_members
from ..credits.cells import RM
from ..csr import CsrMap, CsrSignature
from ..lookup import Lookup
from ..slot import Slot
from ..steady import decides
from .admission import Admission, ClpThreshold, EarlyPacketDiscard, FullBuffer, OamReserve, PortEpd, QueueLimit
from .buffer import CellBuffer
from .context import DEPARTURE, VcContext, VcField
from .control import REASON_BITS, REASONS, switch_registers
from .copier import COPIED, Copier
from .counters import Changes, Counters
from .credits import Credits
from .efci import CongestionIndication
from .egress import Egress
from .fair import ActiveVcs, FairShare
from .frame_clock import FrameClock
from .histograms import Histograms
from .inlet import Inlet
from .minimum import GuaranteedCells
from .oam import Oam
from .options import options_of
from .options.scheduling import PRIORITIES
from .options.vp import paths_of
from .policer import POLICED, Policer
from .port_clock import COMMIT, PortClock
from .port_queues import PortQueues
from .rate_controller import RateController
from .red import EarlyDetection, RandomEarlyDetection
from .scheduler import RoundRobin
from .shaper import Shaper
from .tick import Tick
from .turns import Turns
from .virtual_clock import VirtualClock

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
        vcs, cells, ports, width = self.vcs, self.cells, self.ports, self.width
        csr = CsrMap(m, self.csr, self.registers)
        has = {option.name for option in self.options}
        counts_ports = any(option.needs_port_queues for option in self.options)
        capacity, epd_threshold, clp_threshold, processing_delay, nni = (
            csr.setting(name) for name in ("capacity", "epd_threshold", "clp_threshold", "processing_delay", "nni")
        )
        count_bits = (cells + 1).bit_length()
        minima = None
        if "minimum" in has:
            minima = m.submodules.minima = GuaranteedCells(slot, vcs=vcs, count_bits=count_bits)
        stages = [
            EarlyPacketDiscard(epd_threshold),
            FullBuffer(capacity, minima),
            OamReserve(csr.setting("user_capacity")),
            ClpThreshold(clp_threshold),
        ]
        active = red = credits = histograms = queues = shaper = joins = rates = frames = changes = None
        if "fair" in has:
            active = m.submodules.active = ActiveVcs(slot, vcs=vcs)
            settings = csr.setting("fair_share"), csr.setting("fair_span")
            stages.insert(1, FairShare(epd_threshold, *settings, active.count, vcs=vcs, table=csr.table("vc_fair")))
        if "port_epd" in has:
            stages.insert(1, PortEpd(csr.settings("port_epd_threshold")))
        if "efci" in has:
            thresholds = csr.setting("efci_threshold"), csr.settings("port_efci_threshold")
            stages.append(CongestionIndication(*thresholds, vcs=vcs, table=csr.table("vc_efci_threshold")))
        limit = QueueLimit(csr.settings("queue_limit")) if "queue_limit" in has else None
        if "red" in has:
            red = m.submodules.red = RandomEarlyDetection(slot, ports=ports, count_bits=count_bits)
            stages.insert(0, EarlyDetection(red, limit))
        if limit:
            stages.insert(0, limit)
        if "credits" in has:
            credits = m.submodules.credits = Credits(slot, width=width, vcs=vcs, ports=ports)

        shapes = "shape" in has and not has & {"fifo", "shares", "virtual-clock", "credits", "frames"}
        if "shape" in has and not shapes:  # only rounds hold VCs back
            csr.table("shape_rate")
            csr.table("shape_limit")

        # The parts
        oam = copier = None
        if "oam" in has:
            oam = m.submodules.oam = Oam(slot, width=width, vcs=vcs, ports=ports)
        if "copies" in has:
            copier = m.submodules.copier = Copier(slot, width=width, ports=ports, vcs=vcs)
        offers = [part.offer for part in (oam, copier) if part]  # of those that make cells; OAM's go first
        cells_in, inlet = wiring.flipped(self.i), None
        if offers:
            inlet = m.submodules.inlet = Inlet(slot, width=width, ports=ports, vcs=vcs, offers=len(offers))
            wiring.connect(m, cells_in, inlet.i)
            for mine, offer in zip(inlet.offers, offers, strict=True):
                wiring.connect(m, offer, mine)
            cells_in = inlet.o
            csr.status("injected", inlet.injected)
        arrival = Arrival(m, slot, inlet.o if inlet else self.i)
        lookup = Lookup(m, slot, csr, vcs=vcs, ports=ports, nni=nni)
        if "vp" in has:
            paths = Lookup(
                m, slot, csr, vcs=vcs, ports=ports, nni=nni, name="vp_lookup", entries=paths_of(vcs), paths=True
            )
        buffer = m.submodules.buffer = CellBuffer(
            slot,
            cells=cells,
            vcs=vcs,
            at=DEPARTURE + 2,
            kept={
                **({"port": range(max(ports, 2))} if counts_ports else {}),
                **({"shared": 1} if minima is not None else {}),
                **({"vci": 16} if "vp" in has else {}),
            },
            may_stay=shapes,
        )
        scheduler = m.submodules.scheduler = self._scheduler(slot, has)
        by_cell = isinstance(scheduler, Turns) and "fifo" in has
        fields = (
            *([VcField("kept", scheduler.Kept, "arrival")] if by_cell else []),
            VcField("tail", buffer.place_bits, "arrival", starts_as_index=True),
            VcField("accepted", 32, "arrival"),
            VcField("head", buffer.place_bits, "departure", starts_as_index=True),
            VcField("departed", 32, "departure"),
            *Admission.fields(stages),
            *((POLICED,) if "police" in has else ()),
            *((COPIED,) if copier else ()),
            *(minima.fields if minima is not None else ()),
            *((VcField("holds", 1, "arrival"), VcField("held", 1, "departure")) if credits else ()),
        )
        if counts_ports:
            queues = m.submodules.port_queues = PortQueues(slot, ports=ports, count_bits=buffer.count_bits)
        counters = m.submodules.counters = Counters(slot, vcs=vcs, ports=ports)
        clears = counters.clears
        if "histograms" in has:
            histograms = m.submodules.histograms = Histograms(
                slot, vcs=vcs, ports=ports, places=cells + vcs, at=DEPARTURE + 2
            )
            clears = max(clears, histograms.clears)
        if isinstance(scheduler, VirtualClock):
            clears = max(clears, scheduler.clears)
        context = m.submodules.context = VcContext(
            slot, vcs=vcs, ports=ports, clears=clears, fields=fields, looks=credits is not None
        )
        if inlet:
            m.d.comb += inlet.hold.eq(context.clearing)
        admission = m.submodules.admission = Admission(
            slot,
            vcs=vcs,
            count_bits=buffer.count_bits,
            state=context.rows["state"],
            stages=stages,
            port_queues=counts_ports,
            minima=minima is not None,
        )
        port_clock = m.submodules.port_clock = PortClock(
            slot, ports=ports, reactive="reactive" in has, framed="frames" in has, shapes=shapes
        )
        egress = m.submodules.egress = Egress(
            slot, width=width, ports=ports, places=cells + vcs, messages=credits is not None
        )

        # A cell comes: whose is it, and is it queued?
        header, policy = arrival.header, context.a_policy
        take, known, vc = Signal(), Signal(), Signal(range(vcs))
        with m.If(slot.commit), m.If(arrival.there & ~context.clearing):
            m.d.comb += take.eq(1)
        seen, enqueue, lost, stray = Signal(), Signal(), Signal(), Signal()
        in_path = Signal()  # it is of no VC here, but of a VPC
        with slot.only(take):
            found, found_vc = lookup.find(header, arrival.port)
            if "vp" in has:
                found_path, path_vc = paths.find(header, arrival.port)
                mine = inlet.inside if inlet else 0  # of what is made here its maker knows the VCI, or it is 0
                m.d.comb += in_path.eq(slot.settle(found_path & ~found, "found_path") | mine)
                found, found_vc = found | found_path, Mux(found, found_vc, path_vc)
            if inlet:
                found, found_vc = found | inlet.inside, Mux(inlet.inside, inlet.vc, found_vc)
            found, found_vc = slot.settle(found, "found"), slot.settle(found_vc, "found_vc")
            m.d.comb += [vc.eq(found_vc), known.eq(found & ~arrival.hec_error & policy.enabled)]
        pti, out_pti, out_vci = header.pti, admission.new_pti, context.d_header.vci
        if "vp" in has:  # a VPC's cells keep their VCIs; its OAM cells are known by these (F4), and keep their PTI, too
            manages = Signal()
            with m.If(in_path):
                m.d.comb += manages.eq((header.vci == 3) | (header.vci == 4))
            pti, out_pti = header.pti | (manages << 2), Signal(3)
            out_vci = Mux(out_vci == 0, buffer.next_vci, out_vci)
            m.d.comb += [buffer.vci.eq(header.vci), out_pti.eq(Cat(admission.new_pti[:2], header.pti[2]))]
        came = take & ~(known & (header.pti == RM)) if credits else take
        if oam:
            came = came & ~oam.takes
        arrives, clp, comes = came, header.clp, seen  # as the buffer sees it
        drop, reason, state = slot.settle(admission.drop, "drop_held"), admission.reason, admission.new_state
        if "police" in has:
            policer = m.submodules.policer = Policer(slot, vcs=vcs)
            m.d.comb += [
                Cat(policer.rate_index, policer.rate, policer.rate_en).eq(Cat(csr.table("police_rate"))),
                Cat(policer.limit_index, policer.limit, policer.limit_en).eq(Cat(csr.table("police_limit"))),
                policer.now.eq(self.time.now),
                policer.arrives.eq(came & ~oam.own if oam else came),
                policer.vc.eq(vc),
                policer.clp.eq(header.clp),
                policer.user.eq(~header.pti[2]),
                policer.last.eq(header.pti[0]),
                policer.state.eq(context.a_state.policed),
                policer.seen.eq(seen & ~oam.own if oam else seen),
                policer.clearing.eq(context.clearing),
                policer.clear.eq(context.clear),
            ]
            csr.counts("upc_tagged", policer.tagged_index, policer.tagged)
            objects, clp, policed = policer.discard, policer.new_clp, policer.new_state
            if oam:  # its cells come in behind the policer
                objects = objects & ~oam.own
                clp, policed = Mux(oam.own, header.clp, clp), Mux(oam.own, context.a_state.policed, policed)
            discarded = slot.settle(objects, "discard_held")
            arrives, comes, drop = came & ~objects, seen & ~discarded, drop | discarded
        if "police" in has or copier:
            reason, state = Signal(REASON_BITS), Signal(context.rows["state"])
            m.d.comb += [reason.eq(admission.reason), state.eq(admission.new_state)]
        if copier:
            m.d.comb += [
                copier.inside.eq(inlet.inside),
                copier.arrives.eq(arrives),
                copier.user.eq(~pti[2]),
                copier.last.eq(pti[0]),
                copier.header.eq(header),
                copier.header.clp.eq(clp),
            ]
            refused = slot.settle(copier.refuse, "refused_held")
            arrives, comes, drop = arrives & ~copier.refuse, comes & ~refused, drop | refused
            with m.If(copier.refuse):
                m.d.comb += [reason.eq(REASONS.index("copies")), state.eq(context.a_state)]
            m.d.comb += state.copied.eq(copier.new_state)
        if "police" in has:
            with m.If(objects):
                m.d.comb += [reason.eq(REASONS.index("upc")), state.eq(context.a_state)]
            m.d.comb += state.policed.eq(policed)
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
        m.d.comb += [
            context.arrives.eq(take),
            context.arriving.eq(vc),
            context.arrival.tail.eq(buffer.place),
            context.arrival.accepted.eq(context.a_arrival.accepted + 1),
            context.arrival_en.eq(enqueue),
            context.state.eq(state),
            context.state_en.eq(seen),
            admission.arrives.eq(arrives),
            admission.vc.eq(vc),
            admission.clp.eq(clp),
            admission.pti.eq(pti),
            admission.policy.eq(policy),
            admission.length.eq(length),
            admission.occupancy.eq(buffer.occupancy),
            admission.state.eq(context.a_state),
            buffer.enqueue.eq(enqueue),
            buffer.tail.eq(context.a_arrival.tail),
            buffer.clp.eq(admission.new_clp),
            buffer.pti.eq(out_pti),
            counters.lost.eq(lost),
            counters.vc.eq(vc),
            counters.reason.eq(reason),
            counters.stray.eq(stray),
            counters.port.eq(arrival.port),
            counters.hec_error.eq(arrival.hec_error),
        ]
        m.d.sync += self.drop.eq(lost)
        tells = lost
        if oam:
            own, took, tells = Signal(), Signal(), Signal()
            with m.If(take):
                m.d.comb += [own.eq(oam.own), took.eq(oam.takes), tells.eq(lost | own | took)]
            m.d.sync += [self.own.eq(own), self.took.eq(took), self.tells.eq(tells)]
        with m.If(tells):
            m.d.sync += [
                self.drop_vc.eq(vc),
                self.drop_reason.eq(reason),
                self.drop_accepted.eq(context.a_arrival.accepted),
            ]
            if inlet:
                m.d.sync += self.drop_pti.eq(header.pti)

        # A cell leaves: of which port and VC? Is the VC still there, and does it go on?
        port, d_vc, d_policy = port_clock.port, scheduler.vc, context.d_policy
        serve, gone, sends, flushes, more = port_clock.serve, Signal(), Signal(), Signal(), Signal()
        dequeue, control, stays, goes_on = serve, None, gone, more
        if credits:  # or does a cell of ours leave?
            d_vc, control, dequeue = credits.departing, credits.control, Signal()
            m.d.comb += dequeue.eq(serve & ~control)
        if shapes:  # a VC whose cell may not go yet stays in the round without one
            shaper = m.submodules.shaper = Shaper(slot, vcs=vcs, ports=ports)
            joins, held = Signal(ports), shaper.held
            dequeue, stays, goes_on = Signal(), gone | held, more | (serve & held)
            begun = scheduler.begins | (joins & shaper.stalled & ~shaper.wakes)
            with m.If(serve), m.If(~held):
                m.d.comb += dequeue.eq(1)
            with m.If(scheduler.join):
                m.d.comb += joins.bit_select(scheduler.join_port, 1).eq(1)
            with m.If(scheduler.rejoin), m.If(scheduler.rejoin_port != port):
                m.d.comb += joins.bit_select(scheduler.rejoin_port, 1).eq(1)
            slot.with_commit(dequeue, joins)
        goes_on_at = Signal.like(port)
        with slot.only(serve):
            m.d.comb += [
                gone.eq(~d_policy.enabled & ~control if credits else ~d_policy.enabled),
                goes_on_at.eq(Mux(gone, port, d_policy.port)),
            ]
        same = slot.settle(vc == d_vc, "same_vc")
        with m.If(dequeue):
            with m.If(gone):
                m.d.comb += flushes.eq(1)
            with m.Else():
                m.d.comb += sends.eq(1)
            m.d.comb += more.eq((buffer.next != context.d_arrival.tail) | (enqueue & same))
        decides(serve, 0)
        decides(seen, 1, seldom=0)
        decides(enqueue, 2, seldom=0)
        decides(more, 4)
        begins = Signal()
        with m.If(enqueue), m.If(empty):
            m.d.comb += begins.eq(1)
        out_header = Signal(CellHeader)
        rounds, join_port = (credits, credits.join_port) if credits else (scheduler, policy.port)
        plain = isinstance(scheduler, RoundRobin) and not (credits or shapes)  # a port begins with a VC that joins
        way = Cat(out_vci, context.d_header.vpi)  # no GFC is sent
        m.d.comb += [
            out_header.clp.eq(buffer.next_clp & ~control if credits else buffer.next_clp),
            out_header.pti.eq(Mux(control, RM, buffer.next_pti) if credits else buffer.next_pti),
            Value.cast(out_header)[4:].eq(Mux(nni.bit_select(port, 1), way, way[:24])),
            context.departs.eq(serve),
            context.departing.eq(d_vc),
            context.headed.eq(credits.header_vc if credits else d_vc),
            context.departure.head.eq(buffer.next),
            context.departure.departed.eq(context.d_departure.departed + 1),
            context.departure_en.eq(dequeue),
            buffer.dequeue.eq(dequeue),
            buffer.may_dequeue.eq(port_clock.may_serve & ~control if credits else port_clock.may_serve),
            buffer.head.eq(context.d_departure.head),
            scheduler.port.eq(port),
            scheduler.serve.eq(serve if shapes else dequeue),
            scheduler.join.eq(credits.join if credits else begins),
            scheduler.join_vc.eq(credits.join_vc if credits else vc),
            scheduler.join_port.eq(join_port),
            scheduler.rejoin.eq(credits.rejoin if credits else goes_on),
            scheduler.rejoin_port.eq(goes_on_at),
            port_clock.now.eq(self.time.now),
            port_clock.delay.eq(processing_delay),
            port_clock.busy.eq(rounds.busy),
            port_clock.flushes.eq(stays),
            port_clock.join_port.eq(scheduler.joins_at if by_cell else join_port),
            port_clock.rejoin_port.eq(credits.rejoin_port if credits else goes_on_at),
            port_clock.changes.eq(rounds.changes),
            port_clock.begins.eq(begun if shapes else rounds.begins),
            port_clock.joins.eq(begins if plain else 1),
            port_clock.rejoins.eq(more & (goes_on_at != port) if plain else 1),
            port_clock.still_busy.eq(rounds.still_busy),
            counters.flushed.eq(flushes),
            egress.tail.eq(context.a_arrival.tail),
            egress.enqueue.eq(enqueue),
            egress.head.eq(context.d_departure.head),
            egress.send.eq(sends | (serve & control) if credits else sends),
            egress.header.eq(out_header),
            egress.port.eq(port),
        ]
        wiring.connect(m, cells_in, egress.i)
        wiring.connect(m, wiring.flipped(self.o), egress.o)
        m.d.comb += self.o_end.eq(port_clock.end)

        # The parts that it has by its options
        if "reactive" in has:
            rates = m.submodules.rates = RateController(slot, ports=ports, count_bits=buffer.count_bits)
        if "frames" in has:
            frames = m.submodules.frames = FrameClock(slot, ports=ports)
        gates = [gate for gate in (rates, frames, shaper) if gate]  # what may stall ports
        if any(option.changes_cells for option in self.options):
            changes = m.submodules.changes = Changes(slot, vcs=vcs)
        tick = Tick(
            slot=slot, now=self.time.now, buffer=buffer, context=context, scheduler=scheduler, admission=admission,
            port_clock=port_clock, egress=egress, queues=queues, periods=csr.settings("period"), i=cells_in,
            there=arrival.there & ~context.clearing, known=known, take=take, seen=seen, comes=comes, enqueue=enqueue,
            begins=begins, header=header, vc=vc, policy=policy, in_path=in_path, length=length, empty=no_cell,
            serve=serve, port=port, dequeue=dequeue, sends=sends, d_vc=d_vc, gone=gone, stays=stays, more=more,
            goes_on_at=goes_on_at,
        )  # fmt: skip
        if not isinstance(scheduler, RoundRobin):
            scheduler.attach(m, csr, tick)
        if oam:
            oam.attach(m, csr, tick, inlet.inside)
        for part in (changes, copier, credits, queues, active, minima, histograms, red, rates, frames):
            if part:
                part.attach(m, csr, tick)
        if shaper:
            shaper.attach(m, csr, tick, joins)
        for name, come in (("stalled", "stalled"), ("still_stalled", "still_stalled"), ("rechecks", "changes")):
            if gates:
                m.d.comb += getattr(port_clock, name).eq(reduce(or_, (getattr(gate, come) for gate in gates)))
        periods = rates.periods if rates else tick.periods
        m.d.comb += [one.eq(period) for one, period in zip(port_clock.period, periods, strict=True)]

        # Registers
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

        due = [part.due for part in (port_clock, frames, rates, shaper, credits, oam) if part]
        works = [context.clearing, *([inlet.waits] if inlet else []), *([copier.waiting.any()] if copier else [])]
        if not slot.wide:
            works += [egress.streams, self.i.valid, *([histograms.pending] if histograms else [])]
        m.d.comb += [
            counters.clearing.eq(context.clearing),
            counters.clear.eq(context.clear),
            self.status.due.eq(reduce(earlier, due)),
            self.status.idle.eq(~reduce(or_, works)),
        ]
        if copier:
            with m.If(copier.busy):
                m.d.comb += self.status.due.eq(0)  # long past: the next tick is wanted
        return slot.checked(m)

    def _scheduler(self, slot, has):
        """Whose turn is next at a port."""
        at, vcs, ports = DEPARTURE - 2, self.vcs, self.ports
        if "virtual-clock" in has:
            return VirtualClock(slot, vcs=vcs, ports=ports)
        if not has & {"fifo", "shares"}:
            return RoundRobin(slot, vcs=vcs, ports=ports, at=at, counts="shape" in has)
        places = self.cells + vcs if "fifo" in has else 0
        shares = "shares" in has
        return Turns(
            slot, vcs=vcs, ports=ports, at=at, places=places, weighted=shares, priorities=PRIORITIES if shares else 1
        )
