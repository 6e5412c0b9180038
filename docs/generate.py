"""The parts of the documentation that come from the code: the catalogue of experiments and the registers of nodes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["experiments", "registers", "write_all"]


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _number(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def experiments() -> str:
    """A section for each experiment of the catalogue."""
    from bentpipe.experiment.load import catalogue

    parts = []
    for name, path in catalogue().items():
        document = tomllib.loads(path.read_text())
        about = document["experiment"]
        source = ", ".join(filter(None, (about.get("paper"), about.get("figure"))))
        quick = f", with `--quick` {about['quick']}" if "quick" in about else ""
        parts.append(
            f"## {name}\n\n**{about['title']}**{f' ({source})' if source else ''}. "
            f"Simulates at most {about['duration']}{quick}.\n\n{about.get('description', '').strip()}\n"
        )
        rows = [
            (row["quantity"], row.get("case", ""), *(_number(row.get(key)) for key in ("measured", "predicted")),
             row["unit"], row["source"])
            for row in document.get("published", ())
        ]  # fmt: skip
        if rows:
            head = ("published", "case", "measured", "predicted", "unit", "source")
            parts.append(_table(head, rows))
        parts.append(f"Run it: `bentpipe run {name}`; see all of it: `bentpipe show {name}`.\n")
    return "\n".join(parts)


def registers() -> str:
    """A table of registers for each kind of node, read from its elaborated design."""
    from amaranth.hdl import Fragment

    from bentpipe_hdl import nodes

    parts = []
    for kind in (nodes.Nic, nodes.Switch, nodes.Link):
        node = kind()
        Fragment.get(node, None)
        entries = sorted(node.register_map, key=lambda register: register.addr)
        rows = []
        for register in entries:
            last = f" … {register.addr + register.count - 1:#07x}" if register.count > 1 else ""
            rows.append((f"{register.addr:#07x}{last}", f"`{register.name}`", register.access, register.text))
        parts.append(f"## {kind.__name__}\n\n" + _table(("address", "name", "access", "what it is"), rows))
    return "\n".join(parts)


def write_all(folder: Path) -> None:
    """Write every generated part to ``folder``."""
    folder.mkdir(exist_ok=True)
    (folder / "experiments.md").write_text(experiments())
    (folder / "registers.md").write_text(registers())
