"""The top of an FPGA: clock, reset, serial line and lights around a board's core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module, Signal, Value
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from bentpipe_boards.fpga.board import Board
from bentpipe_boards.fpga.pll import Pll, dividers
from bentpipe_boards.top import OctetTop
from bentpipe_boards.uart import Uart
from bentpipe_sim.board.windows import Plan

__all__ = ["FpgaTop", "Status"]

_SHOWN_S = 0.05
"""How long a light shows something short."""


@dataclass(frozen=True)
class Status:
    """What a board's lights show, the first one first.

    Members
    -------
    clock : Value
        Changes each half second: the PLL and the configuration are good.
    link : Value
        A client has opened a session.
    receives, sends : Value
        Octets come, or go.
    works : Value
        A list is being done.
    """

    clock: Value
    link: Value
    receives: Value
    sends: Value
    works: Value

    def __iter__(self) -> Iterator[Value]:
        return iter((self.clock, self.link, self.receives, self.sends, self.works))


class FpgaTop(Elaboratable):
    """A board's core behind its serial line.

    Parameters
    ----------
    board : Board
    plan : Plan
    clock_hz : int
        Of the core; the PLL makes it exactly. The serial line divides it by a fraction, so that any clock will do.
    """

    def __init__(self, board: Board, plan: Plan, clock_hz: int):
        self.board, self.plan, self.clock_hz = board, plan, clock_hz
        self.dividers = dividers(board.reference_hz, clock_hz)

    def elaborate(self, platform):
        m = Module()
        m.submodules.oscillator = oscillator = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
        m.submodules.pll = pll = Pll(self.dividers)
        m.domains.sync = ClockDomain()
        m.d.comb += [pll.reference.eq(oscillator.i), ClockSignal("sync").eq(pll.output)]
        m.submodules.reset = ResetSynchronizer(~pll.locked)

        line = platform.request("uart", 0, dir="-")
        m.submodules.rx = rx = io.Buffer("i", line.rx)
        m.submodules.tx = tx = io.Buffer("o", line.tx)
        m.submodules.uart = uart = Uart(divisor=Fraction(self.clock_hz, self.board.baud))
        m.submodules.octets = octets = OctetTop(self.plan)
        m.d.comb += [
            uart.pin_rx.eq(rx.i),
            tx.o.eq(uart.pin_tx),
            octets.rx.eq(uart.rx),
            octets.rx_valid.eq(uart.rx_valid),
            uart.tx.eq(octets.tx),
            uart.tx_valid.eq(octets.tx_valid),
            octets.tx_ready.eq(uart.tx_ready),
        ]
        status = Status(
            clock=self._clock(m),
            link=octets.open,
            receives=self._shown(m, uart.rx_valid, "receives"),
            sends=self._shown(m, octets.tx_valid, "sends"),
            works=octets.busy,
        )
        self.board.connect(m, platform, status)
        return m

    def _clock(self, m):
        half = self.clock_hz // 2
        count, light = Signal(range(half)), Signal(name="clock_light")
        m.d.sync += count.eq(count + 1)
        with m.If(count == half - 1):
            m.d.sync += [count.eq(0), light.eq(~light)]
        return light

    def _shown(self, m, strobe, name):
        clocks = int(self.clock_hz * _SHOWN_S)
        left, light = Signal(range(clocks), name=f"{name}_left"), Signal(name=f"{name}_light")
        m.d.sync += light.eq(left != 0)
        with m.If(strobe):
            m.d.sync += left.eq(clocks - 1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return light
