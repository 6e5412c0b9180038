"""The hosts' ends of OAM flows in an experiment: of which VCs, and what became of them (I.610)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bentpipe.experiment.resolve.specs import Experiment, FlowSpec, NetworkSpec
from bentpipe_hdl.oam.cells import END_POINT, END_PTI, SEGMENT_PTI, location_of, location_of_node

if TYPE_CHECKING:
    from bentpipe.hosts.engine import Engine
    from bentpipe.hosts.host import Host
    from bentpipe.hosts.oam import OamEnd
    from bentpipe_sim.network import Network

__all__ = ["OamEnds", "add_ends", "loopback_to", "report_ends"]

OamEnds = dict[int, "OamEnd"]
"""By the VC on which they send, an index into ``Experiment.vcs``; those that only receive by ``-1 -`` their VC."""


def add_ends(
    experiment: Experiment, engine: Engine, network: Network, hosts: Mapping[str, Host], vcs: list[int]
) -> OamEnds:
    """Add the ends of OAM flows, and return them.

    Every host with OAM flows has one for each VC that begins there, or that ends there and has no VC in the other
    direction. VCs to several hosts have none.
    """
    from bentpipe.hosts.oam import EndPoint

    ways = {one: other for flow in experiment.flows for one, other in _both(flow)}
    roots = [number for number, vc in enumerate(experiment.vcs) if vc.root is None]  # as the network has them
    several = {vc.root for vc in experiment.vcs}
    ends: OamEnds = {}
    with_oam = {host.name for host in experiment.network.hosts if host.interface.oam}
    for place, number in enumerate(roots):
        if number in several:
            continue
        vc, other = experiment.vcs[number], network.other_way(place)
        back = ways.get(number, None if other is None else roots[other])
        source, sink = vc.path[0], vc.path[-1]
        if source in with_oam:
            watches = back is not None and experiment.vcs[back].continuity.continuity_check != "none"
            point = EndPoint(location_of_node(source), vc.continuity.continuity_check, watches)
            receives = -1 if back is None else vcs[back]
            ends[number] = engine.add_oam_end(hosts[source], point, receives, vcs[number])
        if back is None and sink in with_oam:
            point = EndPoint(location_of_node(sink), "none", vc.continuity.continuity_check != "none")
            ends[-1 - number] = engine.add_oam_end(hosts[sink], point, vcs[number], -1)
    return ends


def _both(flow: FlowSpec) -> tuple[tuple[int, int], ...]:
    return () if flow.return_vc is None else ((flow.vc, flow.return_vc), (flow.return_vc, flow.vc))


def loopback_to(flow: FlowSpec, network: NetworkSpec) -> tuple[bytes, int]:
    """Return the location ID and PTI of a flow's loopback cells."""
    at = flow.settings["at"]
    if not at:
        return END_POINT, END_PTI
    own = next((switch.settings.oam for switch in network.switches if switch.name == at), None)
    if own is not None and own.location:
        return location_of(own.location), SEGMENT_PTI
    names = [switch.name for switch in network.switches]
    return location_of_node(at) if at in names else location_of(at), SEGMENT_PTI


def report_ends(experiment: Experiment, ends: OamEnds, now_ps: int) -> list[dict[str, Any]]:
    """Return the report of the ends at which anything happened, in the form of ``result.json``.

    It has cells by kind, how often and how long (ps) the end was in each state, and when these began and ended.
    """
    rows = []
    for number, end in ends.items():
        point = end.point
        if not any(point.counts.values()) and not point.changes:
            continue
        vc = experiment.vcs[number if number >= 0 else -1 - number]
        row: dict[str, Any] = {"host": vc.path[0] if number >= 0 else vc.path[-1], "vc": vc.name, **point.counts}
        for state in ("ais", "rdi", "loc"):
            times = [(at, begins) for at, name, begins in point.changes if name == state]
            row[f"{state}_times"] = sum(begins for _, begins in times)
            row[f"{state}_ps"] = sum(-at if begins else at for at, begins in times)
            if times and times[-1][1]:
                row[f"{state}_ps"] += now_ps
        row["changes"] = [{"at_ps": at, "state": name, "begins": begins} for at, name, begins in point.changes]
        rows.append(row)
    return rows
