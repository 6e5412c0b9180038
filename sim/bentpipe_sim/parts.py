"""A network is cut into parts here, each of which has an event loop of its own (``csrc/parts.hpp``).

Which networks and runs are not cut, whatever stands here, is decided in one place: ``Parts::rule`` and
``Parts::rule_of_run`` in ``csrc/parts.cpp``.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final

from bentpipe_hdl.ticks import round_ticks

from .errors import NetworkError
from .nodes import Link, Node

__all__ = ["MOST", "THREADS", "Wire", "chosen_threads", "number_of", "part_of", "plan"]

THREADS: Final = "BENTPIPE_THREADS"
"""The variable with the number of threads, for this process and those it starts."""

Wire = tuple[Node, Node, int]
"""From a node to a node, and the ticks from the one in which a cell is given to its arrival, at least."""

_Pieces = list[tuple[int, int]]
"""What cannot be cut, and how many nodes it has."""

MOST: Final = 1024
"""Parts and threads, at most."""
_LEAST: Final = round_ticks(5_000_000)
"""Ticks of a wire that is cut, at least: 5 us. A shorter one hands over too few cells at a time."""
_LONG: Final = round_ticks(1_000_000_000)
"""The same in a network of few nodes: 1 ms."""
_NODES: Final = 8
"""A part of up to so many nodes has the faster event queue (``csrc/small_event_queue.hpp``)."""
_UNEVEN: Final = 0.02
"""A part is divided if that makes the shares of threads more even by more than this."""
_FEW: Final = 18
"""Nodes up to which a network fits into a core's first-level cache. Parts then save time only with several threads and
long wires."""


def chosen_threads() -> int | None:
    """Return the threads of ``$BENTPIPE_THREADS``; None: as many as are useful.

    Raises
    ------
    NetworkError
        It is no number of threads.
    """
    named = os.environ.get(THREADS, "")
    if not named:
        return None
    return number_of(THREADS, int(named) if named.isdecimal() else named)


def number_of(what: str, value: Any) -> int | None:
    """Return a number of threads or parts, or None.

    Raises
    ------
    NetworkError
        It is neither.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST):
        return value
    raise NetworkError(f"{what} must be a number from 1 to {MOST}, not {value!r}")


def plan(
    nodes: Sequence[Node],
    wires: Sequence[Wire],
    together: Iterable[Sequence[Node]],
    threads: int | None,
    parts: int | None,
) -> tuple[int, list[int]]:
    """Return the number of threads, and the part of each node (:func:`part_of`); as many as are useful unless they
    are given."""
    threads = threads or chosen_threads() or _cores()
    if parts is not None:
        return threads, part_of(nodes, wires, together, parts)
    if len(nodes) <= _FEW:  # a part for each thread
        return threads, part_of(nodes, wires, together, threads, _LONG)
    return threads, part_of(nodes, wires, together, threads=threads)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def part_of(
    nodes: Sequence[Node],
    wires: Sequence[Wire],
    together: Iterable[Sequence[Node]],
    count: int | None = None,
    least: int = _LEAST,
    threads: int = 1,
) -> list[int]:
    """Return the part of each node, numbered from 0 on.

    Wires of less than the ``least`` ticks and those into a link stay within a part, and so does what has to be
    ``together``. Then parts with the shortest wires between them become one, as long as it has no more than 8 nodes;
    with a ``count``, no more than its share of the nodes, until there are so many parts. They are numbered in the order
    of their first nodes, and a thread has parts with neighbouring numbers (``csrc/share.hpp``). So one that would give
    a thread more nodes than another is divided into two with neighbouring numbers.
    """
    groups = _Groups(len(nodes))
    for a, b, ticks in wires:
        if isinstance(b, Link) or ticks < least:
            groups.join(a.index, b.index)
    for several in together:
        for node in several[1:]:
            groups.join(several[0].index, node.index)
    whole = [groups.of(node.index) for node in nodes]  # what cannot be cut
    most = _NODES if count is None else -(-len(nodes) // count)
    for a, b, _ in sorted(wires, key=lambda wire: wire[2]):
        one, other = groups.of(a.index), groups.of(b.index)
        if one != other and groups.sizes[one] + groups.sizes[other] <= most:
            groups.join(one, other)
    if count is not None:
        groups.reduce(count)
    parts: dict[int, dict[int, int]] = {}  # the pieces of each, and their nodes
    for node, piece in zip(nodes, whole, strict=True):
        pieces = parts.setdefault(groups.of(node.index), {})
        pieces[piece] = pieces.get(piece, 0) + 1
    connected = {part for a, b, _ in wires for part in {groups.of(a.index), groups.of(b.index)}
                 if groups.of(a.index) != groups.of(b.index)}  # fmt: skip
    divided = _divided([(part in connected, list(pieces.items())) for part, pieces in parts.items()], threads)
    numbers = {piece: number for number, pieces in enumerate(divided) for piece, _ in pieces}
    return [numbers[piece] for piece in whole]


def _divided(parts: list[tuple[bool, _Pieces]], threads: int) -> list[_Pieces]:
    """Return the parts. Those that would make threads' shares uneven are divided, if they are connected with others:
    whole networks are shared turn by turn."""
    share = sum(size for _, pieces in parts for _, size in pieces) / threads
    found: list[_Pieces] = []
    before, borders = 0, deque(share * thread for thread in range(1, threads))
    for connected, whole in parts:
        pieces = whole
        end = before + sum(size for _, size in pieces)
        while borders and borders[0] < end:
            border = borders.popleft()
            after = list(accumulate((size for _, size in pieces), initial=before))
            off = min(border - before, end - border)
            cut = min(range(len(after)), key=lambda k: abs(after[k] - border))
            if connected and off - abs(after[cut] - border) > _UNEVEN * share:
                found.append(pieces[:cut])
                pieces, before = pieces[cut:], after[cut]
        found.append(pieces)
        before = end
    return found


class _Groups:
    """Disjoint sets of nodes (union-find)."""

    def __init__(self, count: int) -> None:
        self._before = list(range(count))
        self.sizes = [1] * count

    def of(self, index: int) -> int:
        while self._before[index] != index:
            self._before[index] = index = self._before[self._before[index]]
        return index

    def join(self, one: int, other: int) -> None:
        one, other = sorted((self.of(one), self.of(other)))
        if one != other:
            self._before[other] = one
            self.sizes[one] += self.sizes[other]

    def reduce(self, count: int) -> None:
        """Join the two smallest until there are no more than so many."""
        left = sorted({self.of(k) for k in range(len(self.sizes))}, key=lambda k: (self.sizes[k], k))
        while len(left) > count:
            one, other = left[:2]
            self.join(one, other)
            left = sorted([self.of(one), *left[2:]], key=lambda k: (self.sizes[k], k))
