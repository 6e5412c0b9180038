"""Running a sweep into its folder, or the rest of one.

::

    DIR/result.json        what was varied, each run, means and intervals, published figures beside ours
    DIR/table.parquet      every figure of every run (bentpipe.sweeps.table)
    DIR/report.html        all that as a page, which leads to those of the runs
    DIR/overview.svg, .png, .pdf a figure over what was varied
    DIR/runs/NAME/         a run folder for each run; NAME ends with the hash by which the run is known
"""

from __future__ import annotations

import pickle
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.plugins import rows_of
from bentpipe.experiment.resolve.specs import Experiment, plain
from bentpipe.experiment.run.run import versions
from bentpipe.plots.sweep import PLOTS
from bentpipe.results.folder import RUNS, RunFolder, read_above
from bentpipe.results.schema import SCHEMA_VERSION
from bentpipe.results.words import key_in_words
from bentpipe.sweeps.cluster import Failure, opened, outcomes, workers_of
from bentpipe.sweeps.plan import Plan, PlannedRun
from bentpipe.sweeps.precision import Precision, run_until_precise
from bentpipe.sweeps.summary import LEFT, Results
from bentpipe.sweeps.table import TABLE, make_table, read_table, write_table
from bentpipe.sweeps.work import TOKEN, Job, Outcome, is_done, unpack

__all__ = ["ProgressCallback", "claim_sweep", "run_precisely", "run_sweep", "sum_up_again"]

_KEEP_S: Final = 5.0
"""Real time between two times that what there is is written, at least."""

_KEEP_SHARE: Final = 20
"""And so many times as long as the writing took."""

ProgressCallback = Callable[[int, int, int], None]
"""Runs that have ended, of how many, and workers."""


@contextmanager
def claim_sweep(plan: Plan, path: Path | None = None, force: bool = False) -> Iterator[RunFolder]:
    """Yield the folder of a sweep, new or existing, held within the context.

    An existing one is of an earlier sweep of the same experiment and version; its runs stay.

    Parameters
    ----------
    plan : Plan
    path : Path, optional
        ``runs/ID-1``, ``-2``, … if not given.
    force : bool
        Replace existing contents.

    Raises
    ------
    BentpipeError
        The folder is in use, cannot be made, or has other contents.
    """
    if path is None:
        held = RunFolder.claim_next(Path("runs"), plan.id)
    elif force or not (path / "result.json").is_file():
        held = RunFolder.claim(path, force)
    else:
        held = RunFolder.reopen(path)
    with held as folder:
        if folder.begun:
            _check_same(plan, folder.path)
        yield folder


def _check_same(plan: Plan, path: Path) -> None:
    """Check that the folder is of a sweep that this one continues."""
    before = read_above(path)
    again = "give another --out, or --force to replace it"
    if before.get("kind") != "sweep":
        raise BentpipeError(f"{path}: is a run folder, not a sweep folder; {again}")
    if before["id"] != plan.id:
        raise BentpipeError(f"{path}: is a sweep of {before['id']}, not of {plan.id}; {again}")
    if before["version"] != plan.version:
        raise BentpipeError(f"{path}: was made by bentpipe {before['version']}, this is {plan.version}; {again}")


