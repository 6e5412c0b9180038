"""The commands of ``bentpipe``, a module each.

A new one is a module with a ``COMMAND`` and its name in the list here."""

from importlib import import_module
from typing import Final

from bentpipe.commands.command import Command, CommandGroup

__all__ = ["commands"]

_MODULES: Final = (
    "run", "attach", "shell", "set", "get", "replay", "resume", "sweep", "catalogue", "list", "show", "new", "profile",
    "check", "help", "report", "serve", "compare", "explain", "capsule", "reproduce",
    "export", "cells", "netspec", "schema", "registers", "rtl", "wave", "build",
    "board", "doctor", "completion",
)  # fmt: skip
"""In the order of ``bentpipe --help``."""


def commands() -> list[Command | CommandGroup]:
    """Return all commands; each imports its heavy modules when it runs."""
    return [import_module(f"bentpipe.commands.{name}").COMMAND for name in _MODULES]
