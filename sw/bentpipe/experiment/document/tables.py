"""The document that an experiment is: every table and key with its unit, range, default, and what it says.

This is the first of three steps from a file to an experiment: each table by itself. What one says of another is for
:mod:`bentpipe.experiment.resolve.parse`, and what changes a document for :mod:`bentpipe.experiment.load`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails

from bentpipe.apps.registry import APPLICATIONS, KEYS
from bentpipe.apps.settings import ApplicationSpec
from bentpipe.declarations import Setting
from bentpipe.experiment.document.assign import over
from bentpipe.experiment.document.declared import DeclaredTable, schema_of
from bentpipe.experiment.document.tcp_options import TcpTable
from bentpipe.hosts.config import ContinuitySettings, HostSettings
from bentpipe.results.declared import metrics_of
from bentpipe.results.splitting import LEAST_BATCHES
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings, PacingSettings
from bentpipe_hdl.settings import (
    BER,
    COUNT,
    IN_RUN,
    NUMBER,
    PPM,
    SIZE,
    TIME,
    Length,
    Number,
    Pattern,
    Rate,
    Settings,
    Words,
    key_of,
    one_or_list,
    shown,
    unknown_key,
    wrong,
)
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings, VcSettings
from bentpipe_hdl.switch.options import OPTIONS
from bentpipe_hdl.units import LINE_RATES
from bentpipe_hdl.words import kind_of, nearest

__all__ = [
    "CLOCK_TOLERANCE_PPM",
    "LEAST_EFFORT",
    "METRICS",
    "SERIES",
    "AxisTable",
    "CaseTable",
    "Cases",
    "Document",
    "EventTable",
    "ExpectTable",
    "Face",
    "FlowTable",
    "HostTable",
    "HostsTable",
    "LineTable",
    "LossTable",
    "NetworkTable",
    "ProfileTable",
    "PublishedTable",
    "RecordTable",
    "SplittingTable",
    "SwitchTable",
    "TheoryTable",
    "TrafficTable",
    "VcTable",
    "VpTable",
    "defaults",
    "json_schema",
]  # fmt: skip

SERIES: Final = {
    "goodput": "octets that the sink's application got (`FLOW.delivered`), from which plots make a rate",
    "cwnd": "congestion window, octets",
    "ssthresh": "slow-start threshold, octets",
    "una": "oldest octet not acknowledged",
    "rtt": "round trips as measured, ps",
    "lost": "datagrams lost so far (UDP), as the loss ledger counts them",
    "queue": "cells in each switch's buffer",
    "drops": "cells dropped so far, of each switch by reason",
    "events": "retransmissions, time-outs and what else happens to a flow, each with its time",
    "segments": "an event for each data segment sent, and a plot of them; only if it is named",
    **{name: text for option in OPTIONS for name, text in option.series.items()},
}
"""What can be recorded."""

METRICS: Final = {**{metric.name: metric.text for metric in metrics_of("run")}, "none": "no figure of ours"}
"""Figures of ours that a published one can be compared with."""

LEAST_EFFORT: Final = 50
"""Trials from a level: with 12 an interval of 95 % has the truth in it in 86 of 100 runs only (``tb/soak/rare.py``)."""

CLOCK_TOLERANCE_PPM: Final = 20.0
"""Tolerance of a line's clocks if none is given: that of SONET (:mod:`bentpipe.experiment.resolve.clocks`)."""

MAX_CLOCK_TOLERANCE_PPM: Final = 320.0

_APP: Final = "ttcp"
"""The application of a flow that names none."""
_LINES = Literal["cell", "sonet"]
_DELAY: Final = TIME.within(0, "1 s")
_TOLERANCE: Final = PPM.within(0.0, MAX_CLOCK_TOLERANCE_PPM)
_NUMBERS: Final = COUNT.within(1, 2**32 - 1, beyond="{given!r} is not a number from 1 on")
Name = Annotated[str, Pattern(r"[\w-]+", "a name has letters, digits, - and _ only")]


