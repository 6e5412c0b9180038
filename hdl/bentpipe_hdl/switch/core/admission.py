"""Admission of cells to the buffer: stages that may each refuse a cell, and the discipline of frames around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.switch.core.frame_discard import FRAME, follow_frame
from bentpipe_hdl.switch.core.vc_table import Policy, VcField
from bentpipe_hdl.switch.registers import REASON_BITS, REASONS
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = [
    "Admission",
    "Arriving",
    "ClpThreshold",
    "EarlyPacketDiscard",
    "FullBuffer",
    "Rank",
    "Stage",
    "UserCapacity",
    "Verdict",
]

FULL, PPD = REASONS.index("full"), REASONS.index("ppd")

FRAME_FIELD = VcField("frame", data.StructLayout({**FRAME, "why": REASON_BITS}), "state")
"""Where a VC is in its frame, and why all of it is refused."""


@dataclass(frozen=True)
class Arriving:
    """The arriving cell as an admission stage sees it.

    Members
    -------
    vc : Value
    clp, pti : Value
    user, last : Value
        It is a user cell (PTI below 4); it ends its frame.
    starts : Value
        It is the first cell of a frame of a VC with PPD or EPD: to refuse it is to refuse the whole frame.
    decides : Value
        It ``starts`` a frame, or is not part of a frame.
    policy : Policy
        The policy of its VC.
    length, occupancy : Value
        Cells in the VC's queue and in the buffer, before this one.
    state, new_state : data.View
        The stage's own fields of the VC, and their next values if the cell's VC is known. A field that is not assigned
        keeps its value.
    port_cells, port_frames : Value | None
        Cells queued for the VC's port before this one, and last cells of frames among them; None if the switch does not
        count them.
    reserved : Value | None
        The cell is within its VC's reservation; None if the switch has no reservations.
    """

    vc: Value
    clp: Value
    pti: Value
    user: Value
    last: Value
    starts: Value
    decides: Value
    policy: Any
    length: Value
    occupancy: Value
    state: Any
    new_state: Any
    port_cells: Value | None = None
    port_frames: Value | None = None
    reserved: Value | None = None


@dataclass(frozen=True)
class Verdict:
    """A stage's verdict on a cell.

    ``drop``: it is to be dropped. If it is not dropped, ``tag`` sets its CLP bit and ``mark`` the EFCI bit of a user
    cell. None means never.
    """

    drop: Value | None = None
    tag: Value | None = None
    mark: Value | None = None


class Stage:
    """A stage of the admission.

    Members
    -------
    reason : str
        Why it drops, of :data:`bentpipe_hdl.switch.registers.REASONS`.
    fields : tuple of VcField
        What it keeps for each VC, written as "state".
    spares_reserved : bool
        It does not drop what is reserved for the VC.
    """

    reason: str
    fields: tuple[VcField, ...] = ()
    spares_reserved: bool = True

    def prepare(self, slot: TickSchedule) -> None:
        """Build what does not wait for cells: tables that software writes."""

    def decide(self, m: Module, slot: TickSchedule, cell: Arriving) -> Verdict:
        """Build the stage. What it looks up besides, it reads from stores of its own: ``slot.store(…).read(cell.vc,
        at=ARRIVAL, to=…)``."""
        raise NotImplementedError


class Rank(IntEnum):
    """In which order stages are asked: the first that objects gives the reason."""

    LIMIT = 10
    EARLY = 20
    BUFFER_EPD = 30
    QUEUE_EPD = 40
    SHARE = 50
    FULL = 60
    USER_CAPACITY = 70
    CLP = 80
    MARKS = 90


class EarlyPacketDiscard(Stage):
    """Early packet discard: it refuses a frame when the queue of the VC, or the whole buffer, is at its threshold or
    above."""

    reason = "epd"
    spares_reserved = False  # of the VC's own queue

    def __init__(self, threshold: Value):
        self._threshold = threshold

    def decide(self, m, slot, cell):
        policy = cell.policy
        queue, limit, above = Signal.like(cell.length, name="epd_queue"), Signal(16, name="epd_limit"), Signal()
        m.d.comb += [
            queue.eq(Mux(policy.epd_own, cell.length, cell.occupancy)),
            limit.eq(Mux(policy.epd_own, policy.epd_threshold, self._threshold)),
            above.eq(slot.pipe(queue >= limit, "epd_held")),
        ]
        drop = cell.starts & policy.epd & above
        return Verdict(drop if cell.reserved is None else drop & (policy.epd_own | ~cell.reserved))


class FullBuffer(Stage):
    """The limit of the buffer: it drops a cell without a place in the buffer, or in its VC's share or reservation."""

    reason = "full"
    spares_reserved = False

    def __init__(self, capacity: Value, reservations: Any = None):
        self._capacity, self._reservations = capacity, reservations

    def decide(self, m, slot, cell):
        full = slot.pipe((cell.occupancy >= self._capacity) | (cell.length >= cell.policy.limit), "full_held")
        if self._reservations is not None:
            full = full | (~cell.reserved & Mux(cell.user, self._reservations.user_full, self._reservations.full))
        return Verdict(full)


class UserCapacity(Stage):
    """The places for OAM and RM cells: it drops user cells, or whole frames of them, when only the last places are
    free."""

    reason = "reserve"

    def __init__(self, user_capacity: Value):
        self._user_capacity = user_capacity

    def decide(self, m, slot, cell):
        return Verdict(cell.user & slot.pipe(cell.occupancy >= self._user_capacity, "reserve_held"))


