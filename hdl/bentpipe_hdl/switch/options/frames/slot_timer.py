"""Slots of frames: when a port may send that has places for cells on a grid."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import FRACTION_BITS, NEVER, TIME_BITS, due_tick, earlier
from bentpipe_hdl.tick_schedule import TickSchedule
from bentpipe_hdl.traffic.frame_slots import FrameSlots

__all__ = ["SlotTimer"]


class SlotTimer(wiring.Component):
    """Ports that send in the slots of frames, each in those of its own
    (:class:`~bentpipe_hdl.traffic.frame_slots.FrameSlots`).

    The grid goes on whether there are cells or not. As a slot begins, a cell that could leave takes it, and its port
    may send from the next tick on, until it has sent one cell; otherwise the slot passes with an idle cell, and what
    comes in its course waits for the next one. A port that others hold up for a whole slot loses that.

    Members
    -------
    now : In
    slot0, cycle0 … : In
        Of a port: a slot, and three frames, in ticks with 16 fraction bits; slot 0: no frames.
    ripe : In
        A bit a port: it has a cell that could leave, except for the slot.
    serve, port : In
        A port sends now.
    stalled, still_stalled, changes : Out
        A bit a port: it may not send; what becomes of these now, when ``changes`` is high.
    in_slot, end : Out
        The port that sends has frames, and the tick in which the last bit of its slot leaves.
    due : Out
        When the next slot begins. Narrow: the present tick, if any port has frames.
    """

    def __init__(self, slot: TickSchedule, *, ports: int):
        self._slot, self._ports = slot, ports
        super().__init__(
            {
                "now": In(TIME_BITS),
                "slot": In(32).array(ports),
                "cycle": In(32).array(ports),
                "ripe": In(ports),
                "serve": In(1),
                "port": In(range(max(ports, 2))),
                "stalled": Out(ports),
                "still_stalled": Out(ports),
                "changes": Out(1),
                "in_slot": Out(1),
                "end": Out(TIME_BITS),
                "due": Out(TIME_BITS, init=NEVER),
            }
        )

    def attach(self, m, csr, path):
        """Connect the registers, and the ports as they are served."""
        m.d.comb += [
            self.now.eq(path.now),
            *(one.eq(setting) for one, setting in zip(self.slot, csr.registers("frame_slot"), strict=True)),
            *(one.eq(setting) for one, setting in zip(self.cycle, csr.registers("frame_cycle"), strict=True)),
            self.ripe.eq(path.core.port_rate_scheduler.ripe),
            self.serve.eq(path.core.port_rate_scheduler.serve),
            self.port.eq(path.leaving.port),
            path.core.port_rate_scheduler.in_slot.eq(self.in_slot),
            path.core.port_rate_scheduler.slot_end.eq(self.end),
        ]

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        due, changes, ends = Const(NEVER, TIME_BITS), [], []
        for p in range(self._ports):
            framed = self.slot[p] != 0
            grid = FrameSlots(m, slot, f"slot{p}", self.now, self.slot[p], self.cycle[p])
            at, begins = grid.at, grid.begins
            open_, opens = Signal(name=f"slot_open{p}"), Signal(name=f"slot_opens{p}")
            sends = Signal(name=f"slot_used{p}")
            with m.If(self.serve), m.If(self.port == p):
                m.d.comb += sends.eq(1)
            m.d.comb += opens.eq(Mux(begins, self.ripe[p] & ~sends, open_ & ~sends))
            with m.If(begins | sends):
                m.d.sync += open_.eq(opens)
            m.d.comb += [self.stalled[p].eq(framed & ~open_), self.still_stalled[p].eq(framed & ~opens)]
            changes.append(begins)
            ends.append(grid.end)
            if slot.wide:
                soonest = Signal(TIME_BITS, name=f"slot_due{p}")
                m.d.comb += soonest.eq(earlier(Mux(framed, due_tick(at[FRACTION_BITS:]), NEVER), due))
                due = soonest
        if not slot.wide:
            due = Mux(Cat(length != 0 for length in self.slot).any(), self.now, NEVER)
        m.d.comb += [self.due.eq(due), self.changes.eq(Cat(changes).any())]
        with slot.gate_when(self.serve):
            framed = Cat(length != 0 for length in self.slot)
            m.d.comb += [
                self.in_slot.eq(slot.pipe(framed.bit_select(self.port, 1), "in_slot_held")),
                self.end.eq(slot.pipe(Array(ends)[self.port], "end_held")),
            ]
        return m
