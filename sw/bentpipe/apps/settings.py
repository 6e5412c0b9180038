"""The declaration of an application: one entry gives TOML's keys, NetSpec's words, tables and documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.apps.draws import DISTRIBUTIONS, Distribution
from bentpipe.declarations import Setting
from bentpipe_hdl.units import COUNT, NUMBER, SIZE, TIME, Quantity
from bentpipe_hdl.words import nearest

if TYPE_CHECKING:
    from bentpipe.apps.app import Application

__all__ = [
    "BARE",
    "BLOCKS",
    "BOUNDS",
    "DRAWN",
    "MODELLED",
    "OCTETS",
    "SPAN",
    "TIMES",
    "AppSetting",
    "ApplicationSpec",
    "Column",
    "FlowRequest",
    "Problem",
    "Report",
    "Test",
]

OCTETS: Final = SIZE.within(1, 2**30)
"""Octets of a block or a write."""
SPAN: Final = TIME.within("1 us", 10**15)
"""Time between two events: at least that of a cell on any line but the fastest, so that simulated time advances."""
TIMES: Final = COUNT.within(1, 10**6)
"""How many."""

BARE: Final = frozenset({"atm", "oam"})
"""Protocols of flows whose cells carry no user's data: such flows have no goodput."""

BOUNDS: Final = "bounds"
"""One value, or two between which each is as likely."""
DRAWN: Final = "drawn"
"""One value, two bounds, or a :class:`~bentpipe.apps.draws.Distribution`."""
BLOCKS: Final = "blocks"
"""In NetSpec: one size, a size and a count, two bounds, or a distribution."""
MODELLED: Final = "modelled"
"""In NetSpec: one value, two bounds, or a distribution."""

Problem = tuple[str, str] | None
"""The key that is wrong ("" for none) and why; None if nothing is."""


@dataclass(frozen=True)
class AppSetting(Setting):
    """One setting of an application, or one argument of NetSpec that becomes one.

    Members
    -------
    default : Any
        What is drawn has none, or must be given.
    form : str
        "" for one value; :data:`BOUNDS`, :data:`DRAWN`, :data:`BLOCKS`, :data:`MODELLED`.
    word, also : str, tuple of str
        Its name in NetSpec if that is another one, and other names there.
    unit : str
        In NetSpec, of a number without one.
    ends : bool
        A flow that has it ends by itself.
    """

    form: str = ""
    word: str = ""
    also: tuple[str, ...] = ()
    unit: str = ""
    ends: bool = False

    def __post_init__(self) -> None:
        if self.form == DRAWN and self.default is not None and not self.required:
            raise ValueError(f"{self.name}: a random value cannot have a default")

    def words(self) -> tuple[str, ...]:
        """Return the names of the setting in NetSpec."""
        return (self.word or self.name, *self.also)

    def read(self, given: object, document: bool = True) -> Any:
        if not self.form or not isinstance(self.of, Quantity):
            return super().read(given, document)
        if self.form in (DRAWN, BLOCKS, MODELLED):
            if isinstance(given, Mapping):
                return _distribution(self.of, given)
            if isinstance(given, Distribution):
                return given
        both = given if isinstance(given, (list, tuple)) else [given, given]
        if len(both) != 2:
            raise ValueError("give one value, or a list of the lower and the upper bound")
        low, high = self._bounds(self.of, both, document)
        if high < low:
            raise ValueError("lower bound above upper bound")
        if self.form in (BOUNDS, BLOCKS, MODELLED):
            return low, high
        return Distribution("constant", low) if low == high else Distribution("uniform", low, float(high))

    def _bounds(self, of: Quantity, both: Sequence[object], document: bool) -> list[Any]:
        found, problems = [], []
        for one in both:
            try:
                found.append(of.check(one, document))
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise ValueError(*problems[: 1 if self.form == DRAWN else None])
        return found

    def show(self, value: Any) -> str:
        """Return a value in words."""
        if not isinstance(self.of, Quantity):
            return value
        show = self.of.shown
        if isinstance(value, Distribution):
            first, *rest = DISTRIBUTIONS[value.name]
            if value.name == "constant":
                return str(show(value.first))
            if value.name == "uniform":
                return f"{show(value.first)} to {show(int(value.second))}"
            parts = [f"{first} {show(value.first)}", *(f"{name} {value.second:g}" for name in rest)]
            if value.most:
                parts.append(f"most {show(value.most)}")
            if value.least:
                parts.append(f"least {show(value.least)}")
            return f"{value.name} ({', '.join(parts)})"
        return " to ".join(str(show(v)) for v in value) if isinstance(value, tuple) else str(show(value))


