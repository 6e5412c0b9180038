"""Designs that a simulator of Amaranth runs: nodes, SONET, Amaranth's library, and designs of other packages.

Each is made anew for each simulation. Designs of packages that are not installed are left out.
"""

# Amaranth's classes carry no types; other packages need not be installed.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from amaranth.hdl import DomainRenamer, Module, Record, Signal, Value
from amaranth.lib import crc, fifo, memory, wiring
from amaranth.lib.crc.catalog import CRC32_ETHERNET
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.amaranth_private import PortDirection, ports
from bentpipe_hdl.cell import NARROW
from bentpipe_hdl.nodes import Link, Nic, Switch
from bentpipe_hdl.sonet.framer import Framer
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.terminal import SonetTerminal

__all__ = ["FOREIGN", "OWN", "Made", "installed"]

BIT = 0.3
"""How often an input of one bit changes, unless the design has a rate of its own."""


@dataclass
class Made:
    """A design with its ports. ``rates``: how often an input gets another value, by its place in ``inputs``."""

    design: Any
    inputs: list[Value]
    outputs: list[Value]
    rates: list[float]


def of_ports(component: Any, **rates: float) -> Made:
    """Return a component with all ports of its signature. ``rates``: how often an input changes, by its name."""
    found = Made(component, [], [], [])
    for name, (value, way) in ports(component).items():
        if not len(value):
            continue
        if way is PortDirection.Input:
            found.inputs.append(value)
            found.rates.append(rates.get(name, BIT if len(value) == 1 else 0.5))
        else:
            found.outputs.append(value)
    return found


def of_signals(design: Any, inputs: dict[str, float], outputs: str, holder: Any = None) -> Made:
    """Return a design whose ports are signals of ``holder``, by name."""
    holder = design if holder is None else holder

    def value(name: str) -> Value:
        return Value.cast(getattr(holder, name))

    return Made(design, [*map(value, inputs)], [*map(value, outputs.split())], [*inputs.values()])


# Amaranth's own


def buffered_fifo() -> Made:
    rates = {"w_data": 0.9, "w_en": 0.5, "r_en": 0.5}
    return of_signals(fifo.SyncFIFOBuffered(width=32, depth=1024), rates, "w_rdy r_data r_rdy level")


def crc32() -> Made:
    processor = crc.Processor(crc.Parameters(CRC32_ETHERNET, data_width=32))
    return of_signals(processor, {"data": 0.9, "valid": 0.5, "start": 0.1}, "crc match_detected")


# Other packages'


def luna_registers() -> Made:
    from luna.gateware.interface.spi import SPIRegisterInterface

    design = SPIRegisterInterface(address_size=7, register_size=32)
    design.add_read_only_register(1, read=0xDEADBEEF)
    design.add_register(2, size=32)
    return of_signals(design, {"sck": 0.4, "sdi": 0.3, "cs": 0.01}, "sdo", design.spi)


def luna_device() -> Made:
    from luna.gateware.interface.utmi import UTMIInterface
    from luna.gateware.usb.usb2.device import USBDevice

    bus = UTMIInterface()
    device = USBDevice(bus=bus, handle_clocking=False)
    device.add_control_endpoint()
    rates = {"rx_data": 0.5, "rx_active": 0.1, "rx_valid": 0.3, "tx_ready": 0.5, "line_state": 0.05}
    made = of_signals(device, rates, "tx_data tx_valid op_mode xcvr_select term_select", bus)
    return Made(DomainRenamer({"usb": "sync"})(device), made.inputs, made.outputs, made.rates)


def cynthion_analyzer() -> Made:
    from cynthion.gateware.analyzer.analyzer import USBAnalyzer

    fields = [("rx_data", 8), ("rx_valid", 1), ("rx_active", 1), ("rx_error", 1), ("tx_data", 8), ("rx_complete", 1)]
    bus = Record(fields)
    session, speed, strobe, code = Signal(), Signal(2), Signal(), Signal(8)
    design = USBAnalyzer(bus, session, speed, strobe, code, mem_depth=128)
    rates = {"rx_data": 0.9, "rx_valid": 0.5, "rx_active": 0.1, "rx_error": 0.01}
    made = of_signals(design, rates, "", bus)
    inputs = [*made.inputs, session, speed, strobe, code, design.capture_enable, design.stream.ready]
    more = [design.stream.valid, design.stream.payload, design.idle, design.overrun, design.capturing]
    rates_of_rest = [0.01, 0.01, 0.05, 0.5, 0.02, 0.4]
    return Made(DomainRenamer({"usb": "sync"})(design), inputs, [*map(Value.cast, more)], [*made.rates, *rates_of_rest])


