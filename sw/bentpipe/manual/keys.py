"""The documentation of an experiment's keys, made from its model: tables, profiles, series, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from bentpipe.experiment.document.tables import SERIES, Document, Face, HostsTable, HostTable
from bentpipe.experiment.document.tcp_options import TcpTable
from bentpipe.manual.markdown import table
from bentpipe.results.columns import CHANGES, FLOWS, SWEEP, SWEEP_HEAD, TRACE, Columns
from bentpipe.results.declared import METRICS
from bentpipe.results.knees import FIGURES
from bentpipe.results.losses import COLUMNS
from bentpipe_hdl.settings import RATE, Quantity, Settings, Words, in_run, key_of, shown

__all__ = ["columns", "losses", "metrics", "profiles", "series", "tables"]

_PLAIN = {
    bool: "true or false",
    str: "text",
    Face: '`"switch:port"`',
    Any: "value",
    float: "number",
    int: "whole number",
}
_ELSEWHERE = {HostTable: HostsTable.model_fields, TcpTable: {}}
"""What a table has that stands elsewhere in the manual."""

_LAST = "[[case]]", "[network.vps"
"""Tables that have others in them which stand where they are used first."""

_MOST = 2**50
"""A limit from here on is none."""


def _quantity(quantity: Quantity) -> str:
    if quantity.name == RATE.name:
        return quantity.name
    low, high = quantity.bounds
    zero = "0, or " if quantity.or_zero else ""
    if quantity.high >= _MOST:
        limits = "" if quantity.low <= 0 else f", {low} and more"
    else:
        limits = f", {zero}{low} to {high}"
    return quantity.name + limits


def _is(kind: Any, metadata: Iterable[Any] = ()) -> str:
    """Return a type in words."""
    for part in metadata:
        if isinstance(part, Quantity):
            return _quantity(part)
        if isinstance(part, Words):
            return ", ".join(f"`{word}`" for word in part.known())
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is(inner[0], inner[1:])
    if origin in (Union, UnionType):
        return "; or ".join(dict.fromkeys(_is(one) for one in inner if one is not NoneType))
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in inner)
    if origin is tuple:
        return f"list: {_is(inner[0])}"
    return "table" if origin is dict else _PLAIN[kind]


def _models(kind: Any) -> list[type[Settings]]:
    """Return the models in a type."""
    if isinstance(kind, type) and issubclass(kind, Settings):
        return [kind]
    return [model for one in get_args(kind) for model in _models(one)]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    if field.default in (None, "", (), {}):
        return ""
    value = shown(field)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return ", ".join(f"`{one}`" for one in value) if isinstance(value, tuple) else f"`{value}`"


def _walk(model: type[Settings], path: str) -> Iterator[tuple[str, type[Settings]]]:
    """Yield every table with its heading, inner tables after it, each model once."""
    for name, field in model.model_fields.items():
        models = _models(field.annotation)
        if not models:
            continue
        inner = models[0]
        key = f"{path}.{key_of(name)}" if path else key_of(name)
        origin = get_origin(field.annotation)
        yield (f"[[{key}]]" if origin is tuple else f"[{key}.NAME]" if origin is dict else f"[{key}]"), inner
        yield from _walk(inner, f"{key}.NAME" if origin is dict else key)


def tables() -> str:
    """Return a section for each table of a document, with its keys."""
    seen: set[type[Settings]] = set()
    parts = []
    for heading, model in sorted(_walk(Document, ""), key=lambda pair: pair[0].startswith(_LAST)):
        if model in seen:
            continue
        seen.add(model)
        about = " ".join((model.__doc__ or "").split())
        parts.append(f"### `{heading}`\n\n{about}\n")
        common = _ELSEWHERE.get(model)
        rows = [
            (
                f"`{key_of(name)}`",
                _is(field.annotation, field.metadata),
                _default(field),
                (field.description or "").replace("``", "`") + ("; may change in a run" if in_run(field) else ""),
            )
            for name, field in model.model_fields.items()
            if not _models(field.annotation) and name not in (common or {})
        ]
        parts.append(table(("key", "is", "default", "meaning"), rows))
        if common is not None:
            parts.append(
                "And the keys of `[hosts]`.\n" if model is HostTable else "And [the settings of TCP](tcp.md).\n"
            )
    return "\n".join(parts)


def profiles() -> str:
    """Return the table of published hosts."""
    from bentpipe.hosts.profiles import load_profiles

    rows = [
        (
            f"`{name}`",
            p.title,
            f"{p.send_us:g} us, {p.receive_us:g} us",
            f"{p.clock_hz:g} Hz, {p.clock_us:g} us",
            p.source,
        )
        for name, p in load_profiles().items()
    ]
    return table(("profile", "host", "cost of a segment sent, received", "clock interrupts", "from"), rows)


def series() -> str:
    """Return the table of series that can be recorded."""
    return table(("series", "is"), [(f"`{name}`", text) for name, text in SERIES.items()])


_LEVELS: Final = {"run": "", "group": "GROUP.", "flow": "FLOW.", "vc": "VC.", "port": "SWITCH:PORT."}
"""What stands before the name of a figure of each level."""


def _columns(parts: Columns) -> str:
    rows = [(f"`{name}`", kind, text) for name, (kind, text) in parts.items()]
    return table(("column", "type", "meaning"), rows)


def losses() -> str:
    """Return the table of columns of the records of lost cells."""
    return _columns(COLUMNS)


def columns() -> str:
    """Return a section for each table that runs and sweeps write, and for what applications report."""
    from bentpipe.apps.registry import REPORTS

    varied = {"KEY": ("double, string", "value of a varied key, named by the dotted key; a column for each")}
    tables = {
        "`flows.parquet`: a row for each flow": FLOWS,
        "`trace.parquet`: a row for each sample or event": TRACE,
        "`changes.parquet`: a row for each value that an event, profile or request wrote": CHANGES,
        "`losses.parquet`: a row for each lost cell": COLUMNS,
        "`table.parquet` of a sweep: a row for each figure of each run": {**SWEEP_HEAD, **varied, **SWEEP},
    }
    parts = [f"### {title}\n\n{_columns(found)}" for title, found in tables.items()]
    rows = [
        (app, f"`{column.name}`", column.unit or "1", column.text)
        for app, report in REPORTS.items()
        for column in report.columns
    ]
    parts.append("### Columns of `flows.parquet` by application\n")
    parts.append(table(("application", "column", "unit", "meaning"), rows))
    return "\n".join(parts)


def metrics() -> str:
    """Return the table of metrics of runs, flows, VCs and ports."""
    rows = [
        (
            ", ".join(f"`{_LEVELS[level]}{metric.name}`" for level in metric.of),
            metric.words,
            metric.unit or "1",
            metric.text,
            metric.source,
        )
        for metric in METRICS
    ]
    rows += [(f"`FLOW.{name}`", name, "octets", text, "all cases together") for name, text in FIGURES.items()]
    return table(("metric", "in words", "unit", "is", "counted by"), rows)