def _distribution(of: Quantity, given: Mapping[str, Any]) -> Distribution:
    """Return a distribution as TOML and NetSpec write it: its name and its parameters."""
    name = given.get("distribution")
    if name not in DISTRIBUTIONS:
        wrong = "a distribution is missing;" if name is None else f"unknown distribution {name!r};"
        raise ValueError(f"{wrong} known: {', '.join(DISTRIBUTIONS)}")
    parameters = DISTRIBUTIONS[str(name)]
    values: dict[str, float] = {"most": 0, "least": 0}
    for key, value in given.items():
        if key == "distribution":
            continue
        if key not in (*parameters, "most", "least"):
            raise ValueError(f"{name} has no parameter {key!r}{nearest(key, (*parameters, 'most', 'least'))}")
        values[key] = (NUMBER if key in ("sigma", "shape", "scene") else of).check(value, document=True)
    if any(key not in values for key in parameters):
        raise ValueError(f"{name} needs {' and '.join(parameters)}")
    first, *second = (values[key] for key in parameters)
    return Distribution(str(name), int(first), float(sum(second)), int(values["most"]), int(values["least"]))


@dataclass(frozen=True)
class FlowRequest:
    """The settings that an experiment gives for one flow.

    Members
    -------
    protocol : str
    values : Mapping
        Value of every setting of the application.
    size : int or None
    duration_ps : int
        0: none.
    datagram : int or None
    mtu : int
        The smaller MTU of the two hosts.
    interface_queue : int
        Queue of the source's interface.
    seed, number : int
        The experiment's seed, and the flow's number in it: random numbers depend on both.
    sinks : int
        Number of receiving hosts.
    folder : Path or None
        Folder of the experiment's file; names of files are relative to it.
    """

    protocol: str
    values: Mapping[str, Any]
    size: int | None = None
    duration_ps: int = 0
    datagram: int | None = None
    mtu: int = 9180
    interface_queue: int = 0
    seed: int = 1
    number: int = 0
    sinks: int = 1
    folder: Path | None = None


@dataclass(frozen=True)
class Column:
    """A figure that an application reports, a column of ``flows.parquet`` and a metric ``FLOW.NAME``.

    Members
    -------
    name : str
    unit : str
        ``ps``, ``1/s``, or "" for a plain number or a text.
    text : str
    head : str
        Its column in the table of a run; "": it is not there.
    words : str
        In figures and tables of sweeps; "": the head, or else the name.
    ratio : bool
        It spans decades: written with significant digits, drawn on a logarithmic axis.
    """

    name: str
    unit: str
    text: str
    head: str = ""
    words: str = ""
    ratio: bool = False


@dataclass(frozen=True)
class Report:
    """The figures that an application reports, and the table of a run that shows them.

    Members
    -------
    title : str
    columns : tuple of Column
    shown_with : tuple of str
        The table has a flow only if one of these figures is not 0; empty: it has every flow.
    label : str
        A figure shown after the application's name.
    """

    title: str
    columns: tuple[Column, ...]
    shown_with: tuple[str, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class Test:
    """A name of NetSpec for traffic that the application makes.

    Members
    -------
    name, text : str
    arguments : tuple of AppSetting or None
        What it takes, beside size and duration; None: the application's settings.
    read : callable or None
        From these by name: the name of the application, its settings, and the size or None; ValueError says what is
        wrong. None: the application's own, as they are.
    fixed : Mapping
        Arguments that it does not take, as their values are these.
    """

    name: str
    text: str
    arguments: tuple[AppSetting, ...] | None = None
    read: Callable[[Mapping[str, Any]], tuple[str, dict[str, Any], int | None]] | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)


def _right(given: FlowRequest) -> Problem:
    return None


@dataclass(frozen=True)
class ApplicationSpec:
    """An application.

    Members
    -------
    name, text : str
    settings : tuple of AppSetting
    make : callable
        The application of one flow; it has been checked.
    check : callable
        What is wrong with settings that are each right.
    protocols : tuple of str
        Transport protocols of the application; the first one is the default of a flow.
    takes : tuple of str
        Those of :data:`~bentpipe.apps.registry.COMMON` that it has. A size is refused where it is not taken, a duration
        means nothing.
    tests : tuple of Test
        Its names in NetSpec.
    report : Report or None
    answers : bool
        The sink sends something back.
    """

    name: str
    text: str
    settings: tuple[AppSetting, ...]
    make: Callable[[FlowRequest], Application]
    check: Callable[[FlowRequest], Problem] = _right
    protocols: tuple[str, ...] = ("tcp", "udp")
    takes: tuple[str, ...] = ("size", "duration")
    tests: tuple[Test, ...] = ()
    report: Report | None = None
    answers: bool = False
    by_name: dict[str, AppSetting] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {setting.name: setting for setting in self.settings})

    def defaults(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of every setting: the given one, or the default."""
        values = {}
        for setting in self.settings:
            value = given.get(setting.name)
            values[setting.name] = setting.default if value is None else value
        return values

    def ends(self, given: Mapping[str, Any]) -> bool:
        """Return whether a flow with these settings ends by itself, whatever its size and duration."""
        return any(given.get(setting.name) is not None for setting in self.settings if setting.ends)

    def settings_text(self, values: Mapping[str, Any]) -> str:
        """Return the settings that are given, in words: ``(block 18.6 kB, period 30 ms)``."""
        parts: list[str] = []
        for setting in self.settings:
            value = values[setting.name]
            if value is None or (value == setting.default and not setting.measured):
                continue
            parts.append(f"{setting.name} {setting.show(value)}")
        return f"({', '.join(parts)})" if parts else ""
