"""Any Amaranth design as C++: its state, a function for each clock, functions that work out what it drives.

The state is a struct ``Node`` with inputs, registers and memories in an order that depends on the design alone. So
functions of several libraries work on the same state: what few benches ask for is compiled when one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bentpipe_hdl.amaranth_simulation import nir

from ..banks import gather
from ..cpp import Text, number
from ..design import Design, Memory, Register, _Builder
from ..fields import fields
from ..graph import Bits, constant_of, width_of
from ..layout import declared, register_bits, rows, stored_type
from ..linear import with_tables
from ..schedule import schedule
from .netlist import read_any

__all__ = ["HEADERS", "Map", "Source"]

HEADERS = ("wide.hpp",)

PORTS, INNER, MONITORS = "ports", "inner", "monitors"
"""Groups of values that are worked out together: what the top component shows, other signals, what Print and Assert
ask for."""

_EXPORT = """
#include <cstddef>
#include <new>
#define EXPORT extern "C" __attribute__((visibility("default")))
"""


class _Text(Text):
    INITIAL = "{}"
    """GCC 12 joins ``if (!a) if (b)`` into ``b > a`` at -O1. So where ``a`` holds, ``b`` has to be 0 or 1, too."""


class _Outputs(_Text):
    OUTPUTS = "o"


@dataclass
class Map:
    """Layout of a state and of groups; it goes through JSON.

    A value is a list of pieces, the lowest bits first: ``["place", number, lowest bit, width]`` of an input or a
    register, ``["row", number, row, lowest bit, width]`` of a memory, ``["constant", value, width]``, or, alone,
    ``["output", group, number, width]``.

    Members
    -------
    values : list
        For each signal of the netlist.
    widths : list of int
        Bits of each place.
    inputs : int
        So many places, the first ones, are inputs.
    words : list of list of (int, int, int)
        For each memory of the netlist its parts: lowest bit, width, place.
    clocks : list of (value, edge, value or None)
        Signal, edge and asynchronous reset of each clock.
    monitors : list
        Of each the number of its cell, its clock, and values: enable, test, values of its text.
    outputs : dict of str to int
        How many each group has.
    """

    values: list[list[list[Any]]] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    inputs: int = 0
    words: list[list[tuple[int, int, int]]] = field(default_factory=list)
    clocks: list[tuple[Any, int, Any]] = field(default_factory=list)
    monitors: list[list[Any]] = field(default_factory=list)
    outputs: dict[str, int] = field(default_factory=dict)


class Source:
    """The C++ of a design.

    Parameters
    ----------
    netlist : nir.Netlist
        Of :func:`bentpipe_hdl.amaranth_simulation.netlist_of`.
    shown : collection of int
        Numbers of signals that the top component shows.

    Raises
    ------
    NetlistError
        It uses something that the native engine does not handle.
    """

    def __init__(self, netlist: nir.Netlist, shown: Iterable[int]):
        found = self.netlist = read_any(netlist)
        if len(found.clocks) == 1 and found.clocks[0].reset is None:
            gather(found)
        self.builder = _Builder(found, fields(found))
        self.whole = self.builder.whole()
        self.clock_of = {register: found.clock_of[index] for (index, _), register in self.builder.registers.items()}
        writes = [index for index, cell in enumerate(found.cells) if cell.op == "write"]
        self.clocks_of_writes = [found.clock_of.get(index, 0) for index in writes]
        self.names = {register: register.name for register in self.whole.registers}
        self.rows = rows([memory] for memory in self.whole.memories)
        self.places = self.find_places()
        self.groups: dict[str, dict[Bits, int]] = {PORTS: {}, INNER: {}, MONITORS: {}}
        self.map = self.mapped(frozenset(shown))

    # Where things are

    def find_places(self) -> dict[Any, int]:
        """Return the number of each input (by name), register, and memory with its field."""
        keys: list[Any] = [*self.whole.inputs, *self.whole.registers]
        keys += [(memory, k) for memory in self.whole.memories for k in range(len(memory.fields))]
        return {key: place for place, key in enumerate(keys)}

    def mapped(self, shown: frozenset[int]) -> Map:
        found, value = Map(inputs=len(self.whole.inputs)), self.builder.value
        found.widths += [*self.whole.inputs.values(), *(register.width for register in self.whole.registers)]
        found.widths += [width for memory in self.whole.memories for _, width in memory.fields]
        for k, bits in enumerate(self.netlist.signals):
            found.values.append(self.located(value(bits), PORTS if k in shown else INNER))
        for parts in self.netlist.words:
            words: list[tuple[int, int, int]] = []
            for low, _, index in parts:
                memory = self.builder.memories[index]
                words += [(low + a, width, self.places[memory, k]) for k, (a, width) in enumerate(memory.fields)]
            found.words.append(words)
        for clock in self.netlist.clocks:
            reset = None if clock.reset is None else self.located(value(clock.reset), PORTS)
            found.clocks.append((self.located(value(clock.clk), PORTS), clock.edge, reset))
        for monitor in self.netlist.monitors:
            asked = [monitor.enable, monitor.test, *monitor.values]
            located = [bits if bits is None else self.located(value(bits), MONITORS) for bits in asked]
            found.monitors.append([monitor.cell, monitor.clock, located])
        found.outputs = {group: len(values) for group, values in self.groups.items()}
        return found

    def located(self, bits: Bits, group: str) -> list[list[Any]]:
        pieces: list[list[Any]] = []
        for node, low, width in bits:
            if node is None:
                pieces.append(["constant", low, width])
            elif node.op == "input" or node.op == "register":
                pieces.append(["place", self.places[node.data], low, width])
            elif node.op == "read" and (row := constant_of(node.args[0])) is not None:
                pieces.append(["row", self.places[node.data], row, low, width])
            else:  # the whole is worked out, once for all signals that have the same value
                numbers = self.groups[PORTS] if bits in self.groups[PORTS] and group == INNER else self.groups[group]
                group = PORTS if numbers is self.groups[PORTS] else group
                return [["output", group, numbers.setdefault(bits, len(numbers)), width_of(bits)]]
        return pieces

    # Text

    def library(self, masks: Iterable[int], groups: Iterable[str]) -> str:
        """Return a library with functions for the clocks of these masks, and for these groups of values."""
        masks, groups = list(masks), list(groups)
        lines = [*(f'#include "{header}"' for header in HEADERS), _EXPORT, "namespace {", *self.state()]
        for mask in masks:
            lines += self.clock(mask)
        for group in groups:
            lines += self.group(group)
        return "\n".join([*lines, "}", *self.exports(masks, groups), ""])

    def state(self) -> list[str]:
        whole = self.whole
        members = [f"{stored_type(width)} {name}{{}};" for name, width in whole.inputs.items()]
        begin = [f"{name} = {number(init, whole.inputs[name])};" for name, init in self.netlist.inits.items() if init]
        for register in whole.registers:
            members.append(f"{stored_type(register_bits(register))} {register.name}{{}};")
            if register.init:
                begin.append(f"{register.name} = {number(register.init, register.width)};")
        for memory in whole.memories:
            members.append(declared([memory]))
            begin += self.contents(memory)
        inside = [f"    {text}" for text in members]
        return ["struct Node {", *inside, "    Node() {", *(f"        {text}" for text in begin), "    }", "};"]

    def contents(self, memory: Memory) -> list[str]:
        found = []
        for k, (low, width) in enumerate(memory.fields):
            values = [value >> low & ((1 << width) - 1) for value in memory.init]
            if any(values):
                name, place = f"{memory.name}_{k}", self.rows[memory].place("k", k)
                table = ", ".join(number(value, width) for value in values)
                found.append(f"static const {stored_type(width)} init_{name}[] = {{{table}}};")
                found.append(f"for (int k = 0; k < {len(values)}; ++k) {place} = init_{name}[k];")
        return found

    def clock(self, mask: int) -> list[str]:
        """Return the statements for an edge of these clocks."""
        whole = self.whole
        made = Design(whole.graph, whole.inputs, memories=whole.memories)
        made.registers = {
            register: bits if mask >> self.clock_of[register] & 1 else whole.register(register)
            for register, bits in whole.registers.items()
        }
        timed = zip(whole.writes, self.clocks_of_writes, strict=True)
        made.writes = [write for write, clock in timed if mask >> clock & 1]
        plan = schedule(with_tables(made.known({}, {})), {})
        lines = _Text(plan, self.names, self.rows, {}).lines()
        return [f"[[gnu::noinline]] void clock_{mask}(Node& s) {{", *lines, "}"]

    def group(self, group: str) -> list[str]:
        values = self.groups[group]
        made = Design(self.whole.graph, self.whole.inputs, memories=self.whole.memories)
        made.outputs = {f"o{k}": bits for bits, k in values.items()}
        plan = schedule(with_tables(made.known({}, {})), {}, outputs=True)
        lines = _Outputs(plan, self.names, self.rows, {}).lines()
        members = " ".join(f"{stored_type(width_of(bits))} o{k}{{}};" for bits, k in values.items())
        struct = f"struct Of_{group} {{ {members} }};"
        return [struct, f"[[gnu::noinline]] void work_out_{group}(Node& s, Of_{group}& o) {{", *lines, "}"]

    def exports(self, masks: Iterable[int], groups: Iterable[str]) -> list[str]:
        found = [
            "EXPORT const uint64_t bentpipe_size = sizeof(Node);",
            "EXPORT void bentpipe_begin(void* p) { std::memset(p, 0, sizeof(Node)); new (p) Node; }",
            f"EXPORT const uint64_t bentpipe_places[][3] = {{{''.join(f'{row}, ' for row in self.offsets())}{{}}}};",
        ]
        for mask in masks:
            found += [
                f"EXPORT void clock_{mask}_(void* p) {{ clock_{mask}(*static_cast<Node*>(p)); }}",
                f"EXPORT void clocks_{mask}_(void* p, uint64_t n) {{ "
                f"while (n--) clock_{mask}(*static_cast<Node*>(p)); }}",
            ]
        for group in groups:
            kind, numbers = f"Of_{group}", self.groups[group].values()
            outputs = [f"{{offsetof({kind}, o{k}), sizeof({kind}::o{k})}}, " for k in numbers]
            call = f"work_out_{group}(*static_cast<Node*>(p), *static_cast<{kind}*>(o))"
            found += [
                f"EXPORT const uint64_t size_of_{group} = sizeof({kind});",
                f"EXPORT const uint64_t outputs_of_{group}[][2] = {{{''.join(outputs)}{{}}}};",
                f"EXPORT void work_out_{group}_(void* p, void* o) {{ {call}; }}",
            ]
        return found

    def offsets(self) -> list[str]:
        """Return for each place its octet, size, and the octets from one row to the next."""
        found = []
        for key in self.places:
            if isinstance(key, tuple):
                array, place = self.rows[key[0]].array, self.rows[key[0]].place("0", key[1])
                found.append(f"{{offsetof(Node, {place}), sizeof(Node::{array}[0]), sizeof(Node::{array}[0])}}")
                if self.rows[key[0]].fields[key[1]]:
                    size = stored_type(key[0].fields[key[1]][1])
                    found[-1] = f"{{offsetof(Node, {place}), sizeof({size}), sizeof(Node::{array}[0])}}"
            else:
                name = key.name if isinstance(key, Register) else key
                found.append(f"{{offsetof(Node, {name}), sizeof(Node::{name}), 0}}")
        return found


def masks_of(clocks: Iterable[tuple[Any, int, Any]]) -> Mapping[tuple[str, int], int]:
    """Return, for each signal and edge (as text) that has an effect, the clocks of which it is an edge."""
    found: dict[tuple[str, int], int] = {}
    for k, (clk, edge, reset) in enumerate(clocks):
        for value, polarity in ((clk, edge), (reset, 1)):
            if value is not None:
                key = (repr(value), polarity)
                found[key] = found.get(key, 0) | 1 << k
    return found
