"""``bentpipe export``: a run's tables for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from bentpipe.commands.command import Command
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of a run, of cases or of a sweep")
    parser.add_argument("--csv", action="store_true", help="write CSV (the default, and the only format)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="output folder, created if missing (default: DIR/csv)")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.results.export import export_csv

    out: Path = given.out or given.folder / "csv"
    if out.exists() and not out.is_dir():
        raise BentpipeError(f"{out}: is a file, not a folder")
    for path in export_csv(given.folder, out, given.force):
        print(path)
    return 0


COMMAND = Command("export", "Write a run's flows, trace and figures as CSV.", _run, _arguments)
