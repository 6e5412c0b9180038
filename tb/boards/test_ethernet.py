"""ECPIX-5's way over Ethernet, from RGMII pins to the registers of a board: LiteEth's core as it is built, and scapy as
the other end.

All times are those of a board with a clock a thousand times slower, so that time-outs come soon; the ratio of the two
clocks is that of 125 to 75 MHz.
"""

from __future__ import annotations

import random
import zlib
from collections import deque
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from benches.build import CXX_FLAGS, OPTIMIZED, OPTIONS, TOP, border
from benches.compiled import Compiled
from bentpipe_boards.fpga import ethernet as fpga_ethernet
from bentpipe_boards.fpga.ecpix5 import BOARD
from bentpipe_boards.fpga.ethernet import Ethernet, UdpCore, liteeth
from bentpipe_boards.fpga.top import SerialTop
from bentpipe_hdl.amaranth_private import ports
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client, Items
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.protocol import OPEN, OPENED, FrameReader, framed
from bentpipe_sim.board.selftest import SelfTest
from bentpipe_sim.board.windows import Plan, board_registers
from bentpipe_sim.build import Shape
from bentpipe_sim.tools import compiler, run
from bentpipe_sim.verilated import cxx_options, runtime, verilate
from bentpipe_sim.verilog import verilog_of

CLOCK_HZ = 75_000
BAUD = 15_000
PLAN = Plan((Shape.of("link"),), (16,), tx_words=16, rx_words=128)
BOARD_IP, BOARD_MAC = "192.168.1.50", "10:e2:d5:00:00:00"
HOST_IP, HOST_MAC = "192.168.1.7", "02:00:00:00:00:07"
PORT, HOST_PORT = 10053, 40123
SETTINGS = Ethernet(BOARD_IP)


class _Whole(wiring.Component):
    """The part of an FPGA's top behind its PLL and its buffers."""

    def __init__(self) -> None:
        pins = {"rx_clk": In(1), "rx_ctl": In(1), "rx_data": In(4), "tx_ctl": Out(1), "tx_data": Out(4)}
        super().__init__({"pin_rx": In(1, init=1), "pin_tx": Out(1), "phy_rst_n": Out(1), **pins})

    def elaborate(self, platform):
        m = Module()
        m.submodules.serial = serial = SerialTop(PLAN, CLOCK_HZ, BAUD, ethernet=True)
        m.submodules.ethernet = ethernet = UdpCore(clock_hz=CLOCK_HZ)
        wiring.connect(m, ethernet.received, serial.received)
        wiring.connect(m, serial.sent, ethernet.sent)
        for name in ("rx_clk", "rx_ctl", "rx_data"):
            m.d.comb += getattr(ethernet, name).eq(getattr(self, name))
        for name in ("tx_ctl", "tx_data", "phy_rst_n"):
            m.d.comb += getattr(self, name).eq(getattr(ethernet, name))
        m.d.comb += [serial.pin_rx.eq(self.pin_rx), self.pin_tx.eq(serial.pin_tx)]
        return m


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ethernet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fpga_ethernet, "_LEAST_HZ", 0)
        assert BOARD.rgmii is not None
        liteeth(SETTINGS, BOARD.rgmii, CLOCK_HZ, folder)
    whole = _Whole()
    (folder / "node.v").write_text(verilog_of(whole, TOP))
    sources = [folder / "node.v", folder / "ethernet.v", Path(__file__).with_name("ecp5_io.v")]
    included = verilate(sources, folder / "verilated", "a board with Ethernet", *OPTIONS, "--x-initial", "0")
    around = border({name: len(value) for name, (value, _) in ports(whole).items()})
    (folder / "whole.cpp").write_text(included + around)
    options = [*CXX_FLAGS, *cxx_options(), OPTIMIZED, f"-I{folder / 'verilated'}"]
    made = folder / "whole.so"
    command = [compiler(), *options, str(folder / "whole.cpp"), "-shared", "-Wl,-Bsymbolic", str(runtime())]
    run([*command, "-o", str(made)], "compiling a board with Ethernet")
    return made


def _wire(frame: bytes) -> bytes:
    padded = frame.ljust(60, b"\0")
    return b"\x55" * 7 + b"\xd5" + padded + zlib.crc32(padded).to_bytes(4, "little")


