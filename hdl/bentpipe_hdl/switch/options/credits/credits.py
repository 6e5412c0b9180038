"""Credits in the switch: which VC may send to the next switch, and what those before it may send here."""

from types import SimpleNamespace

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import CellSignature, due_tick
from bentpipe_hdl.credits.audit import STEP_BITS, CreditAudit
from bentpipe_hdl.credits.cells import COUNT_BITS, RM, Message, MessageReceiver
from bentpipe_hdl.credits.gate import CreditGate
from bentpipe_hdl.switch.core.vc_table import ARRIVAL, DEPARTURE, LOOK, Policy
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["COUNTERS", "CreditReturn", "Credits", "MessageQueue", "VcCredits"]

PLACES = 16
"""Credit cells and probes that wait at a port."""

COUNTERS = ("came", "bad", "given", "probes", "skipped", "holds")
"""Credit cells and probes that came in; those of them that no one could read; those sent; those not sent as their port
had no place for them; how often a VC had to wait for credit."""

VcCredits = data.StructLayout({"share": 16, "back": 12, "back_port": 4, "returns": 1})
"""What a VC has of credits, as it is declared (``switch/options/credits.py``)."""


class CreditReturn(wiring.Component):
    """The return of credits to the node before: ``freed = departed + lost`` of a VC, after each ``batch`` departed
    cells.

    ``lost`` is the number of cells by which a probe's count of cells sent exceeds those accepted here. They were lost
    on the line or dropped.

    Parameters
    ----------
    slot : TickSchedule
    vcs : int

    Members
    -------
    probed, probed_vc, count, accepted : In
        A probe of this VC arrived; the cells sent by its count; the cells accepted here until it arrived.
    departing_valid, vc, batch, grant : In
        A cell of this VC leaves the buffer; cells per credit cell; the requested credit cell is queued. Narrow: ``vc``
        from clock ``DEPARTURE`` on.
    request : Out
        A credit cell is requested: this cell is the ``batch``-th since the last one.
    departed, freed : In, Out
        Counts of ``vc``.
    clearing, clear : In
    lost_of, lost : In, Out
        A VC and its count, read by software.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, count_bits: int = COUNT_BITS):
        self._slot, self._vcs, self._count_bits = slot, vcs, count_bits
        vc = range(vcs)
        super().__init__(
            {
                "probed": In(1),
                "probed_vc": In(vc),
                "count": In(count_bits),
                "accepted": In(count_bits),
                "departing_valid": In(1),
                "vc": In(vc),
                "batch": In(16),
                "grant": In(1),
                "request": Out(1),
                "departed": In(count_bits),
                "freed": Out(count_bits),
                "clearing": In(1),
                "clear": In(vc),
                "lost_of": In(vc),
                "lost": Out(count_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.probed, self.departing_valid)
        self.losses = losses = slot.store("losses", self._count_bits, self._vcs, block=True)
        losses.write(
            self.probed_vc, (self.count - self.accepted)[: self._count_bits], self.probed,
            clear=(self.clearing, self.clear, 0),
        )  # fmt: skip
        m.d.comb += [
            self.freed.eq(self.departed + losses.read(self.vc, at=DEPARTURE, to="lost_before")),
            self.lost.eq(losses.peek(self.lost_of)),
        ]
        since = slot.store("since", 16, self._vcs, block=True)
        count, more = Signal(16), Signal(16)
        m.d.comb += [
            count.eq(since.read(self.vc, at=DEPARTURE, to="left_since")),
            more.eq(count + ~count.all()),
            self.request.eq(slot.pipe(more >= self.batch, "request_held")),
        ]
        since.write(self.vc, Mux(self.grant, 0, more), self.departing_valid, clear=(self.clearing, self.clear, 0))
        return m


class MessageQueue(wiring.Component):
    """Credit cells and probes that wait at each port, in order; and the events of these and of the scheduler's rounds
    together, for the port clocks.

    Parameters
    ----------
    slot : TickSchedule
    vcs, ports : int

    Members
    -------
    put, put_port, put_entry : In
        Twice: by what comes in, and by the cell that leaves. At most one of each a tick.
    room : Out
        Likewise, whether there is a place for it: there from when ``put_port`` is. The last place is for the former.
    port : In, valid, entry : Out
        The port whose turn it is; whether such a cell is next there, and which. Narrow: ``port`` from clock 2 on,
        ``entry`` from clock ``DEPARTURE`` on.
    take : In
        It leaves.
    data_busy, data_changes, data_begins, data_still_busy : In; busy, changes, begins, still_busy : Out
        As for :class:`~bentpipe_hdl.switch.core.round_robin.RoundRobin`: of the rounds, and of both.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, ports: int):
        self._slot, self._ports = slot, ports
        port = range(max(ports, 2))
        self.entry_layout = data.StructLayout(
            {"vc": (vcs - 1).bit_length(), "header": (vcs - 1).bit_length(), "probe": 1}
        )
        super().__init__(
            {
                "put": In(1).array(2),
                "put_port": In(port).array(2),
                "put_entry": In(self.entry_layout).array(2),
                "room": Out(1).array(2),
                "port": In(port),
                "valid": Out(1),
                "entry": Out(self.entry_layout),
                "take": In(1),
                "data_busy": In(ports),
                "data_changes": In(1),
                "data_begins": In(ports),
                "data_still_busy": In(ports),
                "busy": Out(ports),
                "changes": Out(1),
                "begins": Out(ports),
                "still_busy": Out(ports),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, ports = self._slot.within(m), self._ports
        slot.with_commit(self.put[0], self.put[1], self.take)
        bits = (PLACES - 1).bit_length()
        self.first = first = Array(Signal(bits, name=f"first{p}") for p in range(ports))
        self.count = count = Array(Signal(bits + 1, name=f"count{p}") for p in range(ports))
        self.some = some = Signal(ports)
        entries = slot.store("messages", self.entry_layout, ports * PLACES, apart=True)

        def at(port, index):
            return Cat(index[:bits], port) if ports > 1 else index[:bits]

        m.d.comb += self.valid.eq(some.bit_select(self.port, 1))
        with slot.gate_when(self.valid):
            m.d.comb += self.entry.eq(
                entries.read(at(self.port, first[self.port]), at=DEPARTURE - 2, to="next_message")
            )
        same = Signal()
        m.d.comb += same.eq(self.put[0] & (self.put_port[0] == self.put_port[1]))
        for k in range(2):
            port = self.put_port[k]
            m.d.comb += self.room[k].eq(count[port] < PLACES - k)
            end = first[port] + count[port] + (same if k else 0)
            entries.write(at(port, end), self.put_entry[k], self.put[k])

        joined, emptied = Signal(ports), Signal(ports)
        for p in range(ports):
            puts = [self.put[k] & (self.put_port[k] == p) for k in range(2)]
            takes = self.take & (self.port == p)
            after = Signal(bits + 1, name=f"count_after{p}")
            m.d.comb += [
                joined[p].eq(puts[0] | puts[1]),
                emptied[p].eq(takes & (count[p] == 1)),
                after.eq(count[p] + puts[0] + puts[1] - takes),
            ]
            with m.If(puts[0] | puts[1] | takes):
                m.d.sync += [count[p].eq(after), some[p].eq(after != 0)]
            with m.If(takes):
                m.d.sync += first[p].eq(first[p] + 1)
        kept, data_kept, data_still = Signal(ports), Signal(ports), Signal(ports)
        m.d.comb += [
            self.busy.eq(self.data_busy | some),
            self.changes.eq(self.data_changes | self.put[0] | self.put[1] | self.take),
        ]
        with m.If(slot.commit), m.If(self.changes):
            m.d.comb += [
                data_still.eq(Mux(self.data_changes, self.data_still_busy, self.data_busy)),
                data_kept.eq(data_still & ~self.data_begins),
                kept.eq(some & ~emptied),
                self.begins.eq((self.data_begins | joined) & ~data_kept & ~kept),
                self.still_busy.eq(data_still | kept | joined),
            ]
        return m


class Credits(wiring.Component):
    """Credits of a switch: VCs in their ports' rounds, and the cells that keep the counts of a line's two ends equal.

    In a tick a data cell arrives, or a credit cell or probe. The latter can make a VC join a round, or a message join a
    port's queue. That happens in the tick after it, or, if data arrive then, in the first tick without data. So at most
    one such action waits.

    Parameters
    ----------
    slot : TickSchedule
    width, vcs, ports : int

    Members
    -------
    now : In
    i : In(CellSignature)
    clearing, clear : In
        After reset: the VC whose entries are cleared.
    entry_vc, entry, entry_en : In
        Software writes a VC's credits.
    batch, step, last : In
        Settings.
    arriving_valid, known, arriving, rm, arriving_departed : In
        A cell arrives in this tick; its VC is known; the VC; its PTI is that of an RM cell, which ends here;
        ``departed`` of the VC. Narrow: valid by clocks 2, 9, 7, 2 and 9.
    begins_data, begins_port, arriving_held : In, In, Out
        The cell is queued, and its VC had no cells queued; the VC's port; the VC has to wait for credit.
    join, join_vc, join_port : Out
        Join of a VC, for the scheduler; ``join_port`` also for the port clocks. Narrow: the latter two from clocks 7
        and 9 on.
    lookup, lookup_vc, lookup_accepted, lookup_departed, lookup_held, lookup_policy : Out, Out, In, In, In, In
        The VC of a message or an audit, and its rows; narrow: requested in clock ``LOOK``.
    serve, port, data_vc, more, flushes, goes_on_at : In
        A cell leaves; its port; the VC that is next in its round; the VC continues; it is torn down; the port at which
        it continues. Narrow: ``port`` from clock 2 on, ``data_vc`` from clock ``DEPARTURE`` on.
    control, departing, header_vc, departing_departed, message : Out, Out, Out, In, Out
        The departing cell is a credit cell or a probe; the VC whose rows are read for it; the VC whose header it has;
        ``departed`` of the former; its content.
    rejoin, rejoin_port, departing_held : Out
        The VC joins its round again; the port whose clock may begin after the departure; the VC has to wait for credit.
    data_busy, data_changes, data_begins, data_still_busy, busy, changes, begins, still_busy
        As for :class:`MessageQueue`.
    due : Out
        Due tick.
    came, bad, given, probes, skipped, holds : Out
        ``COUNTERS``. They wrap at 2**32.
    freed_of, freed, lost_of, lost : In, Out, In, Out
        A VC and its counts, read by software.
    """

    def __init__(self, slot: TickSchedule, *, width: int, vcs: int, ports: int):
        self._slot, self._vcs = slot, vcs
        vc, port = range(vcs), range(max(ports, 2))
        self.gate, self.returns = CreditGate(slot, vcs=vcs, at=(LOOK, DEPARTURE, ARRIVAL)), CreditReturn(slot, vcs=vcs)
        self.queue, self.audit = MessageQueue(slot, vcs=vcs, ports=ports), CreditAudit(slot, vcs=vcs)
        self.receiver = MessageReceiver(slot, width=width, ports=ports)
        mine = {name: self.queue.signature.members[name] for name in _ROUNDS}
        super().__init__(
            {
                "now": In(len(self.audit.now)),
                "i": In(CellSignature(width, ports)),
                "clearing": In(1),
                "clear": In(vc),
                "entry_vc": In(vc),
                "entry": In(VcCredits),
                "entry_en": In(1),
                "batch": In(16),
                "step": In(STEP_BITS),
                "last": In(vc),
                "arriving_valid": In(1),
                "known": In(1),
                "arriving": In(vc),
                "rm": In(1),
                "arriving_departed": In(COUNT_BITS),
                "begins_data": In(1),
                "begins_port": In(port),
                "arriving_held": Out(1),
                "join": Out(1),
                "join_vc": Out(vc),
                "join_port": Out(port),
                "lookup": Out(1),
                "lookup_vc": Out(vc),
                "lookup_accepted": In(COUNT_BITS),
                "lookup_departed": In(COUNT_BITS),
                "lookup_held": In(1),
                "lookup_policy": In(Policy),
                "serve": In(1),
                "port": In(port),
                "data_vc": In(vc),
                "more": In(1),
                "flushes": In(1),
                "goes_on_at": In(port),
                "control": Out(1),
                "departing": Out(vc),
                "header_vc": Out(vc),
                "departing_departed": In(COUNT_BITS),
                "message": Out(Message),
                "rejoin": Out(1),
                "rejoin_port": Out(port),
                "departing_held": Out(1),
                **mine,
                "due": Out(len(self.audit.due)),
                **{name: Out(32) for name in COUNTERS},
                "freed_of": In(vc),
                "freed": Out(COUNT_BITS),
                "lost_of": In(vc),
                "lost": Out(COUNT_BITS),
            }
        )

    def attach(self, m, csr, path):
        """Connect the registers, arrivals and departures, the rows of VCs, the scheduler, and the messages to be
        sent."""
        context = path.core.vc_table
        table_vc, entry, entry_en = csr.write_port("vc_credits")
        wiring.connect(m, path.core.cells_in, self.i)
        m.d.comb += [
            self.arriving_valid.eq(path.arriving.present),
            self.known.eq(path.arriving.known),
            self.begins_data.eq(path.arriving.starts_queue),
            self.begins_port.eq(path.arriving.policy.port),
            self.arriving.eq(path.arriving.vc),
            self.rm.eq(path.arriving.header.pti == RM),
            self.serve.eq(path.leaving.serve),
            self.port.eq(path.leaving.port),
            self.more.eq(path.leaving.more),
            self.flushes.eq(path.leaving.gone),
            self.goes_on_at.eq(path.leaving.goes_on_at),
            self.now.eq(path.now),
            self.clearing.eq(context.clearing),
            self.clear.eq(context.clear),
            self.entry_vc.eq(table_vc),
            Value.cast(self.entry).eq(entry),
            self.entry_en.eq(entry_en),
            self.batch.eq(csr.register("credit_batch")),
            self.step.eq(csr.register("credit_step")),
            self.last.eq(csr.register("credit_last")),
            self.arriving_departed.eq(context.a_departure.departed),
            context.arrival.holds.eq(context.a_arrival.holds ^ self.arriving_held),
            context.lookup.eq(self.lookup),
            context.lookup_vc.eq(self.lookup_vc),
            self.lookup_accepted.eq(context.l_arrival.accepted),
            self.lookup_departed.eq(context.l_departure.departed),
            self.lookup_held.eq(context.l_arrival.holds ^ context.l_departure.held),
            self.lookup_policy.eq(context.l_policy),
            self.data_vc.eq(path.core.scheduler.vc),
            self.departing_departed.eq(context.d_departure.departed),
            context.departure.held.eq(context.d_departure.held ^ self.departing_held),
            self.data_busy.eq(path.core.scheduler.busy),
            self.data_changes.eq(path.core.scheduler.changes),
            self.data_begins.eq(path.core.scheduler.begins),
            self.data_still_busy.eq(path.core.scheduler.still_busy),
            path.core.egress.send_message.eq(self.control),
            path.core.egress.message.eq(self.message),
        ]
        for name in COUNTERS:
            csr.status(f"credit_{name}", getattr(self, name))
        csr.read_port("credit_freed", self.freed_of, self.freed)
        csr.read_port("credit_lost", self.lost_of, self.lost)

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.begins_data, self.serve)
        gate, returns, queue, audit, receiver = self.gate, self.returns, self.queue, self.audit, self.receiver
        for name in ("gate", "returns", "queue", "audit", "receiver"):
            m.submodules[name] = getattr(self, name)
        clear = (self.clearing, self.clear, 0)
        table = slot.store("vc_credits", VcCredits, self._vcs)
        table.write(self.entry_vc, self.entry, self.entry_en, clear=clear)
        for part in (gate, returns):
            m.d.comb += [part.clearing.eq(self.clearing), part.clear.eq(self.clear)]
        wiring.connect(m, wiring.flipped(self.i), receiver.i)
        data_cell = Signal()
        m.d.comb += data_cell.eq(self.arriving_valid & ~self.rm)
        v = SimpleNamespace(
            clear=clear,
            data_cell=data_cell,
            gate=gate,
            queue=queue,
            receiver=receiver,
            returns=returns,
            table=table,
            audit=audit,
        )  # what passes between the methods below
        self._arrive(m, slot, v)
        self._look_up(m, slot, v)
        self._act(m, slot, v)
        self._depart(m, slot, v)
        self._status(m, slot, v)
        return m

    def _arrive(self, m, slot, v):
        """Handle the arriving cell of the tick: a VC's queue begins, or a message is taken."""
        gate, receiver, table = v.gate, v.receiver, v.table
        arriving_row = Signal(VcCredits)
        with slot.gate_when(self.begins_data):
            m.d.comb += arriving_row.eq(table.read(self.arriving, at=ARRIVAL, to="arriving_credits"))
        m.d.comb += [
            gate.arriving_vc.eq(self.arriving),
            gate.arriving_sent.eq(self.arriving_departed),
            gate.arriving_share.eq(arriving_row.share),
            gate.arriving_valid.eq(self.begins_data),
        ]
        taken, from_vc = Signal(), Signal.like(self.arriving)
        with m.If(slot.commit), m.If(self.arriving_valid & self.rm & self.known):
            m.d.comb += taken.eq(1)
            m.d.sync += from_vc.eq(self.arriving)
        m.d.comb += receiver.capture.eq(taken)
        v.from_vc, v.taken = from_vc, taken

    def _look_up(self, m, slot, v):
        """Look up the VC of a message or an audit, and choose the action on it."""
        from_vc, gate, queue, receiver, returns = v.from_vc, v.gate, v.queue, v.receiver, v.returns
        table, audit = v.table, v.audit
        message_valid, good, probe = receiver.valid, receiver.good, receiver.message.probe
        lookup_now, lookup_vc = Signal(), self.lookup_vc
        action_waits = Signal()  # the action of an earlier message or visit is still to be done
        sender_row = Signal(VcCredits)
        with slot.gate_when(message_valid):
            m.d.comb += sender_row.eq(table.read(from_vc, at=0, to="credits_of_sender"))
        m.d.comb += [
            audit.now.eq(self.now),
            audit.step.eq(self.step),
            audit.last.eq(self.last),
            audit.visit_allowed.eq(~message_valid & ~action_waits),
            lookup_now.eq(message_valid | audit.visit),
            self.lookup.eq(lookup_now),
            lookup_vc.eq(Mux(message_valid, Mux(probe, from_vc, sender_row.back), audit.visit_vc)),
        ]
        lookup_row = Signal(VcCredits)
        with slot.gate_when(lookup_now):
            m.d.comb += lookup_row.eq(table.read(lookup_vc, at=LOOK, to="lookup_credits"))
        woken = slot.store("woken", 1, self._vcs)
        with slot.gate_when(lookup_now):
            woke = woken.read(lookup_vc, at=LOOK, to="woke")
            held = self.lookup_held ^ woke
        credit, probed = Signal(), Signal()
        m.d.comb += [
            credit.eq(message_valid & good & ~probe & (lookup_row.back == from_vc) & (lookup_row.share != 0)),
            probed.eq(message_valid & good & probe & lookup_row.returns),
            gate.lookup.eq(lookup_now),
            gate.lookup_vc.eq(lookup_vc),
            gate.lookup_sent.eq(self.lookup_departed),
            gate.lookup_share.eq(lookup_row.share),
            gate.count.eq(receiver.message.count),
            gate.update.eq(credit),
            returns.probed.eq(slot.commit & probed),
            returns.probed_vc.eq(lookup_vc),
            returns.count.eq(receiver.message.count),
            returns.accepted.eq(self.lookup_accepted),
            audit.vc_open.eq(gate.outstanding | held),
        ]
        effect = data.StructLayout(
            {"joins": 1, "puts": 1, "port": len(self.port), "vc": len(lookup_vc), "entry": queue.entry_layout}
        )
        v.credit, v.effect, v.held = credit, effect, held
        v.lookup_row, v.lookup_vc, v.probed = lookup_row, lookup_vc, probed
        v.lookup_now, v.message_valid, v.action_waits = lookup_now, message_valid, action_waits
        v.woke, v.woken = woke, woken

    def _act(self, m, slot, v):
        """Let VCs join and send credit cells and probes, when no data cell is in the way."""
        clear, credit, data_cell, effect, gate, held = v.clear, v.credit, v.data_cell, v.effect, v.gate, v.held
        lookup_row, lookup_vc, probed = v.lookup_row, v.lookup_vc, v.probed
        queue, lookup_now, audit = v.queue, v.lookup_now, v.audit
        action_waits, woke, woken = v.action_waits, v.woke, v.woken
        new, kept, action = Signal(effect), Signal(effect), Signal(effect)
        at_policy = Mux(self.lookup_policy.enabled, self.lookup_policy.port, 0)
        is_visit = audit.visit
        m.d.comb += [
            new.joins.eq((credit | is_visit) & held & (gate.lookup_allowed | ~self.lookup_policy.enabled)),
            new.puts.eq(probed | (is_visit & gate.outstanding & self.lookup_policy.enabled)),
            new.port.eq(Mux(probed, lookup_row.back_port, at_policy)),
            new.vc.eq(lookup_vc),
            new.entry.vc.eq(lookup_vc),
            new.entry.header.eq(Mux(probed, lookup_row.back, lookup_vc)),
            new.entry.probe.eq(~probed),
            action.eq(Mux(action_waits, kept, new)),
        ]
        now_held = Signal()
        with m.If(slot.commit):
            with m.If(lookup_now & new.joins):
                m.d.comb += now_held.eq(1)
            with m.If(lookup_now & data_cell):
                m.d.sync += [kept.eq(new), action_waits.eq(new.joins | new.puts)]
            with m.Elif(~data_cell):
                m.d.sync += action_waits.eq(0)
        woken.write(lookup_vc, ~woke, now_held, clear=clear)
        action_en = slot.commit & ~data_cell & (lookup_now | action_waits)
        m.d.comb += [
            queue.put_port[0].eq(action.port),
            queue.put_entry[0].eq(action.entry),
            queue.put[0].eq(action_en & action.puts & queue.room[0]),
            self.join_vc.eq(Mux(data_cell, self.arriving, action.vc)),
            self.join.eq(Mux(data_cell, self.begins_data & gate.arriving_allowed, action_en & action.joins)),
            self.arriving_held.eq(self.begins_data & ~gate.arriving_allowed),
        ]
        # The port clocks ask for the port once more in the clock after the commit
        by_data, else_at = data_cell, action.port
        if not slot.wide:
            by_data, else_at = slot.keep(data_cell, 7, "by_data"), slot.keep(action.port, 7, "else_at")
        m.d.comb += self.join_port.eq(Mux(by_data, self.begins_port, else_at))
        v.action_en, v.action = action_en, action

    def _depart(self, m, slot, v):
        """Handle the departing cell: a data cell, or a credit cell or probe."""
        gate, queue, returns, table, audit = v.gate, v.queue, v.returns, v.table, v.audit
        departing_valid = Signal()
        m.d.comb += [
            queue.port.eq(self.port),
            self.control.eq(queue.valid),
            self.departing.eq(Mux(queue.valid, queue.entry.vc, self.data_vc)),
            self.header_vc.eq(Mux(queue.valid, queue.entry.header, self.data_vc)),
            departing_valid.eq(self.serve & ~queue.valid),
            queue.take.eq(self.serve & queue.valid),
        ]
        departing_row = Signal(VcCredits)
        with slot.gate_when(self.serve):
            m.d.comb += departing_row.eq(table.read(self.departing, at=DEPARTURE, to="departing_credits"))
        waits_for_credit = ~self.flushes & ~gate.departing_allowed
        m.d.comb += [
            gate.departing_vc.eq(self.departing),
            gate.departing_sent.eq(self.departing_departed),
            gate.departing_share.eq(departing_row.share),
            gate.departing_valid.eq(departing_valid),
            returns.vc.eq(self.departing),
            returns.departed.eq(self.departing_departed),
            returns.departing_valid.eq(departing_valid),
            returns.batch.eq(self.batch),
            self.rejoin.eq(self.more & ~waits_for_credit),
            self.departing_held.eq(self.more & waits_for_credit),
            self.message.probe.eq(queue.entry.probe),
            self.message.count.eq(Mux(queue.entry.probe, self.departing_departed, returns.freed)),
        ]
        # A departure may start one port's clock: that at which the VC goes on, if it moved, else that of its credits
        moves = self.goes_on_at != self.port
        return_request = departing_row.returns & returns.request & ~moves & (departing_row.back_port != self.port)
        puts = departing_valid & return_request & queue.room[1]
        m.d.comb += [
            queue.put_port[1].eq(departing_row.back_port),
            queue.put_entry[1].vc.eq(self.departing),
            queue.put_entry[1].header.eq(departing_row.back),
            queue.put[1].eq(puts),
            returns.grant.eq(puts),
            self.rejoin_port.eq(Mux(return_request, departing_row.back_port, self.goes_on_at)),
            audit.start.eq(departing_valid & (departing_row.share != 0)),
        ]
        for name in _ROUNDS:
            if self.signature.members[name].flow is In:
                m.d.comb += getattr(queue, name).eq(getattr(self, name))
            else:
                m.d.comb += getattr(self, name).eq(getattr(queue, name))
        v.return_request, v.departing_valid = return_request, departing_valid

    def _status(self, m, slot, v):
        """Drive the part's due tick, and its counters."""
        action_en, return_request, credit = v.action_en, v.return_request, v.credit
        action, gate, departing_valid = v.action, v.gate, v.departing_valid
        probed, queue, returns = v.probed, v.queue, v.returns
        taken, lookup_now, message_valid = v.taken, v.lookup_now, v.message_valid
        audit, action_waits = v.audit, v.action_waits
        at_once = Signal.like(self.due)
        with m.If(slot.commit), m.If(taken | lookup_now | action_waits):
            m.d.sync += at_once.eq(due_tick(self.now))

        m.d.comb += [
            self.due.eq(Mux(message_valid | action_waits, at_once, audit.due)),
            gate.freed_of.eq(self.freed_of),
            self.freed.eq(gate.freed),
            returns.lost_of.eq(self.lost_of),
            self.lost.eq(returns.lost),
        ]
        skips = (action_en & action.puts & ~queue.room[0]) + (departing_valid & return_request & ~queue.room[1])
        for name, more in (
            ("came", taken),
            ("bad", slot.commit & message_valid & ~credit & ~probed),
            ("given", queue.take & ~queue.entry.probe),
            ("probes", queue.take & queue.entry.probe),
            ("skipped", skips),
            ("holds", self.arriving_held + self.departing_held),
        ):
            counter = getattr(self, name)
            with m.If(more != 0):
                m.d.sync += counter.eq(counter + more)


_ROUNDS = (
    "data_busy", "data_changes", "data_begins", "data_still_busy", "busy", "changes", "begins", "still_busy",
)  # fmt: skip