def cynthion_events() -> Made:
    from cynthion.gateware.analyzer.event_detection import USBLowSpeedEventDetector

    rates = {"reset": 0.001, "vbus_connected": 0.001, "line_state": 0.05}
    design = USBLowSpeedEventDetector()
    made = of_signals(design, rates, "event_strobe event_code")
    return Made(DomainRenamer({"usb": "sync"})(design), made.inputs, made.outputs, made.rates)


def luna_soc_timer() -> Made:
    from luna_soc.gateware.core.timer import Peripheral

    return of_ports(Peripheral(width=16), bus_addr=0.5, bus_w_data=0.5)


def _program() -> list[int]:
    """Return RV32I code: an endless loop of xorshift, stores, loads and a sum."""

    def register(number: int, second: int, first: int, kind: int, target: int) -> int:
        return number << 25 | second << 20 | first << 15 | kind << 12 | target << 7 | 0x33

    def immediate(value: int, first: int, kind: int, target: int, code: int = 0x13) -> int:
        return (value & 0xFFF) << 20 | first << 15 | kind << 12 | target << 7 | code

    def store(offset: int, second: int, first: int, kind: int) -> int:
        return (offset >> 5 & 0x7F) << 25 | second << 20 | first << 15 | kind << 12 | (offset & 31) << 7 | 0x23

    load = 0x03
    body = [
        *(immediate(13, 1, 1, 3), register(0, 3, 1, 4, 1), immediate(17, 1, 5, 3), register(0, 3, 1, 4, 1)),
        *(immediate(5, 1, 1, 3), register(0, 3, 1, 4, 1), immediate(0x3FC, 1, 7, 4), register(0, 7, 4, 0, 4)),
        *(store(0, 1, 4, 2), immediate(0, 4, 2, 5, load), register(0, 5, 6, 0, 6), store(1, 6, 4, 0)),
        *(immediate(0, 4, 4, 5, load), register(0, 5, 6, 4, 6), register(0, 6, 1, 3, 8)),
    ]
    back = -4 * len(body) & 0x1FFF
    branch = (back >> 12) << 31 | (back >> 5 & 63) << 25 | 1 << 15 | 1 << 12 | (back >> 1 & 15) << 8
    return [immediate(1, 0, 0, 1), immediate(0x400, 0, 0, 7), *body, branch | (back >> 11 & 1) << 7 | 0x63]


class _Computer(wiring.Component):
    """A Sentinel processor with its memory."""

    def __init__(self) -> None:
        super().__init__({"irq": In(1), "address": Out(30), "data": Out(32), "write": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        from sentinel_cpu.top import Top

        m = Module()
        m.submodules.cpu = cpu = Top()
        m.submodules.memory = words = memory.Memory(shape=32, depth=1024, init=_program())
        read, write, bus = words.read_port(), words.write_port(granularity=8), cpu.bus
        m.d.comb += [read.addr.eq(bus.adr), bus.dat_r.eq(read.data), write.addr.eq(bus.adr), write.data.eq(bus.dat_w)]
        m.d.sync += bus.ack.eq(bus.stb & bus.cyc & ~bus.ack)
        with m.If(bus.stb & bus.cyc & bus.we & ~bus.ack):
            m.d.comb += write.en.eq(bus.sel)
        m.d.comb += [cpu.irq.eq(self.irq), self.address.eq(bus.adr), self.data.eq(bus.dat_w)]
        m.d.comb += self.write.eq(bus.we & bus.stb)
        return m


OWN: dict[str, Callable[[], Made]] = {
    "link": lambda: of_ports(Link(width=NARROW)),
    "switch": lambda: of_ports(Switch(width=NARROW, vcs=8, cells=64, ports=4)),
    "NIC": lambda: of_ports(Nic(width=NARROW, vcs=8)),
    "SONET framer, OC-3c": lambda: of_ports(Framer(Geometry(3, 1))),
    "SONET terminal, OC-3c": lambda: of_ports(SonetTerminal(Geometry(3, 1))),
    "SONET terminal, OC-12c": lambda: of_ports(SonetTerminal(Geometry(12, 4))),
    "SyncFIFOBuffered": buffered_fifo,
    "CRC-32": crc32,
}
"""Designs of ours and of Amaranth's library."""

FOREIGN: dict[str, tuple[str, Callable[[], Made]]] = {
    "luna-usb, SPI registers": ("luna", luna_registers),
    "luna-usb, USB device": ("luna", luna_device),
    "sentinel-cpu, with memory": ("sentinel_cpu", lambda: of_ports(_Computer(), irq=0.001)),
    "cynthion, USB analyzer": ("cynthion", cynthion_analyzer),
    "cynthion, USB events": ("cynthion", cynthion_events),
    "luna-soc, timer": ("luna_soc", luna_soc_timer),
}
"""Module and design, by name."""


def installed() -> Iterator[tuple[str, Callable[[], Made]]]:
    """Yield the designs of those packages that are installed."""
    for name, (module, make) in FOREIGN.items():
        if find_spec(module) is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Amaranth, about what these packages use
                yield name, make
