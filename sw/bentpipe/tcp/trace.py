"""The interface between a connection and a recorder."""

from __future__ import annotations

from typing import Protocol, final

__all__ = ["Recorder", "Trace"]


class Recorder(Protocol):
    """A recorder of samples and events of flows. Times are picoseconds."""

    def sample(self, series: str, time_ps: int, value: int) -> None:
        """Record the value of a series from now on.

        ``flow1.cwnd``, ``flow1.ssthresh`` and ``flow1.una`` are in octets. ``flow1.rtt`` is in picoseconds: the round
        trips that TCP times, at full resolution.
        """
        ...

    def event(self, series: str, time_ps: int, kind: str, value: int) -> None:
        """Record an event of a flow: ``fast_retransmit``, ``timeout``, ``retransmit``, …; the value is an offset."""
        ...


@final
class Trace:
    """The trace of a connection: it passes a sample on to a recorder whenever the sample has changed.

    ``segments``: an event ``segment`` for each data segment sent, too; value: offset of its first octet.
    """

    def __init__(self, recorder: Recorder, series: str, segments: bool = False) -> None:
        self.segments = segments
        self._recorder = recorder
        self._series = series
        self._cwnd_series = series + ".cwnd"
        self._ssthresh_series = series + ".ssthresh"
        self._una_series = series + ".una"
        self._rtt_series = series + ".rtt"
        self._cwnd = -1
        self._ssthresh = -1
        self._una = -1

    def state(self, now_ps: int, cwnd: int, ssthresh: int, una: int) -> None:
        if cwnd != self._cwnd:
            self._cwnd = cwnd
            self._recorder.sample(self._cwnd_series, now_ps, cwnd)
        if ssthresh != self._ssthresh:
            self._ssthresh = ssthresh
            self._recorder.sample(self._ssthresh_series, now_ps, ssthresh)
        if una != self._una:
            self._una = una
            self._recorder.sample(self._una_series, now_ps, una)

    def round_trip(self, now_ps: int, rtt_ps: int) -> None:
        """Record a measured round trip."""
        self._recorder.sample(self._rtt_series, now_ps, rtt_ps)

    def event(self, now_ps: int, kind: str, value: int) -> None:
        self._recorder.event(self._series, now_ps, kind, value)
