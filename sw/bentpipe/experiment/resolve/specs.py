"""The specification of an experiment: validated, immutable values in base units (ps, b/s, octets, cells)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bentpipe.experiment.document.tables import (
    CdvSettings,
    ExpectTable,
    Face,
    PublishedTable,
    RareTimeoutTable,
    SplittingTable,
    TheoryTable,
)
from bentpipe.hosts.config import ContinuitySettings, HostConfig
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings, PacingSettings
from bentpipe_hdl.plcp import FramesName
from bentpipe_hdl.settings import Settings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings, VcSettings
from bentpipe_hdl.ticks import first_tick, ticks_to_ps

if TYPE_CHECKING:
    from bentpipe.captures import CaptureSpec
    from bentpipe.experiment.document.changes import Change
    from bentpipe.experiment.document.plugins import Plugin
    from bentpipe.tcp.config import TcpConfig

__all__ = [
    "EventSpec",
    "Experiment",
    "FlowSpec",
    "GroupSpec",
    "HostSpec",
    "LineSpec",
    "LineWrite",
    "LossSpec",
    "NetworkSpec",
    "PortSpec",
    "ProfileSpec",
    "RecordSpec",
    "SwitchSpec",
    "Tables",
    "VcSpec",
    "VpSpec",
    "plain",
]

_OF_A_MACHINE: Final = "of a machine"
"""In the metadata of a member that no result has."""

PER_WAY: Final = ("ber", "outage", "rate", "delay_ps")
"""Members of a line that may differ by direction."""

WAY_ENDS: Final = {"both": None, "out": 0, "back": 1}
"""The end of a line from which a direction begins; None: both."""


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A port of a switch: what it sends at, in bits of cells a second, and its settings."""

    rate_bps: int
    settings: PortSettings


@dataclass(frozen=True, slots=True)
class SwitchSpec:
    """A switch."""

    name: str
    ports: tuple[PortSpec, ...]
    settings: SwitchSettings

    def row(self) -> dict[str, Any]:
        """Return the values for ``result.json``; the EPD threshold is in cells."""
        return {
            **self.settings.members(),
            "epd_threshold": self.settings.epd_cells,
            "name": self.name,
            "port_rates_bps": tuple(port.rate_bps for port in self.ports),
            "port_settings": tuple(port.settings for port in self.ports),
        }