def run_sweep(
    plan: Plan,
    folder: RunFolder,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    dashboard: int | None = None,
    progress: ProgressCallback | None = None,
    opened_at: Callable[[str], None] | None = None,
    plots: bool = True,
) -> dict[str, Any]:
    """Perform the remaining runs of a sweep, and return the summary of all.

    Parameters
    ----------
    plan : Plan
    folder : RunFolder
        From :func:`claim_sweep`.
    workers, cluster, dashboard
        As for :func:`~bentpipe.sweeps.cluster.opened`; nothing is opened if no run remains.
    progress : callable, optional
        Called before the first run and after each.
    opened_at : callable, optional
        Called once with the address of the dashboard.
    plots : bool
        Write ``overview.svg``, ``.png`` and ``.pdf``.

    Returns
    -------
    dict
        The contents of ``result.json``. Its ``status`` is "done", "interrupted" (by a signal; completed runs are kept,
        and not repeated) or "failed" (some runs failed; the others are complete).

    Raises
    ------
    BentpipeError, OSError
        The cluster is unavailable or went away, or a disk is full. Completed runs are kept.
    """
    sweep = _Sweep(plan, folder, plots)
    try:
        if progress:
            progress(sweep.results.ended, len(plan.runs), 0)
        left = sweep.left()
        if not left:
            sweep.begin()
        else:
            with opened(workers, cluster, dashboard) as client:
                sweep.begin()
                if opened_at and dashboard is not None and client.dashboard_link:
                    opened_at(client.dashboard_link)
                if progress:
                    progress(sweep.results.ended, len(plan.runs), workers_of(client))
                for outcome in outcomes(client, _jobs(left, plan, folder)):
                    sweep.took(outcome)
                    if progress:
                        progress(sweep.results.ended, len(plan.runs), workers_of(client))
        status, reason = sweep.results.verdict()
    except KeyboardInterrupt as came:
        if not folder.begun:
            raise
        status, reason = "interrupted", str(came) or "SIGINT"
    except Exception as error:
        if folder.begun:
            with suppress(OSError):  # there is an error already
                sweep.close("failed", str(error))
        raise
    return sweep.close(status, reason)


def run_precisely(
    plan: Plan, folder: RunFolder, precision: Precision, *, plots: bool = True, **options: Any
) -> dict[str, Any]:
    """Perform the remaining runs of a sweep, add seeds until an interval is narrow enough, and return the summary of
    all.

    It ends too if the interval cannot become narrow enough. Options, result and errors are as for :func:`run_sweep`.
    """
    summary = run_until_precise(plan, precision, lambda each: run_sweep(each, folder, plots=plots, **options))
    _write_summary(folder, summary, read_table(folder.path).to_pylist(), plots)
    return summary


def sum_up_again(folder: RunFolder) -> dict[str, Any]:
    """Make table, figure and ``result.json`` of a sweep anew from its run folders; what it says then.

    A sweep whose process was killed is "interrupted" then, with all runs that are whole.
    """
    before = read_above(folder.path)
    results = Results(before, before["runs"])
    for name in results.runs:
        if is_done(folder.path / name):
            results.add(name, read_above(folder.path / name))
    status, reason = before["status"], before["reason"]
    if status == "running":
        status, reason = "interrupted", "killed"
    return _write_all(folder, results, status, reason, before["time"], plots=True)


def _jobs(left: Sequence[PlannedRun], plan: Plan, folder: RunFolder) -> list[Job]:
    """Return the jobs for workers, the longest first, as far as that is known."""
    token = secrets.token_hex(8)
    (folder.work / TOKEN).write_text(token)
    path, work = folder.path.resolve(), folder.work.resolve()
    engine = versions()["engine"]

    def length(planned: PlannedRun) -> int:
        return planned.experiment.duration_ps * len(planned.experiment.flows)

    return [
        Job(
            planned.folder,
            pickle.dumps(planned.experiment),
            planned.settings,
            str(path),
            str(work),
            token,
            plan.version,
            engine,
            plan.id,
            tuple(rows_of(planned.experiment.plugins)),
        )
        for planned in sorted(left, key=length, reverse=True)
    ]


