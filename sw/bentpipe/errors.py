"""The errors a user of bentpipe sees: one line each, with the exit code of the command."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["BentpipeError", "ConfigError", "ExperimentFailed"]


class BentpipeError(Exception):
    """Something the user can put right: what was wrong, where, and what to do, in one line.

    Members
    -------
    exit_code : int
        What ``bentpipe`` exits with: 2 for wrong use, 1 for an experiment that failed.
    detail : str
        Lines to show below the message, such as the line of a script with a caret.
    more : tuple of str
        Further lines about the same file, each like the message.
    """

    exit_code: ClassVar[int] = 2
    detail: str = ""
    more: tuple[str, ...] = ()


class ConfigError(BentpipeError):
    """An experiment that cannot be run as written: the message names the file and the key."""


class ExperimentFailed(BentpipeError):
    """The experiment ran, but its outcome cannot be trusted (cells missing, payload damaged) or is not as expected."""

    exit_code: ClassVar[int] = 1


def one_line(error: Exception) -> str:
    """Return an error's text on one line."""
    return " ".join(str(error).split()) or type(error).__name__
