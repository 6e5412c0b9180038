"""A host of ours and the Linux kernel's TCP on the two ends of a TUN device, in a network namespace of its own.

Run as a program (``python tb/interop/tun.py``) it reads transfers from standard input, a line of JSON each, and prints
for each what both ends say of it, as JSON. Each transfer is in a process of its own, which is forked, so that the
modules are imported once. Our host is the one of the experiments; only its network is another: packets go to the
kernel, and simulated time is the clock's. Where there is no TUN device, or none is permitted, the answer is
``{"not_here": REASON}``.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import select
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

from bentpipe.apps.ttcp import Ttcp
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import Engine
from bentpipe.hosts.sockets import TcpEndpoint
from bentpipe.ip.codec import LLC_SNAP, SNAP_IPV4, decode_options
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import CLOSED, TIME_WAIT
from bentpipe_sim.interface import PduEvent
from models.wire import fast_pattern, ones_sum

OURS, THEIRS = "192.0.2.1", "192.0.2.2"  # RFC 5737
PORTS = 5001, 5002
KEYS = 1, 2
MTU = 1500
LLC = struct.pack(">II", LLC_SNAP, SNAP_IPV4)


class NotHereError(Exception):
    """There is no TUN device, or it isn't permitted."""


def open_tun() -> int:
    """The file descriptor of a TUN device whose other end is the kernel of a new network namespace."""
    flags = 0x40000000 | (0x10000000 if os.geteuid() else 0)  # CLONE_NEWNET, and CLONE_NEWUSER if we aren't root
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags):
        raise NotHereError(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    try:
        tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"bentpipe", 0x1001))  # TUNSETIFF: IFF_TUN | IFF_NO_PI
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:

            def configure(request: int, value: bytes) -> None:
                fcntl.ioctl(control, request, struct.pack("16s24s", b"bentpipe", value))

            def address(text: str) -> bytes:
                return struct.pack("HH4s", socket.AF_INET, 0, socket.inet_aton(text))

            configure(0x8916, address(THEIRS))  # SIOCSIFADDR
            configure(0x8918, address(OURS))  # SIOCSIFDSTADDR
            configure(0x8922, struct.pack("i", MTU))  # SIOCSIFMTU
            configure(0x8914, struct.pack("H", 0x41))  # SIOCSIFFLAGS: IFF_UP | IFF_RUNNING
        # An ACK for each segment out of order, as RFC 5681 asks for, and none compressed away: duplicates are counted.
        Path("/proc/sys/net/ipv4/tcp_comp_sack_nr").write_text("0")
    except OSError as error:
        raise NotHereError(f"no TUN device: {error.filename or '/dev/net/tun'}: {error.strerror}") from None
    return tun


class TunNetwork:
    """:class:`bentpipe_sim.interface.PduNetwork` in real time: interface 0 is joined to the TUN device.

    Parameters
    ----------
    tun : int
    delay_ps : int
        One way.
    drop_sent, drop_received : sets of int
        Numbers of packets with data (from 0, as they are sent) that are lost on the way to, and from, the kernel.

    Members
    -------
    dropped : list of int
        Octets of data lost on the way to, and from, the kernel.
    blocks : list of int
        Packets with SACK blocks sent, and received.
    """

    def __init__(self, tun: int, delay_ps: int, drop_sent: set[int], drop_received: set[int]) -> None:
        self.tun = tun
        self.delay_ps = delay_ps
        self.drops = drop_sent, drop_received
        self.seen = [0, 0]
        self.dropped = [0, 0]
        self.blocks = [0, 0]
        self.now_ps = 0
        self._start = time.monotonic_ns()
        self._order = 0
        self._under_way: list[tuple[int, int, bool, bytes]] = []  # due, order, towards us, packet
        self._sdu = b""

    def _clock(self) -> int:
        return (time.monotonic_ns() - self._start) * 1000

    def _queue(self, packet: bytes, received: bool, now: int) -> None:
        header = 20 + (packet[32] >> 4) * 4
        options = decode_options(packet[40:header], packet[33])
        if options is not None and options.blocks:
            self.blocks[received] += 1
        if len(packet) > header:
            number, self.seen[received] = self.seen[received], self.seen[received] + 1
            if number in self.drops[received]:
                self.dropped[received] += len(packet) - header
                return
        self._order += 1
        heapq.heappush(self._under_way, (now + self.delay_ps, self._order, received, packet))

    def send(
        self,
        nic: int,
        vc: int,
        head: bytes,
        key: int = 0,
        offset: int = 0,
        length: int = 0,
        checksum_start: int = -1,
        checksum_at: int = -1,
        uu: int = 0,
    ) -> None:
        octets = bytearray(head + fast_pattern(key, offset, length))
        value = 0xFFFF ^ ones_sum(bytes(octets[checksum_start:]))
        octets[checksum_at : checksum_at + 2] = value.to_bytes(2, "big")
        self._queue(bytes(octets[len(LLC) :]), False, self.now_ps)

    def run(self, until_ps: int) -> list[PduEvent]:
        while True:
            now = self._clock()
            while self._under_way and self._under_way[0][0] <= now:
                due, _, received, packet = heapq.heappop(self._under_way)
                if received:
                    self.now_ps = max(self.now_ps, min(due, until_ps))
                    self._sdu = LLC + packet
                    return [PduEvent(self.now_ps, 0, 0, 0, len(self._sdu), self._sdu[:128], 0)]
                os.write(self.tun, packet)
            if now >= until_ps:
                self.now_ps = until_ps
                return []
            wake = min([until_ps, *(entry[0] for entry in self._under_way[:1])])
            readable, _, _ = select.select([self.tun], [], [], max(0, wake - now) / 1e12)
            if readable:
                packet = os.read(self.tun, MTU)
                if packet[0] == 0x45 and packet[9] == socket.IPPROTO_TCP:
                    self._queue(packet, True, self._clock())

    def check(self, handle: int, start: int, key: int, offset: int, length: int) -> bool:
        return self._sdu[start : start + length] == fast_pattern(key, offset, length)

    def checksum(self, handle: int, start: int, length: int) -> int:
        return ones_sum(self._sdu[start : start + length])

    def sdu(self, handle: int) -> bytes:
        return self._sdu

    def under_way(self, nic: int, vc: int, sink: int, key: int) -> int:
        return -1


