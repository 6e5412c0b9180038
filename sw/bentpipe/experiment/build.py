"""From an experiment to its network and its hosts: the one place that knows both builders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from bentpipe.apps.registry import make
from bentpipe.apps.settings import Given
from bentpipe.errors import BentpipeError
from bentpipe.experiment.branch import Branches
from bentpipe.experiment.document import Face
from bentpipe.experiment.faults import Places
from bentpipe.experiment.ledger import LedgerHost, make_ledger
from bentpipe.experiment.oam import OamEnds, add_ends, loopback_to, report_ends
from bentpipe.experiment.paths import vpi_on
from bentpipe.experiment.schema import EventSpec, Experiment, GroupSpec, LineSpec, NetworkSpec, VcSpec
from bentpipe.experiment.splitting import Splitting, check_random
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings, PacingSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_hdl.units import LINE_RATES, SONET_RATES

if TYPE_CHECKING:
    from bentpipe.hosts.engine import Engine
    from bentpipe.hosts.flow_base import FlowOrGroup
    from bentpipe.hosts.host import Host
    from bentpipe_sim.network import Network
    from bentpipe_sim.nodes import Link, Nic, Switch
    from bentpipe_sim.queue_monitor import QueueMonitor

__all__ = ["Build", "BuiltExperiment", "FlowHandle", "add_hosts", "build", "build_network", "rehearse"]


class FlowHandle(Protocol):
    """A flow of the engine: its report is a dataclass."""

    def report(self, end_ps: int) -> Any: ...


class EngineHandle(Protocol):
    def run(self, until_ps: int, progress: Callable[[int], bool | None] | None = None) -> Any: ...


@dataclass(slots=True)
class BuiltExperiment:
    """What a run needs of a network with its hosts.

    Members
    -------
    engine : EngineHandle
    flows : dict[str, FlowHandle]
    now_ps : Callable
        The simulated time.
    samples : Callable
        What the switches tell of themselves now, by series: cells queued (``SWITCH.queue``), what ports with options
        have to tell (``SWITCH:PORT.SERIES``).
    counters : Callable
        Counters of every node, by its name: a number, or a list with one a VC or port.
    drops : Callable
        Cells dropped so far, by node and reason; ``True``: the hosts' interfaces too, which takes longer.
    check : Callable
        Raises if cells in, out, dropped and queued don't add up in every node.
    ledger : Callable
        What became of all PDUs so far, a row for each VC (:func:`~bentpipe.experiment.ledger.make_ledger`); raises if
        that doesn't add up.
    close : Callable
        Lets go of the network's resources.
    change : Callable
        Makes the network as it is from an event on; events in the order of their times.
    capture : Callable
        Begins the captures that the experiment asks for, in this folder; what it returns ends them.
    oam : Callable
        States and counts of the hosts' ends of OAM flows, a row each.
    save : Callable or None
        The state of what is no object of Python; None: there is no way to have it.
    restore : Callable or None
        Gives that to a copy of all this, and tells it the folder in which its captures are now.
    splitting : Splitting or None
        The engine of a run that splits.
    asked : list[EventSpec]
        Changes besides those of the experiment, at the times at which they were made: somebody asked for them, or they
        are events of the experiment on top of what somebody asked for.
    """

    engine: EngineHandle
    flows: Mapping[str, FlowHandle]
    now_ps: Callable[[], int]
    samples: Callable[[], dict[str, int]]
    counters: Callable[[], dict[str, dict[str, Any]]]
    drops: Callable[[bool], dict[str, dict[str, int]]]
    check: Callable[[], None]
    ledger: Callable[[], list[dict[str, Any]]]
    close: Callable[[], None]
    change: Callable[[EventSpec], None]
    capture: Callable[[Path], Callable[[], None]]
    oam: Callable[[], list[dict[str, Any]]] = field(default=lambda: [])
    save: Callable[[], Any] | None = None
    restore: Callable[[Any, Path | None], None] | None = None
    splitting: Splitting | None = None
    asked: list[EventSpec] = field(default_factory=list)


Nodes = dict[str, Any]
"""Interfaces of hosts and switches, by name."""

Between = dict[tuple[str, str], list[Any]]
"""The nodes of a line from one host or switch to another, by their names."""

_PORTS: Final = 4
"""Switches have this many ports and more, so that most experiments share one compiled shape."""

Build = Callable[[Experiment, Any], BuiltExperiment]
"""Makes the network and the hosts of an experiment, given the recorder."""


def build(experiment: Experiment, recorder: Any) -> BuiltExperiment:
    """Nodes, lines, VCs, hosts and flows of an experiment, on the Verilated nodes."""
    network, nics, vcs = build_network(experiment)
    try:
        return add_hosts(experiment, recorder, network, nics, vcs)
    except BaseException:
        network.close()
        raise


def build_network(experiment: Experiment, encapsulation: int = 8) -> tuple[Network, dict[str, Nic], list[int]]:
    """The network, not started yet; the hosts' interfaces by name; the index of each VC at its interfaces. An SDU has
    ``encapsulation`` octets more than the MTU at most."""
    from bentpipe_sim.network import Network

    network = Network(seed=experiment.seed)
    places = Places(experiment, network)
    nics, switches, links, between = _nodes(experiment, network, places)
    nodes: Nodes = {**nics, **switches}
    for vp in experiment.network.vps:
        for path, oam in ((vp.path, vp.oam), (vp.path[::-1], vp.oam and vp.oam.other_way())):
            settings = VcSettings.part_of(vp) | {"oam": oam}
            with places.at(f"network.vps.{vp.name}"):
                network.add_vp(_along(path, nodes, between), vp.vpi, **settings)
    vcs: list[int] = []
    leaves: defaultdict[int, list[VcSpec]] = defaultdict(list)
    for vc in experiment.vcs:
        if vc.root is not None:
            leaves[vc.root].append(vc)
    for number, vc in enumerate(experiment.vcs):
        if vc.root is not None:
            vcs.append(vcs[vc.root])
            continue
        with places.at(places.vc(number)):
            vcs.append(_vc(experiment, network, [vc, *leaves[number]], nodes, between, encapsulation))
    for number, loss in enumerate(experiment.losses):
        vc = experiment.vcs[loss.vc]
        vpi = vpi_on(vc, loss.way, experiment.network)
        with places.at(f"loss.{number}"):
            links[loss.way].lose(vpi, vc.vci, pdus=loss.pdus, cells=loss.cells)
    _Changer(experiment, network).prepare(experiment, places)
    return network, nics, vcs


def rehearse(experiment: Experiment) -> None:
    """Make an experiment's network and hosts up to where its nodes would be compiled, and forget them.

    Raises
    ------
    BuildError
        They can't be made, and so the experiment can't run.
    """
    from bentpipe.hosts.engine import Engine

    network, nics, vcs = build_network(experiment)
    places = Places(experiment, network)
    engine = Engine(network, None)
    hosts: dict[str, Host] = {}
    for host in experiment.network.hosts:
        with places.at(f"network.hosts.{host.name}"):
            hosts[host.name] = engine.add_host(host, nics[host.name].index)
    ends = add_ends(experiment, engine, network, hosts, vcs)
    _add_flows(experiment, engine, hosts, vcs, ends, places)
    with places.at(""):
        network.rehearse()
    if experiment.splitting is not None:
        port = experiment.splitting.port
        with places.at("splitting.port"):
            gauge = network.monitor_queue(_switch_named(network, port.switch), port.port)
            gauge.check()
        with places.at("splitting"):
            check_random(Branches(network, engine, gauge))


def add_hosts(
    experiment: Experiment,
    recorder: Any,
    network: Network,
    nics: dict[str, Nic],
    vcs: list[int],
    outside: Mapping[str, LedgerHost] | None = None,
) -> BuiltExperiment:
    """Hosts and flows on a network made by :func:`build_network`; starts it. Hosts that are ``outside`` have no flows
    and no ends of OAM flows here."""
    from bentpipe.hosts.engine import Engine

    engine = Engine(network, recorder, segments="segments" in experiment.record.what)
    inside = [host for host in experiment.network.hosts if host.name not in (outside or {})]
    hosts = {h.name: engine.add_host(h, nics[h.name].index) for h in inside}
    ends = add_ends(experiment, engine, network, hosts, vcs)
    flows = _add_flows(experiment, engine, hosts, vcs, ends, Places(experiment, network))
    gauge = _gauge(experiment, network)
    network.start()  # compiles what is missing: no part of the run

    made = _Made(experiment, network, nics, {**hosts, **(outside or {})}, ends)
    splitting = None if gauge is None else Splitting(experiment, Branches(network, engine, gauge))
    return BuiltExperiment(
        engine=splitting or engine,
        flows=flows,
        now_ps=made.now_ps,
        samples=network.sample,
        counters=network.counters,
        drops=made.drops,
        check=network.check_conservation,
        ledger=made.ledger,
        close=network.close,
        change=_Changer(experiment, network).to,
        capture=made.capture,
        oam=made.oam,
        save=network.save if network.saves and splitting is None else None,
        restore=network.restore,
        splitting=splitting,
    )


def _gauge(experiment: Experiment, network: Network) -> QueueMonitor | None:
    """At the port at which a run splits.

    Raises
    ------
    BentpipeError
        The engine's models give no state, which could be gone on from.
    """
    if experiment.splitting is None:
        return None
    if not network.saves:
        raise BentpipeError(f"{experiment.id}: [splitting] needs the engine native: models of others give no state")
    port = experiment.splitting.port
    return network.monitor_queue(_switch_named(network, port.switch), port.port)


def _switch_named(network: Network, name: str) -> Switch:
    return cast("Switch", next(node for node in network.nodes if node.name == name))


class _Made:
    """A network with its hosts, as a run asks for them."""

    def __init__(
        self,
        experiment: Experiment,
        network: Network,
        nics: dict[str, Nic],
        hosts: Mapping[str, LedgerHost],
        ends: OamEnds,
    ) -> None:
        self._experiment, self._network, self._nics = experiment, network, nics
        self._hosts, self._ends = hosts, ends

    def now_ps(self) -> int:
        return self._network.now_ps

    def drops(self, hosts: bool) -> dict[str, dict[str, int]]:
        return {n.name: dropped(n.counters()) for n in self._network.nodes if hosts or n.kind != "nic"}

    def capture(self, folder: Path) -> Callable[[], None]:
        nodes = {node.name: node for node in self._network.nodes}
        for spec in self._experiment.record.pcap:
            face = self._nics[spec.host] if spec.host else (nodes[spec.switch], spec.port)
            self._network.capture(folder / spec.file, spec.kind, face)
        return self._network.end_captures

    def ledger(self) -> list[dict[str, Any]]:
        return make_ledger(self._experiment, self._network.ledger(), self._hosts)

    def oam(self) -> list[dict[str, Any]]:
        return report_ends(self._experiment, self._ends, self._network.now_ps)


def _add_flows(
    experiment: Experiment, engine: Engine, hosts: dict[str, Host], vcs: list[int], ends: OamEnds, places: Places
) -> dict[str, FlowHandle]:
    """The flows by name; those of the schedule wait for it."""
    from bentpipe.hosts.engine import HELD

    held = set() if experiment.schedule is None else set(experiment.schedule.flows())
    stages: dict[int, FlowOrGroup] = {}
    also: defaultdict[int, list[tuple[str, Host]]] = defaultdict(list)  # other sinks of a flow
    for flow in experiment.flows:
        if flow.first is not None:
            also[flow.first].append((flow.name, hosts[flow.sink]))
    handles: dict[str, FlowHandle] = {flow.name: cast("FlowHandle", None) for flow in experiment.flows}  # their order
    for index, flow in enumerate(experiment.flows):
        if flow.first is not None:
            continue
        start = HELD if index in held else flow.start_ps
        source, sink = hosts[flow.source], hosts[flow.sink]
        there, back = vcs[flow.vc], 0 if flow.return_vc is None else vcs[flow.return_vc]
        given = Given(
            flow.protocol,
            flow.settings,
            flow.size,
            flow.duration_ps or 0,
            flow.datagram,
            seed=experiment.seed,
            number=index,
        )
        stage: FlowOrGroup
        with places.flow(index):
            app = make(flow.app, given)
            if flow.protocol == "oam":
                location, pti = loopback_to(flow, experiment.network)
                stage = engine.add_loopback_flow(flow.name, source, sink, ends[flow.vc], app, location, pti, start)
            elif flow.tcp is None:
                size = flow.datagram or 0
                stage = engine.add_udp_flow(flow.name, source, sink, there, app, size, start, back, also[index])
                handles |= {receiver.name: receiver for receiver in stage.receivers}
            else:
                stage = engine.add_tcp_flow(flow.name, source, sink, there, back, flow.tcp, app=app, start_ps=start)
        if index in held:
            stage.delay_ps = flow.start_ps
        stages[index] = stage
        handles[flow.name] = stage

    def group(spec: GroupSpec) -> FlowOrGroup:
        members = [stages[m] if isinstance(m, int) else group(m) for m in spec.members]
        made = engine.add_group(members, spec.serial)
        made.delay_ps = spec.delay_ps
        return made

    if experiment.schedule is not None:
        engine.start(group(experiment.schedule))
    return handles


def dropped(counters: Mapping[str, Any]) -> dict[str, int]:
    """A node's cells dropped by reason, from its counters (``drop_REASON``: a number, or one a VC)."""
    found = {}
    for name, value in counters.items():
        reason = name.removeprefix("drop_")
        if reason != name:
            found[reason] = sum(value) if isinstance(value, (list, tuple)) else int(value)
    return found