class _Sweep:
    """A sweep under way: its results, and its folder."""

    def __init__(self, plan: Plan, folder: RunFolder, plots: bool) -> None:
        self._plan = plan
        self._folder = folder
        self._plots = plots
        self._planned = {f"{RUNS}/{planned.folder}": planned for planned in plan.runs}
        self._begin = time.monotonic()
        self._due = self._begin
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self.results = Results(_head(plan), [_entry(planned) for planned in plan.runs])
        for name in self._planned if folder.begun else ():  # in a folder that is to be replaced nothing stays
            if is_done(folder.path / name):
                self.results.add(name, read_above(folder.path / name))

    def begin(self) -> None:
        """Begin the sweep: from now on its folder exists, and its report shows the progress."""
        self._folder.begin()
        for name in PLOTS:
            (self._folder.path / name).unlink(missing_ok=True)  # of fewer runs
        (self._folder.path / RUNS).mkdir(exist_ok=True)
        self._folder.put(self.results.summary("running", None, self._time()))
        self._keep()

    def left(self) -> list[PlannedRun]:
        """Return the runs that have not ended."""
        return [planned for name, planned in self._planned.items() if self.results.runs[name]["status"] == LEFT]

    def took(self, outcome: Outcome | Failure) -> None:
        """Handle the outcome of a run that a worker reports."""
        name = f"{RUNS}/{outcome.name}"
        if isinstance(outcome, Failure):
            self.results.fail(name, outcome.reason)
        else:
            if outcome.packed is not None:
                unpack(outcome.packed, self._folder.path / RUNS, outcome.name)
            self.results.add(name, read_above(self._folder.path / name), outcome.worker)
        if time.monotonic() >= self._due:
            self._keep()

    def _keep(self) -> None:
        begin = time.monotonic()
        _write_all(self._folder, self.results, "running", None, self._time(), plots=False)
        took = time.monotonic() - begin
        self._due = begin + max(_KEEP_S, _KEEP_SHARE * took)

    def close(self, status: str, reason: str | None) -> dict[str, Any]:
        """Write table, figure and ``result.json``."""
        return _write_all(self._folder, self.results, status, reason, self._time(), self._plots)

    def _time(self) -> dict[str, Any]:
        return {"started": self._started, "wall_s": time.monotonic() - self._begin}


def _write_all(
    folder: RunFolder, results: Results, status: str, reason: str | None, time: Mapping[str, Any], plots: bool
) -> dict[str, Any]:
    rows = results.rows()
    table = make_table(results.axes, rows)
    folder.write(TABLE, lambda path: write_table(table, path))
    summary = results.summary(status, reason, time)
    _write_summary(folder, summary, rows, plots)
    return summary


def _write_summary(folder: RunFolder, summary: dict[str, Any], rows: Sequence[Mapping[str, Any]], plots: bool) -> None:
    from bentpipe.sweeps.page import make_sweep_report

    folder.put(summary)
    reports = {run["folder"] for run in summary["runs"] if (folder.path / run["folder"] / "report.html").is_file()}
    folder.draw(lambda aside: make_sweep_report(aside, summary, rows, reports, plots))


def _head(plan: Plan) -> dict[str, Any]:
    """Return the contents of ``result.json`` before any run has ended."""
    axes = [{"key": axis.key, "values": axis.values, "at": axis.numbers, "unit": axis.unit,
             "words": key_in_words(axis.key, axis.unit)} for axis in plan.axes]  # fmt: skip
    over = {p.experiment.id: [plain(row) for row in p.experiment.over_cases] for p in plan.runs}
    return {
        "schema": SCHEMA_VERSION,
        "kind": "sweep",
        "id": plan.id,
        "title": plan.title,
        "paper": plan.paper,
        "figure": plan.figure,
        "description": plan.description,
        "settings": plan.settings,
        "remarks": [],
        "axis": next((p.experiment.axis for p in plan.runs if p.experiment.axis), ""),
        "axes": axes,
        "seeds": plan.seeds,
        "metrics": plan.metrics,
        "command": plan.command,
        "experiments": {p.experiment.id: _titles(p.experiment) for p in plan.runs},
        "version": plan.version,
        "versions": versions(),
        "over_cases": {name: rows for name, rows in over.items() if rows},
    }


def _titles(experiment: Experiment) -> dict[str, str]:
    return {name: getattr(experiment, name) for name in ("title", "paper", "figure")}


def _entry(planned: PlannedRun) -> dict[str, Any]:
    e = planned.experiment
    return {
        "experiment": e.id,
        "case": e.case,
        "at": e.at,
        "curve": e.curve,
        "values": planned.values,
        "seed": e.seed,
        "folder": f"{RUNS}/{planned.folder}",
    }
