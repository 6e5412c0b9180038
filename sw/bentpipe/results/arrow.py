"""Columns of Arrow made from Python's values without pandas.

``pyarrow.array`` imports pandas to see whether it was given one of its types: 0.5 s of processor time, a third of a
short run. Arrays of numbers are taken as they are in memory; lists are put into buffers here.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_column", "arrow_dictionary", "arrow_numbers", "arrow_table"]


def arrow_numbers(values: array[int] | array[float]) -> pa.Array:
    """Return an array's numbers as a column, without a copy: int32 of type code ``i``, int64 of ``q``, float64 of
    ``d``."""
    import pyarrow as pa

    kind = {"i": pa.int32(), "q": pa.int64(), "d": pa.float64()}[values.typecode]
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def arrow_column(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Return a column of values, of which each may be None.

    Parameters
    ----------
    values
        Any that ``pyarrow.array`` takes.
    kind
        Their type; what the values are if None.

    Raises
    ------
    TypeError, OverflowError, pyarrow.ArrowInvalid
        A value is not of the type, or does not fit into it.
    """
    import pyarrow as pa

    kind = _kind(values) if kind is None else kind
    if kind is not None and pa.types.is_string(kind):
        texts = [b"" if value is None else value.encode() for value in values]
        ends = array("i", accumulate(map(len, texts), initial=0))
        return _with(kind, values, pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))
    if kind is not None and pa.types.is_boolean(kind):
        return _with(kind, values, _bits(values))
    if kind is not None and pa.types.is_null(kind):
        return pa.nulls(len(values))
    code = None if kind is None else {pa.int32(): "i", pa.int64(): "q", pa.float64(): "d"}.get(kind)
    if code is None:
        return pa.array(values, kind)
    return _with(kind, values, pa.py_buffer(array(code, [0 if value is None else value for value in values])))


def arrow_dictionary(texts: Sequence[str | None]) -> pa.DictionaryArray:
    """Return a column of texts, of which each may be None, as indices into a dictionary in order of appearance.

    It is that of ``dictionary_encode``, which would import ``pyarrow.compute``: 40 ms.
    """
    import pyarrow as pa

    index = {text: k for k, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
    indices = arrow_column([None if text is None else index[text] for text in texts], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, arrow_column(list(index), pa.string()))


def arrow_table(rows: Sequence[dict[str, Any]], schema: pa.Schema | None = None) -> pa.Table:
    """Return a table of rows; missing keys are None. Its columns are those of the schema, or of the first row."""
    import pyarrow as pa

    names = list(rows[0]) if schema is None and rows else [] if schema is None else schema.names
    kinds = [None] * len(names) if schema is None else schema.types
    columns = [arrow_column([row.get(name) for row in rows], kind) for name, kind in zip(names, kinds, strict=True)]
    if schema is None:
        return pa.Table.from_arrays(columns, names=names)
    return pa.Table.from_arrays(columns, schema=schema)


def _with(kind: Any, values: Sequence[Any], *buffers: Any) -> pa.Array:
    """Return a column of buffers, with a bit for each value that is not None."""
    import pyarrow as pa

    present = [value is not None for value in values]
    bits = None if all(present) else _bits(present)
    return pa.Array.from_buffers(kind, len(values), [bits, *buffers])


def _bits(values: Sequence[Any]) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.py_buffer(np.packbits([bool(value) for value in values], bitorder="little"))


def _kind(values: Sequence[Any]) -> Any:
    """Return the type of values that are all texts, truth values, integers or numbers, or all None; None for others."""
    import pyarrow as pa

    kinds = frozenset(type(value) for value in values if value is not None)
    plain = {
        frozenset(): pa.null(),
        frozenset({str}): pa.string(),
        frozenset({bool}): pa.bool_(),
        frozenset({int}): pa.int64(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
    }
    return plain.get(kinds)