def _nodes(
    experiment: Experiment, network: Network, places: Places
) -> tuple[dict[str, Nic], dict[str, Switch], dict[tuple[str, str], Link], Between]:
    nics: dict[str, Nic] = {}
    switches: dict[str, Switch] = {}
    links: dict[tuple[str, str], Link] = {}
    between: Between = {}
    offsets = {host.port: host.line_clock_ppm[1] for host in experiment.network.hosts}
    for line in experiment.network.lines:
        for end, face in enumerate(line.ends[:1] if line.looped else line.ends):
            offsets[face] = line.clock_ppm[end]
    for spec in experiment.network.switches:
        with places.at(f"network.switches.{spec.name}"):
            switches[spec.name] = network.add_switch(
                spec.name,
                port_rates_bps=[*spec.port_rates_bps, *[LINE_RATES["OC-3c"]] * (_PORTS - len(spec.port_rates_bps))],
                port_clock_ppm=[
                    offsets.get(Face(spec.name, port), 0.0) for port in range(max(_PORTS, len(spec.port_rates_bps)))
                ],
                port_settings=dict(enumerate(spec.port_settings)),
                **SwitchSettings.part_of(spec),
            )
    for line in experiment.network.lines:
        with places.at(f"network.lines.{line.name}"):
            _line(network, line, switches, links, between)
    for host in experiment.network.hosts:
        with places.at(f"network.hosts.{host.name}"):
            nic = nics[host.name] = network.add_nic(
                host.name,
                rate_bps=host.rate_bps,
                clock_ppm=host.line_clock_ppm[0],
                frames=host.frames,
                **NicSettings.part_of(host),
            )
            face = (switches[host.port.switch], host.port.port)
            if host.sonet:
                sonet = network.add_sonet_line(f"{host.name}.line", sts=SONET_RATES[host.rate_bps])
                for end, node in enumerate((nic, face)):
                    network.connect(node, (sonet, end))
                    network.connect((sonet, end), node, delay_ps=host.delay_ps)
                between[host.name, host.port.switch] = between[host.port.switch, host.name] = [sonet]
            else:
                network.connect(nic, face, delay_ps=host.delay_ps)
                network.connect(face, nic, delay_ps=host.delay_ps)
    return nics, switches, links, between


