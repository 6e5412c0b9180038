"""The table of a sweep: ``table.parquet`` in its folder, tidy: one row for each figure of each run.

============== ========= ==========================================================================================
column         type      holds
============== ========= ==========================================================================================
``experiment`` string    the experiment's id
``case``       string    the name of its case; "" without
``at``         double    the case's place on the axis; null without
``curve``      string    the curve that the case is on; "" without
KEY            double or a column for each key that is varied, named by the dotted key: numbers where all its values
               string    are bare numbers, else the texts (``"64 KiB"``, ``"sack"``)
``seed``       int64     of the run
``flow``       string    the flow that the figure is of; "" for the run as a whole
``metric``     string    its name: for a run those of ``metrics`` in ``result.json`` (``aggregate_goodput``,
                         ``fairness``, …), ``retransmits``, ``timeouts``, ``pdus_lost``, ``cells_dropped``; for a flow
                         ``goodput``, what its application reports, and every number of its row in ``flows.parquet``
``value``      double    in base units; null where a run has no such figure
``unit``       string    ``b/s``, ``ps``, ``octets``, ``cells``, or "" for counts and shares
``verdict``    string    ``done``; ``unexpected``: done, but not what ``[[expect]]`` says; ``failed``: the figures
                         can't be trusted, or there is one row whose ``metric`` is "", as the run broke off without a
                         result. Runs that are left have no rows
``remarks``    string    what stands between the run and a published one, joined by ", ": ``shortened``, ``changed``, …
``seconds``    double    the run's real time; null where it has none
``run``        string    the run folder, from the sweep's folder
============== ========= ==========================================================================================

``bentpipe export DIR --csv`` writes the same columns and rows as ``table.csv``. A mean over seeds is one over the rows
that differ in ``seed`` and ``run`` only (:func:`bentpipe.sweeps.groups.group_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.tables import METRICS
from bentpipe.results.files import read_parquet
from bentpipe.results.metrics import GROUPED
from bentpipe.results.splitting import LOSS_METRICS
from bentpipe.sweeps.grid import Axis

if TYPE_CHECKING:
    import pyarrow as pa

    from bentpipe.experiment.resolve.specs import Experiment

__all__ = [
    "TABLE",
    "check_metrics",
    "check_planned",
    "figures_of",
    "make_table",
    "read_table",
    "row_head",
    "unit_of",
    "write_table",
]

TABLE: Final = "table.parquet"

_UNITS: Final = {"_ps": "ps", "_bps": "b/s", "goodput": "b/s", "sigma": "b/s", "octets": "octets", "cells": "cells"}
"""What names of figures begin or end with, and their units."""

_SUMS: Final = ("retransmits", "timeouts", "pdus_lost", "cells_dropped")
"""Figures of a run that its flows, its ledger and its drops give."""

_NOT_FIGURES: Final = frozenset({"goodput_bps"})
"""Of a flow's row: it is there as ``goodput``."""


def unit_of(metric: str) -> str:
    """The unit of a figure by its name, "" if it has none."""
    return next((unit for part, unit in _UNITS.items() if metric.endswith(part) or metric.startswith(part)), "")


def row_head(axes: Sequence[Axis], run: Mapping[str, Any]) -> dict[str, Any]:
    """What all rows of a run begin with.

    Parameters
    ----------
    axes : Sequence[Axis]
    run : Mapping
        As in ``runs`` of the sweep's ``result.json``.
    """
    head: dict[str, Any] = {name: run[name] for name in ("experiment", "case", "at", "curve")}
    for axis in axes:
        text = run["values"][axis.key]
        head[axis.key] = float(text.replace("_", "")) if _bare(axis) else text
    return head | {"seed": run["seed"]}


def _bare(axis: Axis) -> bool:
    """All values are numbers without a unit."""
    return axis.numbers is not None and not axis.unit and not any(set("\"'") & set(text) for text in axis.values)


def figures_of(summary: Mapping[str, Any]) -> dict[tuple[str, str], float | None]:
    """All figures of a run by flow ("": the run) and name.

    Parameters
    ----------
    summary : Mapping
        The run's ``result.json``.
    """
    names = sorted((flow["name"] for flow in summary["flows"]), key=len, reverse=True)  # one may begin as another
    found: dict[tuple[str, str], float | None] = {}
    for metric, value in summary["metrics"].items():
        owner = next((name for name in names if metric.startswith(f"{name}.")), "")
        found[owner, metric.removeprefix(f"{owner}.") if owner else metric] = value
    flows = summary["flows"]
    sums = (
        sum(flow.get("retransmits", 0) for flow in flows),
        sum(flow.get("timeouts", 0) for flow in flows),
        sum(loss["pdus"] for vc in summary["ledger"] for loss in vc["lost"] if loss["where"]),
        sum(sum(reasons.values()) for reasons in summary["drops"].values()),
    )
    found |= {("", name): value for name, value in zip(_SUMS, sums, strict=True)}
    for flow in flows:
        for name, value in flow.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and name not in _NOT_FIGURES:
                found.setdefault((flow["name"], name), value)
    return found


def make_table(axes: Sequence[Axis], rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The table of rows, whatever their number."""
    import pyarrow as pa

    kinds = {axis.key: pa.float64() if _bare(axis) else pa.string() for axis in axes}
    schema = pa.schema(
        {
            "experiment": pa.string(),
            "case": pa.string(),
            "at": pa.float64(),
            "curve": pa.string(),
            **kinds,
            "seed": pa.int64(),
            "flow": pa.string(),
            "metric": pa.string(),
            "value": pa.float64(),
            "unit": pa.string(),
            "verdict": pa.string(),
            "remarks": pa.string(),
            "seconds": pa.float64(),
            "run": pa.string(),
        }
    )
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def read_table(folder: Path) -> pa.Table:
    """The table of a sweep's folder; errors as of :func:`~bentpipe.results.files.read_parquet`."""
    return read_parquet(folder / TABLE)


def check_metrics(names: Sequence[str], table: pa.Table) -> None:
    """Raises :class:`BentpipeError` if a name is no figure of a whole run in the table."""
    from bentpipe_hdl.words import nearest

    pairs = zip(table["flow"].to_pylist(), table["metric"].to_pylist(), strict=True)
    known = dict.fromkeys(metric for flow, metric in pairs if not flow and metric)
    for name in names:
        if known and name not in known:
            raise BentpipeError(f"--metric {name}: no run has such a figure{nearest(name, known)}")


def check_planned(names: Sequence[str], experiments: Iterable[Experiment]) -> None:
    """Raises :class:`BentpipeError` if no run of these experiments can have such a figure of the whole run."""
    from bentpipe_hdl.words import nearest

    known: dict[str, None] = dict.fromkeys(("overall_goodput", *_SUMS))
    for each in experiments:
        own = [name for name in METRICS if name != "none" and (each.splitting is not None or name not in LOSS_METRICS)]
        groups = {flow.group for flow in each.flows if flow.group}
        known |= dict.fromkeys([*own, *(f"{group}.{figure}" for group in sorted(groups) for figure in GROUPED)])
    for name in names:
        if name not in known:
            raise BentpipeError(f"--metric {name}: no run has such a figure{nearest(name, known)}")


def write_table(table: pa.Table, path: Path) -> None:
    """As Parquet."""
    import pyarrow.parquet as pq

    with path.open("wb") as file:
        pq.write_table(table, file, compression="zstd")
