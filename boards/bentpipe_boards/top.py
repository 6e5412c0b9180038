"""A core behind its bridge, and UARTBone beside that."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.bridge import Bridge
from bentpipe_boards.core import Core, line_members, memory_members
from bentpipe_boards.uartbone import UartBone
from bentpipe_sim.board.windows import board_registers

__all__ = ["PAUSE", "OctetTop", "join"]

PAUSE = 1 << 16
"""Clocks without an octet that end what has begun, on a board without a clock of a known rate."""


class OctetTop(wiring.Component):
    """A board as a stream of octets.

    Members
    -------
    rx, rx_valid, tx, tx_valid, tx_ready
        As for :class:`~bentpipe_boards.bridge.Bridge`.
    busy : Out(1)
        There is something to do besides receiving.
    open : Out(1)
        A client has opened a session.
    chip : Out(SdramSignature)
        Pins of the memory chip, if the plan has wires in the SDRAM.
    memory, line_in, line_out, own_in, own_out
        As for :class:`~bentpipe_boards.core.Core`, if the plan has VLANs.

    Parameters
    ----------
    plan : Plan
    pause : int
        Of :class:`~bentpipe_boards.uartbone.UartBone`.
    memory : SdramTimes or None
    pin_clocks : int
    parts_domain : str
        As for :class:`~bentpipe_boards.core.Core`.
    """

    def __init__(self, plan, pause=PAUSE, memory=None, pin_clocks=0, *, parts_domain="sync"):
        self.plan, self._pause = plan, pause
        self._core = Core(plan, memory, pin_clocks, parts_domain=parts_domain)
        members = {
            "rx": In(8),
            "rx_valid": In(1),
            "tx": Out(8),
            "tx_valid": Out(1),
            "tx_ready": In(1),
            "busy": Out(1),
            "open": Out(1),
        }
        super().__init__(members | memory_members(plan) | line_members(plan))

    def elaborate(self, platform):
        m = Module()
        m.submodules.bridge = bridge = Bridge(words=self.plan.frame_words)
        m.submodules.core = core = self._core
        scratch = board_registers(self.plan)["scratch"].addr
        m.submodules.uartbone = uartbone = UartBone(scratch=scratch, pause=self._pause)
        wiring.connect(m, bridge.run, core.run)
        for name in memory_members(self.plan) | line_members(self.plan):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(core, name))
        m.d.comb += [core.dropped.eq(bridge.dropped), self.open.eq(bridge.open)]
        join(m, self, bridge, uartbone, core.bus)
        return m


def join(m, octets, bridge, uartbone, bus):
    """Join a bridge and UARTBone: both have the octets and the bus, and each is silent while the other one works."""
    m.d.comb += [
        uartbone.rx.eq(octets.rx),
        uartbone.rx_valid.eq(octets.rx_valid),
        bridge.rx.eq(octets.rx),
        bridge.rx_valid.eq(uartbone.passes),
        bridge.tx_ready.eq(octets.tx_ready & ~uartbone.tx_valid),
        uartbone.tx_ready.eq(octets.tx_ready),
        octets.tx.eq(Mux(uartbone.tx_valid, uartbone.tx, bridge.tx)),
        octets.tx_valid.eq(uartbone.tx_valid | bridge.tx_valid),
        octets.busy.eq(bridge.busy | uartbone.busy),
        bridge.holds.eq(uartbone.holds),
        uartbone.still.eq(bridge.still),
        bridge.bus.r_data.eq(bus.r_data),
        uartbone.bus.r_data.eq(bus.r_data),
    ]
    for name in ("addr", "w_data", "w_en", "r_en"):
        m.d.comb += getattr(bus, name).eq(Mux(uartbone.holds, getattr(uartbone.bus, name), getattr(bridge.bus, name)))
