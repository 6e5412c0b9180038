"""What is called when its time comes: the timers of all hosts."""

from __future__ import annotations

import heapq
from typing import final

__all__ = ["Scheduler", "Timer"]


class Timer:
    """Something that the engine calls when its time comes."""

    def fire(self, now: int) -> None:
        raise NotImplementedError


@final
class Scheduler:
    """The timers of all hosts; those of one instant come in the order in which they were set."""

    __slots__ = ("heap", "now", "order")

    def __init__(self) -> None:
        self.now: int = 0
        self.order: int = 0
        self.heap: list[tuple[int, int, Timer]] = []

    def at(self, time: int, timer: Timer) -> None:
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, timer))

    def fire(self) -> None:
        """Call what is due now."""
        heap = self.heap
        now = self.now
        while heap and heap[0][0] <= now:
            heapq.heappop(heap)[2].fire(now)