@dataclass(frozen=True, slots=True)
class Face:
    """One port of a switch."""

    switch: str
    port: int

    def __str__(self) -> str:
        return f"{self.switch}:{self.port}"


def _face(given: object) -> object:
    if not isinstance(given, str):
        raise wrong(f"expected a text, not {kind_of(given)}")
    name, _, port = given.partition(":")
    if not (name and port.isascii() and port.isdigit()):
        raise wrong(f'{given!r} is not a port; write "switch:port", as "west:0"')
    return Face(name, int(port))


Port = Annotated[
    Face, BeforeValidator(_face), WithJsonSchema({"type": "string", "pattern": r"^[\w-]+:\d+$", "title": "switch:port"})
]


class ExperimentTable(Settings):
    """What the experiment is called, where it is from, how long it runs."""

    id: Annotated[
        str, Pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "{given!r} is not a name of letters, digits, '.', '_' and '-'")
    ] = Field(description="its name; run folders are called after it")
    title: str = Field(description="a line that says what it is")
    paper: str = Field(default="", description="the paper that it rebuilds")
    figure: str = Field(default="", description="figure or table there")
    description: str = Field(default="", description="what it shows, in some sentences")
    duration_ps: Annotated[int, TIME.within("1 us", "100000 s")] = Field(description="simulated at most")
    quick_ps: Annotated[int, TIME.within("1 us", "100000 s")] | None = Field(
        default=None, description="simulated with `--quick`"
    )
    seed: Annotated[int, COUNT.within(0, 2**32 - 1)] = Field(default=1, description="of every random choice")
    axis: str = Field(default="", description="what the places (`at`) of the cases are on")
    shows: tuple[str, ...] = Field(
        default=(), description="the figures in the plot over the cases; `aggregate_goodput` unless given"
    )


class SwitchTable(SwitchSettings):
    """A switch: one network module with a shared cell buffer."""

    ports: Annotated[
        Annotated[int, COUNT.within(1, 16), Tag("|one")]
        | Annotated[tuple[Rate, ...], Length(1, 16, "a switch has 1 to 16 ports, not {count}"), Tag("|list")],
        Discriminator(one_or_list),
    ] = Field(default=4, description="how many, or the rate that each sends at; that of its line unless given")


class LineTable(LinkSettings, PortSettings):
    """A line between two switches, both ways: of its own, and of the ports that send into it."""

    ends: Annotated[tuple[Port, ...], Length(2, 2, "a line has two ends, not {count}")] = Field(
        description="the two ports; the same twice: a line in loop-back, which brings back to the port what it sends"
    )
    rate_bps: Rate | None = Field(
        default=None, description="that of its ports unless given, else OC-3c", json_schema_extra=IN_RUN
    )
    ber: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]  # of one way there
        Annotated[float, BER, Tag("|one")]
        | Annotated[
            tuple[Annotated[float, BER], ...],
            Length(2, 2, "give one error ratio, or two: from the first end to the second, and back"),
            Tag("|list"),
        ],
        Discriminator(one_or_list),
    ] = Field(
        default=0,
        description="bit error ratio: one, or one from the first end to the second and one back",
        json_schema_extra=IN_RUN,
    )
    outage: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        Annotated[bool, Tag("|one")]
        | Annotated[
            tuple[bool, ...],
            Length(2, 2, "give one value, or two: from the first end to the second, and back"),
            Tag("|list"),
        ],
        Discriminator(one_or_list),
    ] = Field(
        default=False,
        description="nothing passes: one, or one from the first end to the second and one back",
        json_schema_extra=IN_RUN,
    )
    line: _LINES | None = Field(default=None, description="as in `[network]`, for this line")
    clock_tolerance_ppm: Annotated[float, _TOLERANCE] | None = Field(
        default=None, description="as in `[network]`, for this line"
    )
    ppm: Annotated[float, NUMBER.within(-320.0, 320.0, name="ppm")] = Field(
        default=0.0,
        description="of a SONET line: its payload is so much slower at the first end, faster at the second",
    )

    back: Annotated[PortSettings, WithJsonSchema({"type": "object"})] | None = Field(
        default=None,
        description="what is otherwise at the port of the second end; what isn't given is as at the first, key by key",
    )

    @model_validator(mode="before")
    @classmethod
    def _back_as_out(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("back"), dict):
            keys = map(key_of, PortSettings.model_fields)
            return given | {"back": over({key: given[key] for key in keys if key in given}, given["back"])}
        return given

    def port(self, end: int) -> PortSettings:
        """What the port at its first end (0) or second one (1) has."""
        return self.back if end and self.back is not None else PortSettings.part_of(self)

    @property
    def errors(self) -> tuple[float, float]:
        """Bit error ratio out and back."""
        out, back = self.ber if isinstance(self.ber, tuple) else (self.ber, self.ber)
        return float(out), float(back)

    @property
    def outages(self) -> tuple[bool, bool]:
        """Whether there is an outage, out and back."""
        out, back = self.outage if isinstance(self.outage, tuple) else (self.outage, self.outage)
        return out, back


