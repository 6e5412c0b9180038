"""A sink application that does not read at once."""

from __future__ import annotations

from typing import final

from bentpipe.hosts.scheduler import Timer
from bentpipe.hosts.sockets import TcpEndpoint

__all__ = ["PacedReader"]


@final
class PacedReader(Timer):
    """A reader that takes at most ``octets`` every ``period_ps``, as a disk does, so that the window may shut.

    Parameters
    ----------
    endpoint : TcpEndpoint
        The receiving end (``flow.sink``); from now on it keeps what arrives until it is read.
    octets : int
    period_ps : int
    """

    def __init__(self, endpoint: TcpEndpoint, octets: int, period_ps: int) -> None:
        if octets < 1 or period_ps < 1:
            raise ValueError(f"octets and period_ps must be positive, not {octets} and {period_ps}")
        self.endpoint = endpoint
        self.octets = octets
        self.period_ps = period_ps
        endpoint.connection.receiver.auto_read = False
        scheduler = endpoint.host.scheduler
        scheduler.at(scheduler.now + period_ps, self)

    def fire(self, now: int) -> None:
        endpoint = self.endpoint
        endpoint.use(now)
        endpoint.connection.read(self.octets, now)
        endpoint.done(now)
        endpoint.host.scheduler.at(now + self.period_ps, self)
