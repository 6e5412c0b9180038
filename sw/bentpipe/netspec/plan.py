"""Meaning of a script: its connections, and when each starts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bentpipe.apps import settings as forms
from bentpipe.apps.draws import DISTRIBUTIONS
from bentpipe.apps.registry import APPLICATIONS, COMMON
from bentpipe.apps.settings import ApplicationSpec, AppSetting
from bentpipe.netspec.language import (
    BLOCKS,
    CONNECTIONS,
    HOST_ARGUMENTS,
    PARAMETERS,
    PROTOCOLS,
    TESTS,
    Argument,
    Test,
)
from bentpipe.netspec.models import MODELS, PARAMETERS_OF, PLAIN, Model
from bentpipe.netspec.syntax import Block, Call, Pair, Parameter, Place, Quantity, Range, Script, Value, Word, parse
from bentpipe_hdl.units import format_time, parse_size, parse_time
from bentpipe_hdl.words import nearest

__all__ = ["Connection", "FlowGroup", "read_script", "summary"]

_MAX_BUFFER: Final = 2**30 - 1
_MAX_TIME_PS: Final = 10**15
_GROUPS: Final = {name: block.name for block in BLOCKS for name in (block.name, *block.also)}
_CALLS: Final = 4
"""Calls for each block inside another."""
_MOST_LEVELS: Final = 100
_LEAVES: Final = tuple(word.name for word in CONNECTIONS)
_ADDRESS: Final = re.compile(r"\d+(\.\d+){3}")


def _tests() -> dict[str, Test]:
    return {test.name: test for test in TESTS}


@dataclass(frozen=True, slots=True)
class Connection:
    """One flow.

    Members
    -------
    transmit, receive : str
        Hosts, as the script names them.
    app : str
        An application of :mod:`bentpipe.apps.registry`, with its ``settings`` (None: not given).
    ends : bool
        These make it end by itself.
    variant, send_buffer, receive_buffer, datagram, size, duration_ps : str, int or None
        None: not given.
    place : Place
        Where it stands; ``places`` has those of its parameters.
    """

    name: str
    transmit: str
    receive: str
    protocol: str
    app: str
    settings: dict[str, Any]
    ends: bool
    variant: str | None
    send_buffer: int | None
    receive_buffer: int | None
    datagram: int | None
    size: int | None
    duration_ps: int | None
    delay_ps: int
    place: Place
    places: dict[str, Place]

    def where(self, name: str) -> Place:
        return self.places.get(name, self.place)


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """Connections and groups that start together, or (``serial``) each when the one before has ended."""

    serial: bool
    delay_ps: int
    members: tuple[FlowGroup | Connection, ...]

    def connections(self) -> Iterator[Connection]:
        left: list[FlowGroup | Connection] = [self]
        while left:
            member = left.pop()
            if isinstance(member, Connection):
                yield member
            else:
                left += reversed(member.members)


Given = dict[str, tuple[Any, Place]]
"""What is given, in base units, by the name of the parameter (of tests: by ``test.`` and the argument)."""


def read_script(script: Script) -> FlowGroup:
    """Return the connections of a script and their order.

    Raises
    ------
    ConfigError
        With file, line, column, and the line, if the script is not right.
    """
    tree = parse(script)
    reader = _Reader(script)
    if tree.kind in _LEAVES:
        return FlowGroup(False, 0, tuple(reader.members((tree,), {})))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _CALLS * _depth(tree))  # calls of Python need no C stack, so that this is safe
    try:
        return reader.group(tree, {})
    finally:
        sys.setrecursionlimit(limit)


def _depth(tree: Block) -> int:
    """Return the depth to which blocks are nested."""
    level, depth = [tree], 0
    while level:
        depth += 1
        level = [member for block in level for member in block.members if isinstance(member, Block)]
    return depth


def _levels(group: FlowGroup) -> int:
    """Return the depth to which groups are nested."""
    level, depth = [group], 0
    while level:
        depth += 1
        level = [member for each in level for member in each.members if isinstance(member, FlowGroup)]
    return depth


def _joined(serial: bool, delay_ps: int, members: Sequence[FlowGroup | Connection]) -> FlowGroup:
    """Return a group without blocks that change nothing: the only block of another, and one of the same kind without a
    delay."""
    first = members[0]
    if len(members) == 1 and isinstance(first, FlowGroup):
        return replace(first, delay_ps=delay_ps + first.delay_ps)
    parts: list[FlowGroup | Connection] = []
    for member in members:
        same = isinstance(member, FlowGroup) and member.serial == serial and not member.delay_ps
        parts += member.members if isinstance(member, FlowGroup) and same else [member]
    return FlowGroup(serial, delay_ps, tuple(parts))


def summary(plan: FlowGroup) -> str:
    """Return a script in a few words."""
    connections = [*plan.connections()]
    hosts = sorted({host for c in connections for host in (c.transmit, c.receive)})
    apps = [c.app for c in connections]
    kinds = ", ".join(f"{apps.count(app)} {app}" for app in sorted(set(apps)))
    plural = "" if len(connections) == 1 else "s"
    return f"{len(connections)} connection{plural} ({kinds}) between {len(hosts)} hosts: {', '.join(hosts)}"


def _host_name(text: str) -> str:
    """Return a host's name without its domain; an address as it is."""
    return text if _ADDRESS.fullmatch(text) else text.partition(".")[0]