class HostsTable(HostSettings, NicSettings):
    """What all hosts share."""

    cost_ps: Annotated[int, _DELAY] | None = Field(
        default=None,
        description="processor time of a segment sent and of one received where those aren't given",
    )
    tcp: TcpTable = Field(default=TcpTable(), description="the settings of TCP")


class HostTable(HostSettings, NicSettings, PortSettings):
    """A host, and its line to a switch, with what the switch's port to it has; what isn't given is that of `[hosts]`.

    A host's own profile goes before what `[hosts]` says of cost and clock.
    """

    port: Port = Field(description="the switch and its port that the host is at")
    rate_bps: Rate = Field(default=LINE_RATES["OC-3c"], description="of its line")
    delay_ps: Annotated[int, _DELAY] = Field(default=0, description="of its line, one way")
    line: _LINES | None = Field(default=None, description="as in `[network]`, for its line")
    line_clock_tolerance_ppm: Annotated[float, _TOLERANCE] | None = Field(
        default=None, description="`clock_tolerance` of `[network]`, for its line"
    )
    cost_ps: Annotated[int, _DELAY] | None = Field(default=None, description="as in `[hosts]`")


class VpTable(VcSettings):
    """A virtual path, both ways. VCs whose paths have it as a part go through it; the switches between its ends look at
    its VPI alone, and to them it is what a VC is elsewhere. What is set for it holds each way."""

    path: tuple[str, ...] = Field(
        description="the nodes that it passes, from a switch or host over switches to another switch or host"
    )
    vpi: Annotated[int, COUNT.within(0, 255)] = Field(description="on every line of it")

    @model_validator(mode="after")
    def _by_cells(self) -> Self:
        for key, given in (
            ("policy", self.policy not in (None, "tail")),
            ("epd_threshold", self.epd_threshold is not None),
            ("police", self.police is not None and self.police.packets),
        ):
            if given:
                raise wrong("goes by frames, and those of a virtual path's VCs interleave in it", key)
        if self.credits is not None:
            raise wrong("credits don't go through a virtual path", "credits")
        return self


class NetworkTable(Settings):
    """Switches, the lines between them, the hosts at them."""

    line: _LINES = Field(
        default="cell",
        description="of all lines: `sonet` carries every byte of STS-3c or STS-12c frames, `cell` only cells",
    )
    clock_tolerance_ppm: Annotated[float, _TOLERANCE] = Field(
        default=CLOCK_TOLERANCE_PPM,
        description="by which lines' clocks are off at most; drawn from the seed, 0: exact clocks",
    )
    switches: dict[Name, SwitchTable] = Field(default={}, description="by name")
    lines: dict[Name, LineTable] = Field(default={}, description="by name")
    hosts: dict[Name, HostTable] = Field(default={}, description="by name")
    vps: dict[Name, VpTable] = Field(default={}, description="virtual paths, by name")


Hosts = Annotated[
    Annotated[str, Tag("|one")]
    | Annotated[tuple[str, ...], Length(1, 255, "give 1 to 255 hosts, not {count}"), Tag("|list")],
    Discriminator(one_or_list),
]
"""A host, or several."""


