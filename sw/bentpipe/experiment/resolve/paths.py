"""Virtual paths of an experiment: what is wrong with them, and which VCs go through them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bentpipe.experiment.document.source import ConfigProblem, Problems
from bentpipe.experiment.document.tables import VpTable
from bentpipe.experiment.resolve.specs import NetworkSpec, SwitchSpec, VcSpec, VpSpec
from bentpipe_hdl.switch.control import VcSettings
from bentpipe_hdl.switch.options.oam.control import point_at
from bentpipe_hdl.words import nearest

__all__ = ["Piece", "check_nodes", "check_schedulers", "passed_on", "pieces", "read_paths", "vpi_on", "vps_of"]

Piece = tuple[str, str]

_BY_FRAMES: Final = ("red", "queue_limit")


def pieces(path: Sequence[str]) -> Iterable[Piece]:
    """Return the pieces of a path, each with its direction."""
    return itertools.pairwise(path)


def check_nodes(key: str, path: Sequence[str], network: NetworkSpec) -> None:
    """Raise ConfigProblem unless the nodes are there and a line leads from each to the next one."""
    hosts = {h.name: h.port.switch for h in network.hosts}
    joined = {frozenset(end.switch for end in line.ends) for line in network.lines}
    nodes = [*hosts, *(s.name for s in network.switches)]
    for node in path:
        if node not in nodes:
            raise ConfigProblem(key, f"there is no node {node!r}{nearest(node, nodes)}")
    for a, b in pieces(path):
        if hosts.get(a) != b and hosts.get(b) != a and frozenset((a, b)) not in joined:
            loop = "; no line of it is in loop-back" if a == b else ""
            raise ConfigProblem(key, f"no line joins {a!r} and {b!r}{loop}")


def read_paths(tables: dict[str, VpTable], network: NetworkSpec, problems: Problems) -> tuple[VpSpec, ...]:
    """Return the virtual paths of a document.

    Raises
    ------
    ConfigError
        A path does not pass the network so, two have one VPI on a line, or a switch cannot give what is asked of it.
    """
    found: list[VpSpec] = []
    for name, table in tables.items():
        with problems.gathered():
            place = f"network.vps.{name}"
            vp = VpSpec(name, table.path, table.vpi, VcSettings.part_of(table))
            _check(place, vp, network)
            for other in found:
                shared = set(map(frozenset, pieces(vp.path))) & set(map(frozenset, pieces(other.path)))
                if vp.vpi == other.vpi and shared:
                    a, b = sorted(next(iter(shared)))
                    raise ConfigProblem(
                        f"{place}.vpi", f"VPI {vp.vpi} is used twice between {a} and {b}: {other.name!r} has it"
                    )
            found.append(vp)
    problems.check()
    return tuple(found)


def _check(place: str, vp: VpSpec, network: NetworkSpec) -> None:
    key = f"{place}.path"
    check_nodes(key, vp.path, network)
    if len(set(vp.path)) != len(vp.path):
        raise ConfigProblem(key, "a virtual path passes a node once")
    hosts = {host.name for host in network.hosts}
    if len(vp.path) < 3 or hosts & set(vp.path[1:-1]):
        raise ConfigProblem(key, "a virtual path leads from a switch or host over switches to another switch or host")
    for name, contract in (("police", vp.settings.police), ("shape", vp.settings.shape)):
        if contract is not None and contract.at is not None and contract.at not in vp.path[1:-1]:
            what = f"the virtual path is switched at {', '.join(vp.path[1:-1])}, and not at {contract.at!r}"
            raise ConfigProblem(f"{place}.{name}.at", what)
    if vp.settings.oam is not None:
        for end in hosts & {vp.path[0], vp.path[-1]}:
            raise ConfigProblem(f"{place}.oam", f"the virtual path ends at {end!r}, and hosts do not support F4 flows")
        try:
            point_at(vp.settings.oam, list(vp.path), 0)
        except ValueError as error:
            raise ConfigProblem(f"{place}.oam.segment", str(error)) from None
    inside = [switch for switch in network.switches if switch.name in vp.path[1:-1]]
    check_schedulers(place, vp.settings, inside)
    for switch in inside:
        if switch.settings.credits is not None:
            raise ConfigProblem(key, f"{switch.name!r} has credits, which cannot pass through a virtual path")
    for line in network.lines:
        for end, other in zip(line.ends, reversed(line.ends), strict=True):
            if end.switch in vp.path[1:-1] and frozenset((end.switch, other.switch)) in map(frozenset, pieces(vp.path)):
                port = next(s for s in inside if s.name == end.switch).ports[end.port].settings
                for name in _BY_FRAMES:
                    if getattr(port, name) is not None:
                        what = (
                            f"{name} of line {line.name!r} refuses frames, and those of a virtual path's VCs interleave"
                        )
                        raise ConfigProblem(key, what)


def check_schedulers(key: str, given: VcSettings, switches: Sequence[SwitchSpec]) -> None:
    """Raise ConfigProblem if what is given needs a scheduler that none of the switches has."""
    schedulers = {port.settings.scheduler for switch in switches for port in switch.ports}
    schedulers |= {switch.settings.scheduler for switch in switches}
    for asked, name, scheduler in (
        (given.weight > 1, "weight", "weighted"),
        (given.service_rate_bps, "service_rate", "virtual-clock"),
    ):
        if asked and scheduler not in schedulers:
            what = f'no switch on its way goes by it: give one scheduler = "{scheduler}"'
            raise ConfigProblem(f"{key}.{name}", what)


def _within(path: Sequence[str], vp: VpSpec) -> int | None:
    """Return where a path runs through a virtual path, in either direction: the place of its first node."""
    count = len(vp.path)
    ways = vp.path, vp.path[::-1]
    return next((k for k in range(len(path) - count + 1) if tuple(path[k : k + count]) in ways), None)


def vps_of(key: str, path: Sequence[str], network: NetworkSpec) -> tuple[str, ...]:
    """Return the names of the virtual paths that a VC with this path goes through.

    Raises
    ------
    ConfigProblem
        Two of them go over one line.
    """
    users: dict[Piece, str] = {}
    found = []
    for vp in network.vps:
        k = _within(path, vp)
        if k is None:
            continue
        found.append(vp.name)
        for piece in pieces(path[k : k + len(vp.path)]):
            if piece in users:
                what = f"it would go through the virtual paths {users[piece]!r} and {vp.name!r} at once, "
                raise ConfigProblem(key, f"{what}from {piece[0]} to {piece[1]}")
            users[piece] = vp.name
    return tuple(found)


def _through(vc: VcSpec, network: NetworkSpec) -> Iterator[tuple[VpSpec, tuple[str, ...]]]:
    """Yield the virtual paths that a VC goes through, with that part of its own path."""
    for vp in network.vps:
        if vp.name in vc.vps:
            k = _within(vc.path, vp)
            assert k is not None
            yield vp, vc.path[k : k + len(vp.path)]


def passed_on(vc: VcSpec, network: NetworkSpec) -> set[str]:
    """Return the switches that see a VC's virtual path and not the VC."""
    return {node for _, part in _through(vc, network) for node in part[1:-1]}


def vpi_on(vc: VcSpec, piece: Piece, network: NetworkSpec) -> int:
    """Return the VPI of a VC's cells on a piece of its path."""
    return next((vp.vpi for vp, part in _through(vc, network) if piece in set(pieces(part))), vc.vpi)
