"""The command ``bentpipe``: its arguments, and what becomes of errors. What is heavy is imported when it is needed."""

from __future__ import annotations

import gc
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper

from bentpipe.commands import commands
from bentpipe.commands.command import Command, take_plugins
from bentpipe.commands.parser import parse, parser
from bentpipe.errors import BentpipeError, one_line
from bentpipe.signals import exit_code, heeded

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    if arguments is None:  # the process is ours
        gc.set_threshold(20_000, 25, 50)  # what is imported would be searched through a hundred times
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # or NumPy starts threads that look for work and find none
    _replace_unknown_characters()
    words = list(sys.argv[1:] if arguments is None else arguments)
    words, behind = _apart(words)
    try:
        given = parse(words)
        given.words = behind
    except SystemExit as leave:  # argparse has printed its line
        return leave.code if isinstance(leave.code, int) else 2
    if given.version:
        print(f"bentpipe {_version()}")
        return 0
    if given.command is None:
        parser().print_help(sys.stderr)
        return 2
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(given.verbose, 2)]
    logging.basicConfig(level=level, format="%(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    try:
        with heeded(), _environment_restored():
            chosen: Command = given.chosen
            if chosen.prepares_hosts:
                _prepare_hosts(sys.stderr.isatty() and not getattr(given, "json", False))
            if hasattr(given, "plugins"):
                take_plugins(given)
            return chosen.run(given)
    except KeyboardInterrupt as error:
        _report_error("interrupted", error)
        return exit_code()
    except BrokenPipeError:  # the reader of our output went away
        sys.stderr.close()
        return 0
    except Exception as error:
        return _failed(error, given.verbose)


@contextmanager
def _environment_restored() -> Iterator[None]:
    """Restore bentpipe's variables of the environment afterwards: a command passes ``--engine`` and ``--target`` in
    them to what it starts, and they must not hold for the next command of this process."""
    before = {name: value for name, value in os.environ.items() if name.startswith("BENTPIPE_")}
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("BENTPIPE_") and name not in before]:
            del os.environ[name]
        os.environ.update(before)


def _replace_unknown_characters() -> None:
    """Print a question mark for a character that the terminal's encoding lacks, as `ą` in Latin-1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _apart(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of a command that starts another one, and the arguments after ``--``."""
    starters = [each.name for each in commands() if isinstance(each, Command) and each.starts_another]
    if "--" not in words or words[0] not in starters:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _prepare_hosts(show: bool) -> None:
    """Compile the hosts before anything imports them; print a line if that is not possible."""
    from bentpipe.compiled import prepare

    why_plain = prepare(show)
    if why_plain:
        print(f"bentpipe: the hosts run as plain Python: {why_plain}", file=sys.stderr)


def _report_error(what: str, error: BaseException) -> None:
    """Print a line about an error, with its notes; a closed terminal is no further error."""
    with suppress(OSError):
        print(f"bentpipe: {'; '.join([what, *getattr(error, '__notes__', ())])}", file=sys.stderr)


def _failed(error: Exception, verbose: int) -> int:
    """Print one line for an error, with -vv its traceback; return the exit code."""
    if verbose >= 2:
        traceback.print_exception(error)
    if isinstance(error, BentpipeError):
        _report_error(one_line(error), error)
        for line in error.detail.splitlines():
            print(f"    {line}", file=sys.stderr)
        for line in error.more:
            print(f"bentpipe: {line}", file=sys.stderr)
        return error.exit_code
    from bentpipe_sim.errors import SimulationError

    if isinstance(error, SimulationError):
        _report_error(one_line(error), error)
        return 2
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        _report_error(f"{place}{error.strerror or one_line(error)}", error)
        return 1
    from bentpipe.experiment.document.plugins import blamed

    if where := blamed(error):
        _report_error(f"{where}; -vv shows how it came there", error)
        return 1
    what = f"internal error: {type(error).__name__}: {one_line(error)}; -vv shows where, please report it"
    _report_error(what, error)
    return 1


def _version() -> str:
    from importlib.metadata import version

    return version("bentpipe")
