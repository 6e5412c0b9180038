"""``bentpipe reproduce``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from bentpipe.commands.command import Command, console, json_option, print_json
from bentpipe.errors import BentpipeError, ExperimentFailed

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument(
        "capsule", type=Path, metavar="CAPSULE", help="zip file or folder that `bentpipe capsule` wrote"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only the runs of this experiment, or this run (may be repeated)",
    )


def _run(given: argparse.Namespace) -> int:
    from bentpipe.capsule.reproduce import changed_files, opened, reproduce

    if not given.capsule.exists():
        raise BentpipeError(f"{given.capsule}: no such capsule")
    say = sys.stderr.isatty() and not given.json
    outcomes = []
    with opened(given.capsule) as folder:
        changed = changed_files(folder)
        if changed:
            error = ExperimentFailed(f"{given.capsule}: was tampered with: {changed[0]}")
            error.more = tuple(f"{given.capsule}: {each}" for each in changed[1:])
            raise error
        out = console()
        for outcome in reproduce(folder, given.only, (lambda name: print(name, file=sys.stderr)) if say else None):
            outcomes.append(outcome)
            if not given.json:
                how = f" {outcome.text}" if outcome.text else f": {outcome.figures} figures are the same"
                out.print(f"{outcome.name}: {outcome.verdict}{how}", highlight=False, soft_wrap=True)
    same = sum(outcome.verdict == "reproduced" for outcome in outcomes)
    if given.json:
        print_json([asdict(outcome) for outcome in outcomes])
    else:
        out.print(f"{same} of {len(outcomes)} runs are reproduced.", highlight=False)
    return 0 if same == len(outcomes) else 1


COMMAND = Command(
    "reproduce",
    "Repeat the runs of a capsule, and report which are reproduced, differ, or cannot be compared.",
    _run,
    _arguments,
    prepares_hosts=True,
)