class ClpThreshold(Stage):
    """The CLP threshold: it drops CLP=1 cells, or frames that begin with one, when the buffer is at its threshold or
    above."""

    reason = "clp"

    def __init__(self, threshold: Value):
        self._threshold = threshold

    def decide(self, m, slot, cell):
        return Verdict(cell.decides & cell.clp & slot.pipe(cell.occupancy >= self._threshold, "clp_held"))


class Admission(wiring.Component):
    """The admission of the tick's cell: it queues the cell or drops it.

    The first stage that objects gives the reason. For user cells of a VC with PPD or EPD frames count: what is dropped
    as a frame's first cell takes the whole frame with it (a full buffer: with PPD). Once a later cell is dropped, PPD
    drops the rest of the frame but its last cell, which is let through if there is room; if even that is lost, the
    following frame is dropped too up to its last cell, so that no receiver joins two half frames to one. OAM and RM
    cells touch no frame state. Where a VC is in its frame is kept whatever its policy.

    Members
    -------
    arrives, vc, clp, pti, policy, length, occupancy, state : In
        The cell, its VC's policy and state. While ``arrives`` is low, all outputs are 0 on the wide datapath.
    port_cells, port_frames : In
        With ``port_queues``: what is queued for the VC's port.
    reserved : In
        With ``reservations``: the cell is within what is reserved for its VC.
    drop, reason : Out
    new_state : Out
    new_clp, new_pti : Out
        As the cell is queued.
    tagged, marked : Out
        If it is not dropped, its CLP bit, or its EFCI bit, is set here.
    """

    def __init__(
        self,
        slot: TickSchedule,
        *,
        vcs: int,
        count_bits: int,
        state: data.StructLayout,
        stages: Sequence[Stage],
        port_queues: bool = False,
        reservations: bool = False,
    ):
        self._slot, self._stages, self._port_queues, self._reservations = slot, tuple(stages), port_queues, reservations
        super().__init__(
            {
                "arrives": In(1),
                "vc": In(range(vcs)),
                "clp": In(1),
                "pti": In(3),
                "policy": In(Policy),
                "length": In(count_bits),
                "occupancy": In(count_bits),
                "state": In(state),
                "drop": Out(1),
                "reason": Out(REASON_BITS),
                "new_state": Out(state),
                "new_clp": Out(1),
                "new_pti": Out(3),
                "tagged": Out(1),
                "marked": Out(1),
                **({"port_cells": In(count_bits), "port_frames": In(count_bits)} if port_queues else {}),
                **({"reserved": In(1)} if reservations else {}),
            }
        )

    @staticmethod
    def fields(stages: Sequence[Stage]) -> tuple[VcField, ...]:
        """Return the fields of each VC that these stages and the frames need."""
        return (FRAME_FIELD, *(field for stage in stages for field in stage.fields))

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        policy, frame, new_frame = self.policy, self.state.frame, self.new_state.frame
        user, last, framed, starts = (Signal(name=name) for name in ("user", "last", "framed", "starts"))
        objects, objector = Signal(), Signal(REASON_BITS)
        for stage in self._stages:
            stage.prepare(slot)
        with slot.gate_when(self.arrives):
            m.d.comb += [
                user.eq(~self.pti[2]),
                last.eq(self.pti[0]),
                framed.eq(user & (policy.ppd | policy.epd)),
                starts.eq(framed & ~frame.inside),
                self.new_state.eq(self.state),
                self.new_clp.eq(self.clp),
                self.new_pti.eq(self.pti),
            ]
            drops = []
            for stage in self._stages:
                verdict = stage.decide(m, slot, self._cell(user, last, starts, ~framed | starts))
                if verdict.drop is not None:
                    spares = self._reservations and stage.spares_reserved
                    drop = verdict.drop & ~self.reserved if spares else verdict.drop
                    drops.append((drop, REASONS.index(stage.reason)))
                if verdict.tag is not None:
                    with m.If(verdict.tag):
                        m.d.comb += [self.new_clp.eq(1), self.tagged.eq(~self.clp)]
                if verdict.mark is not None:
                    with m.If(verdict.mark & user):
                        m.d.comb += [self.new_pti[1].eq(1), self.marked.eq(~self.pti[1])]
            m.d.comb += objects.eq(reduce(or_, (drop for drop, _ in drops), Const(0)))
            for k, (drop, reason) in enumerate(drops):
                with m.Elif(drop) if k else m.If(drop):
                    m.d.comb += objector.eq(reason)

            with m.If(framed & frame.inside & (frame.refused | (frame.cut & ~last))):
                m.d.comb += [self.drop.eq(1), self.reason.eq(Mux(frame.refused, frame.why, PPD))]
            with m.Elif(objects):
                m.d.comb += [self.drop.eq(1), self.reason.eq(objector)]

            follow_frame(
                m, frame, new_frame, user=user, last=last, framed=framed,
                refuses=objects & (policy.ppd | (objector != FULL)), cuts=objects & policy.ppd,
            )  # fmt: skip
            with m.If(starts & objects):
                m.d.comb += new_frame.why.eq(Mux(objector == FULL, PPD, objector))
        return m

    def _cell(self, user, last, starts, decides):
        return Arriving(
            self.vc, self.clp, self.pti, user, last, starts, decides, self.policy, self.length, self.occupancy,
            self.state, self.new_state, *((self.port_cells, self.port_frames) if self._port_queues else (None, None)),
            self.reserved if self._reservations else None,
        )  # fmt: skip