def hosts_of(given: str | tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that are named."""
    return given if isinstance(given, tuple) else (given,)


class VcTable(VcSettings, PacingSettings, ContinuitySettings):
    """A virtual channel laid out by hand, one way. Without these every flow gets two along the shortest path."""

    name: str = Field(description="for `vc` and `return_vc` of a flow, and for `[[loss]]`")
    path: tuple[str, ...] | None = Field(default=None, description="host, switches, host; instead of `from` and `to`")
    from_: str | None = Field(default=None, description="the host it leads from, on the shortest path")
    to: Hosts | None = Field(
        default=None,
        description="the host it leads to; a list: point to multipoint, the switches where paths part copy",
    )
    vpi: Annotated[int, COUNT.within(0, 255)] = Field(
        default=0, description="on every line it passes, but where it is in a virtual path"
    )
    vci: Annotated[int, COUNT.within(32, 65535)] = Field(description="on every line it passes")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.path is not None and (self.from_ or self.to):
            raise wrong("give either 'path' or 'from' and 'to'", "path")
        for key, value in (("from", self.from_), ("to", self.to)):
            if self.path is None and value is None:
                raise wrong(f"the key {key!r} is missing")
        return self


class FlowTable(DeclaredTable, PacingSettings, ContinuitySettings):
    """A flow: an application that sends from one host to another, on a VC of its own unless one is named."""

    name: str | None = Field(default=None, description="`flow1` and so on unless given")
    copies: Annotated[int, COUNT.within(1, 1000)] = Field(
        default=1,
        description="so many flows like this one, `NAME-1` and so on; their figures together are `NAME.goodput`, the "
        "mean, `NAME.aggregate_goodput`, `NAME.sigma`, `NAME.fairness`",
    )
    source: str = Field(description="the host that sends")
    sink: Hosts = Field(
        description="the host that receives; a list (UDP): all of them do, each with figures of its own, `NAME.HOST`"
    )
    path: tuple[str, ...] | None = Field(
        default=None,
        description="the nodes from source to sink, in reverse for the way back; the shortest way unless given. A "
        "switch stands twice in a row where the path passes its line in loop-back",
    )
    protocol: Literal["tcp", "udp", "oam", "atm"] = Field(default="tcp", description="what it runs over")
    app: str = Field(default=_APP, description="the application, whose settings stand beside these")
    size: (
        Annotated[
            Annotated[int, SIZE, Tag("|size")] | Annotated[Literal["endless"], Tag("|endless")],
            Discriminator(lambda given: "|endless" if given == "endless" else "|size"),
        ]
        | None
    ) = Field(default=None, description="how much to send; endless unless given")
    duration_ps: Annotated[int, TIME.within(1, TIME.high)] | None = Field(
        default=None, description="when the application stops writing, counted from the connection"
    )
    datagram: Annotated[int, SIZE.within(1, 65507)] | None = Field(
        default=None, description="octets of payload a datagram at most (UDP); as many as fit unless given"
    )
    start_ps: Annotated[int, TIME] = Field(default=0, description="when it begins")
    vc: str | None = Field(default=None, description="the VC laid out by hand that it takes")
    return_vc: str | None = Field(default=None, description="the one back")
    tcp: TcpTable | None = Field(default=None, description="what differs from `[hosts.tcp]`")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key in ("vc", "return_vc"):
            if self.path is not None and getattr(self, key) is not None:
                raise wrong("the VC has its own path; give either 'path' or 'vc' and 'return_vc'", key)
        if self.protocol != "udp" and self.datagram is not None:
            raise wrong('goes with protocol = "udp"', "datagram")
        if self.protocol != "tcp" and self.tcp is not None:
            raise wrong('goes with protocol = "tcp"', "tcp")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The application's, with their defaults."""
        return APPLICATIONS[self.app].defaults(self.values)

    @model_validator(mode="wrap")
    @classmethod
    def _known_app(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, dict) and (what := _wrong_app(given.get("app", _APP))):
            error = InitErrorDetails(type=wrong(what), loc=("app",), input=given)
            raise ValidationError.from_exception_data(cls.__name__, [error])
        return handler(given)

    @classmethod
    def declared(cls, given: Mapping[str, Any]) -> tuple[Setting, ...]:
        return APPLICATIONS[given.get("app", _APP)].settings

    @classmethod
    def declared_keys(cls) -> Collection[str]:
        return KEYS

    @classmethod
    def supplied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"protocol": APPLICATIONS[given.get("app", _APP)].protocols[0]}

    @classmethod
    def unknown_in(cls, given: Mapping[str, Any], key: str) -> str:
        app = given.get("app", _APP)
        own = [setting.name for setting in APPLICATIONS[app].settings]
        if own and key in KEYS:
            return f"{app} has no such setting{nearest(key, own)}"
        return unknown_key(key, [*map(key_of, cls.model_fields), *KEYS])


