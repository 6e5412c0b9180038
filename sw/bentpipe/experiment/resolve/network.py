"""The network of a document: what is at which port, the rate of each, the clock of each, what a host is made from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

from bentpipe.experiment.document.source import ConfigProblem, Problems
from bentpipe.experiment.document.tables import (
    Document,
    Face,
    HostsTable,
    HostTable,
    LineTable,
    NetworkTable,
    SwitchTable,
)
from bentpipe.experiment.resolve.clocks import draw_clocks
from bentpipe.experiment.resolve.delays import read_variation
from bentpipe.experiment.resolve.specs import HostSpec, LineSpec, NetworkSpec, PortSpec, SwitchSpec
from bentpipe.hosts.clock import clock_period_ps
from bentpipe.hosts.config import HostConfig, HostSettings
from bentpipe.hosts.profiles import profile
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings
from bentpipe_hdl.settings import key_of, shown
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings
from bentpipe_hdl.units import LINE_RATES, MAX_RATE_BPS, SONET_RATES, format_rate, format_time
from bentpipe_hdl.words import nearest

__all__ = ["read_network"]

_COSTS: Final = ("send_cost_ps", "receive_cost_ps")
_CLOCK: Final = ("clock_hz", "clock_cost_ps", "clock_tolerance_ppm")


def read_network(document: Document, seed: int, problems: Problems) -> NetworkSpec:
    """Return the network, its clocks drawn from the seed.

    Raises
    ------
    ConfigError
        There is no such port, or two things are at it; a rate that a port, a switch or SONET does not have; a host's
        clock that leaves it no time.
    """
    table = document.network
    if not table.switches:
        raise problems.source.error(ConfigProblem("network", "there is no switch ([network.switches.NAME])"))
    ports = _Ports(table.switches)
    lines = []
    hosts = []
    for name, line in table.lines.items():
        with problems.gathered():
            lines.append(_line(name, line, table, ports, seed, problems.source.folder))
    for name, host in table.hosts.items():
        with problems.gathered():
            hosts.append(_host(name, host, document, ports, seed, problems.source.defaults))
    if len(table.hosts) < 2:
        problems.found.append(
            ConfigProblem("network.hosts", "an experiment has two hosts and more ([network.hosts.NAME])")
        )
    problems.check()
    switches = []
    for name, switch in table.switches.items():
        with problems.gathered():
            switches.append(_switch(name, switch, ports))
    problems.check()
    return NetworkSpec(tuple(switches), tuple(lines), tuple(hosts))


class _Ports:
    """The ports of the switches, and what is at them.

    Members
    -------
    rates : dict[Face, int]
        What each sends at.
    settings : dict[Face, PortSettings]
        What those have besides that have a line.
    coming, going : Counter
        Bits of cells a second of all lines into each switch, and out of it.
    """

    def __init__(self, switches: dict[str, SwitchTable]) -> None:
        self.counts = {name: s.ports if isinstance(s.ports, int) else len(s.ports) for name, s in switches.items()}
        self._own = {
            Face(name, port): rate
            for name, switch in switches.items()
            if isinstance(switch.ports, tuple)
            for port, rate in enumerate(switch.ports)
        }
        every = (Face(name, port) for name, count in self.counts.items() for port in range(count))
        self.rates = {face: self._own.get(face, LINE_RATES["OC-3c"]) for face in every}
        self.coming: Counter[str] = Counter()
        self.going: Counter[str] = Counter()
        self.settings: dict[Face, PortSettings] = {}
        self._taken: dict[Face, str] = {}

    def take(self, face: Face, place: str, key: str, rate: int | None, settings: PortSettings) -> int:
        """Attach a line to a port. What the port sends at is the line's rate unless it has its own."""
        if face.switch not in self.counts:
            raise ConfigProblem(
                f"{place}.{key}", f"there is no switch {face.switch!r}{nearest(face.switch, self.counts)}"
            )
        if face not in self.rates:
            last = self.counts[face.switch] - 1
            raise ConfigProblem(
                f"{place}.{key}", f"switch {face.switch!r} has no port {face.port}; its ports are 0..{last}"
            )
        if face in self._taken:
            raise ConfigProblem(f"{place}.{key}", f"port {face} is taken by {self._taken[face]}")
        self._taken[face] = place
        own = self._own.get(face)
        if own is not None and rate is not None and own > rate:
            what = f"port {face} sends at {format_rate(own)}, more than the line's {format_rate(rate)}"
            raise ConfigProblem(f"{place}.rate", what)
        self.rates[face] = own or rate or LINE_RATES["OC-3c"]
        self.settings[face] = settings
        reactive = settings.reactive
        if reactive is not None and reactive.cell_ceiling_bps > self.rates[face]:
            rates = (format_rate(rate) for rate in (reactive.cell_ceiling_bps, self.rates[face]))
            what = "{} of cells is more than the {} of the line".format(*rates)
            raise ConfigProblem(f"{place}.reactive.ceiling", what)
        self.going[face.switch] += self.rates[face]
        return self.rates[face]


