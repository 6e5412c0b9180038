"""ping: round trips to the sink's echo service, over UDP (RFC 862)."""

from __future__ import annotations

from math import isqrt
from typing import Final, final

from bentpipe.apps.app import Application, Fact, Program, Socket
from bentpipe.apps.settings import SPAN, TIMES, Column, Given, Kind, Problem, Report, Setting, Test
from bentpipe.ip.udp import STAMP_OCTETS, UDP_OVERHEAD
from bentpipe_hdl.settings import SIZE

__all__ = ["APPLICATION", "Ping"]

_ECHO_PORT: Final = 7


@final
class Echo(Program):
    """Sends back what comes."""

    def received(self, socket: Socket, octets: int, sent_ps: int, now_ps: int) -> int:
        socket.echo(now_ps)
        return 0


@final
class Ping(Application):
    """Asks for an echo each ``interval_ps``, and times it from the call that sends it to the one that reads it.

    Parameters
    ----------
    octets : int
        Payload of a datagram; with 56 the packet is as long as ping's.
    interval_ps : int
    count : int
        How many; 0: no end.
    duration_ps : int
        When to stop; 0: never.
    """

    def __init__(self, octets: int, interval_ps: int, count: int = 0, duration_ps: int = 0) -> None:
        super().__init__("ping")
        if octets < STAMP_OCTETS:
            raise ValueError(f"octets must be at least {STAMP_OCTETS}, not {octets!r}")
        if interval_ps < 1 or count < 0 or duration_ps < 0:
            raise ValueError("interval_ps must be at least 1, count and duration_ps not negative")
        self.octets = octets
        self.interval_ps = interval_ps
        self.count = count
        self.duration_ps = duration_ps
        self.end_ps: int = 0
        self.writing: bool = False
        self.waiting: int = 0  # requests that are due while the processor has one to send
        self.asked: int = 0
        self.sent: int = 0
        self.came: int = 0
        self.sum_ps: int = 0
        self.squares: int = 0
        self.min_ps: int = 0
        self.max_ps: int = 0

    def listen(self) -> None:
        ends = self.ends
        self.first = ends.pair(ends.source, self, ends.sink, Echo(), ports=(0, _ECHO_PORT))

    def connected(self, socket: Socket, now_ps: int) -> int:
        self.end_ps = now_ps + self.duration_ps if self.duration_ps else 0
        return self.wake(socket, now_ps)

    def wake(self, socket: Socket, now_ps: int) -> int:
        if self.end_ps and now_ps >= self.end_ps:
            self._stop(socket, now_ps)
            return 0
        self.asked += 1
        if self.writing:
            self.waiting += 1
        else:
            self._send(socket, now_ps)
        if self.asked == self.count:
            self._stop(socket, now_ps)
            return 0
        return now_ps + self.interval_ps

    def written(self, socket: Socket, now_ps: int) -> int:
        self.writing = False
        if self.waiting:
            self.waiting -= 1
            self._send(socket, now_ps)
            if self.asked == self.count:
                self._stop(socket, now_ps)
        return 0

    def received(self, socket: Socket, octets: int, sent_ps: int, now_ps: int) -> int:
        rtt = now_ps - sent_ps
        self.came += 1
        self.sum_ps += rtt
        self.squares += rtt * rtt
        if self.min_ps == 0 or rtt < self.min_ps:
            self.min_ps = rtt
        if rtt > self.max_ps:
            self.max_ps = rtt
        self.ends.sample("rtt", now_ps, rtt)
        return 0

    def _send(self, socket: Socket, now_ps: int) -> None:
        self.sent += 1
        self.writing = not socket.write(self.octets, now_ps)

    def _stop(self, socket: Socket, now_ps: int) -> None:
        """The last request is written, or waits to be."""
        if not self.waiting:
            socket.close(now_ps)

    def facts(self, now_ps: int) -> dict[str, Fact]:
        """What ping prints at its end."""
        came = self.came
        mean = self.sum_ps // came if came else 0
        return {
            "ping_sent": self.sent,
            "ping_received": came,
            "ping_lost": self.sent - came,
            "ping_min_ps": self.min_ps,
            "ping_mean_ps": mean,
            "ping_max_ps": self.max_ps,
            "ping_mdev_ps": isqrt((self.squares * came - self.sum_ps * self.sum_ps) // (came * came)) if came else 0,
        }


def _check(given: Given) -> Problem:
    octets = given.values["octets"]
    most = min(given.datagram or given.mtu, given.mtu - UDP_OVERHEAD)
    if octets > most:
        return "octets", f"a request of {octets} octets does not fit into one datagram: at most {most}"
    return None


def _make(given: Given) -> Ping:
    v = given.values
    return Ping(v["octets"], v["interval"], v["count"] or 0, given.duration_ps)


APPLICATION: Final = Kind(
    "ping",
    "round trips to the sink and back: requests to its echo service (RFC 862) at fixed times",
    (
        Setting(
            "octets",
            SIZE.within(STAMP_OCTETS, 65507),
            56,
            "payload of a request, and of the reply",
            word="blocksize",
            also=("messagesize",),
        ),
        Setting("interval", SPAN, 10**12, "from one request to the next", word="period", unit="s"),
        Setting("count", TIMES, None, "how many requests; without it there is no end", word="repeats", ends=True),
    ),
    _make,
    _check,
    protocols=("udp",),
    takes=("duration",),
    tests=(Test("ping", "round trips to the receiving host's echo service, over UDP"),),
    report=Report(
        "Round trips",
        (
            Column("ping_sent", "", "requests", "sent"),
            Column("ping_received", "", "replies, duplicates not counted", "received"),
            Column("ping_lost", "", "requests without a reply, so far", "lost"),
            Column("ping_min_ps", "ps", "shortest round trip", "min"),
            Column("ping_mean_ps", "ps", "their mean", "mean"),
            Column("ping_max_ps", "ps", "the longest", "max"),
            Column("ping_mdev_ps", "ps", "their standard deviation", "mdev"),
        ),
    ),
)
