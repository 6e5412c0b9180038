"""The parts of the documentation that come from the code: the catalogue, and what `bentpipe.manual` has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import messages

from bentpipe.manual import keys, words
from bentpipe.manual.markdown import table as _table
from bentpipe_hdl.cores import CORES
from bentpipe_hdl.cores.guide import guide

__all__ = ["Parameter", "experiments", "parameters", "summary", "write_all"]


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
    """Return the sentence that names the file whose parameters this one inherits."""
    return f" Unset keys are inherited from `{document['extends']}`." if "extends" in document else ""


PAPERS = {
    "ACTS98": "acts98",
    "ACTS99": "acts99",
    "LAZ": "laz",
    "AAI97": "aai97",
    "FF96": "ff96",
    "LRL": "lrl",
}
"""Page of the catalogue, ``catalogue-NAME.md``, of each paper."""


def _page(name: str, about: dict[str, Any]) -> str:
    """Return the page of an experiment: that of its paper, of comparisons with theory, or of our own studies."""
    if about.get("paper"):
        return PAPERS[about["paper"]]
    if name.startswith(("theory-", "rare-loss", "rare-delay")):
        return "theory"
    return "traffic" if name.startswith(("netspec-", "phase-", "upc-")) else "studies"


NETWORKS = {
    "networks/acts": "acts98",
    "networks/lan": "acts98",
    "networks/laz": "laz",
    "networks/magic": "laz",
    "networks/aai": "aai97",
    "networks/nrl": "aai97",
    "networks/lrl": "lrl",
    "networks/lrl-packets": "lrl",
}
"""Page on which each network that experiments share stands."""


def _network(name: str, path: Path) -> Iterator[str]:
    """Yield the section of a network that several experiments extend."""
    text = path.read_text()
    yield f"## {name}\n\n{text.splitlines()[0].removeprefix('# ')}{_over(tomllib.loads(text))}\n"
    yield _table(("setting", "value", "from"), _parameter_rows(parameters(text)))


def _experiment(name: str, path: Path, pictures: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the section of an experiment: purpose, picture, each parameter with its source, published figures."""
    import figures

    from bentpipe.experiment.document.catalogue import read_extended

    document = tomllib.loads(path.read_text())
    about = read_extended(path)[0]["experiment"]
    source = ", ".join(filter(None, (about.get("paper"), about.get("figure"))))
    quick = f", with `--quick` {about['quick']}" if "quick" in about else ""
    yield (
        f"## {name}\n\n**{about['title']}**{f' ({source})' if source else ''}. "
        f"Simulates at most {about['duration']}{quick}.{_over(document)}\n\n{about.get('description', '').strip()}\n"
    )
    yield figures.caption(name, about["title"], pictures.get(name, {"reason": "none has been made yet"}))
    yield _table(("setting", "value", "from"), _parameter_rows(parameters(path.read_text())))
    rows = [
        (row["quantity"], row.get("case", ""), *(_number(row.get(key)) for key in ("measured", "predicted")),
         row.get("unit", "Mb/s"), row.get("source", ""))
        for row in document.get("published", ())
    ]  # fmt: skip
    if rows:
        yield _table(("published", "case", "measured", "predicted", "unit", "source"), rows)
    rows = [
        (row["quantity"], _number(row["predicted"]), row.get("unit", ""), row.get("source", ""))
        for row in document.get("theory", ())
    ]
    if rows:
        yield _table(("theory", "predicted", "unit", "source"), rows)
    yield f"Run it: `bentpipe run {name}`. Show all settings: `bentpipe show {name}`.\n"


def experiments() -> dict[str, str]:
    """Return the sections of the catalogue by the name of their page, each with a table of the page's experiments."""
    import figures

    from bentpipe.experiment.document.catalogue import catalogue, networks, read_extended

    pages: dict[str, list[str]] = {name: [] for name in (*PAPERS.values(), "theory", "studies", "traffic")}
    rows: dict[str, list[tuple[str, ...]]] = {name: [] for name in (*PAPERS.values(), "theory", "studies", "traffic")}
    pictures = figures.known()
    for name, path in catalogue().items():
        about = read_extended(path)[0]["experiment"]
        page = _page(name, about)
        pages[page] += _experiment(name, path, pictures)
        rows[page].append((f"[{name}](#{name})", about["title"], about.get("figure", ""), about["duration"]))
    for name, path in networks().items():
        pages[NETWORKS[name]] += _network(name, path)
    head = ("experiment", "subject", "in the paper", "simulates at most")
    return {name: "\n".join([_table(head, rows[name]), *parts]) for name, parts in pages.items()}


def summary() -> str:
    """Return the table of all experiments of the catalogue, each with a link to its section."""
    from bentpipe.experiment.document.catalogue import catalogue, read_extended

    rows = []
    for name, path in catalogue().items():
        about = read_extended(path)[0]["experiment"]
        page = f"catalogue-{_page(name, about)}.md"
        source = ", ".join(filter(None, (about.get("paper"), about.get("figure"))))
        place = f'<span id="{name}"></span>'  # the section was on this page
        rows.append((f"{place}[{name}]({page}#{name})", about["title"], source, about["duration"]))
    return _table(("experiment", "subject", "source", "simulates at most"), rows)


def cores() -> dict[str, str]:
    """Return the port guide of each exported core, a page by name."""
    pages = {}
    for core in CORES.values():
        component = core.make()
        component._MustUse__silence = True  # it is not elaborated, of which Amaranth would warn
        parameters = [f"{name} = {int(value)}" for name, value in core.parameters.items()]
        pages[core.name] = guide(core.name, component, parameters).to_markdown() + _NEXT
    return pages


_NEXT = """
Export it with `bentpipe rtl`, `--guide` prints this page for other parameters. Next:
[use one core in your design](../own-design.md).
"""


def core_table() -> str:
    """Return the table of exported cores."""
    rows = [
        (f"[`{core.name}`](cores/{core.name}.md)", core.title,
         ", ".join(f"`{name}={int(value)}`" for name, value in core.parameters.items()) or "none")
        for core in CORES.values()
    ]  # fmt: skip
    return _table(("core", "function", "parameters, with defaults"), rows)


def write_all(folder: Path) -> None:
    """Write every generated part to ``folder``, and pages that are whole to a folder beside it."""
    folder.mkdir(exist_ok=True)
    guides = folder.parent / "cores"
    guides.mkdir(exist_ok=True)
    for name, text in cores().items():
        (guides / f"{name}.md").write_text(text)
    (folder / "cores.md").write_text(core_table())
    (folder / "experiments.md").write_text(summary())
    for name, text in experiments().items():
        (folder / f"experiments-{name}.md").write_text(text)
    (folder / "errors.md").write_text(messages.errors())
    (folder / "registers.md").write_text(words.registers())
    (folder / "applications.md").write_text(words.applications())
    tables = keys.tables().split("\n### ")
    for name, network in (("tables", False), ("tables-network", True)):
        own = [each for each in tables if each.removeprefix("### ").startswith("`[network") == network]
        (folder / f"{name}.md").write_text("\n".join(f"### {each.removeprefix('### ')}" for each in own))
    for page in (keys.profiles, keys.series, keys.metrics, keys.losses, keys.columns):
        (folder / f"{page.__name__}.md").write_text(page())
    for name, text in words.netspec().items():
        (folder / f"netspec-{name}.md").write_text(text)
    for name, text in words.tcp().items():
        (folder / f"tcp-{name}.md").write_text(text)