def _wrong_app(app: object) -> str:
    if not isinstance(app, str):
        return f"expected a text, not {kind_of(app)}"
    return "" if app in APPLICATIONS else f"unknown value {app!r}{nearest(app, APPLICATIONS)}"


def _flow_schema(common: Mapping[str, Any], kind: ApplicationSpec) -> dict[str, Any]:
    """The JSON Schema of a flow with an application, from that of any flow."""
    app = {"const": kind.name, "description": kind.text, "title": "app", "type": "string"}
    must = kind.name != _APP
    known = common["properties"]
    own = {
        "protocol": known["protocol"] | {"default": kind.protocols[0]},
        "app": app if must else dict(sorted((app | {"default": _APP}).items())),
    }
    required = [*common["required"], *(["app"] if must else [])]
    return dict(common) | {
        "description": f"`{kind.name}`: {kind.text}",
        "properties": known | own | schema_of(kind.settings),
        "required": [*required, *(setting.name for setting in kind.settings if setting.required)],
        "title": f"{kind.name.title()}Flow",
    }


class TrafficTable(PacingSettings):
    """The flows of a NetSpec script, beside or instead of `[[flow]]`."""

    netspec: str = Field(description="the script, or the name of its file")


class LossTable(Settings):
    """PDUs or cells of a VC that a line loses."""

    line: str = Field(description="where")
    vc: str = Field(
        description="whose; a flow's own VC is called as the flow, that of the other direction `NAME.return`"
    )
    pdus: tuple[Annotated[int, _NUMBERS], ...] = Field(
        default=(), description="the numbers of the PDUs to lose, from 1 on; the first of a TCP flow is its SYN"
    )
    cells: tuple[Annotated[int, _NUMBERS], ...] = Field(default=(), description="or those of cells")

    @model_validator(mode="after")
    def _either(self) -> Self:
        if bool(self.pdus) == bool(self.cells):
            raise wrong("give either 'pdus' or 'cells': the numbers of those to lose, from 1 on", "pdus")
        return self


class EventTable(Settings):
    """A change of settings in a run: those that say so, from the first tick on that begins at this time or later."""

    at_ps: Annotated[int, TIME] = Field(description="when")
    set: dict[str, Any] = Field(description="values by dotted key, as `--set` has them")


class ProfileTable(Settings):
    """Settings that follow a file: a column of times, and a column for each key that may change in a run."""

    file: str = Field(description="CSV, or Parquet (`.parquet`), beside the experiment")
    line: str | None = Field(
        default=None,
        description="line whose keys the columns are (`ber`, `rate`, `outage`, `bursts.loss`); "
        "without it they are whole dotted keys",
    )
    direction: Literal["both", "out", "back"] = Field(
        default="both", description="of `ber` and `outage`: from the line's first end (`out`), or to it"
    )
    interpolation: Literal["step", "linear"] = Field(
        default="step", description="a value holds until the next row, or goes to the next one in a straight line"
    )
    interval_ps: Annotated[int, TIME.within("10 us", TIME.high)] = Field(
        default=10**10, description="of `linear`: from a value to the next"
    )
    offset_ps: Annotated[int, TIME] = Field(default=0, description="time of the run at which the series begins")
    begin_ps: Annotated[int, TIME] = Field(default=0, description="time of the file at which the series begins")
    repeat_ps: Annotated[int, TIME.within("10 us", TIME.high)] | None = Field(
        default=None, description="period after which the series begins again; once unless given"
    )
    columns: dict[str, str] = Field(
        default={}, description='the columns to read, each with `time` or its key: `columns = { Capacity = "rate" }`'
    )
    units: dict[str, str] = Field(
        default={}, description='units of plain numbers, by key: `units = { time = "ms", rate = "Mb/s" }`'
    )


