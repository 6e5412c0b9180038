"""Data that arrived out of order, as ranges, and the SACK blocks that report it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import final

__all__ = ["Reassembly"]


@final
class Reassembly:
    """Ranges of sequence numbers (unwrapped) beyond the next expected one.

    Members
    -------
    starts, ends : list of int
        The ranges, sorted, not touching each other.
    """

    __slots__ = ("_recent", "ends", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._recent: dict[int, int] = {}  # the ranges, end by start, in the order of their last arrival

    def add(self, start: int, end: int) -> None:
        """Keep start..end-1."""
        starts = self.starts
        ends = self.ends
        first = bisect_left(ends, start)
        last = bisect_right(starts, end)
        low = start
        high = end
        recent = self._recent
        for i in range(first, last):
            del recent[starts[i]]
        if first < last:
            if starts[first] < low:
                low = starts[first]
            if ends[last - 1] > high:
                high = ends[last - 1]
        starts[first:last] = [low]
        ends[first:last] = [high]
        recent[low] = high

    def advance(self, expected: int) -> int:
        """Drop what is below ``expected``, up to which data is in order; return the new next expected number."""
        starts = self.starts
        ends = self.ends
        count = 0
        for i in range(len(starts)):
            if starts[i] > expected:
                break
            if ends[i] > expected:
                expected = ends[i]
            count += 1
        if count:
            for start in starts[:count]:
                del self._recent[start]
            del starts[:count]
            del ends[:count]
        return expected

    def blocks(self, limit: int) -> list[tuple[int, int]]:
        """Return at most ``limit`` ranges, that of the most recent arrival first (RFC 2018 section 4)."""
        found: list[tuple[int, int]] = []
        for block in reversed(self._recent.items()):
            found.append(block)
            if len(found) == limit:
                break
        return found

    def octets(self) -> int:
        return sum(self.ends) - sum(self.starts)
