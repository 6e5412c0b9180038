"""SACK recovery: what the sender takes to be in the network, against what it has sent and the receiver hasn't reported.

Two connections exchange segments over a line with a delay and listed losses; an observer at the sender sees what
is sent and what comes back.
"""

from __future__ import annotations

import heapq

from hypothesis import given, settings
from hypothesis import strategies as st

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import ACK, MASK32
from bentpipe.tcp.segment import Segment

MSS = 64
DELAY_PS = 20 * 10**9
SPACING_PS = 10**9


class Observer:
    """Return how often each octet was sent that is neither acknowledged nor reported by SACK."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.acknowledged = first
        self.sent: dict[int, int] = {}
        self.sacked: set[int] = set()

    def octet(self, wire: int) -> int:
        return self.first + ((wire - self.first) & MASK32)

    def sends(self, segment: Segment) -> None:
        start = self.octet(segment.seq)
        for octet in range(start, start + segment.length):
            self.sent[octet] = self.sent.get(octet, 0) + 1

    def receives(self, segment: Segment) -> None:
        self.acknowledged = max(self.acknowledged, self.octet(segment.ack))
        for left, right in segment.options.blocks if segment.options is not None else ():
            self.sacked |= set(range(self.octet(left), self.octet(right)))

    def in_flight(self) -> int:
        return sum(n for octet, n in self.sent.items() if octet >= self.acknowledged and octet not in self.sacked)


def transfer(octets: int, losses: set[int], config: TcpConfig, iss: int) -> tuple[Connection, Connection, int]:
    """Sender and receiver at the end, and at how many ACKs of a recovery the pipe was looked at.

    ``losses``: data segments by number, in the order of sending.
    """
    sender, receiver = Connection(config, MSS, iss), Connection(config, MSS, 7)
    ends = (sender, receiver)
    observer = Observer(iss + 1)
    line: list[tuple[int, int, int, Segment]] = []
    free = [0, 0]
    order = data = looked = now = timeouts = 0
    receiver.listen()
    sender.open(0)
    while True:
        for end in (0, 1):
            for segment in ends[end].out:
                free[end] = max(free[end], now) + SPACING_PS
                lost = False
                if end == 0 and segment.length:
                    observer.sends(segment)
                    lost = data in losses
                    data += 1
                if not lost:
                    order += 1
                    heapq.heappush(line, (free[end] + DELAY_PS, order, 1 - end, segment))
            ends[end].out.clear()
        half = sender.sender
        if half.recovery.recovering:
            looked += 1
            pipe, most = half.scoreboard.pipe(half.snd_max), observer.in_flight()
            assert pipe <= most, f"pipe {pipe}, {most} octets are in flight"
        if half.acknowledged == octets:
            return sender, receiver, looked
        timers = [due for due in (sender.next_timer(), receiver.next_timer()) if due]
        if line and (not timers or line[0][0] <= min(timers)):
            now, _, end, segment = heapq.heappop(line)
            if end == 0 and segment.flags & ACK:
                observer.receives(segment)
            before = ends[end].state
            ends[end].receive(segment, now)
            if end == 0 and ends[end].state != before:
                sender.write(octets, now)
        else:
            now = min(timers)
            for connection in ends:
                if 0 < connection.next_timer() <= now:
                    connection.expire(now)
        if half.statistics.timeouts != timeouts:  # the scoreboard was cleared
            timeouts = half.statistics.timeouts
            observer.sacked.clear()


@settings(max_examples=150)
@given(
    octets=st.integers(1, 80 * MSS),
    losses=st.sets(st.integers(0, 100), max_size=15),
    initial_cwnd=st.sampled_from((1, 4, 20)),
    policy=st.sampled_from(("immediate", "every_second")),
    window=st.sampled_from((12 * MSS, 40 * MSS, 400 * MSS)),
    iss=st.sampled_from((0, 2**32 - 1500)),
)
def test_the_pipe_is_never_more_than_is_in_flight(
    octets: int, losses: set[int], initial_cwnd: int, policy: str, window: int, iss: int
) -> None:
    config = TcpConfig(
        variant="sack",
        timers="ideal",
        ack_policy=policy,
        initial_cwnd=initial_cwnd,
        send_buffer=window,
        receive_buffer=window,
        round_buffers=False,
    )
    sender, receiver, _ = transfer(octets, losses, config, iss)
    assert receiver.receiver.delivered == sender.sender.acknowledged == octets


def test_a_recovery_is_looked_at() -> None:
    config = TcpConfig(variant="sack", timers="ideal", ack_policy="immediate", send_buffer=25600, receive_buffer=25600)
    sender, _, looked = transfer(6400, {20, 30, 31}, config, 0)
    assert looked > 5 and sender.sender.statistics.fast_retransmits == 1 and sender.sender.statistics.timeouts == 0
