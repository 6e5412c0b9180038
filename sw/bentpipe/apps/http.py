"""Request and response as of HTTP: users who fetch objects, each over a connection of its own or all over one."""

from __future__ import annotations

from bisect import insort
from typing import Final, final

from bentpipe.apps.app import Alarm, Application, Fact, Program, Socket, SocketPair
from bentpipe.apps.draws import Distribution, RandomStream
from bentpipe.apps.settings import (
    DRAWN,
    OCTETS,
    SPAN,
    TIMES,
    ApplicationSpec,
    AppSetting,
    Column,
    FlowRequest,
    Report,
    Test,
)
from bentpipe.declarations import REQUIRED

__all__ = ["APPLICATION", "CONNECTIONS", "Http"]

CONNECTIONS: Final = ("each", "kept")
"""A connection for each request, as of HTTP/1.0, or one for each user, as of HTTP/1.1."""

_HTTP_PORT: Final = 80
_REQUEST: Final = 320
"""Octets of a request where nothing is said of it."""


@final
class Http(Application):
    """Users at the sink, a server at the source.

    A user thinks, asks, waits for the whole response, and so on. A response's time counts from the call that connects,
    or over a kept connection from the one that writes the request, to the one that reads the last octet. What a user
    draws depends on seed, flow and user, not on when the network answers.

    Parameters
    ----------
    request, response : Distribution
        Octets.
    think : Distribution or None
        Picoseconds before each request; None: none.
    users : int
    requests : int
        How many, of all users together; 0: no end.
    kept : bool
        One connection for all requests of a user.
    seed, number : int
        The experiment's, and that of the flow.
    duration_ps : int
        When users stop asking; 0: never.
    """

    def __init__(
        self,
        request: Distribution,
        response: Distribution,
        think: Distribution | None,
        users: int,
        requests: int,
        kept: bool,
        seed: int,
        number: int,
        duration_ps: int = 0,
    ) -> None:
        super().__init__("http")
        if users < 1 or requests < 0 or duration_ps < 0:
            raise ValueError("users must be at least 1, requests and duration_ps not negative")
        self.request = request
        self.response = response
        self.think = think
        self.kept = kept
        self.left: int = requests if requests else -1
        self.duration_ps = duration_ps
        self.end_ps: int = 0
        self.users = [User(self, RandomStream(seed, number, user)) for user in range(users)]
        self.active: int = users
        self.asking: dict[SocketPair, User] = {}  # whose connection it is
        self.asked: int = 0
        self.failed: int = 0
        self.times: list[int] = []  # of all responses, in order of length
        self.sum_ps: int = 0

    def listen(self) -> None:
        """Make no socket: the server's port accepts every connection."""

    def connect(self, now_ps: int) -> None:
        self.end_ps = now_ps + self.duration_ps if self.duration_ps else 0
        for user in self.users:
            user.think(now_ps)

    def ended(self, pair: SocketPair, now_ps: int) -> None:
        user = self.asking.pop(pair, None)
        if user is not None:
            user.lost(now_ps)

    def done(self) -> bool:
        return self.active == 0

    def may_ask(self, now_ps: int) -> bool:
        """Return whether there is a request left; takes it."""
        if self.left == 0 or (self.end_ps and now_ps >= self.end_ps):
            return False
        self.left -= 1
        self.asked += 1
        return True

    def answered(self, time_ps: int) -> None:
        """Count a whole response, and its time."""
        insort(self.times, time_ps)
        self.sum_ps += time_ps

    def facts(self, now_ps: int) -> dict[str, Fact]:
        times = self.times
        count = len(times)
        return {
            "http_requests": self.asked,
            "http_responses": count,
            "http_failed": self.failed,
            "http_waiting": self.asked - count - self.failed,
            "http_mean_ps": self.sum_ps // count if count else 0,
            "http_median_ps": _rank(times, 50),
            "http_p95_ps": _rank(times, 95),
            "http_p99_ps": _rank(times, 99),
            "http_max_ps": times[-1] if count else 0,
        }


