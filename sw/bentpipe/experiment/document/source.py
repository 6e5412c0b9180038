"""A document with the places of its keys, and the lines about what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from bentpipe.errors import ConfigError
from bentpipe.experiment.document.places import lines
from bentpipe_hdl.settings import Settings, from_document

__all__ = ["ConfigProblem", "Problems", "Source"]

S = TypeVar("S", bound=Settings)


class ConfigProblem(Exception):
    """A dotted key of a document has a fault; ``what`` is the text."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(key, what)
        self.key = key
        self.what = what


@dataclass(frozen=True)
class Source:
    """The origin of a document, for messages.

    Members
    -------
    name : str
        The file's name.
    text : str
        Its text, in which line numbers are found.
    overrides : Mapping[str, str]
        Dotted keys that are not from the file, with what set them: ``--set``, ``--vary``.
    defaults : dict
        Defaults of missing keys, by dotted key, as one would write them; filled in reading.
    base : Source | None
        Source of the file that this one extends, if any.
    folder : Path | None
        Folder of the files that the document names.
    """

    name: str
    text: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    base: Source | None = None
    folder: Path | None = None

    def error(self, *found: ConfigProblem) -> ConfigError:
        """Return one error for all faults, in the order of the lines; those of the command line are first."""
        messages = dict.fromkeys(text for _, text in sorted(map(self._message, found), key=lambda pair: pair[0]))
        first, *more = _lists_once(messages)
        error = ConfigError(first)
        error.more = tuple(more)
        return error

    def _message(self, wrong: ConfigProblem) -> tuple[int, str]:
        key = wrong.key
        by = next((by for o, by in self.overrides.items() if key == o or o.startswith(f"{key}.")), "")
        if by:
            return 0, f"{by} {key}: {wrong.what} (in {self.name})"
        owner = self.owner(key)
        line = owner.line(key)
        place = f"{owner.name}:{line}" if line else owner.name
        return line or 0, f"{place}: {key}: {wrong.what}" if key else f"{place}: {wrong.what}"

    def line(self, key: str) -> int | None:
        """Return the line of a dotted key, or of the nearest table around it; None if there is none."""
        near = self._nearest(key)
        return lines(self.text)[near] if near else None

    def _nearest(self, key: str) -> str:
        known = lines(self.text) if self.text else {}
        while key and key not in known:
            key = key.rpartition(".")[0]
        return key

    def owner(self, key: str) -> Source:
        """Return the file with the longest part of a dotted key: this one, or one that it extends."""
        below = self.base.owner(key) if self.base else self
        return below if len(below._nearest(key)) > len(self._nearest(key)) else self

    def read(self, model: type[S], document: Mapping[str, Any]) -> S:
        """Return a model of the document.

        Raises
        ------
        ConfigError
            A line with file, key and reason for each thing that is wrong with it.
        """
        try:
            return from_document(model, document)
        except ValidationError as error:
            raise self.error(*(_wrong(e["loc"], e["msg"], e["input"]) for e in error.errors())) from None


def _lists_once(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines; a list of known words is kept only the first time."""
    listed: set[str] = set()
    for line in lines:
        before, known, words = line.partition("; known: ")
        yield before if known and words in listed else line
        listed.add(words)


def _wrong(place: tuple[int | str, ...], what: str, given: object) -> ConfigProblem:
    """Return the error of a model; for a list of values, the list's."""
    parts = [str(part) for part in place if not str(part).startswith(("|", "["))]
    if parts and isinstance(place[-1], int) and not isinstance(given, dict) and not what.startswith("expected a table"):
        parts.pop()
    return ConfigProblem(".".join(parts), what)


class Problems:
    """A collector of problems, which reports all of them at once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[ConfigProblem] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep an error raised inside the context for later."""
        try:
            yield
        except ConfigProblem as wrong:
            self.found.append(wrong)

    def check(self) -> None:
        """Raise :class:`ConfigError` if an error was kept."""
        if self.found:
            raise self.source.error(*self.found)
