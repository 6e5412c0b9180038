"""Quantities with units, as experiments write them: ``"125 ms"``, ``"10 MiB"``, ``"OC-3c"``, ``"70 Mb/s"``.

A bare number is in the base unit: seconds, octets, bits a second. Everything becomes an integer exactly
(decimal arithmetic, no binary fractions): picoseconds, octets, bits a second.

A :class:`Quantity` is a unit with a range. Settings are declared with it, in models (:mod:`bentpipe_hdl.settings`) and
without them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from bentpipe_hdl.words import kind_of

__all__ = [
    "BER",
    "CELLS",
    "CELL_RATE",
    "COUNT",
    "DOCUMENT",
    "LINE_RATES",
    "MAX_RATE_BPS",
    "MIN_RATE_BPS",
    "NUMBER",
    "PPM",
    "RATE",
    "RATE_UNITS",
    "SHARE",
    "SIZE",
    "SONET_RATES",
    "TICK_PS",
    "TIME",
    "Quantity",
    "format_rate",
    "format_size",
    "format_time",
    "key_of",
    "parse_rate",
    "parse_size",
    "parse_time",
    "rate_names",
]

TICK_PS: Final = Fraction(53 * 10**12, 299_520_000)
"""Picoseconds a tick: a quarter of an OC-12c cell time. No node moves more than one cell a tick."""

MAX_RATE_BPS: Final = 8 * 299_520_000
"""One cell of 53 octets a tick, 2396.16 Mb/s: the most that a line carries, and that a switch moves in all."""

MIN_RATE_BPS: Final = 143
"""The least rate of cells: one takes fewer than 2**24 ticks, as hardware counts, by a clock 1000 ppm slow, too."""

LINE_RATES: Final = {
    "OC-3c": 149_760_000,
    "OC-12c": 599_040_000,
    "DS-3": 40_704_000,
    "DS-3 direct": 44_209_694,
    "E3": 33_920_000,
    "TAXI": 98_148_000,
    "TAXI-140": 137_407_407,
    "E1": 1_920_000,
    "T1": 1_536_000,
}
"""Bits of cells (53 octets each) a second that the named lines carry, line overhead taken off, to the b/s.

