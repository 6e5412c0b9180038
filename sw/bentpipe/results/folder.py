"""The run folder: written as the run goes, by one process at a time, and read back.

``result.json``
    There from the moment the run begins, and written anew now and then; its ``status`` is "running", then "done",
    "interrupted" or "failed".
``.running/``
    What is not whole yet: the trace so far, captures, files that are about to get their names; and ``lock``, which the
    process that writes the folder holds (``flock``), so that the lock goes when the process does.
``run.state``
    The state of a run of more than a minute, as it was last saved, and of one that a signal ended: it can go on from
    there (:meth:`RunFolder.resume`). Of cases, what they are. It goes when the run is done.
``flows.parquet``, ``trace.parquet``, ``changes.parquet``
    Written when the run has ended; the last one of a run in which something was changed.
``report.html`` and the plots
    Come last, and can be made again.

A file outside ``.running`` is whole or not there. The trace so far is a stream of Arrow record batches: one that was
cut off can be read up to there, which a Parquet file cannot, as its index is its end. A folder that says "running" and
that nobody holds is of a process that was killed: :meth:`RunFolder.reopen` makes an interrupted run of it, which has
what there was when ``result.json`` was last written.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bentpipe.captures import cut_to_whole_records
from bentpipe.errors import BentpipeError
from bentpipe.results.files import (
    TraceStream,
    json_bytes,
    named,
    read_changes,
    read_flows,
    read_losses,
    read_stream,
    read_summary,
    read_trace,
    write_changes,
    write_flows,
    write_losses,
    write_trace,
)
from bentpipe.results.schema import RunResult, Trace
from bentpipe.signals import Interrupted, deferred

__all__ = [
    "CATALOGUE",
    "RUNS",
    "STATE",
    "FolderHeld",
    "RunFolder",
    "case_folder",
    "case_paths",
    "is_cases",
    "is_held",
    "is_sweep",
    "read_above",
    "read_run",
    "read_so_far",
]

_WORK: Final = ".running"
_STREAM: Final = "trace.arrows"
STATE: Final = "run.state"
LOSSES: Final = "losses.parquet"
RUNS: Final = "runs"
"""The folder of the run folders, in that of a sweep."""
CATALOGUE: Final = "catalogue"
"""The id of a sweep of the catalogue."""
_PS: Final = 10**12


class FolderHeld(BentpipeError):
    """Another process writes the folder."""


class RunFolder:
    """A run folder that this process holds: nobody else writes it until the ``with`` block is left.

    Nothing that was in the folder is touched before the run begins (:meth:`begin`), and a folder that was made for a
    run that never began is removed.

    Members
    -------
    path : Path
    begun : bool
        The folder has something of this run.
    """

    def __init__(self, path: Path, lock: int | None = None, made: bool = False, above: RunFolder | None = None) -> None:
        self.path = path
        self.begun = False
        self._lock = lock
        self._made = made
        self._above = above
        self._stream: TraceStream | None = None
        self._pending: dict[str, Any] | None = None
        self._pending_state: bytes | None = None
        self._own = False  # result.json is this run's
        self._streams = False  # and so is the trace so far
        self._over = False  # and was so before: what is wrong with it then is no news of this process

    @classmethod
    def claim(cls, path: Path, force: bool = False) -> Self:
        """Claim a folder for a run: a new one, an empty one, or with ``force`` a run folder in any state.

        Raises
        ------
        BentpipeError
            The folder is a file, cannot be made, has contents that ``force`` does not cover, or is held already.
        """
        if path.exists() and not path.is_dir():
            raise BentpipeError(f"{path}: is a file, not a folder")
        try:
            made = _make(path)
            if not made and _filled(path) and not (path / "result.json").is_file():
                raise BentpipeError(
                    f"{path}: not empty and not a run folder; give another --out (--force replaces run folders only)"
                )
            held = cls(path, _lock(path), made)
        except OSError as error:
            raise BentpipeError(f"{path}: cannot be created: {error.strerror or error}") from None
        if held._lock is None:
            raise FolderHeld(f"{path}: another run is writing to it; give another --out")
        if _filled(path) and not force:
            held._release()
            raise BentpipeError(f"{path}: not empty; give another --out, or --force to replace a run folder")
        return held

    @classmethod
    def claim_next(cls, above: Path, name: str) -> Self:
        """Claim ``NAME-N`` in the folder ``above``, with N one above the highest existing one."""
        while True:
            tails = [path.name.removeprefix(f"{name}-") for path in above.glob(f"{name}-*")]
            path = above / f"{name}-{max((int(tail) for tail in tails if tail.isdecimal()), default=0) + 1}"
            try:
                lock = _lock(path) if _make(path) else None  # another run may have taken it meanwhile
            except OSError as error:
                raise BentpipeError(f"{path}: cannot be created: {error.strerror or error}") from None
            if lock is not None:
                return cls(path, lock, True)

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Claim the folder of a run that is over; if its process was killed, make a whole run folder of it.

        Raises
        ------
        BentpipeError
            It is no run folder, it is damaged, or its run is not over.
        """
        if not (path / "result.json").is_file():
            begun = "its run ended before it began to simulate" if (path / _WORK).is_dir() else "not a run folder"
            raise BentpipeError(f"{path}: {begun} (no result.json)")
        try:
            held = cls(path, _lock(path))
        except OSError as error:
            raise BentpipeError(f"{path}: {error.strerror or error}") from None
        if held._lock is None:
            raise FolderHeld(f"{path}: its run is still in progress")
        held.begun = held._own = True
        try:
            held._conclude("interrupted", "killed")
        except BaseException:
            held._release()
            raise
        held._over = True
        return held

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Claim the folder of an unfinished run, to continue it (:meth:`goes_on`).

        Raises
        ------
        BentpipeError
            It is no run folder, has no state, or its run is still in progress.
        """
        summary = read_summary(path)
        try:
            held = cls(path, _lock(path))
        except OSError as error:
            raise BentpipeError(f"{path}: {error.strerror or error}") from None
        if held._lock is None:
            raise BentpipeError(f"{path}: its run is still in progress")
        if not held.state.is_file():
            held._release()
            if summary["status"] in ("done", "failed"):
                why = f"its run is {summary['status']}"
            elif summary.get("board"):
                why = "the state of a run with a board is not saved"
            else:
                why = "its run ended before its state was saved"
            raise BentpipeError(f"{path}: nothing to resume: {why}")
        held.begun = True
        return held

    @contextmanager
    def goes_on(self, captures: Sequence[str] = ()) -> Iterator[None]:
        """Continue a run in its folder: its objects are made within the context.

        After success the folder is that run's, and these captures continue from their written part. After an error
        everything stays as it is.
        """
        moved = [file for file in captures if (self.path / file).is_file() and not (self.work / file).exists()]
        for file in moved:
            (self.path / file).replace(self.work / file)
        try:
            yield
        except BaseException:
            for file in moved:
                (self.work / file).replace(self.path / file)
            raise
        self._own = True

    def case(self, name: str) -> RunFolder:
        """Return a folder in this one for a case, made when the case begins."""
        return RunFolder(self.path / name, above=self)

    @property
    def work(self) -> Path:
        """The folder of files that are not complete yet."""
        return self.path / _WORK

    @property
    def state(self) -> Path:
        """The file of the run's state."""
        return self.path / STATE

    def save(self, state: bytes) -> None:
        """Keep this state instead of the last one, now or when the run begins.

        Raises
        ------
        OSError
            It cannot be written; the last one is as it was.
        """
        if not self.begun:
            self._pending_state = state
            return
        try:
            self._write(STATE, lambda part: _write_through(part, state))
        except OSError:
            with suppress(OSError):
                (self.work / f"{STATE}.part").unlink(missing_ok=True)
            raise

    def begin(self) -> None:
        """Begin the run: from now on the folder is this run's."""
        if self.begun:
            return
        if self._above is not None:
            self._above.begin()
            self.path.mkdir()
            self._lock = _lock(self.path)
        self._clear(())
        self.begun = True
        if self._pending is not None:
            self.put(self._pending)
        if self._pending_state is not None:
            self.save(self._pending_state)

    def write(self, name: str, make: Callable[[Path], None]) -> None:
        """Write a further file: ``make`` makes it aside, and then it is put in its place."""
        self._write(name, make)

    def put(self, summary: dict[str, Any]) -> None:
        """Write ``result.json``, now or when the run begins. What an older run left goes after that, so that there is a
        run folder at all times."""
        if not self.begun:
            self._pending = summary
            return
        self._write("result.json", json_bytes(summary))
        if not self._own:
            self._own = True
            for entry in self.path.iterdir():
                if entry.name not in ("result.json", _WORK):
                    _remove(entry)

    def keep(self, summary: dict[str, Any], news: Trace) -> None:
        """Keep what there is by now: the summary, and what the trace has got since the last time."""
        self.begin()
        if self._stream is None:
            self._stream, self._streams = TraceStream(self.work / _STREAM), True
        self._stream.add(news)
        self.put(summary)

    def finish(self, result: RunResult) -> None:
        """Write everything but the report of a run that has ended; a signal meanwhile is raised when all is written."""
        with deferred() as stopped:
            self._finish(result)
        late = stopped()
        if late is not None:
            raise Interrupted(late)

    def _finish(self, result: RunResult) -> None:
        self.begin()
        self.put(result.summary)
        self._write("flows.parquet", lambda path: write_flows(path, result.flows))
        self._write("trace.parquet", lambda path: write_trace(path, result.trace))
        if result.losses is not None:
            self._write(LOSSES, lambda path: write_losses(path, result.losses))
        if result.writes:
            self._write("changes.parquet", lambda path: write_changes(path, result.writes))
        for file in result.summary.get("captures", ()):
            if (self.work / file).is_file():
                (self.work / file).replace(self.path / file)
        self._end_stream()
        (self.work / _STREAM).unlink(missing_ok=True)
        if result.summary["status"] != "interrupted":
            self.end_state()

    def end_state(self) -> None:
        """Remove the state: nothing is left to continue."""
        self.state.unlink(missing_ok=True)

    def draw(self, make_report: Callable[[Path], None]) -> None:
        """Make plots and report in a folder aside, then put each in its place."""
        aside = self.work / "report"
        try:
            _remove(aside)
            aside.mkdir()
            make_report(aside)
            for path in sorted(aside.iterdir()):
                path.replace(self.path / path.name)
        except OSError as error:
            raise named(error, self.path / "report.html") from error

    def _conclude(self, status: str, reason: str) -> None:
        """Write what is missing of a run that is over; ``status`` and ``reason`` if it has none itself."""
        summary = read_summary(self.path)
        stream = self.work / _STREAM
        if "kind" in summary or not (stream.is_file() or summary["status"] == "running"):
            return
        if summary["status"] == "running":
            summary |= {"status": status, "reason": reason, "shortened": True}
        summary["captures"] = [
            file
            for file in summary.get("captures", ())
            if (self.path / file).is_file() or cut_to_whole_records(self.work / file)
        ]
        trace = read_stream(stream, round(summary["time"]["simulated_s"] * _PS))
        self.finish(RunResult(summary, summary["flows"], trace))

    def _write(self, name: str, data: bytes | Callable[[Path], None]) -> None:
        """Write a file whole: aside first, then into its place."""
        part = self.work / f"{name}.part"
        try:
            if isinstance(data, bytes):
                part.write_bytes(data)
            else:
                data(part)
            part.replace(self.path / name)
        except OSError as error:
            raise named(error, self.path / name) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._own and not (self._over and isinstance(error, BentpipeError)):
            error.__notes__ = [f"the existing files are kept; see `bentpipe report {self.path}`"]
            if isinstance(error, Exception) and not isinstance(error, OSError):  # there is no hurry, and room
                with suppress(Exception):
                    self._conclude("failed", str(error))
        elif isinstance(error, OSError) and self.begun and not self._own:  # not even the first file, on a full disk
            left = "has nothing of this run" if _filled(self.path) else "is empty"
            error.__notes__ = [f"nothing was kept: {self.path} {left}"]
        self._release()

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _clear(self, but: tuple[str, ...]) -> None:
        for entry in self.work.iterdir():
            if entry.name not in ("lock", *but):
                _remove(entry)

    def _release(self) -> None:
        """Release the folder. Files under way are removed, except the trace and the captures that can still be
        completed; without a result of the run they cannot."""
        self._end_stream()
        if self._lock is None:
            return
        try:
            if self.begun and ((self._streams and not self._own) or not (self.work / _STREAM).exists()):
                self._clear(())
            (self.work / "lock").unlink(missing_ok=True)
            self.work.rmdir()
            if self._made and not self.begun:
                self.path.rmdir()
        except OSError:
            pass  # something is left in it, or another process has it by now
        finally:
            os.close(self._lock)
            self._lock = None


