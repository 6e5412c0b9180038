"""Strict reading of one TOML table: every key is known, typed and in range, or one clear line says what isn't."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from bentpipe.errors import ConfigError
from bentpipe.experiment.places import lines
from bentpipe_hdl.units import (
    format_rate,
    format_size,
    format_time,
    parse_rate,
    parse_size,
    parse_time,
)
from bentpipe_hdl.words import kind_of, nearest

__all__ = ["Source", "Table"]

T = TypeVar("T")

_REQUIRED: Final[Any] = object()


@dataclass(frozen=True)
class Source:
    """Where a document came from, for messages.

    Members
    -------
    name : str
        The file's name.
    text : str
        Its text, from which line numbers are found.
    overrides : frozenset[str]
        Dotted keys that came from ``--set`` and not from the file.
    defaults : dict
        What was taken for keys that weren't there, by dotted key, as one would write it; filled in reading.
    """

    name: str
    text: str = ""
    overrides: frozenset[str] = field(default_factory=frozenset)
    defaults: dict[str, Any] = field(default_factory=dict)

    def error(self, key: str, what: str) -> ConfigError:
        if any(key == o or o.startswith(f"{key}.") for o in self.overrides):
            return ConfigError(f"--set {key}: {what} (in {self.name})")
        line = self.line(key)
        place = f"{self.name}:{line}" if line else self.name
        return ConfigError(f"{place}: {key}: {what}" if key else f"{place}: {what}")

    def line(self, key: str) -> int | None:
        """The line of a dotted key, or of the nearest table around it; None if there is none."""
        known = lines(self.text) if self.text else {}
        while key and key not in known:
            key = key.rpartition(".")[0]
        return known.get(key)


class Table:
    """One table of a document, read key by key.

    Parameters
    ----------
    data : object
        What TOML has there.
    path : str
        Dotted key of the table; "" for the document itself.
    source : Source
    known : Sequence[str]
        The keys that may stand in it. Empty: any (a table of names).

    Raises
    ------
    ConfigError
        If ``data`` isn't a table, or has a key that isn't known.
    """

    def __init__(self, data: object, path: str, source: Source, known: Sequence[str] = ()) -> None:
        self.path = path
        self.source = source
        if not isinstance(data, dict):
            raise source.error(path, f"expected a table, not {kind_of(data)}")
        self.data: dict[str, Any] = data
        if known:
            for key in self.data:
                if key not in known:
                    raise source.error(self.key(key), f"unknown key{nearest(key, known)}")

    def key(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def error(self, name: str, what: str) -> ConfigError:
        return self.source.error(self.key(name) if name else self.path, what)

    def __contains__(self, name: str) -> bool:
        return name in self.data

    def _get(self, name: str, default: object, shown: Callable[[Any], str] | None = None) -> Any:
        if name in self.data:
            return self.data[name]
        if default is _REQUIRED:
            raise self.error("", f"the key {name!r} is missing")
        self.note(name, default, shown)
        return default

    def note(self, name: str, default: object, shown: Callable[[Any], str] | None = None) -> None:
        """Note the default of a key; ``shown`` makes a text of a value in base units."""
        if default is not None:
            self.source.defaults[self.key(name)] = shown(default) if shown else default

    def _parse(self, name: str, default: Any, parse: Callable[[object], T], shown: Callable[[Any], str]) -> T:
        value = self._get(name, default, shown)
        if name not in self.data:
            return value
        try:
            return parse(value)
        except ValueError as error:
            raise self.error(name, str(error)) from None

    def text(self, name: str, default: Any = _REQUIRED, choices: Sequence[str] = ()) -> str:
        value = self._get(name, default)
        if name not in self.data:
            return value
        if not isinstance(value, str):
            raise self.error(name, f"expected a text, not {kind_of(value)}")
        if choices and value not in choices:
            raise self.error(name, f"unknown value {value!r}{nearest(value, choices)}")
        return value

    def boolean(self, name: str, default: Any = _REQUIRED) -> bool:
        value = self._get(name, default)
        if name in self.data and not isinstance(value, bool):
            raise self.error(name, f"expected true or false, not {kind_of(value)}")
        return value

    def integer(
        self, name: str, default: Any = _REQUIRED, low: int = 0, high: int = 2**63 - 1, things: str = ""
    ) -> int:
        """A whole number without a unit; ``things`` are what it counts, for the message."""
        value = self._get(name, default)
        if name not in self.data:
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            of = f" of {things}" if things else ""
            raise self.error(name, f"expected a whole number{of}, not {kind_of(value)}")
        if not low <= value <= high:
            raise self.error(name, f"{value} is out of range {low}..{high}")
        return value

    def number(self, name: str, default: Any = _REQUIRED) -> float:
        value = self._get(name, default)
        if name not in self.data:
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise self.error(name, f"expected a number, not {kind_of(value)}")
        return value

    def time(self, name: str, default: Any = _REQUIRED, low: int = 0, high: int = 10**17) -> int:
        value = self._parse(name, default, parse_time, format_time)
        if name in self.data and not low <= value <= high:
            raise self.error(name, f"{self.data[name]!r} is out of range {format_time(low)} to {format_time(high)}")
        return value

    def size(self, name: str, default: Any = _REQUIRED, low: int = 1, high: int = 2**50) -> int:
        value = self._parse(name, default, parse_size, format_size)
        if name in self.data and not low <= value <= high:
            raise self.error(name, f"{self.data[name]!r} is out of range {format_size(low)} to {format_size(high)}")
        return value

    def rate(self, name: str, default: Any = _REQUIRED) -> int:
        return self._parse(name, default, parse_rate, format_rate)

    def bounds(self, name: str, read: Callable[[Table], int]) -> tuple[int, int]:
        """Two bounds, or one value that is both; ``read`` takes each from a table of its own."""
        value = self._get(name, _REQUIRED)
        both = value if isinstance(value, list) else [value, value]
        if len(both) != 2:
            raise self.error(name, "give one value, or a list of the lower and the upper bound")
        low, high = (read(Table({name: one}, self.path, self.source)) for one in both)
        if high < low:
            raise self.error(name, "the bounds are the wrong way round")
        return low, high

    def value(self, name: str, default: Any = _REQUIRED) -> Any:
        """Whatever stands there; the caller looks at its type."""
        return self._get(name, default)

    def items(self, name: str, default: Any = _REQUIRED) -> list[Any]:
        value = self._get(name, default)
        if name in self.data and not isinstance(value, list):
            raise self.error(name, f"expected a list, not {kind_of(value)}")
        return value

    def sub(self, name: str, known: Sequence[str] = (), required: bool = False) -> Table:
        """The table under a key; an empty one where it isn't there and isn't required."""
        value = self._get(name, _REQUIRED if required else {})
        return Table(value, self.key(name), self.source, known)

    def named(self, name: str, known: Sequence[str]) -> Iterator[tuple[str, Table]]:
        """The tables of a table of names, in the order of the file."""
        names = self.sub(name)
        for key in names.data:
            if not key or not all(c.isalnum() or c in "-_" for c in key):
                raise names.error(key, "a name has letters, digits, - and _ only")
            yield key, names.sub(key, known)

    def array(self, name: str, known: Sequence[str]) -> Iterator[Table]:
        """The tables of an array of tables (``[[name]]``)."""
        for index, item in enumerate(self.items(name, [])):
            yield Table(item, f"{self.key(name)}.{index}", self.source, known)
