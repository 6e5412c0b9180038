"""The time that the host side takes for a segment: ``python -m bentpipe.hosts.bench``.

Two hosts are on a wire that costs nothing: TCP, the header codec and the engine are measured.
"""

from __future__ import annotations

import time
from collections import deque
from typing import final

from bentpipe.apps.ttcp import Ttcp
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import Engine
from bentpipe.ip.codec import CHECKSUM_AT, CHECKSUM_START, LLC_SNAP_SUM
from bentpipe.tcp.config import TcpConfig
from bentpipe_sim.interface import PduEvent

__all__ = ["IdealWire", "microseconds_a_segment"]

_HEAD = 128


@final
class IdealWire:
    """Two interfaces joined by a wire that takes and gives PDUs at no cost.

    Payload is not made: checks succeed, and sums are what the pseudo header needs.
    """

    def __init__(self, rate_bps: int, delay_ps: int) -> None:
        self.now_ps = 0
        self.ps_per_octet = 8 * 10**12 // rate_bps
        self.delay_ps = delay_ps
        self.free = [0, 0]
        self.lines: list[deque[PduEvent]] = [deque(), deque()]
        self.pseudo = 6 + 2 * (10 << 24) + 1 + 2
        self.sent = 0
        self.turns = 0
        self.checks = 0

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
        start = self.free[nic]
        if start < self.now_ps:
            start = self.now_ps
        size = len(head) + length
        self.free[nic] = done = start + size * self.ps_per_octet
        self.sent += 1
        total = LLC_SNAP_SUM + 65535 - (self.pseudo + size - CHECKSUM_START) % 65535
        self.lines[nic].append(PduEvent(done + self.delay_ps, 1 - nic, 0, 0, size, head, 0, False, total))

    def run(self, until_ps: int) -> list[PduEvent]:
        self.turns += 1
        forth, back = self.lines
        if forth and (not back or forth[0].time_ps <= back[0].time_ps):
            line = forth
        elif back:
            line = back
        else:
            self.now_ps = until_ps
            return []
        due = line[0].time_ps
        if due > until_ps:
            self.now_ps = until_ps
            return []
        self.now_ps = due
        return [line.popleft()]

    def check(self, handle: int, start: int, key: int, offset: int, length: int) -> bool:
        self.checks += 1
        return True

    def checksum(self, handle: int, start: int, length: int) -> int:
        raise NotImplementedError

    def sdu(self, handle: int) -> bytes:
        return b""

    def under_way(self, nic: int, vc: int, sink: int, key: int) -> int:
        return -1


def _seconds_of(used: IdealWire) -> float:
    """Return the time that a wire takes for the same calls without hosts (s)."""
    wire = IdealWire(134_000_000, 10_000_000_000)
    head = bytes(48)
    start = time.process_time()
    for _ in range(used.sent // 8):
        for _ in range(8):
            wire.send(0, 0, head, 1, 0, 9140, CHECKSUM_START, CHECKSUM_AT)
        for _ in range(8):
            wire.run(1 << 60)
    for _ in range(used.turns - used.sent):
        wire.run(0)
    for _ in range(used.checks):
        wire.check(0, 48, 1, 0, 9140)
    return time.process_time() - start


def microseconds_a_segment(
    segments: int = 50_000, send_cost_ps: int = 0, receive_cost_ps: int = 0, variant: str = "reno"
) -> tuple[float, float]:
    """Return the microseconds of processor time per data segment sent, received and acknowledged (every second one).

    The second figure is without the time that the wire takes for the same calls.
    """
    wire = IdealWire(134_000_000, 10_000_000_000)
    engine = Engine(wire)
    source = engine.add_host(HostConfig(name="source", send_cost_ps=send_cost_ps, receive_cost_ps=receive_cost_ps), 0)
    sink = engine.add_host(HostConfig(name="sink", send_cost_ps=send_cost_ps, receive_cost_ps=receive_cost_ps), 1)
    tcp = TcpConfig(variant=variant, send_buffer=1 << 20, receive_buffer=1 << 20)
    flow = engine.add_tcp_flow("flow", source, sink, 0, 0, tcp, app=Ttcp(segments * 9140))
    start = time.process_time()
    end = engine.run(10**15)
    seconds = time.process_time() - start
    report = flow.report(end)
    if report.octets_delivered != segments * 9140:
        raise RuntimeError(f"the transfer stopped after {report.octets_delivered} octets")
    own = seconds - _seconds_of(wire)
    return seconds / report.data_segments_sent * 1e6, own / report.data_segments_sent * 1e6


def main() -> None:
    """Print the figures."""
    from bentpipe.tcp import connection

    kind = "compiled" if not str(getattr(connection, "__file__", "")).endswith(".py") else "plain Python"
    for name, cost, variant in (
        ("hosts without cost, Reno", 0, "reno"),
        ("hosts without cost, SACK", 0, "sack"),
        ("62 us a segment, Reno", 62_000_000, "reno"),
    ):
        best = min((microseconds_a_segment(20_000, cost, cost, variant) for _ in range(3)), key=lambda pair: pair[1])
        print(f"{kind}: {name}: {best[1]:.2f} us a segment, both hosts ({best[0]:.2f} with the wire)")


if __name__ == "__main__":
    main()
