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

from bentpipe.apps.registry import APPLICATIONS, keys
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
    "OpenTable",
    "ProfileTable",
    "PublishedTable",
    "RareTimeoutTable",
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
    "goodput": "octets received by the sink's application (`FLOW.delivered`); plots show the rate",
    "cwnd": "congestion window, octets",
    "ssthresh": "slow-start threshold, octets",
    "una": "oldest unacknowledged octet",
    "rtt": "measured round trips, ps",
    "lost": "datagrams lost so far (UDP), from the loss ledger",
    "queue": "cells queued in each switch's buffer",
    "drops": "cells dropped so far, by switch and reason",
    "events": "events of a flow with their times: retransmissions, time-outs and others",
    "segments": "an event for each data segment sent, and a plot; recorded only if named",
    **{name: text for option in OPTIONS for name, text in option.series.items()},
}
"""Series that can be recorded: name and meaning."""


def add_series(series: Mapping[str, str]) -> None:
    """Add series that an option from outside of bentpipe records; their names, and what each is."""
    SERIES.update(series)
    what = RecordTable.model_fields["what"]
    what.default = (*what.default, *series)


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
    """Name, origin and duration of the experiment."""

    id: Annotated[
        str, Pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "{given!r} is not a name of letters, digits, '.', '_' and '-'")
    ] = Field(description="name of the experiment, used for run folders")
    title: str = Field(description="title in one line")
    paper: str = Field(default="", description="paper that the experiment repeats")
    figure: str = Field(default="", description="figure or table in the paper")
    description: str = Field(default="", description="description in some sentences")
    duration_ps: Annotated[int, TIME.within("1 us", "100000 s")] = Field(description="longest simulated time")
    quick_ps: Annotated[int, TIME.within("1 us", "100000 s")] | None = Field(
        default=None, description="simulated time with `--quick`"
    )
    seed: Annotated[int, COUNT.within(0, 2**32 - 1)] = Field(default=1, description="seed of all random numbers")
    axis: str = Field(default="", description="label of the axis of the cases' places (`at`)")
    shows: tuple[str, ...] = Field(
        default=(), description="figures in the plot over the cases; default: `aggregate_goodput`"
    )


class SwitchTable(SwitchSettings):
    """A switch: one network module with a shared cell buffer."""

    ports: Annotated[
        Annotated[int, COUNT.within(1, 16), Tag("|one")]
        | Annotated[tuple[Rate, ...], Length(1, 16, "a switch has 1 to 16 ports, not {count}"), Tag("|list")],
        Discriminator(one_or_list),
    ] = Field(default=4, description="number of ports, or the rate of each; default: the rate of its line")


_LINE_DELAY = TIME.within(0, "1 s")


