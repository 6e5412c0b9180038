"""Profiles: series of a CSV or Parquet file that drive settings while a run goes on.

A file has a column of times and a column for each key; a column whose name begins with ``_`` drives nothing. A row
writes the keys of which it has a value; an empty place writes nothing. All rows are checked when the experiment is
read, by their least and greatest values, so that a run does not stop at a row.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.assign import Assignment, assigned, value_of
from bentpipe.experiment.document.source import ConfigProblem, Source
from bentpipe.experiment.document.tables import Document, ProfileTable
from bentpipe.experiment.resolve.events import EventSource, refusal
from bentpipe.experiment.resolve.line_writes import LineWriter, quantity_of_line
from bentpipe.experiment.resolve.specs import EventSpec, Experiment, ProfileSpec
from bentpipe_hdl.settings import key_of
from bentpipe_hdl.units import BER, CELL_RATE, RATE_UNITS, TIME, format_time, parse_time
from bentpipe_hdl.words import nearest

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["read_profiles"]

MOST_ROWS: Final = 5_000_000
"""Rows of a profile, those between the file's by interpolation among them."""

_PS: Final = 10**12
_DISTINCT: Final = 1000
"""Values of a column that is no number, at most."""


def read_profiles(
    tables: Sequence[ProfileTable],
    document: dict[str, Any],
    source: Source,
    first: Experiment,
    read: Callable[[dict[str, Any], Source], Experiment],
) -> tuple[ProfileSpec, ...]:
    """Read the profiles of a document, in the order of the file; parameters as of
    :func:`bentpipe.experiment.resolve.events.read_events`.

    Raises
    ------
    ConfigError
        A file is not there or cannot be read; a column is no key that can be changed in a run, or has a value out of
        range.
    """
    return tuple(_Reader(number, table, document, source, first, read).made() for number, table in enumerate(tables))


@lru_cache(maxsize=8)
def _table(path: Path, _changed_ns: int, _octets: int) -> tuple[str, pa.Table]:
    """Return the digest of a file and its table; comment lines (``#``) before a CSV file's head are left out."""
    octets = path.read_bytes()
    digest = hashlib.sha256(octets).hexdigest()
    found = _read(path, octets)
    _ = found.column_names  # UnicodeDecodeError where they are not UTF-8
    return digest, found


def _read(path: Path, octets: bytes) -> pa.Table:
    import pyarrow as pa

    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(pa.BufferReader(octets))
    from pyarrow import csv

    begin = 0
    while octets[begin : begin + 1] == b"#":
        begin = octets.find(b"\n", begin) + 1 or len(octets)
    options = csv.ConvertOptions(strings_can_be_null=True)
    return csv.read_csv(pa.BufferReader(octets[begin:]), convert_options=options)


