"""The parts of the documentation that come from the code: the catalogue, and what `bentpipe.manual` has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from bentpipe.manual import keys, words
from bentpipe.manual.markdown import table as _table

__all__ = ["Parameter", "experiments", "parameters", "write_all"]


def _number(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


_NO_PARAMETERS = ("experiment.id", "experiment.title", "experiment.paper", "experiment.figure",
                  "experiment.description", "experiment.axis", "experiment.shows", ".extends")  # fmt: skip
"""Keys that say what an experiment is called, and not how it is done; so do names, places on an axis and what was
published."""

_FIGURES = ("published", "theory", "open")
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


def _over(document: dict[str, Any]) -> str:
    """What a file is put over, which has the rest of its parameters."""
    return f" What isn't given here is as in `{document['extends']}`." if "extends" in document else ""


def experiments() -> str:
    """A section for each experiment of the catalogue: what it is, each parameter with its place, what was published."""
    import figures

    from bentpipe.experiment.document.catalogue import catalogue, networks, read_extended

    parts, pictures = [], figures.known()
    for name, path in networks().items():
        text = path.read_text()
        parts.append(f"## {name}\n\n{text.splitlines()[0].removeprefix('# ')}{_over(tomllib.loads(text))}\n")
        parts.append(_table(("setting", "value", "from"), _parameter_rows(parameters(text))))
    for name, path in catalogue().items():
        document = tomllib.loads(path.read_text())
        over = _over(document)
        about = read_extended(path)[0]["experiment"]
        source = ", ".join(filter(None, (about.get("paper"), about.get("figure"))))
        quick = f", with `--quick` {about['quick']}" if "quick" in about else ""
        parts.append(
            f"## {name}\n\n**{about['title']}**{f' ({source})' if source else ''}. "
            f"Simulates at most {about['duration']}{quick}.{over}\n\n{about.get('description', '').strip()}\n"
        )
        parts.append(figures.caption(name, pictures.get(name, {"reason": "none has been made yet"})))
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


def write_all(folder: Path) -> None:
    """Write every generated part to ``folder``."""
    folder.mkdir(exist_ok=True)
    (folder / "experiments.md").write_text(experiments())
    (folder / "registers.md").write_text(words.registers())
    (folder / "applications.md").write_text(words.applications())
    for page in (keys.tables, keys.profiles, keys.series, keys.metrics, keys.losses):
        (folder / f"{page.__name__}.md").write_text(page())
    for name, text in words.netspec().items():
        (folder / f"netspec-{name}.md").write_text(text)
    for name, text in words.tcp().items():
        (folder / f"tcp-{name}.md").write_text(text)
