"""Credits in the network interface: which VC may send to its switch."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import TIME_BITS, CellSignature, due_tick
from bentpipe_hdl.credits.audit import STEP_BITS, CreditAudit
from bentpipe_hdl.credits.cells import COUNT_BITS, Message, MessageReceiver
from bentpipe_hdl.credits.gate import is_plausible, may_send
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["COUNTERS", "NicCredits"]

COUNTERS = ("came", "bad", "probes", "holds", "late")
"""Credit cells that arrived; those of them that cannot be read; probes sent; how often a VC had to wait for credit;
credit cells that arrived before the last one was taken."""

LOOK = 1
"""Narrow: the clock in which the tick's VC is there."""


class NicCredits(wiring.Component):
    """The credits of an interface: how many of each VC's cells its switch has freed, and whether the VC may send.

    A VC with a ``share`` sends only while ``sent - freed < share``. When it has sent that many, or its next PDU arrives
    then, it leaves the :class:`~..traffic.tournament.Tournament` until a credit cell arrives; other VCs do not wait. As
    in the switch (:mod:`bentpipe_hdl.switch.options.credits`), VCs are audited while cells are outstanding. A VC with
    outstanding cells then sends a probe, in a turn of the line.

    Parameters
    ----------
    slot : TickSchedule
    width, vcs : int

    Members
    -------
    now, i, clearing, clear, step, last : In
        As for the switch's part (:mod:`bentpipe_hdl.switch.options.credits.credits`).
    share_vc, share, share_en : In
        Software writes a VC's share.
    back_vc, back, back_en : In
        Software writes for a received VC whether it ``takes`` credit cells, and for which ``vc``.
    there, known, arriving, rm, takes : In, In, In, In, Out
        A cell arrives in this tick; its VC is known; the VC; its PTI is that of an RM cell; it is a credit cell and
        ends here. Narrow: valid by clocks 2, 7, 7, 2; ``takes`` from clock 9 on.
    vc, sent : In
        The VC of this tick's event, and the number of its cells sent. Narrow: from clocks 1 and 3 on.
    sends, ends, posts, accepts, lookup_grant, probe_grant : In
        Events: the VC sends a cell; the cell is the last one of its PDU; a PDU is posted; it is accepted; the VC is
        looked up; it sends a probe. Narrow: from clocks 1, 4, 1, 4, 1 and 1 on.
    lookup_request, lookup_vc, probe_request, probe_vc : Out
        A VC is to be looked up; the VC; a VC is to send a probe; the VC. Narrow: from clock 1 on, ``probe_request``
        from clock 0 on.
    allowed, waiting : Out
        The VC may send, after the event; it has a PDU and waits for credit. Narrow: from clocks 4 and 3 on.
    wakeup : Out
        The VC that is looked up no longer waits. Narrow: from clock 4 on.
    message : Out
        The content of the probe.
    due : Out
    came, bad, probes, holds, late : Out
        ``COUNTERS``. They wrap at 2**32.
    freed_of, freed : In, Out
        A VC and its count, read by software.
    """

    def __init__(self, slot: TickSchedule, *, width: int, vcs: int):
        self._slot, self._vcs = slot, vcs
        self.audit = CreditAudit(slot, vcs=vcs)
        self.receiver = MessageReceiver(slot, width=width, ports=1)
        self.back_layout = data.StructLayout({"vc": (vcs - 1).bit_length(), "takes": 1})
        vc = range(vcs)
        super().__init__(
            {
                "now": In(TIME_BITS),
                "i": In(CellSignature(width)),
                "clearing": In(1),
                "clear": In(vc),
                "step": In(STEP_BITS),
                "last": In(vc),
                "share_vc": In(vc),
                "share": In(16),
                "share_en": In(1),
                "back_vc": In(vc),
                "back": In(self.back_layout),
                "back_en": In(1),
                "there": In(1),
                "known": In(1),
                "arriving": In(vc),
                "rm": In(1),
                "takes": Out(1),
                "vc": In(vc),
                "sent": In(COUNT_BITS),
                "sends": In(1),
                "ends": In(1),
                "posts": In(1),
                "accepts": In(1),
                "lookup_grant": In(1),
                "probe_grant": In(1),
                "lookup_request": Out(1),
                "lookup_vc": Out(vc),
                "probe_request": Out(1),
                "probe_vc": Out(vc),
                "allowed": Out(1),
                "waiting": Out(1),
                "wakeup": Out(1),
                "message": Out(Message),
                "due": Out(TIME_BITS),
                **{name: Out(32) for name in COUNTERS},
                "freed_of": In(vc),
                "freed": Out(COUNT_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot, vc = self._slot.within(m), self.vc
        audit, receiver = self.audit, self.receiver
        m.submodules.audit, m.submodules.receiver = audit, receiver
        clear = (self.clearing, self.clear, 0)
        shares = slot.store("shares", 16, self._vcs)
        shares.write(self.share_vc, self.share, self.share_en, clear=clear)
        backs = slot.store("backs", self.back_layout, self._vcs)
        backs.write(self.back_vc, self.back, self.back_en, clear=clear)
        freed = slot.store("freed", COUNT_BITS, self._vcs, block=True)
        waits = slot.store("waiting_vcs", 1, self._vcs)
        m.d.comb += self.freed.eq(freed.peek(self.freed_of))

        # The content of a credit cell is kept until a tick looks up its VC
        wiring.connect(m, wiring.flipped(self.i), receiver.i)
        of, from_vc, taken = Signal(self.back_layout), Signal.like(self.arriving), Signal()
        with slot.gate_when(self.there & self.rm):
            m.d.comb += of.eq(backs.read(self.arriving, at=7, to="arriving_back"))
        m.d.comb += self.takes.eq(self.known & self.rm & of.takes)
        with m.If(slot.commit), m.If(self.there & self.takes):
            m.d.comb += taken.eq(1)
            m.d.sync += from_vc.eq(of.vc)
        m.d.comb += receiver.capture.eq(taken)
        kept, kept_vc, count = Signal(), Signal.like(vc), Signal(COUNT_BITS)
        bad, late = Signal(), Signal()
        with m.If(slot.commit):
            with m.If(self.lookup_grant):
                m.d.sync += kept.eq(0)
            with m.If(receiver.valid):
                with m.If(~receiver.good | receiver.message.probe):
                    m.d.comb += bad.eq(1)
                with m.Elif(kept & ~self.lookup_grant):
                    m.d.comb += late.eq(1)
                with m.Else():
                    m.d.sync += [kept.eq(1), kept_vc.eq(from_vc), count.eq(receiver.message.count)]

        m.d.comb += [
            audit.now.eq(self.now),
            audit.step.eq(self.step),
            audit.last.eq(self.last),
            audit.visit_allowed.eq(self.lookup_grant & ~kept),
            self.lookup_request.eq(kept | (audit.visit_due & ~self.probe_request)),
            self.lookup_vc.eq(Mux(kept, kept_vc, audit.visit_vc)),
        ]

        # The tick's VC. On the narrow datapath it is known in the next clock which of the counts is the present one
        old, freed_now, share, was_waiting = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal(16), Signal()
        updated, updated_allowed, outstanding = Signal(), Signal(), Signal()
        sent = self.sent + slot.pipe(self.sends, "sends_held")
        with slot.gate_when(self.sends | self.lookup_grant | self.posts):
            m.d.comb += [
                old.eq(freed.read(vc, at=LOOK, to="freed_before")),
                share.eq(shares.read(vc, at=LOOK, to="share_held")),
                was_waiting.eq(waits.read(vc, at=LOOK, to="was_waiting")),
                updated.eq(slot.pipe(self.lookup_grant & kept & is_plausible(count, old, self.sent), "updated_held")),
                freed_now.eq(Mux(updated, count, old)),
            ]
            stored_allowed = slot.pipe(may_send(sent, old, share), "stored_allowed")
            with slot.gate_when(updated):
                m.d.comb += updated_allowed.eq(slot.pipe(may_send(sent, count, share), "updated_allowed_held"))
            m.d.comb += [
                self.allowed.eq(Mux(updated, updated_allowed, stored_allowed)),
                self.waiting.eq(was_waiting),
                self.wakeup.eq(self.lookup_grant & was_waiting & self.allowed),
                outstanding.eq(self.lookup_grant & (share != 0) & (self.sent != freed_now)),
            ]
        at_once = Signal(TIME_BITS)
        with m.If(slot.commit), m.If(taken | receiver.valid | kept | self.probe_request | outstanding):
            m.d.sync += at_once.eq(due_tick(self.now))
        writes, write_freed, waiting_next, starts = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            waiting_next.eq(~self.allowed & Mux(self.sends, ~self.ends, self.accepts | was_waiting)),
            audit.vc_open.eq(outstanding),
            audit.start.eq(starts),
            self.message.count.eq(self.sent),
            self.message.probe.eq(1),
            self.due.eq(Mux(receiver.valid | kept | self.probe_request, at_once, audit.due)),
        ]
        with m.If(slot.commit):
            m.d.comb += [
                writes.eq(self.sends | self.accepts | self.lookup_grant),
                write_freed.eq(updated),
                starts.eq(self.sends & (share != 0)),
            ]
            with m.If(self.probe_grant):
                m.d.sync += self.probe_request.eq(0)
            with m.If(outstanding & ~kept):
                m.d.sync += [self.probe_request.eq(1), self.probe_vc.eq(vc)]
        freed.write(vc, count, write_freed, clear=clear)
        waits.write(vc, waiting_next, writes, clear=clear)

        for name, strobe in (
            ("came", taken),
            ("bad", bad),
            ("probes", slot.commit & self.probe_grant),
            ("holds", writes & waiting_next & ~self.lookup_grant),
            ("late", late),
        ):
            counter = getattr(self, name)
            with m.If(strobe):
                m.d.sync += counter.eq(counter + 1)
        return m
