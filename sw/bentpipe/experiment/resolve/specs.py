"""What an experiment is made of, as validated, immutable values in the base units (ps, b/s, octets, cells)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from bentpipe.experiment.document.tables import ExpectTable, Face, PublishedTable, SplittingTable, TheoryTable
from bentpipe.hosts.config import ContinuitySettings, HostConfig
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings, PacingSettings
from bentpipe_hdl.plcp import FramesName
from bentpipe_hdl.settings import Rate, Time
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings, VcSettings
from bentpipe_hdl.ticks import first_tick, ticks_to_ps

if TYPE_CHECKING:
    from bentpipe.captures import CaptureSpec
    from bentpipe.experiment.document.changes import Change
    from bentpipe.tcp.config import TcpConfig

__all__ = [
    "EventSpec",
    "Experiment",
    "FlowSpec",
    "GroupSpec",
    "HostSpec",
    "LineSpec",
    "LossSpec",
    "NetworkSpec",
    "RecordSpec",
    "SwitchSpec",
    "Tables",
    "VcSpec",
    "VpSpec",
    "plain",
]


class SwitchSpec(SwitchSettings):
    """A switch; its EPD threshold in cells."""

    name: str = Field(description="its name")
    port_rates_bps: tuple[int, ...] = Field(description="output rate of each port, bits of cells a second")
    port_settings: tuple[PortSettings, ...] = Field(description="what each has besides")


class LineSpec(LinkSettings):
    """A line between two switches, both ways; in loop-back both ends are the same port."""

    name: str = Field(description="its name")
    ends: tuple[Face, Face] = Field(description="its ports")
    rate_bps: Rate = Field(description="no port sends faster into it")
    ber: tuple[float, float] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        description="bit error ratio from the first end to the second, and back"
    )
    outage: tuple[bool, bool] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        description="whether nothing passes from the first end to the second, and back"
    )
    line: str = Field(description="`cell`, with SONET overhead in the rate, or `sonet`: every byte of the frames")
    ppm: float = Field(
        description="of a SONET line: its payload is so much slower at the first end, faster at the second"
    )
    clock_ppm: tuple[float, float] = Field(
        description="how much faster than nominal the ports send, at the first end and at the second"
    )

    @property
    def sonet(self) -> bool:
        return self.line == "sonet"

    @property
    def looped(self) -> bool:
        return self.ends[0] == self.ends[1]


class HostSpec(HostConfig, NicSettings):
    """A host with its interface, and the line to its switch."""

    port: Face = Field(description="the switch's port that it is at")
    rate_bps: Rate = Field(description="of its line")
    delay_ps: Time = Field(description="of its line, one way")
    line: str = Field(description="what carries its cells, as of a line between switches")
    frames: FramesName | None = Field(default=None, description="in which its line has slots for cells")
    line_clock_ppm: tuple[float, float] = Field(
        description="how much faster than nominal the host's interface sends, and the switch's port to it"
    )

    @property
    def sonet(self) -> bool:
        return self.line == "sonet"


class VcSpec(VcSettings, PacingSettings, ContinuitySettings):
    """One direction of a virtual channel with the nodes it passes."""

    name: str = Field(description="its name")
    path: tuple[str, ...] = Field(
        description="host, switches, host; a switch twice in a row where it passes a looped line there"
    )
    vpi: int = Field(description="on every line, but in virtual paths")
    vci: int = Field(description="on every line")
    vps: tuple[str, ...] = Field(default=(), description="the virtual paths that it goes through")
    root: int | None = Field(
        default=None, description="the VC of which this is another leaf: with the same VPI/VCI, one as far as paths are"
    )


class VpSpec(VcSettings):
    """A virtual path, both ways."""

    name: str = Field(description="its name")
    path: tuple[str, ...] = Field(description="switch or host, switches, switch or host")
    vpi: int = Field(description="on every line of it")


@dataclass(frozen=True, slots=True)
class LossSpec:
    """PDUs or cells of the VC ``vc`` (an index) that the line from switch ``way[0]`` to ``way[1]`` loses, from 1 on."""

    vc: int
    way: tuple[str, str]
    pdus: tuple[int, ...]
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """One flow.

    Members
    -------
    protocol : str
        ``"tcp"``, ``"udp"`` or ``"oam"``.
    app, settings : str, dict
        The application and its settings (:mod:`bentpipe.apps.registry`).
    size, duration_ps : int | None
        When the application stops; None: not by this.
    datagram : int | None
        Octets a datagram; None: as many as fit.
    start_ps : int
        For a flow of a group counted from when the group says start.
    vc, return_vc : int
        Indices into ``Experiment.vcs``; None: nothing comes back.
    first : int | None
        Index of the flow whose datagrams this sink gets, too; None: it has a source of its own.
    tcp : TcpConfig | None
        None but over TCP.
    group : str | None
        Of a flow whose table has ``copies``: the name that they share.
    """

    name: str
    source: str
    sink: str
    protocol: str
    app: str
    settings: dict[str, Any]
    size: int | None
    duration_ps: int | None
    datagram: int | None
    start_ps: int
    vc: int
    return_vc: int | None
    tcp: TcpConfig | None
    first: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Flows (indices into ``Experiment.flows``) and groups that start together, ``delay_ps`` after the group is told
    to, or (``serial``) each when the one before has ended."""

    serial: bool
    delay_ps: int
    members: tuple[GroupSpec | int, ...]

    def flows(self) -> Iterator[int]:
        """All flows in it."""
        for member in self.members:
            if isinstance(member, int):
                yield member
            else:
                yield from member.flows()


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    switches: tuple[SwitchSpec, ...]
    lines: tuple[LineSpec, ...]
    hosts: tuple[HostSpec, ...]
    vps: tuple[VpSpec, ...] = ()

    @property
    def sonet(self) -> bool:
        """Any line carries SONET frames."""
        return any(line.sonet for line in self.lines) or any(host.sonet for host in self.hosts)


