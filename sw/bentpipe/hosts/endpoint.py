"""One end of a flow, as the parts of its host see it."""

from __future__ import annotations

from typing import Final

from bentpipe.hosts.scheduler import Timer
from bentpipe.tcp.segment import Segment

__all__ = ["RESTS", "TransportEndpoint"]

RESTS: Final = -2
"""As an end's epoch: it has let its parts go, and :meth:`TransportEndpoint.wake` makes them again before it is used."""


class TransportEndpoint(Timer):
    """The end of a flow that segments or datagrams arrive at, and leave from.

    Members
    -------
    order : int
        The order in which ends that are due in a tick are served.
    epoch, tick, armed, in_fast, in_slow : int, bool
        Used by :class:`bentpipe.hosts.ticks.Ticks`.
    """

    def __init__(self) -> None:
        self.order: int = 0
        self.epoch: int = -1
        self.tick: int = 0
        self.armed: int = 0
        self.in_fast: bool = False
        self.in_slow: bool = False

    def take(self, segment: Segment | None, now: int) -> None:
        """Take the first input, on which the processor has worked: a segment, or (None) a datagram."""
        raise NotImplementedError

    def put(self, segment: Segment) -> None:
        """Put a segment to the interface, when the processor has worked on it."""
        raise NotImplementedError

    def delayed(self) -> bool:
        """Return whether the end waits for a fast tick."""
        return False

    def fast_tick(self, now: int) -> None:
        """Handle BSD's fast timer."""

    def slow_tick(self, tick: int, now: int) -> None:
        """Handle BSD's slow timer: tick number ``tick`` of the host."""

    def next_tick(self) -> int:
        """Return the slow tick that it waits for; 0 for none."""
        return 0

    def wake(self) -> None:
        """Make the parts again that were let go."""

    def expire(self, now: int) -> None:
        """Handle the slow tick that this resting end waits for."""

    def done(self, now: int) -> None:
        """Handle the results of a tick that was served."""
