"""The queue at one port of a switch, counted by the event loop cell by cell, and stopping a run at a level of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .errors import NetworkError
from .loop import Loop
from .nodes import Switch

__all__ = ["QueueMonitor", "QueueMonitorCounts"]

_UNI, _NNI = 0xFFFFFF, 0xFFFFFFF


class QueueMonitorCounts(NamedTuple):
    """Cells.

    Members
    -------
    queue : int
        Queued now, that on the line not counted.
    came, lost : int
        Of the port's VCs, so far: those that came to the switch, and those of them that it dropped.
    cycles : int
        Times that a cell found none queued.
    most : int
        Queued at once since the monitor was armed, or since the last of these cells.
    late : int
        Left after a wait of the monitor's ``late_from`` ticks or more.
    armed : bool
        It has something to tell that has not come.
    """

    queue: int
    came: int
    lost: int
    cycles: int
    most: int
    late: int
    armed: bool


@dataclass(eq=False)
class QueueMonitor:
    """A port's queue; made by :meth:`~bentpipe_sim.network.Network.monitor_queue`.

    ``late_from`` is the wait from which cells count as late: ticks from a cell's arrival at the switch until its first
    bit leaves; 0: none is counted.
    """

    loop: Loop
    switch: Switch
    port: int
    late_from: int = 0

    def check(self) -> None:
        """Raise NetworkError if not all that leaves by the port comes as a cell of a VC that does."""
        what = f"the queue of {self.switch.name}:{self.port} can't be followed cell by cell"
        if self.switch.manages:
            raise NetworkError(f"{what}: {self.switch.name} makes OAM cells of its own")
        for vc in self.switch.vcs:
            if vc.out_port == self.port and (vc.in_port < 0 or vc.leaf is not None):
                raise NetworkError(f"{what}: {self.switch.name} makes copies of cells for it")
            if vc.credits_in or vc.credits_out:
                raise NetworkError(f"{what}: {self.switch.name} makes credit cells")

    def lay(self) -> None:
        """Begin, in a network that is made and has no cells yet."""
        self.check()
        rows = []
        for number, vc in enumerate(self.switch.vcs):
            if vc.out_port == self.port:
                came, leaves = (
                    (vpi << 16 | vci, (_NNI if self.switch.lines[port].nni else _UNI) & (~0xFFFF if vc.vpc else -1))
                    for port, vpi, vci in (
                        (vc.in_port, vc.in_vpi, vc.in_vci),
                        (vc.out_port, vc.out_vpi, vc.out_vci),
                    )
                )
                rows.append((vc.in_port, *came, number, *leaves))
        made = self.loop.ffi.new("bp_monitored_vc[]", rows)
        if self.loop.monitor(self.switch.index, self.port, made, len(rows), self.late_from):
            raise NetworkError(self.loop.ffi.string(self.loop.error()).decode())

    def arm(self, level: int, empty: bool) -> None:
        """Make ``run`` return at the end of the tick in which so many cells are queued (0: never).

        The event is ``QUEUE_LEVEL`` of the switch. If ``empty``, it also returns when no cell is queued, with
        ``QUEUE_EMPTY``. The first of both counts.
        """
        self.loop.monitor_arm(level, empty)

    @property
    def counts(self) -> QueueMonitorCounts:
        counts = self.loop.ffi.new("bp_monitor_counts *")
        self.loop.monitor_read(counts)
        return QueueMonitorCounts(
            counts.queue, counts.came, counts.lost, counts.cycles, counts.most, counts.late, bool(counts.armed)
        )

    def heights(self) -> list[int]:
        """Return how many cycles that ended since the last call had at most 0, 1, 2, … cells queued."""
        count = self.loop.monitor_heights(self.loop.ffi.NULL, -1)
        heights = self.loop.ffi.new("uint64_t[]", count)
        self.loop.monitor_heights(heights, count)
        return list(heights)

    def verify(self) -> None:
        """Raise NetworkError unless the switch has as many cells of the port's VCs as were counted."""
        csr, total = self.switch.csr, 0
        for number, vc in enumerate(self.switch.vcs):
            if vc.out_port == self.port:
                total += (int(csr.accepted[number]) - int(csr.departed[number])) % (1 << 32)
        if total != self.counts.queue:
            raise NetworkError(
                f"{self.switch.name}:{self.port}: {total} cells are queued, and {self.counts.queue} were counted"
            )