@dataclass(frozen=True, slots=True)
class EventSpec:
    """What changes in a run at ``at_ps``, and the network and its VCs as they are from then on; ``settings`` are the
    keys and values that the event itself gives."""

    at_ps: int
    changes: tuple[Change, ...]
    network: NetworkSpec
    vcs: tuple[VcSpec, ...]
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def tick(self) -> int:
        """The first that it holds in."""
        return first_tick(self.at_ps)

    @property
    def before_ps(self) -> int:
        """The last picosecond before that; -1: it holds from the beginning."""
        return ticks_to_ps(self.tick) - 1


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """What is written down: ``interval_ps`` apart, the series named in ``what``; captures as pcap files."""

    interval_ps: int
    what: tuple[str, ...]
    pcap: tuple[CaptureSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Tables:
    """Dotted keys of the document's tables from which parts of an experiment were made, for messages.

    Members
    -------
    vcs, flows, events : tuple of str
        Of each VC, flow and event, in the order of the experiment.
    """

    vcs: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """A whole experiment. ``document`` is the TOML document it was read from, settings included; ``file`` is what it
    was asked by: its name in the catalogue, or its file.

    ``case`` is the name of the case of the experiment that this is, if it has cases, ``at`` its place on ``axis``, on
    ``curve`` if there are several. ``full_ps`` is the duration that the file gives, ``changes`` what else isn't as
    there. ``over_cases`` are
    published figures of all cases together. ``events`` are in the order of their times. The ``metric`` of a published
    figure is the figure of ours beside it, ``""``: none. ``tables`` are the places in the document.
    """

    id: str
    title: str
    paper: str
    figure: str
    description: str
    duration_ps: int
    quick_ps: int | None
    full_ps: int
    seed: int
    network: NetworkSpec
    vcs: tuple[VcSpec, ...]
    flows: tuple[FlowSpec, ...]
    schedule: GroupSpec | None
    netspec: str
    losses: tuple[LossSpec, ...]
    record: RecordSpec
    published: tuple[PublishedTable, ...]
    file: str
    document: dict[str, Any]
    axis: str = ""
    shows: tuple[str, ...] = ()
    theory: tuple[TheoryTable, ...] = ()
    expect: tuple[ExpectTable, ...] = ()
    case: str = ""
    at: float | None = None
    curve: str = ""
    changes: tuple[Change, ...] = ()
    over_cases: tuple[PublishedTable, ...] = ()
    events: tuple[EventSpec, ...] = ()
    splitting: SplittingTable | None = None
    tables: Tables = field(default=Tables(), compare=False, repr=False)

    @property
    def shortened(self) -> bool:
        """Less time than the file gives."""
        return self.duration_ps < self.full_ps

    def host(self, name: str) -> HostSpec:
        return next(h for h in self.network.hosts if h.name == name)


def plain(value: Any) -> Any:
    """Members of dataclasses and models by name, down to values, as JSON has them."""
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value
