"""Recording a run: time series thinned to the interval asked for, and every event."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import Final, final

from bentpipe.results.schema import Trace

__all__ = ["Event", "Series", "TraceRecorder"]

Event = tuple[str, int, str, int]
"""Series, time in ps, kind, value."""

_OF_ENGINE: Final = frozenset({"cwnd", "ssthresh", "una", "rtt"})


@final
class Series:
    """Times (ps) and values of one series, at most one sample an interval beside those at events.

    The last value of an interval is what is kept, so a step lands no more than an interval late, and the
    value before an event (the top of a sawtooth) is kept to the picosecond.
    """

    __slots__ = ("_due", "_interval", "_pending_time", "_pending_value", "times", "values")

    def __init__(self, interval_ps: int) -> None:
        self.times = array("q")
        self.values = array("q")
        self._interval = interval_ps
        self._due = 0
        self._pending_time = -1
        self._pending_value = 0

    def add(self, time_ps: int, value: int) -> None:
        if time_ps < self._due:
            self._pending_time = time_ps
            self._pending_value = value
            return
        self.flush()
        self.times.append(time_ps)
        self.values.append(value)
        self._due = time_ps + self._interval

    def flush(self) -> None:
        """Keep the last value even though its interval is not over."""
        if self._pending_time >= 0:
            self.times.append(self._pending_time)
            self.values.append(self._pending_value)
            self._pending_time = -1


@final
class TraceRecorder:
    """The recorder that the host engine gets (``bentpipe.hosts.engine.Recorder``), and that the run fills.

    Parameters
    ----------
    interval_ps : int
        Least time between two samples of a series.
    what : Collection[str]
        The last parts of the names of the series to keep, "events" for the events.
    """

    def __init__(self, interval_ps: int, what: Collection[str]) -> None:
        self.series: dict[str, Series] = {}
        self.events: list[Event] = []
        self._interval = interval_ps
        self._skip = _OF_ENGINE - frozenset(what)
        self._keep_events = "events" in what or "segments" in what
        self._of: dict[str, list[Series]] = {}
        self._reported: dict[str, int] = {}
        self._reported_events = 0

    def sample(self, series: str, time_ps: int, value: int) -> None:
        known = self.series.get(series)
        if known is None:
            owner, _, last = series.rpartition(".")
            if last in self._skip:
                return
            known = self.series[series] = Series(self._interval)
            self._of.setdefault(owner, []).append(known)
        known.add(time_ps, value)

    def put(self, series: str, time_ps: int, value: int) -> None:
        """Record a sample that the run itself took at an interval; it is kept whatever the spacing."""
        known = self.series.get(series)
        if known is None:
            known = self.series[series] = Series(0)
        known.add(time_ps, value)

    def event(self, series: str, time_ps: int, kind: str, value: int) -> None:
        for known in self._of.get(series, ()):
            known.flush()
        if self._keep_events:
            self.events.append((series, time_ps, kind, value))

    def finish(self) -> None:
        for known in self.series.values():
            known.flush()

    def report_again(self) -> None:
        """Report the whole record again, from the next report on."""
        self._reported = {}
        self._reported_events = 0

    def news(self) -> Trace:
        """Return the records added since the last call."""
        series = {}
        for name, known in self.series.items():
            begin = self._reported.get(name, 0)
            if begin < len(known.times):
                series[name] = (known.times[begin:], known.values[begin:])
                self._reported[name] = len(known.times)
        events = self.events[self._reported_events :]
        self._reported_events = len(self.events)
        return Trace(series, events)
