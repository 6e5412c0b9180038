"""One end of a flow, as the parts of its host see it."""

from __future__ import annotations

from typing import Final

from bentpipe.hosts.scheduler import Timer
from bentpipe.tcp.segment import Segment

__all__ = ["RESTS", "TransportEndpoint"]

RESTS: Final = -2
"""As an end's epoch: it has let its parts go, and :meth:`TransportEndpoint.wake` makes them again before it is used."""


class TransportEndpoint(Timer):
    """What segments and datagrams come to, and go from.

    Members
    -------
    order : int
        In a tick, ends that are due are served in this order.
    epoch, tick, armed, in_fast, in_slow : int, bool
        Of :class:`bentpipe.hosts.ticks.Ticks`.
    """

    def __init__(self) -> None:
        self.order: int = 0
        self.epoch: int = -1
        self.tick: int = 0
        self.armed: int = 0
        self.in_fast: bool = False
        self.in_slow: bool = False

    def take(self, segment: Segment | None, now: int) -> None:
        """The processor has worked on what came first: a segment, or (None) a datagram."""
        raise NotImplementedError

    def put(self, segment: Segment) -> None:
        """The processor has worked on a segment that leaves: it goes to the interface."""
        raise NotImplementedError

    def delayed(self) -> bool:
        """It waits for a fast tick."""
        return False

    def fast_tick(self, now: int) -> None:
        """BSD's fast timer."""

    def slow_tick(self, tick: int, now: int) -> None:
        """BSD's slow timer: tick number ``tick`` of the host."""

    def next_tick(self) -> int:
        """Return the slow tick that it waits for; 0 for none."""
        return 0

    def wake(self) -> None:
        """Make the parts again that were let go."""

    def expire(self, now: int) -> None:
        """The slow tick has come that an end that rests waits for."""

    def done(self, now: int) -> None:
        """A tick was served: see what came of it."""
