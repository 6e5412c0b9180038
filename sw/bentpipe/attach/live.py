"""The files of a session's live page: made by the simulation's thread, written by another thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bentpipe.results.folder import RunFolder
from bentpipe.results.schema import Trace

__all__ = ["ENOUGH_PS", "LiveFolder"]

ENOUGH_PS: Final = 10**10
"""The slack for release from which on what there is can be summed up every 2 s, which takes some ms."""
_APART_S: Final = 0.2
"""Time between the steps of a summary, each of which has Python's lock for some ms. The simulation makes up for them
meanwhile."""


class LiveFolder:
    """A run folder as a run knows it, whose files are written by a thread of its own: the simulation has no time to
    wait for a disk.

    Parameters
    ----------
    folder : RunFolder
    report : callable
        What the session adds to the summary.
    """

    def __init__(self, folder: RunFolder, report: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._folder, self._report = folder, report
        self._waiting: queue.Queue[tuple[dict[str, Any], Trace] | None] = queue.Queue()
        self._closes = threading.Event()
        self._begun = False
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    @property
    def work(self) -> Path:
        return self._folder.work

    @property
    def thread(self) -> int:
        """The thread's number in the kernel."""
        return self._thread.native_id or 0

    def begin(self) -> None:
        self._folder.begin()

    def save(self, state: bytes) -> None:
        """Do nothing: a session has no state that can be saved."""

    def keep(self, summary: dict[str, Any], news: Trace) -> None:
        """Show a summary and news soon; the first ones at once.

        The first ones come before the clock starts. Python imports what it needs for them, which takes long.
        """
        if self._begun:
            self._waiting.put((summary, news))
            return
        self._begun = True
        self._show(summary, news, self._report(summary))

    def close(self) -> None:
        """Write all that waits to be written, and end the thread."""
        self._closes.set()
        self._waiting.put(None)
        self._thread.join()

    def _write(self) -> None:
        while True:
            found = self._waiting.get()
            if found is None:
                return
            summary, news = found
            self._closes.wait(_APART_S)
            report = self._report(summary)
            self._closes.wait(_APART_S)
            self._show(summary, news, report)

    def _show(self, summary: dict[str, Any], news: Trace, report: dict[str, Any]) -> None:
        with suppress(OSError):  # a full disk: what is there at the end says so
            self._folder.keep({**summary, **report}, news)
