"""A flow's segments over time, by number, as the papers' sequence plots have them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

from bentpipe.results.schema import RunResult

__all__ = ["Segments", "segments_of"]

_PS: Final = 1e12


@dataclass(frozen=True, slots=True)
class Segments:
    """The segments that a flow sent.

    Members
    -------
    mss : int
        Octets of a segment: the most frequent step of its offsets; 1 with fewer than two.
    sent, again : tuple of (list of float, list of float)
        Times in s, and numbers of segments from 1: of those sent for the first time, and of those sent again.
    marks : dict
        Times in s of each other kind of event, as "timeout" and "fast_retransmit".
    """

    mss: int
    sent: tuple[list[float], list[float]]
    again: tuple[list[float], list[float]]
    marks: dict[str, list[float]]


def segments_of(result: RunResult, name: str) -> Segments | None:
    """Return the segments of the flow ``name``; None if none are recorded."""
    events = [(t / _PS, kind, value) for series, t, kind, value in result.trace.events if series == name]
    offsets = sorted({value for _, kind, value in events if kind == "segment"})
    if not offsets:
        return None
    steps = [b - a for a, b in itertools.pairwise(offsets)]
    mss = max(set(steps), key=steps.count) if steps else 1
    seen: set[int] = set()
    found = Segments(mss, ([], []), ([], []), {})
    for when, kind, value in events:
        if kind != "segment":
            found.marks.setdefault(kind, []).append(when)
            continue
        times, numbers = found.again if value in seen else found.sent
        seen.add(value)
        times.append(when)
        numbers.append(value / mss + 1)
    return found
