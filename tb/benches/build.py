"""Nodes of either width in Verilator, from Amaranth's own Verilog: compiled once, kept with the compiled nodes.

``program`` is for cocotb, which sees the node's ports and nothing else; ``library`` has ports that Python reads and
writes itself (:mod:`benches.compiled`).
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import bentpipe_hdl
from bentpipe_hdl.amaranth_private import ports
from bentpipe_hdl.nodes import Link, Nic, Switch
from bentpipe_hdl.switch.options import options_word
from bentpipe_sim import verilated, verilog
from bentpipe_sim.build import Shape
from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import digest, digest_of
from bentpipe_sim.tools import compiler, run, uncollected
from bentpipe_sim.verilated import VERILATOR_FLAGS, cxx_options, prelude, runtime, tools, verilate
from bentpipe_sim.verilog import verilog_of

__all__ = ["TOP", "border", "library", "library_of", "library_of_component", "prepare", "program", "shape_of"]

TOP = "node"

CXX_FLAGS = ("-std=gnu++17", "-fPIC", "-w")
OPTIMIZED = "-Og"
"""Behind all other flags. A test runs its node for some thousand clocks: -O1 takes longer to compile than it saves."""
OPTIONS = ("--timescale", "1ns/1ps", "--prefix", "Vtop", "--top-module", TOP)
RUNTIME_OF_VPI = ("verilated_vpi.cpp", "verilated_dpi.cpp")
FLAGS_OF_VPI = (OPTIMIZED, "-fvisibility=default")
"""cocotb's library refers to VPI's functions in the program."""

RESERVED = {"auto", "case", "char", "default", "do", "double", "float", "for", "int", "long", "new", "short", "switch"}
"""Words of C++ that may be names of ports: Verilator gives them a prefix."""

# Only the ports can be seen from outside: what is public cannot be optimized.
CONTROL = f"""`verilator_config
public_flat_rw -module "{TOP}" -port "*"
"""


def border(widths: dict[str, int]) -> str:
    members = {name: f"__SYM__{name}" if name in RESERVED else name for name in widths}
    rows = ", ".join(f'{{"{name}", &top->{members[name]}, {width}}}' for name, width in widths.items() if width)
    return f"""
#include "Vtop.h"
#include <cstdint>
struct Port {{ const char* name; void* data; uint32_t width; }};
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT void* node_new() {{ return new Vtop(new VerilatedContext); }}
EXPORT void node_eval(void* node) {{ static_cast<Vtop*>(node)->eval(); }}
EXPORT uint32_t node_ports(void* node, Port* list) {{
    Vtop* top = static_cast<Vtop*>(node);
    const Port ports[] = {{ {rows}, {{"clk", &top->clk, 1}}, {{"rst", &top->rst, 1}} }};
    uint32_t count = 0;
    for (const Port& port : ports) list[count++] = port;
    return count;
}}
"""


def _compiled(component: Any, suffix: str, versions: str, work: Callable[[Path, str], list[str]], *parts: str) -> Path:
    """The file of the cache that the C++ compiler makes with what ``work`` adds to its command; ``parts`` and
    ``versions`` decide it besides the component."""
    text = verilog_of(component, TOP)
    kind = "-".join([type(component).__name__.lower(), *map(str, filter(None, [getattr(component, "width", None)]))])
    name = f"bench-{kind}-{digest(text, versions, *VERILATOR_FLAGS, *OPTIONS, *CXX_FLAGS, OPTIMIZED, *parts)}{suffix}"

    def build(folder: Path) -> Path:
        (folder / "node.v").write_text(text)
        more = work(folder, kind)
        options = [*CXX_FLAGS, *cxx_options(), OPTIMIZED]
        command = [compiler(), *options, *prelude(options), f"-I{folder / 'verilated'}"]
        run([*command, str(folder / "whole.cpp"), *more, "-o", str(folder / name)], f"compiling {kind}")
        return folder / name

    return Cache().make(name, build)


def library(component: Any) -> Path:
    """The node's ports and a function that evaluates it, as a shared library."""
    around = border({name: len(value) for name, (value, _) in ports(component).items()})

    def work(folder: Path, kind: str) -> list[str]:
        included = verilate([folder / "node.v"], folder / "verilated", kind, *OPTIONS)
        (folder / "whole.cpp").write_text(included + around)
        return ["-shared", "-Wl,-Bsymbolic", str(runtime())]

    return _compiled(component, ".so", tools(), work, around)


def shape_of(node: Switch | Nic | Link) -> Shape:
    """Return the shape that a node was built as."""
    if isinstance(node, Switch):
        options = options_word([option.name for option in node.options])
        return Shape.of("switch", vcs=node.vcs, cells=node.cells, ports=node.ports, options=options)
    if isinstance(node, Nic):
        return Shape.of("nic", vcs=node.vcs, **{option.name: 1 for option in node.options})
    return Shape.of("link", **{option.name: value for option, value in node.options.items() if option.name})


def library_of(shape: Shape, width: int) -> Path:
    """The library of a node of this shape; elaborated only if it is not in the cache, which takes 1 to 5 s."""
    return _indexed(f"{shape} of {width} bits", lambda: library(shape.component(width)))


def library_of_component(make: partial[Any]) -> Path:
    """The library of what ``make`` makes: a class of our own with its parameters, for example of a part of a node."""
    return _indexed(_name(make), lambda: library(make()))


def _name(make: partial[Any]) -> str:
    name = re.sub(r"<function (\w+) at 0x\w+>", r"\1", repr(make))
    assert " at 0x" not in name, f"a parameter without a text of its own: {name}"
    return name


def _indexed(name: str, made: Callable[[], Path]) -> Path:
    """The file of the cache that ``made`` makes of our own sources, by this name."""
    cache = Cache()
    index = f"bench-index-{digest(_sources(), name)}.json"
    versions = f"{tools()} {OPTIMIZED}"
    with cache.alone(index):
        known = cache.find(index, lambda: versions)
        if known is None:
            with uncollected():
                known = made()
            cache.note(index, versions, known.name, name)
    return known


@cache
def _sources() -> str:
    """The digest of all that decides what a node's library is, but for the tools."""
    rtl = sorted(Path(str(bentpipe_hdl.__file__)).parent.rglob("*.py"))
    rig = Path(__file__).with_name("rig.py")
    return digest_of([*rtl, Path(__file__), rig, Path(str(verilated.__file__)), Path(str(verilog.__file__))])


def prepare() -> None:
    """Make what all libraries and programs have in common: Verilator's runtime and its header."""
    runtime()
    runtime(RUNTIME_OF_VPI, *FLAGS_OF_VPI)
    prelude([*CXX_FLAGS, *cxx_options(), OPTIMIZED])


def program(make: partial[Any]) -> Path:
    """The node that ``make`` makes with cocotb's main program; elaborated only if it is not in the cache."""
    from cocotb_tools.config import libs_dir

    version = importlib.metadata.version("cocotb")
    return _indexed(f"{_name(make)} in cocotb {version} of {libs_dir}", lambda: _program(make()))


def _program(component: Any) -> Path:
    from cocotb_tools.config import libs_dir, share_dir

    main = share_dir / "lib" / "verilator" / "verilator.cpp"

    def work(folder: Path, kind: str) -> list[str]:
        (folder / "node.vlt").write_text(CONTROL)
        sources = [folder / "node.vlt", folder / "node.v"]
        included = verilate(sources, folder / "verilated", kind, "--vpi", *OPTIONS)
        (folder / "whole.cpp").write_text(included + main.read_text())
        cocotb = [f"-Wl,-rpath,{libs_dir}", f"-L{libs_dir}", "-lcocotbvpi_verilator"]
        return [str(runtime()), str(runtime(RUNTIME_OF_VPI, *FLAGS_OF_VPI)), *cocotb]

    versions = f"{tools()} cocotb={importlib.metadata.version('cocotb')} {libs_dir}"
    return _compiled(component, "", versions, work, CONTROL)
