"""Two kernels talk through a board in free-running time: two network namespaces, two VLANs of one Ethernet line, and a
network with the delay of a LAN."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from bentpipe.attach import kernel
from bentpipe.errors import BentpipeError
from bentpipe_sim.board.client import Items
from bentpipe_sim.board.free import pace_of
from boards.free_board import BOARD_HZ, DELAY_PS, PLAN, VIDS, FreeBoard
from boards.rgmii import built, on_wire

PROGRAM = Path(__file__).parents[1] / "interop" / "kernel_tcp.py"
ADDRESSES = ("10.111.0.1", "10.111.0.2")
SIZE = 100_000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(PLAN, tmp_path_factory.mktemp("free"), fast=True)


@pytest.fixture
def bench(library: Path) -> Iterator[FreeBoard]:
    bench = FreeBoard(library)
    bench.free.start(pace_of(BOARD_HZ))
    yield bench
    bench.network.close()


def test_frames_of_all_lengths_cross_and_take_the_delay(bench: FreeBoard) -> None:
    rng = random.Random(1)
    for octets in (60, 61, 62, 63, 64, 65, 66, 67, 100, 777, 1513, 1514):
        for vid, other in (VIDS, VIDS[::-1]):
            frame = rng.randbytes(12) + b"\x08\x00" + rng.randbytes(octets - 14)
            begun = bench.line.clocks
            bench.put(frame, vid)
            while not bench.line.tagged:
                assert bench.line.clocks - begun < 200_000, "no frame comes"
                bench.line.clock()
            found = bench.line.tagged.popleft()
            assert found == frame[:12] + b"\x81\x00" + other.to_bytes(2, "big") + frame[12:]
            passed = bench.line.clocks - begun
            # Ethernet twice, 13 words at the board's pace for each cell, 4 ticks a cell of OC-12c
            assert passed > DELAY_PS * BOARD_HZ // 10**12
    counts = bench.free.frames()
    assert counts["tagged"] == counts["frames_in"] == counts["frames_out"] == 24
    assert sum(counts.values()) == 3 * 24
    assert bench.free.lag().greatest < 20


@pytest.mark.parametrize("ethernet_hz", [32_000_000, 37_490_000, 50_010_000])
def test_no_frame_has_a_gap_whatever_the_clock_of_liteeth_is(library: Path, ethernet_hz: int) -> None:
    """A gap would end a frame at the pins before its FCS. The line needs 31.25 million words a second."""
    bench, rng = FreeBoard(library, ethernet_hz=ethernet_hz), random.Random(5)
    bench.free.start(pace_of(BOARD_HZ))
    for octets in (60, 1513, 1514):
        for vid in VIDS:
            bench.put(rng.randbytes(octets), vid)
        bench.line.pass_time(100_000)
    assert [len(frame) for frame in bench.line.tagged] == [64, 64, 1517, 1517, 1518, 1518]
    # Those of the board itself, through LiteEth's protocols
    items = Items()
    for _ in range(230):
        items.read(bench.network.board.csr.map["scratch"].addr, 2)
    (*_, words) = bench.network.board.client.do(items)
    assert len(words) == 2
    bench.network.close()


class _Stations:
    """Two network namespaces with a VLAN device each, as a station on the trunk has them.

    A device is a TAP device, whose frames get their tag here: not every kernel has VLAN devices of its own.
    """

    def __init__(self, stack: ExitStack, bench: FreeBoard) -> None:
        self.bench = bench
        self.names = tuple(f"bentpipe-{os.getpid()}-{vid}" for vid in VIDS)
        self.taps: list[int] = []
        self.passed: Counter[int] = Counter()
        for name, vid, address in zip(self.names, VIDS, ADDRESSES, strict=True):
            kernel.ip("netns", "add", name)
            stack.callback(kernel.ip, "netns", "del", name)
            with kernel.inside(name):
                device = f"v{vid}"
                self.taps.append(kernel.open_device(device, tap=True))
                stack.callback(os.close, self.taps[-1])
                Path(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6").write_text("1")
                kernel.ip("address", "add", f"{address}/24", "dev", device)
                kernel.ip("link", "set", device, "up")

    def start(self, number: int, *command: str) -> subprocess.Popen[str]:
        whole = ["ip", "netns", "exec", self.names[number], *command]
        return subprocess.Popen(whole, stdout=subprocess.PIPE, text=True)

    def serve(self, *programs: subprocess.Popen[str]) -> list[str]:
        """Pass time and frames until the programs end; return their output."""
        line = self.bench.line
        while any(program.poll() is None for program in programs):
            for tap, vid in zip(self.taps, VIDS, strict=True):
                while (frame := self._read(tap)) is not None:
                    self.bench.put(frame, vid)
                    self.passed[vid] += 1
            line.clock(2000)
            while line.tagged:
                frame = line.tagged.popleft()
                vid = int.from_bytes(frame[14:16], "big") & 0xFFF
                os.write(self.taps[VIDS.index(vid)], frame[:12] + frame[16:])
        assert [program.returncode for program in programs] == [0] * len(programs)
        return [program.communicate()[0] for program in programs]

    @staticmethod
    def _read(tap: int) -> bytes | None:
        try:
            return os.read(tap, 2048)
        except BlockingIOError:
            return None


@pytest.fixture
def stations(bench: FreeBoard) -> Iterator[_Stations]:
    with ExitStack() as stack:
        try:
            made = _Stations(stack, bench)
        except BentpipeError as error:
            pytest.skip(str(error))
        yield made


def test_two_kernels_ping_and_transfer_by_tcp(bench: FreeBoard, stations: _Stations) -> None:
    (told,) = stations.serve(stations.start(0, "ping", "-c", "3", "-W", "20", ADDRESSES[1]))
    assert "3 received, 0% packet loss" in told
    programs = [
        stations.start(1, sys.executable, str(PROGRAM), "receive", "5001"),
        stations.start(0, sys.executable, str(PROGRAM), "send", ADDRESSES[1], "5001", str(SIZE), "reno"),
    ]
    sent = json.loads(stations.serve(*programs)[1])
    assert sent["there"]["octets"] == SIZE and sent["there"]["digest"] == sent["digest"]
    counts, lag = bench.free.frames(), bench.free.lag()
    print(sent, counts, lag, stations.passed)
    # Each frame of the kernels is in one counter, and what was dropped was sent again
    assert counts["tagged"] == stations.passed.total() == counts["frames_in"] + counts["full_in"]
    assert counts["full_in"] <= sent["retransmitted"]
    assert counts["frames_out"] >= SIZE // sent["mss"] and lag.greatest < 20


def test_each_frame_that_is_not_taken_is_counted_and_the_board_answers_beside(bench: FreeBoard) -> None:
    rng = random.Random(3)

    def frame(octets: int, vid: int) -> bytes:
        head = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") / Dot1Q(vlan=vid, type=0x0800)
        return bytes(head / Raw(rng.randbytes(octets - len(head))))

    good, short = on_wire(frame(300, VIDS[0])), frame(40, VIDS[0])
    wires = {
        "wrong_fcs": [good[:100] + bytes([good[100] ^ 4]) + good[101:], good[:-1] + bytes([good[-1] ^ 128])],
        "runt": [good[:8] + short + zlib.crc32(short).to_bytes(4, "little")],  # with the right FCS
        "giant": [on_wire(frame(octets, VIDS[1])) for octets in (1519, 1600, 3000)],
        "no_vlan": [on_wire(frame(100, vid)) for vid in (11, 0, 4095, 266)],
    }
    for wire in (wire for each in wires.values() for wire in each):
        bench.line.put_wire(good)
        bench.line.put_wire(wire)
        bench.line.pass_time(20_000)
    bench.line.pass_time(60_000)
    sent = sum(map(len, wires.values()))
    assert [found[16:] for found in bench.line.tagged] == [good[24:-4]] * sent
    counts = bench.free.frames()
    assert {name: counts[name] for name in wires} == {name: len(each) for name, each in wires.items()}
    assert counts["tagged"] == counts["no_vlan"] + counts["frames_in"]
    assert counts["frames_in"] == counts["frames_out"] == sent
    assert not any(counts[name] for name in ("no_buffer", "no_own_room", "full_in", "full_out", "bad_out"))


def test_the_lag_shows_a_load_that_the_board_cannot_carry(bench: FreeBoard) -> None:
    rng = random.Random(4)
    for pace, keeps_up in ((pace_of(BOARD_HZ), True), (1 << 31, False)):
        bench.free.start(pace)
        for _ in range(30):
            bench.put(rng.randbytes(1514), VIDS[0])
            bench.line.pass_time(25_000)
        lag = bench.free.lag()
        assert (lag.greatest < 20) == keeps_up and lag.late > 0
        bench.line.pass_time(100_000)
        assert bench.free.lag().now < 40
