"""Error messages of the code, for the page that finds them: ``errors.md`` includes what :func:`errors` returns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["AREAS", "errors", "messages"]

ROOT = Path(__file__).parents[1]

RAISED = {
    "BentpipeError",
    "ConfigError",
    "ConfigProblem",
    "ExperimentFailed",
    "FolderHeld",
    "NetworkError",
    "Refused",
    "SimulationError",
    "BoardError",
    "error",
    "wrong",
    "_error",
}
"""Names of exceptions that a user sees, and of functions that make one."""

AREAS = {
    "Command line": (("sw/bentpipe/commands", "sw/bentpipe/cli.py"), "`bentpipe COMMAND --help` lists the options."),
    "Experiment files": (
        ("sw/bentpipe/experiment", "sw/bentpipe/apps", "sw/bentpipe/hosts", "sw/bentpipe/declarations.py"),
        "An error begins with file, line and key, and there may be several. See [writing experiments]"
        "(writing-experiments.md#mistakes); `bentpipe help keys` lists the keys.",
    ),
    "NetSpec scripts": (("sw/bentpipe/netspec",), "See [NetSpec](netspec.md)."),
    "Run folders and reports": (
        ("sw/bentpipe/results", "sw/bentpipe/report", "sw/bentpipe/compare", "sw/bentpipe/plots", "sw/bentpipe/serve"),
        "See [the run folder](quickstart.md#the-run-folder) and [continuing a run](quickstart.md#continuing-a-run).",
    ),
    "Sweeps": (("sw/bentpipe/sweeps",), "See [sweeps](sweeps.md)."),
    "Real hosts": (("sw/bentpipe/attach",), "See [real hosts](attach.md); `bentpipe doctor` shows what is permitted."),
    "Fades and other profiles": (("sw/bentpipe/channels.py",), "See `bentpipe profile --help`."),
    "From Python": (("sw/bentpipe/api.py",), "See [from Python](python.md)."),
    "Networks, engines and tools": (
        ("sim/bentpipe_sim",),
        "`bentpipe doctor` shows missing tools. Of a network, the message names node, VC or line.",
    ),
    "Boards": (("sim/bentpipe_sim/board", "boards/bentpipe_boards"), "See [boards](boards.md)."),
}
"""Areas of the page: folders and files, and where to read on. The last area whose path fits a file has it."""


def _text(node: ast.expr) -> str:
    """Return a text as it is printed, with … for each value that is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return _text(node.body)
    return "…"


def messages(source: str) -> Iterator[str]:
    """Yield the error messages in a Python file: the longest text of each call of a name in ``RAISED``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            texts = [" ".join(_text(each).split()) for each in node.args]
            best = max(texts, key=len, default="")
            if name in RAISED and len(best.replace("…", " ").split()) > 1:
                yield re.sub("…+", "…", best)


def _area(path: str) -> str | None:
    fits = [area for area, (paths, _) in AREAS.items() for each in paths if path == each or path.startswith(f"{each}/")]
    return fits[-1] if fits else None


def errors() -> str:
    """Return a section for each area with its messages, in order of their first letters."""
    found: dict[str, set[str]] = {area: set() for area in AREAS}
    for package in ("sw/bentpipe", "sim/bentpipe_sim", "boards/bentpipe_boards"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if area := _area(str(path.relative_to(ROOT))):
                found[area].update(messages(path.read_text(encoding="utf-8")))
    parts = []
    for area, (_, reading) in AREAS.items():
        lines = [
            f"- `{text.replace('`', chr(39))}`" for text in sorted(found[area], key=lambda text: text.lstrip("…: "))
        ]
        parts.append("\n".join([f"## {area}", "", reading, "", *lines, ""]))
    return "\n".join(parts)
