"""The parts of the documentation that come from the code: experiments, applications, words of NetSpec, registers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import keys
from keys import table as _table

__all__ = ["Parameter", "applications", "experiments", "netspec", "parameters", "registers", "tcp", "write_all"]


def _number(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


_NO_PARAMETERS = ("experiment.id", "experiment.title", "experiment.paper", "experiment.figure",
                  "experiment.description", "experiment.axis")  # fmt: skip
"""Keys that say what an experiment is called, and not how it is done; so do names, places on an axis and what was
published."""

_FIGURES = ("published", "theory")
"""Tables that are none of parameters."""

_LINE = re.compile(r"""((?:[^#"']|"(?:[^"\\]|\\.)*"|'[^']*')*)(?:#\s*(.*))?""")
"""A line of TOML, and the comment behind it."""


class Parameter(NamedTuple):
    """A key of an experiment's file, its value as written there, and the comment that says where it is from: the one
    behind it, else the lines of comment above it, else the same of its table; "" if there is none. ``name`` is that of
    the flow or the case."""

    table: str
    key: str
    value: str
    place: str
    name: str


def _depth(code: str) -> int:
    """How many brackets it opens and doesn't close; those in texts don't count."""
    bare = re.sub(r""""(?:[^"\\]|\\.)*"|'[^']*'""", "", code)
    return sum(bare.count(bracket) for bracket in "[{") - sum(bare.count(bracket) for bracket in "]}")


def parameters(text: str) -> Iterator[Parameter]:
    """The parameters of an experiment's file, in the order of the file."""
    table, name, of_table, above, counts = "", "", "", "", dict[str, int]()
    inside, depth = False, 0
    for raw in text.splitlines():
        line = raw.strip()
        if inside:  # a text of several lines
            inside = '"""' not in line
            continue
        if depth:  # a list of several lines
            depth += _depth(_LINE.match(line).group(1))
            continue
        if not line or line.startswith("#"):
            comment = line.removeprefix("#").strip()
            above = f"{above} {comment}".strip() if comment else ""
            continue
        code, comment = _LINE.match(line).groups()
        behind = comment or ""
        if line.startswith("["):
            first, *rest = code.strip().strip("[]").split(".")
            if line.startswith("[["):
                counts[first] = counts.get(first, -1) + 1
            table = ".".join([first, *([str(counts[first])] if first in counts else []), *rest])
            if not (rest and first in counts):  # what stands in [case.set] belongs to the case above it
                name, of_table = "", ""
            of_table = behind or above or of_table
        else:
            key, value = (part.strip() for part in code.split("=", 1))
            if '"""' in line:
                inside, value = line.count('"""') == 1, "(text)"
            if depth := _depth(value):
                value = "(list)"
            named = table.split(".")[0] in ("case", "flow") and key in ("name", "at")
            if named and key == "name":
                name = value.strip('"')
            if f"{table}.{key}" not in _NO_PARAMETERS and not named and table.split(".")[0] not in _FIGURES:
                yield Parameter(table, key, value, behind or above or of_table, name)
        above = ""


def _parameter_rows(found: Iterable[Parameter]) -> list[tuple[str, str, str]]:
    """Rows of setting, value and place; keys of a table that follow each other and are from one place share a row."""
    rows: list[tuple[str, str, str]] = []
    for (table, place, name), group in groupby(found, key=lambda p: (p.table, p.place, p.name)):
        members = list(group)
        after = f" ({name})" if name else ""
        if len(members) == 1:
            rows.append((f"`{table}.{members[0].key}`{after}", f"`{members[0].value}`", place))
        else:
            rows.append((f"`{table}`{after}", ", ".join(f"`{p.key} = {p.value}`" for p in members), place))
    return rows


def experiments() -> str:
    """A section for each experiment of the catalogue: what it is, each parameter with its place, what was published."""
    from bentpipe.experiment.catalogue import catalogue

    parts = []
    for name, path in catalogue().items():
        document = tomllib.loads(path.read_text())
        about = document["experiment"]
        source = ", ".join(filter(None, (about.get("paper"), about.get("figure"))))
        quick = f", with `--quick` {about['quick']}" if "quick" in about else ""
        parts.append(
            f"## {name}\n\n**{about['title']}**{f' ({source})' if source else ''}. "
            f"Simulates at most {about['duration']}{quick}.\n\n{about.get('description', '').strip()}\n"
        )
        parts.append(_table(("setting", "value", "from"), _parameter_rows(parameters(path.read_text()))))
        rows = [
            (row["quantity"], row.get("case", ""), *(_number(row.get(key)) for key in ("measured", "predicted")),
             row.get("unit", "Mb/s"), row.get("source", ""))
            for row in document.get("published", ())
        ]  # fmt: skip
        if rows:
            head = ("published", "case", "measured", "predicted", "unit", "source")
            parts.append(_table(head, rows))
        rows = [
            (row["quantity"], _number(row["predicted"]), row.get("unit", ""), row.get("source", ""))
            for row in document.get("theory", ())
        ]
        if rows:
            parts.append(_table(("theory", "predicted", "unit", "source"), rows))
        parts.append(f"Run it: `bentpipe run {name}`; see all of it: `bentpipe show {name}`.\n")
    return "\n".join(parts)


_TYPES = {"size": "size", "time": "time", "host": "host", "protocol": "word", "test": "word"}
_FORMS = {
    "": "{}",
    "bounds": "{}, or two bounds",
    "blocks": "{0}, {0}:count, or two bounds",
    "drawn": "{}, two bounds, or a distribution",
}


def _type(setting: Any) -> str:
    if setting.choices:
        return _words(setting.choices)
    return setting.of if isinstance(setting.of, str) else _FORMS[setting.form].format(setting.of.name)


def _default(setting: Any) -> str:
    if setting.required:
        return "must be given"
    return "" if setting.default is None else f"`{setting.show(setting.default)}`"


def applications() -> str:
    """The applications with their settings, and what they report."""
    from bentpipe.apps.registry import APPLICATIONS

    parts = []
    for kind in APPLICATIONS.values():
        over = " and ".join(name.upper() for name in kind.protocols)
        rows = [(f"`{s.name}`", _type(s), _default(s), s.text) for s in kind.settings]
        parts.append(
            f"`{kind.name}`: {kind.text}. Over {over}.\n\n" + _table(("key", "is", "default", "meaning"), rows)
        )
        if kind.report is not None:
            told = [(f"`{c.name}`", c.text) for c in kind.report.columns]
            parts.append("It reports:\n\n" + _table(("column", "meaning"), told))
    return "\n".join(parts)


def tcp() -> dict[str, str]:
    """The settings of TCP: a table each of those of all ends, of the variants, of the growths."""
    from bentpipe.tcp.config import SETTINGS
    from bentpipe.tcp.growth import GROWTHS
    from bentpipe.tcp.recovery import VARIANTS
    from bentpipe_hdl.units import format_size, format_time

    def shown(setting: Any, value: Any) -> str:
        if setting.kind == "time":
            return format_time(value)
        if setting.kind == "size":
            return format_size(value)
        return "" if value is None else f"`{str(value).lower() if setting.kind == 'flag' else value}`"

    def row(setting: Any) -> tuple[str, str, str, str]:
        kind = {"flag": "true or false", "count": f"number of {setting.unit}", "number": setting.unit or "number"}
        what = _words(setting.choices) if setting.choices else kind.get(setting.kind, setting.kind)
        if setting.kind in ("time", "size", "count", "number"):
            what += f", {shown(setting, setting.low)} to {shown(setting, setting.high)}"
        return f"`{setting.key}`", what, shown(setting, setting.default), setting.text.replace("``", "`")

    head = ("key", "is", "default", "meaning")
    own = {setting.name for kinds in (VARIANTS, GROWTHS) for kind in kinds.values() for setting in kind.settings}
    parts = {"general": _table(head, (row(setting) for setting in SETTINGS if setting.name not in own))}
    for name, kinds in (("variants", VARIANTS), ("growths", GROWTHS)):
        parts[name] = "\n".join(
            f"`{kind.name}`: {kind.text.replace('``', '`')}.\n"
            + (f"\n{_table(head, map(row, kind.settings))}" if kind.settings else "")
            for kind in kinds.values()
        )
    return parts


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _arguments(arguments: Iterable[Any]) -> str:
    rows = []
    for a in arguments:
        what = _words(a.choices) if a.choices else _type(a.setting) if a.setting else _TYPES[a.kind]
        what += f", in {a.unit}" if a.unit else ""
        must = "; must be given" if a.required else ""
        rows.append((_words((a.name, *a.also)), what, f"{a.text}{must}"))
    return _table(("name", "is", "meaning"), rows)


def netspec() -> dict[str, str]:
    """The words of NetSpec: a table each of blocks, parameters, protocols and tests."""
    from bentpipe.netspec.language import BLOCKS, CONNECTIONS, PARAMETERS, PROTOCOLS, TESTS

    blocks = [(_words((w.name, *getattr(w, "also", ()))), w.text) for w in (*BLOCKS, *CONNECTIONS)]
    protocols = [f"`{name}` takes:\n\n{_arguments(arguments)}" for name, arguments in PROTOCOLS.items()]
    tests = [f"`{test.name}`: {test.text}.\n\n{_arguments(test.arguments)}" for test in TESTS]
    return {
        "blocks": _table(("block", "meaning"), blocks),
        "parameters": _arguments(PARAMETERS),
        "protocols": "\n".join(protocols),
        "tests": "\n".join(tests),
    }


def registers() -> str:
    """A table of registers for each kind of node."""
    from bentpipe_hdl.kinds import REGISTERS

    parts = []
    for kind, make in REGISTERS.items():
        rows = []
        for name, addr, register in make().walk():
            last = f" … {addr + register.size - 1:#07x}" if register.size > 1 else ""
            rows.append((f"{addr:#07x}{last}", f"`{name}`", register.access, register.describe()))
        parts.append(f"## {kind}\n\n" + _table(("address", "name", "access", "what it is"), rows))
    return "\n".join(parts)


def write_all(folder: Path) -> None:
    """Write every generated part to ``folder``."""
    folder.mkdir(exist_ok=True)
    (folder / "experiments.md").write_text(experiments())
    (folder / "registers.md").write_text(registers())
    (folder / "applications.md").write_text(applications())
    for page in (keys.tables, keys.profiles, keys.series, keys.metrics):
        (folder / f"{page.__name__}.md").write_text(page())
    for name, text in netspec().items():
        (folder / f"netspec-{name}.md").write_text(text)
    for name, text in tcp().items():
        (folder / f"tcp-{name}.md").write_text(text)
