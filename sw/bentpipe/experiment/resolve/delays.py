"""Histograms of delays that a document names: CSV files of delay and weight."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from bentpipe.experiment.document.source import ConfigProblem
from bentpipe_hdl.link.options.variation.control import VariationSettings
from bentpipe_hdl.settings import TIME

__all__ = ["read_variation"]

_MOST: Final = 100_000
"""Rows of a file."""


def read_variation(given: VariationSettings | None, key: str, folder: Path | None) -> VariationSettings | None:
    """Return the settings with the histogram of their file in them; ``key`` names the file in messages.

    The file has a head with ``delay`` and ``weight``, further columns are not read; a line that begins with ``#`` is a
    comment. A delay is a number of seconds, or has a unit.

    Raises
    ------
    ConfigProblem
        The file is not there or cannot be read; a row has no such values.
    """
    if given is None or given.file is None:
        return given
    path = Path(given.file) if folder is None else folder / given.file
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigProblem(key, f"{path}: cannot be read: {what}") from None
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and line[:1] != "#"]
    if not numbered or len(numbered) > _MOST + 1:
        raise ConfigProblem(key, f"{path}: needs a head, and 1 to {_MOST:,} rows")
    rows = csv.reader([line for _, line in numbered])
    head = [name.strip() for name in next(rows)]
    if not {"delay", "weight"} <= {*head}:
        raise ConfigProblem(key, f"{path}: needs the columns delay and weight, and has {', '.join(head)}")
    found = []
    for (number, _), row in zip(numbered[1:], rows, strict=False):
        try:
            text = row[head.index("delay")].strip()
            delay = TIME.within(0, "500 ms").check(_number(text), document=True)
            weight = float(row[head.index("weight")])
            if not 0 <= weight <= 1e15:
                raise ValueError(f"a weight is 0 to 1e15, not {weight:g}")
        except (ValueError, IndexError) as error:
            what = "a value is missing" if isinstance(error, IndexError) else str(error)
            raise ConfigProblem(key, f"{path}, line {number}: {what}") from None
        found.append((delay, weight))
    if not sum(weight for _, weight in found):
        raise ConfigProblem(key, f"{path}: needs a weight above 0")
    return VariationSettings.part_of(given, file=None, histogram=tuple(found))


def _number(text: str) -> float | str:
    """Return a number of seconds, or a text with a unit."""
    try:
        return float(text)
    except ValueError:
        return text
