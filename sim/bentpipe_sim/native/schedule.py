"""The statements of one clock, and their order: code placement, then list scheduling.

Each value is placed at the nearest common dominator of its uses (:meth:`Context.common`). If its uses are in disjoint
contexts, it is computed in each of them, at most :data:`MAX_COPIES` times. List scheduling then orders the statements:
a value comes before its uses, a write of a register or memory word after the reads of its old value, and statements of
one context are kept together, so that there are few blocks of ``if``. Where an order would need more blocks, a register
is read from a copy that is made at the beginning of the clock. The last pass moves each value down to its first use, so
that few values are live at a time (:meth:`_Ordering.sink_values`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .design import Design, Register, Write, topological
from .graph import Bits, Literal, Node, constant, constant_of, distinct, negated, whole_node
from .guards import Context, Guards, literal_of

__all__ = ["Branch", "Plan", "Statement", "schedule"]

Target = tuple[Any, ...]
"""What a statement writes: ``("value", node)``, ``("register", register)``, ``("memory", memory, field)``,
``("output", name)`` or ``("decision", name)``."""

STATE = ("register", "input")
"""What is there before the clock."""

COSTLY = 2
"""A part of a condition with this cost or more is evaluated only if the cheaper parts hold."""
COSTS = {"all": 0, "read": 2, "+": 2, "-": 2, "*": 2}
"""Cost of an operation; 1 if it is not listed."""

MAX_COPIES = 4
"""A value is computed at this many places of the text at most."""

WIDE = 64
"""Bits that a machine's register has: what is wider is not copied, if that can be helped."""


@dataclass(eq=False)
class Statement:
    """``target`` becomes ``op`` of ``args``; of a memory, at ``address``; of a value, for uses in ``site``."""

    context: Context
    target: Target
    op: str
    args: tuple[Bits, ...]
    data: Any = None
    address: Bits = ()
    reads: set = field(default_factory=set)
    site: Context | None = None


@dataclass
class Branch:
    """``if`` the first literal holds, its tree; ``else if`` the next one does, ... They exclude each other."""

    arms: list[tuple[Literal, list[Statement | Branch]]]


@dataclass
class Plan:
    """The statements of a clock, in order; ``copied`` are registers that are read from copies made before."""

    tree: list[Statement | Branch]
    copied: list[Register]


def schedule(design: Design, known: Mapping[Register, int], *, outputs: bool = False) -> Plan:
    """Return the plan of a clock of a design in which these registers are constants.

    With ``outputs`` it is not the clock, but the statements that make the outputs from the registers.
    """
    placing = _Placing(design, known)
    return _Ordering(placing.run(outputs), placing.guards.root).run()


