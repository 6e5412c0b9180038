"""A board with Ethernet at its RGMII pins, in Verilator: its top behind PLL and buffers, frames at the pins by octets
in C++, and a client of the board over UDP."""

from __future__ import annotations

import ctypes
import random
import zlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from benches.build import CXX_FLAGS, OPTIMIZED, OPTIONS, TOP, border
from bentpipe_boards.fpga.ecpix5 import BOARD
from bentpipe_boards.fpga.ethernet import DOMAIN, Ethernet, UdpCore, join_core, liteeth
from bentpipe_boards.fpga.top import SerialTop
from bentpipe_hdl.amaranth_private import ports
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.tools import compiler, run
from bentpipe_sim.verilated import cxx_options, runtime, verilate
from bentpipe_sim.verilog import verilog_of

CLOCK_HZ = 75_000
"""All time-outs are those of a board with a clock a thousand times slower, so that they come soon. The ratio of the
line's clock and this one is that of 125 to 75 MHz."""
ETHERNET_HZ = CLOCK_HZ // 2
"""The clock of LiteEth's core for its time-outs."""
BAUD = 15_000
BOARD_IP, BOARD_MAC = "192.168.1.50", "10:e2:d5:00:00:00"
HOST_IP, HOST_MAC = "192.168.1.7", "02:00:00:00:00:07"
PORT, HOST_PORT = 10053, 40123
SETTINGS = Ethernet(BOARD_IP)
SHOWN_HZ = 37_490_000
"""The clock of LiteEth's core at the pins, for a line of 125 MHz. It is not quite half of the board's clock, so that
their edges come in all distances."""
_FASTER = "-O2"


