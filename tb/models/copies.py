"""Copies of the cells of point-to-multipoint VCs (ATM Forum UNI 3.1 clause 5.6), tick by tick.

A chain leads from a root to its leaves. Cells of a root wait in one queue for all roots; the first has its copies
offered one after the other, in the order of the chain, and then makes way for the second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Copies", "Offer"]


@dataclass
class Offer:
    """A copy: for which VC, of what."""

    leaf: int
    cell: Any


@dataclass
class _Waiting:
    cell: Any
    at: int  # the VC that has it already
    made: int = 0


@dataclass
class _Frame:
    """The place of a VC in an AAL5 frame: all of it is discarded (``whole``), or all but its last cell (``rest``)."""

    inside: bool = False
    whole: bool = False
    rest: bool = False


@dataclass
class Copies:
    """The copies that a switch makes.

    Call :meth:`refuses` for the cell that comes in a tick, if it came from outside for a known VC, then :meth:`tick`.

    Parameters
    ----------
    vcs : int
        A cell has fewer copies than these: so a chain that leads into a circle ends.
    places : int
        Cells that wait at most.
    """

    vcs: int
    places: int
    chain: dict[int, int] = field(default_factory=dict)
    waiting: deque[_Waiting] = field(default_factory=deque)
    made: int = 0
    endless: int = 0
    _leaf: int | None = None
    _written: bool = False
    _frames: dict[int, _Frame] = field(default_factory=dict)

    def write(self, vc: int, after: int | None) -> None:
        """The chain goes on from ``vc`` otherwise; in the next tick nothing is offered, and nobody looks up."""
        if after is None:
            self.chain.pop(vc, None)
        else:
            self.chain[vc] = after
        self._written = True

    def ends(self, vc: int) -> None:
        """The VC is torn down: it has no frame any more."""
        self._frames.pop(vc, None)

    def offer(self) -> Offer | None:
        """Return the cell that is offered in this tick."""
        if self._leaf is None or self._written:
            return None
        return Offer(self._leaf, self.waiting[0].cell)

    def refuses(self, vc: int, *, framed: bool, user: bool, last: bool) -> bool:
        """A cell comes for ``vc``: there is no room for it, or its frame goes for want of room. ``framed``: whole
        frames of the VC count."""
        frame = self._frames.setdefault(vc, _Frame())
        framed = framed and user
        if framed and frame.inside and (frame.whole or (frame.rest and not last)):
            if last:
                frame.inside = frame.whole = False
            return True
        none = vc in self.chain and len(self.waiting) == self.places
        if user:
            lost = framed and none
            if not frame.inside or not framed:
                frame.inside, frame.whole, frame.rest = not last, lost and not last, False
            elif last:
                frame.inside = frame.rest = lost
            elif lost:
                frame.rest = True
        return none

    def tick(self, came: tuple[int, object] | None = None, taken: bool = False) -> None:
        """A tick ends: a cell that was not refused came for a VC; what was offered was taken."""
        if taken:
            assert self._leaf is not None
            self.waiting[0].at = self._leaf
            self.waiting[0].made += 1
            self.made += 1
        if self._written:
            self._leaf = None
        elif self.waiting and (taken or self._leaf is None):
            self._go_on()
        if came is not None and came[0] in self.chain:
            self.waiting.append(_Waiting(came[1], came[0]))
            if len(self.waiting) == 1 and not self._written:
                self._leaf = self.chain[came[0]]
        self._written = False

    def _go_on(self) -> None:
        first = self.waiting[0]
        after = self.chain.get(first.at)
        if after is not None and first.made < self.vcs - 1:
            self._leaf = after
            return
        self.endless += after is not None
        self.waiting.popleft()
        self._leaf = self.chain.get(self.waiting[0].at) if self.waiting else None
