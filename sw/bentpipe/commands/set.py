"""``bentpipe set``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bentpipe.commands.command import Command
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "settings",
        nargs="+",
        metavar="KEY=VALUE",
        help="setting to change, for example satellite.ber=1e-6 or network.lines.satellite.ber=1e-6",
    )
    parser.add_argument(
        "--run", type=Path, metavar="DIR", help="run folder of the session (default: the newest in runs)"
    )


def _run(given: argparse.Namespace) -> int:
    from bentpipe.attach.control import SOCKET, ask

    folder = given.run
    if folder is None:
        found = sorted(Path("runs").glob(f"*/.running/{SOCKET}"), key=lambda path: path.lstat().st_mtime)
        if not found:
            raise BentpipeError("no session goes on in runs; say where it does: --run DIR")
        folder = found[-1].parents[1]
    ask(folder, given.settings)
    print(f"{folder}: {', '.join(given.settings)}")
    return 0


COMMAND = Command("set", "Change settings of a running session with attached hosts.", _run, _arguments)
