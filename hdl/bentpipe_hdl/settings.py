"""Settings as data: the class of the models that declare what can be set, and the units of its members.

A setting is declared once, in a model: its type with unit and range, its default, a line that says what it is.

>>> class Example(Settings):
...     delay_ps: Annotated[int, TIME.within(0, "1 s")] = Field(0, description="on the way")

In Python a member has its base unit (ps, octets, b/s), and so has a number given to it: ``Example(delay_ps=5)``. A
document, as :func:`from_document` reads it, leaves the base unit out of the key, and writes texts with a unit, or
numbers of seconds, octets, b/s: ``delay = "5 ps"``. The JSON Schema of a model describes that document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from bentpipe_hdl.units import (
    BER,
    CELL_RATE,
    CELLS,
    COUNT,
    DOCUMENT,
    NUMBER,
    PPM,
    RATE,
    SHARE,
    SIZE,
    TIME,
    Quantity,
    key_of,
)
from bentpipe_hdl.words import kind_of, nearest

__all__ = [
    "BER",
    "CELLS",
    "CELL_RATE",
    "COUNT",
    "IN_RUN",
    "NUMBER",
    "PPM",
    "RATE",
    "SHARE",
    "SIZE",
    "TIME",
    "Ber",
    "Cells",
    "Count",
    "Length",
    "Number",
    "Pattern",
    "Ppm",
    "Quantity",
    "Rate",
    "Settings",
    "Share",
    "Size",
    "Time",
    "Words",
    "check_extension",
    "extend",
    "fixed_changes",
    "from_document",
    "in_run",
    "key_of",
    "one_or_list",
    "quantity_of",
    "shown",
    "unknown_key",
    "wrong",
]

S = TypeVar("S", bound="Settings")

_models: Final[list[type[Settings]]] = []
"""All of them, each behind those that it is made of."""

_EXPECTED: Final = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "literal_error": "a text",
    "model_attributes_type": "a table",
    "model_type": "a table",
    "string_type": "a text",
    "float_type": "a number",
    "int_type": "a whole number",
    "tuple_type": "a list",
}
"""What pydantic asks for, by the type of its error."""
_MEANT: Final = {
    "transport": ("protocol",),
    "bandwidth": ("rate",),
    "latency": ("delay",),
    "destination": ("sink", "to"),
    "src": ("source", "from"),
    "dst": ("sink", "to"),
    "bytes": ("size",),
    "buffer": ("buffer_cells",),
    "loss": ("ber",),
    "congestion_control": ("variant",),
}
"""Keys as other tools call them."""

IN_RUN: Final[dict[str, Any]] = {"in_run": True}
"""As ``json_schema_extra`` of a member: its driver can write it while the node works, ``[[event]]`` may change it."""


def wrong(what: str, key: str | None = None) -> PydanticCustomError:
    """Return the exception that a validator raises to report this line about its member, or a model's about its key."""
    return PydanticCustomError("setting", "{what}", {"what": what, "key": key})


@dataclass(frozen=True)
class Words:
    """The words that a text may be, each with what it means: stands in its type, ``Annotated[str, Words(…)]``.

    Members
    -------
    known : Callable
        Gives them; called when the first is read, not before.
    what : str
        What they are, for messages.
    """

    known: Callable[[], Mapping[str, str]]
    what: str = "value"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._read, handler(source))

    def _read(self, given: str) -> str:
        if given not in self.known():
            raise wrong(f"unknown {self.what} {given!r}{nearest(given, self.known())}")
        return given

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": [*self.known()]}


@dataclass(frozen=True)
class Pattern:
    """A text of this form: stands in its type; ``message`` is the error text for any other, with ``{given}``."""

    form: str
    message: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._read, handler(source))

    def _read(self, given: str) -> str:
        if not re.fullmatch(self.form, given):
            raise wrong(self.message.format(given=given))
        return given

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{self.form}$"}