def _line(
    network: Network,
    line: LineSpec,
    switches: dict[str, Switch],
    links: dict[tuple[str, str], Link],
    between: Between,
) -> None:
    """A link each way, or one in loop-back.

    Errors and framing are those of the SONET line before a link, if it is one: to the cells it is the same whether they
    are delayed before the receiver or behind it.
    """
    sonet = None
    if line.sonet:
        sonet = network.add_sonet_line(f"{line.name}.line", **_sonet_settings(line))
    for end, way in enumerate(_ways(line)):
        a, b = line.ends[end], line.ends[1 - end]
        link = network.add_link(f"{line.name}.{way}", **_link_settings(line, end))
        face = (switches[a.switch], a.port)
        if sonet:
            network.connect(face, (sonet, end))
        network.connect((sonet, 1 - end) if sonet else face, link)
        network.connect(link, (switches[b.switch], b.port))
        links.setdefault((a.switch, b.switch), link)
        between.setdefault((a.switch, b.switch), [sonet, link] if sonet else [link])


def _ways(line: LineSpec) -> tuple[str, ...]:
    return ("out",) if line.looped else ("out", "back")


def _link_settings(line: LineSpec, end: int) -> dict[str, Any]:
    """Of the way from an end, by name."""
    here = {"ber": 0.0, "outage": False} if line.sonet else {"ber": line.ber[end], "outage": line.outage[end]}
    return LinkSettings.part_of(line) | here


