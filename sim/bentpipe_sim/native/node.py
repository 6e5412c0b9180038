"""A node as a class of C++, with a function that is one clock.

A clock has more than one body: the whole one, and shorter ones for clocks at whose beginning some inputs and registers
are known: no register is accessed, a cell comes or none does, what is marked as settled or steady
(:mod:`bentpipe_hdl.steady`) has its value. A shorter body is the same design with these as constants. Members tell
whether marked registers have their values: a body in which they are constants clears the member when it writes another
value, and a longer one computes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..border import Port, face
from .cpp import Text, number, stored_type
from .design import Design, Memory, Register, design, topological
from .graph import Bits, constant
from .netlist import read
from .schedule import schedule

__all__ = ["Generated", "Members", "generate", "members"]

LEVELS = ("settled", "steady")
"""Marks; what is settled differs least often."""

DECISIONS = 3
"""So many of what a clock depends on are asked first, at most."""

QUIET = {"rst": 0, "csr_w_en": 0, "csr_r_en": 0, "time_tick": 1, "post_valid": 0, "passed": 0}
"""Inputs as they are in nearly all clocks."""


@dataclass(frozen=True)
class Generated:
    """C++ of a class ``Node`` with a member for each port, and of ``void clock(Node&)``; the ports; statements about a
    node ``m`` that are a clock of a settled one, with a cell and without."""

    text: str
    ports: tuple[Port, ...]
    cell: str
    turn: str


def generate(component: Any, name: str) -> Generated:
    """The C++ of an Amaranth component.

    Raises
    ------
    NetlistError
        It uses something that the native engine does not handle.
    """
    return _Node(design(read(component, name))).run()


@dataclass(frozen=True)
class Members:
    """C++ of the class ``Node`` with all its state, and no clocks; names of members that are registers' fields;
    memories, members of the same name, with their fields ``f0``, ``f1`` … if they have more than one."""

    text: str
    registers: dict[Register, str]
    memories: tuple[Memory, ...]


def members(whole: Design) -> Members:
    """Where the generated node of a design has its state."""
    node = _Node(whole)
    return Members("\n".join(node.members()) + "\n", node.names, tuple(whole.memories))


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

    def run(self) -> Generated:
        quiet = {name: value for name, value in QUIET.items() if name in self.whole.inputs}
        settled, steady = self.marked["settled"], self.marked["steady"]
        flags = {register: (level, value) for level in LEVELS for register, value in self.marked[level].items()}
        functions: list[list[str]] = []

        def body(name: str, registers: Mapping[Register, int], inputs: Mapping[str, int], decisions: int = 0) -> None:
            known = self.whole.known(registers, inputs)
            if not (steady or inputs.get("i_valid")) or not decisions or not known.deciding:
                function(name, known, registers, decisions, "" if inputs else "gnu::cold, ")
                return
            # Of a cell's clock, or one of a node that is steady, the answers to the first question are functions, each
            # with no more registers to save and less to keep on the stack than it needs itself
            bit, _ = known.deciding[0]
            only = known.only(bit, "decision")
            for holds in (True, False):
                function(f"{name}_{int(holds)}", known.given(bit, holds), registers, decisions - 1)
            asked = Text(schedule(only, registers, outputs=True), self.names, {}).lines()
            head = f"[[gnu::noinline]] static void {name}(Node& s) {{"
            functions.append([head, *asked, f"    decision ? {name}_1(s) : {name}_0(s);", "}"])

        def function(
            name: str, made: Design, registers: Mapping[Register, int], decisions: int, cold: str = ""
        ) -> None:

            def seldom(made: Design, decisions: int) -> str:
                """A function for clocks that are seldom so, of what would be part of this one."""
                other = f"{name}_seldom{len(functions)}"  # several may be at one depth
                function(other, made, registers, decisions, cold)
                return other

            lines = self.lines(made, registers, {r: flags[r] for r in registers}, decisions, seldom)
            kept = {r: value for r, value in registers.items() if made.registers[r] == constant(value, r.width)}
            same = {r for r, bits in made.registers.items() if bits == made.register(r)}
            asks = steady and "steady" not in self.flags(registers) and not same.issuperset(steady)
            tail = [self.test("steady")] if asks else []
            outputs = ["    {", *self.outputs(kept, same), "    }"]
            head = f"[[{cold}gnu::noinline]] static void {name}(Node& s) {{"  # cold: small rather than fast
            functions.append([head, *lines, *tail, *outputs, "}"])

        if steady:
            body("steady_clock", {**settled, **steady}, quiet, DECISIONS)
            body("settled_clock", settled, quiet, DECISIONS)
        elif "i_valid" in self.whole.inputs:
            for comes in (1, 0):
                body(("turn_clock", "cell_clock")[comes], settled, {**quiet, "i_valid": comes}, DECISIONS)
        body("whole_clock", {}, {})
        wanted = " && ".join(["s.settled", *(f"s.{name}" if value else f"!s.{name}" for name, value in quiet.items())])
        short, cell, turn = None, "clock(m);", "clock(m);"
        if steady:
            short = "s.steady ? steady_clock(s) : settled_clock(s)"
            cell = turn = "m.steady ? steady_clock(m) : settled_clock(m);"
        elif "i_valid" in self.whole.inputs:
            short, cell, turn = "s.i_valid ? cell_clock(s) : turn_clock(s)", "cell_clock(m);", "turn_clock(m);"
        clock = ["void clock(Node& s) {"]
        if short:
            clock += [f"    if (__builtin_expect({wanted}, 1)) return {short};"]
        clock += ["    whole_clock(s);", self.test("settled"), "}"]
        outputs = ["inline void outputs(Node& s) {", *self.outputs({}), "}"]
        lines = [*self.members(), *outputs, *(line for each in functions for line in each), *clock]
        return Generated("\n".join(lines) + "\n", tuple(self.ports), cell, turn)

    def lines(
        self,
        made: Design,
        registers: Mapping[Register, int],
        flags: Mapping[Register, tuple[str, int]],
        decisions: int,
        seldom: Callable[[Design, int], str],
    ) -> list[str]:
        """A clock, with a body for each answer to so many of the questions that it depends on."""
        if not decisions or not made.deciding:
            return Text(schedule(made, registers), self.names, flags).lines()
        (bit, rare), name = made.deciding[0], f"decision{decisions}"
        asked = Text(schedule(made.only(bit, name), registers, outputs=True), self.names, {}).lines()
        parts = []
        for holds in (True, False):
            given = made.given(bit, holds)
            if rare == holds:
                parts.append([f"    return {seldom(given, decisions - 1)}(s);"])
            else:
                parts.append(self.lines(given, registers, flags, decisions - 1, seldom))
        inside = [[f"    {line}" for line in part] for part in parts]
        return [*asked, f"    if ({name}) {{", *inside[0], "    } else {", *inside[1], "    }"]

    def flags(self, registers: Mapping[Register, int]) -> set[str]:
        return {level for level in LEVELS if any(register in registers for register in self.marked[level])}

    def test(self, level: str) -> str:
        tests = [f"s.{self.names[r]} == {number(v, r.width)}" for r, v in self.marked[level].items()]
        return f"    s.{level} = {' && '.join(tests) or 'true'};"

    def members(self) -> list[str]:
        """The faces, then small ones first, so that what a clock needs lies beside each other."""
        base, inherited = face([port.name for port in self.ports])
        found = [
            (0, f"{stored_type(port.width)} {port.name}{{}};") for port in self.ports if port.name not in inherited
        ]
        begin: list[str] = []
        of_ports = {port.name for port in self.ports}
        for register, name in self.names.items():
            if name not in of_ports:  # numbers of fewer bits than the processor computes with cost masks
                found.append((1, f"{stored_type(max(register.width, 32) if register.width > 1 else 1)} {name}{{}};"))
            if register.init:
                begin.append(f"        {name} = {number(register.init, register.width)};")
        for memory in self.whole.memories:
            found.append((2 + memory.depth, self.member(memory)))
            begin += self.contents(memory)
        found.sort(key=lambda member: member[0])
        flags = [f"    bool {level} = false;" for level in LEVELS if level not in inherited]
        return [
            f"struct Node : {base} {{",
            *flags,
            *(f"    {text}" for _, text in found),
            f"    Node() : {base}() {{",
            *begin,
            "    }",
            "};",
        ]

    def member(self, memory: Memory) -> str:
        # An address that is out of range in a clock that doesn't use what is read is no fault
        depth = 1 << max(0, memory.depth - 1).bit_length()
        if len(memory.fields) == 1:
            return f"{stored_type(memory.fields[0][1])} {memory.name}[{depth}]{{}};"
        order = sorted(range(len(memory.fields)), key=lambda k: -memory.fields[k][1])
        inside = " ".join(f"{stored_type(memory.fields[k][1])} f{k};" for k in order)
        return f"struct {memory.name.upper()} {{ {inside} }} {memory.name}[{depth}]{{}};"

    def contents(self, memory: Memory) -> list[str]:
        found = []
        for k, (low, width) in enumerate(memory.fields):
            values = [value >> low & ((1 << width) - 1) for value in memory.init]
            place = f"{memory.name}[k]" + (f".f{k}" if len(memory.fields) > 1 else "")
            if any(values):
                table = ", ".join(number(value, width) for value in values)
                kind = stored_type(width)
                found += [
                    f"        static const {kind} {memory.name}_{k}[] = {{{table}}};",
                    f"        for (int k = 0; k < {len(values)}; ++k) {place} = {memory.name}_{k}[k];",
                ]
        return found

    def outputs(self, kept: Mapping[Register, int], same: Collection[Register] | None = None) -> list[str]:
        """What makes the outputs which are no registers: all, or behind a clock that began with registers so and leaves
        them (``kept``), or leaves them as they are (``same``), those that hang on anything else."""
        made = self.whole.known(kept, {})
        outputs = {name: made.outputs[name] for name in self.computed}
        made.outputs = {name: bits for name, bits in outputs.items() if same is None or not _hangs_on(bits, same)}
        return Text(schedule(made, kept, outputs=True), self.names, {}).lines()


def _hangs_on(bits: Bits, registers: Collection[Register]) -> bool:
    """Whether a value hangs on nothing but these registers."""
    order = topological(iter([bits]))
    return all(node.data in registers if node.op == "register" else node.op != "read" for node in order)