class _Line:
    """Both clocks, the RGMII pins by octets and frames, and the serial pins by octets."""

    def __init__(self, made: Path) -> None:
        self.node = Compiled(made)
        self.ports = self.node.ports
        self.clocks = 0
        self._phase = 0.0
        self.outgoing: deque[bytes] = deque()
        self.spoil_next = False
        self.frames: list[bytes] = []
        self._octets = iter(b"")
        self._gap = 0
        self._came = bytearray()
        self._busy = False
        self.answers_arp = True
        self.serial_out: deque[int] = deque()
        self.serial_in: list[int] = []
        self.ports["pin_rx"].set(1)
        for is_reset in (1, 1, 1, 0):  # once more, with a silent serial line
            self.ports["rst"].set(is_reset)
            self.node.settle()
            self.node.edge()
        for _ in range(int(CLOCK_HZ * 0.02 / 75 * 125) + 2000):  # the PHY's reset, and the start of all
            self.clock()
        assert self.ports["phy_rst_n"].get()

    def _edge_of_sys(self) -> None:
        self._phase += 75 / 125
        if self._phase >= 1:
            self._phase -= 1
            self.ports["pin_rx"].set(self.serial_out.popleft() if self.serial_out else 1)
            self.node.settle()
            self.serial_in.append(self.ports["pin_tx"].get())
            self.node.edge()
            self.clocks += 1

    def _next(self) -> int | None:
        octet = next(self._octets, None)
        if octet is not None:
            return octet
        self._gap += 1
        if self._gap > 12 and self.outgoing:
            self._gap, self._octets = 0, iter(self.outgoing.popleft())
        return None

    def clock(self) -> None:
        """A clock of RGMII."""
        ports, octet = self.ports, self._next()
        ports["rx_ctl"].set(octet is not None)
        ports["rx_data"].set((octet or 0) & 15)
        self.node.settle()
        ports["rx_clk"].set(1)
        self.node.settle()
        low, valid = ports["tx_data"].get(), ports["tx_ctl"].get()
        self._edge_of_sys()
        ports["rx_data"].set((octet or 0) >> 4)
        self.node.settle()
        ports["rx_clk"].set(0)
        self.node.settle()
        high = ports["tx_data"].get()
        assert ports["tx_ctl"].get() == valid, "no error is sent"
        if valid:
            self._came.append(low | high << 4)
        elif self._came:
            self._ended(bytes(self._came))
            self._came.clear()

    def _ended(self, wire: bytes) -> None:
        assert wire[:8] == b"\x55" * 7 + b"\xd5", wire.hex()
        frame, check = wire[8:-4], wire[-4:]
        assert zlib.crc32(frame).to_bytes(4, "little") == check and 60 <= len(frame) <= 1514, wire.hex()
        self.frames.append(frame)
        packet = Ether(frame)
        if ARP in packet and packet[ARP].op == 1 and self.answers_arp:
            assert packet[ARP].psrc == BOARD_IP and packet.dst == "ff:ff:ff:ff:ff:ff"
            reply = ARP(op=2, hwsrc=HOST_MAC, psrc=packet[ARP].pdst, hwdst=BOARD_MAC, pdst=BOARD_IP)
            self.put(Ether(src=HOST_MAC, dst=BOARD_MAC) / reply)

    def put(self, packet: Packet, spoilt: int | None = None) -> None:
        wire = bytearray(_wire(bytes(packet)))
        if spoilt is not None:
            wire[spoilt] ^= 1
        self.outgoing.append(bytes(wire))

    def run(self, clocks: int = 4000) -> list[Packet]:
        """Pass time; return the frames that came."""
        self.frames.clear()
        for _ in range(clocks):
            self.clock()
        return [Ether(frame) for frame in self.frames]


@pytest.fixture
def line(library: Path) -> _Line:
    return _Line(library)


def _to_board(payload: bytes, port: int = PORT) -> Packet:
    head = Ether(src=HOST_MAC, dst=BOARD_MAC) / IP(src=HOST_IP, dst=BOARD_IP) / UDP(sport=HOST_PORT, dport=port)
    return head / Raw(payload)


def _checked(packet: Packet) -> Packet:
    """The packet, after a check of its checksum and its addresses."""
    ip = packet[IP]
    wanted = IP(bytes(ip))
    del wanted.chksum
    assert IP(bytes(wanted)).chksum == ip.chksum
    assert (packet.src, packet.dst, ip.src, ip.dst) == (BOARD_MAC, HOST_MAC, BOARD_IP, HOST_IP)
    return packet


def test_arp_is_answered(line: _Line) -> None:
    for address in ("192.168.1.51", BOARD_IP):
        request = ARP(op=1, hwsrc=HOST_MAC, psrc=HOST_IP, pdst=address)
        line.put(Ether(src=HOST_MAC, dst="ff:ff:ff:ff:ff:ff") / request)
    (answer,) = line.run()
    arp = answer[ARP]
    assert (arp.op, arp.hwsrc, arp.psrc, arp.hwdst, arp.pdst) == (2, BOARD_MAC, BOARD_IP, HOST_MAC, HOST_IP)


@pytest.mark.parametrize("octets", [1, 18, 56, 128])
def test_ping_is_answered(line: _Line, octets: int) -> None:
    payload = random.Random(octets).randbytes(octets)
    ping = Ether(src=HOST_MAC, dst=BOARD_MAC) / IP(src=HOST_IP, dst=BOARD_IP) / ICMP(id=7, seq=3) / Raw(payload)
    line.put(ping)
    *_, answer = line.run()
    icmp = _checked(answer)[ICMP]
    assert (icmp.type, icmp.id, icmp.seq, bytes(icmp.payload)[:octets]) == (0, 7, 3, payload)
    wanted = ICMP(type=0, id=7, seq=3) / Raw(payload)
    assert ICMP(bytes(wanted)).chksum == icmp.chksum


