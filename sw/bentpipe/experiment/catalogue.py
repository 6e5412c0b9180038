"""Finding an experiment: a name of the catalogue, or a file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError, ConfigError
from bentpipe_hdl.words import nearest

__all__ = ["catalogue", "find", "read_document"]

_CATALOGUE: Final = Path(__file__).resolve().parent.parent / "catalogue"


def catalogue() -> dict[str, Path]:
    """The experiments that come with bentpipe, by name."""
    return {path.stem: path for path in sorted(_CATALOGUE.glob("*.toml"), key=lambda path: path.stem)}


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
