"""The common part of applications that write blocks at times of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from mypy_extensions import mypyc_attr

from bentpipe.apps.app import Application, Fact, Socket
from bentpipe.apps.draws import Distribution
from bentpipe.apps.settings import (
    BLOCKS,
    MODELLED,
    OCTETS,
    SPAN,
    TIMES,
    AppSetting,
    Column,
    FlowRequest,
    Problem,
    Report,
)
from bentpipe.declarations import REQUIRED
from bentpipe.ip.udp import STAMP_OCTETS
from bentpipe_hdl.units import SIZE

__all__ = ["BLOCK", "LATE", "LATE_BLOCKS", "PERIODIC", "BlockSource", "blocks_fit", "periodic", "positive"]

BLOCK: Final = ("blocksize", ("messagesize",))
"""What NetSpec calls a block."""

LATE: Final = AppSetting(
    "late",
    ("queue", "skip"),
    "queue",
    "blocks that are due while the socket is full are written in turn, or left out",
)

LATE_BLOCKS: Final = Report(
    "Late blocks",
    (
        Column("blocks_written", "", "blocks written", "blocks"),
        Column("octets_written", "", "their octets"),
        Column("blocks_late", "", "blocks written after they were due", "late"),
        Column("late_max_ps", "ps", "greatest delay of a late block", "latest by"),
        Column("blocks_skipped", "", "blocks left out", "left out"),
        Column("blocked_ps", "ps", "total time that writes waited for the socket", "writes waited"),
    ),
    ("blocks_late", "blocks_skipped"),
)

PERIODIC: Final = (
    AppSetting(
        "blocks",
        OCTETS,
        REQUIRED,
        "octets a block; `SIZE:COUNT`: so many at once; `LOW..HIGH`, a distribution or a model: random",
        BLOCKS,
        word=BLOCK[0],
        also=BLOCK[1],
    ),
    AppSetting(
        "gaps",
        SPAN,
        REQUIRED,
        "from block to block; random likewise",
        MODELLED,
        word="period",
        also=("gap",),
        unit="us",
    ),
    AppSetting(
        "repeats",
        TIMES.within(1, 10**9),
        None,
        "how many periods; a distribution or a model: blocks at once, each period",
        MODELLED,
    ),
    AppSetting("buffer", SIZE, None, "no effect: the tool's memory for blocks"),
    LATE,
)
"""Arguments of NetSpec's tests of blocks."""


def periodic(given: Mapping[str, Any]) -> tuple[str, dict[str, Any], int | None]:
    """Return the name of the application for a test of blocks: with bounds ``random``, with distributions
    ``sessions``, else ``cbr``."""
    repeats, gaps, late = given.get("repeats"), given["gaps"], given.get("late")
    if any(isinstance(each, Distribution) for each in (given["blocks"], gaps, repeats)):
        return "sessions", _sessions(given["blocks"], gaps, repeats) | {"late": late}, None
    if repeats is not None:
        repeats, most = repeats
        if repeats != most:
            raise ValueError("'repeats' can't have bounds where the rest has no distribution")
    low, high, count = given["blocks"]
    if (low, gaps[0]) == (high, gaps[1]):
        size = None if repeats is None else repeats * count * low
        return "cbr", {"block": low, "period": gaps[0], "count": count, "late": late}, size
    if count != 1:
        raise ValueError("SIZE:COUNT and bounds cannot be combined: give one of them")
    if repeats is not None:
        raise ValueError("'repeats' and bounds cannot be combined: give one of them")
    return "random", {"block": (low, high), "gap": gaps, "late": late}, None


def _sessions(blocks: Any, gaps: Any, repeats: Any) -> dict[str, Any]:
    """Return the settings of ``sessions``, of which some are distributions."""
    count = repeats if repeats is None else _drawn(repeats)
    if not isinstance(blocks, Distribution):
        low, high, at_once = blocks
        if at_once != 1:
            raise ValueError("blocks of SIZE:COUNT cannot be combined with a distribution")
        blocks = (low, high)
    if isinstance(repeats, tuple) and repeats[0] == repeats[1]:
        raise ValueError("'repeats' with a distribution beside it is blocks at once: give it a distribution, too")
    return {"block": _drawn(blocks), "gap": _drawn(gaps), "count": count}


def _drawn(value: Any) -> Distribution:
    """Return a distribution; two bounds as one."""
    if isinstance(value, Distribution):
        return value
    low, high = value
    return Distribution("constant", low) if low == high else Distribution("uniform", low, float(high))


def blocks_fit(given: FlowRequest) -> Problem:
    """Return a problem unless a block over UDP has room for its stamp."""
    block = given.values["block"]
    if given.protocol == "udp" and (min(block) if isinstance(block, tuple) else block) < STAMP_OCTETS:
        return "block", f"over UDP a block has {STAMP_OCTETS} octets and more: it carries a stamp"
    return None


@mypyc_attr(allow_interpreted_subclasses=True)
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
        """Return the time at which the first block is due (ps)."""
        return now_ps

    def draw(self) -> int:
        """Return the octets of the block that is due."""
        raise NotImplementedError

    def after(self, due_ps: int) -> int:
        """Return the time at which the block after the one of ``due_ps`` is due; it is later than ``due_ps``."""
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
        """Take every block that is due; return the time of the next."""
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


def positive(name: str, value: int) -> None:
    """Raise ValueError where a value is below 1."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value!r}")
