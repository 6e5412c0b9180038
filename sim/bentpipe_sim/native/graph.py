"""Values of a design as a graph that folds while it is built.

A value (:data:`Bits`) is a row of pieces of nodes. Equal nodes are one; what is constant, or is just another value,
never becomes a node. So a design with some of its inputs or registers known is the same design built again
(:meth:`Graph.copy`), and what cannot happen then is not there any more.

Truth is one operation, ``all``: some bits are 1 and others 0. So ``m.If``, ``m.Elif``, ``&``, ``|`` and ``~`` of one
bit are alike, and conditions can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = [
    "Bits",
    "Graph",
    "Literal",
    "Node",
    "cat",
    "constant",
    "constant_of",
    "cut",
    "distinct",
    "negated",
    "replaced",
    "whole_node",
    "width_of",
]


class Node:
    """``op`` of ``args``; ``data`` is what else there is to it, ``key`` its place in the order of making."""

    __slots__ = ("args", "data", "key", "op", "width")

    def __init__(self, op: str, width: int, args: tuple[Bits, ...], data: Any, key: int):
        self.op, self.width, self.args, self.data, self.key = op, width, args, data, key

    def __repr__(self) -> str:
        return f"{self.op}#{self.key}"


Piece = tuple[Node | None, int, int]
"""Bits of a node: ``(node, lowest, how many)``; of a constant ``(None, value, how many)``."""

Bits = tuple[Piece, ...]
"""A value, its lowest bits first, in as few pieces as there can be."""

Literal = tuple[Node, int, bool]
"""A bit of a node that is 1 or 0."""


def constant(value: int, width: int) -> Bits:
    """Return bits with a value; none where the width is 0."""
    return ((None, value & ((1 << width) - 1), width),) if width else ()


def constant_of(bits: Bits) -> int | None:
    """Return the number that these bits are, if they are."""
    if not bits:
        return 0
    return bits[0][1] if len(bits) == 1 and bits[0][0] is None else None


def width_of(bits: Bits) -> int:
    """Return the number of bits."""
    return sum(piece[2] for piece in bits)


def cat(parts: Iterable[Bits]) -> Bits:
    """Concatenate values, the first in the lowest bits."""
    found: list[Piece] = []
    for part in parts:
        for node, low, width in part:
            if found and found[-1][0] is node:
                _, low_before, width_before = found[-1]
                if node is None:
                    found[-1] = (None, low_before | low << width_before, width_before + width)
                    continue
                if low_before + width_before == low:
                    found[-1] = (node, low_before, width_before + width)
                    continue
            found.append((node, low, width))
    return tuple(found)


def cut(bits: Bits, low: int, width: int) -> Bits:
    """Return ``width`` bits from ``low`` on; those beyond the end are 0."""
    if len(bits) == 1:
        node, first, size = bits[0]
        if node is not None and width > 0 and low + width <= size:
            return bits if width == size else ((node, first + low, width),)
    found: list[Piece] = []
    at, high = 0, low + width
    for node, first, size in bits:
        a, b = max(low, at), min(high, at + size)
        if a < b:
            if node is None:
                found.append((None, first >> (a - at) & ((1 << (b - a)) - 1), b - a))
            else:
                found.append((node, first + a - at, b - a))
        at += size
    if high > max(at, low):
        found.append((None, 0, high - max(at, low)))
    return cat([tuple(found)])


def whole_node(bits: Bits) -> Node | None:
    """Return the node of which a value is all bits, if it is."""
    node, _, width = bits[0] if len(bits) == 1 else (None, 0, 0)
    return node if node is not None and width == node.width else None


def replaced(bits: Bits, node: Node, by: Bits) -> Bits:
    """Return a value with another one in the place of a node's."""
    return cat(cut(by, low, width) if each is node else ((each, low, width),) for each, low, width in bits)


def distinct(a: Bits, b: Bits) -> bool:
    """Return whether two numbers are never the same: some bit of one is the opposite of the other's."""
    return any(x == (y[0], y[1], not y[2]) for x, y in zip(_by_bit(a), _by_bit(b), strict=False))


