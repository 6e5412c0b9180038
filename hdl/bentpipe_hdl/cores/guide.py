"""Port guides: what a component's ports are, from its signature and the docstrings of its class and interfaces."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data, enum
from amaranth.lib.wiring import FlippedSignature, In

__all__ = ["RULES", "Guide", "Port", "guide"]

RULES = ("Handshake", "Latency", "Source")
"""Paragraphs that the notes of each exported core have, by their first word."""

_SECTION = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)
_AS = re.compile(r"\bAs (?:in|of) :class:`[~\w.]*?(\w+)`\.?")


class Port(NamedTuple):
    """A port as in Verilog, or an interface: then without direction."""

    name: str
    direction: str
    width: int
    meaning: str


def _sections(documented: Any) -> dict[str, str]:
    """Return a docstring's sections by title; what stands above them as ""."""
    parts = _SECTION.split(inspect.getdoc(documented) or "")
    rest = zip(parts[1::2], parts[2::2], strict=True)
    return {"": parts[0].strip(), **{title: text.strip("\n") for title, text in rest}}


def _items(text: str) -> Iterator[tuple[str, str]]:
    """Yield the line and the text of each item of a section like "Members"."""
    head, body = "", list[str]()
    for line in [*text.splitlines(), "end"]:
        if line.strip() and not line.startswith(" "):
            if head:
                yield head, " ".join(" ".join(body).split())
            head, body = line, []
        else:
            body.append(line)


def _meanings(documented: Any) -> dict[str, str]:
    """Return the texts of a class's members by name; what refers to another class has the text from there."""
    found: dict[str, str] = {}
    module = inspect.getmodule(documented)
    for head, text in _items(_sections(documented).get("Members", "")):
        for name in re.findall(r"(?<![\w.`(])([a-z]\w*)\b(?=[^`]*(?:,|:|$))", re.sub(r":(?!\w*`)[^,]*", ":", head)):
            meaning = text
            if (other := _AS.search(text)) and hasattr(module, other[1]):
                there = _meanings(getattr(module, other[1]))
                meaning = f"{there.get(name, '')} {_AS.sub('', text)}".strip()
            found[name] = meaning
    return found


def _of_shape(shape: Any) -> str:
    """Return what a port's bits are, if they are several values or have names."""
    if isinstance(shape, data.Layout) or (isinstance(shape, type) and issubclass(shape, data.Struct)):
        layout = data.Layout.cast(shape)
        parts = []
        for name, part in layout:
            bits = f"{part.offset + part.width - 1}:{part.offset}" if part.width > 1 else f"{part.offset}"
            parts.append(f"``{name}`` [{bits}]")
        if len({str(name) for name, _ in layout}) and not all(isinstance(name, int) for name, _ in layout):
            return f"Fields: {', '.join(parts)}."
        return f"{len(parts)} words of {Shape.cast(shape).width // max(1, len(parts))} bits, the first lowest."
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return f"Values: {', '.join(f'{each.value} {each.name}' for each in shape)}."
    return ""


