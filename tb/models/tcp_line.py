"""Two TCP connections on a line that loses, repeats and reorders segments, with what must hold for each segment.

There are no hosts and no cells: a segment takes ``delay_ps`` and as long as it waits for those before it. BSD's ticks
come at multiples of 0.2 and 0.5 s where a connection waits for one.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection, reset_for
from bentpipe.tcp.constants import ACK, CLOSED, FAST_TICK_PS, MASK32, RST, SLOW_TICK_PS, SYN
from bentpipe.tcp.segment import Segment

__all__ = ["End", "TcpLine"]

_OPTIONS_MAX = 40
_LEAST_MSS = 32


class End:
    """A connection and what the test knows of it.

    Members
    -------
    connection : Connection
    edge : int
        The right edge of the window that the peer offered, in octets after the first; -1 before.
    promised : int
        The right edge of the window that it offered itself, the same way.
    sent : list of (int, Segment)
        What it sent, with the time.
    """

    def __init__(self, connection: Connection, mss: int) -> None:
        self.connection = connection
        self.mss = mss
        self.edge = -1
        self.shift = 0
        self.promised = -1
        self.sent: list[tuple[int, Segment]] = []

    def takes(self, segment: Segment) -> None:
        """A segment is about to arrive: it may offer more window."""
        sender = self.connection.sender
        if segment.flags & SYN:
            options = segment.options
            offered = options.window_shift if options is not None else -1
            self.shift = min(offered, 14) if offered >= 0 and self.connection.config.window_scale else 0
        if segment.flags & ACK:
            acked = (segment.ack - sender.iss - 1) & MASK32
            if acked < 1 << 31:
                shift = 0 if segment.flags & SYN else self.shift
                self.edge = max(self.edge, acked + (segment.window << shift))

    def check(self, segment: Segment, peer_mss: int) -> None:
        """A segment that the connection sends must be well formed and in the peer's window."""
        sender, growth = self.connection.sender, self.connection.sender.growth
        assert segment.length >= 0 and 0 <= segment.window <= 65535, segment
        assert growth.cwnd >= 0 and sender.snd_wnd >= 0 and growth.ssthresh > 0
        assert sender.snd_una <= sender.snd_nxt <= sender.snd_max
        blocks = segment.options.blocks if segment.options is not None else []
        timestamp = segment.options is not None and segment.options.has_timestamp
        assert all(0 < (right - left) & MASK32 < 1 << 31 for left, right in blocks)
        assert all(0 < (left - segment.ack) & MASK32 < 1 << 31 for left, _ in blocks)
        receiver = self.connection.receiver
        assert 0 <= receiver.unread <= receiver.rcv_hiwat, (receiver.unread, receiver.rcv_hiwat)
        if segment.flags & ACK and receiver.rcv_base and not segment.flags & RST:
            shift = 0 if segment.flags & SYN else receiver.rcv_shift
            edge = ((segment.ack - receiver.rcv_base) & MASK32) + (segment.window << shift)
            assert edge > self.promised - (1 << receiver.rcv_shift), (segment, self.promised)
            self.promised = max(self.promised, edge)
        if sender.sacked:
            assert 0 <= sender.scoreboard.sacked <= sender.snd_max - sender.snd_una
            assert sender.scoreboard.pipe(sender.snd_max) >= 0
        if segment.length:
            octets = segment.length + 12 * timestamp + (4 + 8 * len(blocks) if blocks else 0)
            assert octets <= max(min(peer_mss, self.mss), _LEAST_MSS), (segment, octets)
            start = (segment.seq - sender.iss - 1) & MASK32
            if start < 1 << 31 and not segment.flags & RST:
                assert start + segment.length <= self.edge or segment.length == 1, (segment, self.edge)


