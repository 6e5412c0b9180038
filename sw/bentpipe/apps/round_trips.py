"""The common part of applications that send requests at fixed times, and measure the time until the answer."""

from __future__ import annotations

from math import isqrt

from bentpipe.apps.app import Application, Fact, Socket

__all__ = ["RoundTrips"]


class RoundTrips(Application):
    """Writes ``octets`` each ``interval_ps``, and times each write from the call until the answer is read.

    Parameters
    ----------
    kind : str
        Name of the application, and what its facts begin with.
    octets : int
        Of a request.
    interval_ps : int
    count : int
        How many; 0: no end.
    duration_ps : int
        When to stop; 0: never.
    """

    def __init__(self, kind: str, octets: int, interval_ps: int, count: int = 0, duration_ps: int = 0) -> None:
        super().__init__(kind)
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
        self.endpoints.sample("rtt", now_ps, rtt)
        return 0

    def _send(self, socket: Socket, now_ps: int) -> None:
        self.sent += 1
        self.writing = not socket.write(self.octets, now_ps)

    def _stop(self, socket: Socket, now_ps: int) -> None:
        """Close the socket, unless requests still wait to be written."""
        if not self.waiting:
            socket.close(now_ps)

    def times(self) -> dict[str, Fact]:
        """Return the least, mean and greatest round trip, and their standard deviation."""
        came = self.came
        return {
            f"{self.kind}_min_ps": self.min_ps,
            f"{self.kind}_mean_ps": self.sum_ps // came if came else 0,
            f"{self.kind}_max_ps": self.max_ps,
            f"{self.kind}_mdev_ps": isqrt((self.squares * came - self.sum_ps * self.sum_ps) // (came * came))
            if came
            else 0,
        }