DS-3 is with PLCP, 12 cells in 125 us; ``DS-3 direct`` is G.804's mapping by HEC, 84 of 85 bits of 44.736 Mb/s; E3 is
G.832's frame, 530 octets in 125 us; TAXI is 53/54 of 100 or 140 Mb/s, an octet before each cell; E1 and T1 (DS1) are
G.804's, 30 and 24 octets in 125 us.
"""

SONET_RATES: Final = {LINE_RATES["OC-3c"]: 3, LINE_RATES["OC-12c"]: 12}
"""The cell rates of SONET lines, and their STS-Nc."""

_TIME: Final = {"s": 0, "ms": 3, "us": 6, "µs": 6, "ns": 9, "ps": 12}
_TIME_EXTRA: Final = {"min": 60}
_SIZE: Final = {
    "B": 1,
    "octets": 1,
    "bytes": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
RATE_UNITS: Final = {"b/s": 1, "kb/s": 10**3, "Mb/s": 10**6, "Gb/s": 10**9}
"""Units of rates, in b/s."""
_QUANTITY: Final = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")


def _number(text: str | int | float) -> Decimal:
    value = Decimal(text.replace("_", "") if isinstance(text, str) else str(text))
    if not value.is_finite() or value.adjusted() > 18:
        raise ValueError(f"{text} is not a number that makes sense here")
    return value


def _split(value: object, units: str) -> tuple[Decimal, str | None]:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected a number or a text with a unit ({units}), not {_kind(value)}")
    if not isinstance(value, str):
        return _number(value), None
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} is not a number with a unit ({units})")
    return _number(match[1]), match[2]


def _kind(value: object) -> str:
    names = {bool: "true or false", dict: "a table", list: "a list", tuple: "a list", str: "a text"}
    return names.get(type(value), type(value).__name__)


def _whole(value: Decimal) -> int:
    return int(value.to_integral_value())


def rate_names() -> str:
    """Return the pattern of the names of :data:`LINE_RATES` as :func:`parse_rate` takes them."""
    forms = []
    for name in LINE_RATES:
        form = "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else "[- ]?" if c in "- " else c for c in name)
        forms.append(f"^{form}?$" if name.endswith("c") else f"^{form}$")
    return "|".join(forms)


def parse_time(value: object) -> int:
    """Return the picoseconds of ``"125 ms"`` or of a number of seconds; the text of a ValueError names the fault."""
    number, unit = _split(value, "s, ms, us, ns, ps, min")
    if unit is None:
        return _whole(number.scaleb(12))
    if unit in _TIME_EXTRA:
        return _whole(number.scaleb(12) * _TIME_EXTRA[unit])
    if unit not in _TIME:
        raise ValueError(f"unknown unit of time {unit!r} in {value!r}; known: {', '.join(_TIME)}, min")
    return _whole(number.scaleb(12 - _TIME[unit]))


def parse_size(value: object) -> int:
    """Return the octets of ``"10 MiB"`` (2**20), ``"1 GB"`` (10**9) or of a number; the text of a ValueError names
    the fault."""
    number, unit = _split(value, "kB, MB, GB, KiB, MiB, GiB")
    if unit is not None and unit not in _SIZE:
        raise ValueError(f"unknown unit of size {unit!r} in {value!r}; known: {', '.join(_SIZE)}")
    return _whole(number * (1 if unit is None else _SIZE[unit]))


def parse_rate(value: object, zero: bool = False) -> int:
    """Return the bits of cells a second of ``"OC-3c"``, ``"70 Mb/s"`` or of a number.

    The range is from 1 (with ``zero`` from 0) to one cell a tick.
    """
    if isinstance(value, str):
        plain = value.lower().replace("-", "").replace(" ", "")
        for name, rate in LINE_RATES.items():
            short = name.lower().replace("-", "").replace(" ", "")
            if plain in (short, short.removesuffix("c")):
                return rate
    names = f"{', '.join(LINE_RATES)} or a number in b/s, kb/s, Mb/s, Gb/s"
    number, unit = _split(value, names)
    if unit is not None and unit not in RATE_UNITS:
        raise ValueError(f"unknown rate {value!r}; known: {names}")
    rate = _whole(number * (1 if unit is None else RATE_UNITS[unit]))
    if rate < 0 or (rate == 0 and not zero):
        raise ValueError(f"impossible rate {value!r}: it must be more than 0")
    if rate > MAX_RATE_BPS:
        raise ValueError(
            f"impossible rate {value!r}: a line carries at most one cell a tick, {format_rate(MAX_RATE_BPS)}"
        )
    return rate


def format_time(ps: int) -> str:
    """Return a time in the largest unit that keeps it at 1 or more: ``"267 ms"``."""
    if ps == 0:
        return "0 s"
    for unit, scale in (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
        if abs(ps) >= scale:
            return f"{ps / scale:.6g} {unit}"
    return f"{ps} ps"


def format_size(octets: int) -> str:
    """Return a number of octets, exactly: binary units where they come out even, decimal ones else."""
    for unit in ("GiB", "MiB", "KiB", "GB", "MB", "kB"):
        if octets >= _SIZE[unit] and octets % _SIZE[unit] == 0:
            return f"{octets // _SIZE[unit]} {unit}"
    for unit in ("GB", "MB", "kB"):
        if octets >= _SIZE[unit]:
            return f"{octets / _SIZE[unit]:.12g} {unit}"
    return f"{octets} B"


def format_rate(bps: float) -> str:
    """Return a rate in Mb/s; in kb/s below 1 Mb/s, in b/s below 1 kb/s."""
    for unit, scale in (("Mb/s", 1e6), ("kb/s", 1e3)):
        if abs(bps) >= scale:
            return f"{bps / scale:.7g} {unit}"
    return f"{bps:.7g} b/s"


DOCUMENT: Final = {"document": True}
"""The validation context of what a document has."""

_BASES: Final = ("_ps", "_bps", "_ppm")


@functools.cache
def key_of(member: str) -> str:
    """Return the key of a document for a member of a model: ``delay`` of ``delay_ps``, ``from`` of ``from_``."""
    for base in _BASES:
        member = member.removesuffix(base)
    return member.removesuffix("_")


@dataclass(frozen=True)
class Quantity:
    """The unit and the range of a setting: stands in its type, ``Annotated[int, TIME.within("1 us", "1 s")]``.

    Members
    -------
    name : str
        What the documentation calls it.
    read : Callable
        The value in the base unit of what a document has; ValueError says what is wrong.
    shown : Callable
        A value as one would write it in a document.
    low, high : int or float
        The range, in the base unit, both ends in it.
    or_zero : bool
        0 is in it too.
    beyond : str
        Error text for a value out of range, with ``{given}``, ``{low}`` and ``{high}``.
    texts : str
        Pattern of the texts that a document may have (JSON Schema); "": only numbers.
    """

    name: str
    read: Callable[[object], Any]
    shown: Callable[[Any], Any]
    low: float
    high: float
    or_zero: bool = False
    beyond: str = "{given!r} is out of range {low} to {high}"
    texts: str = ""

    def within(self, low: float | str, high: float | str, **changes: Any) -> Quantity:
        """Return the same quantity with another range, and other members.

        The bounds are numbers in the base unit, or texts with a unit.
        """
        low, high = (self.read(bound) if isinstance(bound, str) else bound for bound in (low, high))
        return dataclasses.replace(self, low=low, high=high, **changes)

    def counting(self, things: str) -> Quantity:
        """Return a quantity for whole numbers of things with this name."""
        return dataclasses.replace(self, name=things, read=functools.partial(_whole_of, things=things))

    def check(self, given: object, document: bool = False) -> Any:
        """Return the given value, from Python or from a document, in the base unit.

        Raises
        ------
        ValueError
            It is of another type, has no unit of this kind, or is out of range.
        """
        value = self.read(given) if document or isinstance(given, str) or not self.texts else _whole_of(given)
        if not (self.low <= value <= self.high or (self.or_zero and value == 0)):
            low, high = self.bounds
            raise ValueError(self.beyond.format(given=given, low=low, high=high))
        return value

    @property
    def bounds(self) -> tuple[str, str]:
        """The range as one would write it."""
        low, high = (self.shown(bound) for bound in (self.low, self.high))
        return _bound_text(low), _bound_text(high)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import PydanticCustomError, core_schema  # what has no models needs none

        def read(given: object, info: Any) -> Any:
            try:
                return self.check(given, info.context is DOCUMENT)
            except ValueError as error:
                raise PydanticCustomError("setting", "{what}", {"what": str(error), "key": None}) from None

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return self.json_schema("" if self.texts else handler(schema)["type"])

    def json_schema(self, kind: str) -> dict[str, Any]:
        """Return the JSON Schema of the value in a document; ``kind`` is the type of a number without a unit."""
        if self.texts:
            return {"anyOf": [{"minimum": 0, "type": "number"}, {"pattern": self.texts, "type": "string"}]}
        bounds = {"maximum": self.high, "minimum": self.low}
        made = {k: v for k, v in bounds.items() if math.isfinite(v)} | {"type": kind}
        return {"anyOf": [{"const": 0}, made]} if self.or_zero else made


def _whole_of(value: object, things: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number{f' of {things}' if things else ''}, not {kind_of(value)}")
    return value


def _number_of(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise ValueError(f"expected a number, not {kind_of(value)}")
    return value


def _bound_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _same(value: Any) -> Any:
    return value


_NUMBER_TEXT: Final = r"^\s*[+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"

TIME: Final = Quantity("time", parse_time, format_time, 0, 10**17, texts=_NUMBER_TEXT + "(s|ms|us|µs|ns|ps|min)?\\s*$")
"""In ps; a number in a document counts seconds. To 100000 s."""
SIZE: Final = Quantity(
    "size",
    parse_size,
    format_size,
    1,
    2**50,
    texts=_NUMBER_TEXT + "(B|octets|bytes|kB|MB|GB|KiB|MiB|GiB)?\\s*$",
)
"""In octets."""
RATE: Final = Quantity(
    "rate",
    parse_rate,
    format_rate,
    1,
    MAX_RATE_BPS,
    texts=f"{_NUMBER_TEXT}([kMG]?b/s)?\\s*$|{rate_names()}",
)
"""In bits a second, to one cell a tick."""
CELL_RATE: Final = RATE.within(MIN_RATE_BPS, MAX_RATE_BPS)
"""In bits of cells a second, of what hardware sends."""
COUNT: Final = Quantity("whole number", _whole_of, _same, 0, 2**63 - 1, beyond="{given} is out of range {low}..{high}")
CELLS: Final = COUNT.counting("cells")
NUMBER: Final = Quantity("number", _number_of, _same, -math.inf, math.inf)
SHARE: Final = NUMBER.within(0.0, 1.0, name="share")
PPM: Final = NUMBER.within(0.0, 1000.0, name="ppm", beyond="{given!r} ppm is out of range {low} to {high}")
BER: Final = NUMBER.within(
    1e-15, 1e-3, name="bit error ratio", or_zero=True, beyond="{given!r} is out of range: 0, or {low} to {high}"
)
