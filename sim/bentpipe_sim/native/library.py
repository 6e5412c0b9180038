"""A node of the native engine as a shared library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..border import border
from ..tools import CSRC, CXX_FLAGS, compiler, compiler_version, more_flags, run

__all__ = ["FLAGS", "HEADERS", "MAKERS", "compiled", "source", "tools"]

HEADERS = ("model.h", "wide.hpp", "crc32.hpp", "convergence.hpp")
MAKERS = (
    "border.py",
    *(f"native/{name}.py" for name in (
        "banks", "cpp", "design", "fields", "graph", "guards", "layout", "library", "netlist", "node",
        "schedule")),
    *(f"csrc/{name}" for name in HEADERS),
)  # fmt: skip
"""What makes a model of a component."""
_BRANCHES = (
    *("-fno-code-hoisting", "-fno-tree-pre", "-fno-tree-dominator-opts", "-fno-if-conversion", "-fno-if-conversion2"),
    *("-fno-ssa-phiopt", "-fno-gcse"),
    *("--param", "logical-op-non-short-circuit=0"),
)
"""What is asked is asked by a jump, and what hangs on it is worked out behind that: values that are worked out before a
question, or in its place, wait in registers, which bodies lack. Nearly all answers are as those before them were.
Flags of GCC, of which clang knows none."""
_ZEROED = ("-fno-lifetime-dse",)
"""Memory that is zero before an object is constructed in it stays zero. A flag that only GCC has."""
FLAGS = (*CXX_FLAGS, "-O2", *_BRANCHES, *_ZEROED)


def tools() -> str:
    """Return the versions of the tools that make a library of a source."""
    return compiler_version()


def source(component: Any, name: str) -> str:
    """Return the whole C++ of a node.

    Raises
    ------
    NetlistError
        The component uses something that the native engine does not handle.
    """
    from .node import generate

    node = generate(component, name)
    head = "".join(f'#include "{header}"\n' for header in HEADERS)
    around = border(
        node.ports, "Node", begin="outputs(m);", clock="clock(m);", cell=node.cell, turn=node.turn, copied=True
    )
    return f"{head}namespace {{\n{node.text}}}\n{around}"


def compiled(text: str, folder: Path, what: str) -> Path:
    """Compile the source, and return the library in this folder."""
    written, made = folder / "node.cpp", folder / "node.so"
    written.write_text(text)
    flags = [flag for flag in FLAGS if flag not in (*_BRANCHES, *_ZEROED)] if "clang" in compiler_version() else FLAGS
    command = [compiler(), *flags, *more_flags(), f"-I{CSRC}", str(written)]
    run([*command, "-o", str(made)], f"compiling {what}")
    return made