def _sonet_settings(line: LineSpec) -> dict[str, Any]:
    return {"sts": SONET_RATES[line.rate_bps], "ber": line.ber, "outage": line.outage, "ppm": line.ppm}


class _Changer:
    """Changes a network that runs: what an event's network has otherwise than that before it."""

    def __init__(self, experiment: Experiment, network: Network) -> None:
        self._network = network
        self._nodes = {node.name: node for node in network.nodes}
        self._before: tuple[NetworkSpec, Sequence[VcSpec]] = (experiment.network, experiment.vcs)

    def prepare(self, experiment: Experiment, places: Places) -> None:
        """Have the nodes of a network that isn't started built for all that they will be."""
        with places.at(""):
            for node in self._nodes.values():
                node.note()  # before an event could be blamed
        for number, event in enumerate(experiment.events):
            with places.event(number):
                self.to(event)
                for node in self._nodes.values():
                    node.note()
        self.to(EventSpec(0, (), experiment.network, experiment.vcs))

    def to(self, event: EventSpec) -> None:
        (before, vcs), self._before = self._before, (event.network, event.vcs)
        for old, new in zip(before.lines, event.network.lines, strict=True):
            if new.sonet:
                self._change(f"{new.name}.line", _sonet_settings(old), _sonet_settings(new))
            for end, way in enumerate(_ways(new)):
                self._change(f"{new.name}.{way}", _link_settings(old, end), _link_settings(new, end))
        for old, new in zip(before.switches, event.network.switches, strict=True):
            self._change(new.name, SwitchSettings.part_of(old), SwitchSettings.part_of(new))
            was, ports = (list(zip(s.port_rates_bps, s.port_settings, strict=True)) for s in (old, new))
            for port, (rate, settings) in enumerate(ports):
                if (rate, settings) != was[port]:
                    cast("Switch", self._nodes[new.name]).change_port(port, rate, settings)
        for number, (old, new) in enumerate(zip(before.vps, event.network.vps, strict=True)):
            for way in (0, 1) if old != new else ():
                self._network.change_vp(2 * number + way, **VcSettings.part_of(new))
        roots = [(old, new) for old, new in zip(vcs, event.vcs, strict=True) if new.root is None]
        for number, (old, new) in enumerate(roots):
            if old != new:
                self._network.change_vc(number, **PacingSettings.part_of(new), **VcSettings.part_of(new))

    def _change(self, name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        if old != new:
            self._nodes[name].change(**new)


def _along(path: Sequence[str], nodes: Nodes, between: Between) -> list[Any]:
    """Hosts and switches by their names, and what joins them."""
    found = []
    for here, after in zip(path, (*path[1:], ""), strict=True):
        found += [nodes[here], *between.get((here, after), [])]
    return found


def _vc(
    experiment: Experiment, network: Network, legs: list[VcSpec], nodes: Nodes, between: Between, encapsulation: int
) -> int:
    """A VC with all its leaves."""
    vc, paths = legs[0], [leg.path for leg in legs]
    mtu = min(experiment.host(host).mtu for host in (vc.path[0], *(path[-1] for path in paths)))
    first, *branches = (_along(path, nodes, between) for path in paths)
    return network.add_vc(
        path=first,
        branches=branches,
        vpi=vc.vpi,
        vci=vc.vci,
        **PacingSettings.part_of(vc),
        max_sdu=min(mtu + encapsulation, 65535),
        **VcSettings.part_of(vc),
    )
