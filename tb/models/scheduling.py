"""In which order a port's cells leave: FIFO, round robin by weights, strict priority.

Round robin by weights is deficit round robin (Shreedhar and Varghese, IEEE/ACM ToN, June 1996) with a quantum of whole
cells, all of which are of one size: what is left of a quantum when the queue becomes empty is lost, and otherwise
nothing is ever left. Strict priority is the head of the line's (Kleinrock, vol. 2, 3.2).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

__all__ = ["Clocked", "Member", "Scheduler", "VirtualClocks"]


@dataclass
class Member:
    """A VC of the scheduler: its port, its weight in cells, its priority (more is served first).

    ``single`` says that its cells take turns each for itself (FIFO). That is settled when its queue begins, and so is
    then the list that they are in, ``place``: port and priority.
    """

    port: int
    weight: int = 1
    priority: int = 0
    cells: int = 0
    single: bool = False
    place: tuple[int, int] = (0, 0)


@dataclass
class Turn:
    """The entry of a VC, or of a single cell of it."""

    vc: int
    single: bool
    sent: int = field(default=0)


class Scheduler:
    """The scheduler of all ports.

    Parameters
    ----------
    members : list of Member
    ports : int
    fifo : set of int
        Ports that serve cells in the order in which they were queued.
    """

    def __init__(self, members: list[Member], *, ports: int, fifo: frozenset[int] = frozenset()) -> None:
        self.members, self.ports, self.fifo = members, ports, fifo
        self.turns: list[dict[int, deque[Turn]]] = [{} for _ in range(ports)]

    def arrive(self, vc: int) -> bool:
        """A cell of the VC is queued. Whether its port had none."""
        member = self.members[vc]
        if not member.cells:
            member.single = member.port in self.fifo
            member.place = member.port, member.priority
        begins = self.first(member.place[0] if member.single else member.port) is None
        if member.single or not member.cells:
            self._append(Turn(vc, member.single))
        member.cells += 1
        return begins

    def first(self, port: int) -> int | None:
        """The VC that the port serves next."""
        priority = self.level(port)
        return None if priority is None else self.turns[port][priority][0].vc

    def depart(self, port: int, priority: int | None = None) -> int:
        """The port serves a VC: which. With a ``priority``: that of the time when the VC was chosen (:meth:`level`), if
        a cell came since."""
        if priority is None:
            priority = self.level(port)
        assert priority is not None
        turns = self.turns[port][priority]
        turn = turns[0]
        member = self.members[turn.vc]
        member.cells -= 1
        turn.sent += 1
        goes_on = member.cells and not turn.single
        if goes_on and turn.sent < member.weight and (member.port, member.priority) == (port, priority):
            return turn.vc
        turns.popleft()
        if goes_on:
            self._append(Turn(turn.vc, False))
        return turn.vc

    def check(self) -> None:
        """Every cell has a turn to come: its own, or its VC's."""
        turns = [turn for lists in self.turns for each in lists.values() for turn in each]
        for vc, member in enumerate(self.members):
            mine = [turn for turn in turns if turn.vc == vc]
            assert len(mine) == (member.cells if member.single else bool(member.cells))

    def _append(self, turn: Turn) -> None:
        member = self.members[turn.vc]
        port, priority = member.place if turn.single else (member.port, member.priority)
        self.turns[port].setdefault(priority, deque()).append(turn)

    def level(self, port: int) -> int | None:
        """The highest priority of which the port has turns."""
        return max((priority for priority, turns in self.turns[port].items() if turns), default=None)


@dataclass
class Clocked:
    """A VC of :class:`VirtualClocks`: its port, the time that a cell of it takes at its rate, its clock."""

    port: int
    period: int
    clock: int = 0
    cells: int = 0
    at: int = 0


class VirtualClocks:
    """Virtual clock (Zhang, SIGCOMM 1990) by the heads of queues: a VC's clock goes on by its period, from now if it is
    behind, whenever the VC has a new first cell; the VC with the least clock is served.

    Times are in 2**-16 ticks. A VC stays at its port as long as it has cells. A clock more than ``most`` ahead goes on
    from there.
    """

    def __init__(self, members: list[Clocked], *, ports: int, most: int = 1 << 54) -> None:
        self.members, self.ports, self.most = members, ports, most

    def _stamp(self, member: Clocked, now: int) -> None:
        member.clock = min(max(member.clock, now), now + self.most) + member.period

    def arrive(self, vc: int, now: int) -> None:
        """A cell of the VC is queued in tick ``now``."""
        member = self.members[vc]
        if not member.cells:
            member.at = member.port
            self._stamp(member, now << 16)
        member.cells += 1

    def first(self, port: int) -> int | None:
        """The VC that the port serves next; of equal clocks the one with the lower number."""
        waiting = [(m.clock, vc) for vc, m in enumerate(self.members) if m.cells and m.at == port]
        return min(waiting)[1] if waiting else None

    def depart(self, vc: int, now: int) -> None:
        """The VC that was the first of its port before this tick's arrival is served."""
        member = self.members[vc]
        member.cells -= 1
        if member.cells:
            self._stamp(member, now << 16)