class _Placing:
    """The placement of a clock's statements."""

    def __init__(self, design: Design, known: Mapping[Register, int]):
        self.design, self.known = design, known
        self.guards = Guards()
        self.wanted: dict[Node, list[Context]] = {}
        self.site: Context | None = None
        self.statements: list[Statement] = []
        self.uses: dict[Node, int] = {}

    def run(self, outputs: bool) -> list[Statement]:
        design, root = self.design, self.guards.root
        order = topological(design.roots())
        for bits in [*design.roots(), *(arg for node in order for arg in node.args)]:
            for node, _, _ in bits:
                if node is not None:
                    self.uses[node] = self.uses.get(node, 0) + 1
        if outputs:
            for name, bits in design.outputs.items():
                self.put(root, ("output", name), bits)
            for name, bits in design.decisions.items():
                self.put(root, ("decision", name), bits)
        else:
            for register, bits in design.registers.items():
                self.sink(register, bits)
            for k, write in enumerate(design.writes):
                self.write(write, all(other.memory is not write.memory for other in design.writes[:k]))
        for node in reversed(order):
            for site in self.wanted.get(node, ()):
                self.site = site
                self.define(node, site)
        return self.statements

    # What a clock leaves behind

    def own(self, register: Register) -> Bits:
        if register in self.known:
            return constant(self.known[register], register.width)
        return self.design.register(register)

    def sink(self, register: Register, bits: Bits) -> None:
        target, root = ("register", register), self.guards.root
        if bits == self.own(register):
            return
        if register in self.known and register.width == 1:  # written where it gets another value, which is seldom
            other = 1 - self.known[register]
            inner = self.guards.within(root, bits if other else self.design.graph.no(bits))
            if inner is not None:
                self.put(inner, target, constant(other, 1))
            return
        steps: list[Node] = []  # choices, each the default of the one before it
        node, default = whole_node(bits), bits
        while node is not None and node.op == "choose" and not node.data:
            steps.append(node)
            default = node.args[0]
            node = whole_node(default)
        conditions = [condition for step in steps for condition in step.args[1::2]]
        if default != self.own(register) and not self.exhaustive(conditions):  # what is between is wanted as a value
            steps = steps[:1]
            default = steps[0].args[0] if steps else bits
            self.put(root, target, default)
        for node in reversed(steps):
            self.steps(root, target, node)

    def write(self, write: Write, first: bool) -> None:
        """Place the statements of a write to a memory.

        ``first``: no other write to this memory comes before it, so its rows still have their old values.
        """
        for context in self.cases(write.enable):
            address = self.guards.value(write.address, context)
            for k, bits in enumerate(write.data):
                value, target = self.guards.value(bits, context), ("memory", write.memory, k)
                steps: list[Node] = []  # choices that nothing else wants, each the default of the one before it
                node, default = whole_node(value), value
                while node is not None and node.op == "choose" and not node.data and self.uses[node] == 1:
                    steps.append(node)
                    default = self.guards.value(node.args[0], context)
                    node = whole_node(default)
                if (
                    first
                    and node is not None
                    and (node.op, node.data) == ("read", (write.memory, k))
                    and self.guards.value(node.args[0], context) == address
                ):  # it is there already
                    for step in reversed(steps):
                        self.steps(context, target, step, address)
                else:
                    self.put(context, target, value, address)

    def cases(self, enable: Bits) -> list[Context]:
        """Return the contexts in which a memory is written: one for each of the conditions that are joined by "or",
        where none of those behind it holds."""
        root = self.guards.root
        if constant_of(enable) is not None:
            return [root]
        node, _, wanted = literal_of(enable, True)
        if wanted or node.op != "all" or any(node.data):
            found = self.guards.within(root, enable)
            return [] if found is None else [found]
        contexts = []
        for k, condition in enumerate(node.args):
            context = self.guards.within(root, condition)
            for later in node.args[k + 1 :]:
                if context is not None and self.guards.bit(later, context) is None:
                    context = context.within(literal_of(later, False))
                elif context is not None and self.guards.bit(later, context):
                    context = None
            if context is not None:
                contexts.append(context)
        return contexts

    # Statements

    def steps(self, context: Context, target: Target, node: Node, address: Bits = ()) -> None:
        """Put the conditional assignments of a choice."""
        for condition, bits in zip(node.args[1::2], node.args[2::2], strict=True):
            inner = self.guards.within(context, condition)
            if inner is not None:
                self.put(inner, target, bits, address)

    def put(self, context: Context, target: Target, bits: Bits, address: Bits = ()) -> None:
        value = self.guards.value(bits, context)
        node, _, width = value[0]
        if (
            len(value) == 1
            and node is not None
            and width == node.width > WIDE
            and self.uses[node] == 1
            and node.op not in (*STATE, "choose")
        ):  # not by way of a variable
            self.add(context, target, node.op, node.args, node.data, address)
        else:
            self.add(context, target, "is", (value,), None, address)

    def add(self, context: Context, target: Target, op: str, args: tuple[Bits, ...], data=None, address=()) -> None:
        args = tuple(self.guards.value(arg, context) for arg in args)
        made = Statement(context, target, op, args, data, address, site=self.site)
        for bits in (*args, address):
            self.use(bits, context, made.reads)
        for inner in context.path():
            literal = inner.literal
            assert literal is not None and inner.parent is not None
            self.use(((literal[0], literal[1], 1),), inner.parent, made.reads)
        if op == "read" and data:
            made.reads.add(("memory", *data))
        self.statements.append(made)

    def use(self, bits: Bits, context: Context, reads: set) -> None:
        for node, _, _ in bits:
            if node is None or node.op == "input":
                continue
            if node.op == "register":
                reads.add(("register", node.data))
                continue
            reads.add(("value", node))
            self.want(node, context)

    def want(self, node: Node, context: Context) -> None:
        """Record that a value is used in a context.

        The sites of a value exclude each other, except for those of a word that costs no more to read than a variable.
        """
        sites = self.wanted.setdefault(node, [])
        if any(context.inside(site) for site in sites):
            return
        near = node.op == "read" and all(constant_of(arg) is not None for arg in node.args)
        wider = True
        while wider:
            wider = False
            for site in sites:
                if not (near or site.disjoint(context)) or site.inside(context):
                    sites.remove(site)
                    wider, context = True, context.common(site)
                    break
        if len(sites) == MAX_COPIES:
            for site in sites:
                context = context.common(site)
            sites.clear()
        sites.append(context)

    def define(self, node: Node, context: Context) -> None:
        target = ("value", node)
        costly = [k for k in range(len(node.args)) if self.is_costly(node.args[k])] if node.op == "all" else []
        if costly and len(costly) < len(node.args):
            self.short_circuit(node, context, costly)
        elif node.op != "choose":
            self.add(context, target, node.op, node.args, node.data)
        elif node.data:  # both values are there
            self.add(context, target, "m", (node.args[1], node.args[2], node.args[0]))
        else:
            default, first = node.args[0], 1
            for at in range(len(node.args) - 2, 0, -2):  # a condition that holds here hides those before it
                if self.guards.bit(node.args[at], context):
                    default, first = node.args[at + 1], at + 2
                    break
            if first > 1 or not self.exhaustive(node.args[1::2]):
                self.put(context, target, default)
            for at in range(first, len(node.args), 2):
                inner = self.guards.within(context, node.args[at])
                if inner is not None:
                    self.put(inner, target, node.args[at + 1])

    def exhaustive(self, conditions: Sequence[Bits]) -> bool:
        """Return whether one of them always holds, since two of them are opposites."""
        return any(self.design.graph.no(condition) in conditions for condition in conditions)

    def short_circuit(self, node: Node, context: Context, costly: list[int]) -> None:
        """Place a condition so that its costly parts are evaluated only if the other parts hold."""
        target, graph = ("value", node), self.design.graph
        parts = list(zip(node.args, node.data, strict=True))
        inner = self.guards.within(context, graph.all(part for k, part in enumerate(parts) if k not in costly))
        self.put(context, target, constant(0, 1))
        if inner is not None:
            rest = [parts[k] for k in costly]
            self.add(inner, target, "all", tuple(bit for bit, _ in rest), tuple(is_one for _, is_one in rest))

    def is_costly(self, bit: Bits) -> bool:
        """Return whether a bit costs more than a branch that skips it. Operations with other uses do not count."""
        return self.cost(bit, COSTLY) >= COSTLY

    def cost(self, bits: Bits, most: int) -> int:
        """Return the number of operations that only this value needs, counted up to ``most``."""
        found = 0
        for node, _, _ in bits:
            if node is None or node.op in STATE or self.uses[node] > 1 or found >= most:
                continue
            found += COSTS.get(node.op, 1)
            for arg in node.args:
                found += self.cost(arg, most - found) if found < most else 0
        return found


