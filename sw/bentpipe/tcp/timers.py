"""The time of a connection, and when each of its timers is due."""

from __future__ import annotations

from typing import final

from bentpipe.tcp.constants import PS_PER_S, SLOW_TICK_PS

__all__ = ["Timers"]


@final
class Timers:
    """The timers of a connection: in the host's slow ticks with BSD's timers, in picoseconds with exact ones; 0: off.

    Members
    -------
    now : int
        Picoseconds.
    clock : int
        The present time in the timers' unit.
    exact : bool
        Timers count picoseconds.
    per_second : int
        Units of ``clock`` a second.
    rexmt, persist, keep, wait : int
        Retransmission; window probe; keepalive, and the limit of a handshake; TIME_WAIT and FIN_WAIT_2.
    delack : int
        The delayed ACK, with exact timers (BSD's waits for the fast tick).
    pace : int
        The time from which the sender may continue; always picoseconds.
    """

    __slots__ = ("clock", "delack", "exact", "keep", "now", "pace", "per_second", "persist", "rexmt", "wait")

    def __init__(self, exact: bool, clock: int) -> None:
        self.now: int = 0
        self.clock: int = clock
        self.exact: bool = exact
        self.per_second: int = PS_PER_S if exact else PS_PER_S // SLOW_TICK_PS
        self.rexmt: int = 0
        self.persist: int = 0
        self.keep: int = 0
        self.wait: int = 0
        self.delack: int = 0
        self.pace: int = 0

    def at(self, now: int) -> None:
        """Set the present time (ps)."""
        self.now = now
        if self.exact:
            self.clock = now

    def ticks(self, time_ps: int) -> int:
        """Return a time in units of ``clock``."""
        return time_ps if self.exact else time_ps // SLOW_TICK_PS

    def next_tick(self) -> int:
        """Return the host's tick in which the first of its timers is due; 0: none."""
        return 0 if self.exact else self._first()

    def next_due(self) -> int:
        """Return the time at which the first timer that counts picoseconds is due; 0: none."""
        if not self.exact:
            return self.pace
        due = self._first()
        if self.delack != 0 and (due == 0 or self.delack < due):
            due = self.delack
        return self.pace if self.pace != 0 and (due == 0 or self.pace < due) else due

    def _first(self) -> int:
        due = self.rexmt
        other = self.persist
        if other != 0 and (due == 0 or other < due):
            due = other
        other = self.keep
        if other != 0 and (due == 0 or other < due):
            due = other
        other = self.wait
        return other if other != 0 and (due == 0 or other < due) else due

    def stop(self) -> None:
        """Stop all timers."""
        self.rexmt = 0
        self.persist = 0
        self.keep = 0
        self.wait = 0
        self.delack = 0
        self.pace = 0
