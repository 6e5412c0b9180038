"""Dask: a local cluster of processes, or one that is there; runs go to its workers, and their outcomes come back."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bentpipe.errors import BentpipeError, ExperimentFailed
from bentpipe.sweeps.work import Job, OtherVersion, Outcome, work

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Failure", "opened", "outcomes", "started", "workers_here", "workers_of"]

_CONNECT_S: Final = 10
_CLOSE_S: Final = 2
_STARTS: Final = 3
"""Attempts to start a local cluster."""

C = TypeVar("C")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that broke off: its name, and why."""

    name: str
    reason: str


def workers_here() -> int:
    """Return the number of processes of a local cluster: ``$WORKERS``, else the processors that this process may
    use."""
    named = os.environ.get("WORKERS")
    if not named:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not named.isdecimal() or not 1 <= int(named) <= 1024:
        raise BentpipeError(f"WORKERS is {named!r}: expected 1 to 1024")
    return int(named)


@contextmanager
def opened(workers: int | None = None, address: str | None = None, dashboard: int | None = None) -> Iterator[Client]:
    """Connect to a cluster and yield its client; a local cluster ends with the context.

    Parameters
    ----------
    workers : int, optional
        Processes of a local cluster; :func:`workers_here` if not given.
    address : str, optional
        Of a scheduler (``tcp://…``, ``tls://…``), or its file (``….json``); if neither this nor ``workers`` is given,
        what Dask's configuration has as ``scheduler-address``.
    dashboard : int, optional
        The port of a local cluster's dashboard, on loopback; 0: any that is free.

    Raises
    ------
    BentpipeError
        Nobody answers there; there is no bokeh for a dashboard.
    """
    import dask.config
    from distributed import Client, LocalCluster

    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters comes back as an error
    if address is None and workers is None:
        address = dask.config.get("scheduler-address", None)
    if address is not None:
        client = _connected(address)
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=_CLOSE_S)
        return
    if dashboard is not None:
        _need_bokeh()
    served = {"dashboard": dashboard is not None, "dashboard_address": f"127.0.0.1:{dashboard or 0}"}
    settings = {"distributed.scheduler.worker-saturation": 1.0, "distributed.comm.timeouts.connect": "30s"}

    def make() -> LocalCluster:
        return LocalCluster(
            n_workers=workers or workers_here(),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            scheduler_kwargs=served,
            silence_logs=logging.CRITICAL,
            preload=["bentpipe.sweeps.work"],
        )

    with dask.config.set(settings), started(make) as cluster, Client(cluster) as client:
        yield client


def started(make: Callable[[], C]) -> C:
    """Return a local cluster; try once more if a worker dies while it starts.

    Dask takes that for an error of the whole cluster.
    """
    last = ""
    for attempt in range(1, _STARTS + 1):
        try:
            return make()
        except (RuntimeError, TimeoutError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            _log.info("the workers don't start (%d of %d): %s", attempt, _STARTS, reason)
            last = reason
    raise BentpipeError(
        f"the workers didn't start in {_STARTS} attempts ({last}): give fewer (--workers), or free some memory"
    )


def _connected(address: str) -> Client:
    from distributed import Client

    try:
        if address.endswith(".json"):
            if not os.path.isfile(address):
                raise BentpipeError(f"--cluster {address}: no such file")
            return Client(scheduler_file=address, timeout=_CONNECT_S)
        return Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError, TypeError, ImportError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BentpipeError(f"--cluster {address}: no Dask scheduler answers there: {reason}") from None


def _need_bokeh() -> None:
    try:
        import bokeh  # pyright: ignore[reportMissingImports]  # noqa: F401
    except ImportError:
        raise BentpipeError("--dashboard: Dask draws it with bokeh: pip install 'bokeh>=3.1'") from None


def workers_of(client: Client) -> int:
    """Return the present number of workers."""
    return len(client.scheduler_info(n_workers=-1).get("workers", ()))


def outcomes(client: Client, jobs: Sequence[Job]) -> Iterator[Outcome | Failure]:
    """Perform the jobs, the first ones first, and yield the outcome of each as soon as it ends.

    If a worker dies, another one runs its job again. Leaving the iterator cancels jobs that have not begun.

    Raises
    ------
    OtherVersion, OSError, ToolError, CacheError
        From a worker: errors that would stop the other runs, too.
    ExperimentFailed
        The cluster went away.
    """
    from distributed import as_completed

    count = len(jobs)
    futures = {
        client.submit(work, job, key=f"bentpipe-{job.name}-{job.token}", pure=False, priority=count - n): job.name
        for n, job in enumerate(jobs)
    }
    try:
        for future in as_completed(list(futures), loop=client.loop):  # not that of another client in this process
            yield _came(future, futures.pop(future))
            future.release()
    finally:
        with suppress(Exception):
            client.cancel(list(futures), force=True)


def _came(future: Any, name: str) -> Outcome | Failure:
    """Return the outcome of a run; wait if its worker died with the outcome, and the run is repeated."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    from bentpipe_sim.errors import CacheError, ToolError

    try:
        return future.result()
    except (CancelledError, CommClosedError):
        raise ExperimentFailed("the cluster went away, or took the runs back") from None
    except (OtherVersion, OSError, ToolError, CacheError):
        raise
    except KilledWorker:
        return Failure(name, "each worker that had it died; the machine may have too little memory for it")
    except Exception as error:
        return Failure(name, " ".join(str(error).split()) or type(error).__name__)
