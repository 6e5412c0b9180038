"""Finding an experiment (a name of the catalogue or a file), reading it, and changing it by cases and ``--set``."""

from __future__ import annotations

import copy
import dataclasses
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError, ConfigError
from bentpipe.experiment.cases import Case, read_cases
from bentpipe.experiment.changes import Change, changes_between
from bentpipe.experiment.parse import parse_experiment
from bentpipe.experiment.schema import Experiment
from bentpipe.experiment.table import Source
from bentpipe_hdl.units import format_time
from bentpipe_hdl.words import nearest

__all__ = ["SHORTHANDS", "apply_settings", "cases_of", "catalogue", "find", "load", "load_cases", "read_document"]

SHORTHANDS: Final = {
    "line": "network.line",
    "variant": "hosts.tcp.variant",
    "window": "hosts.tcp.window",
    "mtu": "hosts.mtu",
}
"""Short keys of ``--set``."""

_CATALOGUE: Final = Path(__file__).resolve().parent.parent / "catalogue"
_NAMED: Final = ("network.switches", "network.lines", "network.hosts")


def catalogue() -> dict[str, Path]:
    """The experiments that come with bentpipe, by name."""
    return {path.stem: path for path in sorted(_CATALOGUE.glob("*.toml"))}


def find(name: str) -> Path:
    """The file of an experiment: a name of the catalogue, or a path.

    Raises
    ------
    BentpipeError
        If there is neither; names the nearest of the catalogue.
    """
    known = catalogue()
    if name in known:
        return known[name]
    path = Path(name)
    if path.is_dir():
        raise BentpipeError(f"{name}: is a folder, not an experiment file")
    if path.is_file():
        return path
    if path.suffix or "/" in name or "\\" in name:
        raise BentpipeError(f"{name}: no such file")
    raise BentpipeError(f"{name}: no such experiment in the catalogue{nearest(name, known)}")


def read_document(path: Path) -> tuple[dict[str, Any], str]:
    """A TOML file, parsed, and its text."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return tomllib.loads(text), text
    except OSError as error:
        raise BentpipeError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def _value(text: str) -> Any:
    """A value as TOML has it; anything that isn't TOML is a text, so quotes needn't be typed."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text


def apply_settings(
    document: dict[str, Any], settings: Sequence[str], name: str
) -> tuple[dict[str, Any], frozenset[str]]:
    """A copy of the document with ``KEY=VALUE`` settings in it, and the dotted keys that were set.

    A key has dots: ``network.lines.satellite.delay``; ``flow.0.size`` is the first flow's, ``flow.*.size``
    every flow's. Whether the keys and values make sense is for the reader of the document to say.
    """
    pairs = []
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals or not key or not all(key.split(".")):
            raise BentpipeError(f"--set {setting}: expected KEY=VALUE with a dotted KEY")
        pairs.append((f"--set {key}", SHORTHANDS.get(key, key), _value(text.strip())))
    return _assign_all(document, pairs, name)


def _assign_all(
    document: dict[str, Any], settings: Iterable[tuple[str, str, Any]], name: str
) -> tuple[dict[str, Any], frozenset[str]]:
    """A copy of the document with values in it, each with who set it and its dotted key."""
    document = copy.deepcopy(document)
    touched: set[str] = set()
    for who, key, value in settings:
        if key == "network.line":
            network = _table(document, "network")
            for line in (*_table(network, "lines").values(), *_table(network, "hosts").values()):
                if isinstance(line, dict):
                    line.pop("line", None)
        _assign(document, who, key.split("."), value, name, "", touched)
    return document, frozenset(touched)


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _assign(node: Any, full: str, parts: list[str], value: Any, name: str, above: str, touched: set[str]) -> None:
    part, rest = parts[0], parts[1:]
    here = f"{above}.{part}" if above else part
    if isinstance(node, list):
        if part == "*":
            for index in range(len(node)):
                _assign(node, full, [str(index), *rest], value, name, above, touched)
            return
        if not part.isdigit() or int(part) >= len(node):
            raise BentpipeError(f"{full}: {above} has entries 0..{len(node) - 1} (or *), not {part!r} (in {name})")
        if not rest:
            node[int(part)] = value
            touched.add(here)
        else:
            _assign(node[int(part)], full, rest, value, name, here, touched)
        return
    if not isinstance(node, dict):
        raise BentpipeError(f"{full}: {above} is not a table (in {name})")
    if above in _NAMED and part == "*":
        for key in list(node):
            _assign(node, full, [key, *rest], value, name, above, touched)
        return
    if above in _NAMED and part not in node:
        kind = {"network.switches": "switch", "network.lines": "line", "network.hosts": "host"}[above]
        raise BentpipeError(f"{full}: there is no {kind} {part!r}{nearest(part, node)} (in {name})")
    if not rest:
        node[part] = value
        touched.add(here)
    else:
        _assign(node.setdefault(part, {}), full, rest, value, name, here, touched)


