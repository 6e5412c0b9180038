"""The measurement of round trips: one segment at a time is timed (Karn's algorithm), as in 4.4BSD."""

from __future__ import annotations

from typing import final

from bentpipe.tcp.timers import Timers

__all__ = ["RttSampler"]


@final
class RttSampler:
    """The round-trip times that one sender measures.

    The retransmission timeout (:mod:`bentpipe.tcp.rto`) has its own estimate, in the unit of the timers.

    Members
    -------
    timed_seq : int
        Sequence number of the segment that is timed at present; -1 if none is.
    start_tick, start_ps : int
        When it was sent: slow tick, and ps.
    count, sum_ps, min_ps, max_ps : int
        Number of samples, their sum, and the extremes; 0 before the first sample.
    smoothed_ps : int
        Smoothed round-trip time in ps (gain 1/8), whatever unit the timers count in; 0 before the first sample.
    """

    def __init__(self) -> None:
        self.timed_seq: int = -1
        self.start_tick: int = 0
        self.start_ps: int = 0
        self.count: int = 0
        self.sum_ps: int = 0
        self.min_ps: int = 0
        self.max_ps: int = 0
        self.smoothed_ps: int = 0

    def start(self, seq: int, timers: Timers) -> None:
        """Start to time the segment with this sequence number, which is sent now."""
        self.timed_seq = seq
        self.start_tick = timers.clock
        self.start_ps = timers.now

    def cancel(self) -> None:
        """Stop timing: a retransmission makes it unknown which segment an ACK answers (Karn's algorithm)."""
        self.timed_seq = -1

    def finish(self, now: int) -> int:
        """Take the sample of the timed segment, which was acknowledged at ``now`` (ps), and return it in ps."""
        rtt = now - self.start_ps
        self.timed_seq = -1
        self.count += 1
        self.sum_ps += rtt
        if rtt > self.max_ps:
            self.max_ps = rtt
        if self.min_ps == 0 or rtt < self.min_ps:
            self.min_ps = rtt
        self.smoothed_ps += (rtt - self.smoothed_ps) >> 3 if self.smoothed_ps else rtt
        return rtt

    def forget(self) -> None:
        """Drop all samples, after a handshake without a network."""
        self.smoothed_ps = self.count = self.sum_ps = self.min_ps = self.max_ps = 0
