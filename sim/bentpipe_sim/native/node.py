"""A node as a class of C++, with a function that is one clock.

A clock has more than one body: the whole one, and shorter ones for clocks at whose beginning some inputs and registers
are known: no register is accessed, a cell arrives or none does, what is marked as settled or steady
(:mod:`bentpipe_hdl.sim_hints`) has its value. A shorter body is the same design with these as constants. Members tell
whether marked registers have their values: a body in which they are constants clears the member when it writes another
value, and a longer one computes it anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..border import Port, port_struct
from .cpp import Text, number
from .design import Design, Memory, Register, design, topological
from .graph import Bits, constant
from .layout import Rows, declared, ordered, register_bits, rows, stored_type, together
from .netlist import read
from .schedule import Plan, schedule

__all__ = ["Generated", "Members", "generate", "members"]

LEVELS = ("settled", "steady")
"""Marks; what is settled differs least often."""

DECISIONS = 3
"""So many of what a clock depends on are asked first, at most."""

QUIET = {"rst": 0, "csr_w_en": 0, "csr_r_en": 0, "time_tick": 1, "post_valid": 0, "passed": 0}
"""Inputs as they are in nearly all clocks."""

NOTHING: Mapping[Register, int] = {}


ENTRIES = ("cell_clock", "turn_clock", "short_clock")
"""Functions of a node's ``void*``: a clock of a settled one with a cell, without one, either."""


@dataclass(frozen=True)
class Generated:
    """C++ of a class ``Node`` with a member for each port, and of ``void clock(Node&)``; the ports; names of functions
    of a ``void*`` to a ``Node`` that are a clock of a settled one, with a cell and without, or none."""

    text: str
    ports: tuple[Port, ...]
    cell: str
    turn: str


def generate(component: Any, name: str) -> Generated:
    """Return the C++ of an Amaranth component.

    Raises
    ------
    NetlistError
        It uses something that the native engine does not handle.
    """
    return _Node(design(read(component, name))).run()


@dataclass(frozen=True)
class Members:
    """C++ of the class ``Node`` with all its state, and no clocks; names of members that are registers' fields; where
    the rows of memories are."""

    text: str
    registers: dict[Register, str]
    memories: dict[Memory, Rows]


def members(whole: Design) -> Members:
    """Return the places of the state in the generated node of a design."""
    node = _Node(whole)
    node.short()
    return Members("\n".join(node.members()) + "\n", node.names, node.rows)