@dataclass(frozen=True)
class Length:
    """The range of a list's length, as part of the list's type.

    ``message`` is the text of the error for another length, with ``{count}``.
    """

    low: int
    high: int
    message: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._read, handler(source))

    def _read(self, given: Any) -> Any:
        if isinstance(given, tuple) and not self.low <= len(given) <= self.high:
            raise wrong(self.message.format(count=len(given)))
        return given

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema) | {"minItems": self.low, "maxItems": self.high}


def one_or_list(given: object) -> str:
    """Return the tag of a value's type: ``|list`` for a list of values, ``|one`` for a single one."""
    return "|list" if isinstance(given, (list, tuple)) else "|one"


Time = Annotated[int, TIME]
Size = Annotated[int, SIZE]
Rate = Annotated[int, CELL_RATE]
Count = Annotated[int, COUNT]
Cells = Annotated[int, CELLS]
Number = Annotated[float, NUMBER]
Share = Annotated[float, SHARE]
Ppm = Annotated[float, PPM]
Ber = Annotated[float, BER]


def in_run(field: FieldInfo) -> bool:
    """Return whether a member may be changed in a run."""
    return field.json_schema_extra is IN_RUN


class Settings(BaseModel):
    """A model of settings: frozen, strict of types, without unknown members, each member with its description.

    What it raises (:class:`pydantic.ValidationError`) has a line in words for each thing that is wrong.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=key_of,
        validate_by_name=True,
        validate_by_alias=False,
        defer_build=True,  # a process uses a few of them, most only as members of others
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        for name, field in cls.model_fields.items():
            if not field.description:
                raise TypeError(f"{cls.__name__}.{name} has no description: Field(…, description=…)")
        _models.append(cls)

    @classmethod
    def part_of(cls, whole: Settings, **changes: Any) -> Self:
        """Return a model of this class with its members from another model that has them, and changes; nothing is
        validated."""
        return cls.of_read({name: getattr(whole, name) for name in cls.model_fields} | changes)

    @classmethod
    def of_read(cls, values: Mapping[str, Any]) -> Self:
        """Return the model of values that were validated before, each as a member of some model."""
        return cls.model_construct(None, **values)

    def members(self) -> dict[str, Any]:
        """Return the members by name."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    hints: ClassVar[Mapping[tuple[str, str], str]] = {}
    """What to do instead, by a key and a value that it does not take."""

    @classmethod
    def unknown(cls, key: str) -> str:
        """Return the error message for a key that does not exist."""
        return unknown_key(key, map(key_of, cls.model_fields))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema of a document's table: its keys, defaults as one writes them, no null."""
        made = handler(schema)
        table = handler.resolve_ref_schema(made)
        properties = {}
        for name, field in cls.model_fields.items():
            kept = _without_null(table["properties"].pop(name)) | {"title": key_of(name)}
            kept.pop("default", None)
            quantity = quantity_of(field)
            if not (field.is_required() or field.default is None or isinstance(field.default, Settings)):
                kept["default"] = shown(field)
            if quantity and quantity.texts:
                kept["description"] = f"{field.description} ({' to '.join(quantity.bounds)})"
            if kept.pop("in_run", False):
                kept["description"] += "; may change in a run"
            if "patternProperties" in kept:
                kept["additionalProperties"] = False
            properties[key_of(name)] = kept
        table["properties"] = properties
        if "required" in table:
            table["required"] = [key_of(name) for name in table["required"]]
        return made

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(given)
        except ValidationError as error:
            found = error.errors(include_url=False)
            if any(
                each["type"] == "extra_forbidden" for each in found
            ):  # misspelt: that is said, and not what is missing
                found = [each for each in found if each["type"] != "missing"]
            problems = [cls._reword(each) for each in found]
            raise ValidationError.from_exception_data(cls.__name__, problems) from None

    @classmethod
    def _reword(cls, error: ErrorDetails) -> InitErrorDetails:
        """Return an error of this model, or one of a model in it, which is in words already."""
        what, place, given = error["msg"], error["loc"], error["input"]
        match error["type"]:
            case "setting":
                key = error.get("ctx", {}).get("key")
                place = (*place, key) if key else place
            case "missing":
                what, place = f"the key {place[-1]!r} is missing", place[:-1]
            case "extra_forbidden":
                what = cls.unknown(str(place[-1]))
            case "literal_error" if isinstance(given, str):
                words = re.findall("'([^']*)'", error.get("ctx", {})["expected"])
                hint = cls.hints.get((str(place[-1]), given))
                what = f"unknown value {given!r}{f'; {hint}' if hint else nearest(given, words)}"
            case kind if kind in _EXPECTED:
                what = f"expected {_EXPECTED[kind]}, not {kind_of(given)}"
        return InitErrorDetails(type=wrong(what), loc=place, input=given)