def _key(argument: Argument) -> str:
    """Return the name under which the value of a test's argument is kept."""
    setting = argument.setting
    return argument.name if setting is None or setting in COMMON else f"test.{setting.name}"


def _plain(number: str) -> float:
    value = float(number)
    return int(value) if value.is_integer() else value


def _inherit(above: Given, own: Given) -> Given:
    """Return the parameters of a block: its own, and inherited ones that belong to no other test or protocol."""
    left = dict(above)
    if "test" in own:
        left = {key: value for key, value in left.items() if key.partition(".")[0] != "test"}
    if "protocol" in own and own["protocol"][0] != left.get("protocol", ("tcp",))[0]:
        left = {key: value for key, value in left.items() if key not in ("xmtbuf", "rcvbuf", "variant", "datagram")}
    return left | own


class _Reader:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.count = 0
        self.names: dict[str, Place] = {}

    def group(self, block: Block, above: Given) -> FlowGroup:
        if block.kind not in _GROUPS:
            raise self._unknown(block.place, "block", block.kind, (*_GROUPS, *_LEAVES))
        own = self._parameters(p for p in block.members if isinstance(p, Parameter))
        delay = own.pop("delay", (0, block.place))[0]
        members = self.members([m for m in block.members if isinstance(m, Block)], _inherit(above, own))
        if not members:
            raise self.script.error(block.place, f"this {block.kind} has no connection in it")
        serial = _GROUPS[block.kind] == "serial"
        if serial:
            self._check_ends(members)
        made = _joined(serial, delay, members)
        if len(made.members) > 1 and _levels(made) > _MOST_LEVELS:
            what = f"more than {_MOST_LEVELS} serial and parallel blocks by turns inside each other"
            raise self.script.error(block.place, what)
        return made

    def members(self, blocks: Sequence[Block], above: Given) -> list[FlowGroup | Connection]:
        """Return the connections and groups of blocks, each source of an ITTC script with its sink."""
        found: list[FlowGroup | Connection] = []
        sinks: list[tuple[Block, Given]] = []
        sources: list[int] = []
        for block in blocks:
            if block.kind not in _LEAVES:
                found.append(self.group(block, above))
                continue
            given = _inherit(above, self._parameters(self._only_parameters(block)))
            test = given.get("test")
            if test is not None and test[0] == "sink":
                if block.kind != "test":
                    raise self.script.error(test[1], "a connection has its sink by itself; 'sink' is for 'test' blocks")
                sinks.append((block, given))
                continue
            if block.kind == "test":
                sources.append(len(found))
            found.append(self._connection(block, given))
        for block, given in sinks:
            self._pair(block, given, found, sources)
        return found

    def _only_parameters(self, block: Block) -> Iterator[Parameter]:
        for member in block.members:
            if isinstance(member, Block):
                raise self.script.error(member.place, f"a {block.kind} has no blocks in it")
            yield member

    def _pair(self, block: Block, given: Given, found: list[FlowGroup | Connection], sources: list[int]) -> None:
        """Give the sink's receive buffer to its source."""
        own, peer = (given.get(name) for name in ("transmit", "receive"))
        for index in sources:
            source = found[index]
            assert isinstance(source, Connection)
            if own and peer and (source.receive, source.transmit) == (own[0], peer[0]):
                sources.remove(index)
                if "rcvbuf" in given:
                    found[index] = replace(source, receive_buffer=given["rcvbuf"][0])
                return
        raise self.script.error(block.place, "this sink has no source: no test from its peer to its own host")

    def _check_ends(self, members: Sequence[FlowGroup | Connection]) -> None:
        for member in members[:-1]:
            for connection in [member] if isinstance(member, Connection) else member.connections():
                if connection.size is None and connection.duration_ps is None and not connection.ends:
                    raise self.script.error(
                        connection.place,
                        "never ends, so what follows in the serial block never starts; give a duration or size",
                    )

    def _connection(self, block: Block, given: Given) -> Connection:
        self.count += 1
        name = block.name or f"flow{self.count}"
        if name in self.names:
            name = f"{name}-{self.count}"
        self.names[name] = block.place
        for parameter in ("transmit", "receive"):
            if parameter not in given:
                raise self.script.error(block.place, f"the parameter {parameter!r} is missing")
        protocol = given.get("protocol", ("tcp", block.place))[0]
        if protocol == "udp":
            for key in ("xmtbuf", "rcvbuf"):
                if key in given:
                    raise self.script.error(given[key][1], f"{key!r} requires protocol = tcp")
        elif "datagram" in given:
            raise self.script.error(given["datagram"][1], "'datagram' requires protocol = udp")
        kind, settings = self._application(given, block.place)
        values: dict[str, Any] = {
            key: given[key][0] if key in given else None for key in ("xmtbuf", "rcvbuf", "datagram", "size", "duration")
        }
        return Connection(
            name=name,
            transmit=given["transmit"][0],
            receive=given["receive"][0],
            protocol=protocol,
            app=kind.name,
            settings=settings,
            ends=kind.ends(settings),
            variant=given["variant"][0] if "variant" in given else None,
            send_buffer=values["xmtbuf"],
            receive_buffer=values["rcvbuf"],
            datagram=values["datagram"],
            size=values["size"],
            duration_ps=values["duration"],
            delay_ps=given.get("delay", (0, block.place))[0],
            place=block.place,
            places={key: place for key, (_, place) in given.items()},
        )

    def _application(self, given: Given, default: Place) -> tuple[ApplicationSpec, dict[str, Any]]:
        """Return the application that makes a test's traffic, and its settings."""
        name, place = given.get("test", ("full", default))
        test = _tests()[name]
        assert test.kind is not None and test.test is not None
        settings = {key.removeprefix("test."): value for key, (value, _) in given.items() if key.startswith("test.")}
        settings |= test.test.fixed
        kind = test.kind
        if test.test.read is not None:
            try:
                app, settings, size = test.test.read(settings)
            except ValueError as error:
                raise self.script.error(place, str(error)) from None
            if size is not None:
                given.setdefault("size", (size, place))
            kind = APPLICATIONS[app]
        return kind, {setting.name: settings.get(setting.name) for setting in kind.settings}

    def _parameters(self, parameters: Iterable[Parameter]) -> Given:
        given: Given = {}
        for parameter in parameters:
            argument = self._find(parameter, PARAMETERS, "parameter")
            value = parameter.value
            if argument.kind == "protocol":
                self._protocol(value, given)
            elif argument.kind == "test":
                self._test(value, given)
            elif argument.name in HOST_ARGUMENTS and isinstance(value, Call):
                self._put(given, argument.name, _host_name(value.name), parameter.place)
                for own in value.arguments:
                    known = self._find(own, HOST_ARGUMENTS[argument.name], f"argument of {argument.name}")
                    self._put(given, known.name, self._value(known, own.value), own.place)
            else:
                self._put(given, argument.name, self._value(argument, value), parameter.place)
        if "test" in given and "protocol" not in given:
            name, place = given["test"]
            kind = _tests()[name].kind
            if kind is not None and "tcp" not in kind.protocols:
                given["protocol"] = (kind.protocols[0], place)
        return given

    def _put(self, given: Given, name: str, value: Any, place: Place) -> None:
        for key in ("xmtbuf", "rcvbuf") if name == "window" else (name,):
            if key in given:
                raise self.script.error(place, f"{name!r} is given twice")
            given[key] = (value, place)

    def _protocol(self, value: Value, given: Given) -> None:
        name, arguments = self._call(value)
        if name not in PROTOCOLS:
            raise self._unknown(value.place, "protocol", name, PROTOCOLS)
        self._put(given, "protocol", name, value.place)
        for parameter in arguments:
            argument = self._find(parameter, PROTOCOLS[name], f"argument of {name}")
            self._put(given, argument.name, self._value(argument, parameter.value), parameter.place)

    def _test(self, value: Value, given: Given) -> None:
        name, arguments = self._call(value)
        known = _tests()
        if name not in known:
            raise self._unknown(value.place, "test", name, known)
        test: Test = known[name]
        self._put(given, "test", name, value.place)
        for parameter in arguments:
            argument = self._find(parameter, test.arguments, f"argument of {name}")
            self._put(given, _key(argument), self._value(argument, parameter.value), parameter.place)
        for argument in test.arguments:
            if argument.required and _key(argument) not in given:
                raise self.script.error(value.place, f"{name} needs {' or '.join((argument.name, *argument.also))}")

    def _call(self, value: Value) -> tuple[str, tuple[Parameter, ...]]:
        if isinstance(value, Call):
            return value.name, value.arguments
        if isinstance(value, Word):
            return value.text, ()
        raise self.script.error(value.place, "expected a word")

    def _find(self, parameter: Parameter, known: Sequence[Argument], what: str) -> Argument:
        for argument in known:
            if parameter.name == argument.name or parameter.name in argument.also:
                return argument
        words = [word for argument in known for word in (argument.name, *argument.also)]
        raise self._unknown(parameter.place, what, parameter.name, words)

    def _unknown(self, place: Place, what: str, word: str, known: Iterable[str]) -> Exception:
        return self.script.error(place, f"unknown {what} {word!r}{nearest(word, known)}")

    def _value(self, argument: Argument, value: Value) -> Any:
        match argument.kind:
            case "host":
                host = value.first if isinstance(value, Pair) else value
                if not isinstance(host, Word):
                    raise self.script.error(value.place, "expected the name of a host")
                return _host_name(host.text)
            case "choice":
                return self._choice(argument, value)
            case "size":
                high = _MAX_BUFFER if argument.name in ("xmtbuf", "rcvbuf", "window") else 2**50
                return self._quantity(value, parse_size, "", 1, high)
            case "time":
                return self._quantity(
                    value, parse_time, argument.unit, 0 if argument.name == "delay" else 1, _MAX_TIME_PS
                )
        setting = argument.setting
        assert setting is not None
        if setting.choices:
            return self._choice(argument, value)
        count = 1
        if setting.form == forms.BLOCKS and isinstance(value, Pair):
            count = self._quantity(value.second, parse_size, "", 1, 10**6)
            value = value.first
        try:
            found = setting.read(self._raw(setting, value))
        except ValueError as error:
            raise self.script.error(value.place, error.args[0]) from None
        return (*found, count) if setting.form == forms.BLOCKS and isinstance(found, tuple) else found

    def _choice(self, argument: Argument, value: Value) -> str:
        if not isinstance(value, Word) or value.text not in argument.choices:
            text = value.text if isinstance(value, Word) else ""
            raise self.script.error(value.place, f"unknown value{nearest(text, argument.choices)}")
        return value.text

    def _raw(self, setting: AppSetting, value: Value) -> Any:
        """Return a value as in an experiment's file."""
        if isinstance(value, Quantity):
            unit = value.unit or setting.unit
            return f"{value.number} {unit}" if unit else _plain(value.number)
        if setting.form and isinstance(value, Range):
            return [self._raw(setting, value.low), self._raw(setting, value.high)]
        if setting.form and isinstance(value, (Call, Word)):
            name, arguments = self._call(value)
            if setting.form == forms.BOUNDS and name != "uniform":
                raise self._unknown(value.place, "distribution", name, ("uniform",))
            return self._distribution(setting, name, arguments, value.place)
        raise self.script.error(value.place, "expected a number")

    def _distribution(self, setting: AppSetting, name: str, arguments: Sequence[Parameter], place: Place) -> Any:
        """Return a distribution, or a model of a source's traffic, as an experiment's file would have it."""
        model = MODELS.get(name.lower())
        if model is None and name not in DISTRIBUTIONS:
            raise self._unknown(place, "distribution", name, (*DISTRIBUTIONS, *(m.name for m in MODELS.values())))
        base = name if model is None else model.distribution
        given: dict[str, Any] = {}
        for parameter in arguments:
            word = PARAMETERS_OF.get((base, parameter.name), parameter.name)
            if word in given:
                raise self.script.error(parameter.place, f"{parameter.name!r} is given twice")
            given[word] = self._parameter_of(setting, parameter)
        if model is not None:
            given = self._with_defaults(setting, model, place) | given
        if base != "uniform":
            return {"distribution": base, **given}
        if sorted(given) != ["max", "min"]:
            raise self.script.error(place, "uniform has the arguments min and max")
        return [given["min"], given["max"]]

    def _with_defaults(self, setting: AppSetting, model: Model, place: Place) -> dict[str, Any]:
        """Return the parameters of a model, with defaults for those that a script leaves out."""
        of = getattr(setting.of, "name", "")
        if model.of and model.of != of:
            raise self.script.error(place, f"{model.name} draws a {model.of}, and {setting.words()[0]!r} is a {of}")
        return dict(model.defaults)

    def _parameter_of(self, setting: AppSetting, parameter: Parameter) -> Any:
        """Return a parameter of a distribution: a quantity as the setting's, or a plain number."""
        value = parameter.value
        if not isinstance(value, Quantity):
            raise self.script.error(value.place, "expected a number")
        if parameter.name in PLAIN and not value.unit:
            return _plain(value.number)
        if parameter.name == "lambda":
            rate = float(value.number)
            if value.unit or rate <= 0:
                raise self.script.error(value.place, "lambda is a number above 0: so many in a unit of what is drawn")
            return f"{1 / rate!r} {setting.unit}" if setting.unit else max(1, round(1 / rate))
        return self._raw(setting, value)

    def _quantity(self, value: Value, read: Callable[[object], int], unit: str, low: int, high: int) -> int:
        if not isinstance(value, Quantity):
            raise self.script.error(value.place, "expected a number")
        try:
            number = read(f"{value.number} {value.unit or unit}".strip() if value.unit or unit else float(value.number))
        except ValueError as error:
            raise self.script.error(value.place, str(error)) from None
        if not low <= number <= high:
            limits = (format_time(low), format_time(high)) if read is parse_time else (low, high)
            raise self.script.error(
                value.place, f"{value.number} {value.unit} is out of range {limits[0]} to {limits[1]}"
            )
        return number