@dataclass(frozen=True, slots=True)
class LineSpec:
    """A line between two switches, both ways; in loop-back both ends are the same port.

    Members
    -------
    name : str
    ends : tuple of Face
        Its ports.
    rates_bps : tuple of int
        No port sends faster into it, from the first end to the second and back.
    clock_ppm : tuple of float
        How much faster than nominal the ports send, at the first end and at the second.
    ways : tuple of LinkSettings
        Of the way from the first end to the second, and of the way back.
    framing : SonetSettings or None
        Of a SONET line, which carries every byte of the frames: errors and outages of both ways are here. None: it
        carries cells, with SONET overhead in the rate.
    """

    name: str
    ends: tuple[Face, Face]
    rates_bps: tuple[int, int]
    clock_ppm: tuple[float, float]
    ways: tuple[LinkSettings, LinkSettings]
    framing: SonetSettings | None = None

    @property
    def looped(self) -> bool:
        return self.ends[0] == self.ends[1]

    @property
    def rate_bps(self) -> int:
        """The higher one of both directions."""
        return max(self.rates_bps)

    @property
    def delays_ps(self) -> tuple[int, int]:
        """Out and back."""
        return self.ways[0].delay_ps, self.ways[1].delay_ps

    @property
    def delay_ps(self) -> int:
        """One way, the shorter one of both."""
        return min(self.delays_ps)

    @property
    def ber(self) -> tuple[float, float]:
        """Bit error ratio out and back."""
        return self.framing.ber if self.framing else (self.ways[0].ber, self.ways[1].ber)

    @property
    def outage(self) -> tuple[bool, bool]:
        """Return whether the line is interrupted, out and back."""
        return self.framing.outage if self.framing else (self.ways[0].outage, self.ways[1].outage)

    def as_given(self, key: str, shorter_ps: int = 0) -> list[Any] | None:
        """Return both directions' values of a key as a document has them; None: the key has one value for both.

        Delays are longer by ``shorter_ps``.
        """
        if key in ("ber", "outage"):
            return [*getattr(self, key)]
        if key == "rate":
            return [*self.rates_bps]
        return [f"{delay_ps + shorter_ps} ps" for delay_ps in self.delays_ps] if key == "delay" else None

    def with_delay(self, delay_ps: int) -> LineSpec:
        """Return the same line with this delay, and the difference between both directions that it has."""
        less = self.delay_ps - delay_ps
        out, back = (LinkSettings.part_of(way, delay_ps=way.delay_ps - less) for way in self.ways)
        return replace(self, ways=(out, back))

    def of_cells(self) -> LineSpec:
        """Return the same line with cells alone."""
        faults = zip(self.ways, self.ber, self.outage, strict=True)
        out, back = (LinkSettings.part_of(way, ber=ber, outage=outage) for way, ber, outage in faults)
        return replace(self, ways=(out, back), framing=None)

    def row(self) -> dict[str, Any]:
        """Return the values for ``result.json``."""
        return {
            **self.ways[0].members(),
            "ber": self.ber,
            "outage": self.outage,
            "name": self.name,
            "ends": self.ends,
            "rate_bps": self.rate_bps,
            "rates_bps": self.rates_bps,
            "delays_ps": self.delays_ps,
            "line": _carries(self.framing),
            "ppm": self.framing.ppm if self.framing else 0.0,
            "clock_ppm": self.clock_ppm,
        }


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A host with its interface, and the line to its switch.

    Members
    -------
    config : HostConfig
    interface : NicSettings
    port : Face
        The switch's port that it is at.
    rate_bps, delay_ps : int
        Of its line, one way.
    line_clock_ppm : tuple of float
        How much faster than nominal the host's interface sends, and the switch's port to it.
    frames : FramesName or None
        In which its line has slots for cells.
    framing : SonetSettings or None
        As of a line between switches.
    address : str
        By which a script may name it; "": none.
    """

    config: HostConfig
    interface: NicSettings
    port: Face
    rate_bps: int
    delay_ps: int
    line_clock_ppm: tuple[float, float]
    frames: FramesName | None = None
    framing: SonetSettings | None = None
    address: str = ""

    @property
    def name(self) -> str:
        return self.config.name

    def with_delay(self, delay_ps: int) -> HostSpec:
        return replace(self, delay_ps=delay_ps)

    def of_cells(self) -> HostSpec:
        """Return the same host with a line of cells alone."""
        return replace(self, framing=None)

    def row(self) -> dict[str, Any]:
        """Return the values for ``result.json``."""
        return {
            **self.interface.members(),
            **self.config.members(),
            "port": self.port,
            "rate_bps": self.rate_bps,
            "delay_ps": self.delay_ps,
            "line": _carries(self.framing),
            "frames": self.frames,
            "line_clock_ppm": self.line_clock_ppm,
        }


def _carries(framing: SonetSettings | None) -> str:
    return "cell" if framing is None else "sonet"


@dataclass(frozen=True, slots=True)
class VcSpec:
    """One direction of a virtual channel with the nodes it passes.

    Members
    -------
    name : str
    path : tuple of str
        Host, switches, host; a switch twice in a row where it passes a looped line there.
    vpi, vci : int
        On every line; in virtual paths the VPI is theirs.
    settings : VcSettings
    pacing : PacingSettings
    continuity : ContinuitySettings
    vps : tuple of str
        The virtual paths that it goes through.
    root : int or None
        The VC of which this is another leaf: with the same VPI/VCI, one as far as paths are.
    cdv : CdvSettings or None
        Its 1-point CDV is measured, at the node ``at``.
    """

    name: str
    path: tuple[str, ...]
    vpi: int
    vci: int
    settings: VcSettings
    pacing: PacingSettings
    continuity: ContinuitySettings
    vps: tuple[str, ...] = ()
    root: int | None = None
    cdv: CdvSettings | None = None

    def row(self) -> dict[str, Any]:
        """Return the values for ``result.json``."""
        cdv = {} if self.cdv is None else {"cdv": self.cdv.members()}
        return {
            **self.continuity.members(),
            **self.pacing.members(),
            **self.settings.members(),
            "name": self.name,
            "path": self.path,
            "vpi": self.vpi,
            "vci": self.vci,
            "vps": self.vps,
            "root": self.root,
            **cdv,
        }


@dataclass(frozen=True, slots=True)
class VpSpec:
    """A virtual path, both ways.

    Members
    -------
    name : str
    path : tuple of str
        Switch or host, switches, switch or host.
    vpi : int
        On every line of it.
    settings : VcSettings
        What the switches between its ends give it.
    """

    name: str
    path: tuple[str, ...]
    vpi: int
    settings: VcSettings

    def row(self) -> dict[str, Any]:
        """Return the values for ``result.json``."""
        return {**self.settings.members(), "name": self.name, "path": self.path, "vpi": self.vpi}


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
        ``"tcp"``, ``"udp"``, ``"oam"`` or ``"atm"``.
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
        """Yield all flows in it."""
        for member in self.members:
            if isinstance(member, int):
                yield member
            else:
                yield from member.flows()


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """The switches, lines and hosts of an experiment."""

    switches: tuple[SwitchSpec, ...]
    lines: tuple[LineSpec, ...]
    hosts: tuple[HostSpec, ...]
    vps: tuple[VpSpec, ...] = ()

    @property
    def sonet(self) -> bool:
        """Any line carries SONET frames."""
        return any(each.framing for each in (*self.lines, *self.hosts))


@dataclass(frozen=True, slots=True)
class EventSpec:
    """A change in a run at ``at_ps``, and the network and its VCs from then on.

    ``settings`` are the keys and values that the event itself gives; ``source`` is what gave them.
    """

    at_ps: int
    changes: tuple[Change, ...]
    network: NetworkSpec
    vcs: tuple[VcSpec, ...]
    settings: tuple[tuple[str, Any], ...] = ()
    source: str = "event"

    @property
    def tick(self) -> int:
        """The first that it holds in."""
        return first_tick(self.at_ps)

    @property
    def before_ps(self) -> int:
        """The last picosecond before that; -1: it holds from the beginning."""
        return ticks_to_ps(self.tick) - 1


class LineWrite(NamedTuple):
    """A value for a member of a line; ``end`` is the end from which the direction begins, None: both directions."""

    line: int
    member: str
    end: int | None
    value: Any


@dataclass(frozen=True)
class ProfileSpec:
    """A profile: rows of values by key, and when each is due.

    Members
    -------
    name : str
        Its key in the document.
    file : str
        As the document names it.
    sha256 : str
        Digest of the file.
    line : str or None
        The line whose settings it drives; None: the columns have whole keys.
    direction : str
        "out", "back" or "both".
    keys : tuple of str
        Whole dotted keys.
    times_ps : array
        When each row is due in the first round, in ps of the run.
    columns : tuple of sequences
        Values of each key as a document has them; None: the row does not write the key.
    period_ps : int or None
        The time from a round to the next; None: there is one round.
    members : tuple of tuples, or None
        For each column its line, its member and its values in base units, where rows are written straight into the
        specs; None: the document is read again for each row.
    extremes : tuple of EventSpec
        Networks that the least and greatest values make, for which the run's nodes are built.
    line_number : int or None
        Index of the line.
    """

    name: str
    file: str
    sha256: str
    line: str | None
    direction: str
    keys: tuple[str, ...]
    times_ps: array[int]
    columns: tuple[Sequence[Any], ...]
    period_ps: int | None
    members: tuple[tuple[int, str, Sequence[Any]], ...] | None = None
    extremes: tuple[EventSpec, ...] = field(default=(), repr=False)
    line_number: int | None = None

    @property
    def source(self) -> str:
        """Return the name of this profile as a source of changes in records."""
        return f"profile {self.file}" + ("" if self.direction == "both" else f", {self.direction}")

    def at_ps(self, number: int) -> int | None:
        """Return the time at which a row is due (ps), counted over all rounds; None if there is no such row."""
        rounds, row = divmod(number, len(self.times_ps))
        if not rounds:
            return self.times_ps[row]
        return None if self.period_ps is None else self.times_ps[row] + rounds * self.period_ps

    def given(self, row: int) -> tuple[tuple[str, Any], ...]:
        """Return the keys and values of a row, as the file has them."""
        pairs = ((key, column[row]) for key, column in zip(self.keys, self.columns, strict=True))
        return tuple((key, value) for key, value in pairs if value is not None)

    def values(self, row: int, network: NetworkSpec, shorter_ps: Mapping[int, int] | None = None) -> dict[str, Any]:
        """Return the keys and values of a row as a document has them: of a line's direction with the other's value.
        ``shorter_ps``: as for :class:`~bentpipe.experiment.resolve.line_writes.LineWriter`."""
        found = dict(self.given(row))
        end = WAY_ENDS[self.direction]
        if end is None or self.line_number is None:
            return found
        line, less = network.lines[self.line_number], (shorter_ps or {}).get(self.line_number, 0)
        for key in found:
            both = line.as_given(key.rpartition(".")[2], less)
            if both is not None:
                both[end] = found[key]
                found[key] = both
        return found

    def writes(self, row: int) -> list[LineWrite] | None:
        """Return the writes of a row to the specs; None: the document has to be read again."""
        if self.members is None:
            return None
        return [self.write(row, k) for k, (_, _, column) in enumerate(self.members) if column[row] is not None]

    def write(self, row: int, column: int) -> LineWrite:
        """Return the write of a row's value in a column, where rows are written straight into the specs."""
        assert self.members is not None
        line, member, values = self.members[column]
        return LineWrite(line, member, WAY_ENDS[self.direction] if member in PER_WAY else None, values[row])

    def rated(self, network: NetworkSpec) -> list[tuple[Sequence[Any], list[tuple[str, int]]]]:
        """Return the columns that are rates, each with the switches' ports that have them, by name and number."""
        way = WAY_ENDS[self.direction]
        return [
            (values, [(end.switch, end.port) for k, end in enumerate(network.lines[line].ends) if way in (None, k)])
            for line, member, values in self.members or ()
            if member == "rate"
        ]

    def row(self) -> dict[str, Any]:
        """Return the values for ``result.json``."""
        return {
            "file": self.file,
            "sha256": self.sha256,
            "line": self.line,
            "direction": self.direction,
            "keys": self.keys,
            "rows": len(self.times_ps),
            "first_s": self.times_ps[0] / 10**12,
            "last_s": self.times_ps[-1] / 10**12,
            "period_s": None if self.period_ps is None else self.period_ps / 10**12,
        }


