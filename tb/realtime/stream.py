"""Datagrams at a steady rate, and how long each took: ``send ADDRESS PORT RATE SECONDS LENGTH``, ``receive PORT``."""

from __future__ import annotations

import array
import json
import socket
import struct
import sys
import time

_SILENCE_S = 3.0


def send(address: str, port: int, rate: float, seconds: float, length: int) -> None:
    """Each has its number and when it was handed over (ns, of the clock that both ends share); the first ones, a
    second before the others, have none: they are for the kernel to find the neighbour."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.sendto(struct.pack("qq", -1, 0), (address, port))
    time.sleep(2)
    rest = bytes(length - 16)
    begin = time.monotonic()
    for number in range(round(rate * seconds)):
        left = begin + number / rate - time.monotonic()
        if left > 0:
            time.sleep(left)
        out.sendto(struct.pack("qq", number, time.monotonic_ns()) + rest, (address, port))
    print(json.dumps({"sent": round(rate * seconds)}), flush=True)
    time.sleep(1 + _SILENCE_S)


def receive(port: int) -> None:
    """Return the datagrams that arrive until there are no more."""
    ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    ours.bind(("", port))
    took, last, disordered = array.array("q"), -1, 0
    while True:
        try:
            data = ours.recv(65536)
        except TimeoutError:
            break
        now = time.monotonic_ns()
        number, at = struct.unpack("qq", data[:16])
        if number < 0:
            continue
        ours.settimeout(_SILENCE_S)
        disordered += number <= last
        last = number
        took.append(now - at)
    ordered = sorted(took)
    found = {"received": len(took), "disordered": disordered}
    if ordered:
        shares = {"median": 0.5, "p99": 0.99, "p999": 0.999}
        found |= {name: ordered[int(share * (len(ordered) - 1))] for name, share in shares.items()}
        found |= {"least": ordered[0], "most": ordered[-1]}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
    else:
        receive(int(sys.argv[2]))
