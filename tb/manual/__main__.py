"""Run the commands, Python and TOML of the manual: ``python -m manual [--long] [PAGE…]``, in ``tb``."""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manual.blocks import PAGES, ROOT, Block, blocks, mark_of
from models.json_schema import errors

_MOST_SHOWN = 12
_MOST_S = 1800
"""A command that runs longer is ended, and has failed: it may be one that never ends."""


def _schema() -> dict[str, Any]:
    """Return the schema of experiment files without required keys, for parts of files: then several choices may fit."""
    from bentpipe.experiment.document.tables import json_schema

    def relaxed(value: Any) -> Any:
        if isinstance(value, dict):
            return {"anyOf" if k == "oneOf" else k: relaxed(one) for k, one in value.items() if k != "required"}
        return [relaxed(one) for one in value] if isinstance(value, list) else value

    return relaxed(json_schema())


def _console(block: Block, folder: Path, wanted: int) -> str | None:
    """Run a command with a shell; return what went wrong."""
    command = re.sub(r"\s{2,}#.*", "", block.text[2:])
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=_MOST_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"not over after {_MOST_S} s"
    if process.returncode == wanted:
        return None
    return "\n".join([f"exit code {process.returncode}", *(errors or output).splitlines()[-_MOST_SHOWN:]])


def _toml(block: Block, folder: Path) -> str | None:
    """Check a whole experiment as ``bentpipe check`` does, a part of one by its keys; return what went wrong."""
    document = tomllib.loads(block.text)
    schema = _schema()
    if wrong := list(errors(document, schema, schema)):
        return "\n".join(wrong[:_MOST_SHOWN])
    if "experiment" not in document or not {"flow", "extends"} & document.keys():
        return None
    file = folder / f"{document['experiment']['id']}.toml"
    file.write_text(block.text, encoding="utf-8")
    return _console(Block(block.page, block.line, "console", f"$ bentpipe check {file.name}"), folder, 0)


class _Page:
    """A page's folder and the names that its Python has made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, Any] = {}
        for path in (ROOT / "examples").iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        (folder / "examples").symlink_to(ROOT / "examples")

    def check(self, block: Block, kind: str) -> str | None:
        """Run a block; return what went wrong."""
        if block.language == "console":
            return _console(block, self._folder, 2 if kind == "fails" else 0)
        if block.language == "toml":
            return _toml(block, self._folder)
        try:
            tree = ast.parse(textwrap.dedent(block.text))
            if kind != "part":
                os.chdir(self._folder)
                exec(compile(tree, block.page, "exec", dont_inherit=True), self._names)
        except Exception as error:  # whatever a page's code raises is the finding
            return f"{type(error).__name__}: {error}"
        return None


def _run(page: str, long: bool) -> Iterator[tuple[Block, str, str]]:
    """Yield each block of a page with its outcome ("ok", "skipped", "FAILED") and more about it."""
    with tempfile.TemporaryDirectory() as folder:
        runner = _Page(Path(folder))
        for block in blocks(page):
            mark = mark_of(block)
            kind = mark.kind if mark else ""
            if mark and (kind == "skip" or (kind == "long" and not long)):
                yield block, "skipped", mark.reason
            elif wrong := runner.check(block, kind):
                yield block, "FAILED", wrong
            else:
                yield block, "ok", "syntax only" if kind == "part" else ""
        os.chdir(ROOT)


def main() -> int:
    """Check the pages and print a line for each block; return 1 if any block fails."""
    parser = argparse.ArgumentParser(description="Run the commands, Python and TOML of the manual as they stand.")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="name of a page, for example sweeps.md (default: all)")
    parser.add_argument("--long", action="store_true", help="also run what takes minutes")
    given = parser.parse_args()
    if unknown := sorted({*given.pages} - {*PAGES}):
        parser.error(f"no such page: {', '.join(unknown)}")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault("MPLBACKEND", "agg")
    counts = dict.fromkeys(("ok", "skipped", "FAILED"), 0)
    for page in given.pages or PAGES:
        for block, outcome, more in _run(page, given.long):
            counts[outcome] += 1
            print(
                f"{outcome:8} {page}:{block.line}: {block.text.splitlines()[0][:90]}{f'  [{more}]' if more else ''}",
                flush=True,
            )
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return int(counts["FAILED"] > 0)


if __name__ == "__main__":
    sys.exit(main())
