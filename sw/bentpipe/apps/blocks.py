"""Applications that write blocks at times of their own: constant rate, random, on-off."""

from __future__ import annotations

import math
import random
from collections import deque
from typing import Final, final

from bentpipe.apps.app import Application, Fact, Socket

__all__ = ["TIMES", "BlockSource", "Cbr", "Draws", "OnOff", "RandomBlocks"]

TIMES: Final = ("exponential", "fixed")
"""How the on and off times of :class:`OnOff` are chosen."""

_PS_PER_S: Final = 1_000_000_000_000


@final
class Draws:
    """The random numbers of one flow: they depend on the experiment's seed and the flow's number, and nothing else."""

    def __init__(self, seed: int, flow: int) -> None:
        self._random = random.Random(f"{seed} {flow}")

    def uniform(self, low: int, high: int) -> int:
        """A whole number from low to high, both included, each as likely."""
        return low + int(self._random.random() * (high - low + 1))

    def exponential(self, mean: int) -> int:
        """Exponentially distributed with this mean, rounded up: 1 at least."""
        return 1 - int(mean * math.log(1.0 - self._random.random()))


class BlockSource(Application):
    """Writes blocks when they are due. A block that is due while an earlier one still waits for the socket is late:
    it is written in its turn, or left out.

    Parameters
    ----------
    kind : str
    size_octets : int or None
        How much to send, the last block being as short as need be; None: endless.
    duration_ps : int
        When to stop, counted from the connection; 0: never.
    skip_late : bool
        Leave late blocks out.
    """

    def __init__(self, kind: str, size_octets: int | None, duration_ps: int, skip_late: bool) -> None:
        super().__init__(kind)
        if size_octets is not None and size_octets < 1:
            raise ValueError(f"size_octets must be at least 1 or None, not {size_octets!r}")
        if duration_ps < 0:
            raise ValueError(f"duration_ps must not be negative, not {duration_ps!r}")
        self.left: int = -1 if size_octets is None else size_octets
        self.duration_ps: int = duration_ps
        self.skip_late: bool = skip_late
        self.end_ps: int = 0
        self.due_ps: int = 0
        self.block: int = 0
        self.waiting: deque[tuple[int, int]] = deque()  # blocks that are due and not yet written, and when they were
        self.blocked_since: int = -1
        self.stopped: bool = False
        self.blocks: int = 0
        self.octets: int = 0
        self.late: int = 0
        self.late_max_ps: int = 0
        self.skipped: int = 0
        self.blocked_ps: int = 0

    def begin(self, now_ps: int) -> int:
        """When the first block is due."""
        return now_ps

    def draw(self) -> int:
        """Octets of the block that is due."""
        raise NotImplementedError

    def after(self, due_ps: int) -> int:
        """When the block after the one that was due at ``due_ps`` is due; later than that."""
        raise NotImplementedError

    def connected(self, socket: Socket, now_ps: int) -> int:
        if self.duration_ps:
            self.end_ps = now_ps + self.duration_ps
        self.due_ps = self.begin(now_ps)
        return self._wait(socket, now_ps)

    def wake(self, socket: Socket, now_ps: int) -> int:
        return self._wait(socket, now_ps)

    def written(self, socket: Socket, now_ps: int) -> int:
        self.blocked_ps += now_ps - self.blocked_since
        self.blocked_since = -1
        self._write_waiting(socket, now_ps)
        return 0

    def _wait(self, socket: Socket, now_ps: int) -> int:
        """Take every block that is due; the time of the next."""
        while not self.stopped and self.due_ps <= now_ps and (self.end_ps == 0 or self.due_ps < self.end_ps):
            self._due(socket, now_ps)
            self.due_ps = self.after(self.due_ps)
        if self.stopped:
            return 0
        if self.end_ps and self.due_ps >= self.end_ps:
            if now_ps < self.end_ps:
                return self.end_ps
            self.stopped = True
            # What was late at the end is never written; the block that waits is.
            self.skipped += len(self.waiting)
            self.waiting.clear()
            socket.close(now_ps)
            return 0
        return self.due_ps

    def _due(self, socket: Socket, now_ps: int) -> None:
        octets = self.draw()
        if self.blocked_since >= 0 and self.skip_late:
            self.skipped += 1
            return
        if self.left >= 0:
            if octets >= self.left:
                octets = self.left
                self.stopped = True
            self.left -= octets
        self.waiting.append((octets, self.due_ps))
        if self.blocked_since < 0:
            self._write_waiting(socket, now_ps)

    def _write_waiting(self, socket: Socket, now_ps: int) -> None:
        while self.waiting:
            octets, due = self.waiting.popleft()
            self.blocks += 1
            self.octets += octets
            if now_ps > due:
                self.late += 1
                if now_ps - due > self.late_max_ps:
                    self.late_max_ps = now_ps - due
            if not socket.write(octets, now_ps):
                self.blocked_since = now_ps
                break
        if self.stopped and not self.waiting:
            socket.close(now_ps)

    def facts(self, now_ps: int) -> dict[str, Fact]:
        blocked = self.blocked_ps
        if self.blocked_since >= 0:
            blocked += now_ps - self.blocked_since
        return {
            "blocks_written": self.blocks,
            "octets_written": self.octets,
            "blocks_late": self.late,
            "blocks_skipped": self.skipped,
            "late_max_ps": self.late_max_ps,
            "blocked_ps": blocked,
        }


