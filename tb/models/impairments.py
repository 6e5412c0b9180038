"""Impairments of a stream of test cells, and the counts that an analyser must have after them.

Cells are lost, damaged, misinserted, doubled, delayed and put out of order, in arrays of millions. The truth is kept of
each. An analyser that knows the sequence numbers alone differs from it by cancellations that have names, and by nothing
else (:meth:`Truth.seen`).
"""

from __future__ import annotations

from binascii import crc_hqx
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

__all__ = ["GOOD", "Impairments", "Truth", "impair"]

GOOD, ERRORED, FOREIGN, TWICE, LATE, STRANGER = range(6)
"""What a cell is that comes: one in order; damaged; of another VC, without a right CRC-16; the second of its number;
behind others that were sent after it; a test cell of another sequence."""


@dataclass(frozen=True)
class Impairments:
    """Probabilities for each cell, and delays in ticks.

    Members
    -------
    loss, header, burst, error, foreign, twice, late, stranger : float
        Of a cell: it is lost; its header is damaged; it is the first of a burst of lost ones; it is damaged; a cell is
        misinserted behind it; it comes twice; it is put behind up to 8 others; a test cell of another sequence is
        misinserted behind it.
    burst_cells : float
        Mean length of bursts.
    delay, jitter : int
        A cell comes after ``delay`` and up to ``jitter`` ticks, and not before the one in front of it.
    """

    loss: float = 0.005
    header: float = 0.002
    burst: float = 0.0005
    error: float = 0.01
    foreign: float = 0.005
    twice: float = 0.003
    late: float = 0.002
    stranger: float = 0.001
    burst_cells: float = 8
    delay: int = 700
    jitter: int = 40


@dataclass
class Truth:
    """The impairments that happened, and the differences that an analyser may have.

    Members
    -------
    sent, lost, errored, misinserted : int
        Cells: the second one of a number, and cells of others, are misinserted.
    cancelled : int
        Cells of others without a right CRC-16 in gaps in which cells are missing: such a pair looks like an errored
        cell.
    reordered : int
        Cells out of order: each looks like one that is lost and one that is misinserted.
    strangers : int
        Cells of other sequences: they are not judged.
    """

    sent: int = 0
    lost: int = 0
    errored: int = 0
    misinserted: int = 0
    cancelled: int = 0
    reordered: int = 0
    strangers: int = 0

    def add(self, other: Truth) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def seen(self) -> dict[str, int]:
        """Return the counts of an analyser."""
        return {
            "in_order": self.sent - self.lost - self.errored - self.reordered,
            "errored": self.errored + self.cancelled,
            "lost": self.lost + self.reordered - self.cancelled,
            "misinserted": self.misinserted + self.reordered - self.cancelled - self.strangers,
            "skipped": self.strangers,
        }


