"""VCs as they are laid through a network: the virtual paths that they go through, which is the other way of which, and
on which of their lines credits go."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bentpipe_hdl.switch.control import VcSettings
from bentpipe_hdl.switch.registers import REASONS

from .errors import NetworkError, Subject
from .nodes import KINDS, Nic, Node, Switch

__all__ = ["Channel", "Channels", "Hop", "LedgerHop", "Leg", "Stop", "VirtualPath", "faces_of", "paths_of"]

NOT_RM = 1 << 31
"""In a ledger's mask: RM cells with this VPI/VCI are none of the VC's (``csrc/cell.hpp``)."""

FASTEST_PERIOD = 4 << 16
"""Shortest period of a NIC's line whose VCs have credits (OC-12c), so that credit cells are taken as they arrive."""


NOT_COPIED = sum(1 << REASONS.index(reason) for reason in ("upc", "copies"))
"""Reasons, a bit each, for which a switch drops a cell that it then does not copy; others do not keep it from that."""


class Hop(NamedTuple):
    """A switch that a VC passes: ports in (-1: as copies of another's cells) and out, the VC's index there, or
    (``in_path``) that of the virtual path with the VC in it; the index there of the end of the virtual path that the VC
    comes out of."""

    switch: Switch
    come: int
    go: int
    number: int
    in_path: bool = False
    parent: int | None = None


class LedgerHop(NamedTuple):
    """A node on a VC's path as the ledger wants it: the port at which the VC comes in, its index there, VPI << 16 | VCI
    of its cells as they come, and the bits of these that count; whether a virtual path is switched there, or the cells
    of another VC are copied for it."""

    node: Node
    port: int
    number: int
    key: int
    mask: int
    in_path: bool
    root: bool

    def row(self) -> tuple[int, ...]:
        """Return the hop as ``bp_hop`` of ``csrc/network.h``."""
        kind, counted, reasons = KINDS.index(self.node.kind), self.node.driver.vc_counters(self.number), 0xFFFFFFFF
        queue = self.node.driver.buffered()
        if self.in_path:
            kind, counted = len(KINDS), (0, 0)
        if self.root:
            kind, counted, reasons = len(KINDS) + 1, self.node.driver.replication_counter(), NOT_COPIED
        return kind, self.node.index, self.port, self.number, self.key, self.mask, *counted, reasons, queue


class Stop(NamedTuple):
    """The entry of a VC at one of its nodes.

    Members
    -------
    place : int
        The node's place in the VC's path.
    node : Node
    port : int
        The port at which the VC enters; -1 for none: at the source, and for copies of the cells of the previous stop.
    number : int
        The VC's index at the node.
    vpi : int
        Its VPI on the line to the node.
    in_path : bool
        The index is that of a virtual path that contains the VC.
    root : bool
        The index is that of another VC, whose cells are copied for this one.
    """

    place: int
    node: Node
    port: int
    number: int
    vpi: int
    in_path: bool = False
    root: bool = False


@dataclass(eq=False)
class Leg:
    """A path of a VC, from NIC to NIC, links and SONET lines included."""

    path: Sequence[Node]
    stops: list[Stop]

    def common(self, path: Sequence[Node], vpis: Sequence[int]) -> int:
        """Return the number of nodes that another path has in common with this one, with the same VPIs up to them."""
        first = {stop.place: stop.vpi for stop in reversed(self.stops)}
        alike = (node is self.path[k] and vpis[k] == first[k] for k, node in enumerate(path[: len(self.path)]))
        return sum(1 for _ in itertools.takewhile(bool, alike))

    def upto(self, place: int) -> list[Stop]:
        """Return the stops of a path up to the node at this place, where another path branches off."""
        before = [stop for stop in self.stops if stop.place < place]
        return [*before, next(stop for stop in self.stops if stop.place == place)._replace(root=True)]


@dataclass(eq=False)
class VirtualPath:
    """A virtual path in one direction: from the node where VCs come into it to that where they leave it, the switches
    between them with its index there; the ports by which it leaves the first node and comes into the last one; its
    index there, if its OAM flow ends there."""

    path: Sequence[Node]
    vpi: int
    settings: VcSettings
    hops: list[Hop]
    leaves: int
    comes: int
    end: int | None = None

    @property
    def what(self) -> str:
        return f"virtual path {self.vpi} from {self.path[0].name} to {self.path[-1].name}"