def _by_bit(bits: Bits) -> list[tuple[Node | None, int, bool]]:
    """Return for each bit the node's bit that it equals, or whose complement it is; for constants ``(None, 0,
    value)``."""
    found: list[tuple[Node | None, int, bool]] = []
    for node, low, width in bits:
        if node is None:
            found += [(None, 0, bool(low >> k & 1)) for k in range(width)]
        elif node.op == "^" and (turned := constant_of(node.args[1])) is not None:
            inner = _by_bit(node.args[0])
            found += [(*inner[k][:2], inner[k][2] != bool(turned >> k & 1)) for k in range(low, low + width)]
        else:
            found += [(node, low + k, True) for k in range(width)]
    return found


def negated(literal: Literal) -> Literal:
    """Return the literal that holds where this one does not."""
    return literal[0], literal[1], not literal[2]


class Graph:
    """A graph of nodes, in which equal nodes are one."""

    NARROWED = ("+", "-", "*", "&", "|", "^", "~", "<<")
    """Operations whose low bits depend on low bits alone."""

    def __init__(self) -> None:
        self._nodes: dict[tuple, Node] = {}
        self.never: list[frozenset[Literal]] = []
        """What never holds at once."""

    def node(self, op: str, width: int, args: tuple[Bits, ...] = (), data: Any = None) -> Bits:
        """Return all bits of a node that is not folded."""
        key = (op, width, args, data)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Node(op, width, args, data, len(self._nodes))
        return ((found, 0, width),) if width else ()

    # Truth

    def all(self, literals: Iterable[tuple[Bits, bool]]) -> Bits:
        """Return a bit that is 1 if each of these bits has the given value."""
        kept: dict[tuple[Node, int], bool] = {}
        waiting = list(literals)[::-1]
        while waiting:
            bit, wanted = waiting.pop()
            node, low, _ = bit[0]
            if node is None:
                if bool(low) != wanted:
                    return constant(0, 1)
            elif node.op == "all" and (wanted or len(node.args) == 1):
                inner = list(zip(node.args, node.data, strict=True))
                if not wanted:
                    inner = [(inner[0][0], not inner[0][1])]
                waiting += inner[::-1]
            elif kept.setdefault((node, low), wanted) != wanted:
                return constant(0, 1)
            if not waiting and not self._reduced(kept, waiting):
                return constant(0, 1)
        if not kept:
            return constant(1, 1)
        held = {(node, low, wanted) for (node, low), wanted in kept.items()}
        for never in self.never:
            rest = never - held
            if not rest:
                return constant(0, 1)
            if len(rest) == 1:
                ((node, low, wanted),) = rest
                if kept.get((node, low)) == (not wanted) and len(kept) > 1:
                    del kept[node, low]  # it cannot be otherwise where the others hold
                    held.discard((node, low, not wanted))
        args = tuple(((node, low, 1),) for node, low in kept)
        data = tuple(kept.values())
        if len(args) == 1 and data[0]:
            return args[0]
        return self.node("all", 1, args, data)

    @staticmethod
    def _reduced(kept: dict[tuple[Node, int], bool], waiting: list[tuple[Bits, bool]]) -> bool:
        """Simplify parts of a conjunction that each say "not all of these bits", by the other parts.

        Where one bit remains, that bit is asked for instead (``waiting``). Return False if nothing remains of a part:
        then the conjunction never holds.
        """
        for (node, low), wanted in list(kept.items()):
            if wanted or node.op != "all":
                continue
            parts = [(bit, is_one, _known(bit, kept)) for bit, is_one in zip(node.args, node.data, strict=True)]
            if any(known is not None and known != is_one for _, is_one, known in parts):
                del kept[node, low]
                continue
            rest = [(bit, not is_one) for bit, is_one, known in parts if known is None]
            if not rest:
                return False
            if len(rest) == 1:
                del kept[node, low]
                waiting += rest
        return True

    def forbid(self, literals: Iterable[tuple[Bits, bool]]) -> None:
        """Declare that these bits never all have these values: a conjunction of them made from now on is 0."""
        node = whole_node(self.all(literals))
        if node is not None and node.op == "all":
            parts = [(*arg[0][:2], wanted) for arg, wanted in zip(node.args, node.data, strict=True)]
            self.never.append(frozenset((part, low, wanted) for part, low, wanted in parts if part is not None))

    def no(self, bit: Bits) -> Bits:
        return self.all([(bit, False)])

    def any(self, bits: Iterable[Bits]) -> Bits:
        return self.no(self.all((bit, False) for bit in bits))

    # The rest

    def make(self, op: str, width: int, args: tuple[Bits, ...], data: Any = None) -> Bits:
        """Return the result of an operation, as simple as possible."""
        match op:
            case "all":
                return self.all(zip(args, data, strict=True))
            case "choose":
                return self.choose(args, data)
            case "m":
                return self.choose((args[2], args[0], args[1]), "eager")
            case "==":
                return self.equal(*args)
            case "!=":
                return self.no(self.equal(*args))
            case "b" | "r|":
                return self.no(self.equal(args[0], constant(0, width_of(args[0]))))
            case "r&":
                return self.equal(args[0], constant(-1, width_of(args[0])))
            case "u>" | "s>":
                return self.make(op[0] + "<", 1, args[::-1])
            case "u>=" | "s>=":
                return self.no(self.make(op[0] + "<", 1, args))
            case "u<=" | "s<=":
                return self.no(self.make(op[0] + "<", 1, args[::-1]))
            case "&" | "|" | "^" | "~":
                return self.bitwise(op, width, args)
            case "-" if len(args) == 1:
                return self.make("-", width, (constant(0, width), args[0]))
            case "<<" | "u>>" | "s>>":
                return self.shift(op, width, args)
            case "part":
                return self.part(width, args, data)
        numbers = [constant_of(arg) for arg in args]
        if None not in numbers and op in _NUMBERS and args:
            return constant(_NUMBERS[op](*numbers, width_of(args[0])), width)  # type: ignore[arg-type]
        if op in ("+", "-") and numbers[1] == 0:
            return args[0]
        if op == "+" and numbers[0] == 0:
            return args[1]
        if op == "s<" and width_of(args[0]) > 64:  # with the sign as the highest bit of a larger number
            high = width_of(args[0]) - 1
            return self.make("u<", 1, tuple(cat([cut(a, 0, high), self.no(cut(a, high, 1))]) for a in args))
        if op == "u<" and (numbers[1] == 0 or args[0] == args[1]):
            return constant(0, 1)
        return self.node(op, width, args, data)

    def choose(self, args: tuple[Bits, ...], data: Any = None) -> Bits:
        """Return the value that the conditions choose.

        ``args`` are the value without a condition that holds, then conditions and values; later ones override earlier
        ones.
        """
        default, width = args[0], width_of(args[0])
        kept: list[tuple[Bits, Bits]] = []
        for condition, value in zip(args[1::2], args[2::2], strict=True):
            holds = constant_of(condition)
            if holds == 0:
                continue
            if holds:
                default, kept = value, []
            elif kept or value != default:
                kept.append((condition, value))
        default, kept = self.merged(default, kept)
        if not kept:
            return default
        if width == 1:
            values = [constant_of(value) for _, value in kept]
            if constant_of(default) == 0 and all(value == 1 for value in values):
                return self.any(condition for condition, _ in kept)
            if constant_of(default) == 1 and all(value == 0 for value in values):
                return self.all((condition, False) for condition, _ in kept)
        return self.node("choose", width, (default, *(bits for pair in kept for bits in pair)), data)

    def merged(self, default: Bits, kept: list[tuple[Bits, Bits]]) -> tuple[Bits, list[tuple[Bits, Bits]]]:
        """Merge assignments of parts of a word that follow each other under the same condition."""
        while kept:
            inner = whole_node(default)
            if inner is None or inner.op != "choose" or inner.data or inner.args[-2] != kept[0][0]:
                break
            kept = [(kept[0][0], replaced(kept[0][1], inner, inner.args[-1])), *kept[1:]]
            default = self.choose(inner.args[:-2])
            if kept[0][1] == default:
                kept = kept[1:]
        return default, kept

    def equal(self, a: Bits, b: Bits) -> Bits:
        """Return a bit that is 1 if both are equal; bits that are the same in both are not compared."""
        left: list[tuple[Bits, Bits]] = []
        at = 0
        for width in _common(a, b):
            x, y = cut(a, at, width), cut(b, at, width)
            at += width
            if x == y:
                continue
            if constant_of(x) is not None and constant_of(y) is not None:
                return constant(0, 1)
            left.append((x, y))
        if not left:
            return constant(1, 1)
        x, y = cat(x for x, _ in left), cat(y for _, y in left)
        if constant_of(x) is not None or (constant_of(y) is None and _order(y) < _order(x)):
            x, y = y, x
        value = constant_of(y)
        if width_of(x) == 1 and value is not None:
            return self.all([(x, bool(value))])
        return self.node("==", 1, (x, y))

    def bitwise(self, op: str, width: int, args: tuple[Bits, ...]) -> Bits:
        if width == 1 and op != "^":
            if op == "~":
                return self.no(args[0])
            return self.all((arg, True) for arg in args) if op == "&" else self.any(args)
        numbers = [constant_of(arg) for arg in args]
        ones = (1 << width) - 1
        if op == "~":
            return constant(~numbers[0], width) if numbers[0] is not None else self.node(op, width, args)
        for a, number in ((0, numbers[1]), (1, numbers[0])):
            if number is None:
                continue
            if number == (ones if op == "&" else 0):
                return args[a]
            if number == (0 if op == "&" else ones):
                return self.make("~", width, (args[a],)) if op == "^" else constant(number, width)
            if numbers[a] is not None:
                return constant(_NUMBERS[op](number, numbers[a], width), width)  # type: ignore[arg-type]
        if op == "^" and width == 1 and args[0] == args[1]:
            return constant(0, 1)
        return self.node(op, width, args)

    def shift(self, op: str, width: int, args: tuple[Bits, ...]) -> Bits:
        by = constant_of(args[1])
        if by is None:
            return self.node(op, width, args)
        by = min(by, width)
        if op == "<<":
            return cat([constant(0, by), cut(args[0], 0, width - by)])
        sign = cut(args[0], width - 1, 1) if op == "s>>" else constant(0, 1)
        return cat([cut(args[0], by, width - by), *[sign] * by])

    def part(self, width: int, args: tuple[Bits, ...], data: tuple[int, bool]) -> Bits:
        value, offset = args
        by = constant_of(offset)
        if by is None:
            if width == 1 and data == (1, False):
                found, of_one_hot = self._bit_at(value, offset)
                if of_one_hot:
                    return found
            return self.node("part", width, args, data)
        size = width_of(value)
        low = min(by * data[0], size)
        here = min(width, size - low)
        sign = cut(value, size - 1, 1) if data[1] and size else constant(0, 1)
        return cat([cut(value, low, here), *[sign] * (width - here)])

    def _bit_at(self, value: Bits, offset: Bits) -> tuple[Bits, bool]:
        """Return the bit of a number at a place that is computed, as bits of what the number is made of; whether
        something of that is a 1 shifted to its place, so that it is a comparison of places, or less."""
        node, size = whole_node(value), width_of(value)
        if 1 << width_of(offset) <= size:
            if constant_of(value) in (0, (1 << size) - 1):
                return constant(constant_of(value) or 0, 1), False
            if node is not None and node.op == "<<" and constant_of(node.args[0]) == 1:
                place, wide = node.args[1], max(width_of(node.args[1]), width_of(offset))
                return self.equal(cut(place, 0, wide), cut(offset, 0, wide)), True
            if node is not None and node.op in ("&", "|", "~"):
                parts = [self._bit_at(arg, offset) for arg in node.args]
                return self.bitwise(node.op, 1, tuple(bit for bit, _ in parts)), any(hot for _, hot in parts)
            if node is not None and node.op == "choose" and not node.data:
                values = [self._bit_at(arg, offset) for arg in (node.args[0], *node.args[2::2])]
                args = [values[0][0]]
                for condition, (bit, _) in zip(node.args[1::2], values[1:], strict=True):
                    args += [condition, bit]
                if constant_of(args[0]) == 0 and len(args) == 3:
                    return self.all((bit, True) for bit in args[1:]), any(hot for _, hot in values)
                return self.choose(tuple(args)), any(hot for _, hot in values)
        return self.node("part", 1, (value, offset), (1, False)), False

    def copy(
        self,
        known: Mapping[Node, Bits],
        narrow: Mapping[Node, int] | None = None,
        flags: Mapping[tuple[Node, int], bool] | None = None,
    ) -> Callable[[Bits], Bits]:
        """Return a function that copies values of another graph into this one, where the values of some nodes are
        known.

        Parameters
        ----------
        known : mapping of Node to Bits
        narrow : mapping of Node to int
            How many of a node's low bits are used.
        flags : mapping of (Node, int) to bool
            Bits of nodes that are known where they are used singly; whole values stay as they are.
        """
        done: dict[Node, Bits] = dict(known)

        def piece(node: Node | None, low: int, width: int) -> Bits:
            if node is None:
                return ((None, low, width),)
            if flags and width == 1 and (node, low) in flags:
                return constant(int(flags[node, low]), 1)
            return cut(done[node], low, width)

        def moved(bits: Bits) -> Bits:
            return piece(*bits[0]) if len(bits) == 1 else cat(piece(*each) for each in bits)

        def copied(bits: Bits) -> Bits:
            waiting = [node for node, _, _ in bits if node is not None and node not in done]
            while waiting:
                node = waiting[-1]
                if node in done:
                    waiting.pop()
                    continue
                inner = [n for arg in node.args for n, _, _ in arg if n is not None and n not in done]
                if inner:
                    waiting += inner
                    continue
                waiting.pop()
                args, width = tuple(moved(arg) for arg in node.args), node.width
                if narrow is not None and node.op in self.NARROWED and 0 < narrow.get(node, 0) < width:
                    least = narrow[node]
                    short = (cut(args[0], 0, least), *args[1:]) if node.op == "<<" else tuple(
                        cut(arg, 0, least) for arg in args)  # fmt: skip
                    done[node] = cat([self.make(node.op, least, short, node.data), constant(0, width - least)])
                else:
                    done[node] = self.make(node.op, width, args, node.data)
            return moved(bits)

        return copied


