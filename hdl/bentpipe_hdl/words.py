"""Words of messages: the nearest of what is known, and what kind of value something is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

__all__ = ["kind_of", "nearest"]

_FEW: Final = 12


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'? known: …"`` for an error about an unknown word.

    It has the nearest known word, if one is near, and all of them, if they are few.
    """
    words = sorted(set(known))
    match = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    near = f"; did you mean {match[0]!r}?" if match else ""
    if not words or (match and len(words) > _FEW):
        return near
    return f"{near or ';'} known: {', '.join(words)}"


def kind_of(value: object) -> str:
    """Return a value of a document in words, for messages."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, (list, tuple)):
        return "a list"
    return repr(value)
