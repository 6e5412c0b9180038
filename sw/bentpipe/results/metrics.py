"""The figures of a run, and their place beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

__all__ = ["BEST_TCP_BPS", "NOT_COMPARED", "compare", "fairness", "metrics"]

BEST_TCP_BPS: Final = 149_760_000 * 9140 / (192 * 53)
"""134.513 Mb/s: the best TCP user rate over OC-3c, 9140 octets in 192 cells of 53."""

NOT_COMPARED: Final = frozenset({"failed", "shortened", "unfinished"})
"""What makes a run's figures none to compare with published ones."""


def fairness(rates: Sequence[float]) -> float | None:
    """(sum x)**2 / (n * sum x**2): 1 if all get the same, 1/n if one gets all. None if none got anything."""
    squares = sum(x * x for x in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def metrics(flows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The figures of a run by name, rates in b/s: each flow's, the aggregate, fairness, spread.

    A flow's goodput is over its own time, from its connect to its last octet, as ttcp and NetSpec report it. The
    aggregate is their sum and the fairness index is of them, as the papers have both (DaSilva et al. 1997, "Throughput
    versus offered load"; Charalambous et al. 1999, "Evaluation and fairness"). Where flows end at different times the
    sum counts rates that were not all there at once; ``overall_goodput`` doesn't: all octets over the time from the
    first flow's start to the last one's end.
    """
    rates = [float(flow["goodput_bps"]) for flow in flows]
    mean = sum(rates) / len(rates)
    spread = math.sqrt(sum((x - mean) ** 2 for x in rates) / (len(rates) - 1)) if len(rates) > 1 else None
    found: dict[str, float | None] = {
        "aggregate_goodput": sum(rates),
        "overall_goodput": _overall(flows),
        "goodput": mean,
        "fairness": fairness(rates),
        "share": sum(rates) / BEST_TCP_BPS,
        "sigma": spread,
    }
    found |= {f"{flow['name']}.goodput": rate for flow, rate in zip(flows, rates, strict=True)}
    return found


def _overall(flows: Sequence[Mapping[str, Any]]) -> float:
    """All octets over the time from the first start to the last end, of the flows that started."""
    started = [flow for flow in flows if flow["start_ps"] >= 0]
    if not started:
        return 0.0
    time_ps = max(flow["end_ps"] for flow in started) - min(flow["start_ps"] for flow in started)
    return sum(flow["octets_delivered"] for flow in started) * 8e12 / time_ps if time_ps > 0 else 0.0


def compare(
    rows: Iterable[Mapping[str, Any]], found: Mapping[str, float | None], remarks: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The published rows with ``ours`` in the row's unit and ``ratio`` of ours to the measured figure (to the
    predicted one where nothing was measured); both None where this run gives no such figure.

    ``remarks`` say what stands between this run and the published one, and go into each row. Where one of
    :data:`NOT_COMPARED` is among them there is no ratio.
    """
    table = []
    compared = not NOT_COMPARED.intersection(remarks)
    for row in rows:
        ours = found.get(row["metric"]) if row["metric"] else None
        if ours is not None and row["unit"] == "Mb/s":
            ours /= 1e6
        reference = row["measured"] if row["measured"] is not None else row["predicted"]
        ratio = ours / reference if compared and ours is not None and reference else None
        table.append({**row, "ours": ours, "ratio": ratio, "remarks": list(remarks)})
    return table
