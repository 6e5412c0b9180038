"""Registers and memories of the RTL in the state of a native model."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe_hdl.amaranth_private import nir

from ..errors import SimulationError
from ..native.design import design
from ..native.fields import fields
from ..native.library import HEADERS
from ..native.netlist import read_netlist
from ..native.node import members
from ..tools import CSRC, compiler, more_flags, run

__all__ = ["Layout"]


@dataclass(frozen=True)
class _Place:
    """Bits from ``low`` on, ``width`` of them, of a register or of the rows of a memory, from this octet on; from one
    row to the next so many."""

    low: int
    width: int
    octet: int
    step: int

    def value(self, octets: bytes, row: int = 0) -> int:
        at = self.octet + row * self.step
        size = (self.width + 7) // 8
        return (int.from_bytes(octets[at : at + size], "little") & ((1 << self.width) - 1)) << self.low


class Layout:
    """The places of registers and memories in a state, by the numbers of their cells in the netlist.

    Parameters
    ----------
    netlist : nir.Netlist
        The netlist of the component from which the model was made.
    """

    def __init__(self, netlist: nir.Netlist):
        plain = read_netlist(netlist)
        whole, split = design(plain), fields(plain)
        made = members(whole)
        asked = [(name, f"offsetof(Node, {name}), sizeof(Node::{name})") for name in made.registers.values()]
        for memory, rows in made.memories.items():
            for k in range(len(memory.fields)):
                first = f"offsetof(Node, {rows.place('0', k)}), sizeof(*Node().{rows.array})"
                asked.append((f"{memory.name}.{k}", first))
        found, self.length = _compiled(made.text, asked)
        self.registers: dict[int, list[_Place]] = {}
        self.memories: dict[int, list[_Place]] = {}
        for register, name in made.registers.items():
            cell, _, k = register.name[1:].partition("_")
            low, width = split.of(int(cell), plain.cells[int(cell)].width)[int(k or 0)]
            self.registers.setdefault(int(cell), []).append(_Place(low, width, *found[name]))
        for memory in made.memories:
            self.memories[int(memory.name[1:])] = [
                _Place(low, width, *found[f"{memory.name}.{k}"]) for k, (low, width) in enumerate(memory.fields)
            ]

        for cell, (memory, row) in plain.banked.items():
            places = self.memories.get(memory)
            if places:
                self.registers[cell] = [replace(place, octet=place.octet + row * place.step) for place in places]

    def register(self, octets: bytes, cell: int) -> int:
        """Return the value of a register in a state."""
        return sum(place.value(octets) for place in self.registers[cell])

    def rows(self, octets: bytes, cell: int, depth: int) -> list[int]:
        """Return the rows of a memory in a state."""
        places = self.memories[cell]
        return [sum(place.value(octets, row) for place in places) for row in range(depth)]

    def check(self, octets: bytes) -> None:
        """Raise SimulationError if the octets cannot be such a state."""
        if len(octets) != self.length:
            raise SimulationError(f"the node's state has {len(octets)} octets, and its RTL's would have {self.length}")


def _compiled(text: str, asked: list[tuple[str, str]]) -> tuple[dict[str, tuple[int, int]], int]:
    """Return the compiler's figures of members: offset and size, by name; and the size of the whole."""
    lines = "".join(f'    std::printf("{name} %zu %zu\\n", {what});\n' for name, what in asked)
    included = "".join(f'#include "{header}"\n' for header in HEADERS)
    source = (
        f"#include <cstddef>\n#include <cstdio>\n{included}namespace {{\n{text}}}\n"
        f'int main() {{\n{lines}    std::printf("Node 0 %zu\\n", sizeof(Node));\n}}\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        file, program = Path(folder) / "layout.cpp", Path(folder) / "layout"
        file.write_text(source)
        command = [compiler(), "-std=gnu++17", "-w", *more_flags(), f"-I{CSRC}", str(file), "-o", str(program)]
        run(command, "compiling a node's layout")
        output = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    found = {name: (int(octet), int(size)) for name, octet, size in map(str.split, output.splitlines())}
    return found, found.pop("Node")[1]
