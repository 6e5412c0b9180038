"""A run folder's tables as CSV, for programs that do not read Parquet: all cases in one file, with their name."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.results.files import read_parquet
from bentpipe.results.folder import case_paths, is_cases, is_sweep, read_run
from bentpipe.results.schema import RunResult

__all__ = ["export_csv"]

_FILES: Final = ("metrics.csv", "flows.csv", "trace.csv")
_SWEEP: Final = "table"


def export_csv(folder: Path, out: Path, force: bool = False) -> list[Path]:
    """Write ``metrics.csv`` (case, metric, value), ``flows.csv`` (a row a flow) and ``trace.csv`` (case, series,
    time_ps, value, event: long form) of a run, or of all cases that have run; ``table.csv`` of a sweep.

    Parameters
    ----------
    folder : Path
        A run folder.
    out : Path
        A folder, made if it is not there.
    force : bool
        Replace files that are there.

    Returns
    -------
    list[Path]
        What was written. What is nested in a column is JSON there.

    Raises
    ------
    BentpipeError
        It is no run folder, or is damaged; a file is there already.
    """
    if is_sweep(folder):
        return _export_sweep(folder, out / f"{_SWEEP}.csv", force)
    runs = [path for path in case_paths(folder) if (path / "result.json").is_file()] if is_cases(folder) else [folder]
    targets = [out / name for name in _FILES]
    _check_free(targets, force)
    parts = [path.with_name(path.name + ".part") for path in targets]
    try:
        out.mkdir(parents=True, exist_ok=True)
        _write(runs, *parts)
        for part, path in zip(parts, targets, strict=True):
            part.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return targets


def _check_free(targets: list[Path], force: bool) -> None:
    there = [path for path in targets if path.exists()]
    if there and not force:
        raise BentpipeError(f"{there[0]}: already exists; give another --out, or --force to replace it")


def _export_sweep(folder: Path, target: Path, force: bool) -> list[Path]:
    """Return the table of a sweep, as it is."""
    import pyarrow.csv

    _check_free([target], force)
    table = read_parquet(folder / f"{_SWEEP}.parquet")
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            pyarrow.csv.write_csv(table, file)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return [target]


def _write(runs: list[Path], metrics: Path, flows: Path, trace: Path) -> None:
    columns: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    with metrics.open("w", newline="") as figures, trace.open("w", newline="") as samples:
        of_metrics, of_trace = csv.writer(figures), csv.writer(samples)
        of_metrics.writerow(("case", "metric", "value"))
        of_trace.writerow(("case", "series", "time_ps", "value", "event"))
        for path in runs:
            run = read_run(path)
            case = (run.summary["case"] or {}).get("name", "")
            of_metrics.writerows((case, *pair) for pair in run.summary["metrics"].items())
            of_trace.writerows((case, *row) for row in _samples(run))
            for flow in run.flows:
                row = {"case": case} | {name: _plain(value) for name, value in flow.items()}
                columns |= dict.fromkeys(row)
                rows.append(row)
    with flows.open("w", newline="") as file:
        table = csv.DictWriter(file, [*columns])
        table.writeheader()
        table.writerows(rows)


def _samples(run: RunResult) -> Iterator[tuple[str, int, int, str]]:
    for name, (times, values) in run.trace.series.items():
        yield from ((name, time, value, "") for time, value in zip(times, values, strict=True))
    for name, time, kind, value in run.trace.events:
        yield name, time, value, kind


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list | tuple) else value
