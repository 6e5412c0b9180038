"""Places of block memories and multipliers, for a device with few of them left.

nextpnr's static placer legalises them by a random search near where each should be. With 98 % of the block memories in
use that made wires half as long again as they had been. So such a netlist is placed twice: memories and multipliers
change places after the first time, until no exchange of two makes wires shorter, and are fixed there for the second.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

__all__ = ["CROWDED", "FEW_ROWS", "SCARCE", "better_places", "crowded", "fix"]

CROWDED: Final = 0.7
"""Share of a device's block memories from which on a netlist is placed twice."""
SCARCE: Final = 0.6
"""Share from which on memories of few rows are made of LUTs."""
FEW_ROWS: Final = 32
"""Rows of such a memory, at most. A wire's due ticks, 32 rows of 49 bits, else take two block memories of 512 rows."""
_KINDS: Final = ("DP16KD", "MULT18X18D")
_AT: Final = re.compile(r"X(\d+)/Y(\d+)/")
_ROUNDS: Final = 6
_COMMON: Final = 2000
"""Pins of a net that leads everywhere, wherever memories are."""

_Point = tuple[int, int]


def crowded(netlist: Path, blocks: int, share: float = CROWDED) -> bool:
    """Return whether a netlist of yosys uses this share of the block memories of a device that has ``blocks``."""
    return netlist.read_text().count(f'"type": "{_KINDS[0]}"') >= share * blocks


def better_places(placed: Path) -> dict[str, str]:
    """Return places for the memories and multipliers of a placement, by cell: those that it uses, exchanged."""
    cells = _cells(placed)
    bels = {name: str(cell["attributes"].get("NEXTPNR_BEL", "")) for name, cell in cells.items()}
    at = {name: (int(found[1]), int(found[2])) for name, bel in bels.items() if (found := _AT.match(bel))}
    pins = defaultdict(set)
    for name in at:
        for bit in _bits(cells[name]):
            pins[bit].add(name)
    places = {}
    for kind in _KINDS:
        moved = sorted(name for name in at if cells[name]["type"] == kind)
        nets = [[pins[bit] - {name} for bit in set(_bits(cells[name])) if len(pins[bit]) < _COMMON] for name in moved]
        order = _order(moved, nets, at)
        places |= {name: bels[moved[site]] for name, site in zip(moved, order, strict=True)}
    return places


def _order(moved: Sequence[str], nets: Sequence[Sequence[set[str]]], at: dict[str, _Point]) -> list[int]:
    """Return the site of each cell, as the index of the cell that was there before; move the cells in ``at``."""
    sites = [at[name] for name in moved]
    best, least = list(range(len(moved))), None
    order = list(best)
    for _ in range(_ROUNDS):
        costs = [_costs(sites, [[at[other] for other in net] for net in each if net]) for each in nets]
        total = sum(costs[cell][site] for cell, site in enumerate(order))
        if least is not None and total >= least:
            break
        best, least = list(order), total
        _exchange(order, costs)
        for name, site in zip(moved, order, strict=True):
            at[name] = sites[site]
    for name, site in zip(moved, best, strict=True):
        at[name] = sites[site]
    return best


def _costs(sites: Sequence[_Point], nets: Iterable[Sequence[_Point]]) -> list[int]:
    """Return by how much the boxes around a cell's nets grow if the cell is at each site; each net has its other
    pins."""
    costs = [0] * len(sites)
    spans = [[(min(side), max(side)) for side in zip(*net, strict=True)] for net in nets]
    for axis in range(2):
        grows = {
            value: sum(max(0, low - value, value - high) for low, high in (span[axis] for span in spans))
            for value in {site[axis] for site in sites}
        }
        costs = [cost + grows[site[axis]] for cost, site in zip(costs, sites, strict=True)]
    return costs


def _exchange(order: list[int], costs: Sequence[Sequence[int]]) -> None:
    """Change the sites of two cells as long as that costs less."""
    gains = True
    while gains:
        gains = False
        for a, b in combinations(range(len(order)), 2):
            now = costs[a][order[a]] + costs[b][order[b]]
            if costs[a][order[b]] + costs[b][order[a]] < now:
                order[a], order[b] = order[b], order[a]
                gains = True


def fix(netlist: Path, places: dict[str, str], fixed: Path) -> None:
    """Write a netlist of yosys once more, with cells fixed at places."""
    document = json.loads(netlist.read_text())
    cells = document["modules"]["top"]["cells"]
    for name, place in places.items():
        cells[name].setdefault("attributes", {})["BEL"] = place
    fixed.write_text(json.dumps(document, indent=0))


def _cells(netlist: Path) -> dict[str, Any]:
    return json.loads(netlist.read_text())["modules"]["top"]["cells"]


def _bits(cell: dict[str, Any]) -> list[int]:
    """Return the nets of a cell, which are numbers; constants are text."""
    return [bit for bits in cell["connections"].values() for bit in bits if isinstance(bit, int)]
