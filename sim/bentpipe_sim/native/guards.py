"""The lattice of conditions: under which conditions a value is used, and what it simplifies to there (predication).

A :class:`Context` is a row of literals that hold, the outermost first, as blocks of ``if`` lie in each other; they form
a tree, so that what two contexts have in common is their nearest common ancestor. Conditions come from ``m.If``: a bit
that is made of others (``all``) holds when these do, and so they are its context.
"""

from __future__ import annotations

from .graph import Bits, Literal, Node, cat, constant, constant_of, cut, negated

__all__ = ["Context", "Guards", "literal_of"]


class Context:
    """``parent``, and inside of it a literal."""

    __slots__ = ("children", "choices", "depth", "literal", "numbers", "parent", "truths", "values")

    def __init__(self, parent: Context | None, literal: Literal | None):
        self.parent, self.literal = parent, literal
        self.depth = parent.depth + 1 if parent else 0
        self.truths: frozenset[Literal] = parent.truths | {literal} if parent and literal else frozenset()
        self.children: dict[Literal, Context] = {}
        self.values: dict[Bits, Bits] = {}
        self.choices: dict[Literal, bool | None] = {}
        # What values are known to be, from comparisons with constants
        self.numbers: dict[Bits, int] = dict(parent.numbers) if parent else {}
        if literal and literal[2] and literal[0].op == "==":
            value = constant_of(literal[0].args[1])
            if value is not None:
                self.numbers[literal[0].args[0]] = value

    def within(self, literal: Literal) -> Context:
        found = self.children.get(literal)
        if found is None:
            found = self.children[literal] = Context(self, literal)
        return found

    def path(self) -> list[Context]:
        """Return the contexts from the outermost to this one, without the root."""
        found: list[Context] = []
        here = self
        while here.parent:
            found.append(here)
            here = here.parent
        return found[::-1]

    def common(self, other: Context) -> Context:
        a: Context | None = self
        b: Context | None = other
        while a is not b and a and b:
            if a.depth >= b.depth:
                a = a.parent
            else:
                b = b.parent
        assert a is not None
        return a

    def inside(self, other: Context | None) -> bool:
        """Return whether it is the other one or within it."""
        here: Context | None = self
        while here is not None and other is not None and here.depth > other.depth:
            here = here.parent
        return here is other

    def disjoint(self, other: Context) -> bool:
        """Return whether the two contexts exclude each other."""
        if any(negated(literal) in other.truths for literal in self.truths):
            return True
        return any(other.numbers.get(bits, value) != value for bits, value in self.numbers.items())


