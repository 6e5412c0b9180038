"""Sums modulo 2 of many bits, as a CRC has them, by tables of octets rather than one by one.

Start with :func:`with_tables`. A value of which many bits are exclusive ors becomes one node ``table``: for each octet
of what it depends on, a number from a table of the octet's values, all of them added modulo 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .design import Design, Write, topological
from .graph import Bits, Graph, Node, Piece, cat, cut, width_of

__all__ = ["with_tables"]

_LEAST_SUMS = 8
"""Bits of a value that are sums; below that it stays as it is."""

_GAIN = 10
"""Instructions that an octet's table has to replace: a value of many pieces is put together first."""

_WIDEST = 64
_MOST_OCTETS = 16
"""Tables of a value: 16 of 256 numbers are 16 or 32 KiB."""


@dataclass(frozen=True)
class _Sum:
    """A bit: the sum of a constant and of bits, each a 1 in ``of`` at its index."""

    of: int
    one: bool


class _Sums:
    """The bits of a graph as sums of leaves: bits that are no sums."""

    def __init__(self) -> None:
        self.leaves: list[tuple[Node, int]] = []
        self._index: dict[tuple[Node, int], int] = {}
        self._known: dict[tuple[Node, int], _Sum] = {}
        self._below: dict[Node, frozenset[Node]] = {}

    def bit(self, node: Node | None, low: int) -> _Sum:
        """Return a bit of a node, whose arguments' bits were asked for before; of a constant its lowest bit."""
        if node is None:
            return _Sum(0, bool(low & 1))
        found = self._known.get((node, low))
        if found is None:
            found = self._known[node, low] = self._made(node, low)
        return found

    def _made(self, node: Node, low: int) -> _Sum:
        if node.op == "^":
            a, b = (self._of(arg, low) for arg in node.args)
            return _Sum(a.of ^ b.of, a.one != b.one)
        if node.op == "~" or (node.op == "all" and node.data == (False,)):
            a = self._of(node.args[0], low)
            return _Sum(a.of, not a.one)
        if node.op == "r^":
            total, one = 0, False
            for k in range(width_of(node.args[0])):
                a = self._of(node.args[0], k)
                total, one = total ^ a.of, one != a.one
            return _Sum(total, one)
        index = self._index.setdefault((node, low), len(self.leaves))
        if index == len(self.leaves):
            self.leaves.append((node, low))
        return _Sum(1 << index, False)

    def _of(self, bits: Bits, at: int) -> _Sum:
        node, low, _ = cut(bits, at, 1)[0]
        return self.bit(node, low)

    def below(self, node: Node) -> frozenset[Node]:
        """Return the sums that a node is made of, itself included."""
        if node.op not in ("^", "~", "r^") and not (node.op == "all" and node.data == (False,)):
            return frozenset()
        found = self._below.get(node)
        if found is None:
            inner = [self.below(each) for arg in node.args for each, _, _ in arg if each is not None]
            found = self._below[node] = frozenset({node}).union(*inner)
        return found


def with_tables(design: Design) -> Design:
    """Return the same design with tables where they are faster."""
    return _Rewriter(design).run()


class _Rewriter:
    def __init__(self, design: Design):
        self.design, self.graph, self.sums = design, Graph(), _Sums()
        self.done: dict[Node, Bits] = {}
        self.made: dict[Bits, Bits] = {}

    def run(self) -> Design:
        design = self.design
        for node in topological(design.roots()):
            for at in range(node.width):
                self.sums.bit(node, at)
            self.sums.below(node)
            self.done[node] = self.graph.make(node.op, node.width, tuple(map(self.value, node.args)), node.data)
        made = Design(self.graph, design.inputs, memories=design.memories)
        made.outputs = {name: self.value(bits) for name, bits in design.outputs.items()}
        made.registers = {register: self.value(bits) for register, bits in design.registers.items()}
        made.writes = [
            Write(each.memory, self.value(each.enable), self.value(each.address), tuple(map(self.value, each.data)))
            for each in design.writes
        ]
        made.deciding = [(self.value(bits), seldom) for bits, seldom in design.deciding]
        return made

    def value(self, bits: Bits) -> Bits:
        """Return a value in the new graph."""
        found = self.made.get(bits)
        if found is None:
            found = self.made[bits] = self.table(bits) or cat(map(self.piece, bits))
        return found

    def piece(self, piece: Piece) -> Bits:
        node, low, width = piece
        return (piece,) if node is None else cut(self.done[node], low, width)

    def table(self, bits: Bits) -> Bits | None:
        """Return the node ``table`` for a value; None: it stays as it is."""
        sums = [node for node, _, _ in bits if node is not None and node.op in ("^", "r^")]
        width = width_of(bits)
        if len(sums) < _LEAST_SUMS or width > _WIDEST:
            return None
        rows = [self.sums.bit(*bit) for bit in _bits_of(bits)]
        octets = list(self.octets(rows))
        inner = frozenset[Node]().union(*map(self.sums.below, sums))
        before = 2 * len(bits) + 2 * sum(len(arg) for node in inner for arg in node.args)
        if len(octets) > _MOST_OCTETS or before < _GAIN * len(octets):
            return None
        tables: dict[tuple[int, ...], Bits] = {}  # by their columns: octets with the same ones are added before
        for octet, columns in octets:
            there = tables.get(columns)
            tables[columns] = octet if there is None else self.graph.make("^", len(columns), (there, octet))
        base = sum(row.one << k for k, row in enumerate(rows))
        return self.graph.node("table", width, tuple(tables.values()), (base, tuple(tables)))

    def octets(self, rows: list[_Sum]) -> Iterator[tuple[Bits, tuple[int, ...]]]:
        """Yield the octets on which bits depend, and for each bit of them the bits to which it is added."""
        used = 0
        for row in rows:
            used |= row.of
        places = [self.sums.leaves[k] for k in range(used.bit_length()) if used >> k & 1]
        by_octet: dict[tuple[Node, int], list[int]] = {}
        for node, low in sorted(places, key=lambda place: (place[0].key, place[1])):
            by_octet.setdefault((node, low // 8), []).append(low)
        singles: list[tuple[Bits, int]] = []
        for (node, _), lows in by_octet.items():
            columns = tuple(self.column(rows, node, low) for low in range(lows[0], lows[-1] + 1))
            octet = cut(self.done[node], lows[0], len(columns))
            if len(columns) > 1:
                yield octet, columns
            else:
                singles.append((octet, columns[0]))
        for k in range(0, len(singles), 8):
            part = singles[k : k + 8]
            yield cat(bit for bit, _ in part), tuple(column for _, column in part)

    def column(self, rows: list[_Sum], node: Node, low: int) -> int:
        index = self.sums._index.get((node, low))
        return 0 if index is None else sum((row.of >> index & 1) << k for k, row in enumerate(rows))


def _bits_of(bits: Bits) -> Iterator[tuple[Node | None, int]]:
    for node, low, width in bits:
        for k in range(width):
            yield node, low >> k if node is None else low + k
