"""Finding an experiment: a name of the catalogue, or a file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError, ConfigError
from bentpipe.experiment.document.assign import MOST_DEEP, over
from bentpipe.experiment.document.places import bracket_line, lines
from bentpipe_hdl.words import nearest

__all__ = ["catalogue", "find", "networks", "read_document", "read_extended"]

EXTENDS: Final = "extends"

_NOT_INHERITED: Final = ("published", "theory", "expect", "case", "axis")
"""Arrays of tables that are an experiment's own."""

_INHERITED: Final = ("duration", "quick", "seed")
"""What one has of another's ``[experiment]``."""

_CATALOGUE: Final = Path(__file__).resolve().parents[2] / "catalogue"


def catalogue() -> dict[str, Path]:
    """Return the experiments that come with bentpipe, by name."""
    return {path.stem: path for path in sorted(_CATALOGUE.glob("*.toml"), key=lambda path: path.stem)}


def networks() -> dict[str, Path]:
    """Return the files that experiments share, which are no experiments, by the name for ``extends``:
    ``networks/acts``."""
    return {f"networks/{path.stem}": path for path in sorted((_CATALOGUE / "networks").glob("*.toml"))}


def find(name: str) -> Path:
    """Return the file of an experiment: a name of the catalogue, or a path.

    Raises
    ------
    BentpipeError
        If there is neither; names the nearest of the catalogue.
    """
    known = catalogue()
    if name in known:
        return known[name]
    path = Path(name)
    try:
        if path.is_dir():
            raise BentpipeError(f"{name}: is a folder, not an experiment file")
        if path.is_file():
            return path
    except OSError as error:
        raise BentpipeError(f"{name}: {error.strerror or error}") from None
    if path.suffix or "/" in name or "\\" in name:
        raise BentpipeError(f"{name}: no such file")
    raise BentpipeError(f"{name}: no such experiment in the catalogue{nearest(name, known)}")


def read_document(path: Path) -> tuple[dict[str, Any], str]:
    """Return a TOML file, parsed, and its text."""
    text = ""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        document = tomllib.loads(text)
        _check_depth(document, path, text)
        return document, text
    except RecursionError:
        raise _too_deep(path, bracket_line(text, MOST_DEEP)) from None
    except OSError as error:
        raise BentpipeError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def _check_depth(document: dict[str, Any], path: Path, text: str) -> None:
    """Refuse a document in which tables and lists are inside each other so often that reading it would fail."""
    inner: list[tuple[str, int, Any]] = [("", 0, document)]
    while inner:
        key, depth, value = inner.pop()
        if depth > MOST_DEEP:
            raise _too_deep(path, bracket_line(text, MOST_DEEP) or lines(text).get(key))
        if isinstance(value, dict):
            inner += [(f"{key}.{name}" if key else name, depth + 1, each) for name, each in value.items()]
        elif isinstance(value, list):
            inner += [(f"{key}.{number}", depth + 1, each) for number, each in enumerate(value)]


def _too_deep(path: Path, line: int | None) -> ConfigError:
    place = f"{path.name}:{line}" if line else str(path)
    return ConfigError(f"{place}: more than {MOST_DEEP} tables and lists inside each other")


def read_extended(path: Path) -> tuple[dict[str, Any], list[tuple[Path, str]]]:
    """Return a TOML file on top of the file that it ``extends``, and all these files with their texts, itself first.

    It extends an experiment of the catalogue, one of its networks, or a file relative to its own folder.
    """
    return _extended(path, ())


def _extended(path: Path, above: tuple[Path, ...]) -> tuple[dict[str, Any], list[tuple[Path, str]]]:
    document, text = read_document(path)
    name = document.pop(EXTENDS, None)
    if name is None:
        return document, [(path, text)]
    where = f"{path.name}:{lines(text)[EXTENDS]}: {EXTENDS}:"
    if not isinstance(name, str):
        raise ConfigError(f"{where} expected the name of an experiment, not {name!r}")
    try:
        beside, shared = path.parent / name, networks()
        own = name not in catalogue() and name not in shared and beside.is_file()
        found = beside if own else shared.get(name) or find(name)
    except BentpipeError as error:
        raise ConfigError(f"{where} {error}") from None
    except OSError as error:
        raise ConfigError(f"{where} {name}: {error.strerror or error}") from None
    if found.resolve() in (*above, path.resolve()):
        raise ConfigError(f"{where} {name}: extends itself")
    below, files = _extended(found, (*above, path.resolve()))
    for key in _NOT_INHERITED:
        below.pop(key, None)
    head = below.get("experiment")
    if isinstance(head, dict):
        below["experiment"] = {key: value for key, value in head.items() if key in _INHERITED}
    return over(below, document), [(path, text), *files]
