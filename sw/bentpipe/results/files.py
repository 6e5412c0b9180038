"""The files of a run folder, written and read: the summary, tables of flows and of the trace, the trace so far."""

from __future__ import annotations

import json
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from bentpipe.errors import BentpipeError
from bentpipe.results.arrow import arrow_column, arrow_dictionary, arrow_numbers, arrow_table
from bentpipe.results.columns import TRACE, arrow_schema
from bentpipe.results.schema import SCHEMA_VERSION, Trace, Writes

__all__ = [
    "TraceStream",
    "json_bytes",
    "named",
    "read_changes",
    "read_flows",
    "read_losses",
    "read_parquet",
    "read_stream",
    "read_summary",
    "read_trace",
    "write_changes",
    "write_flows",
    "write_losses",
    "write_trace",
]

_OF_A_RUN: Final = ("id", "status", "time", "metrics", "flows", "drops", "ledger", "resolved")
"""What a run's result.json has to have; what else it has, something can be said without."""


def read_summary(folder: Path) -> dict[str, Any]:
    """Read the ``result.json`` of a run folder."""
    path = folder / "result.json"
    if not path.is_file():
        raise BentpipeError(f"{folder}: not a run folder (no result.json)")
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        version = summary["schema"]
    except KeyError as error:
        raise BentpipeError(f"{path}: damaged: there is no {error}") from None
    except (ValueError, TypeError) as error:
        raise BentpipeError(f"{path}: damaged: {error}") from None
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise BentpipeError(f"{path}: schema {version} is newer than this bentpipe's {SCHEMA_VERSION}")
    if version < SCHEMA_VERSION:
        older = f"schema {version} is of an older bentpipe, this one's is {SCHEMA_VERSION}"
        raise BentpipeError(f"{path}: {older}: run the experiment again")
    missing = [] if "kind" in summary else [name for name in _OF_A_RUN if name not in summary]
    if missing:
        raise BentpipeError(f"{path}: damaged: there is no {missing[0]!r}")
    return summary