@dataclass(frozen=True, slots=True)
class RecordSpec:
    """Records of a run: the series named in ``what``, a sample each ``interval_ps``; captures as pcap files; at most
    ``losses`` records of lost cells."""

    interval_ps: int
    what: tuple[str, ...]
    pcap: tuple[CaptureSpec, ...] = ()
    losses: int = 0


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
    ``curve`` if there are several. ``full_ps`` is the duration that the file gives, ``changes`` what else is not as
    there. ``over_cases`` are published figures of all cases together. ``events`` are in the order of their times,
    ``profiles`` in that of the file. The ``metric`` of a published figure is the figure of ours beside it, ``""``:
    none. ``plugins`` are those that it names or uses. ``tables`` are the places in the document, ``folder`` is
    where files that it names are.
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
    profiles: tuple[ProfileSpec, ...] = ()
    splitting: SplittingTable | None = None
    rare_timeout: RareTimeoutTable | None = None
    plugins: tuple[Plugin, ...] = ()
    tables: Tables = field(default=Tables(), compare=False, repr=False)
    folder: Path | None = field(default=None, compare=False, repr=False, metadata={_OF_A_MACHINE: True})

    @property
    def shortened(self) -> bool:
        """Less time than the file gives."""
        return self.duration_ps < self.full_ps

    @property
    def splits(self) -> bool:
        """Trials begin from states of the run."""
        return self.splitting is not None or self.rare_timeout is not None

    def host(self, name: str) -> HostSpec:
        return next(h for h in self.network.hosts if h.name == name)


def plain(value: Any) -> Any:
    """Return members of dataclasses and models by name, down to values, as JSON has them."""
    if isinstance(value, (SwitchSpec, LineSpec, HostSpec, VcSpec, VpSpec, ProfileSpec)):
        return plain(value.row())
    if isinstance(value, Settings):
        return plain(value.members())
    if is_dataclass(value):
        members = (each.name for each in fields(value) if _OF_A_MACHINE not in each.metadata)
        return {name: plain(getattr(value, name)) for name in members}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value
