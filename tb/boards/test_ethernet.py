"""ECPIX-5's way over Ethernet, from RGMII pins to the registers of a board: LiteEth's core as it is built, and scapy as
the other end.

All times are those of a board with a clock a thousand times slower, so that time-outs come soon; the ratio of the
line's clock and the board's is that of 125 to 75 MHz.
"""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from benches.compiled import Compiled
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client, Items
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.protocol import OPEN, OPENED, FrameReader, framed
from bentpipe_sim.board.selftest import SelfTest
from bentpipe_sim.board.windows import Plan, board_registers
from bentpipe_sim.build import Shape
from boards.rgmii import (
    BAUD,
    BOARD_IP,
    BOARD_MAC,
    CLOCK_HZ,
    HOST_IP,
    HOST_MAC,
    HOST_PORT,
    PORT,
    SHOWN_HZ,
    UdpPipe,
    arp_reply,
    built,
    checked,
    from_wire,
    on_wire,
    to_board,
)

PLAN = Plan((Shape.of("link"),), (16,), tx_words=16, rx_words=128)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(PLAN, tmp_path_factory.mktemp("ethernet"))


class _Line:
    """Both clocks, the RGMII pins by octets and frames, and the serial pins by octets."""

    def __init__(self, made: Path) -> None:
        self.node = Compiled(made)
        self.ports = self.node.ports
        self.clocks = 0
        self._phase = self._ethernet_phase = 0.0
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
            self._edges()
            self._edges()
        for _ in range(int(CLOCK_HZ * 0.02 / 75 * 125) + 2000):  # the PHY's reset, and the start of all
            self.clock()
        assert self.ports["phy_rst_n"].get()

    def _edges(self) -> None:
        self._ethernet_phase += SHOWN_HZ / 125e6
        if self._ethernet_phase >= 1:
            self._ethernet_phase -= 1
            for level in (0, 1):
                self.ports["ethernet_clk"].set(level)
                self.node.settle()
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
        self._edges()
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
        frame = from_wire(wire)
        assert len(frame) <= 1514, wire.hex()
        self.frames.append(frame)
        packet = Ether(frame)
        if ARP in packet and packet[ARP].op == 1 and self.answers_arp:
            self.put(arp_reply(packet))

    def put(self, packet: Packet, spoilt: int | None = None) -> None:
        wire = bytearray(on_wire(bytes(packet)))
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
    icmp = checked(answer)[ICMP]
    assert (icmp.type, icmp.id, icmp.seq, bytes(icmp.payload)[:octets]) == (0, 7, 3, payload)
    wanted = ICMP(type=0, id=7, seq=3) / Raw(payload)
    assert ICMP(bytes(wanted)).chksum == icmp.chksum


def test_a_frame_is_answered_over_udp(line: _Line) -> None:
    line.put(to_board(framed([0x1234 << 16 | OPEN]), port=PORT + 1))  # not its port
    line.put(to_board(b""))
    assert line.run() == []
    line.put(to_board(framed([0x1234 << 16 | OPEN])))
    asked, answer = line.run()
    assert asked[ARP].pdst == HOST_IP
    udp = checked(answer)[UDP]
    # RFC 768: a checksum of 0 is none
    assert (udp.sport, udp.dport, udp.chksum) == (PORT, HOST_PORT, 0)
    payload = bytes(udp.payload)[: udp.len - 8]
    assert payload == framed([0x1234 << 16 | OPENED])


@pytest.mark.parametrize("spoilt", [0.0, 0.15])
def test_a_session_with_frames_longer_than_a_datagram(line: _Line, spoilt: float) -> None:
    pipe = UdpPipe(line, spoilt)
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
    checks = list(SelfTest(UdpPipe(line), 1.0, PLAN).run())
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
    pipe = UdpPipe(line)
    with pytest.raises(BoardError, match="has not answered"):
        Client(pipe, 5)
    line.frames.clear()
    for _ in range(4):
        line.put(to_board(framed([6 << 16 | OPEN])))
        line.run(8000)
    line.serial_in.clear()
    line.serial_out.extend(_serial_levels(framed([7 << 16 | OPEN])))
    line.run(4000)
    assert [tuple(words) for words in FrameReader().feed(_serial_octets(line.serial_in))] == [(7 << 16 | OPENED,)]
    line.answers_arp = True
    for _ in range(3):  # LiteEth gives up the client without an answer after eight requests
        line.run(60_000)
    assert Client(pipe, 8).trips == 0
