"""The sender's scoreboard of selective acknowledgements (RFC 3517)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import final

__all__ = ["Scoreboard"]


@final
class Scoreboard:
    """The octets above ``una`` that the receiver holds, those that are lost, and the pipe (RFC 3517 section 4).

    Sequence numbers are unwrapped. Sums are kept up to date with each change, so that an ACK costs a few list
    operations even when hundreds of holes are open.

    Parameters
    ----------
    mss : int
        SMSS: 3 of them SACKed above an octet, or 3 separate ranges, make it lost (``IsLost``).

    Members
    -------
    high_rxt : int
        One past the highest octet retransmitted in this recovery (``HighRxt``).
    """

    __slots__ = ("_below_rxt", "_ends", "_starts", "_total", "high_rxt", "mss", "una")

    def __init__(self, mss: int) -> None:
        self.mss = mss
        self.una: int = 0
        self.high_rxt: int = 0
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._total: int = 0  # octets SACKed
        self._below_rxt: int = 0  # of these, below high_rxt

    def clear(self, una: int) -> None:
        """Forget everything: after a time-out the receiver may have reneged (RFC 2018 section 5)."""
        self.una = una
        self.high_rxt = una
        self._starts = []
        self._ends = []
        self._total = 0
        self._below_rxt = 0

    def start_recovery(self) -> None:
        """Start a recovery, in which nothing is retransmitted yet."""
        self.high_rxt = self.una
        self._below_rxt = 0

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def highest(self) -> int:
        """One past the highest SACKed octet, or ``una``."""
        return self._ends[-1] if self._ends else self.una

    @property
    def sacked(self) -> int:
        """Octets SACKed."""
        return self._total

    @property
    def retransmitted_unsacked(self) -> int:
        """Octets retransmitted in this recovery that are not SACKed."""
        return self.high_rxt - self.una - self._below_rxt

    def advance(self, una: int) -> None:
        """Move up to the cumulative ACK ``una``."""
        self.una = una
        starts = self._starts
        ends = self._ends
        if starts and starts[0] < una:
            count = bisect_right(ends, una)
            for i in range(count):
                self._remove(starts[i], ends[i])
            del starts[:count]
            del ends[:count]
            if starts and starts[0] < una:
                self._remove(starts[0], una)
                starts[0] = una
        if self.high_rxt < una:
            self.high_rxt = una

    def _remove(self, start: int, end: int) -> None:
        self._total -= end - start
        rxt = self.high_rxt
        if start < rxt:
            self._below_rxt -= (end if end < rxt else rxt) - start

    def add(self, start: int, end: int) -> bool:
        """Record that the receiver holds start..end-1; return True if that is new."""
        if start < self.una:
            start = self.una
        if start >= end:
            return False
        starts = self._starts
        ends = self._ends
        first = bisect_left(ends, start)
        last = bisect_right(starts, end)
        low = start
        high = end
        before = 0
        if first < last:
            if starts[first] <= start and ends[first] >= end:
                return False
            for i in range(first, last):
                self._remove(starts[i], ends[i])
            if starts[first] < low:
                low = starts[first]
            if ends[last - 1] > high:
                high = ends[last - 1]
        before = high - low
        starts[first:last] = [low]
        ends[first:last] = [high]
        self._total += before
        rxt = self.high_rxt
        if low < rxt:
            self._below_rxt += (high if high < rxt else rxt) - low
        return True

    def retransmitted(self, end: int) -> None:
        """Record that octets up to ``end`` - 1 were retransmitted, or skipped as they are SACKed."""
        rxt = self.high_rxt
        if end <= rxt:
            return
        starts = self._starts
        ends = self._ends
        i = bisect_right(ends, rxt)
        while i < len(starts) and starts[i] < end:
            low = starts[i] if starts[i] > rxt else rxt
            high = ends[i] if ends[i] < end else end
            self._below_rxt += high - low
            i += 1
        self.high_rxt = end

    def lost_below(self) -> int:
        """Return the number below which exactly the unSACKed octets are lost (``IsLost``); ``una`` if none are."""
        starts = self._starts
        ends = self._ends
        octets = 0
        limit = 3 * self.mss
        for i in range(len(starts) - 1, -1, -1):
            octets += ends[i] - starts[i]
            if octets >= limit or len(starts) - i >= 3:
                return starts[i]
        return self.una

    def pipe(self, high_data: int) -> int:
        """Return the octets thought to be in the network (``SetPipe``); ``high_data`` is one past the highest sent."""
        lost = self.lost_below()
        above = 0  # SACKed octets at and above `lost`
        starts = self._starts
        ends = self._ends
        for i in range(len(starts) - 1, -1, -1):
            if starts[i] < lost:
                break
            above += ends[i] - starts[i]
        not_lost = high_data - lost - above
        if lost == self.una:
            not_lost = high_data - self.una - self._total
        return not_lost + self.retransmitted_unsacked

    def skip(self, seq: int) -> int:
        """Return the first unSACKed number at or above ``seq``."""
        i = bisect_right(self._starts, seq) - 1
        return self._ends[i] if i >= 0 and self._ends[i] > seq else seq

    def hole(self, below: int) -> tuple[int, int]:
        """Return the first unSACKed range at or above ``high_rxt`` that starts below ``below``, as (start, end); (0, 0)
        if none.

        ``NextSeg`` rule 1 with ``below`` = ``lost_below()``, rule 3 with ``below`` = ``highest``.
        """
        seq = self.high_rxt
        starts = self._starts
        ends = self._ends
        i = bisect_right(starts, seq) - 1
        if i >= 0 and ends[i] > seq:
            seq = ends[i]
        if seq >= below:
            return (0, 0)
        i += 1
        return (seq, starts[i] if i < len(starts) else below)
