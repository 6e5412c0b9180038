"""JSON Schema, draft 2020-12: the part of it that schemas of settings use. An unknown keyword is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["errors"]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_TOLD: Final = {"$schema", "$defs", "title", "description", "default"}
"""Annotations, which decide nothing."""


def errors(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "") -> Iterator[str]:
    """Return the places where a value breaks the schema."""
    for keyword, rule in schema.items():
        if keyword in _TOLD:
            continue
        match keyword:
            case "$ref":
                yield from errors(value, root["$defs"][rule.removeprefix("#/$defs/")], root, at)
            case "type":
                if not isinstance(value, _TYPES[rule]) or (isinstance(value, bool) and rule != "boolean"):
                    yield f"{at}: {value!r} is no {rule}"
            case "enum" | "const":
                if value not in (rule if keyword == "enum" else [rule]):
                    yield f"{at}: {value!r} is not among {rule}"
            case "anyOf" | "oneOf":
                fits = [not any(errors(value, one, root, at)) for one in rule]
                if not any(fits) or (keyword == "oneOf" and sum(fits) > 1):
                    yield f"{at}: {value!r} fits {sum(fits)} of {keyword}"
            case "if":
                branch = "else" if any(errors(value, rule, root, at)) else "then"
                yield from errors(value, schema.get(branch, {}), root, at)
            case "then" | "else":
                pass
            case "minimum" | "maximum" if isinstance(value, (int, float)):
                if value < rule if keyword == "minimum" else value > rule:
                    yield f"{at}: {value!r} is beyond {rule}"
            case "pattern" if isinstance(value, str):
                if not re.search(rule, value):
                    yield f"{at}: {value!r} doesn't fit {rule}"
            case "minItems" | "maxItems" if isinstance(value, list):
                if len(value) < rule if keyword == "minItems" else len(value) > rule:
                    yield f"{at}: {len(value)} entries"
            case "items" if isinstance(value, list):
                for index, item in enumerate(value):
                    yield from errors(item, rule, root, f"{at}.{index}")
            case "prefixItems" if isinstance(value, list):
                for index, (item, one) in enumerate(zip(value, rule, strict=False)):
                    yield from errors(item, one, root, f"{at}.{index}")
            case "required" if isinstance(value, dict):
                yield from (f"{at}: {key} is missing" for key in rule if key not in value)
            case "properties" | "patternProperties" | "additionalProperties" if isinstance(value, dict):
                yield from _members(keyword, rule, value, schema, root, at)
            case "minimum" | "maximum" | "pattern" | "minItems" | "maxItems" | "items" | "required":
                pass
            case "properties" | "patternProperties" | "additionalProperties":
                pass
            case _:
                raise NotImplementedError(keyword)


def _members(
    keyword: str, rule: Any, value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], at: str
) -> Iterator[str]:
    for key, inner in value.items():
        named = schema.get("properties", {})
        patterned = [one for form, one in schema.get("patternProperties", {}).items() if re.search(form, key)]
        if keyword == "properties" and key in named:
            yield from errors(inner, named[key], root, f"{at}.{key}")
        elif keyword == "patternProperties":
            for one in patterned:
                yield from errors(inner, one, root, f"{at}.{key}")
        elif keyword == "additionalProperties" and key not in named and not patterned:
            if rule is False:
                yield f"{at}: {key} is not known"
            elif rule is not True:
                yield from errors(inner, rule, root, f"{at}.{key}")
