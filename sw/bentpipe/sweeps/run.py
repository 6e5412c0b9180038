"""Running a sweep into its folder, or the rest of one.

::

    DIR/result.json        what was varied, each run, means and intervals, published figures beside ours
    DIR/table.parquet      every figure of every run (bentpipe.sweeps.table)
    DIR/overview.svg, .png a figure over what was varied
    DIR/runs/NAME/         a run folder for each run; NAME ends with the hash by which the run is known
"""

from __future__ import annotations

import json
import pickle
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.run import versions
from bentpipe.results.folder import RunFolder, read_above
from bentpipe.results.schema import SCHEMA_VERSION
from bentpipe.sweeps.cluster import Failure, opened, outcomes, workers_of
from bentpipe.sweeps.plan import Plan, PlannedRun
from bentpipe.sweeps.summary import beside_published, means
from bentpipe.sweeps.table import TABLE, figures_of, make_table, row_head, unit_of
from bentpipe.sweeps.work import RUNS, TOKEN, Job, Outcome, is_done, unpack

__all__ = ["Told", "claim_sweep", "run_sweep"]

_KEEP_S: Final = 5.0
"""Real time between two times that what there is is written."""

Told = Callable[[int, int, int], None]
"""Runs that have ended, of how many, and workers."""


@contextmanager
def claim_sweep(plan: Plan, path: Path | None = None, force: bool = False) -> Iterator[RunFolder]:
    """The folder of a sweep, held: a new one, or that of an earlier sweep of the same experiment and version, whose
    runs stay.

    Parameters
    ----------
    plan : Plan
    path : Path, optional
        ``runs/ID-1``, ``-2``, … if not given.
    force : bool
        Replace what is there.

    Raises
    ------
    BentpipeError
        It can't be had, or has something else in it.
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
    """The folder is of a sweep that this one goes on with."""
    before = read_above(path)
    again = "give another --out, or --force to replace it"
    if before.get("kind") != "sweep":
        raise BentpipeError(f"{path}: is the folder of a run, not of a sweep; {again}")
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
    told: Told | None = None,
    opened_at: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Do what is left of a sweep, and sum up all of it.

    Parameters
    ----------
    plan : Plan
    folder : RunFolder
        As of :func:`claim_sweep`.
    workers, cluster, dashboard
        As of :func:`~bentpipe.sweeps.cluster.opened`; nothing is opened where nothing is left.
    told : callable, optional
        Before the first run and after each.
    opened_at : callable, optional
        Gets the address of the dashboard, once.

    Returns
    -------
    dict
        What is in ``result.json``. Its ``status`` is "done", "interrupted" (a signal; what is done is kept, and is not
        done again) or "failed" (some runs did; the others are whole).

    Raises
    ------
    BentpipeError, OSError
        The cluster can't be had or went away, a disk is full. What is done is kept.
    """
    sweep = _Sweep(plan, folder)
    sweep.put("running")
    folder.begin()
    (folder.path / RUNS).mkdir(exist_ok=True)
    for planned in plan.runs:
        if is_done(folder.path / RUNS / planned.folder):
            sweep.came(planned)
    try:
        if told:
            told(len(sweep.entries), len(plan.runs), 0)
        left = [planned for planned in plan.runs if planned.folder not in sweep.entries]
        if left:
            with opened(workers, cluster, dashboard) as client:
                if opened_at and dashboard is not None and client.dashboard_link:
                    opened_at(client.dashboard_link)
                if told:
                    told(len(sweep.entries), len(plan.runs), workers_of(client))
                for outcome in outcomes(client, _jobs(left, plan, folder)):
                    sweep.took(outcome)
                    if told:
                        told(len(sweep.entries), len(plan.runs), workers_of(client))
        status, reason = sweep.verdict()
    except KeyboardInterrupt as came:
        status, reason = "interrupted", str(came) or "SIGINT"
    except Exception as error:
        with suppress(OSError):  # there is an error already
            sweep.close("failed", str(error))
        raise
    return sweep.close(status, reason)


def _jobs(left: Sequence[PlannedRun], plan: Plan, folder: RunFolder) -> list[Job]:
    """What goes to workers, what takes longest first, as far as one can tell."""
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
        )
        for planned in sorted(left, key=length, reverse=True)
    ]


