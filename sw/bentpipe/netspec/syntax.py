"""NetSpec scripts as text and as a tree. What the words mean is for :mod:`bentpipe.netspec.plan`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from bentpipe.errors import ConfigError
from bentpipe_hdl.words import nearest

__all__ = [
    "NOWHERE",
    "UNITS",
    "Block",
    "Call",
    "Pair",
    "Parameter",
    "Place",
    "Quantity",
    "Range",
    "Script",
    "Value",
    "Word",
    "parse",
    "unparse",
]


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, both from 1."""

    line: int
    column: int


NOWHERE: Final = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, with its unit or without."""

    number: str
    unit: str = ""
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Word:
    """A word, with its place in the script."""

    text: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """``18600:1``, ``host:45000``."""

    first: Quantity | Word
    second: Quantity
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Range:
    """``1000..2000``."""

    low: Quantity
    high: Quantity
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """``cbr(period = 30000)``."""

    name: str
    arguments: tuple[Parameter, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


Value = Quantity | Word | Pair | Range | Call


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a test, with its place in the script."""

    name: str
    value: Value
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Block:
    """``serial NAME { ... }``; ``name`` is empty where there is none."""

    kind: str
    name: str
    members: tuple[Block | Parameter, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Script:
    """A script's text and where it stands, for messages.

    Members
    -------
    name : str
        The file's.
    first_line : int
        Line of the file at which the text begins.
    """

    text: str
    name: str
    first_line: int = 1

    def error(self, place: Place, what: str) -> ConfigError:
        """Return an error ``file:line:column: what``, with the line and a caret below."""
        lines = self.text.split("\n")
        line = lines[place.line - 1].rstrip("\r") if 1 <= place.line <= len(lines) else ""
        caret = "".join(c if c == "\t" else " " for c in line[: place.column - 1]) + "^"
        found = ConfigError(f"{self.name}:{self.first_line + place.line - 1}:{place.column}: {what}")
        found.detail = f"{line}\n{caret}"
        return found


@lru_cache(maxsize=1)
def _parser() -> Any:
    from lark import Lark

    grammar = resources.files("bentpipe.netspec").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=False)


UNITS: Final = (
    "s",
    "ms",
    "us",
    "ns",
    "ps",
    "min",
    "B",
    "kB",
    "MB",
    "GB",
    "KiB",
    "MiB",
    "GiB",
    "b/s",
    "kb/s",
    "Mb/s",
    "Gb/s",
)
"""Units of times, sizes and rates, as in experiments."""

_NUMBER_BEFORE: Final = re.compile(r"(?<![\w.-])\d\w*(\.\d+)?[ \t]*\Z")
"""A word right after a number was meant as its unit."""

_NAMES: Final = {
    "NAME": "a word",
    "ADDRESS": "a word",
    "NUMBER": "a number",
    "UNIT": "a unit",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LPAR": "'('",
    "RPAR": "')'",
    "EQUAL": "'='",
    "SEMICOLON": "';'",
    "COMMA": "','",
    "COLON": "':'",
    "__ANON_0": "'..'",
    "$END": "the end",
}


def parse(script: Script) -> Block:
    """Return the script's one block.

    Raises
    ------
    ConfigError
        If the text has not the shape of a script.
    """
    from lark import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

    try:
        tree = _parser().parse(script.text)
    except UnexpectedCharacters as error:
        raise script.error(Place(error.line, error.column), f"unexpected character {error.char!r}") from None
    except (UnexpectedToken, UnexpectedEOF) as error:
        token = getattr(error, "token", None)
        for word in (token, *(getattr(error, "token_history", None) or ())):
            if word is not None and word.type == "NAME" and _NUMBER_BEFORE.search(script.text, 0, word.start_pos):
                raise script.error(_at(word), f"unknown unit {str(word)!r}{nearest(str(word), UNITS)}") from None
        wanted = sorted({str(_NAMES.get(name, name)) for name in getattr(error, "expected", ())})
        if token is None or token.type == "$END":
            place, what = _end(script.text), "the script ends too early"
        else:
            place, what = Place(token.line, token.column), f"unexpected {str(token)!r}"
        raise script.error(place, f"{what}; expected {' or '.join(wanted)}") from None
    return _block(tree.children[0])


def _end(text: str) -> Place:
    lines = text.rstrip().split("\n")
    return Place(len(lines), len(lines[-1]) + 1)


def _at(token: Any) -> Place:
    return Place(token.line, token.column)


def _block(tree: Any) -> Block:
    """Return the block of a parse tree; without recursion, as scripts nest to any depth."""
    order = [tree]
    for each in order:  # which grows: blocks before those in them
        order += [child for child in each.children if getattr(child, "data", None) == "block"]
    made: dict[int, Block] = {}
    for each in reversed(order):
        kind, *rest = each.children
        name = str(rest.pop(0)) if rest and not hasattr(rest[0], "data") else ""
        members = tuple(made[id(child)] if child.data == "block" else _parameter(child) for child in rest)
        made[id(each)] = Block(str(kind), name, members, _at(kind))
    return made[id(tree)]


def _parameter(tree: Any) -> Parameter:
    name, value = tree.children
    return Parameter(str(name), _value(value), _at(name))


def _value(tree: Any) -> Value:
    children = tree.children
    match tree.data:
        case "quantity":
            return Quantity(str(children[0]), str(children[1]) if len(children) > 1 else "", _at(children[0]))
        case "word":
            return Word(str(children[0]), _at(children[0]))
        case "call":
            return Call(str(children[0]), tuple(_parameter(child) for child in children[1:]), _at(children[0]))
    first, second = (_value(child) for child in children)
    if tree.data == "range":
        assert isinstance(first, Quantity) and isinstance(second, Quantity)
        return Range(first, second, first.place)
    assert isinstance(first, (Quantity, Word)) and isinstance(second, Quantity)
    return Pair(first, second, first.place)


def unparse(block: Block, indent: int = 0) -> str:
    """Return the text of a tree; parsed, it gives the same tree."""
    space = "    " * indent
    head = f"{space}{block.kind} {block.name} {{" if block.name else f"{space}{block.kind} {{"
    lines = [head]
    for member in block.members:
        if isinstance(member, Block):
            lines.append(unparse(member, indent + 1).rstrip("\n"))
        else:
            lines.append(f"{space}    {member.name} = {_text(member.value)};")
    return "\n".join([*lines, f"{space}}}"]) + "\n"


def _text(value: Value) -> str:
    match value:
        case Quantity():
            return f"{value.number} {value.unit}" if value.unit else value.number
        case Word():
            return value.text
        case Pair():
            return f"{_text(value.first)}:{_text(value.second)}"
        case Range():
            return f"{_text(value.low)}..{_text(value.high)}"
        case Call():
            return f"{value.name}({', '.join(f'{a.name} = {_text(a.value)}' for a in value.arguments)})"