def _write_through(path: Path, data: bytes) -> None:
    """Write a file, and see it on the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make(path: Path) -> bool:
    """Make a folder; False if it is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def _filled(path: Path) -> bool:
    return any(entry.name != _WORK for entry in path.iterdir())


def _lock(path: Path) -> int | None:
    """Return the open lock of a folder; None if it is held already."""
    file = path / _WORK / "lock"
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # who had it is just removing the folder
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), file.stat()):
                return lock
        except BlockingIOError:
            os.close(lock)
            return None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # who had it has removed it in between


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_cases(folder: Path) -> bool:
    """Return whether a run folder has a folder for each case."""
    return read_summary(folder).get("kind") == "cases"


def is_sweep(folder: Path) -> bool:
    """Return whether it is the folder of a sweep."""
    return read_summary(folder).get("kind") == "sweep"


def read_above(folder: Path) -> dict[str, Any]:
    """Return the result above the folders of cases, or of a sweep's runs; errors as for :func:`read_run`."""
    return read_summary(folder)


def case_folder(name: str) -> str:
    """Return the name of a case's folder: its own in lower case, everything but letters and digits as ``-``."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") or "case"


def case_paths(folder: Path) -> list[Path]:
    """Return the folders of an experiment's cases, in their order, also of those that have not run."""
    return [folder / case_folder(name) for name in read_summary(folder)["planned"]]


def read_run(folder: Path) -> RunResult:
    """Read a run folder back.

    Raises
    ------
    BentpipeError
        If it is not one, is damaged, or was written by a newer bentpipe.
    """
    summary = read_summary(folder)
    flows, trace = read_flows(folder / "flows.parquet"), read_trace(folder / "trace.parquet")
    losses, writes = read_losses(folder / LOSSES), read_changes(folder / "changes.parquet")
    return RunResult(summary, flows, trace, losses, writes)


def read_so_far(folder: Path) -> RunResult:
    """Return the present result of a run, also during the run; errors as for :func:`read_run`."""
    if (folder / "trace.parquet").is_file():
        return read_run(folder)
    summary = read_summary(folder)
    if "kind" in summary:
        raise BentpipeError(f"{folder}: not the folder of one run")
    trace = read_stream(folder / _WORK / _STREAM, round(summary["time"]["simulated_s"] * _PS))
    return RunResult(summary, summary["flows"], trace)


def is_held(folder: Path) -> bool:
    """Return whether a process writes the folder now."""
    try:
        lock = os.open(folder / _WORK / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
