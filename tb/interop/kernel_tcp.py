"""One transfer of the kernel's TCP: ``send ADDRESS PORT SIZE CONTROL``, ``receive PORT``; what came of it, as JSON.
``ping ADDRESS COUNT`` sends ICMPv6 echo requests and prints the round trips in ms."""

from __future__ import annotations

import hashlib
import json
import os
import random
import socket
import struct
import sys
import time
from pathlib import Path

_BLOCK = 1 << 20
_BUFFERS = "4096 67108864 67108864"
"""Windows of more than the path holds, from the start, not only once the kernel has measured that they would help. They
are of this network namespace."""
_NEIGHBOURS = Path("/proc/net/arp")


def send(address: str, port: int, size: int, control: str) -> None:
    _widen()
    _find(address)
    out = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    out.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    while True:
        begin = time.monotonic()
        try:
            out.connect((address, port))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    digest, left, draw = hashlib.sha256(), size, random.Random(size)
    while left:
        data = draw.randbytes(min(left, _BLOCK))
        digest.update(data)
        out.sendall(data)
        left -= len(data)
    out.shutdown(socket.SHUT_WR)
    there = json.loads(out.recv(4096))
    information = out.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    # struct tcp_info of linux/tcp.h: tcpi_snd_mss, tcpi_total_retrans.
    mss, again = (struct.unpack_from("I", information, at)[0] for at in (16, 100))
    seconds = there["end"] - begin  # from the SYN on, as ours count; both ends have one clock
    found = {"digest": digest.hexdigest(), "there": there, "seconds": seconds, "mss": mss, "retransmitted": again}
    print(json.dumps(found), flush=True)


def ping(address: str, count: int) -> None:
    ours = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.getprotobyname("ipv6-icmp"))
    ours.settimeout(5)
    found: list[float] = []
    for number in range(count):
        ours.sendto(struct.pack("!BBHHH", 128, 0, 0, os.getpid() & 0xFFFF, number) + bytes(56), (address, 0))
        begin = time.monotonic()
        while True:
            answer = ours.recv(2048)
            if answer[0] == 129 and struct.unpack_from("!HH", answer, 4) == (os.getpid() & 0xFFFF, number):
                break
        found.append((time.monotonic() - begin) * 1e3)
        time.sleep(0.1)
    print(json.dumps({"ms": found}), flush=True)


def receive(port: int) -> None:
    _widen()
    ours = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    came, _ = ours.accept()
    digest, octets = hashlib.sha256(), 0
    while data := came.recv(_BLOCK):
        digest.update(data)
        octets += len(data)
    end = time.monotonic()
    came.sendall(json.dumps({"digest": digest.hexdigest(), "octets": octets, "end": end}).encode())
    came.close()
    ours.close()


def _find(address: str) -> None:
    """Until the kernel knows the neighbour's Ethernet address: the handshake would wait for it, and time out."""
    if ":" in address:
        return
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"?", (address, 9))
    while not any(row.split()[0] == address and row.split()[2] == "0x2" for row in _NEIGHBOURS.open()):
        time.sleep(0.05)


def _widen() -> None:
    for name in ("tcp_rmem", "tcp_wmem"):
        Path("/proc/sys/net/ipv4", name).write_text(_BUFFERS)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    elif sys.argv[1] == "ping":
        ping(sys.argv[2], int(sys.argv[3]))
    else:
        receive(int(sys.argv[2]))
