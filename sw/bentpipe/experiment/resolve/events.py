"""The changes in a run: the settings of ``[[event]]``, and the network from each event on.

An event is the document with other values in it, read as any document. Each setting declares whether it may be changed
(:data:`bentpipe_hdl.settings.IN_RUN`); everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from bentpipe.experiment.document.assign import SHORTHANDS, Assignment, assigned
from bentpipe.experiment.document.changes import changes_between
from bentpipe.experiment.document.declared import DeclaredTable
from bentpipe.experiment.document.source import ConfigProblem, Source
from bentpipe.experiment.document.tables import Document, EventTable
from bentpipe.experiment.resolve.specs import EventSpec, Experiment
from bentpipe_hdl.settings import Settings, in_run, key_of

__all__ = ["EventSource", "read_events", "refusal"]


@dataclass(frozen=True)
class EventSource(Source):
    """The document as an event has changed it: what is wrong with that is the event's fault."""

    event: str = ""

    def _message(self, wrong: ConfigProblem) -> tuple[int, str]:
        return super()._message(ConfigProblem(self.event, ": ".join(filter(None, (wrong.key, wrong.what)))))


def read_events(
    tables: Sequence[EventTable],
    document: dict[str, Any],
    source: Source,
    first: Experiment,
    read: Callable[[dict[str, Any], Source], Experiment],
) -> tuple[EventSpec, ...]:
    """Return the events of a document in the order of their times; those of one time in that of the file.

    Parameters
    ----------
    first : Experiment
        As it begins.
    read : Callable
        The experiment of a document without events.

    Raises
    ------
    ConfigError
        A key is no setting, or none that can be changed in a run; with the new values the document is not one.
    """
    now, before = {key: value for key, value in document.items() if key not in ("event", "profile")}, first
    found = []
    for number, table in sorted(enumerate(tables), key=lambda pair: pair[1].at_ps):
        place = f"event.{number}.set"
        values = [Assignment(f"{place},", key, value) for key, value in table.set.items()]
        wrong = [ConfigProblem(place, what) for each in values if (what := refusal(SHORTHANDS.get(each.key, each.key)))]
        if wrong:
            raise source.error(*wrong)
        changed, _ = assigned(now, values, source.name)
        named = EventSource(
            source.name, source.text, source.overrides, dict(source.defaults), source.base, source.folder, place
        )
        after = read(changed, named)
        for old, new in zip(before.network.lines, after.network.lines, strict=True):
            if new.framing and new.rate_bps != old.rate_bps:
                raise source.error(ConfigProblem(place, f"network.lines.{new.name}.rate: a SONET line keeps its rate"))
        changes = tuple(changes_between(now, changed, source.defaults))
        found.append(EventSpec(table.at_ps, changes, after.network, after.vcs, tuple(table.set.items())))
        now, before = changed, after
    return tuple(found)


def refusal(key: str) -> str:
    """Return why a setting cannot be changed in a run; ``""`` if it can, or does not exist, which reading it
    reports."""
    models: list[type[Settings]] = [Document]
    parts = key.split(".")
    while parts:
        part, *parts = parts
        known = [(field, model) for model in models for field in _field(model, part)]
        declaring = [model for model in models if issubclass(model, DeclaredTable) and part in model.declared_keys()]
        if not known and not declaring:
            return ""
        field, model = known[0] if known else (None, declaring[0])
        models = [] if field is None else _models(field.annotation)
        if field is None or not models:
            others = [key_of(name) for name, each in model.model_fields.items() if in_run(each)]
            can = f"; {', '.join(others)} can" if others else ""
            return "" if field is not None and in_run(field) else f"{key} can't be changed in a run{can}"
        if get_origin(field.annotation) in (dict, tuple):
            parts = parts[1:]  # a name, a number or *
    return f"{key} is a table: name a setting of it"


def _field(model: type[Settings], key: str) -> list[FieldInfo]:
    return [field for name, field in model.model_fields.items() if key_of(name) == key]


def _models(kind: Any) -> list[type[Settings]]:
    """Return the models in a type."""
    if isinstance(kind, type) and issubclass(kind, Settings):
        return [kind]
    return [model for one in get_args(kind) for model in _models(one)]
