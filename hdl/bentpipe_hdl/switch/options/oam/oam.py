"""OAM flows F4 and F5 in the switch (I.610): end points, points of loopback, alarms, continuity checks."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import NEVER, TIME_BITS, CellHeader, CellSignature, due_tick
from bentpipe_hdl.oam.cells import AIS, CONTINUITY_CHECK, END_PTI, END_VCI, LOOPBACK, RDI, SEGMENT_PTI, SEGMENT_VCI
from bentpipe_hdl.oam.receiver import LOCATION_BITS, TAG_BITS, OamReceiver
from bentpipe_hdl.oam.sender import PLACES, Kind, OamSender
from bentpipe_hdl.switch.core.injection import TAKEN as OFFER_TAKEN
from bentpipe_hdl.switch.core.injection import OfferSignature
from bentpipe_hdl.switch.core.vc_table import ARRIVAL
from bentpipe_hdl.switch.options.oam.control import (
    ABSENT,
    COMMAND,
    INTERVAL_BITS,
    LOG,
    MADE,
    POINT,
    SILENT,
    STATES,
    TAKEN,
)
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Oam"]

LOOK = 2
"""Narrow: the clock in which the state of the VC of the last event, or of the scan, is read."""

PARENT = LOOK + 2
"""Narrow: the clock in which the state of its VPC is."""

COUNT = 8
"""Narrow: the clock in which a count is read, to be written with the commit: from then on another event counts."""

Point, Command = (data.StructLayout({field.name: field.width for field in fields}) for fields in (POINT, COMMAND))
"""What a VC's flows have here, and what software requests, as they are declared (``switch/options/oam.py``)."""

States = data.StructLayout(dict.fromkeys(STATES, 1))

State = data.StructLayout(
    {
        "ais": 3,  # scans since the last AIS cell, and one more; 0: no AIS state
        "rdi": 3,
        "segment_idle": 3,  # scans without a sign of continuity in a row; SILENT of them: loss of continuity
        "end_idle": 3,
        "segment_checked": 1,  # a CC cell arrived since the last scan
        "end_checked": 1,
        "seen": 1,  # as of the last scan: `Activity.seen`
        "sent": 1,  # as of the last continuity check
        "ais_wait": 2,  # scans until the next cell
        "rdi_wait": 2,
        "check_wait": 2,
    }
)
"""State of a VC, written when an OAM cell of the VC arrives and when the VC is scanned."""

Activity = data.StructLayout({"seen": 1, "sent": 1})
"""Activity of a VC: a bit differs from its copy in `State` if a user cell has arrived since, or was queued. Written
when a user cell arrives."""

SECOND = 2
"""Scans in a second."""

_IDLE = {"segment_idle": ("segment_checked", "segment_sink"), "end_idle": ("end_checked", "end_sink")}
"""Fields of a `State`: count of scans without a sign of continuity; bits for an arrived CC cell and for a sink."""

_CAME = ("came_oam", "came_user", "came_segment", "came_outside", "came_ends", "came_loops")