def test_a_frame_is_answered_over_udp(line: _Line) -> None:
    line.put(_to_board(framed([0x1234 << 16 | OPEN]), port=PORT + 1))  # not its port
    line.put(_to_board(b""))
    assert line.run() == []
    line.put(_to_board(framed([0x1234 << 16 | OPEN])))
    asked, answer = line.run()
    assert asked[ARP].pdst == HOST_IP
    udp = _checked(answer)[UDP]
    # RFC 768: a checksum of 0 is none
    assert (udp.sport, udp.dport, udp.chksum) == (PORT, HOST_PORT, 0)
    payload = bytes(udp.payload)[: udp.len - 8]
    assert payload == framed([0x1234 << 16 | OPENED])


class _Pipe:
    """A line by UDP for the driver; a share of the frames is lost or spoilt on it."""

    def __init__(self, line: _Line, spoilt: float = 0.0) -> None:
        self.line, self.spoilt = line, spoilt
        self._random = random.Random(5)
        self.longest, self.faults = 0, 0

    def now(self) -> float:
        return self.line.clocks / CLOCK_HZ

    def send(self, octets: bytes) -> None:
        for at in range(0, len(octets), 1472):
            fault = self._random.random() < self.spoilt
            self.faults += fault
            if not fault or self._random.random() < 0.5:
                part = octets[at : at + 1472]
                self.line.put(_to_board(part), self._random.randrange(50, 50 + len(part)) if fault else None)

    def receive(self, until: float) -> bytes:
        line = self.line
        while self.now() < until:
            line.clock()
            while line.frames:
                packet = Ether(line.frames.pop(0))
                if UDP in packet:
                    udp = _checked(packet)[UDP]
                    self.longest = max(self.longest, udp.len - 8)
                    self.faults += (fault := self._random.random() < self.spoilt)
                    if not fault:
                        return bytes(udp.payload)[: udp.len - 8]
        return b""

    def close(self) -> None:
        pass


@pytest.mark.parametrize("spoilt", [0.0, 0.15])
def test_a_session_with_frames_longer_than_a_datagram(line: _Line, spoilt: float) -> None:
    pipe = _Pipe(line, spoilt)
    board = Board(Client(pipe))
    assert board.plan.nodes == PLAN.nodes
    scratch = board_registers(PLAN)["scratch"].addr
    for value in (1, 0, 0xDEADBEEF, 0x00FF00FF):
        items = Items()
        for k in range(160):
            items.write(scratch, [value ^ k])
        items.read(scratch)
        assert board.client.do(items) == [(value ^ 159,)]
        items = Items()
        for _ in range(230):
            items.read(scratch, 2)
        assert [words[0] for words in board.client.do(items)] == [value ^ 159] * 230
    assert pipe.longest == 1472
    assert (board.client.repeats > 2 and pipe.faults > 5) == bool(spoilt)
    assert board.read([board_registers(PLAN)["dropped"].addr])[0] > 0 or not spoilt


def test_the_self_test_passes_over_ethernet(line: _Line) -> None:
    checks = list(SelfTest(_Pipe(line), 1.0, PLAN).run())
    assert len(checks) == 9 and all(check.passed is not False for check in checks), checks
    assert sum(check.passed is True for check in checks) == 7, "what needs an interface is left out"


def _serial_levels(octets: bytes) -> list[int]:
    clocks = CLOCK_HZ // BAUD
    return [bit for octet in octets for bit in (0, *(octet >> k & 1 for k in range(8)), 1) for _ in range(clocks)]


def _serial_octets(levels: list[int]) -> bytes:
    clocks, at, found = CLOCK_HZ // BAUD, 0, bytearray()
    while 0 in levels[at:]:
        at = levels.index(0, at)
        bits = [levels[at + clocks * k + clocks // 2] for k in range(10)]
        found.append(sum(bit << k for k, bit in enumerate(bits[1:9])))
        at += clocks * 9 + clocks // 2
    return bytes(found)


def test_a_client_that_answers_no_arp_stops_neither_the_serial_line_nor_later_clients(line: _Line) -> None:
    line.answers_arp = False
    pipe = _Pipe(line)
    with pytest.raises(BoardError, match="has not answered"):
        Client(pipe, 5)
    line.frames.clear()
    for _ in range(4):
        line.put(_to_board(framed([6 << 16 | OPEN])))
        line.run(8000)
    line.serial_in.clear()
    line.serial_out.extend(_serial_levels(framed([7 << 16 | OPEN])))
    line.run(4000)
    assert [tuple(words) for words in FrameReader().feed(_serial_octets(line.serial_in))] == [(7 << 16 | OPENED,)]
    line.answers_arp = True
    for _ in range(3):  # LiteEth gives up the client without an answer after eight requests
        line.run(60_000)
    assert Client(pipe, 8).trips == 0
