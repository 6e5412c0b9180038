"""The summary of a sweep: the rows of its table, means over seeds, published figures beside them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from bentpipe.results.declared import is_whole, metric_name, subject_columns, unit_of
from bentpipe.results.expect import broken
from bentpipe.results.knees import over_cases
from bentpipe.results.metrics import NOT_COMPARED, compare, set_otherwise
from bentpipe.results.statistics import mean_of
from bentpipe.sweeps.grid import Axis
from bentpipe.sweeps.groups import UNEXPECTED, group_rows
from bentpipe.sweeps.table import figures_of, row_head

__all__ = ["LEFT", "Results"]

LEFT: Final = "left"
"""The status of a run that has not ended."""

_OF_A_FIGURE: Final = frozenset({"flow", "vc", "port", "metric", "unit"})
"""Columns that say which figure a row has."""

_NOTHING: Final = {
    "status": LEFT,
    "reason": None,
    "shortened": False,
    "simulated_s": None,
    "seconds": None,
    "expected": [],
    "theory": None,
    "worker": None,
}


class Results:
    """The runs of a sweep as they come in.

    Parameters
    ----------
    head : Mapping
        Of ``result.json``: what is known before any run has ended.
    runs : Sequence[Mapping]
        Each with ``experiment``, ``case``, ``at``, ``curve``, ``values`` (what is varied, by key), ``seed``,
        ``folder``.

    Members
    -------
    axes : tuple[Axis, ...]
    runs : dict[str, dict]
        By folder, in the order of the plan; also ``status`` ("left", "done", "failed", "interrupted"), ``reason``,
        ``shortened``, ``simulated_s``, ``seconds``, ``expected`` (the rows of ``[[expect]]`` beside its figures),
        ``theory`` (of how many predictions how many are within our interval; None without any) and ``worker`` (that ran
        it this time).
    """

    def __init__(self, head: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> None:
        self._head = head
        self.axes = tuple(Axis(axis["key"], tuple(axis["values"])) for axis in head["axes"])
        self.runs: dict[str, dict[str, Any]] = {run["folder"]: {**run, **_NOTHING} for run in runs}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._published: dict[str, list[dict[str, Any]]] = {}
        self._parts: dict[str, dict[str, Any]] = {}
        self._changes: list[Any] | None = None

    @property
    def ended(self) -> int:
        """The number of runs that have ended."""
        return sum(run["status"] != LEFT for run in self.runs.values())

    def add(self, folder: str, summary: Mapping[str, Any], worker: str | None = None) -> None:
        """Add a run's ``result.json``, with the worker that ran it if it was run this time."""
        run = self.runs[folder]
        run |= {
            "status": summary["status"],
            "reason": summary["reason"],
            "shortened": summary["shortened"],
            "simulated_s": summary["time"]["simulated_s"],
            "seconds": summary["time"]["wall_s"],
            "expected": summary["expected"],
            "theory": _theory(summary),
            "worker": worker,
        }
        verdict = UNEXPECTED if run["status"] == "done" and broken(run["expected"]) else run["status"]
        tail = {"verdict": verdict, "remarks": ", ".join(_remarks(summary)), "seconds": run["seconds"]}
        head = row_head(self.axes, run)
        self._rows[folder] = [
            {
                **head,
                **subject_columns(owner, metric),
                "metric": metric,
                "value": value,
                "unit": unit_of(metric),
                **tail,
                "run": folder,
            }
            for (owner, metric), value in figures_of(summary).items()
        ]
        self._published[folder] = summary["published"]
        if run["experiment"] in self._head["over_cases"]:
            self._parts[folder] = {key: summary[key] for key in ("resolved", "metrics", "changes", "shortened")}
        changes = summary["changes"]
        self._changes = changes if self._changes is None else [c for c in self._changes if c in changes]

    def fail(self, folder: str, reason: str) -> None:
        """Record that a run ended without a result."""
        run = self.runs[folder]
        run |= {"status": "failed", "reason": reason}
        tail = {"verdict": "failed", "remarks": reason, "seconds": None, "run": folder}
        none = {"flow": "", "vc": "", "port": "", "metric": "", "value": None, "unit": ""}
        self._rows[folder] = [{**row_head(self.axes, run), **none, **tail}]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table (:mod:`bentpipe.sweeps.table`), in the order of the plan."""
        return [row for folder in self.runs for row in self._rows.get(folder, ())]

    def verdict(self) -> tuple[str, str | None]:
        """Return status and reason of the sweep when no run is left."""
        bad = [run for run in self.runs.values() if run["status"] != "done"]
        if not bad:
            return "done", None
        name = bad[0]["folder"].rpartition("/")[2]
        return "failed", f"{len(bad)} of {len(self.runs)} runs failed, {name}: {bad[0]['reason']}"

    def summary(self, status: str, reason: str | None, time: Mapping[str, Any]) -> dict[str, Any]:
        """Return the present ``result.json``."""
        runs = [*self.runs.values()]
        found = {
            **self._head,
            "status": status,
            "reason": reason,
            "shortened": any(run["shortened"] for run in runs),
            "changes": self._changes or [],
            "time": {**time, "runs_s": sum(run["seconds"] or 0 for run in runs)},
            "runs": runs,
            "means": _means(self.rows(), self._head.get("metrics", ())),
            "published": self._beside_published(),
        }
        return json.loads(json.dumps(found))  # as it is read back

    def _beside_published(self) -> list[dict[str, Any]]:
        """Return the published rows, each with the mean over seeds of ours.

        A row of :func:`~bentpipe.results.metrics.compare` with ``experiment``, ``values`` (what is varied), ``count``
        (of seeds), ``sigma`` and ``half`` (of the 95 % interval; None of one).
        """
        found: dict[tuple[Any, ...], list[tuple[dict[str, Any], Mapping[str, Any]]]] = {}
        together: dict[tuple[Any, ...], list[str]] = {}

        def add(run: Mapping[str, Any], case: str | None, rows: Iterable[Mapping[str, Any]]) -> None:
            at = {"experiment": run["experiment"], "values": dict(run["values"])}
            for number, row in enumerate(rows):
                place = (run["experiment"], *run["values"].items(), case, number)
                found.setdefault(place, []).append((at, row))

        for folder, run in self.runs.items():
            add(run, run["case"], self._published.get(folder, ()))
            if folder in self._parts:
                together.setdefault((run["experiment"], *run["values"].items(), run["seed"]), []).append(folder)
        for folders in together.values():
            runs, parts = [self.runs[f] for f in folders], [self._parts[f] for f in folders]
            states = {
                "failed": any(run["status"] == "failed" for run in runs),
                "shortened": any(part["shortened"] for part in parts),
                "changed": any(set_otherwise(part["changes"]) for part in parts),
            }
            rows = self._head["over_cases"][runs[0]["experiment"]]
            remarks = [state for state, holds in states.items() if holds]
            add(runs[0], None, compare(rows, over_cases(parts), remarks))
        return [_published_row(same) for same in found.values()]


def _published_row(same: Sequence[tuple[dict[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Return one published row beside the mean of some runs."""
    at, row = same[0]
    remarks = [*dict.fromkeys(remark for _, each in same for remark in each["remarks"])]
    ours = [each["ours"] for _, each in same if each["ours"] is not None]
    mean = mean_of(ours) if ours else None
    reference = row["measured"] if row["measured"] is not None else row["predicted"]
    several = len(ours) > 1 or row["ratio"] is not None  # one run is compared with the average of the same trials alone
    compared = reference and several and not NOT_COMPARED.intersection(remarks)
    value = None if mean is None else mean.most if row.get("over") == "best" else mean.mean
    return {
        **at,
        **row,
        "ours": value,
        "ratio": value / reference if compared and value is not None else None,
        "remarks": remarks,
        "count": len(ours),
        "sigma": mean.sigma if mean else None,
        "half": mean.half if mean else None,
    }


