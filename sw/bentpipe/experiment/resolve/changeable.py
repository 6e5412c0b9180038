"""The keys of an experiment that may change in a run, each with its unit, range and words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from bentpipe.experiment.document.tables import Document
from bentpipe_hdl.settings import Settings, Words, in_run, key_of, quantity_of, shown

__all__ = ["changeable_keys"]


def changeable_keys(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each key that an event, a profile or a request may write in a document.

    A row has ``key``, ``kind`` (of the value), ``low`` and ``high`` (as one would write them; None: no limit),
    ``words`` (what a text may be), ``value`` (in the document, or else the default) and ``description``.
    """
    return list(_rows(Document, document, ""))


def _rows(model: type[Settings], table: Mapping[str, Any], above: str) -> Iterator[dict[str, Any]]:
    for name, field in model.model_fields.items():
        key = key_of(name)
        whole = f"{above}.{key}" if above else key
        given = table.get(key)
        if in_run(field):
            yield _row(whole, field, given)
            continue
        inner = _model(field.annotation)
        if inner is None:
            continue
        if get_origin(field.annotation) is dict and isinstance(given, Mapping):
            for each, value in given.items():
                if isinstance(value, Mapping):
                    yield from _rows(inner, value, f"{whole}.{each}")
        elif isinstance(given, list):
            for number, value in enumerate(given):
                if isinstance(value, Mapping):
                    yield from _rows(inner, value, f"{whole}.{number}")
        elif isinstance(given, Mapping) and get_origin(field.annotation) is not tuple:
            yield from _rows(inner, given, whole)


def _row(key: str, field: FieldInfo, given: Any) -> dict[str, Any]:
    quantity, words = quantity_of(field), _words(field)
    low, high = quantity.bounds if quantity else (None, None)
    none = field.is_required() or field.default is None or isinstance(field.default, Settings)
    default = None if none else shown(field)
    kind = quantity.name if quantity else "text" if words else "true or false" if _has(field, bool) else "value"
    return {
        "key": key,
        "kind": kind,
        "low": None if low in ("-inf", None) else low,
        "high": None if high in ("inf", None) else high,
        "words": words,
        "value": default if given is None else given,
        "description": field.description,
    }


def _parts(kind: Any) -> Iterator[Any]:
    yield kind
    for part in (*getattr(kind, "__metadata__", ()), *get_args(kind)):
        yield from _parts(part)


def _words(field: FieldInfo) -> list[str]:
    for part in (*field.metadata, *_parts(field.annotation)):
        if isinstance(part, Words):
            return [*part.known()]
        if get_origin(part) is Literal:
            return [*map(str, get_args(part))]
    return []


def _has(field: FieldInfo, kind: type) -> bool:
    return any(part is kind for part in _parts(field.annotation))


def _model(kind: Any) -> type[Settings] | None:
    """Return the first model in a type."""
    return next((part for part in _parts(kind) if isinstance(part, type) and issubclass(part, Settings)), None)