def faces_of(what: str, path: Sequence[Node]) -> list[tuple[int, int]]:
    """Return the ports at which a path enters and leaves each of its nodes; -1 where it begins and ends.

    Raises
    ------
    NetworkError
        Two of them are not connected, or a NIC is in the middle.
    """
    faces, come = [], -1
    for k, (node, after) in enumerate(itertools.pairwise(path)):
        if k and isinstance(node, Nic):
            raise NetworkError(f"{what}: {node.name} is a NIC and cannot carry a VC on")
        go, come_after = next(
            ((port, there) for port, (other, there) in node.outputs.items() if other is after), (None, 0)
        )
        if go is None:
            raise NetworkError(f"{what}: {node.name} is not connected to {after.name}")
        faces.append((come, go))
        come = come_after
    return [*faces, (come, -1)]


def paths_of(what: str, path: Sequence[Node], paths: Sequence[VirtualPath]) -> dict[int, VirtualPath]:
    """Return the virtual paths that a VC goes through, by the place in its own path where each begins.

    All nodes of such a path are part of the VC's own path.

    Raises
    ------
    NetworkError
        Two of them go over one line.
    """
    found: dict[int, VirtualPath] = {}
    for each in paths:
        for k in range(len(path) - len(each.path) + 1):
            if all(one is other for one, other in zip(path[k:], each.path, strict=False)):
                for at, other in found.items():
                    if k < at + len(other.path) - 1 and at < k + len(each.path) - 1:
                        raise NetworkError(f"{what}: it would go through {other.what} and {each.what} at once")
                found[k] = each
    return found


@dataclass(eq=False)
class Channel:
    """A VC in one direction.

    Members
    -------
    legs : list of Leg
        One; of a point-to-multipoint VC one to each leaf.
    index : int
        Its index at all its NICs.
    hops : list of Hop
        Switches that its first leg passes.
    branches : list of Hop
        Those of the others, from where they part from a leg before.
    vpi, vci : int
        Its own, where it is in no virtual path; its VCI everywhere.
    settings : VcSettings
    back : Channel, optional
        The VC the other way.
    number : int
        Its place among the network's VCs.
    """

    legs: list[Leg]
    index: int
    hops: list[Hop]
    branches: list[Hop]
    vpi: int
    vci: int
    settings: VcSettings
    back: Channel | None = field(default=None, repr=False)
    number: int = 0

    @property
    def path(self) -> Sequence[Node]:
        return self.legs[0].path

    @property
    def what(self) -> str:
        return f"VC {self.vpi}/{self.vci} from {self.path[0].name} to {self.path[-1].name}"

    @property
    def shares(self) -> list[int]:
        """Places that each switch keeps for it; 0: none."""
        return [0 if hop.in_path else self.settings.credits or hop.switch.settings.share for hop in self.hops]

    def share_in(self, node: Node) -> int:
        """Return the places that a node reserves for the VC; a NIC reserves none, as it takes all cells."""
        return next((share for share, hop in zip(self.shares, self.hops, strict=True) if hop.switch is node), 0)

    def own_hops(self) -> list[tuple[Hop, VcSettings]]:
        """Return the switches that look at the VC itself, with the VC's settings at each.

        Its cells are policed where they enter, not as copies.
        """
        own = [hop for hop in self.hops if not hop.in_path]
        found = [(hop, self.settings.of_switch(hop.switch.name, first=k == 0)) for k, hop in enumerate(own)]
        for hop in self.branches:
            if not hop.in_path:
                given = self.settings.of_switch(hop.switch.name, first=hop.switch is own[0].switch)
                found.append((hop, given if hop.come >= 0 else given.model_copy(update={"police": None})))
        return found

    def ledger_hops(self, credited: Collection[Switch]) -> list[list[LedgerHop]]:
        """Return the ledger's hops of each leg; ``credited`` are the switches at which a VC has credits."""
        return [self._hops_of(leg, credited) for leg in self.legs]

    def _hops_of(self, leg: Leg, credited: Collection[Switch]) -> list[LedgerHop]:
        """Return the ledger's hops of one leg.

        The headers on a line have the format of the line's next switch or NIC. RM cells on the line are not the VC's if
        they are credit cells or probes.
        """
        found, mask = [], 0
        for place, node, port, number, vpi, in_path, root in reversed(leg.stops):
            if isinstance(node, (Nic, Switch)):
                nni = node.line.nni if isinstance(node, Nic) else port >= 0 and node.lines[port].nni
                control = self._carries_control_cells(leg, place, credited)
                mask = (0xFFFFFFF if nni else 0xFFFFFF) | (NOT_RM if control else 0)
            found.append(LedgerHop(node, port, number, vpi << 16 | self.vci, mask, in_path, root))
        return found[::-1]

    def _carries_control_cells(self, leg: Leg, place: int, credited: Collection[Switch]) -> bool:
        """Return whether RM cells that arrive at this switch or NIC on the VC are credit cells and probes."""
        before = next((node for node in reversed(leg.path[:place]) if isinstance(node, (Nic, Switch))), None)
        if before is None:
            return False
        after = leg.path[place]
        if isinstance(after, Switch):  # one with credits takes all RM cells
            return after in credited
        return self.back is not None and self.back.share_in(before) > 0


