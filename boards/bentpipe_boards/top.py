"""A core behind its bridge."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.bridge import Bridge
from bentpipe_boards.core import Core

__all__ = ["OctetTop"]


class OctetTop(wiring.Component):
    """A board as a stream of octets.

    Members
    -------
    rx, rx_valid, tx, tx_valid, tx_ready
        As of :class:`~bentpipe_boards.bridge.Bridge`.
    busy : Out(1)
        There is something to do besides receiving.
    open : Out(1)
        A client has opened a session.
    """

    rx: In(8)
    rx_valid: In(1)
    tx: Out(8)
    tx_valid: Out(1)
    tx_ready: In(1)
    busy: Out(1)
    open: Out(1)

    def __init__(self, plan):
        self.plan = plan
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.bridge = bridge = Bridge(words=self.plan.frame_words)
        m.submodules.core = core = Core(self.plan)
        wiring.connect(m, bridge.bus, core.bus)
        wiring.connect(m, bridge.run, core.run)
        m.d.comb += [
            core.dropped.eq(bridge.dropped),
            bridge.rx.eq(self.rx),
            bridge.rx_valid.eq(self.rx_valid),
            self.tx.eq(bridge.tx),
            self.tx_valid.eq(bridge.tx_valid),
            bridge.tx_ready.eq(self.tx_ready),
            self.busy.eq(bridge.busy),
            self.open.eq(bridge.open),
        ]
        return m