class _Node:
    def __init__(self, whole: Design):
        self.whole = whole
        self.ports = [Port(name, width) for name, width in whole.inputs.items()]
        self.names: dict[Register, str] = {register: register.name for register in whole.registers}
        self.computed: list[str] = []  # outputs that are no registers
        registers = {whole.register(register): register for register in whole.registers}
        for name, bits in whole.outputs.items():
            register = registers.pop(bits, None)
            if register is not None:
                self.names[register] = name
                width = register.width
            else:
                self.computed.append(name)
                width = sum(piece[2] for piece in bits)
            self.ports.append(Port(name, width))
        self.marked: dict[str, dict[Register, int]] = {level: {} for level in LEVELS}
        for register in whole.registers:
            if register.mark:
                self.marked[register.mark[0]][register] = register.mark[1]

        self.quiet = {name: value for name, value in QUIET.items() if name in whole.inputs}
        self.groups = together(whole.memories, _answered(whole.known(self.marked["settled"], self.quiet), DECISIONS))
        self.rows = rows(self.groups)
        self.heat: dict[Register, float] = {}

    def run(self) -> Generated:
        functions = [*self.short(), *self.body("whole_clock", {}, {})]
        steady = self.marked["steady"]
        quiet = [f"s.{name}" if value else f"!s.{name}" for name, value in self.quiet.items()]
        wanted = " && ".join(["s.settled", *quiet])
        short, cell, turn = None, "", ""
        if steady:
            short, cell = "short_clock(&s)", "short_clock"
            turn = cell
            functions += [_head(cell), "    s.steady ? steady_clock(s) : settled_clock(s);", "}"]
        elif "i_valid" in self.whole.inputs:
            short, (cell, turn) = "s.i_valid ? cell_clock(&s) : turn_clock(&s)", ENTRIES[:2]
        clock = ["void clock(Node& s) {"]
        if short:
            clock += [f"    if (__builtin_expect({wanted}, 1)) return {short};"]
        clock += ["    whole_clock(s);", self.test("settled"), "}"]
        outputs = ["inline void outputs(Node& s) {", *self.outputs({}), "}"]
        lines = [*self.members(), *outputs, *functions, *clock]
        return Generated("\n".join(lines) + "\n", tuple(self.ports), cell, turn)

    def short(self) -> list[str]:
        """Return the functions of nearly all clocks."""
        settled, steady = self.marked["settled"], self.marked["steady"]
        if steady:
            made = self.body("steady_clock", {**settled, **steady}, self.quiet, DECISIONS)
            return made + self.body("settled_clock", settled, self.quiet, DECISIONS)
        if "i_valid" not in self.whole.inputs:
            return []
        made = self.body("cell_clock", settled, {**self.quiet, "i_valid": 1}, DECISIONS)
        return made + self.body("turn_clock", settled, {**self.quiet, "i_valid": 0}, DECISIONS)

    def body(
        self, name: str, registers: Mapping[Register, int], inputs: Mapping[str, int], decisions: int = 0
    ) -> list[str]:
        """Return a function and those that it calls."""
        known = self.whole.known(registers, inputs)
        if not (self.marked["steady"] or inputs.get("i_valid")) or not decisions or not known.deciding:
            often, cold = (1, "") if inputs else (0, "gnu::cold, ")  # cold: small rather than fast
            return self.function(name, known, registers, decisions, often, cold)
        # Of a cell's clock, or one of a node that is steady, the answers to the first question are functions, each
        # with no more registers to save and less to keep on the stack than it needs itself
        bit, _ = known.deciding[0]
        answers: list[str] = []
        for holds in (True, False):
            answers += self.function(f"{name}_{int(holds)}", known.given(bit, holds), registers, decisions - 1, 1)
        asked = self.text(schedule(known.only(bit, "decision"), registers, outputs=True), often=1)
        return [*answers, _head(name), *asked, f"    decision ? {name}_1(s) : {name}_0(s);", "}"]

    def function(
        self,
        name: str,
        made: Design,
        registers: Mapping[Register, int],
        decisions: int,
        often: float,
        cold: str = "",
    ) -> list[str]:
        """Return a function that is called at this rate, followed by functions for its rare parts.

        A rare part is a clock whose conditions seldom hold.
        """
        others: list[str] = []

        def lines(made: Design, decisions: int, often: float) -> list[str]:
            """Return a clock, with a body for each answer to so many of the questions that it depends on."""
            if not decisions or not made.deciding:
                return self.text(schedule(made, registers), registers, often)
            (bit, rare), decision = made.deciding[0], f"decision{decisions}"
            asked = self.text(schedule(made.only(bit, decision), registers, outputs=True), often=often)
            parts = []
            for holds in (True, False):
                given = made.given(bit, holds)
                if rare == holds:
                    other = f"{name}_seldom{len(others)}"  # several may be at one depth
                    others.extend(self.function(other, given, registers, decisions - 1, 0, cold))
                    parts.append([f"    return {other}(s);"])
                else:
                    parts.append(lines(given, decisions - 1, often / 2 if rare is None else often))
            inside = [[f"    {line}" for line in part] for part in parts]
            return [*asked, f"    if ({decision}) {{", *inside[0], "    } else {", *inside[1], "    }"]

        text = lines(made, decisions, often)
        kept = {r: value for r, value in registers.items() if made.registers[r] == constant(value, r.width)}
        same = {r for r, bits in made.registers.items() if bits == made.register(r)}
        steady = self.marked["steady"]
        asks = steady and "steady" not in self.flags(registers) and not same.issuperset(steady)
        tail = [self.test("steady")] if asks else []
        return [*others, _head(name, cold), *text, *tail, "    {", *self.outputs(kept, same), "    }", "}"]

    def text(self, plan: Plan, registers: Mapping[Register, int] = NOTHING, often: float = 0) -> list[str]:
        """Return the text of a plan; ``often`` is the share of clocks in which these registers are known."""
        flags = {r: (level, value) for level in LEVELS for r, value in self.marked[level].items() if r in registers}
        made = Text(plan, self.names, self.rows, flags)
        lines = made.lines()
        for register, heat in made.heat.items():
            self.heat[register] = self.heat.get(register, 0) + often * heat
        return lines

    def flags(self, registers: Mapping[Register, int]) -> set[str]:
        return {level for level in LEVELS if any(register in registers for register in self.marked[level])}

    def test(self, level: str) -> str:
        tests = [f"s.{self.names[r]} == {number(v, r.width)}" for r, v in self.marked[level].items()]
        return f"    s.{level} = {' && '.join(tests) or 'true'};"

    def members(self) -> list[str]:
        """Return the declarations of ports, registers and memories, the small ones first."""
        base, inherited = port_struct([port.name for port in self.ports])
        found = [f"{stored_type(port.width)} {port.name}{{}};" for port in self.ports if port.name not in inherited]
        of_ports = {port.name for port in self.ports}
        own = ordered((each for each in self.names if self.names[each] not in of_ports), self.heat)
        for place, register in enumerate(own):
            begin = "alignas(64) " if place == 0 else ""
            found.append(f"{begin}{stored_type(register_bits(register))} {self.names[register]}{{}};")
        found += [f"bool {level} = false;" for level in LEVELS if level not in inherited]
        found += (declared(group, zeroed=True) for group in sorted(self.groups, key=lambda group: group[0].depth))
        begin = [
            f"        {name} = {number(register.init, register.width)};"
            for register, name in self.names.items()
            if register.init
        ]
        for memory in self.whole.memories:
            begin += self.contents(memory)
        return [
            f"struct Node : {base} {{",
            *(f"    {text}" for text in found),
            f"    Node() : {base}() {{",
            *begin,
            "    }",
            "};",
        ]

    def contents(self, memory: Memory) -> list[str]:
        found = []
        for k, (low, width) in enumerate(memory.fields):
            values = [value >> low & ((1 << width) - 1) for value in memory.init]
            if any(values):
                name, table = f"{memory.name}_{k}", ", ".join(number(value, width) for value in values)
                place = self.rows[memory].place("k", k)
                found += [
                    f"        static const {stored_type(width)} init_{name}[] = {{{table}}};",
                    f"        for (int k = 0; k < {len(values)}; ++k) {place} = init_{name}[k];",
                ]
        return found

    def outputs(self, kept: Mapping[Register, int], same: Collection[Register] | None = None) -> list[str]:
        """Return the statements that make the outputs which are no registers.

        They are all such outputs, or fewer after a clock that began with known registers and leaves them so (``kept``),
        or leaves them unchanged (``same``): then only those outputs that depend on others.
        """
        outputs = {name: self.whole.outputs[name] for name in self.computed}
        made = Design(self.whole.graph, self.whole.inputs, outputs=outputs).known(kept, {})
        outputs = made.outputs
        made.outputs = {name: bits for name, bits in outputs.items() if same is None or not _hangs_on(bits, same)}
        return self.text(schedule(made, kept, outputs=True))


def _head(name: str, cold: str = "") -> str:
    """Return the head of a function; the event loop calls some of them directly."""
    if name in ENTRIES:
        return f"[[{cold}gnu::noinline]] static void {name}(void* node) {{\n    Node& s = *static_cast<Node*>(node);"
    return f"[[{cold}gnu::noinline]] static void {name}(Node& s) {{"


def _hangs_on(bits: Bits, registers: Collection[Register]) -> bool:
    """Return whether a value depends on nothing but these registers."""
    order = topological(iter([bits]))
    return all(node.data in registers if node.op == "register" else node.op != "read" for node in order)


def _answered(made: Design, decisions: int) -> Iterator[Design]:
    """Yield a clock for each answer to so many of the conditions on which it depends."""
    if not decisions or not made.deciding:
        yield made
        return
    for holds in (True, False):
        yield from _answered(made.given(made.deciding[0][0], holds), decisions - 1)