Route = tuple[object, ...]
"""The ends of a VC, and the ports by which it passes its switches."""


class Channels(list[Channel]):
    """The VCs of a network, in the order in which they were laid. One is the other way of the first before it that
    passes the same ports the other way and has none yet."""

    def __init__(self) -> None:
        super().__init__()
        self._without: dict[Route, deque[Channel]] = defaultdict(deque)  # those that have no other way yet

    def lay(self, channel: Channel) -> None:
        """Add one; its switches get to know its credits.

        Raises
        ------
        NetworkError
            It has credits, and a line in loop-back, a virtual path, several leaves, or an interface whose line is
            faster than OC-12c.
        """
        channel.number = len(self)
        shares, credits = channel.shares, _credits_of(channel)
        if len(channel.legs) > 1:
            if any(shares):
                what = f"{channel.what}: it leads to several hosts; credits work with one sink only"
                raise NetworkError(what, credits)
            if channel.settings.oam is not None:
                what = f"{channel.what}: it leads to several hosts; OAM works with one sink only"
                raise NetworkError(what, Subject(key="oam"))
            self.append(channel)
            return
        if any(shares) and any(hop.in_path for hop in channel.hops):
            raise NetworkError(f"{channel.what}: credits cannot pass through a virtual path", credits)
        for switch, before in itertools.pairwise(hop.switch for hop in channel.hops):
            if switch is before and any(shares):
                what = f"{channel.what}: credits cannot pass through a line in loop-back, as {switch.name} has"
                raise NetworkError(what, credits)
        source = channel.path[0]
        if isinstance(source, Nic) and shares and shares[0]:
            if source.period < FASTEST_PERIOD:
                raise NetworkError(f"{channel.what}: {source.name} has credits on a line faster than OC-12c", credits)
            source.sends[channel.index] = replace(source.sends[channel.index], credits=shares[0])
        for hop, here, after in zip(channel.hops, shares, [*shares[1:], 0][: len(shares)], strict=True):
            if here or after:
                hop.switch.vcs[hop.number] = replace(hop.switch.vcs[hop.number], credits_in=here, credits_out=after)
        self.append(channel)
        there, back = _route(channel), _route(channel, backwards=True)
        self._without[there].append(channel)
        if self._without[back]:
            other = self._without[back].popleft()
            if other is not channel:
                self._without[there].pop()
            for one, two in ((channel, other), (other, channel)):
                one.back = two
                self._pair(one, two)

    @staticmethod
    def _pair(channel: Channel, back: Channel) -> None:
        source = channel.path[0]
        if isinstance(source, Nic):
            source.sends[channel.index] = replace(source.sends[channel.index], back=back.index)
        for hop, other in zip(channel.hops, reversed(back.hops), strict=True):
            hop.switch.vcs[hop.number] = replace(hop.switch.vcs[hop.number], back=other.number)

    def check(self) -> None:
        """Raise NetworkError if one has credits and there is none the other way."""
        for number, channel in enumerate(self):
            if channel.back is None and any(channel.shares):
                what = f"{channel.what}: it has credits, and no VC the other way to bring them"
                given = _credits_of(channel)
                raise NetworkError(what, given if given.node else replace(given, channel=number))


def _credits_of(channel: Channel) -> Subject:
    """Return the source of a VC's credits: its own settings, or else a switch on its path."""
    if channel.settings.credits:
        return Subject(key="credits")
    return next(
        (Subject(hop.switch.name, key="credits.share") for hop in channel.hops if hop.switch.settings.share), Subject()
    )


def _route(channel: Channel, *, backwards: bool = False) -> Route:
    ends, hops = (channel.path[0], channel.path[-1]), [(hop.switch, hop.come, hop.go) for hop in channel.hops]
    if not backwards:
        return (*ends, *hops)
    return (*ends[::-1], *((switch, go, come) for switch, come, go in reversed(hops)))