def cases_of(name: str) -> list[Case]:
    """An experiment's cases as its file has them, none if it has none; errors as :func:`load`."""
    path = find(name)
    document, text = read_document(path)
    return read_cases(document, Source(path.name, text))


def load_cases(
    name: str,
    settings: Sequence[str] = (),
    *,
    seed: int | None = None,
    duration_ps: int | None = None,
    quick: bool = False,
    only: Sequence[str] = (),
) -> list[Experiment]:
    """An experiment with each of its cases' settings (and ``settings`` above those), or itself if it has no cases.

    ``only`` names the cases to have; each has only its own published figures.

    Raises
    ------
    BentpipeError, ConfigError
        As :func:`load`; a case's error names it.
    """
    path = find(name)
    document, text = read_document(path)
    cases = read_cases(document, Source(path.name, text))
    if not cases:
        if only:
            raise BentpipeError(f"{path.name}: has no cases, so no case {only[0]!r}")
        return [load(name, settings, seed=seed, duration_ps=duration_ps, quick=quick)]
    for wanted in only:
        if wanted not in [case.name for case in cases]:
            raise BentpipeError(f"{path.name}: there is no case {wanted!r}{nearest(wanted, [c.name for c in cases])}")
    return [
        _with_case(
            document,
            text,
            path,
            case,
            settings,
            [case.name for case in cases],
            seed=seed,
            duration_ps=duration_ps,
            quick=quick,
            folder=path.parent,
        )
        for case in cases
        if not only or case.name in only
    ]


def _with_case(
    document: dict[str, Any],
    text: str,
    path: Path,
    case: Case,
    settings: Sequence[str],
    names: Sequence[str],
    **options: Any,
) -> Experiment:
    own = [(f"case {case.name!r}, {key}", SHORTHANDS.get(key, key), value) for key, value in case.settings.items()]
    document, touched = _assign_all({k: v for k, v in document.items() if k != "case"}, own, path.name)
    try:
        made = _changed(document, Source(path.name, text, touched), settings, **options)
    except ConfigError as error:
        raise ConfigError(f"case {case.name!r}: {error}") from None
    for index, row in enumerate(made.published):
        if row.case not in names:
            what = f"there is no case {row.case!r}{nearest(row.case, names)}"
            raise Source(path.name, text, frozenset({f"published.{index}.case"})).error(f"published.{index}.case", what)
    rows = tuple(row for row in made.published if row.case == case.name)
    return dataclasses.replace(made, case=case.name, at=case.at, published=rows)


def _changed(
    document: dict[str, Any],
    source: Source,
    settings: Sequence[str],
    *,
    seed: int | None,
    duration_ps: int | None,
    quick: bool,
    folder: Path,
) -> Experiment:
    """The experiment of a document with settings in it, and how it differs from that of the document alone."""
    after, touched = apply_settings(document, settings, source.name)
    whole = Source(source.name, source.text, source.overrides | touched)
    made = parse_experiment(after, whole, seed=seed, duration_ps=duration_ps, quick=quick, folder=folder)
    changes: list[Change] = []
    try:
        plain = parse_experiment(document, source, folder=folder)
    except BentpipeError:  # it needs the settings to be an experiment at all
        plain = dataclasses.replace(made, duration_ps=made.full_ps)
    if made.seed != plain.seed:
        changes.append(Change("experiment.seed", plain.seed, made.seed))
    if made.duration_ps > plain.duration_ps:
        changes.append(Change("experiment.duration", format_time(plain.duration_ps), format_time(made.duration_ps)))
    changes += changes_between(document, after, source.defaults)
    return dataclasses.replace(made, full_ps=plain.duration_ps, changes=tuple(changes))


def load(
    name: str,
    settings: Sequence[str] = (),
    *,
    seed: int | None = None,
    duration_ps: int | None = None,
    quick: bool = False,
) -> Experiment:
    """Find, read, change and validate an experiment, without its cases' settings; see :func:`find` and
    :func:`parse_experiment`."""
    path = find(name)
    document, text = read_document(path)
    source = Source(path.name, text)
    read_cases(document, source)
    document.pop("case", None)
    return _changed(document, source, settings, seed=seed, duration_ps=duration_ps, quick=quick, folder=path.parent)