class _Ordering:
    """The order of a clock's statements."""

    def __init__(self, statements: list[Statement], root: Context):
        self.statements, self.root = statements, root
        self.paths = [statement.context.path() for statement in statements]
        count = range(len(statements))
        self.hard: list[set[int]] = [set() for _ in count]  # what has to be done before
        self.soft: list[set[int]] = [set() for _ in count]  # what should be, else a register is to be copied
        self.wide: set[int] = set()  # writers of registers that are not copied if that can be helped
        self.all: list[set[int]] = []  # both
        self.users: list[list[int]] = [[] for _ in count]
        self.done: set[int] = set()

    def run(self) -> Plan:
        self.link()
        tree = self.sink_values(self.emit(set(range(len(self.statements))), 0))[0]
        return Plan(tree, self.copied(tree))

    def link(self) -> None:
        statements = self.statements
        writers: dict[Target, list[int]] = {}
        readers: dict[Target, list[int]] = {}
        for at, statement in enumerate(statements):
            writers.setdefault(statement.target, []).append(at)
            for key in statement.reads:
                readers.setdefault(key, []).append(at)
        for target, own in writers.items():
            reading = [at for at in readers.get(target, ()) if statements[at].target != target]
            for k, at in enumerate(own):
                self.hard[at].update(
                    before
                    for before in own[:k]
                    if statements[before].site is statements[at].site
                    and not statements[before].context.disjoint(statements[at].context)
                )
            if target[0] == "value":
                for at in reading:
                    context = statements[at].context
                    self.hard[at].update(k for k in own if context.inside(statements[k].site))
            elif target[0] == "memory":
                for at in own:
                    address = statements[at].address
                    self.hard[at].update(
                        r
                        for r in readers.get(target, ())
                        if r not in own and not distinct(statements[r].args[0], address)
                    )
            elif target[0] == "register":
                for at in own:
                    self.soft[at].update(reading)
                    if target[1].width > WIDE:
                        self.wide.add(at)
        for at in range(len(statements)):
            self.soft[at] -= self.hard[at]
            self.all.append(self.hard[at] | self.soft[at])
            for need in self.all[at]:
                self.users[need].append(at)

    def needs(self, at: int, ease: int) -> set[int]:
        """Return the statements that have to come before a statement.

        ``ease`` 0: all; 1: copies of registers are possible; 2: also copies of wide ones.
        """
        if ease == 0 or (ease == 1 and at in self.wide):
            return self.all[at]
        return self.hard[at]

    def possible(self, group: set[int], ease: int) -> set[int]:
        """Return the statements of a group that need nothing more from outside of it."""
        done = self.done
        blocked = [k for k in group if not (self.needs(k, ease) - group).issubset(done)]
        found = group.difference(blocked)
        while blocked:
            need = blocked.pop()
            for k in self.users[need]:
                if k in found and need in self.needs(k, ease):
                    found.discard(k)
                    blocked.append(k)
        return found

    def emit(self, group: set[int], depth: int) -> list[Statement | Branch]:
        """Return the tree of a group of statements in a context of this depth: what is ready, then inner blocks that
        can be as a whole; only if that leads no further, a part of one."""
        out: list[Statement | Branch] = []
        own = [k for k in sorted(group) if len(self.paths[k]) == depth]
        inner: dict[Context, set[int]] = {}
        for k in sorted(group):
            if len(self.paths[k]) > depth:
                inner.setdefault(self.paths[k][depth], set()).add(k)

        def do(ready: list[int]) -> None:
            out.extend(self.statements[k] for k in ready)
            self.done.update(ready)
            own[:] = [k for k in own if k not in self.done]

        def enter(contexts: list[tuple[Context, set[int]]]) -> None:
            arms = []
            for context, members in contexts:
                assert context.literal is not None
                arms.append((context.literal, self.emit(members, depth + 1)))
                inner[context] -= members
                if not inner[context]:
                    del inner[context]
            out.append(Branch(arms))

        while own or inner:
            for ease in (0, 1, 2):
                ready = [k for k in own if self.done.issuperset(self.needs(k, ease))]
                if ready and ease == 0:
                    do(ready)
                    break
                parts = {context: self.possible(members, ease) for context, members in inner.items()}
                whole = [context for context, members in inner.items() if len(parts[context]) == len(members)]
                if whole:
                    enter([(context, parts[context]) for context in _exclusive(whole)])
                    break
                if ready:
                    do(ready[:1])
                    break
                largest = max(parts, key=lambda context: len(parts[context]), default=None)
                if ease == 1 and largest is not None and parts[largest]:
                    others = [context for context, found in parts.items() if found and context is not largest]
                    enter([(context, parts[context]) for context in _exclusive([largest, *others])])
                    break
            else:
                raise AssertionError("statements wait for each other")
        return out

    def sink_values(self, tree: list[Statement | Branch]) -> tuple[list[Statement | Branch], set, set]:
        """Move each value down to right before its first use, so that few values are live at a time. Return the tree,
        what it reads and what it writes."""
        placed: list[tuple[Statement | Branch, set, set]] = []  # the last one first
        for item in reversed(tree):
            if isinstance(item, Statement):
                found = (item, item.reads, {(*item.target, item.address)} if item.address else {item.target})
            else:
                arms, reads, writes = [], set(), set()
                for literal, inner in item.arms:
                    if literal[0].op not in STATE:
                        reads.add(("value", literal[0]))
                    made, read, written = self.sink_values(inner)
                    arms.append((literal, made))
                    reads |= read
                    writes |= written
                found = (Branch(arms), reads, writes)
            at = len(placed)
            if isinstance(item, Statement) and item.target[0] == "value":
                while at and not self.bound(item, *placed[at - 1][1:]):
                    at -= 1
            placed.insert(at, found)
        reads: set = set().union(*(read for _, read, _ in placed))
        writes: set = set().union(*(written for _, _, written in placed))
        return [item for item, _, _ in placed[::-1]], reads, writes

    @staticmethod
    def bound(item: Statement, reads: set, writes: set) -> bool:
        """Return whether a value has to be computed before the statement that reads and writes this."""
        if item.target in reads or item.target in writes or not item.reads.isdisjoint(writes):
            return True
        if item.op != "read":
            return False
        place = ("memory", *item.data)
        return any(write[:3] == place and not distinct(write[3], item.args[0]) for write in writes)

    def copied(self, tree: list[Statement | Branch]) -> list[Register]:
        """Return the registers that some statement reads after another one has written them."""
        written: dict[Register, list[Context]] = {}
        found: dict[Register, None] = {}

        def read(bits: Bits, context: Context) -> None:
            for node, _, _ in bits:
                before = written.get(node.data, ()) if node is not None and node.op == "register" else ()
                if node is not None and not all(each.disjoint(context) for each in before):
                    found[node.data] = None

        def walk(part: list[Statement | Branch], context: Context) -> None:
            for item in part:
                if isinstance(item, Statement):
                    for bits in (*item.args, item.address):
                        read(bits, context)
                    if item.target[0] == "register":
                        written.setdefault(item.target[1], []).append(context)
                    continue
                for literal, _ in item.arms:  # asked before any of them
                    read(((literal[0], literal[1], 1),), context)
                for literal, inner in item.arms:
                    walk(inner, context.within(literal))

        walk(tree, self.root)
        return sorted(found, key=lambda register: register.name)


def _exclusive(contexts: list[Context]) -> list[Context]:
    """Return the first statement, and those that exclude it and each other: its opposite, or other values of the
    same number."""
    first = contexts[0].literal
    assert first is not None
    opposite = [context for context in contexts[1:] if context.literal == negated(first)]
    if opposite:
        return [contexts[0], opposite[0]]
    alike = [context for context in contexts if _compared(context) == _compared(contexts[0]) is not None]
    return alike if alike and _compared(contexts[0]) is not None else contexts[:1]


def _compared(context: Context) -> Bits | None:
    """Return the number that a condition compares with a constant."""
    assert context.literal is not None
    node, _, wanted = context.literal
    return node.args[0] if wanted and node.op == "==" and constant_of(node.args[1]) is not None else None
