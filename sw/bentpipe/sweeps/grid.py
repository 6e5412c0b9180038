"""The values that a sweep varies: ``KEY=a,b,c``, ``KEY=FROM..TO:COUNT``, and seeds ``1-5,8``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.assign import SHORTHANDS
from bentpipe.experiment.load import check_seed

__all__ = ["Axis", "as_text", "combinations", "parse_axes", "parse_seeds", "seeds_text"]

_NUMBER: Final = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE: Final = re.compile(rf"\s*({_NUMBER})\s*(\S.*?)?\s*\.\.\s*({_NUMBER})\s*(\S.*?)?\s*:\s*(\d+)\s*")
_QUANTITY: Final = re.compile(rf"\s*({_NUMBER})\s*(\S.*?)?\s*")
_MOST: Final = 10_000
"""Values of an axis, and seeds."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key that is varied.

    Members
    -------
    key : str
        As ``--set`` has it, dotted.
    values : tuple[str, ...]
        As ``--set`` would have them.
    """

    key: str
    values: tuple[str, ...]

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The values as numbers on an axis; None if not all are numbers of one unit."""
        found = [_QUANTITY.fullmatch(value.strip("\"'")) for value in self.values]
        if not all(found) or len({match[2] for match in found if match}) != 1:
            return None
        return tuple(float(match[1].replace("_", "")) for match in found if match)

    @property
    def unit(self) -> str:
        """The unit of the numbers; "" without one."""
        match = _QUANTITY.fullmatch(self.values[0].strip("\"'")) if self.numbers else None
        return (match[2] or "") if match else ""


def parse_axes(given: Sequence[str] | Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the axes of ``--vary`` arguments, or of a mapping.

    A mapping has for each key a list of values, or a text as after the ``=``.

    Raises
    ------
    BentpipeError
        An argument is malformed, or a key or a value is given twice.
    """
    pairs = [*given.items()] if isinstance(given, Mapping) else [_split(argument) for argument in given]
    axes: list[Axis] = []
    for key, values in pairs:
        full = SHORTHANDS.get(key, key)
        if full == "experiment.seed":
            raise BentpipeError("--vary experiment.seed: seeds are given as --seeds 1-10")
        if not isinstance(values, Iterable):
            raise BentpipeError(f"--vary {key}: expected some values, not {values!r}")
        texts = _values(key, values) if isinstance(values, str) else tuple(map(as_text, values))
        if not texts:
            raise BentpipeError(f"--vary {key}: no values")
        if len(texts) > _MOST:
            raise BentpipeError(f"--vary {key}: {len(texts)} values, and {_MOST} are the most")
        twice = next((text for n, text in enumerate(texts) if text in texts[:n]), None)
        if twice is not None:
            raise BentpipeError(f"--vary {key}: {twice} is there twice")
        if any(axis.key == full for axis in axes):
            raise BentpipeError(f"--vary {key}: is given twice")
        axes.append(Axis(full, texts))
    return tuple(axes)


def parse_seeds(given: str | Sequence[int]) -> tuple[int, ...]:
    """Return the seeds of a text like ``1-5,8``, or the given ones."""
    if isinstance(given, str):
        found: list[int] = []
        for part in given.split(","):
            match = re.fullmatch(r"\s*(\d{1,10})\s*(?:-\s*(\d{1,10})\s*)?", part)
            if match is None:
                raise BentpipeError(f"--seeds {given}: expected numbers and ranges, as 1-10 or 1,3,7-9")
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first:
                raise BentpipeError(f"--seeds {given}: {first}-{last} goes down")
            if last - first >= _MOST:
                raise BentpipeError(f"--seeds {given}: {last - first + 1} seeds, and {_MOST} are the most")
            found += range(first, last + 1)
    else:
        found = [*given]
    if not found:
        raise BentpipeError("--seeds: no seed")
    return tuple(dict.fromkeys(check_seed(seed, "--seeds") for seed in found))


def seeds_text(seeds: Sequence[int]) -> str:
    """Return the text that :func:`parse_seeds` reads these from."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def combinations(axes: Sequence[Axis]) -> Iterator[dict[str, str]]:
    """Yield all combinations of the axes' values by key, the last axis fastest; one empty one without axes."""
    for values in itertools.product(*(axis.values for axis in axes)):
        yield dict(zip((axis.key for axis in axes), values, strict=True))


def _split(argument: str) -> tuple[str, str]:
    key, equals, text = argument.partition("=")
    if not equals or not key.strip() or not text.strip():
        raise BentpipeError(f"--vary {argument}: expected KEY=A,B,… or KEY=FROM..TO:COUNT")
    return key.strip(), text


def _values(key: str, text: str) -> tuple[str, ...]:
    return tuple(value for part in _parts(text) for value in _expanded(key, part))


def _parts(text: str) -> list[str]:
    """Return the texts between commas, except commas in brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "," and not depth:
            parts.append("")
            continue
        else:
            depth += (letter in "[{") - (letter in "]}")
        parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _expanded(key: str, part: str) -> list[str]:
    """Return the values of a range; a text that is no range is one value."""
    match = _RANGE.fullmatch(part)
    if match is None:
        return [part]
    first, last, count = Decimal(match[1].replace("_", "")), Decimal(match[3].replace("_", "")), int(match[5])
    unit = match[4] or ""
    if (match[2] or unit) != unit:
        raise BentpipeError(f"--vary {key}={part}: two units, {match[2]} and {unit or 'none'}")
    if not 2 <= count <= _MOST or first == last:
        raise BentpipeError(f"--vary {key}={part}: expected two ends that differ, and 2 to {_MOST} values")
    step = (Fraction(last) - Fraction(first)) / (count - 1)
    numbers = [Fraction(first) + n * step for n in range(count)]
    return [f"{_number(number)} {unit}".strip() for number in numbers]


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.12g}"


def as_text(value: Any) -> str:
    """Return a Python value as ``--set`` writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_quoted, value))}]"
    return str(value)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else as_text(value)
