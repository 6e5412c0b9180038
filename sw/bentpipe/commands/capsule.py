"""``bentpipe capsule``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bentpipe.commands.command import Command, console, json_option, print_json
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument(
        "runs",
        metavar="DIR|catalogue",
        help="folder of a run, of cases or of a sweep; the word catalogue: the last run of the catalogue in runs/",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE.zip|DIR",
        help="the capsule; a zip file or a folder (default: NAME.capsule.zip)",
    )


def _run(given: argparse.Namespace) -> int:
    from bentpipe.capsule.crate import METADATA, newest_catalogue, write_capsule
    from bentpipe.results.folder import CATALOGUE

    folder = newest_catalogue(Path("runs")) if given.runs == CATALOGUE else Path(given.runs)
    if not folder.is_dir():
        raise BentpipeError(f"{folder}: no such folder of runs")
    out = given.out or Path(f"{folder.resolve().name}.capsule.zip")
    about = write_capsule(folder, out)
    if given.json:
        return print_json({**about, "capsule": str(out)})
    text = console()
    for note in about["notes"]:
        text.print(note, highlight=False, soft_wrap=True)
    text.print(f"Capsule: {out}, {len(about['runs'])} runs, described in {METADATA}", highlight=False, soft_wrap=True)
    text.print(f"To repeat the runs: bentpipe reproduce {out}", highlight=False, soft_wrap=True)
    return 0


COMMAND = Command(
    "capsule", "Pack runs with everything that repeats them: inputs, seeds, environment, results.", _run, _arguments
)
