"""VCs as they are laid through a network: the virtual paths that they go through, which is the other way of which, and
on which of their lines credits go."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bentpipe_hdl.switch.control import VcSettings

from .errors import NetworkError
from .nodes import KINDS, Nic, Node, Switch

__all__ = ["Channel", "Channels", "Hop", "LedgerHop", "VirtualPath", "faces_of", "paths_of"]

NOT_RM = 1 << 31
"""In a ledger's mask: RM cells with this VPI/VCI are none of the VC's (``csrc/cell.hpp``)."""

FASTEST_PERIOD = 4 << 16
"""Of a NIC's line whose VCs have credits, so that credit cells are taken as they come: that of OC-12c."""


class Hop(NamedTuple):
    """A switch that a VC passes: ports in and out, the VC's index there, or (``in_path``) that of the virtual path with
    the VC in it; the index there of the end of the virtual path that the VC comes out of."""

    switch: Switch
    come: int
    go: int
    number: int
    in_path: bool = False
    parent: int | None = None


class LedgerHop(NamedTuple):
    """A node on a VC's path as the ledger wants it: the port at which the VC comes in, its index there, VPI << 16 | VCI
    of its cells as they come, and the bits of these that count; whether a virtual path is switched there."""

    node: Node
    port: int
    number: int
    key: int
    mask: int
    in_path: bool

    def row(self) -> tuple[int, ...]:
        """As of ``bp_hop`` in ``csrc/network.h``."""
        kind, counted = KINDS.index(self.node.kind), self.node.driver.counted(self.number)
        if self.in_path:
            kind, counted = len(KINDS), (0, 0)
        return kind, self.node.index, self.port, self.number, self.key, self.mask, *counted


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
    """The ports by which a path comes into and leaves each of its nodes; -1 where it begins and ends.

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
    """The virtual paths that a VC goes through, all of which are parts of its own path, by where there they begin.

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
    path : Sequence of Node
        From NIC to NIC, links and SONET lines included.
    faces : Sequence of int
        The port at which it comes into each node of the path; -1: the source.
    index : int
        Its index at both NICs.
    hops : list of Hop
        Switches that it passes.
    vpis : Sequence of int
        Its VPI on the way to each node of the path; to the source, that on its line.
    vpi, vci : int
        Its own, where it is in no virtual path; its VCI everywhere.
    settings : VcSettings
    back : Channel, optional
        The VC the other way.
    """

    path: Sequence[Node]
    faces: Sequence[int]
    index: int
    hops: list[Hop]
    vpis: Sequence[int]
    vpi: int
    vci: int
    settings: VcSettings
    back: Channel | None = field(default=None, repr=False)

    @property
    def what(self) -> str:
        return f"VC {self.vpi}/{self.vci} from {self.path[0].name} to {self.path[-1].name}"

    @property
    def shares(self) -> list[int]:
        """Places that each switch keeps for it; 0: none."""
        return [0 if hop.in_path else self.settings.credits or hop.switch.settings.share for hop in self.hops]

    def share_in(self, node: Node) -> int:
        """Places that a node keeps for it: a NIC none, as it takes what comes."""
        return next((share for share, hop in zip(self.shares, self.hops, strict=True) if hop.switch is node), 0)

    def own_hops(self) -> list[tuple[Hop, VcSettings]]:
        """The switches that look at the VC itself, with what each gives it."""
        own = [hop for hop in self.hops if not hop.in_path]
        return [(hop, self.settings.of_switch(hop.switch.name, first=k == 0)) for k, hop in enumerate(own)]

    def ledger_hops(self) -> list[LedgerHop]:
        """As the ledger wants it: a line's headers are read as its next switch or NIC reads them, and its RM cells are
        not the VC's where they are credit cells or probes."""
        found, mask, hops = [], 0, list(self.hops)
        for k in reversed(range(len(self.path))):
            node, port, number, in_path = self.path[k], self.faces[k], self.index, False
            if isinstance(node, (Nic, Switch)):
                nni = node.lines[port].nni if isinstance(node, Switch) else node.line.nni
                mask = (0xFFFFFFF if nni else 0xFFFFFF) | (NOT_RM if self._told_on_the_way_to(k) else 0)
            if isinstance(node, Switch):
                number, in_path = hops[-1].number, hops.pop().in_path
            found.append(LedgerHop(node, port, number, self.vpis[k] << 16 | self.vci, mask, in_path))
        return found[::-1]

    def _told_on_the_way_to(self, place: int) -> bool:
        """RM cells that come to this switch or NIC on the VC are credit cells and probes."""
        before = next((node for node in reversed(self.path[:place]) if isinstance(node, (Nic, Switch))), None)
        if before is None:
            return False
        after = self.path[place]
        if isinstance(after, Switch):  # one with credits takes all RM cells
            return any(vc.credits_in or vc.credits_out for vc in after.vcs)
        return self.back is not None and self.back.share_in(before) > 0


class Channels(list[Channel]):
    """The VCs of a network, in the order in which they were laid. One is the other way of the first before it that
    passes the same ports the other way and has none yet."""

    def lay(self, channel: Channel) -> None:
        """Add one; its switches get to know its credits.

        Raises
        ------
        NetworkError
            It has credits, and a line in loop-back, a virtual path, or an interface whose line is faster than OC-12c.
        """
        shares = channel.shares
        if any(shares) and any(hop.in_path for hop in channel.hops):
            raise NetworkError(f"{channel.what}: credits don't go through a virtual path")
        for switch, before in itertools.pairwise(hop.switch for hop in channel.hops):
            if switch is before and any(shares):
                raise NetworkError(
                    f"{channel.what}: credits don't go through a line in loop-back, as {switch.name} has"
                )
        source = channel.path[0]
        if isinstance(source, Nic) and shares and shares[0]:
            if source.period < FASTEST_PERIOD:
                raise NetworkError(f"{channel.what}: {source.name} has credits on a line faster than OC-12c")
            source.sends[channel.index] = replace(source.sends[channel.index], credits=shares[0])
        for hop, here, after in zip(channel.hops, shares, [*shares[1:], 0][: len(shares)], strict=True):
            hop.switch.vcs[hop.number] = replace(hop.switch.vcs[hop.number], credits_in=here, credits_out=after)
        self.append(channel)
        other = next((each for each in self if each.back is None and _opposite(each, channel)), None)
        if other is not None:
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
        for channel in self:
            if channel.back is None and any(channel.shares):
                raise NetworkError(f"{channel.what}: it has credits, and no VC the other way to bring them")


def _opposite(one: Channel, other: Channel) -> bool:
    return (one.path[0], one.path[-1]) == (other.path[-1], other.path[0]) and [
        (hop.switch, hop.come, hop.go) for hop in one.hops
    ] == [(hop.switch, hop.go, hop.come) for hop in reversed(other.hops)]