@dataclass(frozen=True)
class Guide:
    """A guide has what one has to know of a core to use it.

    Members
    -------
    name, text : str
        Its name, and what it does.
    parameters : tuple of (str, str)
        Their names, with defaults, and meanings.
    ports : tuple of Port
        As in Verilog, interfaces before their ports.
    notes : tuple of str
        Paragraphs, among them those of ``RULES``.
    """

    name: str
    text: str
    parameters: tuple[tuple[str, str], ...]
    ports: tuple[Port, ...]
    notes: tuple[str, ...]

    def to_text(self, width: int = 100) -> str:
        """Return the guide for a terminal."""
        lines = [self.name, "=" * len(self.name), ""]
        for paragraph in self.text.split("\n\n"):
            lines += [*textwrap.wrap(_plain(paragraph), width), ""]
        for name, meaning in self.parameters:
            lines += textwrap.wrap(_plain(f"{name}: {meaning}"), width, subsequent_indent="    ")
        lines += [""] * bool(self.parameters)
        column = max(len(port.name) for port in self.ports) + 1
        for port in self.ports:
            head = f"{port.name:{column}}{port.direction:>6}{port.width or '':>5}  "
            if not port.direction:
                head = f"{port.name}  "
            lines += textwrap.wrap(head + _plain(port.meaning), width, subsequent_indent=" " * (column + 13))
        lines += ["", "All ports belong to the clock clk, at its rising edge."]
        for note in self.notes:
            lines += ["", *textwrap.wrap(_plain(note), width)]
        return "\n".join(lines) + "\n"

    def to_markdown(self, level: int = 1) -> str:
        """Return the guide as a page of the manual."""
        lines = [f"{'#' * level} `{self.name}`", "", _markdown(self.text), ""]
        if self.parameters:
            rows = [f"| `{name}` | {_markdown(meaning)} |" for name, meaning in self.parameters]
            lines += ["| parameter | meaning |", "| --- | --- |", *rows, ""]
        lines += ["| port | direction | bits | clock | meaning |", "| --- | --- | --- | --- | --- |"]
        for port in self.ports:
            clock = "" if port.name == "clk" or not port.direction else "`clk`"
            row = f"| `{port.name}` | {port.direction} | {port.width or ''} | {clock} | {_markdown(port.meaning)} |"
            lines.append(row)
        for note in self.notes:
            first, colon, rest = note.partition(": ")
            lines += ["", f"**{first}.** {_markdown(rest)}" if colon and first.isalpha() else _markdown(note)]
        return "\n".join(lines) + "\n"


_ROLE = re.compile(r":\w+:`~?\.*([\w.]+)`")


def _plain(text: str) -> str:
    return " ".join(
        _ROLE.sub(lambda found: found[1].rpartition(".")[2], text).replace("``", "").replace("**", "").split()
    )


def _markdown(text: str) -> str:
    text = _ROLE.sub(lambda found: f"`{found[1].rpartition('.')[2]}`", text)
    return re.sub(r"(?<=[a-z])\*(?!\*)", r"\\*", text.replace("``", "`").replace("|", "\\|"))


def _ports(component: Any, documented: Iterable[Any]) -> Iterator[Port]:
    meanings: dict[str, str] = {}
    for each in reversed([*documented]):
        meanings |= _meanings(each)
    yield Port("clk", "input", 1, "The clock.")
    yield Port("rst", "input", 1, "Reset: synchronous, high for a clock or more.")
    group = last = shown = ""
    for path, member, _ in component.signature.flatten(component):
        first, width = str(path[0]), Shape.cast(member.shape).width
        outer, meaning = component.signature.members[first], meanings.get(first, "")
        if outer.is_signature:
            signature = outer.signature.flip() if isinstance(outer.signature, FlippedSignature) else outer.signature
            if group != first:
                group = first
                yield Port(f"{first}_*", "", 0, meaning or _sections(type(signature))[""].split("\n\n")[0])
            meaning = _meanings(type(signature)).get(str(path[1]), "")
        if width:
            name, text = "_".join(map(str, path)), meaning
            if text and text == last:
                text = f"As of ``{shown}``."
            else:
                last, shown = meaning, name
            flow = "input" if member.flow is In else "output"
            yield Port(name, flow, width, " ".join(filter(None, [text, _of_shape(member.shape)])))


def guide(name: str, component: Any, parameters: Iterable[str] = ()) -> Guide:
    """Return the guide of a component; ``parameters`` are those that its user can set, with defaults."""
    documented = [type(component), *getattr(component, "documented_by", ())]
    sections = [_sections(each) for each in documented]
    notes = [note for each in sections for note in each.get("Notes", "").split("\n\n") if note.strip()]
    meanings: dict[str, str] = {}
    for each in reversed(sections):
        for head, text in _items(each.get("Parameters", "")):
            for one in re.findall(r"\w+", head.partition(":")[0]):
                meanings[one] = text
    text = _sections(type(getattr(component, "adapts", component)))[""]
    known = tuple((each, meanings.get(each.partition(" ")[0], "")) for each in parameters)
    return Guide(
        name, text, known, tuple(_ports(component, documented)), tuple(" ".join(each.split()) for each in notes)
    )
