"""ping: round trips to the sink's echo service, over UDP (RFC 862)."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Fact, Program, Socket
from bentpipe.apps.round_trips import RoundTrips
from bentpipe.apps.settings import SPAN, TIMES, ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report, Test
from bentpipe.ip.udp import STAMP_OCTETS, UDP_OVERHEAD
from bentpipe_hdl.units import SIZE

__all__ = ["APPLICATION", "Ping"]

_ECHO_PORT: Final = 7


@final
class Echo(Program):
    """A program that sends back all that arrives."""

    def received(self, socket: Socket, octets: int, sent_ps: int, now_ps: int) -> int:
        socket.echo(now_ps)
        return 0


@final
class Ping(RoundTrips):
    """A ping: it asks for an echo each ``interval_ps``, and times it from the call that sends it to the one that reads
    it.

    Parameters
    ----------
    octets : int
        Payload of a datagram; with 56 the packet is as long as ping's.
    interval_ps, count, duration_ps : int
        As for :class:`~bentpipe.apps.round_trips.RoundTrips`.
    """

    def __init__(self, octets: int, interval_ps: int, count: int = 0, duration_ps: int = 0) -> None:
        if octets < STAMP_OCTETS:
            raise ValueError(f"octets must be at least {STAMP_OCTETS}, not {octets!r}")
        super().__init__("ping", octets, interval_ps, count, duration_ps)

    def listen(self) -> None:
        endpoints = self.endpoints
        self.first = endpoints.pair(endpoints.source, self, endpoints.sink, Echo(), ports=(0, _ECHO_PORT))

    def facts(self, now_ps: int) -> dict[str, Fact]:
        """Return the figures that ping prints at its end."""
        lost = 0 if self.first is None else self.first.lost()
        counts: dict[str, Fact] = {
            "ping_sent": self.sent,
            "ping_received": self.came,
            "ping_lost": lost,
            "ping_under_way": self.sent - self.came - lost,
        }
        return counts | self.times()


def _check(given: FlowRequest) -> Problem:
    octets = given.values["octets"]
    most = min(given.datagram or given.mtu, given.mtu - UDP_OVERHEAD)
    if octets > most:
        return "octets", f"a request of {octets} octets does not fit into one datagram: at most {most}"
    return None


def _make(given: FlowRequest) -> Ping:
    v = given.values
    return Ping(v["octets"], v["interval"], v["count"] or 0, given.duration_ps)


APPLICATION: Final = ApplicationSpec(
    "ping",
    "round trips to the sink and back: requests to its echo service (RFC 862) at fixed times",
    (
        AppSetting(
            "octets",
            SIZE.within(STAMP_OCTETS, 65507),
            56,
            "payload of a request, and of the reply",
            word="blocksize",
            also=("messagesize",),
        ),
        AppSetting("interval", SPAN, 10**12, "time between requests", word="period", unit="s"),
        AppSetting("count", TIMES, None, "number of requests; default: endless", word="repeats", ends=True),
    ),
    _make,
    _check,
    protocols=("udp",),
    answers=True,
    takes=("duration",),
    tests=(Test("ping", "round trips to the receiving host's echo service, over UDP"),),
    report=Report(
        "Round trips",
        (
            Column("ping_sent", "", "requests", "sent"),
            Column("ping_received", "", "replies, duplicates not counted", "received"),
            Column("ping_lost", "", "requests lost, or with lost replies", "lost"),
            Column("ping_under_way", "", "requests in flight, or with replies in flight", "under way"),
            Column("ping_min_ps", "ps", "shortest round trip", "min"),
            Column("ping_mean_ps", "ps", "their mean", "mean"),
            Column("ping_max_ps", "ps", "the longest", "max"),
            Column("ping_mdev_ps", "ps", "their standard deviation", "mdev"),
        ),
    ),
)
