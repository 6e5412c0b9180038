"""From an experiment to its hosts and flows, on its network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from bentpipe.apps.registry import make
from bentpipe.apps.settings import FlowRequest
from bentpipe.apps.test_cells import TestCells
from bentpipe.errors import BentpipeError
from bentpipe.experiment.build.changes import Reconfigurator
from bentpipe.experiment.build.faults import Places
from bentpipe.experiment.build.ledger import LedgerHost, make_ledger
from bentpipe.experiment.build.losses import read_losses
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.build.oam import OamEnds, add_ends, loopback_to, report_ends
from bentpipe.experiment.build.ports import count_ports
from bentpipe.experiment.build.test_cells import add_stream
from bentpipe.experiment.resolve.specs import EventSpec, Experiment, GroupSpec
from bentpipe_hdl.ticks import first_tick

if TYPE_CHECKING:
    import pyarrow as pa

    from bentpipe.experiment.build.overrides import Overrides
    from bentpipe.experiment.document.tables import Face
    from bentpipe.hosts.engine import Engine
    from bentpipe.hosts.flow_base import FlowOrGroup
    from bentpipe.hosts.host import Host
    from bentpipe_sim.network import Network
    from bentpipe_sim.nodes import Nic, Switch
    from bentpipe_sim.queue_monitor import QueueMonitor

__all__ = ["Build", "BuiltExperiment", "FlowHandle", "Splits", "add_hosts", "build", "rehearse"]


class FlowHandle(Protocol):
    """A flow of the engine: its report is a dataclass."""

    def report(self, end_ps: int) -> Any: ...


class EngineHandle(Protocol):
    def run(self, until_ps: int, progress: Callable[[int], bool | None] | None = None) -> Any: ...


class Splits(Protocol):
    """Trials of a run that splits, behind its plain run.

    ``key`` is the name of their results in ``result.json``.
    """

    key: str

    def split(self, stopped: Callable[[], Any], progress: Callable[[float], None]) -> dict[str, Any]: ...


@dataclass(slots=True)
class BuiltExperiment:
    """A network with its hosts, as a run uses it.

    Members
    -------
    engine : EngineHandle
    flows : dict[str, FlowHandle]
    now_ps : Callable
        Returns the simulated time.
    samples : Callable
        Returns the present samples of switches by series: cells queued (``SWITCH.queue``), and series of ports with
        options (``SWITCH:PORT.SERIES``).
    counters : Callable
        Returns the counters of every node, by its name: a number, or a list of one per VC or port. None: a board does
        not answer any more.
    drops : Callable
        Returns cells dropped so far, by node and reason; with ``True`` also those of hosts' interfaces, which takes
        longer. None: likewise.
    check : Callable
        Raises an error if cells in, out, dropped and queued do not balance at every node.
    ledger : Callable
        Returns the fate of all PDUs so far, a row for each VC (:func:`~bentpipe.experiment.build.ledger.make_ledger`).
        Raises an error if the sums do not balance. None: a board by itself has none.
    ports : Callable
        Returns for each port of the switches the cells that arrived for it, those dropped, and their delays. None: as
        for the counters.
    losses : Callable or None
        Returns the records of lost cells so far, and the number of losses without a record; None: they are not
        recorded.
    close : Callable
        Releases the network's resources.
    change : Callable
        Changes the network to the state that an event names.
    adopt : Callable or None
        Takes a state as the network's, when the event loop has already written the registers.
    capture : Callable
        Begins the experiment's captures in this folder; returns a function that ends them, and returns those that could
        not be written, with the reason.
    oam : Callable
        Returns states and counts of the hosts' ends of OAM flows, a row each.
    save : Callable or None
        Returns the state that is not in Python objects; None: it cannot be saved.
    restore : Callable or None
        Gives that state to a copy of all this, and tells the copy the folder of its captures.
    network : Network or None
        The network of the hosts; None: there is none, as in a test.
    gauge : QueueMonitor or None
        The monitor at the port at which a run is to split.
    splitting : Splits or None
        The engine of a run that splits.
    overrides : Overrides or None
        The list of values that events, profiles and requests write; None: the run makes it.
    verify : Callable
        Compares the run at its end with that of a board beside it, if there is one; returns how much was compared. Of
        a board by itself it returns what is known of the board, at any time.
    alone : bool
        A board runs by itself: nothing is known that only the native network knows.
    """

    engine: EngineHandle
    flows: Mapping[str, FlowHandle]
    now_ps: Callable[[], int]
    samples: Callable[[], dict[str, int]]
    counters: Callable[[], dict[str, dict[str, Any]] | None]
    drops: Callable[[bool], dict[str, dict[str, int]] | None]
    check: Callable[[], None]
    ledger: Callable[[], list[dict[str, Any]] | None]
    close: Callable[[], None]
    change: Callable[[EventSpec], None]
    capture: Callable[[Path], Callable[[], dict[Path, str]]]
    oam: Callable[[], list[dict[str, Any]]] = field(default=lambda: [])
    ports: Callable[[], list[dict[str, Any]] | None] = field(default=lambda: [])
    losses: Callable[[], tuple[pa.Table, int]] | None = None
    save: Callable[[], Any] | None = None
    restore: Callable[[Any, Path | None], None] | None = None
    adopt: Callable[[EventSpec], None] | None = None
    network: Network | None = None
    gauge: QueueMonitor | None = None
    splitting: Splits | None = None
    overrides: Overrides | None = None
    verify: Callable[[], dict[str, Any] | None] = field(default=lambda: None)
    alone: bool = False


Build = Callable[[Experiment, Any], BuiltExperiment]
"""Makes the network and the hosts of an experiment, given the recorder."""


def build(experiment: Experiment, recorder: Any) -> BuiltExperiment:
    """Build nodes, lines, VCs, hosts and flows of an experiment."""
    network, nics, vcs = build_network(experiment)
    try:
        return add_hosts(experiment, recorder, network, nics, vcs)
    except BaseException:
        network.close()
        raise


def rehearse(experiment: Experiment) -> Engine:
    """Make an experiment's network and hosts up to where its nodes would be compiled; the hosts, which cannot run.

    Raises
    ------
    BuildError
        They cannot be made, and so the experiment cannot run.
    """
    from bentpipe.hosts.engine import Engine

    network, nics, vcs = build_network(experiment)
    places = Places(experiment, network)
    engine = Engine(network, None)
    hosts: dict[str, Host] = {}
    for host in experiment.network.hosts:
        with places.at(f"network.hosts.{host.name}"):
            hosts[host.name] = engine.add_host(host.config, nics[host.name].index)
    ends = add_ends(experiment, engine, network, hosts, vcs)
    _add_flows(experiment, engine, hosts, vcs, ends, places)
    with places.at(""):
        network.rehearse()
    watched = _watched(experiment)
    if watched is not None:
        key, port = watched
        with places.at(f"{key}.port"):
            gauge = network.monitor_queue(_switch_named(network, port.switch), port.port)
            gauge.check()
    return engine


def add_hosts(
    experiment: Experiment,
    recorder: Any,
    network: Network,
    nics: dict[str, Nic],
    vcs: list[int],
    outside: Mapping[str, LedgerHost] | None = None,
) -> BuiltExperiment:
    """Add hosts and flows to a network made by :func:`build_network`, and start it.

    Hosts that are ``outside`` have no flows and no ends of OAM flows here.
    """
    from bentpipe.hosts.engine import Engine

    engine = Engine(network, recorder, segments="segments" in experiment.record.what)
    inside = [host for host in experiment.network.hosts if host.name not in (outside or {})]
    hosts = {h.name: engine.add_host(h.config, nics[h.name].index) for h in inside}
    ends = add_ends(experiment, engine, network, hosts, vcs)
    flows = _add_flows(experiment, engine, hosts, vcs, ends, Places(experiment, network))
    gauge = _gauge(experiment, network)
    network.start()  # compiles what is missing: no part of the run
    if experiment.record.losses:
        network.record_losses(experiment.record.losses)

    made = NetworkProbe(experiment, network, nics, {**hosts, **(outside or {})}, ends)
    changes = Reconfigurator(experiment, network)
    return BuiltExperiment(
        engine=engine,
        flows=flows,
        now_ps=made.now_ps,
        samples=network.sample,
        counters=made.counters,
        drops=made.drops,
        check=network.check_conservation,
        ledger=made.ledger,
        close=network.close,
        change=changes.to,
        adopt=changes.adopt,
        capture=made.capture,
        oam=made.oam,
        ports=made.ports,
        losses=made.losses if experiment.record.losses else None,
        save=network.save if network.saves and gauge is None else None,
        restore=network.restore,
        verify=network.verify,
        network=network,
        gauge=gauge,
        alone=network.is_alone,
    )


def _gauge(experiment: Experiment, network: Network) -> QueueMonitor | None:
    """Return the queue monitor at the port at which a run splits; None without splitting.

    Raises
    ------
    BentpipeError
        The engine's models cannot save their state, so a run cannot continue from it.
    """
    watched = _watched(experiment)
    if watched is None:
        return None
    key, port = watched
    if not network.saves:
        raise BentpipeError(f"{experiment.id}: [{key}] needs the engine native: the other engine cannot save its state")
    delay_ps = None if experiment.splitting is None else experiment.splitting.delay_ps
    late_from = 0 if delay_ps is None else first_tick(delay_ps)
    return network.monitor_queue(_switch_named(network, port.switch), port.port, late_from)


def _watched(experiment: Experiment) -> tuple[str, Face] | None:
    """Return the table of an experiment that splits, and the port whose queue it watches; None: it does not split."""
    if experiment.splitting is not None:
        return "splitting", experiment.splitting.port
    if experiment.rare_timeout is not None:
        return "rare_timeout", experiment.rare_timeout.port
    return None


def _switch_named(network: Network, name: str) -> Switch:
    return cast("Switch", next(node for node in network.nodes if node.name == name))


class NetworkProbe:
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

    def counters(self) -> dict[str, dict[str, Any]] | None:
        return self._network.counters() if self._network.answers else None

    def drops(self, hosts: bool) -> dict[str, dict[str, int]] | None:
        if not self._network.answers:
            return None
        return {n.name: dropped(n.counters()) for n in self._network.nodes if hosts or n.kind != "nic"}

    def capture(self, folder: Path) -> Callable[[], dict[Path, str]]:
        nodes = {node.name: node for node in self._network.nodes}
        for spec in self._experiment.record.pcap:
            face = self._nics[spec.host] if spec.host else (nodes[spec.switch], spec.port)
            self._network.capture(folder / spec.file, spec.kind, face)
        return self._network.end_captures

    def ledger(self) -> list[dict[str, Any]] | None:
        if self._network.is_alone:
            return None
        return make_ledger(self._experiment, self._network.ledger(), self._hosts)

    def ports(self) -> list[dict[str, Any]] | None:
        if not self._network.answers:
            return None
        return [
            row for node in self._network.nodes if node.kind == "switch" for row in count_ports(cast("Switch", node))
        ]

    def losses(self) -> tuple[pa.Table, int]:
        return read_losses(self._experiment, self._network)

    def oam(self) -> list[dict[str, Any]]:
        return report_ends(self._experiment, self._ends, self._network.now_ps)


def _add_flows(
    experiment: Experiment, engine: Engine, hosts: dict[str, Host], vcs: list[int], ends: OamEnds, places: Places
) -> dict[str, FlowHandle]:
    """Return the flows by name; those of the schedule wait for it."""
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
        given = FlowRequest(
            flow.protocol,
            flow.settings,
            flow.size,
            flow.duration_ps or 0,
            flow.datagram,
            seed=experiment.seed,
            number=index,
            folder=experiment.folder,
        )
        stage: FlowOrGroup
        with places.flow(index):
            app = make(flow.app, given)
            if flow.protocol == "oam":
                location, pti = loopback_to(flow, experiment.network)
                stage = engine.add_loopback_flow(flow.name, source, sink, ends[flow.vc], app, location, pti, start)
            elif isinstance(app, TestCells):
                stream = add_stream(cast("Network", engine.network), flow, (source, sink), there)
                stage = engine.add_test_cell_flow(flow.name, source, sink, stream, app, start)
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
    """Return a node's cells dropped by reason, from its counters (``drop_REASON``: a number, or one a VC)."""
    found = {}
    for name, value in counters.items():
        reason = name.removeprefix("drop_")
        if reason != name:
            found[reason] = sum(value) if isinstance(value, (list, tuple)) else int(value)
    return found
