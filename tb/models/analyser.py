"""An analyser of test cells, written from the description of its measurements and not from the RTL.

Layout and rules are in ``docs/test-cells.md``: cells of 48 octets with a sequence number, a time stamp in 10 ns and a
CRC-16; outcomes of I.356 from the numbers alone. Each missing number is looked at by itself here.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections import Counter
from dataclasses import dataclass, field

__all__ = ["COUNTS", "AnalyserModel", "stamp"]

COUNTS = (
    "received", "in_order", "errored", "lost", "misinserted", "skipped", "pending", "resyncs", "blocks", "secbs",
    "secb_errored", "secb_lost", "secb_misinserted", "delay_sum", "delay_min", "delay_max", "reference",
)  # fmt: skip
"""What it counts, under the names of the registers without ``test_``."""

WORD = 1 << 32
FURTHEST = 1 << 16


def stamp(tick: int) -> int:
    """The time of a tick of 53/299520000 s in 10 ns, modulo 2^32: by a factor of 32 bits, as a counter of hardware."""
    factor = (33125 * 2**28 + 1872) // (2 * 1872)  # 33125/1872 * 2^27, rounded
    return (tick * factor >> 27) % WORD


@dataclass
class AnalyserModel:
    """Judges one cell after the other.

    Members
    -------
    size, limit : int
        A block has ``2**size`` numbers, more than ``limit`` bad outcomes in it make it severely errored.
    width : int
        A class of delays is ``2**width`` times 10 ns wide.
    classes : int
        How many there are; a quarter of them is for delays below the first one.
    first : int or None
        The number of the first cell, where that is known.
    """

    size: int = 7
    limit: int = 4
    width: int = 8
    classes: int = 512
    first: int | None = 0
    counts: Counter[str] = field(default_factory=Counter)
    histogram: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin anew; counts go on."""
        self.expected = self.first
        self.candidate: int | None = None
        self.bad = 0
        self.block: Counter[str] = Counter()
        self.delays: list[int] = []  # least, greatest, first

    def cell(self, payload: bytes, tick: int) -> None:
        """A cell comes in this tick."""
        self.counts["received"] += 1
        if crc_hqx(payload[:46], 0xFFFF) != payload[46] << 8 | payload[47]:
            self.bad += 1
            return
        number, sent = int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")
        if self.expected is None:
            self._anew(number)
        assert self.expected is not None
        gap = (number - self.expected) % WORD
        candidate, self.candidate = self.candidate, None
        if gap >= WORD - FURTHEST:
            self._bad_outcome("misinserted")
        elif gap <= FURTHEST:
            self._in_order(number, gap, (stamp(tick) - sent) % WORD)
        elif number == candidate:
            self.counts["resyncs"] += 1
            self._anew(number)
            self._in_order(number, 0, (stamp(tick) - sent) % WORD)
        else:
            self.counts["skipped"] += 1
            self.candidate = (number + 1) % WORD

    def _anew(self, number: int) -> None:
        """The sequence goes on from here; what was before is not known."""
        self.expected = number
        self.counts["skipped"] += self.bad
        self.bad = 0
        self.block.clear()

    def _in_order(self, number: int, gap: int, delay: int) -> None:
        assert self.expected is not None
        for _ in range(self.bad - gap):
            self._bad_outcome("misinserted")
        for k in range(gap):
            self._bad_outcome("errored" if k < self.bad else "lost")
            self._pass()
        self.bad = 0
        self.counts["in_order"] += 1
        self._pass()
        self._delay(delay)

    def _bad_outcome(self, what: str) -> None:
        self.counts[what] += 1
        self.block[what] += 1

    def _pass(self) -> None:
        """The next number is expected: a block may have ended."""
        assert self.expected is not None
        self.expected = (self.expected + 1) % WORD
        if self.expected % (1 << self.size):
            return
        self.counts["blocks"] += 1
        if sum(self.block.values()) > self.limit:
            self.counts["secbs"] += 1
            for what, count in self.block.items():
                self.counts[f"secb_{what}"] += count
        self.block.clear()

    def _delay(self, delay: int) -> None:
        least, most, first = self.delays or (delay, delay, delay)
        self.delays = [min(least, delay), max(most, delay), first]
        self.counts["delay_sum"] += delay
        variation = (delay - first + WORD // 2) % WORD - WORD // 2
        place = variation // (1 << self.width) + self.classes // 4
        self.histogram[min(max(place, 0), self.classes - 1)] += 1

    def result(self) -> dict[str, int]:
        """All counts by name."""
        least, most, first = self.delays or (WORD - 1, 0, 0)
        now = {"pending": self.bad, "delay_min": least, "delay_max": most, "reference": first}
        return {name: now.get(name, self.counts[name]) for name in COUNTS}

    def distribution(self) -> list[int]:
        """Cells by class of delay."""
        return [self.histogram[k] for k in range(self.classes)]
