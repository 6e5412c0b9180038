"""The gateware of a board is the RTL that it was built from. A board states its number, and this software has that of
its own sources."""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import digest, digest_of

__all__ = ["BESIDE", "gateware", "outdated"]


@cache
def gateware() -> str:
    """Return twelve hexadecimal digits for the RTL of nodes and boards, "" if this installation lacks the RTL of
    boards.

    They depend on the code alone, not on comments and docstrings.
    """
    folders = [Path(spec.origin).parent for spec in map(find_spec, _PACKAGES) if spec is not None and spec.origin]
    if len(folders) < len(_PACKAGES):
        return ""
    nodes, boards = folders
    files = [*sorted(nodes.rglob("*.py")), *(file for file in sorted(boards.glob("*.py")) if file.stem not in BESIDE)]

    def made(folder: Path) -> Path:
        found = folder / name
        found.write_text(digest(*(_code(file) for file in files))[:12])
        return found

    name = f"gateware-{digest(digest_of(files), Path(__file__).read_bytes())}.txt"
    return Cache().make(name, made).read_text()


BESIDE: Final = frozenset(("components", "devices", "litex_cores", "seen", "simulated", "synth", "tools"))
"""Modules of boards that are not in a board: the table of sizes, tools."""
_PACKAGES: Final = ("bentpipe_hdl", "bentpipe_boards")


def _code(file: Path) -> str:
    """Return a module's code without docstrings."""
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a text alone."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def outdated(has: str) -> str:
    """Return a line about a board or bitstream built from this RTL; "" if the RTL is this software's, or unknown."""
    mine = gateware()
    if not has or not mine or has == mine:
        return ""
    return f"has gateware {has}, this software's is {mine}"