def _kind(place: str, own: str | None, network: NetworkTable, rate: int) -> str:
    """Return the ``line`` of a line, else that of the whole network."""
    kind = own or network.line
    if kind == "sonet" and rate not in SONET_RATES:
        key = f"{place}.line" if own else "network.line"
        raise ConfigProblem(key, f"{place} has {format_rate(rate)}; SONET is OC-3c or OC-12c")
    return kind


def _clocks(own: float | None, network: NetworkTable, seed: int, name: str) -> tuple[float, float]:
    """Return the offsets of a line's two clocks in ppm, drawn from the seed within its tolerance or the network's."""
    return draw_clocks(seed, name, network.clock_tolerance_ppm if own is None else own)


def _line(name: str, line: LineTable, network: NetworkTable, ports: _Ports, seed: int, folder: Path | None) -> LineSpec:
    place = f"network.lines.{name}"
    first, second = line.ends
    faces = (first,) if first == second else (first, second)
    sending = [ports.take(face, place, "ends", line.rates[end], line.port(end)) for end, face in enumerate(faces)]
    out_bps, back_bps = (given or sent for given, sent in zip(line.rates, (sending[0], sending[-1]), strict=True))
    rate = max(out_bps, back_bps)
    rates = (out_bps, back_bps) if isinstance(line.rate_bps, tuple) else (rate, rate)
    kind = _kind(place, line.line, network, rate)
    if "ppm" in line.model_fields_set and kind != "sonet":
        raise ConfigProblem(f"{place}.ppm", 'a clock offset needs line = "sonet"')
    if len(faces) == 1 and line.errors[0] != line.errors[1]:
        raise ConfigProblem(f"{place}.ber", "a line in loop-back has one direction, so one error ratio")
    if len(faces) == 1 and line.outages[0] != line.outages[1]:
        raise ConfigProblem(f"{place}.outage", "a line in loop-back has one direction: true or false")
    for key, pair in (("rate", rates), ("delay", line.delays)):
        if len(faces) == 1 and pair[0] != pair[1]:
            raise ConfigProblem(f"{place}.{key}", f"a line in loop-back has one direction, so one {key}")
    if line.reorder is not None and line.order != "merged":
        raise ConfigProblem(f"{place}.reorder", 'cells that overtake need order = "merged"')
    if line.reorder is not None and min(line.delays) <= line.reorder.by_ps:
        raise ConfigProblem(f"{place}.reorder.by", "must be less than the delay of the line")
    if kind == "sonet" and rates[0] != rates[1]:
        raise ConfigProblem(f"{place}.rate", "a SONET line has one rate")
    if line.bursts is not None and kind == "sonet":
        raise ConfigProblem(
            f"{place}.bursts", 'bursts of errors require line = "cell"; a SONET line has ber and outage'
        )
    for face, far, own in zip(faces, reversed(faces), sending, strict=True):
        ports.rates[face] = round(own * (1 - abs(line.ppm) * 1e-6))  # so that a slower payload takes all cells
        ports.coming[far.switch] += own
    clocks = _clocks(line.clock_tolerance_ppm, network, seed, name)
    framing = None
    faults: list[tuple[float, bool]] = [*zip(line.errors, line.outages, strict=True)]
    if kind == "sonet":  # the frames have the errors
        both = {"ber": line.errors, "outage": line.outages, "ppm": line.ppm}
        framing, faults = SonetSettings.of_read({"sts": SONET_RATES[rate], **both}), [(0.0, False)] * 2
    variation = read_variation(line.variation, f"{place}.variation.file", folder)
    out, back = (
        LinkSettings.part_of(line, ber=ber, outage=outage, delay_ps=delay_ps, variation=variation)
        for (ber, outage), delay_ps in zip(faults, line.delays, strict=True)
    )
    return LineSpec(name, (first, second), rates, clocks, (out, back), framing)