def _means(rows: Iterable[Mapping[str, Any]], asked: Collection[str]) -> list[dict[str, Any]]:
    """Return the figures of whole runs, and those ``asked`` for of flows, VCs and ports, over seeds: one entry for each
    case and combination of what is varied.

    Each has the columns of the table that its rows share, ``seeds``, ``left_out`` (runs that are not done), and
    ``metrics``: by name ``unit``, ``count``, ``mean``, ``sigma``, ``half`` (of the 95 % interval), ``least``, ``most``.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group in group_rows(row for row in rows if is_whole(row) or metric_name(row) in asked):
        at = {name: value for name, value in group.at.items() if name not in _OF_A_FIGURE}
        entry = found.setdefault(tuple(at.values()), {**at, "seeds": [], "left_out": group.left_out, "metrics": {}})
        entry["seeds"] = max(entry["seeds"], [*group.seeds], key=len)
        if group.mean is not None:
            entry["metrics"][metric_name(group.at)] = {"unit": group.at["unit"], **asdict(group.mean)}
    return [*found.values()]


def _theory(summary: Mapping[str, Any]) -> dict[str, int] | None:
    judged = [row["holds"] for row in summary.get("theory", ()) if row["holds"] is not None]
    return {"held": sum(judged), "of": len(judged)} if judged else None


def _remarks(summary: Mapping[str, Any]) -> list[str]:
    """Return the differences between a run and the published one."""
    sizes = {flow["name"]: flow["size"] for flow in summary["resolved"]["flows"]}
    left = any(flow["octets_delivered"] < (sizes.get(flow["name"]) or 0) for flow in summary["flows"])
    states = {
        "failed": summary["status"] == "failed",
        "shortened": summary["shortened"],
        "unfinished": left and not summary["shortened"],
        "changed": bool(set_otherwise(summary["changes"])),
        "connections broke": any(flow.get("error") for flow in summary["flows"]),
    }
    return [remark for remark, holds in states.items() if holds]
