"""The progress bar of a run: simulated time, speed against real time, time left. Only on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["Counted", "Progress", "waiting"]

_PS: Final = 10**12


@contextmanager
def waiting(what: str, show: bool) -> Iterator[None]:
    """Show a line on stderr with what is being waited for, within the context."""
    if not show:
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


class Progress:
    """A bar on stderr while in a ``with`` block.

    Parameters
    ----------
    end_ps : int
        The simulated time at which the run is over at the latest.
    show : bool
        False: no bar at all, and rich is not even imported.
    """

    def __init__(self, end_ps: int, show: bool) -> None:
        self._end_ps = end_ps
        self._show = show
        self._bar: Any = None
        self._task: Any = None
        self._begin = 0.0
        self._next = 0.0
        self._done = 0.0

    def __enter__(self) -> Self:
        if self._show:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                TextColumn("simulating"),
                BarColumn(),
                TextColumn("{task.fields[simulated]}"),
                TextColumn("{task.fields[speed]}"),
                TimeRemainingColumn(),
                TextColumn("left"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=1.0, simulated="", speed="")
            self._begin = time.monotonic()
        return self

    def update(self, now_ps: int, done: float = 0.0) -> None:
        """Show the progress up to ``now_ps``.

        ``done`` is the delivered share of the data, if that may end the run before its time.
        """
        self._done = max(self._done, done)
        if self._bar is None:
            return
        wall = time.monotonic()
        if wall < self._next:
            return
        self._next = wall + 0.1
        simulated, spent = now_ps / _PS, wall - self._begin
        speed = f"{simulated / spent:.2f} x real time" if spent > 0.5 else ""
        share = max(now_ps / self._end_ps, self._done)
        text = f"{simulated:.1f} s of {'at most ' if self._done else ''}{self._end_ps / _PS:g} s"
        self._bar.update(self._task, completed=share, simulated=text, speed=speed)

    def phase(self, name: str) -> Callable[[float], None]:
        """Show another phase after the run; return a function that takes the completed share of it."""

        def update(share: float) -> None:
            if self._bar is not None:
                self._bar.update(self._task, completed=share, simulated=name, speed="")

        if self._bar is not None:
            self._bar.reset(self._task, simulated=name, speed="")
        return update

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class Counted:
    """A bar of runs on stderr while in a ``with`` block; it comes with the first :meth:`update`.

    Parameters
    ----------
    show : bool
        False: no bar at all.
    """

    def __init__(self, show: bool) -> None:
        self._show = show
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def update(self, done: int, total: int, workers: int) -> None:
        """Show how many of the runs have ended, and the number of workers."""
        if not self._show:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                TextColumn("runs"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[workers]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("left"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=total, workers="")
        text = f"on {workers} worker{'s' if workers != 1 else ''}" if workers else "waiting for workers"
        self._bar.update(self._task, completed=done, workers=text)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
