"""``bentpipe completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import argparse

from bentpipe.commands.command import Command

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh", "fish"], help="shell to complete in")


def _run(given: argparse.Namespace) -> int:
    import shtab

    from bentpipe.commands.parser import parser

    print(shtab.complete(parser(), given.shell))
    return 0


COMMAND = Command(
    "completion",
    'Print a shell completion script; use: eval "$(bentpipe completion bash)".',
    _run,
    _arguments,
)