class LineTable(LinkSettings, PortSettings):
    """A line between two switches, both ways: of its own, and of the ports that send into it."""

    ends: Annotated[tuple[Port, ...], Length(2, 2, "a line has two ends, not {count}")] = Field(
        description="the two ports; the same port twice: a line in loop-back, which returns the port's own cells"
    )
    rate_bps: (
        Annotated[
            Annotated[Rate, Tag("|one")]
            | Annotated[
                tuple[Rate, ...],
                Length(2, 2, "give one rate, or two: from the first end to the second, and back"),
                Tag("|list"),
            ],
            Discriminator(one_or_list),
        ]
        | None
    ) = Field(
        default=None,
        description="cell rate, one or one a direction; default: that of its ports, else OC-3c",
        json_schema_extra=IN_RUN,
    )
    delay_ps: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        Annotated[int, _LINE_DELAY, Tag("|one")]
        | Annotated[
            tuple[Annotated[int, _LINE_DELAY], ...],
            Length(2, 2, "give one delay, or two: from the first end to the second, and back"),
            Tag("|list"),
        ],
        Discriminator(one_or_list),
    ] = Field(
        default=0,
        description="propagation delay, one or one a direction",
        json_schema_extra=IN_RUN,
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
        description="bit error ratio, or two: from the first end to the second, and back",
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
        description="true: no cell passes. One value, or two: from the first end to the second, and back",
        json_schema_extra=IN_RUN,
    )
    line: _LINES | None = Field(default=None, description="line type, as in `[network]`")
    clock_tolerance_ppm: Annotated[float, _TOLERANCE] | None = Field(
        default=None, description="clock tolerance, as in `[network]`"
    )
    ppm: Annotated[float, NUMBER.within(-320.0, 320.0, name="ppm")] = Field(
        default=0.0,
        description="SONET: clock offset of the payload, slower at the first end and faster at the second",
    )

    back: Annotated[PortSettings, WithJsonSchema({"type": "object"})] | None = Field(
        default=None,
        description="settings of the port at the second end; default of each key: as at the first",
    )

    @model_validator(mode="before")
    @classmethod
    def _back_as_out(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("back"), dict):
            keys = map(key_of, PortSettings.model_fields)
            return given | {"back": over({key: given[key] for key in keys if key in given}, given["back"])}
        return given

    def port(self, end: int) -> PortSettings:
        """Return the settings of the port at its first end (0) or second one (1)."""
        return self.back if end and self.back is not None else PortSettings.part_of(self)

    @property
    def rates(self) -> tuple[int | None, int | None]:
        """Rate out and back; None: that of the port."""
        out, back = self.rate_bps if isinstance(self.rate_bps, tuple) else (self.rate_bps, self.rate_bps)
        return out, back

    @property
    def delays(self) -> tuple[int, int]:
        """Delay out and back."""
        out, back = self.delay_ps if isinstance(self.delay_ps, tuple) else (self.delay_ps, self.delay_ps)
        return out, back

    @property
    def errors(self) -> tuple[float, float]:
        """Bit error ratio out and back."""
        out, back = self.ber if isinstance(self.ber, tuple) else (self.ber, self.ber)
        return float(out), float(back)

    @property
    def outages(self) -> tuple[bool, bool]:
        """Return whether the line is interrupted, out and back."""
        out, back = self.outage if isinstance(self.outage, tuple) else (self.outage, self.outage)
        return out, back


class HostsTable(HostSettings, NicSettings):
    """Settings of all hosts."""

    cost_ps: Annotated[int, _DELAY] | None = Field(
        default=None,
        description="processor time to send and to receive a segment; default of `send_cost` and `receive_cost`",
    )
    tcp: TcpTable = Field(default=TcpTable(), description="settings of TCP")


class HostTable(HostSettings, NicSettings, PortSettings):
    """A host, and its line to a switch, with what the switch's port to it has; what is not given is that of `[hosts]`.

    A host's own profile goes before what `[hosts]` says of cost and clock.
    """

    port: Port = Field(description="switch port of the host")
    address: Annotated[
        str, Pattern(r"|(\d{1,3}\.){3}\d{1,3}", "{given!r} is not an address; write four numbers, as 204.235.72.224")
    ] = Field(default="", description="IPv4 address, by which a NetSpec script may name the host")
    rate_bps: Rate = Field(default=LINE_RATES["OC-3c"], description="cell rate of the host's line")
    delay_ps: Annotated[int, _DELAY] = Field(default=0, description="propagation delay of its line, one way")
    line: _LINES | None = Field(default=None, description="line type, as in `[network]`")
    line_clock_tolerance_ppm: Annotated[float, _TOLERANCE] | None = Field(
        default=None, description="clock tolerance of its line, as in `[network]`"
    )
    cost_ps: Annotated[int, _DELAY] | None = Field(
        default=None, description="processor time to send and to receive a segment, as in `[hosts]`"
    )


class VpTable(VcSettings):
    """A virtual path, both ways. VCs whose paths have it as a part go through it; the switches between its ends look at
    its VPI alone, and to them it is what a VC is elsewhere. What is set for it holds each way."""

    path: tuple[str, ...] = Field(
        description="nodes of the path, from a switch or host over switches to another switch or host"
    )
    vpi: Annotated[int, COUNT.within(0, 255)] = Field(description="VPI on every line of the path")

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
            raise wrong("credits cannot pass through a virtual path", "credits")
        return self


