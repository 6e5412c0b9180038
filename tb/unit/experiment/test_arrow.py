"""Columns of Arrow made without pandas equal those of pyarrow itself."""

from array import array

import pyarrow as pa
import pytest

from bentpipe.results.arrow import arrow_column, arrow_dictionary, arrow_numbers, arrow_table

COLUMNS = [
    ([1, None, -(2**63), 2**63 - 1], None),
    (["a", None, "", "\u00fc\u00df\u4e16"], None),
    ([], None),
    ([None, None], None),
    ([1, 2.5, None], None),
    ([0.1, float("inf")], None),
    ([True, None, False] * 7, None),
    ([1, None], pa.float64()),
    ([None] * 9, pa.int32()),
    (["x"] * 1000 + [None], pa.string()),
    ([[1], None, []], None),
    ([True, 1.5], pa.float64()),
]


@pytest.mark.parametrize(("values", "kind"), COLUMNS)
def test_a_column_is_the_one_that_pyarrow_makes(values, kind):
    column = arrow_column(values, kind)
    column.validate(full=True)
    expected = pa.array(values, kind)
    assert column.type == expected.type and column.equals(expected)
    assert column.null_count == expected.null_count


@pytest.mark.parametrize("texts", [["b", None, "a", "b", "\u00fc"], [None, None], [], ["x", "x"]])
def test_a_dictionary_is_the_one_that_pyarrow_makes(texts):
    column = arrow_dictionary(texts)
    column.validate(full=True)
    expected = pa.array(texts, pa.string()).dictionary_encode()
    assert column.type == expected.type and column.null_count == expected.null_count
    assert column.indices.equals(expected.indices) and column.dictionary.equals(expected.dictionary)


@pytest.mark.parametrize(("typecode", "kind"), [("i", pa.int32()), ("q", pa.int64()), ("d", pa.float64())])
def test_numbers_are_those_of_the_array(typecode, kind):
    assert arrow_numbers(array(typecode, [1, 2, 3])).equals(pa.array([1, 2, 3], kind))
    assert len(arrow_numbers(array(typecode))) == 0


def test_a_value_that_does_not_fit_is_an_error():
    with pytest.raises(OverflowError):
        arrow_column([2**63])
    with pytest.raises(TypeError):
        arrow_column(["a"], pa.int64())


def test_a_table_is_the_one_that_pyarrow_makes():
    rows = [{"a": 1, "b": "x", "c": None}, {"a": None, "b": None}]
    table = arrow_table(rows)
    table.validate(full=True)
    assert table.equals(pa.Table.from_pylist(rows))
    schema = pa.schema({"b": pa.string(), "a": pa.float64()})
    assert arrow_table(rows, schema).equals(pa.Table.from_pylist(rows, schema=schema))
    assert arrow_table([], schema).equals(pa.Table.from_pylist([], schema=schema))
    assert arrow_table([]).num_columns == 0