class Whole(wiring.Component):
    """The part of an FPGA's top behind its PLL and its buffers."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        clocks = {"ethernet_clk": In(1), "rx_clk": In(1)}
        pins = clocks | {"rx_ctl": In(1), "rx_data": In(4), "tx_ctl": Out(1), "tx_data": Out(4)}
        super().__init__({"pin_rx": In(1, init=1), "pin_tx": Out(1), "phy_rst_n": Out(1), **pins})

    def elaborate(self, platform):
        m = Module()
        m.submodules.serial = serial = SerialTop(self.plan, CLOCK_HZ, BAUD, ethernet=True)
        m.domains += ClockDomain(DOMAIN)
        m.d.comb += ClockSignal(DOMAIN).eq(self.ethernet_clk)
        m.submodules.ethernet_reset = ResetSynchronizer(ResetSignal(), domain=DOMAIN)
        m.submodules.ethernet = ethernet = UdpCore(clock_hz=ETHERNET_HZ, vlans=bool(self.plan.vlans))
        join_core(m, ethernet, serial)
        for name in ("rx_clk", "rx_ctl", "rx_data"):
            m.d.comb += getattr(ethernet, name).eq(getattr(self, name))
        for name in ("tx_ctl", "tx_data", "phy_rst_n"):
            m.d.comb += getattr(self, name).eq(getattr(ethernet, name))
        m.d.comb += [serial.pin_rx.eq(self.pin_rx), self.pin_tx.eq(serial.pin_tx)]
        return m


def built(plan: Plan, folder: Path, *, fast: bool = False) -> Path:
    """Build the library of a board; ``fast``: with the interface of :class:`FastLine`."""
    assert BOARD.rgmii is not None
    liteeth(SETTINGS, BOARD.rgmii, ETHERNET_HZ, folder, vlans=bool(plan.vlans))
    whole = Whole(plan)
    (folder / "node.v").write_text(verilog_of(whole, TOP))
    sources = [folder / "node.v", folder / "ethernet.v", Path(__file__).with_name("ecp5_io.v")]
    included = verilate(sources, folder / "verilated", "a board with Ethernet", *OPTIONS, "--x-initial", "0")
    around = border({name: len(value) for name, (value, _) in ports(whole).items()})
    if fast:
        around += Path(__file__).with_name("rgmii.cpp").read_text()
    (folder / "whole.cpp").write_text(included + around)
    options = [*CXX_FLAGS, *cxx_options(), _FASTER if fast else OPTIMIZED, f"-I{folder / 'verilated'}"]
    made = folder / "whole.so"
    command = [compiler(), *options, str(folder / "whole.cpp"), "-shared", "-Wl,-Bsymbolic", str(runtime())]
    run([*command, "-o", str(made)], "compiling a board with Ethernet")
    return made


def on_wire(frame: bytes) -> bytes:
    """Return a frame with padding, preamble and FCS."""
    padded = frame.ljust(60, b"\0")
    return b"\x55" * 7 + b"\xd5" + padded + zlib.crc32(padded).to_bytes(4, "little")


def from_wire(wire: bytes) -> bytes:
    """Return a frame without preamble and FCS, after a check of both and of its length."""
    assert wire[:8] == b"\x55" * 7 + b"\xd5", wire.hex()
    frame, check = wire[8:-4], wire[-4:]
    assert zlib.crc32(frame).to_bytes(4, "little") == check and 60 <= len(frame) <= 1518, wire.hex()
    return frame


def to_board(payload: bytes, port: int = PORT) -> Packet:
    """Return a datagram for the board."""
    head = Ether(src=HOST_MAC, dst=BOARD_MAC) / IP(src=HOST_IP, dst=BOARD_IP) / UDP(sport=HOST_PORT, dport=port)
    return head / Raw(payload)


def arp_reply(asked: Packet) -> Packet:
    """Return the answer to the board's question for the client's address."""
    assert asked[ARP].psrc == BOARD_IP and asked.dst == "ff:ff:ff:ff:ff:ff"
    reply = ARP(op=2, hwsrc=HOST_MAC, psrc=asked[ARP].pdst, hwdst=BOARD_MAC, pdst=BOARD_IP)
    return Ether(src=HOST_MAC, dst=BOARD_MAC) / reply


def checked(packet: Packet) -> Packet:
    """Return the packet, after a check of its checksum and its addresses."""
    ip = packet[IP]
    wanted = IP(bytes(ip))
    del wanted.chksum
    assert IP(bytes(wanted)).chksum == ip.chksum
    assert (packet.src, packet.dst, ip.src, ip.dst) == (BOARD_MAC, HOST_MAC, BOARD_IP, HOST_IP)
    return packet


class FastLine:
    """The pins of a board by frames. Frames with a tag come apart from those of the board itself.

    The clock of LiteEth's core is ``ethernet_hz``, for a line of 125 MHz.
    """

    def __init__(self, made: Path, ethernet_hz: int = SHOWN_HZ) -> None:
        library = ctypes.CDLL(str(made))
        library.line_new.restype = ctypes.c_void_p
        library.line_clocks.restype = ctypes.c_uint64
        self._library, self._line = library, ctypes.c_void_p(library.line_new(ethernet_hz))
        self._octets = ctypes.create_string_buffer(1 << 16)
        self.frames: list[bytes] = []
        self.tagged: deque[bytes] = deque()
        self.pass_time(int(CLOCK_HZ * 0.02 / 75 * 125) + 2000)  # the PHY's reset, and the start of all

    @property
    def clocks(self) -> int:
        """Clocks of the board that have passed."""
        return self._library.line_clocks(self._line)

    def put_wire(self, wire: bytes) -> None:
        self._library.line_put(self._line, wire, len(wire))

    def put(self, packet: Packet, spoilt: int | None = None) -> None:
        wire = bytearray(on_wire(bytes(packet)))
        if spoilt is not None:
            wire[spoilt] ^= 1
        self.put_wire(bytes(wire))

    def clock(self, clocks: int = 100) -> bool:
        """Pass time, up to a frame; return whether one has come."""
        length = self._library.line_run(self._line, clocks, self._octets)
        assert not self._library.line_torn(self._line), "no error is sent"
        if not length:
            return False
        frame = from_wire(self._octets.raw[:length])
        if frame[12:14] == b"\x81\x00":
            self.tagged.append(frame)
            return True
        packet = Ether(frame)
        if ARP in packet and packet[ARP].op == 1:
            self.put(arp_reply(packet))
        else:
            self.frames.append(frame)
        return True

    def pass_time(self, clocks: int) -> None:
        """Pass so many clocks of the line or more."""
        end = self.clocks + clocks * 3 // 5
        while self.clocks < end:
            self.clock(1000)


class _Pins(Protocol):
    """The pins of a board by frames."""

    frames: list[bytes]

    @property
    def clocks(self) -> int: ...

    def put(self, packet: Packet, spoilt: int | None = None) -> None: ...

    def clock(self) -> object: ...


@dataclass
class UdpPipe:
    """A line by UDP for the driver of a board; a share of the frames is lost or spoilt on it."""

    line: _Pins
    spoilt: float = 0.0
    longest: int = 0
    faults: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(5)

    def now(self) -> float:
        return self.line.clocks / CLOCK_HZ

    def send(self, octets: bytes) -> None:
        for at in range(0, len(octets), 1472):
            fault = self._random.random() < self.spoilt
            self.faults += fault
            if not fault or self._random.random() < 0.5:
                part = octets[at : at + 1472]
                self.line.put(to_board(part), self._random.randrange(50, 50 + len(part)) if fault else None)

    def receive(self, until: float) -> bytes:
        line = self.line
        while self.now() < until:
            line.clock()
            while line.frames:
                packet = Ether(line.frames.pop(0))
                if UDP in packet:
                    udp = checked(packet)[UDP]
                    self.longest = max(self.longest, udp.len - 8)
                    self.faults += (fault := self._random.random() < self.spoilt)
                    if not fault:
                        return bytes(udp.payload)[: udp.len - 8]
        return b""

    def close(self) -> None:
        pass