class NetworkTable(Settings):
    """The switches, the lines between them, and the hosts of an experiment."""

    line: _LINES = Field(
        default="cell",
        description="type of all lines: `sonet` carries every byte of STS-3c or STS-12c frames, `cell` only cells",
    )
    clock_tolerance_ppm: Annotated[float, _TOLERANCE] = Field(
        default=CLOCK_TOLERANCE_PPM,
        description="greatest deviation of the lines' clocks, drawn from the seed; 0: exact clocks",
    )
    switches: dict[Name, SwitchTable] = Field(default={}, description="by name")
    lines: dict[Name, LineTable] = Field(default={}, description="by name")
    hosts: dict[Name, HostTable] = Field(default={}, description="by name")
    vps: dict[Name, VpTable] = Field(default={}, description="virtual paths by name")

    @model_validator(mode="after")
    def _an_address_each(self) -> Self:
        owners: dict[str, str] = {}
        for name, host in self.hosts.items():
            if host.address and (owner := owners.setdefault(host.address, name)) != name:
                raise wrong(f"is the address of {owner!r}, too", f"hosts.{name}.address")
        return self


Hosts = Annotated[
    Annotated[str, Tag("|one")]
    | Annotated[tuple[str, ...], Length(1, 255, "give 1 to 255 hosts, not {count}"), Tag("|list")],
    Discriminator(one_or_list),
]
"""A host, or several."""


