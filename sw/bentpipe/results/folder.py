"""Writing a run folder so that it is either whole or not there, and reading it back."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bentpipe.errors import BentpipeError
from bentpipe.results.schema import SCHEMA_VERSION, RunResult, Trace

__all__ = [
    "check_target",
    "clear_target",
    "is_cases",
    "read_cases",
    "read_run",
    "write_cases",
    "write_report",
    "write_run",
]


def check_target(folder: Path, force: bool = False) -> None:
    """Say before a long run, not after it, that its folder can't be written.

    Raises
    ------
    BentpipeError
        If the folder is a file, has something in it that ``force`` doesn't cover, or can't be made.
    """
    if folder.exists() and not folder.is_dir():
        raise BentpipeError(f"{folder}: is a file, not a folder")
    if folder.is_dir() and any(folder.iterdir()):
        if not force:
            raise BentpipeError(f"{folder}: not empty; give another --out, or --force to replace a run folder")
        if not (folder / "result.json").is_file():
            raise BentpipeError(f"{folder}: not empty and not a run folder; --force replaces run folders only")
    above = folder.absolute().parent
    while not above.exists():
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise BentpipeError(f"{folder}: can't be made, {above} is not writable")


def clear_target(folder: Path) -> None:
    """Make an empty folder of one that :func:`check_target` has passed."""
    try:
        if folder.is_dir() and any(folder.iterdir()):
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".old", dir=folder.absolute().parent))
            folder.rename(old / folder.name)
            shutil.rmtree(old, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BentpipeError(f"{folder}: {error.strerror or error}") from error


def _write(path: Path, data: bytes) -> None:
    """Write a file whole: beside its place first, then into it."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_run(
    folder: Path,
    result: RunResult,
    make_report: Callable[[Path, RunResult], None],
    force: bool = False,
    captures: Path | None = None,
) -> None:
    """Write the folder beside its place, then rename it into it.

    Parameters
    ----------
    folder : Path
    result : RunResult
    make_report : Callable
        Adds plots and the report; gets the folder to write to and the result.
    force : bool
        Replace a run folder that is there.
    captures : Path, optional
        A folder whose files are moved into it.
    """
    check_target(folder, force)
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    old: Path | None = None
    try:
        temporary.chmod(0o777 & ~_umask())
        _write(temporary / "result.json", _json(result.summary))
        _write_flows(temporary / "flows.parquet", result.flows)
        _write_trace(temporary / "trace.parquet", result.trace)
        make_report(temporary, result)
        for file in sorted(captures.iterdir()) if captures else ():
            file.rename(temporary / file.name)
        if folder.is_dir() and any(folder.iterdir()):
            old = temporary.with_suffix(".old")
            folder.rename(old)
        temporary.rename(folder)
    except OSError as error:
        if old is not None and not folder.exists():
            old.rename(folder)
            old = None
        raise BentpipeError(f"{folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)


def write_cases(folder: Path, summary: dict[str, Any], make_report: Callable[[Path, dict[str, Any]], None]) -> None:
    """Write what stands above the folders of the cases, which are there; each file is replaced whole."""
    with tempfile.TemporaryDirectory(prefix=".report.", suffix=".part", dir=folder) as temporary:
        make_report(Path(temporary), summary)
        _write(Path(temporary) / "result.json", _json(summary))
        for path in sorted(Path(temporary).iterdir()):
            path.replace(folder / path.name)


def is_cases(folder: Path) -> bool:
    """Whether a run folder has a folder for each case."""
    return _summary(folder).get("kind") == "cases"


def read_cases(folder: Path) -> dict[str, Any]:
    """What stands above the folders of the cases; errors as of :func:`read_run`."""
    return _summary(folder)


def write_report(folder: Path, result: RunResult, make_report: Callable[[Path, RunResult], None]) -> None:
    """Make plots and report of a run folder anew; each file is replaced whole."""
    with tempfile.TemporaryDirectory(prefix=".report.", suffix=".part", dir=folder) as temporary:
        make_report(Path(temporary), result)
        for path in sorted(Path(temporary).iterdir()):
            path.replace(folder / path.name)


def read_run(folder: Path) -> RunResult:
    """Read a run folder back.

    Raises
    ------
    BentpipeError
        If it isn't one, is damaged, or was written by a newer bentpipe.
    """
    summary = _summary(folder)
    return RunResult(summary, _read_flows(folder / "flows.parquet"), _read_trace(folder / "trace.parquet"))


def _summary(folder: Path) -> dict[str, Any]:
    path = folder / "result.json"
    if not path.is_file():
        raise BentpipeError(f"{folder}: not a run folder (no result.json)")
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        version = summary["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise BentpipeError(f"{path}: damaged: {error}") from None
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise BentpipeError(f"{path}: schema {version} is newer than this bentpipe's {SCHEMA_VERSION}")
    return summary


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _write_flows(path: Path, flows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(dict.fromkeys(name for flow in flows for name in flow))  # not every flow has every column
    pq.write_table(pa.Table.from_pylist([{name: flow.get(name) for name in names} for flow in flows]), path)


def _write_trace(path: Path, trace: Trace) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(dict.fromkeys([*trace.series, *(e[0] for e in trace.events)]))
    number = {name: i for i, name in enumerate(names)}
    series, times, values = array("i"), array("q"), array("q")
    for name, (when, what) in trace.series.items():
        series.extend([number[name]] * len(when))
        times.extend(when)
        values.extend(what)
    kinds: list[str | None] = [None] * len(times)
    for name, time_ps, kind, value in trace.events:
        series.append(number[name])
        times.append(time_ps)
        values.append(value)
        kinds.append(kind)
    table = pa.table(
        {
            "series": pa.DictionaryArray.from_arrays(pa.array(series, pa.int32()), pa.array(names, pa.string())),
            "time_ps": pa.array(times, pa.int64()),
            "value": pa.array(values, pa.int64()),
            "event": pa.array(kinds, pa.string()).dictionary_encode(),
        }
    )
    pq.write_table(table, path, compression="zstd")


def _table(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except FileNotFoundError:
        raise BentpipeError(f"{path}: is missing") from None
    except (pa.ArrowException, OSError) as error:
        raise BentpipeError(f"{path}: damaged: {str(error).splitlines()[0]}") from None


def _read_flows(path: Path) -> list[dict[str, Any]]:
    return _table(path).to_pylist()


def _read_trace(path: Path) -> Trace:
    columns = _table(path).to_pydict()
    series: dict[str, tuple[array[int], array[int]]] = {}
    events: list[tuple[str, int, str, int]] = []
    try:
        rows = zip(columns["series"], columns["time_ps"], columns["value"], columns["event"], strict=True)
    except KeyError as error:
        raise BentpipeError(f"{path}: damaged: no column {error}") from None
    for name, time_ps, value, event in rows:
        if event is not None:
            events.append((name, time_ps, event, value))
            continue
        times, values = series.setdefault(name, (array("q"), array("q")))
        times.append(time_ps)
        values.append(value)
    return Trace(series, events)