def impair(rng: np.random.Generator, sent: np.ndarray, what: Impairments, last: int) -> tuple[np.ndarray, Truth]:
    """Return the cells that come of those ``sent``, all behind tick ``last``, and what happened. The first and the last
    cell sent come as they are: nothing is open between two calls."""
    count = len(sent)
    draw = rng.random((8, count))
    draw[:, [0, -1]] = 1
    lost = draw[0] < what.loss
    for start in np.flatnonzero(draw[1] < what.burst):
        lost[start : min(start + rng.geometric(1 / what.burst_cells), count - 1)] = True
    header = ~lost & (draw[2] < what.header)
    errored = ~lost & ~header & (draw[3] < what.error)
    late = ~lost & ~header & ~errored & (draw[4] < what.late)
    late[-10:] = False
    twice = ~lost & ~header & ~errored & ~late & (draw[5] < what.twice)
    came = np.flatnonzero(~lost)
    places = came + np.where(late[came], rng.integers(1, 9, len(came)) + 0.3, 0)
    pieces: list[tuple[np.ndarray, np.ndarray, Any]] = [
        (places, sent[came], np.where(errored[came], ERRORED, np.where(late[came], LATE, GOOD)))
    ]
    again = np.flatnonzero(twice)
    pieces.append((again + 0.2 + rng.integers(0, 5, len(again)), sent[again], TWICE))
    for kind, chance in ((FOREIGN, draw[6] < what.foreign), (STRANGER, draw[7] < what.stranger)):
        behind = np.flatnonzero(chance[:-1])
        cells = sent[behind].copy()
        cells["payload"] = _others(rng, sent, behind, kind)
        pieces.append((behind + rng.uniform(0.4, 0.9, len(behind)), cells, kind))
    order = np.argsort(np.concatenate([place for place, _, _ in pieces]), kind="stable")
    cells = np.concatenate([found for _, found, _ in pieces])[order]
    kinds = np.concatenate([np.broadcast_to(kind, len(place)) for place, _, kind in pieces])[order]
    for k in np.flatnonzero(kinds == FOREIGN).tolist():  # by chance, of 65536 one
        octets = cells["payload"][k].tobytes()
        if crc_hqx(octets[:46], 0xFFFF) == int.from_bytes(octets[46:], "big"):
            kinds[k] = STRANGER
    numbers = np.concatenate([np.arange(count)[came], again, *(np.full(len(piece[0]), -1) for piece in pieces[2:])])
    numbers = numbers[order]
    for hit in np.flatnonzero(kinds == ERRORED):
        bits = rng.choice(384, rng.integers(1, 4), replace=False)  # the CRC-16 finds every three
        for bit in bits:
            cells["payload"][hit, bit // 8] ^= 1 << bit % 8
    # A damaged header: the cell is lost on its way into the interface
    gone = np.isin(numbers, np.flatnonzero(header)) & (kinds == GOOD)
    by_hec = rng.random(len(cells)) < 0.5
    cells["hec_error"][gone & by_hec] = 1
    cells["header"][gone & ~by_hec] ^= 1 << 9
    ticks = cells["tick"].astype(np.int64) + what.delay + rng.integers(0, what.jitter + 1, len(cells))
    steps = np.arange(len(cells))
    ticks = np.maximum.accumulate(np.maximum(ticks, last + 1) - steps) + steps
    cells["tick"] = ticks
    return cells, _truth(count, kinds[~gone], numbers[~gone], lost | header)


def _others(rng: np.random.Generator, sent: np.ndarray, behind: np.ndarray, kind: int) -> np.ndarray:
    """Payloads of cells that are misinserted: noise, or a right test cell with a number that is far away."""
    from bentpipe_hdl.test_cells.cells import TestCell, pack

    if kind == FOREIGN:
        return rng.integers(0, 256, (len(behind), 48), np.uint8)
    made = []
    for k in behind:
        number = int.from_bytes(sent["payload"][k, :4].tobytes(), "big")
        far = int(rng.integers(1 << 20, (1 << 32) - (1 << 20)))
        made.append(np.frombuffer(pack(TestCell((number + far) % (1 << 32), 5)), np.uint8))
    return np.array(made, np.uint8).reshape(len(behind), 48)


def _truth(count: int, kinds: np.ndarray, numbers: np.ndarray, lost: np.ndarray) -> Truth:
    truth = Truth(count, int(lost.sum()))
    expected = errored = foreign = 0
    for kind, number in zip(kinds.tolist(), numbers.tolist(), strict=True):
        if kind == GOOD:
            truth.cancelled += min(number - expected - errored, foreign)
            expected, errored, foreign = number + 1, 0, 0
        elif kind == ERRORED:
            truth.errored += 1
            errored += 1
        elif kind == LATE and number >= expected:  # it has overtaken none after all
            truth.cancelled += min(number - expected - errored, foreign)
            expected, errored, foreign = number + 1, 0, 0
        elif kind == LATE:
            truth.reordered += 1
        else:
            truth.misinserted += 1
            truth.strangers += kind == STRANGER
            foreign += kind == FOREIGN
    return truth
