"""Results over the cases of an experiment: the largest burst that arrives whole, and the buffer that follows from
it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bentpipe.results.metrics import cells_of, hop_rates

__all__ = ["FIGURES", "buffer_of", "knee", "over_cases"]

FIGURES: Final = {
    "knee": "octets a block up to which 99 % of a flow's datagrams arrive, over the cases",
    "buffer": "what of such a block is queued before the slowest line of the path at its end, octets at 53 a cell",
}
"""Figures of a flow that no single case has."""

_CARRIED: Final = 0.99

_UDP_IP: Final = 28
"""Octets of headers."""


def over_cases(summaries: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the figures ``FLOW.knee`` and ``FLOW.buffer`` of the flows that send datagrams in blocks."""
    points: dict[str, list[tuple[int, float]]] = {}
    for summary in summaries:
        for flow in summary["resolved"]["flows"]:
            share = summary["metrics"].get(f"{flow['name']}.carried")
            if "block" in flow["settings"] and share is not None:
                points.setdefault(flow["name"], []).append((_octets(flow), share))
    found: dict[str, float | None] = {}
    for name, row in points.items():
        bend = knee(row)
        found[f"{name}.knee"] = bend
        found[f"{name}.buffer"] = None if bend is None else buffer_of(summaries[0]["resolved"], name, bend)
    return found


def _octets(flow: Mapping[str, Any]) -> int:
    settings = flow["settings"]
    return settings["block"] * (settings.get("count") or 1)


def knee(points: Sequence[tuple[float, float]], carried: float = _CARRIED) -> float | None:
    """Return the size at which a share that falls with the size first is below ``carried``; None if there is none.

    It is on the straight line between two points of ``(size, share)``. There is none either if the share is below from
    the smallest size on.
    """
    for (size, share), (larger, less) in itertools.pairwise(sorted(points)):
        if share >= carried > less:
            return size + (larger - size) * (share - carried) / (share - less)
    return None


def buffer_of(resolved: Mapping[str, Any], name: str, octets: float) -> float | None:
    """Return the part of a block that is queued before the slowest line of a path when the block's last cell arrives.

    It counts 53 octets per cell. None if no faster line leads there.
    """
    flow = next(flow for flow in resolved["flows"] if flow["name"] == name)
    rate = hop_rates(resolved)
    hops = [rate(*hop) for hop in itertools.pairwise(resolved["vcs"][flow["vc"]]["path"])]
    out = min(hops)
    comes = min(hops[: hops.index(out)], default=out)
    hosts = {host["name"]: host for host in resolved["network"]["hosts"]}
    mtu = min(hosts[flow["source"]]["mtu"], hosts[flow["sink"]]["mtu"])
    datagram = flow["datagram"] or mtu - _UDP_IP
    cells = octets / datagram * cells_of(datagram + _UDP_IP)
    return 53 * cells * (1 - out / comes) if comes > out else None
