"""The time of a sweep with several Dask workers, compared with one."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe.errors import BentpipeError
from bentpipe.sweeps.plan import plan_sweep
from bentpipe.sweeps.run import claim_sweep, run_sweep

__all__ = ["Swept", "sweep"]

_RUNS: Final = 16
_PS: Final = 10**12


@dataclass(frozen=True, slots=True)
class Swept:
    """A sweep that is done.

    Members
    -------
    wall_s : float
        From the first thought of it to its report, the start of its workers in it.
    runs_s : float
        What its runs took, each by itself, in all: as long whoever runs them, if each worker has a processor.
    """

    wall_s: float
    runs_s: float


def sweep(workers: int, simulated_s: float, runs: int = _RUNS) -> Swept:
    """Sweep `lan-1flow` over seeds, on a local cluster of so many processes.

    Parameters
    ----------
    workers : int
    simulated_s : float
        Of each run.
    runs : int

    Raises
    ------
    BentpipeError
        The runs are not all done.
    """
    plan = plan_sweep("lan-1flow", seeds=range(1, runs + 1), duration_ps=round(simulated_s * _PS))
    with tempfile.TemporaryDirectory() as aside, claim_sweep(plan, Path(aside) / "sweep") as folder:
        summary = run_sweep(plan, folder, workers=workers)
    if summary["status"] != "done":
        raise BentpipeError(f"the sweep was {summary['status']}: {summary['reason']}")
    return Swept(summary["time"]["wall_s"], summary["time"]["runs_s"])
