"""Blocks of the manual's pages: commands of consoles, Python and TOML, with the marks that say what is not run.

A page's blocks run in the order of the page, in one folder; so a command may use what one above it has made.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["MARKS", "PAGES", "ROOT", "Block", "Mark", "blocks", "mark_of"]

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = {
    page.name: page.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
}


@dataclass(frozen=True)
class Block:
    """A command, or a block of Python or TOML. ``line`` is its line in the page."""

    page: str
    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Mark:
    """A pattern of blocks, searched in ``PAGE: TEXT``, and how they are checked.

    ``kind`` is ``skip`` (not run), ``long`` (run with ``--long``), ``fails`` (ends with exit code 2) or ``part`` (a
    part of a file, of which only the syntax is checked).
    """

    pattern: str
    kind: str
    reason: str


def _marks() -> tuple[Mark, ...]:
    rows = tomllib.loads(Path(__file__).with_name("marks.toml").read_text(encoding="utf-8"))["mark"]
    return tuple(Mark(**row) for row in rows)


MARKS: Final = _marks()


def mark_of(block: Block) -> Mark | None:
    """Return the first mark that fits a block."""
    return next((mark for mark in MARKS if re.search(mark.pattern, f"{block.page}: {block.text}")), None)


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the commands of a console with their lines; output has no prompt."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        first, line = number, lines[number]
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = f"{line[:-1].rstrip()} {lines[number].strip()}"
        if line.startswith(("$ ", "# ")):
            yield first, line
        number += 1


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order; each command of a console is one."""
    text = PAGES[page]
    for match in re.finditer(r"^```(console|python|toml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start()) + 2
        if match[1] == "console":
            yield from (Block(page, line + at, "console", command) for at, command in _commands(match[2]))
        else:
            yield Block(page, line, match[1], match[2])
