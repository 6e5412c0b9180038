"""One transfer of the kernel's TCP: ``send ADDRESS PORT SIZE CONTROL``, ``receive PORT``; what came of it, as JSON."""

from __future__ import annotations

import hashlib
import json
import random
import socket
import struct
import sys
import time
from pathlib import Path

_BLOCK = 1 << 20
_BUFFERS = "4096 262144 67108864"
"""Windows of more than the path holds: 9 MB. They are of this network namespace."""


def send(address: str, port: int, size: int, control: str) -> None:
    _widen()
    out = socket.socket()
    out.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    while True:
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
    print(json.dumps({"digest": digest.hexdigest(), "there": there, "mss": mss, "retransmitted": again}), flush=True)


def receive(port: int) -> None:
    _widen()
    ours = socket.create_server(("", port))
    came, _ = ours.accept()
    digest, octets, begin = hashlib.sha256(), 0, time.monotonic()
    while data := came.recv(_BLOCK):
        digest.update(data)
        octets += len(data)
    spent = time.monotonic() - begin
    came.sendall(json.dumps({"digest": digest.hexdigest(), "octets": octets, "seconds": spent}).encode())
    came.close()
    ours.close()


def _widen() -> None:
    for name in ("tcp_rmem", "tcp_wmem"):
        Path("/proc/sys/net/ipv4", name).write_text(_BUFFERS)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        receive(int(sys.argv[2]))
