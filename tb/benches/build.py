"""Nodes of either width in Verilator, from Amaranth's own Verilog: compiled once, kept with the compiled nodes.

``program`` is for cocotb, which sees the node's ports and nothing else; ``library`` has ports that Python reads and
writes itself (:mod:`benches.compiled`).
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bentpipe_hdl.amaranth_private import ports
from bentpipe_sim.cache import Cache
from bentpipe_sim.tools import compiler, digest, run
from bentpipe_sim.verilated import VERILATOR_FLAGS, cxx_options, runtime, tools, verilate
from bentpipe_sim.verilog import verilog_of

__all__ = ["TOP", "library", "program"]

TOP = "node"

CXX_FLAGS = ("-std=gnu++17", "-O1", "-fPIC", "-w")
OPTIONS = ("--timescale", "1ns/1ps", "--prefix", "Vtop", "--top-module", TOP)
RUNTIME_OF_VPI = ("verilated.cpp", "verilated_vpi.cpp", "verilated_dpi.cpp", "verilated_threads.cpp")

# Only the ports can be seen from outside: what is public cannot be optimized.
CONTROL = f"""`verilator_config
public_flat_rw -module "{TOP}" -port "*"
"""


def _border(widths: dict[str, int]) -> str:
    rows = ", ".join(f'{{"{name}", &top->{name}, {width}}}' for name, width in widths.items() if width)
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
    name = f"bench-{kind}-{digest(text, versions, *VERILATOR_FLAGS, *OPTIONS, *CXX_FLAGS, *parts)}{suffix}"

    def build(folder: Path) -> Path:
        (folder / "node.v").write_text(text)
        more = work(folder, kind)
        command = [compiler(), *CXX_FLAGS, f"-I{folder / 'verilated'}", *cxx_options(), str(folder / "whole.cpp")]
        run([*command, *more, "-o", str(folder / name)], f"compiling {kind}")
        return folder / name

    return Cache().make(name, build)


def library(component: Any) -> Path:
    """The node's ports and a function that evaluates it, as a shared library."""
    border = _border({name: len(value) for name, (value, _) in ports(component).items()})

    def work(folder: Path, kind: str) -> list[str]:
        included = verilate([folder / "node.v"], folder / "verilated", kind, *OPTIONS)
        (folder / "whole.cpp").write_text(included + border)
        return ["-shared", "-Wl,-Bsymbolic", str(runtime(CXX_FLAGS))]

    return _compiled(component, ".so", tools(), work, border)


def program(component: Any) -> Path:
    """The node with cocotb's main program."""
    from cocotb_tools.config import libs_dir, share_dir

    main = share_dir / "lib" / "verilator" / "verilator.cpp"

    def work(folder: Path, kind: str) -> list[str]:
        (folder / "node.vlt").write_text(CONTROL)
        sources = [folder / "node.vlt", folder / "node.v"]
        included = verilate(sources, folder / "verilated", kind, "--vpi", *OPTIONS)
        (folder / "whole.cpp").write_text(included + main.read_text())
        cocotb = [f"-Wl,-rpath,{libs_dir}", f"-L{libs_dir}", "-lcocotbvpi_verilator"]
        return [str(runtime(CXX_FLAGS, RUNTIME_OF_VPI)), *cocotb]

    versions = f"{tools()} cocotb={importlib.metadata.version('cocotb')} {libs_dir}"
    return _compiled(component, "", versions, work, CONTROL)
