"""Tests of what is varied, as the command line and Python state it."""

import pytest

from bentpipe.errors import BentpipeError
from bentpipe.sweeps.grid import Axis, combinations, parse_axes, parse_seeds


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("hosts.tcp.variant=reno,sack", ("reno", "sack")),
        ("hosts.mtu=1500..9180:3", ("1500", "5340", "9180")),
        ("x=1..2:3", ("1", "1.5", "2")),
        ("x=0..1:4", ("0", "0.333333333333", "0.666666666667", "1")),
        ("x=16..64 KiB:4", ("16 KiB", "32 KiB", "48 KiB", "64 KiB")),
        ("x=0 ms..-10 ms:2", ("0 ms", "-10 ms")),
        ("x=0.1..0.3:3", ("0.1", "0.2", "0.3")),
        ("x=1e3..3e3:3", ("1000", "2000", "3000")),
        ("x=1,10..30:3,100", ("1", "10", "20", "30", "100")),
        ('x=["a", "b"],["c,d"]', ('["a", "b"]', '["c,d"]')),
        ("x={ a = 1, b = 2 },3", ("{ a = 1, b = 2 }", "3")),
    ],
)
def test_values(text, values):
    (axis,) = parse_axes([text])
    assert axis.values == values


def test_a_short_key_is_the_long_one():
    assert parse_axes(["variant=reno,sack"]) == (Axis("hosts.tcp.variant", ("reno", "sack")),)


def test_values_of_python():
    given = {"hosts.mtu": [1500, 9180], "record.what": [["goodput"], ["drops", "goodput"]], "x": "1..3:3", "y": [True]}
    mtu, what, x, y = parse_axes(given)
    assert mtu == Axis("hosts.mtu", ("1500", "9180"))
    assert what.values == ('["goodput"]', '["drops", "goodput"]')
    assert (x.values, y.values) == (("1", "2", "3"), ("true",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mtu"], "expected KEY=A,B,… or KEY=FROM..TO:COUNT"),
        (["mtu="], "expected KEY=A"),
        (["mtu=,"], "no values"),
        (["mtu=1500,1500"], "1500 is there twice"),
        (["mtu=1500", "hosts.mtu=9180"], "is given twice"),
        (["mtu=1..5:1"], "2 to 10000 values"),
        (["mtu=5..5:2"], "two ends that differ"),
        (["x=1 kB..5 MB:2"], "two units, kB and MB"),
        (["x=1 kB..5:2"], "two units, kB and none"),
        (["mtu=1..9:10001"], "2 to 10000 values"),
        (["experiment.seed=1,2"], "--seeds"),
    ],
)
def test_what_makes_no_sense(arguments, message):
    with pytest.raises(BentpipeError) as caught:
        parse_axes(arguments)
    assert message in str(caught.value)


def test_combinations_are_all_the_last_axis_fastest():
    axes = parse_axes(["a=1,2", "b=x,y,z"])
    found = [(row["a"], row["b"]) for row in combinations(axes)]
    assert found == [("1", "x"), ("1", "y"), ("1", "z"), ("2", "x"), ("2", "y"), ("2", "z")]
    assert [*combinations(())] == [{}]


@pytest.mark.parametrize(
    ("values", "numbers", "unit"),
    [
        (("1", "2.5"), (1.0, 2.5), ""),
        (("16 KiB", "64 KiB"), (16.0, 64.0), "KiB"),
        (("16 KiB", "1 MiB"), None, ""),
        (("reno", "sack"), None, ""),
        (('"10 ms"', '"20 ms"'), (10.0, 20.0), "ms"),
    ],
)
def test_where_values_are_on_an_axis(values, numbers, unit):
    axis = Axis("x", values)
    assert (axis.numbers, axis.unit) == (numbers, unit)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1-3", (1, 2, 3)), ("7", (7,)), ("1,3, 7-9", (1, 3, 7, 8, 9)), ("1-3,2", (1, 2, 3)), ([5, 4], (5, 4))],
)
def test_seeds(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected numbers"),
        ("1-", "expected numbers"),
        ("a", "expected numbers"),
        ("3-1", "goes down"),
        ("4294967296", "out of range"),
        ([-1], "out of range"),
        ([], "no seed"),
        ("1-20000", "10000 are the most"),
    ],
)
def test_seeds_that_make_no_sense(text, message):
    with pytest.raises(BentpipeError) as caught:
        parse_seeds(text)
    assert message in str(caught.value)
