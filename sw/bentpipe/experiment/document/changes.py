"""The changes of an experiment against its file: each key with its old and its new value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["UNCHANGING", "Change", "changes_between"]

UNCHANGING: Final = ("record",)
"""Tables of a document that change no figure: what is recorded."""
_APART: Final = (*UNCHANGING, "experiment.seed", "experiment.duration", "experiment.quick")
"""Seed and duration are compared as they were read, with ``--seed`` and so on."""


@dataclass(frozen=True, slots=True)
class Change:
    """A dotted key as ``--set`` has it, its value in the file (or else the default), and in the run; None: not given.

    ``*`` in the key stands for every entry of a list or of a table of names, where all were changed alike.
    """

    key: str
    old: Any
    new: Any


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Change]:
    """Return the differences of two documents that decide a run's figures.

    To give a key the value that it has by default changes nothing.
    """
    found = _between("", before, after, defaults)
    return [c for c in found if not any(f"{c.key}.".startswith(f"{apart}.") for apart in _APART)]


def _between(path: str, before: Any, after: Any, defaults: Mapping[str, Any]) -> list[Change]:
    was = defaults.get(path) if before is None else before
    if was == after and isinstance(was, bool) == isinstance(after, bool):
        return []
    one, two = _entries(before), _entries(after)
    if (one is None and before is not None) or (two is None and after is not None) or one is two is None:
        return [Change(path, was, after)]
    one, two = one or {}, two or {}
    if not one and not two:  # an empty table, where there was none
        return [Change(path, was, after)]
    found: list[Change] = []
    relative: list[list[Change]] = []
    for name in dict.fromkeys((*one, *two)):
        full = f"{path}.{name}" if path else name
        inside = _between(full, one.get(name), two.get(name), defaults)
        found += inside
        relative.append([Change(c.key.removeprefix(full), c.old, c.new) for c in inside])
    first = relative[0]
    if path and len(relative) > 1 and all(c.key for c in first) and all(each == first for each in relative):
        return [Change(f"{path}.*{c.key}", c.old, c.new) for c in first]
    return found


def _entries(value: Any) -> dict[str, Any] | None:
    """Return the contents of a table or a list of tables, by name or number; None for a value."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return {str(index): item for index, item in enumerate(value)}
    return None