def _switch(name: str, table: SwitchTable, ports: _Ports) -> SwitchSpec:
    for cells, verb in ((ports.coming[name], "bring"), (ports.going[name], "take")):
        if cells > MAX_RATE_BPS:
            what = f"its lines {verb} up to {format_rate(cells)} of cells together, and a switch moves "
            what += f"{format_rate(MAX_RATE_BPS)}: give it fewer lines, or slower ones"
            raise ConfigProblem(f"network.switches.{name}.ports", what)
    faces = [Face(name, port) for port in range(ports.counts[name])]
    made = tuple(PortSpec(ports.rates[face], ports.settings.get(face, PortSettings())) for face in faces)
    return SwitchSpec(name, made, SwitchSettings.part_of(table))


def _host(
    name: str, host: HostTable, document: Document, ports: _Ports, seed: int, defaults: dict[str, Any]
) -> HostSpec:
    place = f"network.hosts.{name}"
    if name in ports.counts:
        raise ConfigProblem(place, f"{name!r} is a switch already")
    ports.take(host.port, place, "port", host.rate_bps, PortSettings.part_of(host))
    ports.coming[host.port.switch] += host.rate_bps
    values, places = _settings({place: host, "hosts": document.hosts}, defaults)
    _check_clock(name, values, places)
    sonet = _kind(place, host.line, document.network, host.rate_bps) == "sonet"
    own = {key: values[key] for key in HostSettings.model_fields} | {"name": name, "seed": seed}
    own |= {key: float(own[key]) for key in ("clock_hz", "clock_tolerance_ppm")}
    return HostSpec(
        config=HostConfig.of_read(own),
        interface=NicSettings.of_read({key: values[key] for key in NicSettings.model_fields}),
        port=host.port,
        rate_bps=host.rate_bps,
        delay_ps=host.delay_ps,
        line_clock_ppm=_clocks(host.line_clock_tolerance_ppm, document.network, seed, name),
        frames=host.frames,
        framing=SonetSettings.of_read({"sts": SONET_RATES[host.rate_bps]}) if sonet else None,
        address=host.address,
    )


def _settings(
    tables: dict[str, HostTable | HostsTable], defaults: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of a host, and the table that gives each of those that are given.

    It is the first table that gives the setting itself, both costs at once, or a profile that has it. What none gives
    is noted in ``defaults`` where the profile is that decides, or else in the last table.
    """
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for name, field in (HostSettings.model_fields | NicSettings.model_fields).items():
        value, place = 0 if name in _CLOCK else field.default, ""
        for place, table in tables.items():
            given = next((key for key in (name, *("cost_ps",) * (name in _COSTS)) if key in table.model_fields_set), "")
            if given:
                value, places[name] = getattr(table, given), place
                break
            if table.profile is not None and name in (*_COSTS, *_CLOCK):
                value = None if name in _COSTS else getattr(profile(table.profile), name)
                break
        values[name] = value
        if name not in places and value is not None:
            defaults[f"{place}.{key_of(name)}"] = shown(field, value)
    return values, places


def _check_clock(host: str, values: dict[str, Any], places: dict[str, str]) -> None:
    hz, cost_ps, ppm = (values[name] for name in _CLOCK)
    hz_key, cost_key = (f"{places[name]}.{key_of(name)}" if name in places else "" for name in _CLOCK[:2])
    if cost_ps and not hz and not hz_key:
        raise ConfigProblem(cost_key, "needs clock_hz: how many clock interrupts there are a second")
    if hz and not cost_ps and not cost_key:
        raise ConfigProblem(hz_key, "needs clock_cost: how long each of the interrupts takes")
    if hz and cost_ps >= clock_period_ps(hz, -ppm):
        each = format_time(clock_period_ps(hz, 0.0))
        what = f"an interrupt of {format_time(cost_ps)} each {each} leaves the processor of {host} no time"
        raise ConfigProblem(cost_key or hz_key, what)