@final
class Cbr(BlockSource):
    """Constant rate: a block of ``block_octets`` every ``period_ps``, ``count`` of them at once."""

    def __init__(
        self,
        block_octets: int,
        period_ps: int,
        count: int = 1,
        size_octets: int | None = None,
        duration_ps: int = 0,
        skip_late: bool = False,
    ) -> None:
        super().__init__("cbr", size_octets, duration_ps, skip_late)
        _positive("block_octets", block_octets)
        _positive("period_ps", period_ps)
        _positive("count", count)
        self.block_octets = block_octets
        self.period_ps = period_ps
        self.count = count
        self.drawn = 0

    def draw(self) -> int:
        return self.block_octets

    def after(self, due_ps: int) -> int:
        self.drawn += 1
        if self.drawn == self.count:
            self.drawn = 0
            return due_ps + self.period_ps
        return due_ps


@final
class RandomBlocks(BlockSource):
    """Blocks whose sizes and whose gaps (from one to the next) are drawn uniformly between bounds, these included."""

    def __init__(
        self,
        block_octets: tuple[int, int],
        gap_ps: tuple[int, int],
        draws: Draws,
        size_octets: int | None = None,
        duration_ps: int = 0,
        skip_late: bool = False,
    ) -> None:
        super().__init__("random", size_octets, duration_ps, skip_late)
        for name, (low, high) in (("block_octets", block_octets), ("gap_ps", gap_ps)):
            _positive(name, low)
            if high < low:
                raise ValueError(f"{name} has bounds the wrong way round: {low} and {high}")
        self.low_octets, self.high_octets = block_octets
        self.low_ps, self.high_ps = gap_ps
        self.draws = draws

    def draw(self) -> int:
        return self.draws.uniform(self.low_octets, self.high_octets)

    def after(self, due_ps: int) -> int:
        return due_ps + self.draws.uniform(self.low_ps, self.high_ps)


@final
class OnOff(BlockSource):
    """Blocks at ``rate_bps`` while on, nothing while off; it begins on.

    Parameters
    ----------
    on_ps, off_ps : int
        How long, or for exponential times how long in the mean.
    times : str
        One of :data:`TIMES`.
    """

    def __init__(
        self,
        block_octets: int,
        rate_bps: int,
        on_ps: int,
        off_ps: int,
        times: str,
        draws: Draws,
        size_octets: int | None = None,
        duration_ps: int = 0,
        skip_late: bool = False,
    ) -> None:
        super().__init__("onoff", size_octets, duration_ps, skip_late)
        _positive("block_octets", block_octets)
        _positive("rate_bps", rate_bps)
        _positive("on_ps", on_ps)
        _positive("off_ps", off_ps)
        if times not in TIMES:
            raise ValueError(f"times must be one of {', '.join(TIMES)}, not {times!r}")
        self.block_octets = block_octets
        self.period_ps = max(1, block_octets * 8 * _PS_PER_S // rate_bps)
        self.on_ps = on_ps
        self.off_ps = off_ps
        self.exponential = times == "exponential"
        self.draws = draws
        self.off_at = 0
        self.bursts = 0

    def begin(self, now_ps: int) -> int:
        self._on(now_ps)
        return now_ps

    def _on(self, now_ps: int) -> None:
        self.bursts += 1
        self.off_at = now_ps + (self.draws.exponential(self.on_ps) if self.exponential else self.on_ps)

    def draw(self) -> int:
        return self.block_octets

    def after(self, due_ps: int) -> int:
        due = due_ps + self.period_ps
        while due >= self.off_at:
            due = self.off_at + (self.draws.exponential(self.off_ps) if self.exponential else self.off_ps)
            self._on(due)
        return due

    def facts(self, now_ps: int) -> dict[str, Fact]:
        facts = super().facts(now_ps)
        facts["bursts"] = self.bursts
        return facts


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value!r}")
