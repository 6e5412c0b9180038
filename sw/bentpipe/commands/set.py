"""``bentpipe set``."""

from __future__ import annotations

import argparse

from bentpipe.commands.command import Command, json_option, print_json, session_folder, session_option
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "settings",
        nargs="*",
        metavar="KEY=VALUE",
        help="setting to change, for example satellite.ber=1e-6 or network.lines.satellite.ber=1e-6",
    )
    parser.add_argument("--reset", action="store_true", help="reset all settings to the file's values first")
    session_option(parser)
    json_option(parser)


def _run(given: argparse.Namespace) -> int:
    from bentpipe.attach.client import SessionClient

    if not given.settings and not given.reset:
        raise BentpipeError("nothing to set; give KEY=VALUE, or --reset")
    folder = session_folder(given)
    with SessionClient(folder) as session:
        done = [session.reset()] if given.reset else []
        done += [session.call("set", settings=given.settings)] if given.settings else []
    if given.json:
        return print_json({"folder": str(folder), "done": done})
    changes = [*(["the file's state"] if given.reset else []), *given.settings]
    print(f"{folder}: {', '.join(changes)}")
    return 0


COMMAND = Command("set", "Change settings of a running session with attached hosts.", _run, _arguments)
