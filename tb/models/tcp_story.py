"""Random lives of two TCP connections: openings, writes, readers that rest, closings, crashes, on a bad line."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import ACK, CLOSED, ESTABLISHED, LISTEN, RST, SYN, SYN_SENT, TIME_WAIT
from bentpipe.tcp.segment import Segment

from .tcp_line import TcpLine

__all__ = ["Story", "tell"]

_MS = 10**9
_S = 10**12
_BAD_S = 60
"""The line is bad for so long at most."""
_END_S = 6000
"""So long after that everything must be over."""


@dataclass
class Story:
    """The result of a random connection: the line, octets written and read at each end, and whether an end crashed."""

    line: TcpLine
    written: list[int]
    read: list[int]
    crashed: bool
    aborted: bool


def _config(rng: random.Random) -> TcpConfig:
    def some(*values: object) -> object:
        return rng.choice(values)

    variant = some("tahoe", "reno", "newreno", "sack")
    timers = some("bsd", "ideal", "rfc6298")
    prr = some("off", "crb", "ssrb") if variant == "sack" else "off"
    return TcpConfig(
        variant=variant,
        growth=some("reno", "cubic", "hybla"),
        timers=timers,
        sack_permitted=some(None, True, False),
        sack_prr=prr,
        sack_pipe=some("rfc3517", "fall-floyd") if prr == "off" else "rfc3517",
        timestamps=some(True, False),
        window_scale=some(True, False),
        nagle=some(True, False),
        ack_policy=some("bsd", "every_second", "immediate"),
        limited_transmit=some(True, False),
        round_buffers=some(True, False),
        send_buffer=some(1, 100, 1000, 5000, 200_000),
        receive_buffer=some(1, 40, 700, 3000, 30_000, 200_000),
        initial_cwnd=some(1, 4, 20),
        initial_window=some("segments", "rfc6928"),
        rto_min_ps=some(0, 10 * _MS, 200 * _MS, _S),
        rto_initial_ps=some(0, 300 * _MS),
        habit_idle_restart=some(True, False),
        habit_timeout_reduces_again=some(None, True, False),
        habit_setup_75_s=some(True, False),
        habit_reset_below_window=some(True, False),
        habit_avoid_multiple=some(True, False),
        habit_deflation_bug=some(True, False),
        habit_tahoe_keeps_snd_nxt=some(True, False),
        newreno_impatient=some(True, False),
        newreno_careful=some(True, False),
        newreno_exit_flight=some(True, False),
        habit_window_update_resets_dupacks=some(True, False),
    )


class _Teller:
    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        sizes = rng.choice((64, 100, 536, 1460)), rng.choice((64, 100, 536, 1460))
        line = self.line = TcpLine(
            (_config(rng), _config(rng)),
            sizes,
            delay_ps=rng.choice((100 * 10**6, 10 * _MS, 250 * _MS)),
            seed=seed,
            iss=(rng.choice((0, 5, 2**32 - 700)), rng.choice((0, 9, 2**32 - 3))),
            spacing_ps=rng.choice((0, _MS // 10)),
        )
        line.good_ps = rng.randrange(1, _BAD_S) * _S
        line.loss, line.repeat, line.late = (rng.choice((0.0, 0.02, 0.2)) for _ in range(3))
        line.late_ps = rng.choice((_MS, 300 * _MS, 5 * _S))
        if rng.random() < 0.2:
            line.offered_mss[rng.randrange(2)] = rng.choice((1, 20, 33, 50))
        self.written = [0, 0]
        self.read = [0, 0]
        self.story = Story(line, self.written, self.read, False, False)
        self.resting = [False, False]

    def connection(self, end: int) -> Connection:
        return self.line.ends[end].connection

    def soon(self, seconds: float) -> int:
        return self.line.now + self.rng.randrange(1, round(seconds * 1000)) * _MS

    # ---- what happens ----

    def plan(self) -> None:
        line, rng = self.line, self.rng
        opens = rng.choice(("passive", "passive", "simultaneous"))
        for end in (0, 1):
            if rng.random() < 0.5:
                self.connection(end).receiver.auto_read = False
                line.at(_S + self.soon(2), self._reader(end))  # both ends are open by then
        first = self._opener(0)
        first()
        if opens == "passive":
            self.connection(1).listen()
        else:
            line.at(rng.choice((0, line.delay_ps // 2)), self._opener(1))
        for end in (0, 1):
            buffer = min(line.configs[end].send_buffer, line.configs[1 - end].receive_buffer, 1000)
            for _ in range(rng.choice((0, 1, 3))):
                line.at(self.soon(rng.choice((1, 20))), self._writer(end, rng.choice((1, 50, 3, 60)) * buffer))
            line.at(_S + self.soon(rng.choice((5, 200))), self._closer(end))
        if rng.random() < 0.15:
            line.at(self.soon(30), self._crash(rng.randrange(2)))
        if rng.random() < 0.3:
            line.at(self.soon(30), self._stray(rng.randrange(2)))

    def _opener(self, end: int) -> Callable[[], None]:
        def call() -> None:
            connection = self.connection(end)
            if connection.state == CLOSED and connection.opened_ps < 0:
                connection.open(self.line.now)

        return call

    def _writer(self, end: int, octets: int) -> Callable[[], None]:
        connection = self.connection(end)

        def call() -> None:
            if not connection.closing and connection.state != CLOSED and connection is self.connection(end):
                connection.write(octets, self.line.now)
                self.written[end] += octets

        return call

    def _reader(self, end: int) -> Callable[[], None]:
        connection = self.connection(end)

        def call() -> None:
            if connection.state != CLOSED or connection.receiver.unread:
                connection.read(self.rng.choice((1, 100, 2000, 10**6)), self.line.now)
            if connection.state not in (CLOSED, TIME_WAIT) or connection.receiver.unread:
                good = self.line.now > self.line.good_ps + 60 * _S
                self.line.at(self.soon(2 if good else self.rng.choice((0.1, 1, 1, 100))), call)

        return call

    def _closer(self, end: int) -> Callable[[], None]:
        connection = self.connection(end)

        def call() -> None:
            if connection.state == LISTEN and self.line.now < self.line.good_ps + 200 * _S:
                self.line.at(self.soon(50), call)  # nobody came yet
            elif self.rng.random() < 0.05:
                self.story.aborted = True
                connection.abort(self.line.now)
            elif connection.state != CLOSED:
                self.story.aborted |= connection.state == SYN_SENT
                connection.shutdown(self.line.now)

        return call

    def _crash(self, end: int) -> Callable[[], None]:
        def call() -> None:
            self.story.crashed = True
            self.line.restart(end, self.rng.choice((3, 40_000, 2**32 - 9)))
            if self.rng.random() < 0.7:
                self._opener(end)()
                self.line.at(self.soon(100), self._closer(end))

        return call

    def _stray(self, end: int) -> Callable[[], None]:
        """A segment that nobody sent: of the past, of the future, of another connection."""

        def call() -> None:
            connection = self.connection(end)
            if connection.state in (CLOSED, LISTEN, SYN_SENT):
                return
            rng = self.rng
            seq = connection.receiver.rcv_nxt - rng.choice((1, 500, 100_000))
            ack = connection.sender.snd_una - rng.choice((0, 1, 5000, -(10**6)))
            flags = rng.choice((ACK, SYN, SYN | ACK, ACK, RST, 0))
            if flags & RST and connection.config.habit_reset_below_window:
                return
            length = rng.choice((0, 0, 1, 100)) if not flags & (SYN | RST) else 0
            if seq + length <= connection.receiver.rcv_nxt and connection.state >= ESTABLISHED:
                # or of now, with a window of its own
                if rng.random() < 0.3:
                    seq, ack, flags, length = connection.receiver.rcv_nxt, connection.sender.snd_una, ACK, 0
                stray = Segment(seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, flags, rng.choice((0, 1, 500)), length, 0, None)
                self.line.deliver(end, stray)

        return call


def tell(seed: int) -> Story:
    """A random life, to its end; AssertionError if something doesn't hold.

    Who isn't aborted, and has no peer that crashes, comes to the end of both streams.
    """
    teller = _Teller(seed)
    line = teller.line
    teller.plan()
    line.run((_BAD_S + _END_S) * _S)
    for end in (0, 1):
        connection = teller.connection(end)
        teller.read[end] = connection.receiver.delivered + connection.receiver.unread
    story = teller.story
    if not story.crashed and not story.aborted:
        ends = [end.connection for end in line.ends]
        assert [end.error for end in ends] == ["", ""], seed
        assert [end.state for end in ends] == [CLOSED, CLOSED], seed
        assert teller.read == [teller.written[1], teller.written[0]], seed
    return story
