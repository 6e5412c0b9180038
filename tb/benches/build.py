"""Nodes in Verilator, from Amaranth's own Verilog: compiled once a node and width, kept in ``build/cocotb``.

One compilation makes two things: a program for cocotb, which sees the node's ports and nothing else, and a shared
library, whose ports Python reads and writes itself (:mod:`benches.compiled`).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from amaranth.back import verilog
from amaranth.hdl import Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

from bentpipe_sim.tools import compiler
from bentpipe_sim.verilated import verilator

__all__ = ["TOP", "build"]

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "cocotb"
TOP = "node"

VERILATOR_FLAGS = ("--cc", "--vpi", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal",
                   "-Wno-lint", "--timescale", "1ns/1ps", "--prefix", "Vtop", "--top-module", TOP)  # fmt: skip
MACROS = ("VERILATOR=1", "VM_COVERAGE=0", "VM_SC=0", "VM_TIMING=0", "VM_TRACE=0", "VM_TRACE_FST=0", "VM_TRACE_VCD=0",
          "VM_TRACE_SAIF=0")  # fmt: skip
CXX_FLAGS = ("-std=gnu++17", "-O1", "-fPIC", "-w", *(f"-D{macro}" for macro in MACROS))
RUNTIME = ("verilated.cpp", "verilated_vpi.cpp", "verilated_dpi.cpp", "verilated_threads.cpp")

# Only the ports can be seen from outside: what is public cannot be optimized.
CONTROL = f"""`verilator_config
public_flat_rw -module "{TOP}" -port "*"
"""


def _wrapper(ports: dict[str, tuple[Value, PortDirection]]) -> str:
    rows = ", ".join(f'{{"{name}", &top->{name}, {len(value)}}}' for name, (value, _) in ports.items() if len(value))
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


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _call(command: list[str], **options: Any) -> None:
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command[0]} failed:\n{result.stderr[-3000:]}"


def _make(folder: Path, work: Any) -> Path:
    """``folder`` with what ``work`` puts into it: all of it, or nothing."""
    if not folder.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=BUILD) as making:
            made = Path(making) / "made"
            made.mkdir()
            work(made)
            try:
                made.rename(folder)
            except OSError:  # another process was faster
                assert folder.exists()
    return folder


def _includes() -> list[str]:
    include = verilator()[1] / "include"
    return [f"-I{include}", f"-I{include / 'vltstd'}"]


def _runtime(versions: str) -> Path:
    """Verilator's runtime with VPI, and cocotb's main program, as object files that every node links."""
    from cocotb_tools.config import share_dir

    def work(folder: Path) -> None:
        whole = folder / "runtime.cpp"
        whole.write_text("".join(f'#include "{name}"\n' for name in RUNTIME))
        _call([compiler(), *CXX_FLAGS, *_includes(), "-c", str(whole), "-o", str(folder / "runtime.o")])

    main = (share_dir / "lib" / "verilator" / "verilator.cpp").read_text()
    return _make(BUILD / f"runtime-{_digest(versions, *CXX_FLAGS, main)}", work)


def _ports(component: Any) -> dict[str, tuple[Value, PortDirection]]:
    found = {}
    for path, member, value in component.signature.flatten(component):
        direction = PortDirection.Input if member.flow == In else PortDirection.Output
        found["_".join(str(part) for part in path)] = (Value.cast(value), direction)
    return found


def build(component: Any) -> Path:
    """The folder of a node's program ``node`` and library ``node.so``; nothing is compiled a second time."""
    from cocotb_tools.config import libs_dir, share_dir

    ports = _ports(component)
    text = verilog.convert(component, name=TOP, ports=ports, strip_internal_attrs=True)
    cxx = subprocess.run([compiler(), "--version"], capture_output=True, text=True).stdout.partition("\n")[0]
    versions = " ".join(f"{name}={importlib.metadata.version(name)}" for name in ("verilator", "cocotb")) + cxx
    wrapper = _wrapper(ports)

    def work(folder: Path) -> None:
        binary, root = verilator()
        runtime = str(_runtime(versions) / "runtime.o")
        (folder / "node.v").write_text(text)
        (folder / "node.vlt").write_text(CONTROL)
        out = folder / "verilated"
        sources = [str(folder / name) for name in ("node.vlt", "node.v")]
        _call([str(binary), *VERILATOR_FLAGS, "--Mdir", str(out), *sources],
              env={**os.environ, "VERILATOR_ROOT": str(root)})  # fmt: skip
        generated = sorted(file.name for file in out.glob("Vtop*.cpp"))
        (out / "whole.cpp").write_text("".join(f'#include "{name}"\n' for name in generated) + wrapper)
        compile_it = [compiler(), *CXX_FLAGS, f"-I{out}", *_includes()]
        _call([*compile_it, "-c", str(out / "whole.cpp"), "-o", str(out / "whole.o")])
        objects = [str(out / "whole.o"), runtime]
        main = str(share_dir / "lib" / "verilator" / "verilator.cpp")
        cocotb = [f"-Wl,-rpath,{libs_dir}", f"-L{libs_dir}", "-lcocotbvpi_verilator"]
        _call([*compile_it, main, *objects, *cocotb, "-o", str(folder / TOP)])
        _call([compiler(), "-shared", "-Wl,-Bsymbolic", *objects, "-o", str(folder / "node.so")])
        shutil.rmtree(out)

    kind = "-".join([type(component).__name__.lower(), *map(str, filter(None, [getattr(component, "width", None)]))])
    return _make(BUILD / f"{kind}-{_digest(text, wrapper, versions, CONTROL, *VERILATOR_FLAGS, *CXX_FLAGS)}", work)