def _known(bit: Bits, kept: Mapping[tuple[Node, int], bool], depth: int = 3) -> bool | None:
    """Return the value of a bit, given the values of some bits (``kept``), as far as it follows easily."""
    node, low, _ = bit[0]
    if node is None:
        return bool(low)
    found = kept.get((node, low))
    if found is None and node.op == "all" and depth:
        parts = [(_known(arg, kept, depth - 1), is_one) for arg, is_one in zip(node.args, node.data, strict=True)]
        if any(known is not None and known != is_one for known, is_one in parts):
            return False
        if all(known is not None for known, _ in parts):
            return True
    return found


def _order(bits: Bits) -> list[tuple[int, int, int]]:
    """Return a sort key of values, so that a comparison is one node with its operands in either order."""
    return [(-1 if node is None else node.key, low, width) for node, low, width in bits]


def _common(a: Bits, b: Bits) -> list[int]:
    """Return the widths of the pieces that result from cutting both wherever one of them is cut."""
    cuts = set()
    for bits in (a, b):
        at = 0
        for _, _, width in bits:
            at += width
            cuts.add(at)
    ordered = sorted(cuts)
    return [high - low for low, high in zip([0, *ordered], ordered, strict=False)]


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) & 1 else value


_NUMBERS: dict[str, Callable[..., int]] = {
    "+": lambda a, b, _: a + b,
    "-": lambda a, b, _: a - b,
    "*": lambda a, b, _: a * b,
    "&": lambda a, b, _: a & b,
    "|": lambda a, b, _: a | b,
    "^": lambda a, b, _: a ^ b,
    "u<": lambda a, b, _: int(a < b),
    "s<": lambda a, b, width: int(_signed(a, width) < _signed(b, width)),
    "u//": lambda a, b, _: a // b if b else 0,
    "u%": lambda a, b, _: a % b if b else 0,
    "s//": lambda a, b, width: _signed(a, width) // _signed(b, width) if b else 0,
    "s%": lambda a, b, width: _signed(a, width) % _signed(b, width) if b else 0,
    "r^": lambda a, _: a.bit_count() & 1,
}
