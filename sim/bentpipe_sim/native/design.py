"""A node as values of registers and memories: what each of them is after a clock, as a graph of fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .banks import gather
from .fields import Fields, fields
from .graph import Bits, Graph, Node, cat, constant, constant_of, cut, whole_node
from .guards import Guards, literal_of
from .netlist import CONSTANT, Cell, Netlist, NetlistError

__all__ = ["Design", "Memory", "Register", "Write", "design"]


@dataclass(frozen=True)
class Register:
    """A field of a register. ``mark``: level and value of its mark, if it has one (:mod:`bentpipe_hdl.sim_hints`)."""

    name: str
    width: int
    init: int
    mark: tuple[str, int] | None


@dataclass(frozen=True)
class Memory:
    """``fields``: lowest bit and width of each."""

    name: str
    depth: int
    fields: tuple[tuple[int, int], ...]
    init: tuple[int, ...]


@dataclass(frozen=True)
class Write:
    """A write port; ``data`` by field."""

    memory: Memory
    enable: Bits
    address: Bits
    data: tuple[Bits, ...]


@dataclass
class Design:
    """A netlist as the generator of C++ sees it.

    Members
    -------
    inputs : dict of str to int
        Widths.
    outputs : dict of str to Bits
    registers : dict of Register to Bits
        What each is after a clock.
    memories : list of Memory
    writes : list of Write
        Later ones over earlier ones.
    deciding : list of (Bits, int or None)
        On which most of what a clock does depends, the first one first; the answer that is seldom given, if one is.
    decisions : dict of str to Bits
        Those that are asked for by a name, instead of all else.
    """

    graph: Graph
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, Bits] = field(default_factory=dict)
    registers: dict[Register, Bits] = field(default_factory=dict)
    memories: list[Memory] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    deciding: list[tuple[Bits, int | None]] = field(default_factory=list)
    decisions: dict[str, Bits] = field(default_factory=dict)

    def roots(self) -> Iterator[Bits]:
        yield from self.outputs.values()
        yield from (bits for bits, _ in self.deciding)
        yield from self.decisions.values()
        yield from self.registers.values()
        for write in self.writes:
            yield from (write.enable, write.address, *write.data)

    def register(self, register: Register) -> Bits:
        """Return what it is before the clock."""
        return self.graph.node("register", register.width, data=register)

    def input(self, name: str) -> Bits:
        return self.graph.node("input", self.inputs[name], data=name)

    def known(self, registers: Mapping[Register, int], inputs: Mapping[str, int]) -> Design:
        """Return the same design for clocks that begin with these values of registers and inputs."""
        known: dict[Node, Bits] = {}
        for bits, value in [
            *((self.register(register), value) for register, value in registers.items()),
            *((self.input(name), value) for name, value in inputs.items()),
        ]:
            node, _, width = bits[0]
            assert node is not None
            known[node] = constant(value, width)
        return self._copied(known)._narrowed()

    def only(self, bit: Bits, name: str) -> Design:
        """Return a design that computes one bit alone, as a value decided in a clock."""
        return Design(self.graph, self.inputs, decisions={name: bit})

    def given(self, bit: Bits, holds: bool) -> Design:
        """Return the same design for clocks in which a bit is 1, or 0."""
        known: dict[Node, Bits] = {}
        flags: dict[tuple[Node, int], bool] = {}
        never: list[Bits] = []
        literals = Guards().chain(literal_of(bit, holds)) if constant_of(bit) is None else ()
        waiting = [(bit, holds), *((((node, low, 1),), wanted) for node, low, wanted in literals)]
        while waiting:
            value, wanted = waiting.pop()
            node = whole_node(value)
            if node is None:
                part, low, width = value[0]
                if part is not None and len(value) == width == 1:
                    flags[part, low] = wanted
                continue
            known[node] = constant(int(wanted), node.width)
            if node.op == "all" and (wanted or len(node.args) == 1):
                waiting += [(arg, is_one == wanted) for arg, is_one in zip(node.args, node.data, strict=True)]
            elif node.op == "all":
                never.append(value)
            elif node.op == "==" and wanted:
                same, value = whole_node(node.args[0]), constant_of(node.args[1])
                if same is not None and value is not None and same.op != "register":
                    known[same] = constant(value, same.width)
        return self._copied(known, never=never, flags=flags)._narrowed()

    def _copied(
        self,
        known: Mapping[Node, Bits],
        narrow: Mapping[Node, int] | None = None,
        never: Iterable[Bits] = (),
        flags: Mapping[tuple[Node, int], bool] | None = None,
    ) -> Design:
        graph = Graph()
        copied = graph.copy(known, narrow, flags)
        for bits in never:
            node = whole_node(bits)
            assert node is not None
            literals = zip((copied(arg) for arg in node.args), node.data, strict=True)
            graph.forbid(literals)
        made = Design(graph, self.inputs, memories=self.memories)
        made.outputs = {name: copied(bits) for name, bits in self.outputs.items()}
        made.registers = {register: copied(bits) for register, bits in self.registers.items()}
        for write in self.writes:
            enable = copied(write.enable)
            if enable != constant(0, 1):
                data = tuple(copied(bits) for bits in write.data)
                made.writes.append(Write(write.memory, enable, copied(write.address), data))
        there = set(topological(made.roots()))
        deciding = [(copied(bits), seldom) for bits, seldom in self.deciding]
        made.deciding = [each for each in deciding if each[0][0][0] in there]
        return made

    def _narrowed(self) -> Design:
        """Return the design without the high bits of sums, and the like, that are not used."""
        asked: dict[Node, int] = {}
        order = topological(self.roots())

        def ask(bits: Bits, most: int) -> None:
            at = 0
            for node, low, width in bits:
                if at < most and node is not None:
                    asked[node] = max(asked.get(node, 0), low + min(width, most - at))
                at += width

        for bits in self.roots():
            ask(bits, 1 << 30)
        for node in reversed(order):
            most = asked.get(node, 0) if node.op in Graph.NARROWED else 1 << 30
            for k, arg in enumerate(node.args):
                ask(arg, 1 << 30 if node.op == "<<" and k else most)
        return self._copied({}, asked)


def topological(roots: Iterator[Bits]) -> list[Node]:
    """Return all nodes below some values, what is needed before what needs it."""
    order: list[Node] = []
    done: set[Node] = set()
    for bits in roots:
        waiting = [node for node, _, _ in bits if node is not None and node not in done]
        while waiting:
            node = waiting[-1]
            inner = [] if node in done else [
                n for arg in node.args for n, _, _ in arg if n is not None and n not in done]  # fmt: skip
            if inner:
                waiting += inner
                continue
            waiting.pop()
            if node not in done:
                done.add(node)
                order.append(node)
    return order


def design(netlist: Netlist) -> Design:
    """Return the design of a netlist, all of it, in which registers that are picked by number are memories from now on.

    Raises
    ------
    NetlistError
        An output depends on an input, or a bit of a value on another bit of it, without a register between.
    """
    gather(netlist)
    return _Builder(netlist, fields(netlist)).run()


class _Builder:
    def __init__(self, netlist: Netlist, fields: Fields):
        self.netlist, self.cells, self.fields = netlist, netlist.cells, fields
        self.graph = Graph()
        self.design = Design(self.graph)
        self.values: dict[tuple[int, int], Bits] = {}  # of a cell's field
        self.begun: set[tuple[int, int]] = set()
        self.registers: dict[tuple[int, int], Register] = {}
        self.memories: dict[int, Memory] = {}

    def run(self) -> Design:
        made = self.whole()
        read = {node.data[0] for node in topological(made.roots()) if node.op == "read"}
        made.memories = [memory for memory in made.memories if memory in read]
        made.writes = [write for write in made.writes if write.memory in read]
        for node in topological(iter(made.outputs.values())):
            if node.op == "input":
                raise NetlistError(f"an output depends on input {node.data} without a register")
        return made

    def whole(self) -> Design:
        """Return the design with all that is in the netlist."""
        netlist, made = self.netlist, self.design
        made.inputs = {name: self.cells[index].width for name, index in netlist.inputs.items()}
        for index, cell in enumerate(self.cells):
            if cell.op == "memory":
                split = tuple(self.fields.of(index, cell.width))
                self.memories[index] = Memory(f"m{index}", cell.data.depth, split, cell.data.init)
            elif cell.op == "register":
                split = self.fields.of(index, cell.width)
                for k, (low, width) in enumerate(split):
                    mark = cell.data.marks and (cell.data.marks[0], cell.data.marks[1] >> low & ((1 << width) - 1))
                    name = f"q{index}" if len(split) == 1 else f"q{index}_{k}"
                    init = cell.data.init >> low & ((1 << width) - 1)
                    self.registers[index, k] = Register(name, width, init, mark)
        made.memories = list(self.memories.values())
        for (index, k), register in self.registers.items():
            low, width = self.fields.of(index, self.cells[index].width)[k]
            made.registers[register] = cut(self.value(self.cells[index].args[0]), low, width)
        for cell in self.cells:
            if cell.op == "write":
                enable, address, data = (self.value(bits) for bits in cell.args)
                memory = self.memories[cell.data]
                parts = tuple(cut(data, low, width) for low, width in memory.fields)
                made.writes.append(Write(memory, enable, address, parts))
        made.outputs = {name: self.value(bits) for name, bits in netlist.outputs.items()}
        made.deciding = [(self.value(bits), seldom) for bits, seldom in netlist.deciding]
        return made

    def value(self, bits: tuple[tuple[int, int, int], ...]) -> Bits:
        found = []
        for index, low, width in bits:
            if index == CONSTANT:
                found.append(constant(low, width))
                continue
            cell = self.cells[index]
            home = cell.data if cell.op == "read" else index
            for k, (first, size) in enumerate(self.fields.of(home, cell.width)):
                a, b = max(low, first), min(low + width, first + size)
                if a < b:
                    found.append(cut(self.field(index, k, first, size), a - first, b - a))
        return cat(found)

    def field(self, index: int, k: int, low: int, width: int) -> Bits:
        found = self.values.get((index, k))
        if found is None:
            if (index, k) in self.begun:
                name = self.netlist.names.get(index, "a value")
                raise NetlistError(f"{name}: a bit depends on itself or on another bit of it without a register")
            self.begun.add((index, k))
            found = self.values[index, k] = self.make(self.cells[index], index, k, low, width)
        return found

    def make(self, cell: Cell, index: int, k: int, low: int, width: int) -> Bits:
        graph = self.graph
        match cell.op:
            case "input":
                return graph.node("input", width, data=cell.data)
            case "register":
                return self.design.register(self.registers[index, k])
            case "read":
                return graph.node("read", width, (self.value(cell.args[0]),), (self.memories[cell.data], k))
            case "assign":
                return self.assigned(cell, low, width)
            case "m":
                a, b = (self.value(_part(value, low, width)) for value in cell.args[1:])
                return graph.make("m", width, (self.value(cell.args[0]), a, b))
            case "matches":
                value = self.value(cell.args[0])
                return graph.any(self.pattern(value, pattern) for pattern in cell.data)
            case "none":
                raise NetlistError("a value comes from nowhere")
        return graph.make(cell.op, cell.width, tuple(self.value(bits) for bits in cell.args), cell.data)

    def assigned(self, cell: Cell, low: int, width: int) -> Bits:
        """Return a field of the value that is assigned to a register.

        An assignment of part of the field is expressed as one of the whole field, with the rest unchanged.
        """
        graph, high = self.graph, low + width
        args = [self.value(_part(cell.args[0], low, width))]
        for condition, start, value in cell.data:
            a, b = max(low, start), min(high, start + sum(run[2] for run in value))
            if a >= b:
                continue
            new = self.value(_part(value, a - start, b - a))
            if (a, b) != (low, high):
                before = graph.choose(tuple(args))
                new = cat([cut(before, 0, a - low), new, cut(before, b - low, high - b)])
                args = [before]
            args += [self.value(condition), new]
        return graph.choose(tuple(args))

    def pattern(self, value: Bits, pattern: str) -> Bits:
        cared = [k for k, wanted in enumerate(reversed(pattern)) if wanted != "-"]
        wanted = sum(int(pattern[len(pattern) - 1 - k]) << at for at, k in enumerate(cared))
        return self.graph.equal(cat(cut(value, k, 1) for k in cared), constant(wanted, len(cared)))


def _part(bits: tuple[tuple[int, int, int], ...], low: int, width: int) -> tuple[tuple[int, int, int], ...]:
    """Return ``width`` bits of a netlist's value from ``low`` on."""
    found, at = [], 0
    for index, first, size in bits:
        a, b = max(low, at), min(low + width, at + size)
        if a < b:
            value = first >> (a - at) & ((1 << (b - a)) - 1) if index == CONSTANT else first + a - at
            found.append((index, value, b - a))
        at += size
    return tuple(found)
