"""From an experiment to its network: nodes, lines, virtual paths, VCs, listed losses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from bentpipe.experiment.build.changes import Reconfigurator, ways
from bentpipe.experiment.build.faults import Places
from bentpipe.experiment.document.tables import Face
from bentpipe.experiment.resolve.paths import vpi_on
from bentpipe.experiment.resolve.specs import Experiment, LineSpec, VcSpec
from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.switch.control import SwitchPort, VcSettings
from bentpipe_sim.tools import uncollected

if TYPE_CHECKING:
    from bentpipe_sim.network import Network
    from bentpipe_sim.nodes import Link, Nic, Switch

__all__ = ["build_network"]

Nodes = dict[str, Any]
"""Interfaces of hosts and switches, by name."""

Between = dict[tuple[str, str], list[Any]]
"""The nodes of a line from one host or switch to another, by their names."""

_PORTS: Final = 4
"""Switches have this many ports and more, so that most experiments share one compiled shape."""


@uncollected()
def build_network(experiment: Experiment, encapsulation: int = 8) -> tuple[Network, dict[str, Nic], list[int]]:
    """Return the network, not started yet; the hosts' interfaces by name; the index of each VC at its interfaces. An
    SDU has ``encapsulation`` octets more than the MTU at most."""
    from bentpipe_sim.board.target import make_network

    network = make_network(experiment.seed)
    places = Places(experiment, network)
    nics, switches, links, between = _nodes(experiment, network, places)
    nodes: Nodes = {**nics, **switches}
    for vp in experiment.network.vps:
        for path, oam in ((vp.path, vp.settings.oam), (vp.path[::-1], vp.settings.oam and vp.settings.oam.other_way())):
            settings = VcSettings.part_of(vp.settings, oam=oam)
            with places.at(f"network.vps.{vp.name}"):
                network.add_vp(_along(path, nodes, between), vp.vpi, settings)
    vcs: list[int] = []
    leaves: defaultdict[int, list[VcSpec]] = defaultdict(list)
    for vc in experiment.vcs:
        if vc.root is not None:
            leaves[vc.root].append(vc)
    mtus = {host.name: host.config.mtu for host in experiment.network.hosts}
    for number, vc in enumerate(experiment.vcs):
        if vc.root is not None:
            vcs.append(vcs[vc.root])
            continue
        with places.at(places.vc(number)):
            vcs.append(_vc(mtus, network, [vc, *leaves[number]], nodes, between, encapsulation))
    by_name = {node.name: node for node in network.nodes}
    for number, vc in enumerate(experiment.vcs):
        if vc.cdv is not None:
            ends, rate = (nics[vc.path[0]].index, vcs[number], nics[vc.path[-1]].index), vc.cdv.pcr_bps
            with places.at(f"{places.vc(number)}.cdv"):
                network.watch_arrivals(*ends, by_name[vc.cdv.at or ""], pcr_bps=rate, cdvt_ps=vc.cdv.cdvt_ps)
    for number, loss in enumerate(experiment.losses):
        vc = experiment.vcs[loss.vc]
        vpi = vpi_on(vc, loss.way, experiment.network)
        with places.at(f"loss.{number}"):
            links[loss.way].lose(vpi, vc.vci, pdus=loss.pdus, cells=loss.cells)
    Reconfigurator(experiment, network).prepare(experiment, places)
    return network, nics, vcs


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
            ports = [
                SwitchPort(port.rate_bps, offsets.get(Face(spec.name, number), 0.0), settings=port.settings)
                for number, port in enumerate(spec.ports)
            ]
            ports += [SwitchPort()] * (_PORTS - len(ports))
            switches[spec.name] = network.add_switch(spec.name, spec.settings, ports=ports)
    for line in experiment.network.lines:
        with places.at(f"network.lines.{line.name}"):
            _line(network, line, switches, links, between)
    for host in experiment.network.hosts:
        with places.at(f"network.hosts.{host.name}"):
            line = NicLine(host.rate_bps, host.line_clock_ppm[0], frames=host.frames)
            nic = nics[host.name] = network.add_nic(host.name, host.interface, line=line)
            face = (switches[host.port.switch], host.port.port)
            if host.framing:
                sonet = network.add_sonet_line(f"{host.name}.line", host.framing)
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
    """Add a link for each direction of a line, or one in loop-back.

    If the line is a SONET line, errors and framing are those of the SONET line before the link. For the cells it makes
    no difference whether the delay is before the receiver or after it.
    """
    sonet = None
    if line.framing:
        sonet = network.add_sonet_line(f"{line.name}.line", line.framing)
    for end, way in enumerate(ways(line)):
        a, b = line.ends[end], line.ends[1 - end]
        link = network.add_link(f"{line.name}.{way}", line.ways[end])
        face = (switches[a.switch], a.port)
        if sonet:
            network.connect(face, (sonet, end))
        network.connect((sonet, 1 - end) if sonet else face, link)
        network.connect(link, (switches[b.switch], b.port))
        links.setdefault((a.switch, b.switch), link)
        between.setdefault((a.switch, b.switch), [sonet, link] if sonet else [link])


def _along(path: Sequence[str], nodes: Nodes, between: Between) -> list[Any]:
    """Return hosts and switches of a path, and the nodes between them."""
    found = []
    for here, after in zip(path, (*path[1:], ""), strict=True):
        found += [nodes[here], *between.get((here, after), [])]
    return found


def _vc(
    mtus: dict[str, int], network: Network, legs: list[VcSpec], nodes: Nodes, between: Between, encapsulation: int
) -> int:
    """Return a VC with all its leaves."""
    vc, paths = legs[0], [leg.path for leg in legs]
    mtu = min(mtus[host] for host in (vc.path[0], *(path[-1] for path in paths)))
    first, *branches = (_along(path, nodes, between) for path in paths)
    return network.add_vc(
        path=first,
        branches=branches,
        vpi=vc.vpi,
        vci=vc.vci,
        settings=vc.settings,
        pacing=vc.pacing,
        max_sdu=min(mtu + encapsulation, 65535),
    )