def check_extension(model: type[Settings], more: type[Settings]) -> None:
    """Check that :func:`extend` can add the members of a model to another.

    Raises
    ------
    ValueError
        Another one has a member of that name; a member has no default.
    """
    for name, field in more.model_fields.items():
        if any(name in each.model_fields for each in _models if issubclass(each, model)):
            raise ValueError(f"there is a key {key_of(name)!r} already")
        if field.is_required():
            raise ValueError(f"the key {key_of(name)!r} has no default, and files without it must stay valid")


def extend(model: type[Settings], more: type[Settings]) -> None:
    """Add the members of another model to a model, and so to all that are derived from it."""
    for each in (each for each in _models if issubclass(each, model)):
        each.__pydantic_fields__.update({name: copy(field) for name, field in more.model_fields.items()})
    for each in _models:  # what has one of them inside has its schema inside, too
        each.model_rebuild(force=True)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the error message for an unknown key, with the nearest known one."""
    keys = [*known]
    meant = next((each for each in _MEANT.get(key, ()) if each in keys), "")
    return f"unknown key; did you mean {meant!r}?" if meant else f"unknown key{nearest(key, keys)}"


def fixed_changes(before: Settings, after: Settings) -> Iterator[str]:
    """Yield the keys in which two models of one kind differ and that may not be changed in a run."""
    for name, field in type(before).model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if old == new or in_run(field):
            continue
        if isinstance(old, Settings) and type(old) is type(new):
            yield from (f"{key_of(name)}.{key}" for key in fixed_changes(old, new))
        else:
            yield key_of(name)


def from_document(model: type[S], document: Mapping[str, Any]) -> S:
    """Return a model of a document's table.

    Raises
    ------
    pydantic.ValidationError
        All that is wrong with it; ``loc`` is made of keys of the document.
    """
    return model.model_validate(_tuples(document), context=DOCUMENT, by_alias=True, by_name=False)


def _tuples(value: Any) -> Any:
    """Convert lists to tuples, which frozen models have."""
    if isinstance(value, Mapping):
        return {key: _tuples(inner) for key, inner in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without null, which TOML lacks, and with ``anyOf`` for ``oneOf``: 1 is both an integer and a
    ratio."""
    rest = dict(schema)
    kinds = [kind for kind in (*rest.pop("anyOf", ()), *rest.pop("oneOf", ())) if kind != {"type": "null"}]
    if len(kinds) == 1:
        return rest | _without_null(kinds[0])
    return rest | ({"anyOf": kinds} if kinds else {})


def shown(field: FieldInfo, value: Any = None) -> Any:
    """Return a member's value, or else its default, as one would write it in a document."""
    value = field.default if value is None else value
    quantity = quantity_of(field)
    return quantity.shown(value) if quantity and not isinstance(value, (str, tuple)) else value


@cache
def quantity_of(field: FieldInfo) -> Quantity | None:
    """Return the quantity in a member's type, if there is one."""
    parts: list[Any] = [*field.metadata, field.annotation]
    while parts:
        part = parts.pop(0)
        if isinstance(part, Quantity):
            return part
        parts += [*getattr(part, "__metadata__", ()), *get_args(part)]
    return None