def hosts_of(given: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the hosts that are named."""
    return given if isinstance(given, tuple) else (given,)


class CdvSettings(Settings):
    """1-point cell delay variation (I.356) of a VC, measured cell by cell where its cells arrive."""

    pcr_bps: Rate = Field(description="peak cell rate of the reference clock, bits of cells a second")
    cdvt_ps: Annotated[int, TIME.within(0, "1 s")] = Field(
        default=0, description="tolerance: time by which a conforming cell may be early"
    )
    at: str | None = Field(
        default=None, description="switch or host of the measurement; default: the last host of the VC"
    )


class VcTable(VcSettings, PacingSettings, ContinuitySettings):
    """A virtual channel laid out by hand, one way. Without these every flow gets two along the shortest path."""

    name: str = Field(description="name of the VC, for `vc` and `return_vc` of a flow and for `[[loss]]`")
    path: tuple[str, ...] | None = Field(
        default=None, description="nodes of the VC: host, switches, host; instead of `from` and `to`"
    )
    from_: str | None = Field(default=None, description="first host, for the shortest path")
    to: Hosts | None = Field(
        default=None,
        description="last host; a list: point to multipoint, copied where paths part",
    )
    vpi: Annotated[int, COUNT.within(0, 255)] = Field(default=0, description="VPI on every line outside virtual paths")
    vci: Annotated[int, COUNT.within(32, 65535)] = Field(description="VCI on every line")
    cdv: CdvSettings | None = Field(default=None, description="1-point cell delay variation, to measure")

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

    name: str | None = Field(default=None, description="name of the flow; default: `flow1` and so on")
    copies: Annotated[int, COUNT.within(1, 1000)] = Field(
        default=1,
        description="so many flows like this one, `NAME-1` and so on; their figures together are `NAME.goodput`, the "
        "mean, `NAME.aggregate_goodput`, `NAME.sigma`, `NAME.fairness`",
    )
    source: str = Field(description="sending host")
    sink: Hosts = Field(
        description="receiving host; a list (UDP): several receivers with their own figures `NAME.HOST`"
    )
    path: tuple[str, ...] | None = Field(
        default=None,
        description="the nodes from source to sink, in reverse for the way back; the shortest way unless given. A "
        "switch stands twice in a row where the path passes its line in loop-back",
    )
    protocol: Literal["tcp", "udp", "oam", "atm"] = Field(default="tcp", description="protocol of the flow")
    app: str = Field(default=_APP, description="application; its settings stand beside these")
    size: (
        Annotated[
            Annotated[int, SIZE, Tag("|size")] | Annotated[Literal["endless"], Tag("|endless")],
            Discriminator(lambda given: "|endless" if given == "endless" else "|size"),
        ]
        | None
    ) = Field(default=None, description="amount to send; default: endless")
    duration_ps: Annotated[int, TIME.within(1, TIME.high)] | None = Field(
        default=None, description="time from the connection until the application stops writing"
    )
    datagram: Annotated[int, SIZE.within(1, 65507)] | None = Field(
        default=None, description="largest payload of a datagram, octets (UDP); default: as many as fit the MTU"
    )
    start_ps: Annotated[int, TIME] = Field(default=0, description="start time of the flow")
    vc: str | None = Field(default=None, description="name of the `[[vc]]` that the flow uses")
    return_vc: str | None = Field(default=None, description="name of the `[[vc]]` of the opposite direction")
    tcp: TcpTable | None = Field(default=None, description="TCP settings that differ from `[hosts.tcp]`")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key in ("vc", "return_vc"):
            if self.path is not None and getattr(self, key) is not None:
                raise wrong("the VC has its own path; give either 'path' or 'vc' and 'return_vc'", key)
        if self.protocol != "udp" and self.datagram is not None:
            raise wrong('requires protocol = "udp"', "datagram")
        if self.protocol != "tcp" and self.tcp is not None:
            raise wrong('requires protocol = "tcp"', "tcp")
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
        return keys()

    @classmethod
    def supplied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"protocol": APPLICATIONS[given.get("app", _APP)].protocols[0]}

    @classmethod
    def unknown_in(cls, given: Mapping[str, Any], key: str) -> str:
        app = given.get("app", _APP)
        own = [setting.name for setting in APPLICATIONS[app].settings]
        if own and key in keys():
            return f"{app} has no such setting{nearest(key, own)}"
        return unknown_key(key, [*map(key_of, cls.model_fields), *keys()])


def _wrong_app(app: object) -> str:
    if not isinstance(app, str):
        return f"expected a text, not {kind_of(app)}"
    return "" if app in APPLICATIONS else f"unknown value {app!r}{nearest(app, APPLICATIONS)}"


def _flow_schema(common: Mapping[str, Any], kind: ApplicationSpec) -> dict[str, Any]:
    """Return the JSON Schema of a flow with an application, from that of any flow."""
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

    netspec: str = Field(description="NetSpec script, or the name of its file")


class LossTable(Settings):
    """PDUs or cells of a VC that a line loses."""

    line: str = Field(description="line on which the losses occur")
    vc: str = Field(
        description="VC with the losses; a flow's own VC has the flow's name, the other direction `NAME.return`"
    )
    pdus: tuple[Annotated[int, _NUMBERS], ...] = Field(
        default=(), description="numbers of the PDUs to lose, from 1 on; the first of a TCP flow is its SYN"
    )
    cells: tuple[Annotated[int, _NUMBERS], ...] = Field(
        default=(), description="numbers of the cells to lose, instead of PDUs"
    )

    @model_validator(mode="after")
    def _either(self) -> Self:
        if bool(self.pdus) == bool(self.cells):
            raise wrong("give either 'pdus' or 'cells': the numbers of those to lose, from 1 on", "pdus")
        return self


class EventTable(Settings):
    """A change of settings in a run: those that say so, from the first tick on that begins at this time or later."""

    at_ps: Annotated[int, TIME] = Field(description="time of the change")
    set: dict[str, Any] = Field(description="values by dotted key, as in `--set`")


class ProfileTable(Settings):
    """Settings that follow a file: a column of times, and a column for each key that may change in a run."""

    file: str = Field(description="name of a CSV or Parquet (`.parquet`) file beside the experiment")
    line: str | None = Field(
        default=None,
        description="line whose keys the columns are (`ber`, `rate`, `outage`, `bursts.loss`); "
        "without it they are whole dotted keys",
    )
    direction: Literal["both", "out", "back"] = Field(
        default="both", description="direction of `ber` and `outage`: from the line's first end (`out`), or to it"
    )
    interpolation: Literal["step", "linear"] = Field(
        default="step", description="`step`: a value holds until the next row; `linear`: a straight line to the next"
    )
    interval_ps: Annotated[int, TIME.within("10 us", TIME.high)] = Field(
        default=10**10, description="time between values of `linear`"
    )
    offset_ps: Annotated[int, TIME] = Field(default=0, description="time of the run at which the series begins")
    begin_ps: Annotated[int, TIME] = Field(default=0, description="time of the file at which the series begins")
    repeat_ps: Annotated[int, TIME.within("10 us", TIME.high)] | None = Field(
        default=None, description="period after which the series begins again; default: it runs once"
    )
    columns: dict[str, str] = Field(
        default={}, description='columns to read, each with `time` or its key: `columns = { Capacity = "rate" }`'
    )
    units: dict[str, str] = Field(
        default={}, description='units of plain numbers, by key: `units = { time = "ms", rate = "Mb/s" }`'
    )


class RecordTable(Settings):
    """Records of a run: series, captures and lost cells."""

    interval_ps: Annotated[int, TIME.within("1 us", TIME.high)] = Field(
        default=100 * 10**9, description="time between samples"
    )
    what: tuple[Annotated[str, Words(lambda: SERIES, "series")], ...] = Field(
        default=tuple(name for name in SERIES if name != "segments"), description="names of the recorded series"
    )
    pcap: tuple[str, ...] = Field(default=(), description="captures, as `KIND:PLACE`")
    losses: bool = Field(default=False, description="records of lost cells, in `losses.parquet`")
    losses_most: Annotated[int, COUNT.within(1, 20_000_000)] = Field(
        default=1_000_000,
        description="greatest number of records, 64 octets each in memory; further lost cells are only counted",
    )


class PublishedTable(Settings):
    """A published figure to print beside ours."""

    quantity: str = Field(description="quantity")
    case: str = Field(
        default="",
        description="case of the figure; without cases a text; none for a figure of all cases together",
    )
    measured: Number | None = Field(default=None, description="measured figure")
    predicted: Number | None = Field(default=None, description="predicted figure")
    unit: str = Field(default="Mb/s", description="unit of both figures")
    source: str = Field(default="", description="place of the figure in the paper")
    metric: str | None = Field(
        default=None, description="our metric to compare, for example `FLOW.goodput`; default: by the quantity"
    )
    over: Literal["mean", "best", "sigma"] = Field(
        default="mean", description="statistic over several trials; ours is over seeds"
    )
    given_back: str = Field(
        default="",
        description="setting of this experiment that was taken from this figure, which is then an input and is "
        "counted separately",
    )


class OpenTable(Settings):
    """A parameter of which the source of the experiment does not give the value: `bentpipe explain` varies it."""

    key: str = Field(description="dotted key, as for `--set`")
    values: Annotated[tuple[Any, ...], Length(1, 100, "give 1 to 100 values, not {count}")] = Field(
        description="plausible values, beside the experiment's own"
    )
    why: str = Field(description="reason for these values")
    source: str = Field(description="source that leaves the parameter open, or gives the values")


class ExpectTable(Settings):
    """A condition on the result of a run: the run fails (exit code 1) if it does not hold.

    A shortened run is not judged.
    """

    metric: str = Field(description="our metric, as for a published figure")
    min: Number | None = Field(default=None, description="least allowed value")
    max: Number | None = Field(default=None, description="greatest allowed value")
    unit: str | None = Field(
        default=None, description="unit of the bounds; default: `Mb/s` of rates, `ms` of times, else `1`"
    )
    case: str = Field(default="", description="case; default: all")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min is None and self.max is None:
            raise wrong("give 'min', 'max' or both", "metric")
        if self.min is not None and self.max is not None and self.max < self.min:
            raise wrong("is below 'min'", "max")
        return self


class SplittingTable(Settings):
    """Rare losses or long waits at a port, estimated by splitting: excursions to high queues in a plain run of the
    experiment's duration are continued from level to level of the queue, with other random numbers each time."""

    port: Port = Field(description="port whose queue defines the levels, and whose losses are counted")
    levels: tuple[Annotated[int, COUNT.within(1, 65535)], ...] = Field(
        default=(), description="rising numbers of cells queued; default: chosen by a pilot run"
    )
    delay_ps: Annotated[int, TIME.within("1 ns", "100 s")] | None = Field(
        default=None,
        description="cells that wait this long or longer in the switch are counted instead of lost cells: from their "
        "arrival until their first bit leaves",
    )
    effort: Annotated[int, COUNT.within(LEAST_EFFORT, 1_000_000)] = Field(
        default=500,
        description="trials from each level in each batch; in a shortened run fewer in proportion, at least 50",
    )
    repeats: Annotated[int, COUNT.within(LEAST_BATCHES, 1000)] = Field(
        default=20,
        description="batches of the plain run, each with its own trials; their spread gives the interval",
    )
    reach: tuple[Number, ...] = Field(
        default=(), description="theoretical probability that a cycle has 1, 2, … cells queued or more, for the plot"
    )

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if any(below >= above for below, above in itertools.pairwise(self.levels)):
            raise wrong("must rise from one to the next", "levels")
        return self


class RareTimeoutTable(Settings):
    """The probability that a TCP transfer has a retransmission time-out, estimated by splitting: transfers are
    continued from level to level, with other random numbers each time."""

    flow: str = Field(description="TCP flow of a given size, by its name")
    port: Port = Field(description="switch port whose queue defines the first levels")
    levels: tuple[Annotated[int, COUNT.within(1, 65535)], ...] = Field(
        default=(), description="rising numbers of cells queued; default: chosen by a pilot run"
    )
    losses: tuple[Annotated[int, COUNT.within(1, 1000)], ...] = Field(
        default=(1, 2, 3),
        description="rising numbers of PDUs that the flow has lost: the levels above those of the queue",
    )
    step_ps: Annotated[int, TIME.within("1 us", "10 ms")] = Field(
        default=100_000_000,
        description="time between two looks at the lost PDUs while the queue is at its highest level or above",
    )
    effort: Annotated[int, COUNT.within(LEAST_EFFORT, 1_000_000)] = Field(
        default=200,
        description="trials from each level in each batch; in a shortened run fewer in proportion, at least 50",
    )
    repeats: Annotated[int, COUNT.within(LEAST_BATCHES, 1000)] = Field(
        default=20, description="batches of trials; their spread gives the interval"
    )

    @model_validator(mode="after")
    def _rising(self) -> Self:
        for name, values in (("levels", self.levels), ("losses", self.losses)):
            if any(below >= above for below, above in itertools.pairwise(values)):
                raise wrong("must rise from one to the next", name)
        return self


class TheoryTable(Settings):
    """A figure that theory predicts, to print beside ours with its confidence interval: the growth of one series over
    that of another, each record interval but the first being a batch (99 %); or a figure of splitting (95 %)."""

    quantity: str = Field(description="quantity")
    predicted: Number = Field(description="predicted figure")
    unit: str = Field(default="", description="unit of both figures")
    source: str = Field(default="", description="source of the formula")
    growth: str = Field(default="", description="series that only grows, for example `lan:3.delays`")
    per: str = Field(default="", description="series by whose growth it is divided, for example `lan:3.sent`")
    metric: Literal["", "loss_ratio", "plain_loss_ratio", "delay_ratio", "plain_delay_ratio"] = Field(
        default="", description="metric of splitting, instead of both series"
    )
    scale: Number = Field(default=1.0, description="factor for our figure")

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        if bool(self.growth) != bool(self.per) or bool(self.growth) == bool(self.metric):
            raise wrong("give 'growth' and 'per', or 'metric' instead", "metric" if self.metric else "growth")
        return self


class CaseTable(Settings):
    """A run of its own with some values changed."""

    name: str = Field(description="name of the case and of its folder")
    at: Number | None = Field(default=None, description="place on the axis of the plot")
    curve: str = Field(default="", description="curve: cases with the same one are joined in the plot")
    set: dict[str, Any] = Field(default={}, description="values by dotted key, as in `--set`")


class PointTable(Settings):
    """A point of an axis."""

    at: Number | None = Field(default=None, description="place on the axis; without one the point is a horizontal line")
    name: str | None = Field(default=None, description="part of the names of cases; default: the place")
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

    name: str = Field(description="part of the names of cases, before the point's")
    label: str = Field(default="", description="label on the plot; default: the name")
    points: Annotated[tuple[PointTable, ...], Length(1, 1000, "an axis has 1 to 1000 points, not {count}")] = Field(
        description="points of the axis, in their order"
    )


class Cases(Settings, extra="ignore"):
    """The cases of a document, and nothing else of it."""

    case: tuple[CaseTable, ...] = Field(default=(), description="cases: runs with some values changed")
    axis: tuple[AxisTable, ...] = Field(
        default=(), description="axes: cases from combinations of points, instead of cases"
    )

    @model_validator(mode="after")
    def _either_of_both(self) -> Self:
        if self.case and self.axis:
            raise wrong("give either cases or axes", "axis")
        return self

    def all(self) -> tuple[CaseTable, ...]:
        """Return the cases, those of the axes made."""
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
        default=None, description="experiment of the catalogue, or file beside this one, that this one extends"
    )
    plugins: dict[Annotated[str, Pattern(r"[A-Za-z_]\w*", "a name has letters, digits and _ only")], str] = Field(
        default={}, description="models of your own, by name: a Python file, or a package's folder"
    )
    experiment: ExperimentTable = Field(description="name, source and duration")
    network: NetworkTable = Field(description="switches, lines, hosts")
    hosts: HostsTable = Field(default=HostsTable(), description="settings of all hosts")
    vc: tuple[VcTable, ...] = Field(default=(), description="virtual channels")
    flow: tuple[FlowTable, ...] = Field(default=(), description="flows")
    traffic: TrafficTable | None = Field(default=None, description="flows from a NetSpec script")
    loss: tuple[LossTable, ...] = Field(default=(), description="losses of given PDUs or cells")
    event: tuple[EventTable, ...] = Field(default=(), description="changes of settings in a run")
    profile: tuple[ProfileTable, ...] = Field(default=(), description="settings that follow a file in a run")
    record: RecordTable = Field(default=RecordTable(), description="records of a run")
    splitting: SplittingTable | None = Field(default=None, description="estimate of rare losses at a port")
    rare_timeout: RareTimeoutTable | None = Field(default=None, description="estimate of rare time-outs of a TCP flow")
    published: tuple[PublishedTable, ...] = Field(default=(), description="published figures to compare")
    open: tuple[OpenTable, ...] = Field(default=(), description="parameters that the source leaves open")
    theory: tuple[TheoryTable, ...] = Field(default=(), description="predicted figures to print beside ours")
    expect: tuple[ExpectTable, ...] = Field(default=(), description="bounds of a run's figures")


def defaults(model: Settings, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a document does not give, as one would write it there: dotted keys and values.

    Tables in which something else holds then, those of hosts and TCP of flows, are left out.
    """
    for name, field in type(model).model_fields.items():
        key = f"{above}.{key_of(name)}" if above else key_of(name)
        value = getattr(model, name)
        if isinstance(value, Settings):
            if not isinstance(model, FlowTable):  # what [flow.tcp] does not say is that of [hosts.tcp]
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
    """Return the JSON Schema of a document, for editors. It has no rules that join keys, and no cross-references.

    What one that ``extends`` another does not say it has from that: no key of its tables has to be there, except for
    its name and title. What stands in an array of tables is whole."""
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
"""Before the names of tables that need not be whole."""

_DEFS: Final = "#/$defs/"


def _is_table(one: dict[str, Any], schema: dict[str, Any]) -> bool:
    choices = one.get("anyOf", [one])
    names = [choice["$ref"].removeprefix(_DEFS) for choice in choices if "$ref" in choice]
    return any(schema["$defs"][name].get("type") == "object" for name in names)


def _partly(one: Any, schema: dict[str, Any], made: dict[str, Any]) -> Any:
    """Return a part of a schema in which no key of a table is required; arrays stand as they are."""
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
