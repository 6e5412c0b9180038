"""The timers of all hosts, called when their time comes."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

__all__ = ["NEVER", "Scheduler", "Timer"]

NEVER: Final = 1 << 80
"""Later than any time (ps)."""

_push: Final = heappush
_pop: Final = heappop


class Timer:
    """Something that the engine calls when its time comes."""

    def fire(self, now: int) -> None:
        raise NotImplementedError


@final
class Scheduler:
    """The timers of all hosts; those of one instant come in the order in which they were set.

    The first of all is held beside the heap of the others: most often it is a processor's, set when there was none, and
    fires before another comes first.

    Members
    -------
    now : int
        Picoseconds.
    due : int
        When the first fires; :data:`NEVER`.
    """

    __slots__ = ("_first", "_heap", "_order", "_set", "due", "now")

    def __init__(self) -> None:
        self.now: int = 0
        self.due: int = NEVER
        self._order: int = 0
        self._first: Timer | None = None
        self._set: int = 0  # the first's place in the order
        self._heap: list[tuple[int, int, Timer]] = []

    def at(self, time: int, timer: Timer) -> None:
        """Fire at this time (ps)."""
        self._order = order = self._order + 1
        if time >= self.due:
            _push(self._heap, (time, order, timer))
            return
        before = self._first
        if before is not None:
            _push(self._heap, (self.due, self._set, before))
        self.due = time
        self._first = timer
        self._set = order

    def fire(self) -> None:
        """Call what is due now."""
        now = self.now
        heap = self._heap
        while self.due <= now:
            timer = self._first
            if timer is None:
                timer = _pop(heap)[2]
            self._first = None
            self.due = heap[0][0] if heap else NEVER
            timer.fire(now)

    def pending(self) -> list[tuple[int, Timer]]:
        """Return the times and timers that will fire, in this order."""
        first = [] if self._first is None else [(self.due, self._first)]
        return first + [(time, timer) for time, _, timer in sorted(self._heap)]