class RecordTable(Settings):
    """Records of a run: series, captures and lost cells."""

    interval_ps: Annotated[int, TIME.within("1 us", TIME.high)] = Field(
        default=100 * 10**9, description="from a sample to the next"
    )
    what: tuple[Annotated[str, Words(lambda: SERIES, "series")], ...] = Field(
        default=tuple(name for name in SERIES if name != "segments"), description="the series"
    )
    pcap: tuple[str, ...] = Field(default=(), description="captures: `KIND:PLACE`")
    losses: bool = Field(default=False, description="each lost cell, as `losses.parquet`")
    losses_most: Annotated[int, COUNT.within(1, 20_000_000)] = Field(
        default=1_000_000, description="records of lost cells, 64 octets each in memory; further ones are only counted"
    )


class PublishedTable(Settings):
    """A published figure to print beside ours."""

    quantity: str = Field(description="what it is of")
    case: str = Field(
        default="",
        description="the case that it is of, if there are any, else a text; none for a figure of all cases together",
    )
    measured: Number | None = Field(default=None, description="the figure as measured")
    predicted: Number | None = Field(default=None, description="the figure as predicted")
    unit: str = Field(default="Mb/s", description="of both")
    source: str = Field(default="", description="where it stands")
    metric: str | None = Field(
        default=None, description="the figure of ours beside it, or `FLOW.goodput`; by the quantity unless given"
    )
    over: Literal["mean", "best", "sigma"] = Field(
        default="mean", description="what it is of several trials, ours being runs with different seeds"
    )


class ExpectTable(Settings):
    """What a run must come to; it fails (exit code 1) if it doesn't. A run that was shortened isn't judged."""

    metric: str = Field(description="a figure of ours, as of a published one")
    min: Number | None = Field(default=None, description="the least that it may be")
    max: Number | None = Field(default=None, description="the most")
    unit: str | None = Field(default=None, description="of both; `Mb/s` of rates, `ms` of times, else `1` unless given")
    case: str = Field(default="", description="the case that it is of; all unless given")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min is None and self.max is None:
            raise wrong("give 'min', 'max' or both", "metric")
        if self.min is not None and self.max is not None and self.max < self.min:
            raise wrong("is below 'min'", "max")
        return self


class SplittingTable(Settings):
    """Rare losses at a port, estimated by splitting: what a plain run of the experiment's duration has of excursions to
    high queues is gone on with from level to level of the queue, with other random numbers each time."""

    port: Port = Field(description="the port whose queue it goes by, and whose losses it counts")
    levels: tuple[Annotated[int, COUNT.within(1, 65535)], ...] = Field(
        default=(), description="cells queued, rising; a pilot chooses them unless they are given"
    )
    effort: Annotated[int, COUNT.within(LEAST_EFFORT, 1_000_000)] = Field(
        default=500,
        description="trials from each level in each batch; fewer in a shortened run, as much as it is, but 50 at least",
    )
    repeats: Annotated[int, COUNT.within(LEAST_BATCHES, 1000)] = Field(
        default=20,
        description="batches of the plain run, each with trials of its own; their spread gives the interval",
    )
    reach: tuple[Number, ...] = Field(
        default=(), description="by theory, the probability that a cycle has 1, 2, … cells queued or more, to be drawn"
    )

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if any(below >= above for below, above in itertools.pairwise(self.levels)):
            raise wrong("must rise from one to the next", "levels")
        return self


