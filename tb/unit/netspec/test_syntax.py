"""Scripts as text and as trees; how fast; every way of getting the shape wrong."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.errors import ConfigError
from bentpipe.netspec.syntax import (
    UNITS,
    Block,
    Call,
    Pair,
    Parameter,
    Place,
    Quantity,
    Range,
    Script,
    Word,
    parse,
    unparse,
)

LETTERS = string.ascii_letters + "_"
NAMES = st.builds(
    lambda head, tail: head + tail,
    st.sampled_from(LETTERS),
    st.text([*LETTERS, *string.digits, "-", "."], max_size=8).map(lambda tail: tail.replace(".", ".x")),
)
NUMBERS = st.one_of(
    st.integers(0, 10**12).map(str),
    st.decimals(0, 10**6, allow_nan=False, allow_infinity=False, places=3).map(lambda d: f"{d:f}"),
    st.integers(0, 9).map(lambda n: f"{n}e6"),
)
QUANTITIES = st.builds(Quantity, NUMBERS, st.sampled_from(["", *UNITS]))
WORDS = st.builds(Word, NAMES)
PLAIN = st.one_of(
    QUANTITIES,
    WORDS,
    st.builds(Pair, st.one_of(QUANTITIES, WORDS), QUANTITIES),
    st.builds(Range, QUANTITIES, QUANTITIES),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.builds(Call, NAMES, st.lists(st.builds(Parameter, NAMES, inner), max_size=3).map(tuple)),
    max_leaves=4,
)
PARAMETERS = st.builds(Parameter, NAMES, VALUES)
BLOCKS = st.recursive(
    st.builds(Block, NAMES, st.one_of(st.just(""), NAMES), st.lists(PARAMETERS, max_size=4).map(tuple)),
    lambda inner: st.builds(
        Block, NAMES, st.one_of(st.just(""), NAMES), st.lists(st.one_of(inner, PARAMETERS), max_size=4).map(tuple)
    ),
    max_leaves=8,
)


@given(BLOCKS)
def test_a_tree_written_and_parsed_is_the_same(block: Block) -> None:
    assert parse(Script(unparse(block), "x.ns")) == block


@given(BLOCKS, st.sampled_from([" ", "\n", "  # note { }\n", " // note = ;\n", " /* note\n } */ "]))
def test_blanks_and_comments_mean_nothing(block: Block, blank: str) -> None:
    text = re.sub("[{}\n]", lambda mark: f"{blank}{mark[0]}{blank}", unparse(block))
    assert parse(Script(text, "x.ns")) == block


def test_semicolons_may_be_left_out() -> None:
    one = parse(Script("a { b = 3 ms; c = d; e = f(g = 1, h = 2); }", "x.ns"))
    assert parse(Script("a { b = 3ms c = d e = f(g=1,h=2) };", "x.ns")) == one


def test_places_are_lines_and_columns() -> None:
    block = parse(Script("parallel {\n  connection x {\n    own = y;\n  }\n}\n", "x.ns"))
    (inner,) = block.members
    assert isinstance(inner, Block)
    (parameter,) = inner.members
    assert isinstance(parameter, Parameter)
    places = [block.place, inner.place, parameter.place, parameter.value.place]
    assert places == [Place(1, 1), Place(2, 3), Place(3, 5), Place(3, 11)]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "1:1", "the script ends too early; expected a word"),
        ("a {\n  b = 1;\n", "2:9", "the script ends too early; expected '}' or a word"),
        ("a { } b { }", "1:7", "unexpected 'b'; expected the end"),
        ("a { b = ; }", "1:9", "unexpected ';'; expected a number or a word"),
        ("a { b == 1; }", "1:8", "unexpected '='"),
        ("a { b = c(d = 1; }", "1:16", "unexpected ';'"),
        ("a { b = 1..c; }", "1:12", "unexpected 'c'; expected a number"),
        ("a { @b = 1; }", "1:5", "unexpected character '@'"),
        ("a { b = 30 msec; }", "1:12", "unknown unit 'msec'; did you mean 'ms'?"),
        ("a { b = 30sec }", "1:11", "unknown unit 'sec'; did you mean 's'?"),
        ("a { b = c(d = 1 kb, e = 2) }", "1:17", "unknown unit 'kb'"),
    ],
)
def test_wrong_shapes(text: str, where: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(Script(text, "dir/x.ns"))
    assert str(caught.value).startswith(f"dir/x.ns:{where}: {what}")
    line, column = (int(part) for part in where.split(":"))
    shown, caret = caught.value.detail.split("\n")
    assert shown == (text.split("\n")[line - 1] if text else "")
    assert caret == " " * (column - 1) + "^"


def test_a_script_within_a_file_has_the_files_lines() -> None:
    error = Script("a {\n\tb @\n}", "x.toml", first_line=10).error(Place(2, 4), "wrong")
    assert str(error) == "x.toml:11:4: wrong"
    assert error.detail == "\tb @\n\t  ^"