class _Sweep:
    """What there is of a sweep so far.

    Members
    -------
    entries : dict[str, dict]
        Of the runs that have ended, by folder: as in ``result.json``.
    """

    def __init__(self, plan: Plan, folder: RunFolder) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self._plan = plan
        self._folder = folder
        self._planned = {planned.folder: planned for planned in plan.runs}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._published: dict[str, list[dict[str, Any]]] = {}
        self._over: dict[str, dict[str, Any]] = {}
        self._begin = time.monotonic()
        self._due = self._begin + _KEEP_S
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._changes: list[Any] | None = None

    def took(self, outcome: Outcome | Failure) -> None:
        """A worker has said what came of a run."""
        planned = self._planned[outcome.name]
        if isinstance(outcome, Failure):
            self._failed(planned, outcome.reason)
        else:
            if outcome.packed is not None:
                unpack(outcome.packed, self._folder.path / RUNS, outcome.name)
            self.came(planned, outcome)
        if time.monotonic() >= self._due:
            self.put("running")
            self._due = time.monotonic() + _KEEP_S

    def came(self, planned: PlannedRun, outcome: Outcome | None = None) -> None:
        """A run has a result, of now or of an earlier time."""
        path = self._folder.path / RUNS / planned.folder
        summary = read_above(path)
        entry = self._entry(planned) | {
            "status": summary["status"],
            "reason": summary["reason"],
            "shortened": summary["shortened"],
            "simulated_s": summary["time"]["simulated_s"],
            "seconds": summary["time"]["wall_s"],
            "worker": outcome.worker if outcome else None,
        }
        self.entries[planned.folder] = entry
        remarks = _remarks(summary)
        head = row_head(self._plan.axes, entry)
        tail = {"verdict": entry["status"], "remarks": ", ".join(remarks), "seconds": entry["seconds"]}
        self._rows[planned.folder] = [
            {
                **head,
                "flow": flow,
                "metric": metric,
                "value": value,
                "unit": unit_of(metric),
                **tail,
                "run": entry["folder"],
            }
            for (flow, metric), value in figures_of(summary).items()
        ]
        self._published[planned.folder] = summary["published"]
        if planned.experiment.over_cases:
            self._over[planned.folder] = {
                "resolved": summary["resolved"],
                "metrics": summary["metrics"],
                "changes": summary["changes"],
                "shortened": summary["shortened"],
            }
        changes = summary["changes"]
        self._changes = changes if self._changes is None else [c for c in self._changes if c in changes]

    def _failed(self, planned: PlannedRun, reason: str) -> None:
        """A run has no result."""
        none = {"shortened": False, "simulated_s": None, "seconds": None, "worker": None}
        entry = self._entry(planned) | {"status": "failed", "reason": reason, **none}
        self.entries[planned.folder] = entry
        head = row_head(self._plan.axes, entry)
        tail = {"verdict": "failed", "remarks": reason, "seconds": None, "run": entry["folder"]}
        self._rows[planned.folder] = [{**head, "flow": "", "metric": "", "value": None, "unit": "", **tail}]

    @staticmethod
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

    def verdict(self) -> tuple[str, str | None]:
        """Status and reason of the sweep when all runs have ended."""
        bad = [entry for entry in self.entries.values() if entry["status"] != "done"]
        if not bad:
            return "done", None
        first = f"{bad[0]['folder'].removeprefix(f'{RUNS}/')}: {bad[0]['reason']}"
        return "failed", f"{len(bad)} of {len(self._plan.runs)} runs failed, {first}"

    def put(self, status: str, reason: str | None = None) -> dict[str, Any]:
        """Write ``result.json`` as of now."""
        summary = self._head(status, reason)
        if status != "running":
            order = [name for name in self._planned if name in self._rows]
            rows = [row for name in order for row in self._rows[name]]
            summary["means"] = means(rows)
            over = [name for name in order if name in self._over]
            summary["published"] = beside_published(
                [(self.entries[name], self._published.get(name, [])) for name in order],
                [(self._planned[name].experiment, self.entries[name], self._over[name]) for name in over],
            )
        self._folder.put(summary)
        return summary

    def close(self, status: str, reason: str | None) -> dict[str, Any]:
        """Write table, figure and ``result.json``."""
        from bentpipe.plots.sweep import write_sweep_plot

        rows = [row for name in self._planned for row in self._rows.get(name, ())]
        table = make_table(self._plan.axes, rows)
        self._folder.write(TABLE, lambda path: _write(table, path))
        summary = self.put(status, reason)
        self._folder.draw(lambda aside: write_sweep_plot(aside, summary, rows))
        return summary

    def _head(self, status: str, reason: str | None) -> dict[str, Any]:
        plan = self._plan
        entries = [self.entries[name] for name in self._planned if name in self.entries]
        axes = [{"key": axis.key, "values": axis.values, "at": axis.numbers, "unit": axis.unit} for axis in plan.axes]
        whole = {
            "schema": SCHEMA_VERSION,
            "kind": "sweep",
            "id": plan.id,
            "title": plan.title,
            "paper": plan.paper,
            "figure": plan.figure,
            "description": plan.description,
            "status": status,
            "reason": reason,
            "shortened": any(entry["shortened"] for entry in entries),
            "remarks": [],
            "settings": plan.settings,
            "changes": self._changes or [],
            "axis": next((p.experiment.axis for p in plan.runs if p.experiment.axis), "") if plan.axes == () else "",
            "axes": axes,
            "seeds": plan.seeds,
            "version": plan.version,
            "versions": versions(),
            "planned": len(plan.runs),
            "time": {
                "started": self._started,
                "wall_s": time.monotonic() - self._begin,
                "runs_s": sum(entry["seconds"] or 0 for entry in entries),
            },
            "runs": entries,
            "means": [],
            "published": [],
        }
        return json.loads(json.dumps(whole))  # as it is read back


def _remarks(summary: dict[str, Any]) -> list[str]:
    """What stands between a run and the published one."""
    states = {
        "failed": summary["status"] == "failed",
        "shortened": summary["shortened"],
        "changed": bool(summary["changes"]),
        "connections broke": any(flow.get("error") for flow in summary["flows"]),
    }
    return [remark for remark, holds in states.items() if holds]


def _write(table: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    with path.open("wb") as file:
        pq.write_table(table, file, compression="zstd")