class _Reader:
    """A reader of one ``[[profile]]``."""

    def __init__(
        self,
        number: int,
        table: ProfileTable,
        document: dict[str, Any],
        source: Source,
        first: Experiment,
        read: Callable[[dict[str, Any], Source], Experiment],
    ) -> None:
        self._place, self._table, self._source, self._read = f"profile.{number}", table, source, read
        self._document = {key: value for key, value in document.items() if key not in ("event", "profile")}
        self._first = first
        self._lines = [line.name for line in first.network.lines]

    def made(self) -> ProfileSpec:
        table = self._table
        if table.line is not None and table.line not in self._lines:
            raise self._error("line", f"there is no line {table.line!r}{nearest(table.line, self._lines)}")
        if table.direction != "both" and table.line is None:
            raise self._error("direction", "goes with 'line'")
        digest, data = self._file()
        times, columns = self._columns(data)
        keys = tuple(map(self._whole_key, columns))
        wrong = next(filter(None, map(refusal, keys)), "")
        if wrong:
            raise self._error("file", wrong)
        values = [self._values(name, column) for name, column in columns.items()]
        times_ps, values = self._timed(times, values)
        lists = tuple(map(_plain, values))
        made = ProfileSpec(
            name=self._place,
            file=table.file,
            sha256=digest,
            line=table.line,
            direction=table.direction,
            keys=keys,
            times_ps=array("q", times_ps.tobytes()),
            columns=lists,
            period_ps=table.repeat_ps,
            line_number=None if table.line is None else self._lines.index(table.line),
        )
        extremes, direct = self._tried(made, values)
        members = self._members(made) if direct else None
        return replace(made, members=members, extremes=extremes)

    def _error(self, key: str, what: str) -> Exception:
        return self._source.error(ConfigProblem(f"{self._place}.{key}", what))

    def _file(self) -> tuple[str, pa.Table]:
        import pyarrow as pa

        text, folder = self._table.file, self._source.folder
        given_here = any(f"{self._place}.file".startswith(key) for key in self._source.overrides)
        path = Path(text) if given_here or folder is None else folder / text
        try:
            there = path.stat()
            return _table(path, there.st_mtime_ns, there.st_size)
        except FileNotFoundError:
            raise self._error("file", f"{path}: there is no such file") from None
        except UnicodeDecodeError:
            raise self._error("file", f"{path}: cannot be read: it is not UTF-8") from None
        except (pa.ArrowException, OSError) as error:
            raise self._error("file", f"{path}: cannot be read: {str(error).splitlines()[0]}") from None

    def _columns(self, data: pa.Table) -> tuple[np.ndarray, dict[str, pa.ChunkedArray]]:
        """Return the times in ps, and the columns by their keys."""
        import numpy as np

        names = self._table.columns or {name: name for name in data.column_names if not name.startswith("_")}
        twice = next((name for name in names if data.column_names.count(name) > 1), None)
        if twice is not None:
            raise self._error("file", f"there are several columns {twice!r}")
        missing = next((name for name in names if name not in data.column_names), None)
        if missing is not None:
            raise self._error("columns", f"the file has no column {missing!r}{nearest(missing, data.column_names)}")
        found = {key: data.column(name) for name, key in names.items()}
        if "time" not in found or len(found) < 2 or not data.num_rows:
            raise self._error("file", "needs a column 'time', a column for a key, and a row")
        times = found.pop("time").to_numpy(zero_copy_only=False)
        if times.dtype.kind not in "if" or not np.isfinite(times).all():
            raise self._error("file", "column 'time': expected numbers")
        unit = self._table.units.get("time", "s")
        try:
            scale = parse_time(f"1 {unit}")
        except ValueError as error:
            raise self._error("units", f"time: {error}") from None
        far = np.flatnonzero(np.abs(times) * (float(scale) / TIME.high) > 1)
        if far.size:
            raise self._error("file", f"row {int(far[0]) + 1}: times are at most {format_time(int(TIME.high))}")
        times = np.round(times * float(scale)).astype(np.int64)
        late = np.flatnonzero(np.diff(times) <= 0)
        if late.size or times[0] < 0:
            row = int(late[0]) + 2 if late.size else 1
            raise self._error("file", f"row {row}: times begin at 0 or later, and each is after that before it")
        return times, found

    def _whole_key(self, key: str) -> str:
        if self._table.line is None:
            return key
        tables = map(key_of, Document.model_fields)
        return key if key.partition(".")[0] in tables else f"network.lines.{self._table.line}.{key}"

    def _values(self, key: str, column: pa.ChunkedArray) -> np.ndarray:
        """Return a column's values as a document has them; NaN or None where a row has none."""
        import numpy as np
        import pyarrow as pa

        unit = self._table.units.get(key, "")
        kind = column.type
        if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            encoded = column.combine_chunks().dictionary_encode()
            known = encoded.dictionary.to_pylist()
            if len(known) > _DISTINCT:
                raise self._error("file", f"column {key!r}: more than {_DISTINCT} different texts")
            read = np.array([value_of(each) if isinstance(each, str) else each for each in known] + [None], object)
            return read[encoded.indices.fill_null(len(known)).to_numpy()]
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise self._error("file", f"column {key!r}: expected numbers, texts or true and false, not {kind}")
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if np.isinf(values).any():
            raise self._error("file", f"column {key!r}: expected finite numbers")
        if key.rpartition(".")[2] == "outage":
            read = np.where(values != 0, True, False).astype(object)
            read[np.isnan(values)] = None
            return read
        if unit:
            values = values * self._scale(key, unit)
        return values

    def _scale(self, key: str, unit: str) -> float:
        if unit in RATE_UNITS:
            return float(RATE_UNITS[unit])
        try:
            return parse_time(f"1 {unit}") / _PS
        except ValueError:
            known = ", ".join(RATE_UNITS)
            raise self._error("units", f"{key}: unknown unit {unit!r}; known: {known}, units of time") from None

    def _timed(self, times: np.ndarray, values: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the times of the run, from ``begin`` on, with the values; interpolated values are included."""
        import numpy as np

        table = self._table
        if table.interpolation == "linear":
            times, values = self._interpolated(times, values)
        first = int(np.searchsorted(times, table.begin_ps, side="right")) - 1
        kept = times[max(first, 0) :].copy()
        if first >= 0:
            kept[0] = table.begin_ps
        kept += table.offset_ps - table.begin_ps
        if len(kept) > MOST_ROWS:
            raise self._error("file", f"more than {MOST_ROWS:,} rows")
        if table.repeat_ps is not None and kept[-1] - table.offset_ps >= table.repeat_ps:
            raise self._error("repeat", "the file's last row comes at this time or later")
        return kept, [each[max(first, 0) :] for each in values]

    def _interpolated(self, times: np.ndarray, values: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
        import numpy as np

        step = self._table.interval_ps
        if (int(times[-1]) - int(times[0])) // step > MOST_ROWS:
            raise self._error("interval", f"more than {MOST_ROWS:,} values come of it; give a longer one")
        grid = np.union1d(times, np.arange(times[0], times[-1], step, dtype=np.int64))
        rows = np.searchsorted(times, grid, side="right") - 1
        found = []
        for each in values:
            if each.dtype == object or np.isnan(each).any():
                at_row = times[rows] == grid
                held = each[rows].astype(object)
                held[~at_row] = None
                found.append(held)
            else:
                between = np.interp(grid, times, each)
                between[times[rows] == grid] = each[rows[times[rows] == grid]]  # to the last bit
                found.append(between)
        return grid, found

    def _tried(self, made: ProfileSpec, columns: Sequence[np.ndarray]) -> tuple[tuple[EventSpec, ...], bool]:
        """Try the values of the first row, and the least and greatest values.

        Return their networks, and whether they change lines alone.
        """
        found, direct = [], made.line is not None
        for values in _extremes(columns):
            given = ProfileSpec.values(
                replace(made, columns=tuple((value,) for value in values), times_ps=made.times_ps[:1]),
                0,
                self._first.network,
            )
            assignments = [Assignment(self._place, key, value) for key, value in given.items()]
            try:
                changed, _ = assigned(self._document, assignments, self._source.name)
            except BentpipeError as error:
                raise self._error("file", str(error)) from None
            named = EventSource(
                self._source.name, self._source.text, self._source.overrides, dict(self._source.defaults),
                self._source.base, self._source.folder, f"{self._place}.file",
            )  # fmt: skip
            after = self._read(changed, named)
            found.append(EventSpec(0, (), after.network, after.vcs, source=made.source))
            writer = LineWriter(self._document, self._first.network)
            writes = writer.writes(given)
            direct = direct and writes is not None and after.vcs == self._first.vcs
            direct = direct and writer.applied(self._first.network, writes or ()) == after.network
        return tuple(found), direct

    def _members(self, made: ProfileSpec) -> tuple[tuple[int, str, Sequence[Any]], ...]:
        writer = LineWriter(self._document, self._first.network)
        found = []
        for key, column in zip(made.keys, made.columns, strict=True):
            one = next(value for value in column if value is not None)
            line, member, _, _ = (writer.writes({key: one}) or [])[0]
            quantity = quantity_of_line(key.split(".", 3)[3])
            if quantity is None or quantity is BER or member in ("bursts.ber", "bursts.loss", "bursts.good_loss"):
                found.append((line, member, column))
            elif quantity is CELL_RATE and not any(isinstance(value, str) for value in column):
                found.append((line, member, [None if value is None else round(value) for value in column]))
            else:
                known: dict[Any, Any] = {value: quantity.check(value, document=True) for value in {*column} - {None}}
                found.append((line, member, [*map(known.get, column)]))
        return tuple(found)


def _extremes(columns: Sequence[np.ndarray]) -> list[tuple[Any, ...]]:
    """Return the rows to be tried.

    They are the first values, and for each key its least, greatest and least nonzero value, beside the first values of
    the others. A key without numbers is tried with every value.
    """
    import numpy as np

    tried: list[list[Any]] = []
    for column in columns:
        if column.dtype == object:
            tried.append(list(dict.fromkeys(value for value in column.tolist() if value is not None)))
            continue
        there = column[~np.isnan(column)]
        other = there[there != 0]
        ends = [there[:1], there.min(initial=np.inf), there.max(initial=-np.inf), np.abs(other).min(initial=np.inf)]
        found = np.concatenate([np.atleast_1d(each) for each in ends])
        tried.append(list(dict.fromkeys(_plain(found[np.isfinite(found)]))))
    first = tuple(values[0] if values else None for values in tried)
    found_rows = [first]
    for number, values in enumerate(tried):
        found_rows += [(*first[:number], value, *first[number + 1 :]) for value in values[1:]]
    return found_rows


def _plain(values: np.ndarray) -> Sequence[Any]:
    """Return a column without NumPy: numbers that are all whole as such."""
    import numpy as np

    if values.dtype == object:
        return values.tolist()
    none = np.isnan(values)
    whole = bool((values[~none] == np.floor(values[~none])).all()) and bool((np.abs(values[~none]) < 2**53).all())
    made: list[Any] = (values if none.any() or not whole else values.astype(np.int64)).tolist()
    if none.any():
        return [None if each != each else int(each) if whole else each for each in made]
    return made
