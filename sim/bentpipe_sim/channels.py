"""VCs as they are laid through a network: which is the other way of which, and on which of their lines credits go."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bentpipe_hdl.switch.control import VcSettings

from .errors import NetworkError
from .nodes import Nic, Node, Switch

__all__ = ["Channel", "Channels"]

NOT_RM = 1 << 31
"""In a ledger's mask: RM cells with this VPI/VCI are none of the VC's (``csrc/cell.hpp``)."""

FASTEST_PERIOD = 4 << 16
"""Of a NIC's line whose VCs have credits, so that credit cells are taken as they come: that of OC-12c."""


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
    hops : list of (Switch, int, int, int)
        Switches that it passes: ports in and out, its index there.
    key : int
        VPI << 16 | VCI.
    settings : VcSettings
    back : Channel, optional
        The VC the other way.
    """

    path: Sequence[Node]
    faces: Sequence[int]
    index: int
    hops: list[tuple[Switch, int, int, int]]
    key: int
    settings: VcSettings
    back: Channel | None = field(default=None, repr=False)

    @property
    def what(self) -> str:
        return f"VC {self.key >> 16}/{self.key & 0xFFFF} from {self.path[0].name} to {self.path[-1].name}"

    @property
    def shares(self) -> list[int]:
        """Places that each switch keeps for it; 0: none."""
        return [self.settings.credits or switch.settings.share for switch, *_ in self.hops]

    def share_in(self, node: Node) -> int:
        """Places that a node keeps for it: a NIC none, as it takes what comes."""
        return next((share for share, (switch, *_) in zip(self.shares, self.hops, strict=True) if switch is node), 0)

    def ledger_hops(self) -> list[tuple[Node, int, int, int, int]]:
        """As the ledger wants it: a line's headers are read as its next switch or NIC reads them, and its RM cells are
        not the VC's where they are credit cells or probes."""
        found, mask = [], 0
        numbers = {id(switch): [] for switch, *_ in self.hops}
        for switch, *_, number in reversed(self.hops):
            numbers[id(switch)].append(number)
        for k in reversed(range(len(self.path))):
            node, port, number = self.path[k], self.faces[k], self.index
            if isinstance(node, (Nic, Switch)):
                nni = node.lines[port].nni if isinstance(node, Switch) else node.line.nni
                mask = (0xFFFFFFF if nni else 0xFFFFFF) | (NOT_RM if self._told_on_the_way_to(k) else 0)
            if isinstance(node, Switch):
                number = numbers[id(node)].pop(0)
            found.append((node, port, number, self.key, mask))
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
            It has credits, and a line in loop-back, or an interface whose line is faster than OC-12c.
        """
        shares = channel.shares
        for switch, before in itertools.pairwise(switch for switch, *_ in channel.hops):
            if switch is before and any(shares):
                raise NetworkError(
                    f"{channel.what}: credits don't go through a line in loop-back, as {switch.name} has"
                )
        source = channel.path[0]
        if isinstance(source, Nic) and shares and shares[0]:
            if source.period < FASTEST_PERIOD:
                raise NetworkError(f"{channel.what}: {source.name} has credits on a line faster than OC-12c")
            source.sends[channel.index] = replace(source.sends[channel.index], credits=shares[0])
        for (switch, *_, number), here, after in zip(
            channel.hops, shares, [*shares[1:], 0][: len(shares)], strict=True
        ):
            switch.vcs[number] = replace(switch.vcs[number], credits_in=here, credits_out=after)
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
        for (switch, *_, number), (*_, other) in zip(channel.hops, reversed(back.hops), strict=True):
            switch.vcs[number] = replace(switch.vcs[number], back=other)

    def check(self) -> None:
        """Raise NetworkError if one has credits and there is none the other way."""
        for channel in self:
            if channel.back is None and any(channel.shares):
                raise NetworkError(f"{channel.what}: it has credits, and no VC the other way to bring them")


def _opposite(one: Channel, other: Channel) -> bool:
    return (one.path[0], one.path[-1]) == (other.path[-1], other.path[0]) and [
        (switch, come, go) for switch, come, go, _ in one.hops
    ] == [(switch, come, go) for switch, go, come, _ in reversed(other.hops)]