def _rank(times: list[int], percent: int) -> int:
    """Return the percentile by the nearest rank."""
    return times[(percent * len(times) + 99) // 100 - 1] if times else 0


@final
class User(Alarm):
    """One who thinks and asks."""

    def __init__(self, http: Http, draws: RandomStream) -> None:
        self.http = http
        self.draws = draws
        self.pair: SocketPair | None = None
        self.socket: Socket | None = None
        self.request: int = 0
        self.response: int = 0
        self.asked_ps: int = -1

    def think(self, now_ps: int) -> None:
        """Wait for a think time, then ask."""
        think = self.http.think
        if think is None:
            self.ring(now_ps)
        else:
            self.http.endpoints.at(now_ps + self.draws.draw(think), self)

    def ring(self, now_ps: int) -> None:
        """Send the next request after a think time, or end."""
        http = self.http
        if not http.may_ask(now_ps):
            http.active -= 1
            if self.socket is not None:
                self.socket.close(now_ps)
                self.socket.flush(now_ps)
            http.endpoints.look(now_ps)
            return
        self.request = self.draws.draw(http.request)
        self.response = self.draws.draw(http.response)
        self.asked_ps = now_ps
        if self.socket is not None:
            self.socket.write(self.request, now_ps)
            self.socket.flush(now_ps)
            return
        endpoints = http.endpoints
        pair = endpoints.pair(endpoints.sink, Client(self), endpoints.source, Server(self), ports=(0, _HTTP_PORT))
        self.pair = pair
        http.asking[pair] = self
        pair.open(now_ps)

    def answered(self, socket: Socket, now_ps: int) -> None:
        """Count the response, whose last octet was read, and think again."""
        self.http.answered(now_ps - self.asked_ps)
        self.asked_ps = -1
        if self.http.kept:
            self.socket = socket
        elif self.pair is not None:
            self.http.asking.pop(self.pair)
        self.think(now_ps)

    def lost(self, now_ps: int) -> None:
        """Handle the end of the connection: an open request has failed."""
        self.socket = None
        if self.asked_ps >= 0:
            self.asked_ps = -1
            self.http.failed += 1
            self.think(now_ps)


@final
class Client(Program):
    """The user's end of a connection."""

    def __init__(self, user: User) -> None:
        super().__init__(True)
        self.user = user
        self.got: int = 0

    def connected(self, socket: Socket, now_ps: int) -> int:
        socket.write(self.user.request, now_ps)
        return 0

    def arrived(self, socket: Socket, now_ps: int) -> int:
        self.got += socket.read(socket.unread(), now_ps)
        user = self.user
        if self.got and self.got == user.response and user.asked_ps >= 0:
            self.got = 0
            user.answered(socket, now_ps)
        if socket.ended():
            socket.close(now_ps)
        return 0


@final
class Server(Program):
    """The server's end of a connection."""

    def __init__(self, user: User) -> None:
        super().__init__(True)
        self.user = user
        self.got: int = 0

    def arrived(self, socket: Socket, now_ps: int) -> int:
        self.got += socket.read(socket.unread(), now_ps)
        user = self.user
        if self.got and self.got == user.request:
            self.got = 0
            socket.write(user.response, now_ps)
            if not user.http.kept:
                socket.close(now_ps)
        if socket.ended():
            socket.close(now_ps)
        return 0


def _make(given: FlowRequest) -> Http:
    v = given.values
    return Http(
        v["request"] or Distribution("constant", _REQUEST),
        v["response"],
        v["think"],
        v["users"],
        v["requests"] or 0,
        v["connections"] == CONNECTIONS[1],
        given.seed,
        given.number,
        given.duration_ps,
    )


APPLICATION: Final = ApplicationSpec(
    "http",
    "users at the sink who think, request an object from the source, and wait for it",
    (
        AppSetting("response", OCTETS, REQUIRED, "octets of a response", DRAWN, also=("itemsize",)),
        AppSetting("request", OCTETS, None, "octets of a request; 320 unless given", DRAWN),
        AppSetting("think", SPAN, None, "time before each request; default: none", DRAWN, unit="s"),
        AppSetting("users", TIMES.within(1, 10_000), 1, "number of independent users"),
        AppSetting(
            "requests", TIMES.within(1, 10**9), None, "number of requests of all users", also=("repeats",), ends=True
        ),
        AppSetting(
            "connections",
            CONNECTIONS,
            CONNECTIONS[0],
            "one for each request, which the server closes, or one for each user, which is kept",
        ),
    ),
    _make,
    protocols=("tcp",),
    takes=("duration",),
    tests=(Test("http", "requests of the receiving host's users, and the transmitting host's responses"),),
    report=Report(
        "Response times",
        (
            Column("http_requests", "", "requests", "requests"),
            Column("http_responses", "", "complete responses", "responses"),
            Column("http_failed", "", "requests whose connection broke", "failed"),
            Column("http_waiting", "", "requests without a complete response yet", "waiting"),
            Column("http_mean_ps", "ps", "mean response time", "mean"),
            Column("http_median_ps", "ps", "median response time", "median"),
            Column("http_p95_ps", "ps", "95 % quantile of response times", "95 %"),
            Column("http_p99_ps", "ps", "99 % quantile of response times", "99 %"),
            Column("http_max_ps", "ps", "the longest", "max"),
        ),
    ),
)
