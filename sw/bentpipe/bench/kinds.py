"""Kinds of nodes, and whose code a library is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from bentpipe_sim.network import Network

__all__ = ["KINDS", "REST", "evaluated", "kind_of"]

KINDS: Final = {"nic": "interface", "switch": "switch", "link": "link", "sonet": "SONET line", "network": "loop"}
"""What a library is, by what its file's name begins with."""
_HOSTS: Final = "hosts"
"""And by the folder that it is in."""
REST: Final = "libraries and Python"


def kind_of(file: str) -> str:
    """Return the kind of a library: a kind of node, ``loop``, ``hosts`` or the rest."""
    path = Path(file)
    if any(part.split("-")[0] == _HOSTS for part in path.parts[:-1]):
        return _HOSTS
    return KINDS.get(path.name.split("-")[0], REST)


def evaluated(network: Network) -> Counter[str]:
    """Return how often the nodes of each kind were evaluated so far."""
    found: Counter[str] = Counter()
    stats = network.stats()
    for node in network.nodes:
        found[KINDS[node.kind]] += stats[node.name]["evaluations"]
    return found
