"""The arguments of ``bentpipe``, made of its commands."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from bentpipe.commands import commands
from bentpipe.commands.command import INTERRUPTED, Command, CommandGroup

__all__ = ["parse", "parser"]


def _epilog(exit_codes: str) -> str:
    return f"Exit codes: 0 success, 1 experiment failed or output not written, 2 usage error, {exit_codes}."


class _Parser(argparse.ArgumentParser):
    """Errors are a line, of the command that was given, and name what is near."""

    def error(self, message: str) -> NoReturn:
        more = "" if message.endswith("?") else f"; see {self.prog} --help"
        self.exit(2, f"{self.prog.replace(' ', ': ')}: {message}{more}\n")

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Raise an error about arguments that the command does not take."""
        options = re.findall(r"--?[a-z][a-z-]*", self.format_usage())
        for word in words:
            if word.startswith("-"):
                self.error(f"there is no option {word}{_near(word.partition('=')[0], options)}")
        self.error(f"{' '.join(words)!r} is not expected here")


def _near(word: str, known: Collection[str]) -> str:
    found = get_close_matches(word, [each for each in known if each != word], 1)
    return f"; did you mean {found[0]}?" if found else ""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; raise ``SystemExit`` after printing a line about an error."""
    leading = [*itertools.takewhile(re.compile(r"-v+|--verbose").fullmatch, words)]
    words = [*words[len(leading) :], *leading]  # which commands take, wherever it stands
    made, known = parser(), [name for each in commands() for name in (each.name, *each.aliases)]
    if words and not words[0].startswith("-") and words[0] not in known:
        made.error(f"there is no command {words[0]}{_near(words[0], known)}")
    for word in itertools.takewhile(lambda word: word != "--", words):
        if re.fullmatch(r"--[^=]+=--", word):  # argparse takes this value for the end of the options
            made.error(f"{word.partition('=')[0]}: expected a value, not '--'")
    given, rest = made.parse_known_args(words)
    if rest:
        given.parser.unknown(rest)
    return given


def parser() -> _Parser:
    """Return the parser of all commands."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "-v", "--verbose", action="count", default=0, help="more output; -vv: debug output and tracebacks"
    )
    made = _Parser(
        prog="bentpipe",
        description="An ATM cell switch and link emulator in hardware, with the hosts in software.",
        epilog=_epilog(INTERRUPTED),
    )
    made.add_argument("--version", action="store_true", help="print the version and exit")
    made.set_defaults(parser=made)

    def add(to: Any, each: Command | CommandGroup) -> None:
        codes = INTERRUPTED if isinstance(each, CommandGroup) else each.exit_codes
        sub = to.add_parser(
            each.name,
            aliases=each.aliases,
            help=each.what,
            description=each.what,
            parents=[common],
            epilog=_epilog(codes),
        )
        if isinstance(each, CommandGroup):
            actions = sub.add_subparsers(dest="action", metavar="ACTION", required=True)
            for action in each.actions:
                add(actions, action)
        else:
            each.arguments(sub)
            sub.set_defaults(chosen=each, parser=sub)

    names = made.add_subparsers(dest="command", metavar="COMMAND")
    for each in commands():
        add(names, each)
    return made