def json_bytes(data: Any) -> bytes:
    """Return a file of JSON, indented."""
    return (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write_flows(path: Path, flows: list[dict[str, Any]]) -> None:
    """Write ``flows.parquet``."""
    import pyarrow.parquet as pq

    names = list(dict.fromkeys(name for flow in flows for name in flow))  # not every flow has every column
    with path.open("wb") as file:
        pq.write_table(arrow_table([{name: flow.get(name) for name in names} for flow in flows]), file)


def write_trace(path: Path, trace: Trace) -> None:
    """Write ``trace.parquet``."""
    import pyarrow.parquet as pq

    with path.open("wb") as file:
        pq.write_table(_trace_table(trace), file, compression="zstd")


def write_losses(path: Path, losses: Any) -> None:
    """Write ``losses.parquet``."""
    import pyarrow.parquet as pq

    with path.open("wb") as file:
        pq.write_table(losses, file, compression="zstd")


def read_losses(path: Path) -> Any | None:
    """Read the records of lost cells; None if there are none."""
    return read_parquet(path) if path.is_file() else None


def _stream_schema() -> Any:
    return arrow_schema(TRACE)


class _Rows(NamedTuple):
    """A trace as rows: the index of each row's series in ``names``, its time in ps, value, and kind of event."""

    names: list[str]
    series: array[int]
    times: array[int]
    values: array[int]
    kinds: list[str | None]


def _trace_rows(trace: Trace) -> _Rows:
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
    return _Rows(names, series, times, values, kinds)


def _trace_table(trace: Trace) -> Any:
    import pyarrow as pa

    rows = _trace_rows(trace)
    return pa.table(
        {
            "series": pa.DictionaryArray.from_arrays(arrow_numbers(rows.series), arrow_column(rows.names, pa.string())),
            "time_ps": arrow_numbers(rows.times),
            "value": arrow_numbers(rows.values),
            "event": arrow_dictionary(rows.kinds),
        }
    )


def _stream_table(trace: Trace) -> Any:
    """Return the rows with texts in the place of dictionaries; ``Table.cast`` would import ``pyarrow.compute``."""
    import pyarrow as pa

    rows = _trace_rows(trace)
    columns = [
        arrow_column([rows.names[index] for index in rows.series], pa.string()),
        arrow_numbers(rows.times),
        arrow_numbers(rows.values),
        arrow_column(rows.kinds, pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=_stream_schema())


def write_changes(path: Path, writes: Writes) -> None:
    """Write ``changes.parquet``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    figures = [float(value) if isinstance(value, (int, float)) else None for _, _, _, value in writes]
    texts = [
        None if number is not None else json.dumps(value)
        for number, (_, _, _, value) in zip(figures, writes, strict=True)
    ]
    columns = {
        "time_ps": arrow_column([at_ps for at_ps, _, _, _ in writes], pa.int64()),
        "source": arrow_dictionary([source for _, source, _, _ in writes]),
        "key": arrow_dictionary([key for _, _, key, _ in writes]),
        "value": arrow_column(figures, pa.float64()),
        "text": arrow_column(texts, pa.string()),
    }
    with path.open("wb") as file:
        pq.write_table(pa.table(columns), file, compression="zstd")


def read_changes(path: Path) -> Writes:
    """Return the changes that :func:`write_changes` wrote; nothing if there is no such file."""
    if not path.is_file():
        return []
    columns = read_parquet(path).to_pydict()
    rows = zip(*(columns[name] for name in ("time_ps", "source", "key", "value", "text")), strict=True)
    return [
        (at_ps, source, key, number if text is None else json.loads(text)) for at_ps, source, key, number, text in rows
    ]


def read_parquet(path: Path) -> Any:
    """Return a table of a folder.

    Raises
    ------
    BentpipeError
        There is none, or it is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except FileNotFoundError:
        raise BentpipeError(f"{path}: is missing") from None
    except (pa.ArrowException, OSError) as error:
        raise BentpipeError(f"{path}: damaged: {str(error).splitlines()[0]}") from None


def read_flows(path: Path) -> list[dict[str, Any]]:
    """Read ``flows.parquet``: a row for each flow."""
    return read_parquet(path).to_pylist()


def read_trace(path: Path) -> Trace:
    """Read ``trace.parquet``."""
    try:
        return _trace_of(read_parquet(path))
    except KeyError as error:
        raise BentpipeError(f"{path}: damaged: no column {error}") from None


def read_stream(path: Path, until_ps: int) -> Trace:
    """Return the trace so far, up to a time; an incomplete part at the end is left out."""
    import pyarrow as pa

    batches = []
    with suppress(pa.ArrowException, OSError), pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            batches.append(batch)
    return _trace_of(pa.Table.from_batches(batches, _stream_schema()), until_ps)


def _trace_of(table: Any, until_ps: int = 2**63) -> Trace:
    columns = table.to_pydict()
    series: dict[str, tuple[array[int], array[int]]] = {}
    events: list[tuple[str, int, str, int]] = []
    rows = zip(columns["series"], columns["time_ps"], columns["value"], columns["event"], strict=True)
    for name, time_ps, value, event in rows:
        if time_ps > until_ps:
            continue
        if event is not None:
            events.append((name, time_ps, event, value))
            continue
        times, values = series.setdefault(name, (array("q"), array("q")))
        times.append(time_ps)
        values.append(value)
    return Trace(series, events)


class TraceStream:
    """The trace so far: a stream of which each addition can be read from the moment it was written."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._path = path
        self._file = path.open("wb")
        self._writer = pa.ipc.new_stream(
            self._file, _stream_schema(), options=pa.ipc.IpcWriteOptions(compression="zstd")
        )

    def add(self, trace: Trace) -> None:
        try:
            self._writer.write_table(_stream_table(trace))
            self._file.flush()
        except OSError as error:
            raise named(error, self._path) from error

    def close(self) -> None:
        with suppress(OSError):  # whoever wrote has been told
            self._writer.close()
        with suppress(OSError):
            self._file.close()


def named(error: OSError, path: Path) -> OSError:
    """Return the error with the file that could not be written."""
    return OSError(error.errno, error.strerror or str(error), str(path))