class TcpLine:
    """The line and its two ends.

    ``loss``, ``repeat`` and ``late`` are probabilities, until ``good_ps``; a late segment waits for up to
    ``late_ps`` more. ``offered_mss`` is what the ends' SYNs say, if not the ends' own sizes.
    """

    def __init__(
        self,
        configs: tuple[TcpConfig, TcpConfig],
        sizes: tuple[int, int],
        *,
        delay_ps: int,
        seed: int = 1,
        iss: tuple[int, int] = (0, 0),
        spacing_ps: int = 0,
    ) -> None:
        self.random = random.Random(seed)
        self.configs, self.sizes = configs, sizes
        self.ends = [
            End(Connection(config, size, first), size) for config, size, first in zip(configs, sizes, iss, strict=True)
        ]
        self.offered_mss = list(sizes)
        self.delay_ps, self.spacing_ps = delay_ps, spacing_ps
        self.loss = self.repeat = self.late = 0.0
        self.late_ps = self.good_ps = 0
        self.drop: Callable[[int, Segment], bool] | None = None
        self.now = 0
        self.calls = 0
        self.most_calls = 200_000
        self._free = [0, 0]
        self._order = 0
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._next_fast: int = FAST_TICK_PS

    def at(self, time_ps: int, call: Callable[[], None]) -> None:
        """Call something at its time."""
        self._order += 1
        heapq.heappush(self._agenda, (time_ps, self._order, call))

    def restart(self, end: int, iss: int) -> None:
        """The host of an end crashed: nothing of the connection is left."""
        self.ends[end] = End(
            Connection(self.configs[end], self.sizes[end], iss, self.now // SLOW_TICK_PS), self.sizes[end]
        )

    def run(self, until_ps: int) -> None:
        """Let time pass until then."""
        self._collect()
        while True:
            due = self._due()
            if due < 0 or due > until_ps:
                self.now = until_ps
                return
            self.now = max(due, self.now)
            self.calls += 1
            assert self.calls <= self.most_calls, f"{self.calls} calls by {self.now / 10**12:.3f} s"
            self._clocks()
            while self._agenda and self._agenda[0][0] <= self.now:
                heapq.heappop(self._agenda)[2]()
                self._collect()
            for end in self.ends:
                self._expire(end.connection)
            self._collect()

    def _clocks(self) -> None:
        for end in self.ends:
            timers = end.connection.timers
            timers.at(self.now)
            if not timers.exact:
                timers.clock = self.now // SLOW_TICK_PS

    def _due(self) -> int:
        times = [self._agenda[0][0]] if self._agenda else []
        for end in self.ends:
            connection = end.connection
            if connection.next_timer():
                times.append(connection.next_timer())
            if not connection.ideal:
                if connection.next_tick():
                    times.append(connection.next_tick() * SLOW_TICK_PS)
                if connection.receiver.delack:
                    times.append((self.now // FAST_TICK_PS + 1) * FAST_TICK_PS)
        return min(times, default=-1)

    def _expire(self, connection: Connection) -> None:
        due = connection.next_timer()
        if due and due <= self.now:
            connection.expire(self.now)
        if not connection.ideal:
            if connection.receiver.delack and self.now % FAST_TICK_PS == 0:
                connection.fast_tick(self.now)
            if self.now % SLOW_TICK_PS == 0:
                connection.slow_tick(self.now // SLOW_TICK_PS, self.now)

    def _collect(self) -> None:
        for number, end in enumerate(self.ends):
            segments = list(end.connection.out)
            end.connection.out.clear()
            for segment in segments:
                if segment.flags & SYN and segment.options is not None:
                    segment.options.mss = self.offered_mss[number]
                end.check(segment, self.offered_mss[1 - number])
                end.sent.append((self.now, segment))
                self._send(number, segment)

    def _send(self, number: int, segment: Segment) -> None:
        self._free[number] = max(self._free[number], self.now) + self.spacing_ps
        copies = 1
        later = 0
        if self.drop is not None and self.drop(number, segment):
            copies = 0
        if self.now < self.good_ps:
            if self.random.random() < self.loss:
                copies = 0
            elif self.random.random() < self.repeat:
                copies = 2
            if self.random.random() < self.late:
                later = self.random.randrange(self.late_ps)
        for _ in range(copies):
            self.at(self._free[number] + self.delay_ps + later, lambda: self.deliver(1 - number, segment))
            later *= 2

    def deliver(self, number: int, segment: Segment) -> None:
        """A segment arrives."""
        end = self.ends[number]
        if end.connection.state == CLOSED:
            if not segment.flags & RST:
                self._send(number, reset_for(segment))
            return
        end.takes(segment)
        end.connection.receive(segment, self.now)