class Oam(wiring.Component):
    """The OAM functions of a switch: it handles arriving OAM cells and generates its own.

    **Taken cells.** An OAM cell that arrives at the end point of its flow is taken. So is a loopback cell of a segment
    that is to be looped at this node's location. Its content takes effect in the next tick. Cells made by this node
    pass.

    **Scans.** A scan visits all VCs 0 to ``last``, one in each tick in which no cell arrives and none is being
    evaluated. Every ``interval`` ticks a scan updates states and timers (it *ages* them). Another scan begins whenever
    a defect or a state begins or ends, to find the cells that must be sent at once. A scan waits while a cell of the VC
    just visited waits to be sent.

    **Timers** count the scans that age. A state of AIS or RDI ends with the sixth scan after the last such cell. Loss
    of continuity begins with the eighth scan after the last cell; the first of them finds that there was one. Cells
    that are sent each second are sent at every other scan.

    Parameters
    ----------
    slot : TickSchedule
    width, vcs, ports : int

    Members
    -------
    now : In
    i : In(CellSignature)
        Cells behind the injection multiplexer.
    offer : Out(OfferSignature)
    clearing, clear : In
        After reset, entry ``clear`` of each table is cleared.
    entry_vc, entry, entry_en : In
        Software writes the functions of a VC's flows here; their states start again.
    interval, restart, last, defects, location, target : In
        Settings; ``restart`` is high for a clock when the interval was written.
    command, command_en : In
        Software requests a loopback cell.
    there, known, inside, arriving, header : In
        A cell arrives in this tick; its VC is known; it was made in this switch; its VC; its header. Narrow: valid by
        clocks 2, 9, 2, 7 and 2.
    queued : In
        The cell is queued; valid with the commit.
    takes : Out
        The cell is taken here. While ``there`` is low it is 0 on the wide datapath. Narrow: valid from clock ``ARRIVAL
        + 3`` on.
    own : Out
        The cell was made by this part. Narrow: valid from clock 2 on.
    due : Out
        Due tick.
    late, tag, answered, answer, delay, changes, taken, made, uncounted, state, log_low, log_high
        Registers for software.
    """

    def __init__(self, slot: TickSchedule, *, width: int, vcs: int, ports: int):
        self._slot, self._vcs = slot, vcs
        self.receiver = OamReceiver(slot, width=width, ports=ports)
        self.sender = OamSender(slot, width=width, ports=ports)
        vc = range(vcs)
        super().__init__(
            {
                "now": In(TIME_BITS),
                "i": In(CellSignature(width, ports)),
                "offer": Out(OfferSignature(width, vcs)),
                "clearing": In(1),
                "clear": In(range(vcs * len(TAKEN))),
                "entry_vc": In(vc),
                "entry": In(Point),
                "entry_en": In(1),
                "interval": In(INTERVAL_BITS),
                "restart": In(1),
                "last": In(vc),
                "defects": In(ports),
                "location": In(LOCATION_BITS),
                "target": In(LOCATION_BITS),
                "command": In(Command),
                "command_en": In(1),
                "there": In(1),
                "known": In(1),
                "inside": In(1),
                "arriving": In(vc),
                "header": In(CellHeader),
                "queued": In(1),
                "takes": Out(1),
                "own": Out(1),
                "due": Out(TIME_BITS),
                "late": Out(32),
                "tag": Out(TAG_BITS),
                "answered": Out(32),
                "answer": Out(TAG_BITS),
                "delay": Out(32),
                "changes": Out(32),
                "taken_of": In(range(vcs * len(TAKEN))),
                "taken": Out(32),
                "made_of": In(range(vcs * len(MADE))),
                "made": Out(32),
                "uncounted": Out(1),
                "state_of": In(vc),
                "state": Out(States),
                "log_low_of": In(range(LOG)),
                "log_low": Out(32),
                "log_high_of": In(range(LOG)),
                "log_high": Out(32),
            }
        )

    def attach(self, m, csr, path):
        """Connect the registers, the arriving cell, and whether it is queued."""
        context = path.core.vc_table
        index, entry, written = csr.write_port("oam_point")
        wiring.connect(m, path.core.cells_in, self.i)
        m.d.comb += [
            self.now.eq(path.now),
            self.clearing.eq(context.clearing),
            self.clear.eq(context.clear),
            self.entry_vc.eq(index),
            Value.cast(self.entry).eq(entry),
            self.entry_en.eq(written),
            self.interval.eq(csr.register("oam_interval")),
            self.last.eq(csr.register("oam_last")),
            self.defects.eq(csr.register("oam_defects")),
            self.location.eq(Cat(csr.registers("oam_location"))),
            self.target.eq(Cat(csr.registers("oam_target"))),
            Value.cast(self.command).eq(csr.register("oam_request")),
            self.there.eq(path.arriving.present),
            self.known.eq(path.arriving.known),
            self.inside.eq(path.arriving.inside),
            self.arriving.eq(path.arriving.vc),
            self.header.eq(path.arriving.header),
            self.queued.eq(path.arriving.enqueue),
        ]
        for name, strobe in (("oam_interval", self.restart), ("oam_request", self.command_en)):
            written = Signal(name=f"{name}_written")
            csr.on_write(name, written)
            m.d.comb += strobe.eq(written)
        for name in ("late", "tag", "answered", "answer", "delay", "changes", "uncounted"):
            csr.status(f"oam_{name}", getattr(self, name))
        for name in ("taken", "made", "state", "log_low", "log_high"):
            csr.read_port(f"oam_{name}", getattr(self, f"{name}_of"), Value.cast(getattr(self, name)))

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.queued)
        if not slot.wide:
            slot.clocks.strobe(self.offer.taken, OFFER_TAKEN)
        receiver, sender = self.receiver, self.sender
        m.submodules.receiver, m.submodules.sender = receiver, sender
        for part in (receiver, sender):
            wiring.connect(m, wiring.flipped(self.i), part.i)
            m.d.comb += part.location.eq(self.location)
        clear = (self.clearing, self.clear[: len(self.arriving)], 0)
        self.points = points = slot.store("oam_points", Point, self._vcs)
        points.write(self.entry_vc, self.entry, self.entry_en, clear=clear)
        self.states = states = slot.store("oam_states", State, self._vcs)
        self.activities = activities = slot.store("oam_activities", Activity, self._vcs)
        v = SimpleNamespace(
            activities=activities, clear=clear, points=points, receiver=receiver, sender=sender, states=states
        )  # what passes between the methods below
        self._arrive(m, slot, v)
        self._evaluate_last(m, slot, v)
        self._look_up(m, slot, v)
        self._schedule_scans(m, slot, v)
        self._offer(m, slot, v)
        self._round_trip(m, slot, v)
        self._counts(m, slot, v)
        self._due(m, slot, v)
        return m

    def _arrive(self, m, slot, v):
        """Decide whether the cell of the tick ends here, and whether it ends a state of its VC."""
        activities, clear, points, receiver, states = v.activities, v.clear, v.points, v.receiver, v.states
        point, state, activity = Signal(Point), Signal(State), Signal(Activity)
        oam, user, segment, outside, ends, loops = (Signal(name=name) for name in _CAME)
        m.d.comb += self.own.eq(self.offer.inside)
        header = self.header
        with slot.gate_when(self.there):
            m.d.comb += [
                point.eq(points.read(self.arriving, at=ARRIVAL, to="arriving_point")),
                outside.eq(self.known & ~self.inside),
            ]
            with m.If(point.path):  # F4: by VCI
                m.d.comb += [
                    oam.eq((header.vci == SEGMENT_VCI) | (header.vci == END_VCI)),
                    segment.eq(header.vci == SEGMENT_VCI),
                    user.eq(_user_vci(header.vci)),
                ]
            with m.Else():
                m.d.comb += [
                    oam.eq((header.pti == SEGMENT_PTI) | (header.pti == END_PTI)),
                    segment.eq(header.pti == SEGMENT_PTI),
                    user.eq(~header.pti[2]),
                ]
            m.d.comb += [
                ends.eq(oam & Mux(segment, point.segment_end, point.end)),
                loops.eq(oam & segment & point.loops & ~ends),
                receiver.decode.eq(outside & (ends | loops)),
                self.takes.eq(slot.pipe(outside & (ends | (loops & receiver.loopback_to_node)), "takes_held")),
            ]
        taken, freed = Signal(), Signal()  # it is taken; it ends a state
        watches = point.end | point.segment_sink | point.end_sink | point.segment_source | point.end_source
        with slot.gate_when(self.there & user & outside & watches):
            m.d.comb += [
                state.eq(states.read(self.arriving, at=ARRIVAL, to="arriving_state")),
                activity.eq(activities.read(self.arriving, at=ARRIVAL, to="arriving_activity")),
            ]
        active, marks = Signal(Activity), Signal()
        m.d.comb += active.eq(activity)
        with m.If(slot.commit), m.If(self.there):
            m.d.comb += taken.eq(self.takes)
            with m.If(user & outside & watches):
                m.d.comb += freed.eq((state.ais != 0) | _silent(state.segment_idle) | _silent(state.end_idle))
                with m.If((point.segment_sink | point.end_sink) & (activity.seen == state.seen)):
                    m.d.comb += [active.seen.eq(~activity.seen), marks.eq(1)]
                with m.If((point.segment_source | point.end_source) & self.queued & (activity.sent == state.sent)):
                    m.d.comb += [active.sent.eq(~activity.sent), marks.eq(1)]
        slot.with_commit(taken, freed, marks)
        activities.write(self.arriving, active, marks, clear=clear)
        activities.write(self.entry_vc, 0, self.entry_en)
        v.ends, v.freed, v.point, v.segment, v.taken = ends, freed, point, segment, taken

    def _evaluate_last(self, m, slot, v):
        """Evaluate the cell that arrived in the last tick, and queue loopback cells to be sent back."""
        ends, freed, point, receiver, segment, sender = v.ends, v.freed, v.point, v.receiver, v.segment, v.sender
        taken = v.taken
        rx_event_r, by_user, from_vc = Signal(), Signal(), Signal.like(self.arriving)
        kept = Signal(data.StructLayout({"segment": 1, "ends": 1, "path": 1, "back": len(point.back)}))
        stale = Signal()  # software has set the VC up since
        with m.If(slot.commit):
            m.d.sync += rx_event_r.eq(taken | freed)
        with m.If(taken | freed):
            m.d.sync += [
                by_user.eq(freed),
                from_vc.eq(self.arriving),
                kept.segment.eq(segment),
                kept.ends.eq(ends),
                kept.path.eq(point.path),
                kept.back.eq(point.back),
                stale.eq(0),
            ]
        with m.If(self.entry_en & (self.entry_vc == Mux(taken | freed, self.arriving, from_vc))):
            m.d.sync += stale.eq(1)
        message = receiver.message
        is_request, room, return_valid, to = Signal(), Signal(), Signal(), Signal(range(PLACES))
        count, first = Signal(range(PLACES)), Signal(range(PLACES))
        place = message.to_ends | message.to_node | (message.to_all & kept.segment)
        m.d.comb += [
            is_request.eq(message.fault & (message.function == LOOPBACK) & message.indication & (place | ~kept.ends)),
            room.eq(count != PLACES - 1),
            return_valid.eq(rx_event_r & ~by_user & receiver.good & is_request & room),
            receiver.capture.eq(taken),
            sender.capture.eq(taken),
            sender.source.eq(first),
        ]
        back = data.StructLayout({"vc": len(self.arriving), "segment": 1, "path": 1})
        backs, new_back, last_back = slot.store("oam_backs", back, PLACES), Signal(back), Signal(back)
        m.d.comb += [
            new_back.vc.eq(kept.back),
            new_back.segment.eq(kept.segment),
            new_back.path.eq(kept.path),
            last_back.eq(backs.read(first)),
        ]
        pushes = Signal()
        with m.If(slot.commit & return_valid):
            m.d.comb += pushes.eq(1)
        slot.with_commit(pushes)
        backs.write((first + count)[: len(first)], new_back, pushes)
        if slot.wide:
            m.d.comb += sender.to.eq((first + count + pushes)[: len(first)])
        else:  # before the next payload's first word is written
            with m.If(slot.clock(2)):
                m.d.sync += to.eq((first + count + return_valid)[: len(first)])
            m.d.comb += sender.to.eq(to)
        v.is_request, v.by_user, v.count, v.first, v.from_vc = is_request, by_user, count, first, from_vc
        v.rx_event_r = rx_event_r
        v.kept, v.last_back, v.pushes, v.room, v.message, v.stale = kept, last_back, pushes, room, message, stale

    def _look_up(self, m, slot, v):
        """Read the state of the VC that is looked up: that of the last tick's cell, or the next of a scan."""
        activities, by_user, clear, from_vc, rx_event_r = v.activities, v.by_user, v.clear, v.from_vc, v.rx_event_r
        kept, points, receiver, message, stale, states = v.kept, v.points, v.receiver, v.message, v.stale, v.states
        scans, ages, at, errand, ages_next = Signal(), Signal(), Signal.like(self.arriving), Signal(), Signal()
        owed, owed_vc, owed_back, owed_path = Signal(4), Signal.like(at), Signal.like(at), Signal()
        lookup_vc, lookup, steps = Signal.like(at), Signal(), Signal()
        m.d.comb += [
            steps.eq(scans & ~rx_event_r & ~self.there & (owed == 0)),
            lookup.eq(rx_event_r | steps),
            lookup_vc.eq(Mux(rx_event_r, from_vc, at)),
        ]
        lookup_point, old, new = Signal(Point), Signal(State), Signal(State)
        was, parent = Signal(Activity), Signal(State)
        with slot.gate_when(lookup):
            m.d.comb += old.eq(states.read(lookup_vc, at=LOOK, to="lookup_state"))
        with slot.gate_when(steps):
            m.d.comb += [
                lookup_point.eq(points.read(lookup_vc, at=LOOK, to="lookup_point")),
                was.eq(activities.read(lookup_vc, at=LOOK, to="lookup_activity")),
            ]
        with slot.gate_when(steps & lookup_point.inside):
            m.d.comb += parent.eq(states.read(lookup_point.parent[: len(at)], at=PARENT, to="lookup_parent"))
        make = Signal(4)
        with m.If(rx_event_r):
            self._update_by_cell(m, message, receiver.good, by_user, kept.segment, old, new)
        with m.Elif(steps) if slot.wide else m.Else():
            self._scan(m, ages, lookup_point, parent, was, old, new, make)
        touched = self._touched(m, slot, lookup_vc)
        changes = Signal()
        with m.If(slot.commit & lookup & ~touched & ~(rx_event_r & stale)):
            m.d.comb += changes.eq(new.as_value() != old.as_value())
        slot.with_commit(changes)
        states.write(lookup_vc, new, changes, clear=clear)
        states.write(self.entry_vc, 0, self.entry_en)
        v.ages, v.ages_next, v.at, v.changes, v.errand = ages, ages_next, at, changes, errand
        v.lookup_point = lookup_point
        v.lookup_vc, v.make, v.new, v.old, v.owed, v.owed_back = lookup_vc, make, new, old, owed, owed_back
        v.owed_path, v.owed_vc, v.scans, v.steps, v.touched = owed_path, owed_vc, scans, steps, touched

    def _schedule_scans(self, m, slot, v):
        """Begin scans, and keep the cells that they still have to send."""
        ages, ages_next, at, changes, errand = v.ages, v.ages_next, v.at, v.changes, v.errand
        lookup_point = v.lookup_point
        make, new, old, owed, owed_back, owed_path = v.make, v.new, v.old, v.owed, v.owed_back, v.owed_path
        owed_vc, scans, steps, touched = v.owed_vc, v.scans, v.steps, v.touched
        there, following, was_defects, restarts = Signal(), Signal(TIME_BITS), Signal.like(self.defects), Signal()
        next_scan = Signal(TIME_BITS)
        before, after = _summary(m, old, "before"), _summary(m, new, "after")
        news = Signal()
        m.d.comb += [
            there.eq((self.interval != 0) & ~(self.now - next_scan)[TIME_BITS - 1]),
            following.eq(due_tick((self.now + self.interval)[:TIME_BITS])),
            news.eq(changes & (before.as_value() != after.as_value())),
        ]
        with m.If(self.restart):
            m.d.sync += restarts.eq(1)
        with m.If(slot.commit):
            with m.If(restarts | self.restart):
                m.d.sync += [next_scan.eq(following), restarts.eq(0)]
            with m.Elif(there):
                m.d.sync += [next_scan.eq(following), ages_next.eq(1)]
                with m.If(ages_next | (scans & ages)):
                    m.d.sync += self.late.eq(self.late + 1)
            with m.If(~scans & (ages_next | errand)):
                m.d.sync += [scans.eq(1), ages.eq(ages_next), at.eq(0), errand.eq(0)]
                with m.If(~there | restarts | self.restart):
                    m.d.sync += ages_next.eq(0)
            with m.If(steps):
                m.d.sync += at.eq(at + 1)
                with m.If(at == self.last):
                    m.d.sync += scans.eq(0)
                with m.If(~touched):
                    m.d.sync += [
                        owed.eq(make),
                        owed_vc.eq(at),
                        owed_back.eq(lookup_point.back),
                        owed_path.eq(lookup_point.path),
                    ]
            with m.If(news | (self.defects != was_defects)):
                m.d.sync += [errand.eq(1), was_defects.eq(self.defects)]
        v.after, v.news, v.next_scan, v.restarts, v.there = after, news, next_scan, restarts, there
        v.was_defects = was_defects

    def _offer(self, m, slot, v):
        """Offer a cell for injection: a returned loopback cell, a cell that a scan owes, or a request of software."""
        at, count, first, last_back, owed, owed_back = v.at, v.count, v.first, v.last_back, v.owed, v.owed_back
        owed_path, owed_vc, pushes, sender = v.owed_path, v.owed_vc, v.pushes, v.sender
        offer, offered = self.offer, Signal(data.StructLayout({"kind": Kind, "segment": 1, "path": 1}))
        asked, command, sent_tag = Signal(), Signal(Command), Signal(TAG_BITS)
        wanted, tag = Signal(Command), Signal(TAG_BITS)  # what was written in the clock before the commit counts, too
        m.d.comb += [wanted.eq(command), tag.eq(self.tag)]
        with m.If(self.command_en):
            m.d.comb += [wanted.eq(self.command), tag.eq(self.tag + 1)]
            m.d.sync += [asked.eq(1), command.eq(wanted), self.tag.eq(tag)]
        vc = Signal.like(at)
        for register in (vc, offered, sent_tag):  # no commit changes them while a cell is offered
            slot.clocks.holds(register, 0)
        with m.If(slot.commit & ~offer.there):
            with m.If(count != 0):
                m.d.sync += [
                    offer.there.eq(1),
                    vc.eq(last_back.vc),
                    offered.kind.eq(Kind.RETURN),
                    offered.segment.eq(last_back.segment),
                    offered.path.eq(last_back.path),
                ]
            with m.Elif(owed != 0):
                m.d.sync += [offer.there.eq(1), vc.eq(owed_vc), offered.segment.eq(0), offered.path.eq(owed_path)]
                m.d.sync += owed.eq(owed & (owed - 1))
                with m.If(owed[0]):
                    m.d.sync += offered.kind.eq(Kind.AIS)
                with m.Elif(owed[1]):
                    m.d.sync += [offered.kind.eq(Kind.RDI), vc.eq(owed_back)]
                with m.Else():
                    m.d.sync += [offered.kind.eq(Kind.CONTINUITY_CHECK), offered.segment.eq(~owed[2])]
            with m.Elif(asked | self.command_en):
                m.d.sync += [
                    offer.there.eq(1),
                    vc.eq(wanted.vc),
                    offered.kind.eq(Kind.REQUEST),
                    offered.segment.eq(wanted.segment),
                    offered.path.eq(wanted.path),
                    sent_tag.eq(tag),
                    asked.eq(0),
                ]
        returns = Signal()
        m.d.comb += returns.eq(offer.taken & (offered.kind == Kind.RETURN))
        with m.If(offer.taken):
            m.d.sync += offer.there.eq(0)
        with m.If(returns):
            m.d.sync += first.eq(first + 1)
        self._count_places(m, slot, count, pushes, returns)
        m.d.comb += [
            offer.vc.eq(vc),
            offer.header.pti.eq(Mux(offered.path, 0, Mux(offered.segment, SEGMENT_PTI, END_PTI))),
            offer.header.vci.eq(Mux(offered.path, Mux(offered.segment, SEGMENT_VCI, END_VCI), 0)),
            sender.kind.eq(offered.kind),
            sender.tag.eq(sent_tag),
            sender.target.eq(self.target),
        ]
        if slot.wide:
            m.d.comb += [sender.enable.eq(offer.there), offer.payload.eq(sender.payload)]
        else:
            m.d.comb += [sender.place.eq(offer.place), offer.word.eq(sender.word)]
        v.asked, v.offer, v.offered, v.sent_tag, v.vc = asked, offer, offered, sent_tag, vc

    def _round_trip(self, m, slot, v):
        """Measure the round trip of the last loopback request."""
        by_user, rx_event_r, kept, offer, offered = v.by_user, v.rx_event_r, v.kept, v.offer, v.offered
        receiver, message, sent_tag = v.receiver, v.message, v.sent_tag
        out, left_at = Signal(), Signal(TIME_BITS)
        with m.If(offer.taken & (offered.kind == Kind.REQUEST)):
            m.d.sync += [out.eq(1), left_at.eq(self.now)]
        came_back = Signal()
        is_reply = message.fault & (message.function == LOOPBACK) & ~message.indication & message.from_node & kept.ends
        with m.If(slot.commit & rx_event_r & ~by_user & receiver.good & is_reply & out & (message.tag == sent_tag)):
            m.d.comb += came_back.eq(1)
        slot.with_commit(came_back)
        with m.If(came_back):
            m.d.sync += [
                out.eq(0),
                self.answered.eq(self.answered + 1),
                self.answer.eq(message.tag),
                self.delay.eq((self.now - left_at - 1)[:32]),
            ]
        v.is_reply = is_reply

    def _counts(self, m, slot, v):
        """Count cells, and keep the log of changed states."""
        after, is_request, by_user = v.after, v.is_request, v.by_user
        from_vc, rx_event_r, kept = v.from_vc, v.rx_event_r, v.kept
        lookup_vc, is_reply, news = v.lookup_vc, v.is_reply, v.news
        offer, offered, receiver = v.offer, v.offered, v.receiver
        room, message, states, vc = v.room, v.message, v.states, v.vc
        what = Signal(range(len(TAKEN)))
        m.d.comb += what.eq(TAKEN.index("other"))
        with m.If(~receiver.good):
            m.d.comb += what.eq(TAKEN.index("bad"))
        with m.Elif(is_request):
            m.d.comb += what.eq(Mux(room, TAKEN.index("looped"), TAKEN.index("no_place")))
        with m.Elif(is_reply):
            m.d.comb += what.eq(TAKEN.index("returned"))
        with m.Elif(message.fault & ~(kept.segment & (message.function != CONTINUITY_CHECK))):
            with m.Switch(message.function):
                for name, function in (("ais", AIS), ("rdi", RDI), ("cc", CONTINUITY_CHECK)):
                    with m.Case(function):
                        m.d.comb += what.eq(TAKEN.index(name))
        counts = Signal()
        with m.If(slot.commit & rx_event_r & ~by_user):
            m.d.comb += counts.eq(1)
        slot.with_commit(counts)
        m.d.comb += self.uncounted.eq(rx_event_r & ~by_user)
        self._counter(m, slot, "oam_taken", Cat(what, from_vc), counts, self.taken_of, self.taken, len(TAKEN))
        sends = Signal(range(len(MADE)))
        m.d.comb += sends.eq(Mux(offered.kind.as_value() >= Kind.REQUEST.value, Kind.REQUEST.value, offered.kind))
        self._counter(m, slot, "oam_made", Cat(sends, vc), offer.taken, self.made_of, self.made, len(MADE))
        entry = data.StructLayout({"time": TIME_BITS, "states": 4, "vc": 12})
        log, word = slot.store("oam_log", entry, LOG, block=True), Signal(entry)
        slot.with_commit(news)
        m.d.comb += [word.time.eq(self.now), word.states.eq(after), word.vc.eq(lookup_vc)]
        log.write(self.changes[: (LOG - 1).bit_length()], word, news)
        with m.If(news):
            m.d.sync += self.changes.eq(self.changes + 1)
        readback = Signal(State)
        m.d.comb += [
            readback.eq(states.peek(self.state_of)),
            self.state.eq(_summary(m, readback, "readback")),
            self.log_low.eq(log.peek(self.log_low_of).as_value()[:32]),
            self.log_high.eq(log.peek(self.log_high_of).as_value()[32:]),
        ]

    def _due(self, m, slot, v):
        """Drive the part's due tick."""
        ages_next, asked, count = v.ages_next, v.asked, v.count
        errand, freed, rx_event_r = v.errand, v.freed, v.rx_event_r
        next_scan, offer, owed, restarts, scans = v.next_scan, v.offer, v.owed, v.restarts, v.scans
        taken, there, was_defects = v.taken, v.there, v.was_defects
        works = rx_event_r | scans | ages_next | errand | (owed != 0) | offer.there | (count != 0) | asked | restarts
        works = works | (self.defects != was_defects) | self.command_en | self.restart
        at_once = Signal(TIME_BITS)  # a tick that is past
        with m.If(slot.commit & (works | taken | freed | there)):
            m.d.sync += at_once.eq(due_tick(self.now))
        m.d.comb += self.due.eq(Mux(works, at_once, Mux(self.interval != 0, next_scan, NEVER)))

    def _update_by_cell(self, m, message, good, by_user, segment, old, new):
        """Update the state of a VC by an arrived cell."""
        m.d.comb += new.eq(old)
        with m.If(by_user):
            m.d.comb += [new.ais.eq(0), new.segment_idle.eq(0), new.end_idle.eq(0)]
        with m.Elif(good & message.fault):
            with m.If(segment):
                with m.If(message.function == CONTINUITY_CHECK):
                    m.d.comb += [new.segment_idle.eq(0), new.segment_checked.eq(1)]
            with m.Elif(message.function == AIS):
                m.d.comb += new.ais.eq(1)
            with m.Elif(message.function == RDI):
                m.d.comb += new.rdi.eq(1)
            with m.Elif(message.function == CONTINUITY_CHECK):
                m.d.comb += [new.ais.eq(0), new.end_idle.eq(0), new.end_checked.eq(1)]

    def _scan(self, m, ages, lookup_point, parent, was, old, new, make):
        """Update the state of a VC by a scan, and decide which cells it makes: AIS, RDI, CC end to end, CC of the
        segment."""
        fails, alarm, ais, due, ports = Signal(), Signal(), Signal(), Signal(), len(self.defects)
        aged = {name: Signal.like(old[name], name=f"aged_{name}") for name in ("ais", "rdi", *_IDLE)}
        m.d.comb += new.eq(old)
        for name, value in aged.items():
            m.d.comb += value.eq(old[name])
        with m.If(ages):
            seen = was.seen != old.seen
            for name in ("ais", "rdi"):
                with m.If(old[name] != 0):
                    m.d.comb += aged[name].eq(Mux(old[name] == ABSENT, 0, old[name] + 1))
            for name, (checked, sink) in _IDLE.items():
                m.d.comb += new[checked].eq(0)
                with m.If(~lookup_point[sink] | seen | old[checked]):
                    m.d.comb += aged[name].eq(0)
                with m.Elif(~_silent(old[name])):
                    m.d.comb += aged[name].eq(old[name] + 1)
            m.d.comb += new.seen.eq(was.seen)
        for name, value in aged.items():
            m.d.comb += new[name].eq(value)
        m.d.comb += [
            fails.eq(
                (
                    self.defects.bit_select(lookup_point.port[: (ports - 1).bit_length()], 1)
                    if ports > 1
                    else self.defects
                )
                | (lookup_point.inside & ((parent.ais != 0) | _silent(parent.end_idle)))
                | (lookup_point.segment_sink & _silent(aged["segment_idle"]))
            ),
            alarm.eq(lookup_point.end & (fails | (aged["ais"] != 0) | _silent(aged["end_idle"]))),
            ais.eq(lookup_point.alarms & ~lookup_point.end & fails),
        ]
        for k, (name, wanted) in enumerate((("ais", ais), ("rdi", alarm))):
            wait = old[f"{name}_wait"]
            with m.If(~wanted):
                m.d.comb += new[f"{name}_wait"].eq(0)
            with m.Elif((wait == 0) | (ages & (wait == 1))):
                m.d.comb += [new[f"{name}_wait"].eq(SECOND), make[k].eq(1)]
            with m.Elif(ages):
                m.d.comb += new[f"{name}_wait"].eq(wait - 1)
        with m.If(ages & (lookup_point.segment_source | lookup_point.end_source)):
            with m.If(old.check_wait <= 1):
                m.d.comb += [
                    new.check_wait.eq(SECOND),
                    new.sent.eq(was.sent),
                    due.eq(lookup_point.always | (was.sent == old.sent)),
                    make[2].eq(lookup_point.end_source & due & ~ais),
                    make[3].eq(lookup_point.segment_source & due),
                ]
            with m.Else():
                m.d.comb += new.check_wait.eq(old.check_wait - 1)

    def _touched(self, m, slot, lookup_vc):
        """Return whether software sets up the VC that is looked up, in this tick."""
        now = self.entry_en & (self.entry_vc == lookup_vc)
        if slot.wide:
            return now
        touched = Signal()
        with m.If(now):
            m.d.sync += touched.eq(1)
        with m.Elif(slot.clock(0)):
            m.d.sync += touched.eq(0)
        return now | touched

    def _count_places(self, m, slot, count, pushes, returns):
        if slot.wide:
            with m.If(pushes & ~returns):
                m.d.sync += count.eq(count + 1)
            with m.Elif(returns & ~pushes):
                m.d.sync += count.eq(count - 1)
        else:
            with m.If(pushes):
                m.d.sync += count.eq(count + 1)
            with m.Elif(returns):
                m.d.sync += count.eq(count - 1)

    def _counter(self, m, slot, name, index, counts, readback_index, readback, kinds):
        counters = slot.store(name, 32, self._vcs * kinds, block=True)
        before = counters.read(index, at=COUNT, to=f"{name}_before")
        clear = self.clear[: (self._vcs * kinds - 1).bit_length()]
        counters.write(index, before + 1, counts, clear=(self.clearing, clear, 0))
        m.d.comb += readback.eq(counters.peek(readback_index))


def _silent(idle):
    return idle == SILENT


def _user_vci(vci):
    """Return whether a VCI of a VP connection carries user cells.

    It is neither one of flow F4 nor another reserved one (I.361 clause 2.2.3; I.610 clause 9.2).
    """
    return (vci > END_VCI) & (vci != 6) & (vci != 7) | (vci == 1) | (vci == 2)


def _summary(m, state, name):
    """Return the states that a VC is in."""
    found = Signal(States, name=f"{name}_states")
    m.d.comb += [
        found.ais.eq(state.ais != 0),
        found.rdi.eq(state.rdi != 0),
        found.segment_loc.eq(_silent(state.segment_idle)),
        found.end_loc.eq(_silent(state.end_idle)),
    ]
    return found
