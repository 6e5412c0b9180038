"""The table of a sweep: ``table.parquet`` in its folder, tidy: one row for each figure of each run.

Its columns are :data:`bentpipe.results.columns.SWEEP_HEAD`, one for each key that is varied, and
:data:`~bentpipe.results.columns.SWEEP`. The column of a key is named by the dotted key. It holds numbers if all values
are bare numbers, else texts (``"64 KiB"``, ``"sack"``). Of a flow there are ``goodput``, what its application reports,
and every number of its row in ``flows.parquet``. A run that broke off without a result has one row whose ``metric`` is
"". Runs that are left have no rows.

``bentpipe export DIR`` writes the same columns and rows as ``table.csv``. A mean over seeds is one over the rows
that differ in ``seed`` and ``run`` only (:func:`bentpipe.sweeps.groups.group_rows`).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.resolve.known import features, known_figures
from bentpipe.results.arrow import arrow_table
from bentpipe.results.columns import SWEEP, SWEEP_HEAD, arrow_schema
from bentpipe.results.declared import level_of, metric_name
from bentpipe.results.files import read_parquet
from bentpipe.results.metrics import count_sums
from bentpipe.sweeps.grid import Axis

if TYPE_CHECKING:
    import pyarrow as pa

    from bentpipe.experiment.resolve.specs import Experiment

__all__ = [
    "TABLE",
    "check_metrics",
    "figures_of",
    "make_table",
    "planned_metrics",
    "read_table",
    "row_head",
    "write_table",
]

TABLE: Final = "table.parquet"

_NOT_FIGURES: Final = frozenset({"goodput_bps"})
"""Columns of a flow's row that are no figures: this one is there as ``goodput``."""


_LISTED: Final = "`bentpipe help metrics` lists them"
_SHOWN: Final = 12
"""Names that an error lists, at most."""


def row_head(axes: Sequence[Axis], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first columns, which all rows of a run share.

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
    """Return whether all values are numbers without a unit."""
    return axis.numbers is not None and not axis.unit and not any(set("\"'") & set(text) for text in axis.values)


def figures_of(summary: Mapping[str, Any]) -> dict[tuple[str, str], float | None]:
    """Return all figures of a run by their object ("" for the run; a flow, VC or port) and name.

    Parameters
    ----------
    summary : Mapping
        The run's ``result.json``.
    """
    names = sorted((flow["name"] for flow in summary["flows"]), key=len, reverse=True)  # one may begin as another
    found: dict[tuple[str, str], float | None] = {}
    for metric, value in summary["metrics"].items():
        of, _, last = metric.rpartition(".")
        if of and level_of(of, last) in ("vc", "port"):
            found[of, last] = value
            continue
        owner = next((name for name in names if metric.startswith(f"{name}.")), "")
        found[owner, metric.removeprefix(f"{owner}.") if owner else metric] = value
    found |= {("", name): value for name, value in count_sums(summary).items()}
    for flow in summary["flows"]:
        for name, value in flow.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and name not in _NOT_FIGURES:
                found.setdefault((flow["name"], name), value)
    return found


def make_table(axes: Sequence[Axis], rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return the table of rows, whatever their number."""
    import pyarrow as pa

    kinds = {axis.key: pa.float64() if _bare(axis) else pa.string() for axis in axes}
    head, tail = arrow_schema(SWEEP_HEAD), arrow_schema(SWEEP)
    schema = pa.schema([*head, *(pa.field(key, kind) for key, kind in kinds.items()), *tail])
    return arrow_table([dict(row) for row in rows], schema)


def read_table(folder: Path) -> pa.Table:
    """Return the table of a sweep's folder; errors as for :func:`~bentpipe.results.files.read_parquet`."""
    return read_parquet(folder / TABLE)


def check_metrics(names: Sequence[str], table: pa.Table) -> None:
    """Raise :class:`BentpipeError` if a name is no figure in the table."""
    columns = ("flow", "vc", "port", "metric")
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    known = dict.fromkeys(metric_name(dict(zip(columns, row, strict=True))) for row in rows if row[-1])
    if known:
        _check(names, known)


def planned_metrics(names: Sequence[str], experiments: Iterable[Experiment]) -> tuple[str, ...]:
    """Return the names of figures of these experiments' runs that are asked for, each once.

    In a pattern ``*`` is any text, ``?`` any character.
    """
    if not names:
        return ()
    known: dict[str, None] = {}
    for each in experiments:
        known |= dict.fromkeys(known_figures(each.flows, each.vcs, each.network, _has(each)))
        known |= dict.fromkeys(f"{flow.name}.{name}" for flow in each.flows for name in _row_numbers(flow.protocol))
    found: dict[str, None] = {}
    for name in names:
        matching = fnmatch.filter(known, name) if set("*?") & set(name) else [name]
        if not matching:
            raise BentpipeError(f"metric {name}: no figure has such a name; {_LISTED}")
        found |= dict.fromkeys(matching)
    _check([*found], known)
    return tuple(found)


def _has(experiment: Experiment) -> list[str]:
    """Return the features of an experiment that some figures need."""
    return features(experiment, experiment.record.losses > 0)


def _row_numbers(protocol: str) -> list[str]:
    """Return the numbers of a flow's row."""
    from bentpipe.hosts.flow import FlowReport
    from bentpipe.hosts.flow_base import CellFlowReport
    from bentpipe.hosts.udp import UdpReport

    report = {"tcp": FlowReport, "udp": UdpReport, "oam": CellFlowReport, "atm": CellFlowReport}[protocol]
    kinds = {field.name: field.type for field in fields(report)}
    return [name for name, kind in kinds.items() if kind in ("int", "float", int, float) and name not in _NOT_FIGURES]


def _check(names: Sequence[str], known: Collection[str]) -> None:
    from bentpipe_hdl.words import nearest

    for name in names:
        if name not in known:
            near = nearest(name, known)
            if near.startswith("; known") and len(known) > _SHOWN:
                near = f"; {_LISTED}"
            raise BentpipeError(f"metric {name}: no run has such a figure{near}")


def write_table(table: pa.Table, path: Path) -> None:
    """Write the table as Parquet."""
    import pyarrow.parquet as pq

    with path.open("wb") as file:
        pq.write_table(table, file, compression="zstd")
