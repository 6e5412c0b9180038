"""Shaping: a VC whose cell may not go yet stays in its round without one, and a port of such VCs sleeps."""

from amaranth.hdl import Signal

from bentpipe_hdl.switch.options.plugin import Order, Plugin
from bentpipe_hdl.switch.options.shape.shaper import Shaper

__all__ = ["PLUGIN"]

ELSEWHERE = frozenset({"fifo", "shares", "virtual-clock", "credits", "frames"})
"""Options that order cells otherwise: only rounds hold VCs back."""


class Shape(Plugin):
    options = ("shape",)
    order = Order.PACE

    def __init__(self, given):
        super().__init__(given)
        self._shapes = not given & ELSEWHERE
        self.arguments = {"scheduler": {"counts": True}}
        if self._shapes:
            self.arguments |= {"port_rate_scheduler": {"searches": True}, "buffer": {"may_stay": True}}

    def build(self, build, others):
        if not self._shapes:
            build.csr.write_port("shape_rate")
            build.csr.write_port("shape_limit")

    def depart(self, m, cell):
        if not self._shapes:
            return
        build, scheduler = cell.core.build, cell.core.scheduler
        self.gate = part = m.submodules.shaper = Shaper(build.slot, vcs=build.vcs, ports=build.ports)
        self.due = part.due
        self._joins = joins = Signal(build.ports, name="joins")
        dequeue = Signal(name="dequeue")
        with m.If(cell.serve), m.If(~part.held):
            m.d.comb += dequeue.eq(1)
        with m.If(scheduler.join):
            m.d.comb += joins.bit_select(scheduler.join_port, 1).eq(1)
        with m.If(scheduler.rejoin), m.If(scheduler.rejoin_port != cell.port):
            m.d.comb += joins.bit_select(scheduler.rejoin_port, 1).eq(1)
        build.slot.with_commit(dequeue, joins)
        cell.dequeue, cell.asks = dequeue, cell.serve
        cell.stays, cell.rejoin = cell.stays | part.held, cell.rejoin | (cell.serve & part.held)
        cell.begins, cell.plain = cell.begins | (joins & part.stalled & ~part.wakes), False

    def attach(self, m, csr, path):
        if self._shapes:
            self.gate.attach(m, csr, path, self._joins)


PLUGIN = Shape