class Peer(threading.Thread):
    """The program at the kernel's end: sends ``size`` octets of our pattern to us, or takes what we send."""

    def __init__(self, sends: bool, size: int, buffer: int) -> None:
        super().__init__(daemon=True)
        self.sends, self.size = sends, size
        self.result: dict[str, Any] = {}
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.listener.bind((THEIRS, PORTS[1]))
        if not sends:
            self.listener.listen()

    def run(self) -> None:
        try:
            self._transfer()
        except OSError as error:
            self.result["error"] = str(error)

    def _transfer(self) -> None:
        if self.sends:
            connection = self.listener
            connection.connect((OURS, PORTS[0]))
            connection.sendall(fast_pattern(KEYS[1], 0, self.size))
            connection.shutdown(socket.SHUT_WR)
            self.result["right"] = connection.recv(1) == b""
        else:
            connection, _ = self.listener.accept()
            got = bytearray()
            while piece := connection.recv(65536):
                got += piece
            self.result["right"] = bytes(got) == fast_pattern(KEYS[0], 0, self.size)
        information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        # struct tcp_info of linux/tcp.h: options and window scales, then 32-bit words from octet 8 on.
        self.result["options"] = information[5]
        self.result["scales"] = information[6] & 15, information[6] >> 4
        self.result["retransmitted_segments"] = struct.unpack_from("I", information, 100)[0]
        self.result["segment_size"] = struct.unpack_from("I", information, 16)[0]
        connection.close()


def counters() -> dict[str, int]:
    """Some of the kernel's TcpExt counters, of this network namespace."""
    lines = [line.split() for line in Path("/proc/self/net/netstat").read_text().splitlines()]
    names, values = (line[1:] for line in lines if line[0] == "TcpExt:")
    found = dict(zip(names, map(int, values), strict=True))
    return {name: found[name] for name in ("TCPSackRecovery", "TCPOFOQueue", "TCPTimeouts", "TCPSACKReneging")}


def transfer(wanted: dict[str, Any]) -> dict[str, Any]:
    """One transfer; what our end and the kernel's say of it."""
    tun = open_tun()
    size, buffer = wanted["size"], wanted["buffer"]
    ours_sends = wanted["sender"] == "ours"
    network = TunNetwork(tun, wanted["delay_ps"], set(wanted["drop_sent"]), set(wanted["drop_received"]))
    engine = Engine(network)
    host = engine.add_host(HostConfig(name="ours", mtu=MTU), 0)
    host.address = int.from_bytes(socket.inet_aton(OURS), "big")
    theirs = int.from_bytes(socket.inet_aton(THEIRS), "big")
    tcp = TcpConfig(timestamps=True, send_buffer=buffer, receive_buffer=buffer, **wanted["tcp"])
    # The sequence numbers wrap within the transfer.
    connection = Connection(tcp, tcp.segment_size(MTU), 2**32 - 10_000, host.ticks.count)
    program = Ttcp(size) if ours_sends else None
    end = TcpEndpoint(host, connection, theirs, *PORTS, 0, *KEYS, program)
    peer = Peer(not ours_sends, size, buffer)
    if not ours_sends:
        connection.listen()
    peer.start()
    if ours_sends:
        end.open(network.now_ps)
    limit = 60 * 10**12

    def progress(now: int) -> bool:
        return connection.state not in (CLOSED, TIME_WAIT) or peer.is_alive()

    engine.run(limit, progress)
    peer.join(1)
    send, take = connection.sender, connection.receiver
    counted = ("retransmits", "retransmitted_octets", "timeouts", "fast_retransmits")
    reached = ("acknowledged", "timestamps", "sacked")
    arrived = ("delivered", "out_of_order", "sacks")
    return {
        "kernel": peer.result,
        "kernel_counters": counters(),
        "ours": {name: getattr(send.statistics, name) for name in counted}
        | {name: getattr(send, name) for name in reached}
        | {name: getattr(take, name) for name in arrived}
        | {"error": connection.error, "bad_octets": end.bad_octets},
        "scales": [send.snd_shift, take.rcv_shift],
        "checksum_errors": host.checksum_errors + host.header_errors,
        "dropped_octets": network.dropped,
        "blocks": network.blocks,
        "seconds": network.now_ps / 10**12,
    }


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                found = transfer(json.loads(line))
            except NotHereError as why:
                found = {"not_here": str(why)}
            print(json.dumps(found), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"failed": status}), flush=True)


if __name__ == "__main__":
    main()