class Guards:
    """The conditions that hold at each place of one design."""

    def __init__(self) -> None:
        self.root = Context(None, None)
        self._chains: dict[Literal, tuple[Literal, ...]] = {}

    def chain(self, literal: Literal) -> tuple[Literal, ...]:
        """Return the literals that hold if this one does, outermost first, and the literal itself by its parts."""
        found = self._chains.get(literal)
        if found is None:
            found = self._chains[literal] = tuple(dict.fromkeys(self._chain(literal)))
        return found

    def _chain(self, literal: Literal) -> list[Literal]:
        node, _, wanted = literal
        if node.op == "all" and wanted:
            parts = zip(node.args, node.data, strict=True)
            return [inner for bit, is_one in parts for inner in self.chain(literal_of(bit, is_one))]
        if node.op == "all" and all(not is_one for is_one in node.data):  # one of some: what they have in common
            chains = [self.chain(literal_of(bit, True)) for bit in node.args]
            shared = _common(chains)
            return [*shared, literal]
        if node.op == "choose" and node.width == 1 and wanted and constant_of(node.args[0]) == 0:
            pairs = list(zip(node.args[1::2], node.args[2::2], strict=True))
            chains = []
            for condition, value in pairs:
                if constant_of(value) == 0:
                    continue
                chain = self.chain(literal_of(condition, True))
                chains.append(chain + (self.chain(literal_of(value, True)) if constant_of(value) is None else ()))
            return [*chains[0]] if len(pairs) == 1 else [*_common(chains), literal]
        return [literal]

    def within(self, context: Context, condition: Bits) -> Context | None:
        """Return the context in which a bit is 1, too; None if that is impossible."""
        if constant_of(condition) is not None:
            return context if constant_of(condition) else None
        for literal in self.chain(literal_of(condition, True)):
            holds = self.holds(literal, context)
            if holds is False:
                return None
            if holds is None:
                context = context.within(literal)
        return context

    def holds(self, literal: Literal, context: Context) -> bool | None:
        """Return whether a literal holds in a context; None if that is not known there."""
        if literal in context.truths:
            return True
        if negated(literal) in context.truths:
            return False
        if not context.parent:
            return None
        if literal not in context.choices:
            context.choices[literal] = None  # for what asks for itself
            context.choices[literal] = self._holds(literal, context)
        return context.choices[literal]

    def _holds(self, literal: Literal, context: Context) -> bool | None:
        node, low, wanted = literal
        if node.op == "all":
            found: bool | None = True
            for bit, is_one in zip(node.args, node.data, strict=True):
                part = self.holds(literal_of(bit, is_one), context)
                if part is False:
                    return not wanted
                if part is None:
                    found = None
            return found if found is None else wanted
        if node.op == "==":
            value, known = constant_of(node.args[1]), context.numbers.get(node.args[0])
            if value is not None and known is not None:
                return (value == known) == wanted
        if node.op == "choose":
            bit = ((node, low, 1),)
            is_here = self.value(bit, context)
            if is_here != bit:
                value = constant_of(is_here)
                return bool(value) == wanted if value is not None else self.holds(literal_of(is_here, wanted), context)
        if wanted and all(self.holds(inner, context) for inner in self.chain(literal) if inner != literal):
            chain = self.chain(literal)
            if literal not in chain:
                return True
        return None

    def value(self, bits: Bits, context: Context) -> Bits:
        """Return a value as it is in a context: through choices that are decided there."""
        found = context.values.get(bits)
        if found is None:
            parts: list[Bits] = [self._piece(node, low, width, context) for node, low, width in bits]
            found = context.values[bits] = bits if len(parts) == 1 and parts[0] == bits else cat(parts)
        return found

    def _piece(self, node: Node | None, low: int, width: int, context: Context) -> Bits:
        same: Bits = ((node, low, width),)
        if node is None:
            return same
        if width == 1 and node.op != "choose" and context.parent:
            holds = self.holds((node, low, True), context)
            if holds is not None:
                return constant(int(holds), 1)
        if node.op != "choose":
            return same
        if width == 1 and (node, low, True) in context.truths:
            return constant(1, 1)
        if width == 1 and (node, low, False) in context.truths:
            return constant(0, 1)
        for at in range(len(node.args) - 2, 0, -2):
            holds = self.bit(node.args[at], context)
            if holds is None:
                return same
            if holds:
                return self.value(cut(node.args[at + 1], low, width), context)
        return self.value(cut(node.args[0], low, width), context)

    def bit(self, bit: Bits, context: Context) -> bool | None:
        value = constant_of(bit)
        return bool(value) if value is not None else self.holds(literal_of(bit, True), context)


def literal_of(bit: Bits, wanted: bool) -> Literal:
    """Return the literal that says that a bit has the wanted value."""

    node, low, _ = bit[0]
    while node is not None and node.op == "all" and len(node.args) == 1:  # it says that a bit is 0
        wanted = wanted == node.data[0]
        node, low, _ = node.args[0][0]
    assert node is not None
    return node, low, wanted


def _common(chains: list[tuple[Literal, ...]]) -> tuple[Literal, ...]:
    shared = chains[0]
    for chain in chains[1:]:
        same = 0
        while same < min(len(shared), len(chain)) and shared[same] == chain[same]:
            same += 1
        shared = shared[:same]
    return shared
