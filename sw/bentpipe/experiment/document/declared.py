"""Tables of a document with keys that hosts and applications declare (:class:`bentpipe.declarations.Setting`), beside
the members that the table's own model has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Self

from pydantic import ModelWrapValidatorHandler, PrivateAttr, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from bentpipe.apps.draws import DISTRIBUTIONS
from bentpipe.apps.settings import BOUNDS, DRAWN, AppSetting
from bentpipe.declarations import FLAG, Setting
from bentpipe_hdl.settings import Settings, key_of, wrong
from bentpipe_hdl.units import DOCUMENT, Quantity

__all__ = ["DeclaredTable", "schema_of"]


class DeclaredTable(Settings):
    """A table that reads keys by their declarations."""

    _values: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def values(self) -> Mapping[str, Any]:
        """Return the declared settings that are given, by name."""
        return self._values

    @property
    def given_names(self) -> set[str]:
        """The names of all members and declared settings that are given."""
        return {*self.model_fields_set, *self._values}

    @classmethod
    def declared(cls, given: Mapping[str, Any]) -> tuple[Setting, ...]:
        """Return the settings that a table with these keys may have."""
        raise NotImplementedError

    @classmethod
    def declared_keys(cls) -> Collection[str]:
        """Return the keys of all settings that any such table may have."""
        raise NotImplementedError

    @classmethod
    def supplied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the defaults of members that depend on what is given."""
        del given
        return {}

    @classmethod
    def unknown_in(cls, given: Mapping[str, Any], key: str) -> str:
        """Return the message for an unknown key of a table."""
        del given
        return cls.unknown(key)

    def unset(self) -> Iterator[tuple[str, Any]]:
        """Yield the declared settings that are not given and have a default: key, and default as one would write it."""
        for setting in self.declared({name: getattr(self, name) for name in type(self).model_fields}):
            if setting.name not in self._values and not setting.required and setting.default is not None:
                yield setting.key, setting.shown(setting.default)

    @model_validator(mode="wrap")
    @classmethod
    def _read_declared(cls, given: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if not isinstance(given, dict):
            return handler(given)
        document = info.context is DOCUMENT
        declared = {setting.key if document else setting.name: setting for setting in cls.declared(given)}
        own = {key: value for key, value in given.items() if key not in declared}
        unknown = own.keys() - {key_of(name) if document else name for name in cls.model_fields}
        values: dict[str, Any] = {}
        found: list[InitErrorDetails] = []
        for key, setting in declared.items():
            if key in given and not (given[key] is setting.default is None):
                try:
                    values[setting.name] = setting.read(given[key], document)
                except ValueError as error:
                    found += [InitErrorDetails(type=wrong(what), loc=(key,), input=given[key]) for what in error.args]
            elif setting.required and not unknown:
                found.append(InitErrorDetails(type=wrong(f"the key {key!r} is missing"), loc=(), input=given))
        supplied = {name: value for name, value in cls.supplied(given).items() if name not in own}
        made: Self | None = None
        try:
            made = handler(own | supplied)
        except ValidationError as error:
            before, after = [], []  # members, then what is declared, then unknown keys
            for each in error.errors(include_url=False):
                key = each["loc"][0] if len(each["loc"]) == 1 else None
                what = cls.unknown_in(given, str(key)) if key in unknown else each["msg"]
                problem = InitErrorDetails(type=wrong(what), loc=each["loc"], input=each["input"])
                (after if key in unknown else before).append(problem)
            found = [*before, *found, *after]
        if found or made is None:
            raise ValidationError.from_exception_data(cls.__name__, found)
        made.model_fields_set.difference_update(supplied)
        made._values = values
        return made


def schema_of(settings: Iterable[Setting]) -> dict[str, Any]:
    """Return the JSON Schema of declared keys: the properties of a table."""
    return {setting.key: _schema(setting) for setting in settings}


def _schema(setting: Setting) -> dict[str, Any]:
    made = _type(setting) | {"title": setting.key, "description": setting.text}
    if isinstance(setting.of, Quantity) and setting.measured and _form(setting) != DRAWN:
        made["description"] += f" ({' to '.join(setting.of.bounds)})"
    if not setting.required and setting.default is not None:
        made["default"] = setting.shown(setting.default)
    return dict(sorted(made.items()))


def _form(setting: Setting) -> str:
    return setting.form if isinstance(setting, AppSetting) else ""


def _type(setting: Setting) -> dict[str, Any]:
    if setting.choices:
        return {"type": "string", "enum": [*setting.choices]}
    if not isinstance(setting.of, Quantity):
        return {"type": "boolean" if setting.of == FLAG else "string"}
    one = setting.of.json_schema("number" if isinstance(setting.of.low, float) else "integer")
    form = _form(setting)
    if form not in (BOUNDS, DRAWN):
        return one
    both = {"items": one, "maxItems": 2, "minItems": 2, "type": "array"}
    if form == BOUNDS:
        return {"anyOf": [one, both]}
    names = sorted({name for parameters in DISTRIBUTIONS.values() for name in parameters} | {"most"})
    table = {
        "additionalProperties": False,
        "properties": {"distribution": {"enum": [*DISTRIBUTIONS]}} | dict.fromkeys(names, one),
        "required": ["distribution"],
        "type": "object",
    }
    return {"anyOf": [one, both, table]}
