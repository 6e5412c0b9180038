"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["table"]


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table of Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
