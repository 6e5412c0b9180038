"""The cells that arrived for each port of a switch, from the switch's counters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bentpipe_hdl.switch.options.histograms.control import lower_bounds
from bentpipe_hdl.switch.registers import REASONS
from bentpipe_hdl.ticks import ticks_to_ps

if TYPE_CHECKING:
    from bentpipe_sim.nodes import Switch

__all__ = ["count_ports"]


def count_ports(switch: Switch) -> list[dict[str, Any]]:
    """Return a row for each port with a line: ``port``, ``offered`` (cells of its VCs that came, modulo 2**32 each),
    ``dropped`` (of these, by reason), and with histograms ``delays`` ([from ps, to ps or None, cells]) and
    ``delay_sum_ps``."""
    counters = switch.counters()
    rows = []
    for port in sorted(switch.outputs):
        vcs = [number for number, vc in enumerate(switch.vcs) if vc.out_port == port]
        dropped = {reason: sum(counters[f"drop_{reason}"][vc] for vc in vcs) for reason in REASONS}
        row: dict[str, Any] = {
            "port": f"{switch.name}:{port}",
            "offered": sum(counters["accepted"][vc] for vc in vcs) + sum(dropped.values()),
            "dropped": {reason: cells for reason, cells in dropped.items() if cells},
        }
        rows.append(row | _delays(switch, counters, port))
    return rows


def _delays(switch: Switch, counters: Mapping[str, Any], port: int) -> dict[str, Any]:
    given = switch.settings.histograms
    if given is None or not counters["delay_by_port"][port]:
        return {}
    bounds: Sequence[int] = lower_bounds(given.shifts[1], given.bins == "logarithmic")
    above = {low: high - 1 for low, high in itertools.pairwise(bounds)}  # ticks are whole
    delays = [
        [ticks_to_ps(low), ticks_to_ps(above[low]) if low in above else None, cells]
        for low, cells in counters["delay_by_port"][port]
    ]
    return {"delays": delays, "delay_sum_ps": ticks_to_ps(counters["delay_sum"][port])}
