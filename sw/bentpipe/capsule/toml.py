"""A document as TOML: one key a line, tables inside it inline. What is read of it is the same document."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["to_toml"]


def to_toml(document: Mapping[str, Any]) -> str:
    """Return the text of a document of texts, numbers, truth values, lists and tables."""
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in document.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf, -inf, nan
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)} = {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    raise TypeError(f"{type(value).__name__} has no form in TOML: {value!r}")


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
