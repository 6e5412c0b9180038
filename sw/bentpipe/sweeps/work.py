"""The task of a worker: one run, into its folder.

A worker imports this module before anything else of bentpipe, so that the hosts are compiled before they are imported.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import signal
import socket
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.results.folder import RUNS

if TYPE_CHECKING:
    from bentpipe.experiment.resolve.specs import Experiment

__all__ = ["TOKEN", "Job", "OtherVersion", "Outcome", "dask_setup", "is_done", "unpack", "work"]

TOKEN: Final = "token"
"""A file with a random text, by which a worker knows that it sees the sweep's folder."""

_WAIT_S: Final = 0.5
_log = logging.getLogger(__name__)


class OtherVersion(BentpipeError):
    """A worker has another version than who began the sweep: its cells may be others."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run as it goes to a worker.

    Members
    -------
    name : str
        Of its folder.
    experiment : bytes
        Pickled: it is read when the worker has its hosts.
    settings : tuple[str, ...]
        For the record.
    sweep : str
        The sweep's folder.
    work : str
        Where it has its token.
    token : str
    version : str
        Of the code.
    engine : str
    id : str
        Of the sweep: reports of its runs lead to it.
    plugins : tuple
        That the experiment needs: name, file and hash of each.
    """

    name: str
    experiment: bytes
    settings: tuple[str, ...]
    sweep: str
    work: str
    token: str
    version: str
    engine: str
    id: str
    plugins: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A worker's report of a run that has ended.

    Members
    -------
    name : str
    worker : str
        Host and process.
    seconds : float
        Elapsed time of the run.
    packed : bytes | None
        The run folder, if the worker has no access to the sweep's folder.
    """

    name: str
    worker: str
    seconds: float
    packed: bytes | None = None


def dask_setup(worker: Any) -> None:
    """Ignore Ctrl-C in a worker of a local cluster, where Dask calls this: it is for the process that began the
    sweep."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def work(job: Job) -> Outcome:
    """Perform a run, unless it was done meanwhile, and return its outcome.

    Raises
    ------
    OtherVersion
    BentpipeError, SimulationError, OSError
        As a run raises them.
    """
    begin = time.monotonic()
    os.environ["BENTPIPE_ENGINE"] = job.engine
    os.environ["BENTPIPE_THREADS"] = "1"  # the other cores have runs of their own
    from bentpipe.compiled import prepare

    prepare()
    from bentpipe.sweeps.plan import code_version

    who = f"{socket.gethostname()}:{os.getpid()}"
    if code_version() != job.version:
        raise OtherVersion(f"the worker {who} has bentpipe {code_version()}, and the sweep {job.version}")
    if job.plugins:
        from bentpipe.experiment.document.plugins import required

        required(job.plugins, f"the worker {who}")
    experiment: Experiment = pickle.loads(job.experiment)
    if _seen(job):
        _perform(experiment, job, Path(job.sweep) / RUNS / job.name)
        return Outcome(job.name, who, time.monotonic() - begin)
    with tempfile.TemporaryDirectory(prefix="bentpipe-") as aside:
        _perform(experiment, job, Path(aside) / job.name)
        return Outcome(job.name, who, time.monotonic() - begin, _pack(Path(aside), job.name))


def _seen(job: Job) -> bool:
    """Return whether this machine has the sweep's folder, too."""
    try:
        return (Path(job.work) / TOKEN).read_text() == job.token
    except OSError:
        return False


def _perform(experiment: Experiment, job: Job, path: Path) -> None:
    from bentpipe.experiment.run.perform import perform
    from bentpipe.report.places import in_sweep
    from bentpipe.results.folder import FolderHeld, RunFolder

    while not _goes_on(job, path):
        try:
            held = RunFolder.claim(path, force=True)
        except FolderHeld:  # a worker that was given up is still at it
            time.sleep(_WAIT_S)
            continue
        with held as folder:
            if not is_done(path, held=True):
                perform(experiment, folder, settings=job.settings, plots=False, beside=in_sweep(job.id))
        return


def _goes_on(job: Job, path: Path) -> bool:
    """Continue a run that was cut off from the state that it left; return False if there is no usable state."""
    from bentpipe.experiment.run.perform import resume
    from bentpipe.report.places import in_sweep
    from bentpipe.results.folder import STATE, RunFolder
    from bentpipe_sim.errors import SimulationError

    if not (path / STATE).is_file():
        return False
    try:
        with RunFolder.resume(path) as folder:
            resume(folder, plots=False, beside=in_sweep(job.id))
    except (BentpipeError, SimulationError) as error:
        _log.info("%s: started again: %s", job.name, error)
        return False
    return True


def is_done(path: Path, held: bool = False) -> bool:
    """Return whether a run folder holds a complete run; ``held``: the caller holds the folder."""
    from bentpipe.results.folder import read_above

    try:
        done = read_above(path)["status"] == "done"
    except BentpipeError:
        return False
    work = path / ".running"
    return done and not (any(e.name != "lock" for e in work.iterdir()) if held else work.exists())


def _pack(above: Path, name: str) -> bytes:
    """Return a run folder's files and folders."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", strict_timestamps=False) as archive:
        for path in (above / name, *sorted((above / name).rglob("*"))):
            if path.is_dir() or path.is_file():
                archive.write(path, path.relative_to(above))
    return buffer.getvalue()


def unpack(packed: bytes, above: Path, name: str) -> None:
    """Put a run folder that came packed in its place: whole, or not there."""
    import shutil

    with tempfile.TemporaryDirectory(prefix=".coming-", dir=above) as aside:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            archive.extractall(aside)  # nothing beside it, whatever the names are
        if (above / name).exists():
            (above / name).rename(Path(aside) / "before")
        (Path(aside) / name).rename(above / name)
    shutil.rmtree(above / name / ".running", ignore_errors=True)
