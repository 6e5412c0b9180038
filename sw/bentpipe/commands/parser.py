"""The arguments of ``bentpipe``, made of its commands."""

from __future__ import annotations

import argparse
from typing import Any, Final

from bentpipe.commands import commands
from bentpipe.commands.command import Command, Group

__all__ = ["parser"]

_EPILOG: Final = (
    "Exit codes: 0 done, 1 the experiment failed or could not be written, 2 wrong use, "
    "130 interrupted (143 by SIGTERM, 129 by SIGHUP); what was there is kept."
)


def parser() -> argparse.ArgumentParser:
    """The arguments of all commands."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="count", default=0, help="tell more; -vv: everything, and tracebacks")
    made = argparse.ArgumentParser(
        prog="bentpipe",
        description="An ATM cell switch and link emulator in hardware, with the hosts in software.",
        epilog=_EPILOG,
    )
    made.add_argument("--version", action="store_true", help="print the version and exit")

    def add(to: Any, each: Command | Group) -> None:
        sub = to.add_parser(each.name, help=each.what, description=each.what, parents=[common], epilog=_EPILOG)
        if isinstance(each, Group):
            actions = sub.add_subparsers(dest="action", metavar="ACTION", required=True)
            for action in each.actions:
                add(actions, action)
        else:
            each.arguments(sub)
            sub.set_defaults(chosen=each)

    names = made.add_subparsers(dest="command", metavar="COMMAND")
    for each in commands():
        add(names, each)
    return made
