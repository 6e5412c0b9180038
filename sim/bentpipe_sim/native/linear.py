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
_MOST_LEAVES = 128
"""A sum of more bits is a leaf of other sums."""

_MOST_OCTETS = 16
"""Tables of a value: 16 of 256 numbers are 16 or 32 KiB."""


Leaf = tuple[Node, int]
"""A bit of a node."""


@dataclass(frozen=True)
class _Sum:
    """A bit: the sum of a constant and of leaves."""

    of: frozenset[Leaf]
    one: bool


class _Sums:
    """The bits of a graph as sums of leaves: bits that are no sums."""

    def __init__(self) -> None:
        self._known: dict[Leaf, _Sum] = {}
        self._below: dict[Node, frozenset[Node]] = {}

    def bit(self, node: Node | None, low: int) -> _Sum:
        """Return a bit of a node that :meth:`add` was called with, if it is a sum; of a constant its lowest bit."""
        if node is None:
            return _Sum(frozenset(), bool(low & 1))
        return self._known.get((node, low)) or _Sum(frozenset({(node, low)}), False)

    def add(self, node: Node) -> None:
        """Work out the bits of a node, after those of its arguments."""
        if not _is_sum(node):
            return
        for low in range(node.width):
            found = self._made(node, low)
            if len(found.of) <= _MOST_LEAVES:
                self._known[node, low] = found
        inner = [self.below(each) for arg in node.args for each, _, _ in arg if each is not None]
        self._below[node] = frozenset({node}).union(*inner)

    def _made(self, node: Node, low: int) -> _Sum:
        if node.op == "^":
            a, b = (self._of(arg, low) for arg in node.args)
            return _Sum(a.of ^ b.of, a.one != b.one)
        if node.op == "r^":
            total: frozenset[Leaf] = frozenset()
            one = False
            for k in range(width_of(node.args[0])):
                a = self._of(node.args[0], k)
                total, one = total ^ a.of, one != a.one
            return _Sum(total, one)
        a = self._of(node.args[0], low)
        return _Sum(a.of, not a.one)

    def _of(self, bits: Bits, at: int) -> _Sum:
        node, low, _ = cut(bits, at, 1)[0]
        return self.bit(node, low)

    def below(self, node: Node) -> frozenset[Node]:
        """Return the sums that a node is made of, itself included."""
        return self._below.get(node, frozenset())


def _is_sum(node: Node) -> bool:
    return node.op in ("^", "~", "r^") or (node.op == "all" and node.data == (False,))


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
            self.sums.add(node)
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
        inner = {node for each in sums for node in self.sums.below(each)}
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
        used: set[Leaf] = {leaf for row in rows for leaf in row.of}
        by_octet: dict[tuple[Node, int], list[int]] = {}
        for node, low in sorted(used, key=lambda place: (place[0].key, place[1])):
            by_octet.setdefault((node, low // 8), []).append(low)
        singles: list[tuple[Bits, int]] = []
        for (node, _), lows in by_octet.items():
            columns = tuple(_column(rows, (node, low)) for low in range(lows[0], lows[-1] + 1))
            octet = cut(self.done[node], lows[0], len(columns))
            if len(columns) > 1:
                yield octet, columns
            else:
                singles += [(octet, column) for column in columns]
        for k in range(0, len(singles), 8):
            part = singles[k : k + 8]
            yield cat(bit for bit, _ in part), tuple(column for _, column in part)


def _column(rows: list[_Sum], leaf: Leaf) -> int:
    """Return the bits to which a leaf is added."""
    return sum((leaf in row.of) << k for k, row in enumerate(rows))


def _bits_of(bits: Bits) -> Iterator[tuple[Node | None, int]]:
    for node, low, width in bits:
        for k in range(width):
            yield node, low >> k if node is None else low + k
