"""The command ``bentpipe``: its arguments, and what becomes of errors. What is heavy is imported when it is needed."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from bentpipe.commands import commands
from bentpipe.commands.command import Command, Group
from bentpipe.errors import BentpipeError
from bentpipe.signals import exit_code, heeded

__all__ = ["main"]

_EPILOG: Final = (
    "Exit codes: 0 done, 1 the experiment failed or could not be written, 2 wrong use, "
    "130 interrupted (143 by SIGTERM, 129 by SIGHUP); what was there is kept."
)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="count", default=0, help="tell more; -vv: everything, and tracebacks")
    parser = argparse.ArgumentParser(
        prog="bentpipe",
        description="An ATM cell switch and link emulator in hardware, with the hosts in software.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")

    def add(to: Any, each: Command | Group) -> None:
        sub = to.add_parser(each.name, help=each.what, description=each.what, parents=[common], epilog=_EPILOG)
        if isinstance(each, Group):
            actions = sub.add_subparsers(dest="action", metavar="ACTION", required=True)
            for action in each.actions:
                add(actions, action)
        else:
            each.arguments(sub)
            sub.set_defaults(chosen=each)

    names = parser.add_subparsers(dest="command", metavar="COMMAND")
    for each in commands():
        add(names, each)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = _parser()
    try:
        given = parser.parse_args(arguments)
    except SystemExit as leave:  # argparse has printed its line
        return leave.code if isinstance(leave.code, int) else 2
    if given.version:
        print(f"bentpipe {_version()}")
        return 0
    if given.command is None:
        parser.print_help(sys.stderr)
        return 2
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(given.verbose, 2)]
    logging.basicConfig(level=level, format="%(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    try:
        with heeded():
            chosen: Command = given.chosen
            if chosen.prepares_hosts:
                _prepare_hosts(sys.stderr.isatty() and not getattr(given, "json", False))
            return chosen.run(given)
    except KeyboardInterrupt as error:
        _say("interrupted", error)
        return exit_code()
    except BrokenPipeError:  # the reader of our output went away
        sys.stderr.close()
        return 0
    except Exception as error:
        return _failed(error, given.verbose)


def _prepare_hosts(show: bool) -> None:
    """The hosts compiled, before anything imports them; a line if that can't be."""
    from bentpipe.compiled import prepare

    why_plain = prepare(show)
    if why_plain:
        print(f"bentpipe: the hosts run as plain Python: {why_plain}", file=sys.stderr)


def _say(what: str, error: BaseException) -> None:
    """A line about an error, with what is to be said beside it; a terminal that has gone away is no further error."""
    with suppress(OSError):
        print(f"bentpipe: {'; '.join([what, *getattr(error, '__notes__', ())])}", file=sys.stderr)


def _failed(error: Exception, verbose: int) -> int:
    """One line for an error; the traceback with -vv."""
    if verbose >= 2:
        traceback.print_exception(error)
    if isinstance(error, BentpipeError):
        _say(_one_line(error), error)
        for line in error.detail.splitlines():
            print(f"    {line}", file=sys.stderr)
        for line in error.more:
            print(f"bentpipe: {line}", file=sys.stderr)
        return error.exit_code
    from bentpipe_sim.errors import SimulationError

    if isinstance(error, SimulationError):
        _say(_one_line(error), error)
        return 2
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        _say(f"{place}{error.strerror or _one_line(error)}", error)
        return 1
    what = f"internal error: {type(error).__name__}: {_one_line(error)}; -vv shows where, please report it"
    _say(what, error)
    return 1


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _version() -> str:
    from importlib.metadata import version

    return version("bentpipe")
