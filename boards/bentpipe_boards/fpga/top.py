"""The top of an FPGA: clock, reset, pins and lights around a board's core."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module, Signal, Value
from amaranth.lib import io, wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out

from bentpipe_boards.core import line_members, memory_members
from bentpipe_boards.datagrams import Datagrams, DatagramSignature, Lines
from bentpipe_boards.fpga.board import PIN_CLOCKS, Board
from bentpipe_boards.fpga.ddr3 import Ddr3Memory, fast_by, start_by
from bentpipe_boards.fpga.errors import FpgaError
from bentpipe_boards.fpga.ethernet import DOMAIN, UdpCore, core_by, core_hz, join_core, join_pins
from bentpipe_boards.fpga.pll import Pll, dividers
from bentpipe_boards.sdram import SdramTimes
from bentpipe_boards.top import OctetTop
from bentpipe_boards.uart import Uart
from bentpipe_sim.board.pipe import BAUD
from bentpipe_sim.board.windows import Plan

__all__ = ["FpgaTop", "SerialTop", "Status"]

_SHOWN_S: Final = 0.05
"""How long a light shows something short."""
_PAUSE_S: Final = 0.1
"""After which a half frame, or half a command of UARTBone, is over; as LiteX has it."""
_LINE_PAUSE_S: Final = 0.01
"""After which half a frame of one line no longer holds the other line."""
_PATIENCE_S: Final = 0.02
"""For which the board waits for Ethernet to take an answer: for a client's answer to ARP, but not for all of LiteEth's
eight requests."""

_DDR3_OUTPUTS: Final = {"fast_by": fast_by, "slow_by": start_by}
"""Dividers of the PLL for a DDR3 memory."""


@dataclass(frozen=True)
class Status:
    """The signals of a board's lights, in their order.

    Members
    -------
    clock : Value
        Changes each half second: the PLL and the configuration are good.
    link : Value
        A client has opened a session.
    receives, sends : Value
        Octets are received, or sent.
    works : Value
        A list is being executed.
    """

    clock: Value
    link: Value
    receives: Value
    sends: Value
    works: Value

    def __iter__(self) -> Iterator[Value]:
        return iter((self.clock, self.link, self.receives, self.sends, self.works))


class SerialTop(wiring.Component):
    """A board's core behind a serial line, and Ethernet beside it.

    Parameters
    ----------
    plan : Plan
    clock_hz, baud : int
    ethernet : bool
    parts_domain : str
        As for :class:`~bentpipe_boards.core.Core`.

    Members
    -------
    pin_rx, pin_tx : In(1), Out(1)
    clock, link, receives, sends, works : Out(1)
        As for :class:`Status`.
    chip : Out(SdramSignature)
        Pins of the memory chip, if the plan has wires in the SDRAM.
    received, sent : In(DatagramSignature), Out(DatagramSignature)
        Datagrams, with Ethernet.
    memory, line_in, line_out, own_in, own_out
        As for :class:`~bentpipe_boards.core.Core`, if the plan has VLANs.
    """

    def __init__(
        self, plan: Plan, clock_hz: int, baud: int = BAUD, *, ethernet: bool = False, parts_domain: str = "sync"
    ):
        self.plan, self.clock_hz, self.baud, self._ethernet = plan, clock_hz, baud, ethernet
        self._parts_domain = parts_domain
        members = dict.fromkeys(("clock", "link", "receives", "sends", "works"), Out(1))
        if ethernet:
            members |= {"received": In(DatagramSignature()), "sent": Out(DatagramSignature())}
        members |= memory_members(plan) | line_members(plan)
        super().__init__({"pin_rx": In(1, init=1), "pin_tx": Out(1, init=1), **members})

    @property
    def status(self) -> Status:
        """The signals that the lights show."""
        return Status(self.clock, self.link, self.receives, self.sends, self.works)

    def elaborate(self, platform):
        m = Module()
        m.submodules.uart = uart = Uart(divisor=Fraction(self.clock_hz, self.baud))
        m.submodules.octets = octets = OctetTop(
            self.plan,
            pause=round(self.clock_hz * _PAUSE_S),
            memory=SdramTimes(self.clock_hz) if self.plan.sdram and not self.plan.ddr3 else None,
            pin_clocks=PIN_CLOCKS,
            parts_domain=self._parts_domain,
        )
        for name in memory_members(self.plan) | line_members(self.plan):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(octets, name))
        m.d.comb += [
            uart.pin_rx.eq(self.pin_rx),
            self.pin_tx.eq(uart.pin_tx),
            uart.tx.eq(octets.tx),
            self.link.eq(octets.open),
            self.works.eq(octets.busy),
        ]
        if self._ethernet:
            self._both(m, uart, octets)
        else:
            m.d.comb += [
                octets.rx.eq(uart.rx),
                octets.rx_valid.eq(uart.rx_valid),
                uart.tx_valid.eq(octets.tx_valid),
                octets.tx_ready.eq(uart.tx_ready),
            ]
        half = self.clock_hz // 2
        count = Signal(range(half))
        m.d.sync += count.eq(count + 1)
        with m.If(count == half - 1):
            m.d.sync += [count.eq(0), self.clock.eq(~self.clock)]
        self._show(m, octets.rx_valid, self.receives)
        self._show(m, octets.tx_valid, self.sends)
        return m

    def _both(self, m, uart, octets):
        """Join the octets with the serial line and with Ethernet."""
        m.submodules.lines = lines = Lines(pause=math.ceil(self.clock_hz * _LINE_PAUSE_S))
        m.submodules.datagrams = datagrams = Datagrams(patience=math.ceil(self.clock_hz * _PATIENCE_S))
        wiring.connect(m, wiring.flipped(self.received), datagrams.received)
        wiring.connect(m, datagrams.sent, wiring.flipped(self.sent))
        m.d.comb += [
            lines.serial_rx.eq(uart.rx),
            lines.serial_rx_valid.eq(uart.rx_valid),
            lines.other_rx.eq(datagrams.rx),
            lines.other_rx_valid.eq(datagrams.rx_valid),
            datagrams.rx_ready.eq(lines.other_rx_ready),
            octets.rx.eq(lines.rx),
            octets.rx_valid.eq(lines.rx_valid),
            lines.tx_valid.eq(octets.tx_valid),
            octets.tx_ready.eq(lines.tx_ready),
            uart.tx_valid.eq(lines.serial_tx_valid),
            lines.serial_tx_ready.eq(uart.tx_ready),
            datagrams.tx.eq(octets.tx),
            datagrams.tx_valid.eq(lines.other_tx_valid),
            lines.other_tx_ready.eq(datagrams.tx_ready),
        ]

    def _show(self, m, strobe, light):
        clocks = int(self.clock_hz * _SHOWN_S)
        left = Signal(range(clocks), name=f"{light.name}_left")
        m.d.sync += light.eq(left != 0)
        with m.If(strobe):
            m.d.sync += left.eq(clocks - 1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)


class FpgaTop(Elaboratable):
    """A board's core with the clock and the pins of a board.

    Parameters
    ----------
    board : Board
    plan : Plan
    clock_hz : int
        Of the core; the PLL makes it exactly.
    ethernet : bool
        The board is driven over Ethernet, too.
    """

    def __init__(self, board: Board, plan: Plan, clock_hz: int, *, ethernet: bool = False):
        if plan.sdram and (board.ddr3 if plan.ddr3 else board.sdram) is None:
            kind = "DDR3 memory" if plan.ddr3 else "SDRAM"
            raise FpgaError(f"{board.name}: has no {kind} that can hold wires; take wires of block memory")
        if ethernet and board.rgmii is None:
            raise FpgaError(f"{board.name}: has no Ethernet")
        if plan.vlans and not ethernet:
            raise FpgaError(f"{board.name}: VLANs need Ethernet; build it with an IP address")
        self._ethernet = ethernet
        self.board, self.plan, self.clock_hz = board, plan, clock_hz
        self.dividers = dividers(board.reference_hz, clock_hz)
        self._core_by = core_by(self.dividers, clock_hz) if ethernet else 0

    def elaborate(self, platform):
        m = Module()
        m.submodules.oscillator = oscillator = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
        outputs = {}
        if self.plan.ddr3:
            outputs = {name: by(self.dividers, self.clock_hz) for name, by in _DDR3_OUTPUTS.items()}
        m.submodules.pll = pll = Pll(self.dividers, self._core_by, **outputs)
        m.domains.sync = ClockDomain()
        m.domains.parts = ClockDomain(reset_less=True)
        m.d.comb += [
            pll.reference.eq(oscillator.i),
            ClockSignal("sync").eq(pll.output),
            ClockSignal("parts").eq(pll.output),
        ]
        if self.plan.sdram and not self.plan.ddr3:
            m.domains.chip = ClockDomain(reset_less=True)
            m.d.comb += ClockSignal("chip").eq(pll.early)
        m.submodules.reset = ResetSynchronizer(~pll.locked)

        line = platform.request("uart", 0, dir="-")
        m.submodules.rx = rx = io.Buffer("i", line.rx)
        m.submodules.tx = tx = io.Buffer("o", line.tx)
        m.submodules.serial = serial = SerialTop(
            self.plan, self.clock_hz, ethernet=self._ethernet, parts_domain="parts"
        )
        m.d.comb += [serial.pin_rx.eq(rx.i), tx.o.eq(serial.pin_tx)]
        if self.board.sdram is not None and self.plan.sdram and not self.plan.ddr3:
            self.board.sdram(m, platform, serial.chip)
        if self.board.ddr3 is not None and self.plan.ddr3:
            m.submodules.ddr3 = memory = Ddr3Memory(platform, self.board.ddr3)
            m.d.comb += [memory.fast_clk.eq(pll.fast), memory.start_clk.eq(pll.slow), memory.rst.eq(~pll.locked)]
            wiring.connect(m, serial.memory, memory.streams)
        if self.board.rgmii is not None and self._ethernet:
            m.domains += ClockDomain(DOMAIN)
            m.d.comb += ClockSignal(DOMAIN).eq(pll.other)
            m.submodules.ethernet_reset = ResetSynchronizer(~pll.locked, domain=DOMAIN)
            clock_hz = core_hz(self.dividers, self.clock_hz)
            m.submodules.ethernet = ethernet = UdpCore(clock_hz=clock_hz, vlans=bool(self.plan.vlans))
            join_core(m, ethernet, serial)
            join_pins(m, platform, self.board.rgmii, ethernet)
        self.board.connect(m, platform, serial.status)
        return m