class TheoryTable(Settings):
    """A figure that theory predicts, to print beside ours with its confidence interval: the growth of one series over
    that of another, each record interval but the first being a batch (99 %); or a figure of splitting (95 %)."""

    quantity: str = Field(description="what it is of")
    predicted: Number = Field(description="the figure as predicted")
    unit: str = Field(default="", description="of both")
    source: str = Field(default="", description="the formula")
    growth: str = Field(default="", description="a series that only grows, as `lan:3.delays`")
    per: str = Field(default="", description="another, as `lan:3.sent`")
    metric: Literal["", "loss_ratio", "plain_loss_ratio"] = Field(
        default="", description="instead of both series: a figure that splitting has"
    )
    scale: Number = Field(default=1.0, description="ours is multiplied by this")

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        if bool(self.growth) != bool(self.per) or bool(self.growth) == bool(self.metric):
            raise wrong("give 'growth' and 'per', or 'metric' instead", "metric" if self.metric else "growth")
        return self


class CaseTable(Settings):
    """A run of its own with some values changed."""

    name: str = Field(description="of the case, and of its folder")
    at: Number | None = Field(default=None, description="its place on the axis of the plot")
    curve: str = Field(default="", description="cases with the same are joined in the plot")
    set: dict[str, Any] = Field(default={}, description="values by dotted key, as `--set` has them")


class PointTable(Settings):
    """A point of an axis."""

    at: Number | None = Field(default=None, description="its place; without one it is a line across the plot")
    name: str | None = Field(default=None, description="in the names of cases; the place unless given")
    set: dict[str, Any] = Field(description="values by dotted key, as of a case")

    @model_validator(mode="after")
    def _known_by(self) -> Self:
        if self.at is None and self.name is None:
            raise wrong("a point has a place ('at'), a name, or both", "at")
        return self


class AxisTable(Settings):
    """An axis of an experiment: one case for each point, or for each combination with the points of others.

    The last one is the plot's; each combination of the others is a curve.
    """

    name: str = Field(description="in the names of cases, before the point's")
    label: str = Field(default="", description="what it says on the plot; the name unless given")
    points: Annotated[tuple[PointTable, ...], Length(1, 1000, "an axis has 1 to 1000 points, not {count}")] = Field(
        description="in their order"
    )


class Cases(Settings, extra="ignore"):
    """The cases of a document, and nothing else of it."""

    case: tuple[CaseTable, ...] = Field(default=(), description="each a run of its own with some values changed")
    axis: tuple[AxisTable, ...] = Field(default=(), description="instead: cases from the points of axes")

    @model_validator(mode="after")
    def _either_of_both(self) -> Self:
        if self.case and self.axis:
            raise wrong("give either cases or axes", "axis")
        return self

    def all(self) -> tuple[CaseTable, ...]:
        """The cases, those of the axes made."""
        if not self.axis:
            return self.case
        made = []
        for points in itertools.product(*(axis.points for axis in self.axis)):
            names = [
                f"{axis.name} {format(point.at, 'g') if point.name is None else point.name}"
                for axis, point in zip(self.axis, points, strict=True)
            ]
            values = {key: value for point in points for key, value in point.set.items()}
            made.append(CaseTable(name=", ".join(names), at=points[-1].at, curve=", ".join(names[:-1]), set=values))
        return tuple(made)


class Document(Cases, extra="forbid"):
    """An experiment of bentpipe."""

    extends: str | None = Field(
        default=None, description="the experiment of the catalogue, or the file beside this one, that this is put over"
    )
    experiment: ExperimentTable = Field(description="what it is called, where it is from, how long it runs")
    network: NetworkTable = Field(description="switches, lines, hosts")
    hosts: HostsTable = Field(default=HostsTable(), description="what all hosts share")
    vc: tuple[VcTable, ...] = Field(default=(), description="virtual channels laid out by hand")
    flow: tuple[FlowTable, ...] = Field(default=(), description="flows")
    traffic: TrafficTable | None = Field(default=None, description="the flows of a script")
    loss: tuple[LossTable, ...] = Field(default=(), description="losses to the cell")
    event: tuple[EventTable, ...] = Field(default=(), description="changes of settings in a run")
    profile: tuple[ProfileTable, ...] = Field(default=(), description="settings that follow a file in a run")
    record: RecordTable = Field(default=RecordTable(), description="what is written down")
    splitting: SplittingTable | None = Field(default=None, description="rare losses at a port")
    published: tuple[PublishedTable, ...] = Field(default=(), description="figures to print beside ours")
    theory: tuple[TheoryTable, ...] = Field(default=(), description="predicted figures to print beside ours")
    expect: tuple[ExpectTable, ...] = Field(default=(), description="what a run must come to")


