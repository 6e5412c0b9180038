"""Usage parameter control of a VC: two buckets, tagging, whole frames (I.371; TM 4.1 clauses 4.5 and 5.3).

Each bucket is a GCRA(I, L) in either form, of all cells or of those with CLP=0. Times are exact numbers of one unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from models.gcra import LeakyBucket, Time, VirtualScheduling

__all__ = ["Bucket", "Policer"]

Action = Literal["discard", "tag"]


@dataclass(eq=False)
class Bucket:
    """A bucket: what it admits, of which cells, and what is done with the others."""

    gcra: VirtualScheduling | LeakyBucket
    clp0: bool = False
    action: Action = "discard"


@dataclass
class Policer:
    """The verdict on a VC's cells.

    A cell that a bucket finds not to conform is discarded, or tagged if the bucket's action says so and it has CLP=0;
    one that another bucket discards is discarded. A discarded cell uses nothing of any bucket. A tagged one uses
    nothing of the bucket that tagged it nor, as it goes on with CLP=1, of one of CLP=0 cells.

    With ``packets``, once a user cell of an AAL5 frame is discarded, the rest of the frame is, unseen by the buckets.
    Of a frame that lost its first cell the last one is, too; of others the last cell takes its chance, and if it is
    discarded the following frame goes up to its last cell, which would else be joined to what is left of this one.
    """

    buckets: list[Bucket]
    packets: bool = False
    inside: bool = False
    whole: bool = False  # all of the frame goes, its last cell too
    rest: bool = False  # all but the last
    counts: dict[str, int] = field(default_factory=lambda: {"passed": 0, "tagged": 0, "discarded": 0})

    def cell(self, time: Time, clp: int, user: bool, last: bool) -> tuple[str, int]:
        """``("passed", "tagged" or "discarded", CLP as it goes on)``."""
        fate = self._fate(time, clp, user, last)
        self.counts[fate] += 1
        return fate, int(clp or fate == "tagged")

    def _fate(self, time: Time, clp: int, user: bool, last: bool) -> str:
        framed = self.packets and user
        if framed and self.inside and (self.whole or (self.rest and not last)):
            if last:
                self.inside = self.whole = False
            return "discarded"
        fate = self._judged(time, clp)
        if not user:
            return fate
        lost = framed and fate == "discarded"
        if not self.inside or not framed:
            self.inside, self.whole, self.rest = not last, lost and not last, False
        elif last:
            self.inside, self.rest = lost, lost
        elif lost:
            self.rest = True
        return fate

    def _judged(self, time: Time, clp: int) -> str:
        asked = [bucket for bucket in self.buckets if not (bucket.clp0 and clp)]
        objecting = [bucket for bucket in asked if not bucket.gcra.admits(time)]
        if any(clp or bucket.action == "discard" for bucket in objecting):
            return "discarded"
        for bucket in asked:
            if bucket not in objecting and not (bucket.clp0 and objecting):
                assert bucket.gcra.conforms(time)
        return "tagged" if objecting else "passed"
