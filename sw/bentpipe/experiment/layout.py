"""Virtual channels laid along the network: shortest paths, VPI/VCI numbers, clashes."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from bentpipe.experiment.schema import NetworkSpec, VcSpec

__all__ = ["FIRST_VCI", "clash", "directed_lines", "free_vci", "shortest_path"]

FIRST_VCI: Final = 32
"""VCIs below are reserved (I.361)."""


def _neighbours(network: NetworkSpec) -> dict[str, list[str]]:
    graph: dict[str, list[str]] = {s.name: [] for s in network.switches}
    for line in network.lines:
        a, b = (end.switch for end in line.ends)
        graph[a].append(b)
        graph[b].append(a)
    for host in network.hosts:
        graph[host.name] = [host.port.switch]
        graph[host.port.switch].append(host.name)
    return graph


def shortest_path(network: NetworkSpec, source: str, sink: str) -> tuple[str, ...] | None:
    """The path with the fewest nodes; of equals the one whose lines come first in the file. Hosts don't
    switch: only the ends of a path are hosts. None if there is no path."""
    graph = _neighbours(network)
    hosts = {h.name for h in network.hosts}
    before: dict[str, str] = {source: source}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        if node == sink:
            path = [sink]
            while path[-1] != source:
                path.append(before[path[-1]])
            return tuple(reversed(path))
        if node != source and node in hosts:
            continue
        for other in graph[node]:
            if other not in before:
                before[other] = node
                queue.append(other)
    return None


def directed_lines(path: Sequence[str]) -> Iterable[tuple[str, str]]:
    """The pieces of a path, each with its direction."""
    return itertools.pairwise(path)


def clash(vcs: Iterable[VcSpec], new: VcSpec) -> tuple[VcSpec, tuple[str, str]] | None:
    """A VC that has the same VPI and VCI as ``new`` on a piece of line in the same direction, if there is one."""
    pieces = set(directed_lines(new.path))
    for vc in vcs:
        if (vc.vpi, vc.vci) == (new.vpi, new.vci):
            for piece in directed_lines(vc.path):
                if piece in pieces:
                    return vc, piece
    return None


def free_vci(vcs: Sequence[VcSpec], start: int = FIRST_VCI) -> int:
    """The lowest VCI from ``start`` on that no VC has with VPI 0, anywhere: a number names one VC in a trace."""
    used = {vc.vci for vc in vcs if vc.vpi == 0}
    vci = start
    while vci in used:
        vci += 1
    return vci