def defaults(model: Settings, above: str = "") -> Iterator[tuple[str, Any]]:
    """What a document doesn't give, as one would write it there: dotted keys and values.

    Tables in which something else holds then, those of hosts and TCP of flows, are left out.
    """
    for name, field in type(model).model_fields.items():
        key = f"{above}.{key_of(name)}" if above else key_of(name)
        value = getattr(model, name)
        if isinstance(value, Settings):
            if not isinstance(model, FlowTable):  # what [flow.tcp] doesn't say is that of [hosts.tcp]
                yield from defaults(value, key)
        elif name not in model.model_fields_set:
            if value is not None and not (isinstance(model, HostTable) and name in HostsTable.model_fields):
                yield key, shown(field, value)
        elif isinstance(value, (dict, tuple)):
            for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(inner, Settings):
                    yield from defaults(inner, f"{key}.{part}")
    if isinstance(model, DeclaredTable):
        for name, value in model.unset():
            yield f"{above}.{name}" if above else name, value


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a document, for editors. It has no rules that join keys, and no cross-references.

    What one that ``extends`` another doesn't say it has from that: no key of its tables has to be there, but for its
    name and title. What stands in an array of tables is whole.
    """
    schema = Document.model_json_schema()
    known_defs = schema["$defs"]
    flows = [_flow_schema(known_defs[FlowTable.__name__], kind) for kind in APPLICATIONS.values()]
    del known_defs[FlowTable.__name__]
    schema["$defs"] = dict(sorted((known_defs | {flow["title"]: flow for flow in flows}).items()))
    schema["properties"]["flow"]["items"] = {"oneOf": [{"$ref": _DEFS + flow["title"]} for flow in flows]}
    made: dict[str, Any] = {}
    tables = {key: one for key, one in schema["properties"].items() if _is_table(one, schema)}
    over = {key: _partly(one, schema, made) for key, one in tables.items()}
    made[_OVER + ExperimentTable.__name__]["required"] = ["id", "title"]
    known = {key: {k: v for k, v in one.items() if k in ("title", "description")} for key, one in tables.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "$defs": schema["$defs"] | made,
        "properties": schema["properties"] | known,
        "required": ["experiment"],
        "if": {"required": ["extends"]},
        "then": {"properties": over},
        "else": {"properties": tables, "required": schema["required"]},
    }


_OVER: Final = "Over"
"""Before the names of tables that needn't be whole."""

_DEFS: Final = "#/$defs/"


def _is_table(one: dict[str, Any], schema: dict[str, Any]) -> bool:
    choices = one.get("anyOf", [one])
    names = [choice["$ref"].removeprefix(_DEFS) for choice in choices if "$ref" in choice]
    return any(schema["$defs"][name].get("type") == "object" for name in names)


def _partly(one: Any, schema: dict[str, Any], made: dict[str, Any]) -> Any:
    """A part of a schema in which no key of a table is required; arrays stand as they are."""
    if isinstance(one, list):
        return [_partly(part, schema, made) for part in one]
    if not isinstance(one, dict):
        return one
    if one.get("type") == "array":
        return one
    found = {key: _partly(part, schema, made) for key, part in one.items() if key != "required"}
    if "$ref" in one:
        name = one["$ref"].removeprefix(_DEFS)
        if _OVER + name not in made:
            made[_OVER + name] = {}
            made[_OVER + name] |= _partly(schema["$defs"][name], schema, made)
        found["$ref"] = _DEFS + _OVER + name
    return found
