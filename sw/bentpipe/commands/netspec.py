"""``bentpipe netspec``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bentpipe.commands.command import Command, CommandGroup, json_option, print_json
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="NetSpec script")


def _check(given: argparse.Namespace) -> int:
    from dataclasses import asdict

    from bentpipe.netspec.plan import read_script, summary
    from bentpipe.netspec.syntax import Script

    path: Path = given.file
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BentpipeError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BentpipeError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    plan = read_script(Script(text, str(path)))
    if given.json:
        return print_json(asdict(plan))
    print(f"{path}: {summary(plan)}")
    return 0


_CHECK = Command(
    "check", "Validate a NetSpec script and print its contents; host names are not resolved.", _check, _arguments
)
COMMAND = CommandGroup("netspec", "Work with NetSpec scripts.", (_CHECK,))
