"""The settings that events, profiles and requests changed in a run, as curves over time."""

from __future__ import annotations

import contextlib
import numbers
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.results.schema import RunResult
from bentpipe.results.words import key_in_words
from bentpipe_hdl.units import BER, CELL_RATE, TIME

__all__ = ["Changed", "changed_over_time"]

Curve = tuple[Sequence[int], Sequence[float]]
_Write = tuple[int, str, float]  # time in ps, direction, value
_PS: Final = 10**12
_WAYS: Final = ("out", "back")
"""Directions of a line, as profiles name them."""
_AREAS: Final = ("network.lines.", "network.switches.", "hosts.")


@dataclass(frozen=True)
class Changed:
    """The changes of one kind of setting over a run.

    Members
    -------
    key : str
        Last part of the dotted keys, for example ``ber``.
    title, unit : str
    log : bool
        The values are drawn on a logarithmic axis.
    curves : dict
        By line (and direction), switch or whole key: times in ps, and values in ``unit``. Each value holds until the
        next time. The last one is repeated at the end of the run.
    """

    key: str
    title: str
    unit: str
    log: bool
    curves: dict[str, Curve]


@dataclass(frozen=True)
class _Kind:
    title: str
    unit: str
    read: Callable[[Any], float]
    per_unit: float = 1
    log: bool = False
    field: str = ""  # of a resolved line, with a value for each direction


_KINDS: Final = {
    "ber": _Kind("Bit error ratio", "errors a bit", BER.read, log=True, field="ber"),
    "rate": _Kind("Rate of lines", "Mb/s", CELL_RATE.read, 1e6, field="rates_bps"),
    "delay": _Kind("Delay of lines", "ms", TIME.read, 1e9, field="delays_ps"),
    "outage": _Kind("Outage of lines", "1: no cell passes", float, field="outage"),
}
"""Settings of a line whose unit is known by their key; others are drawn as the numbers that a file has."""


def changed_over_time(result: RunResult) -> list[Changed]:
    """Return the curves of all settings that were changed in a run and are numbers, in the order of their first
    change. What was changed to a text or a table is left out. A line whose directions were changed apart has a curve
    for each, and the setting of both is in both."""
    end_ps = round(result.summary["time"]["simulated_s"] * _PS)
    writes: dict[str, dict[str, list[_Write]]] = {}
    for at_ps, source, key, given in result.writes:
        owner, last = _owner(key), key.rpartition(".")[2]
        for way, value in _values(_KINDS.get(last), given, source):
            writes.setdefault(last, {}).setdefault(owner, []).append((at_ps, way, value))
    plain = _Kind("", "value in the file's unit", float)
    changed = []
    for key, by_owner in writes.items():
        kind = _KINDS.get(key, plain)
        curves: dict[str, Curve] = {}
        for owner, made in by_owner.items():
            before = _at_the_start(result.summary, kind, owner)
            apart = any(way for _, way, _ in made)
            for number, way in enumerate(_WAYS if apart else ("",)):
                own = [(at_ps, value) for at_ps, of, value in made if of in ("", way)]
                start = before[number] if apart or len({*before}) == 1 else None
                if own:
                    curves[f"{owner}, {way}" if way else owner] = _curve(own, start, end_ps)
        changed.append(Changed(key, kind.title or _title(key), kind.unit, kind.log and _positive(curves), curves))
    return changed


def _title(key: str) -> str:
    words = key_in_words(key)
    return words[0].upper() + words[1:]


def _curve(made: list[tuple[int, float]], before: float | None, end_ps: int) -> Curve:
    """Return a curve from the start of a run, if the value there is known, to its end."""
    if before is not None and made[0][0] > 0:
        made = [(0, before), *made]
    if made[-1][0] < end_ps:
        made = [*made, (end_ps, made[-1][1])]
    return array("q", [at_ps for at_ps, _ in made]), array("d", [value for _, value in made])


def _owner(key: str) -> str:
    """Return what a setting belongs to: a line or a switch by its name, or all of the key but its last part."""
    owner = key.rpartition(".")[0] or key
    for area in _AREAS:
        owner = owner.removeprefix(area)
    return owner


def _values(kind: _Kind | None, given: object, source: str) -> Iterator[tuple[str, float]]:
    """Yield what was written, with the direction if it is of one."""
    way = source.rpartition(", ")[2]
    ways = _WAYS if isinstance(given, list) and len(given) == len(_WAYS) else (way if way in _WAYS else "",)
    for each, value in zip(ways, given if isinstance(given, list) else [given], strict=False):
        if kind is not None:
            with contextlib.suppress(TypeError, ValueError):
                yield each, kind.read(value) / kind.per_unit
        elif isinstance(value, numbers.Real):
            yield each, float(value)


def _at_the_start(summary: Mapping[str, Any], kind: _Kind, owner: str) -> tuple[float | None, float | None]:
    """Return a line's setting for both directions as the run began; None: it is not a line's."""
    for line in summary["resolved"]["network"].get("lines", ()):
        if line["name"] == owner and kind.field in line:
            out, back = line[kind.field]
            return out / kind.per_unit, back / kind.per_unit
    return None, None


def _positive(curves: Mapping[str, Curve]) -> bool:
    return any(value > 0 for _, values in curves.values() for value in values)
