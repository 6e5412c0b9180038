"""The signals that end a command: SIGINT (Ctrl-C), SIGTERM and SIGHUP, all in the same way.

A signal that is ignored when the command starts stays ignored, as ``nohup`` and a shell's ``&`` want it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["Interrupted", "deferred", "exit_code", "heeded"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal came."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)


_last: int = signal.SIGINT


def exit_code() -> int:
    """Return the exit code of a command that a signal ended, as shells count.

    It is 128 plus the number of the last signal since :func:`heeded` began. Without one (a ``KeyboardInterrupt`` that
    the program raised itself) it is SIGINT's.
    """
    return 128 + _last


@contextmanager
def _handled(handler: Callable[[int], None]) -> Iterator[None]:
    def noted(number: int, frame: Any) -> None:
        global _last
        _last = number
        handler(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, noted)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _raise(number: int) -> None:
    raise Interrupted(number)


@contextmanager
def heeded() -> Iterator[None]:
    """Raise :class:`Interrupted` at a signal within the context; signals of earlier commands in this process are
    forgotten."""
    global _last
    _last = signal.SIGINT
    with _handled(_raise):
        yield


@contextmanager
def deferred() -> Iterator[Callable[[], int | None]]:
    """Defer the first signal within the context: it only makes the yielded function return its number.

    A second one raises :class:`Interrupted`.
    """
    seen: int | None = None

    def handler(number: int) -> None:
        nonlocal seen
        if seen is not None:
            raise Interrupted(number)
        seen = number

    with _handled(handler):
        yield lambda: seen
