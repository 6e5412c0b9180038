"""Counters of the cells and frames queued for each port."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["PortQueues"]


class PortQueues(wiring.Component):
    """Counts the cells queued for each port, and the last cells of AAL5 frames among them.

    A cell counts for the port that its VC had when it came, until it leaves, whatever becomes of the VC: the port is
    kept with it. A frame counts from its last cell's arrival to its departure.

    Members
    -------
    enqueue, in_port, in_last : In
        A cell is queued for this port now, and whether it ends a frame.
    dequeue, out_port, out_last : In
        One leaves that was queued for this port.
    cells0, cells1 …, last_cells0, last_cells1 … : Out
    """

    def __init__(self, slot: TickSchedule, *, ports: int, count_bits: int):
        self._slot, self._ports = slot, ports
        port = range(max(ports, 2))
        super().__init__(
            {
                "enqueue": In(1),
                "in_port": In(port),
                "in_last": In(1),
                "dequeue": In(1),
                "out_port": In(port),
                "out_last": In(1),
                "cells": Out(count_bits).array(ports),
                "last_cells": Out(count_bits).array(ports),
            }
        )

    def attach(self, m, csr, path):
        """Connect arrivals and departures, and the counts that admission uses."""
        del csr
        buffer, admission, port = path.core.buffer, path.core.admission, path.arriving.policy.port
        m.d.comb += [
            buffer.port.eq(port),
            self.enqueue.eq(path.arriving.enqueue),
            self.in_port.eq(port),
            self.in_last.eq(buffer.pti[0] & ~buffer.pti[2]),
            self.dequeue.eq(path.leaving.dequeue),
            self.out_port.eq(buffer.next_port),
            self.out_last.eq(buffer.next_pti[0] & ~buffer.next_pti[2]),
        ]
        with path.core.build.slot.gate_when(path.arriving.arrival):
            m.d.comb += [
                admission.port_cells.eq(path.core.build.slot.pipe(Array(self.cells)[port], "arriving_port_cells")),
                admission.port_frames.eq(
                    path.core.build.slot.pipe(Array(self.last_cells)[port], "arriving_port_frames")
                ),
            ]

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.enqueue, self.dequeue)
        for p, (cells, frames) in enumerate(zip(self.cells, self.last_cells, strict=True)):
            comes, goes = Signal(name=f"comes{p}"), Signal(name=f"goes{p}")
            with m.If(self.enqueue), m.If(self.in_port == p):
                m.d.comb += comes.eq(1)
            with m.If(self.dequeue), m.If(self.out_port == p):
                m.d.comb += goes.eq(1)
            for count, up, down in (
                (cells, comes, goes),
                (frames, comes & self.in_last, goes & self.out_last),
            ):
                with m.If(up & ~down):
                    m.d.sync += count.eq(count + 1)
                with m.Elif(down & ~up):
                    m.d.sync += count.eq(count - 1)
        return m
