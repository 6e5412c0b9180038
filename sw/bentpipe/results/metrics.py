"""The figures of a run, and their place beside the published ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.apps.registry import reported
from bentpipe.apps.settings import BARE
from bentpipe.results.declared import metrics_of

__all__ = [
    "BEST_TCP_BPS",
    "CELL_BITS",
    "GROUPED",
    "NOT_COMPARED",
    "cells_dropped",
    "cells_of",
    "compare",
    "count_sums",
    "deliverable",
    "deliverable_bits",
    "fairness",
    "has_average",
    "hop_rates",
    "in_unit",
    "mean_over_time",
    "metrics",
    "most_deliverable",
    "pdus_lost",
    "port_rates",
    "set_otherwise",
]

BEST_TCP_BPS: Final = 149_760_000 * 9140 / (192 * 53)
"""134.513 Mb/s: the best TCP user rate over OC-3c, 9140 octets in 192 cells of 53."""

CELL_BITS: Final = 424

_ENCAPSULATION: Final = 16
"""Octets of LLC/SNAP (8) and of the AAL5 trailer (8) beside a packet."""

_HEADERS: Final = {"tcp": 40, "udp": 28}
"""Octets of IP and transport headers in a packet."""

_ROUNDED: Final = 1 + 1e-9
"""What rounding may add to a sum of rates over phases of a run."""

_RATES: Final = {"Mb/s": 1e6}
_TIMES: Final = {"s": 1e12, "ms": 1e9, "us": 1e6}
_SIZES: Final = {"kB": 1e3, "MB": 1e6}
"""What our figures, of b/s, ps and octets, are divided by for the unit of a published one."""

NOT_COMPARED: Final = frozenset({"failed", "shortened", "unfinished"})
"""What makes a run's figures none to compare with published ones."""


GROUPED: Final = tuple(metric.name for metric in metrics_of("group"))
"""The figures that the copies of a flow have together, as ``GROUP.aggregate_goodput``."""


def set_otherwise(changes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the changes that make a run another experiment; another seed makes only another trial of the same."""
    return [change for change in changes if change["key"] != "experiment.seed"]


def fairness(rates: Sequence[float]) -> float | None:
    """Return Jain's index (sum x)**2 / (n * sum x**2): 1 if all are equal, 1/n if one has all; None if all are 0."""
    squares = sum(x * x for x in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def metrics(
    flows: Sequence[Mapping[str, Any]], most_bits: float | None = None, groups: Mapping[str, str] | None = None
) -> dict[str, float | None]:
    """Return the figures of a run by name, rates in b/s: each flow's, the aggregate, fairness, spread; the same of each
    group of flows (``groups``: by a flow's name its group's).

    A flow's goodput is over its own time, from its connect to its last octet, as ttcp and NetSpec report it; the time
    until a connection that broke is given up, and until the last datagram is sent, counts. The fairness index is of
    these rates, and the papers' aggregate is their sum, ``sum_of_flow_rates`` (DaSilva et al. 1997, "Throughput versus
    offered load"; Charalambous et al. 1999, "Evaluation and fairness"). Where flows end at different times, that sum
    counts rates that were not all there at once, and can exceed the line. ``aggregate_goodput`` can not: all octets
    over the common time, from the first flow's start to the last one's end. ``share`` and ``efficiency`` are of octets,
    too: those that the best TCP would deliver while any flow runs, and ``most_bits``, those that the lines can deliver
    while the flows run (:func:`deliverable_bits`). There is no ``share`` where lines can deliver more than an OC-3c
    does. What applications report stands beside them, as ``FLOW.FIGURE``.
    """
    carry = [flow for flow in flows if flow.get("protocol") not in BARE]  # OAM cells are no user's
    rates = [float(flow["goodput_bps"]) for flow in carry]
    bits = 8 * sum(flow["octets_delivered"] for flow in carry)
    busy_ps = _length(_union(_spans(carry).values()))
    best_bits = BEST_TCP_BPS * busy_ps / 1e12
    found: dict[str, float | None] = {
        **_together(carry),
        "share": _share(bits, best_bits, most_bits),
        "efficiency": bits / most_bits if most_bits else None,
    }
    groups = groups or {}
    for group in dict.fromkeys(groups.values()):
        of_group = [flow for flow in carry if groups.get(flow["name"]) == group]
        found |= {f"{group}.{name}": figure for name, figure in _together(of_group).items()}
    found |= {f"{flow['name']}.goodput": rate for flow, rate in zip(carry, rates, strict=True)}
    for flow in flows:
        came, lost = flow.get("datagrams_received", 0), flow.get("datagrams_lost", 0)
        if lost is not None and came + lost:  # None: on a board by itself
            found[f"{flow['name']}.carried"] = came / (came + lost)
        found |= {f"{flow['name']}.{name}": flow[name] for name in reported(str(flow.get("app"))) if name in flow}
    return found


def count_sums(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the sums over flows, ledger and drops of a run: its figures that are counts."""
    flows = summary["flows"]
    found = {
        "retransmits": sum(flow.get("retransmits", 0) for flow in flows),
        "timeouts": sum(flow.get("timeouts", 0) for flow in flows),
        "pdus_lost": pdus_lost(summary),
        "cells_dropped": cells_dropped(summary),
    }
    return {name: count for name, count in found.items() if count is not None}


def pdus_lost(summary: Mapping[str, Any]) -> int | None:
    """Return the PDUs that a run lost; None: a board by itself has no ledger of them."""
    if summary["ledger"] is None:
        return None
    return sum(loss["pdus"] for vc in summary["ledger"] for loss in vc["lost"] if loss["where"])


def cells_dropped(summary: Mapping[str, Any]) -> int | None:
    """Return the cells that nodes dropped in a run; None: their counters could not be read."""
    if summary["drops"] is None:
        return None
    return sum(sum(reasons.values()) for reasons in summary["drops"].values())


def _share(bits: float, best_bits: float, most_bits: float | None) -> float | None:
    """Return the share of an OC-3c's best TCP; None where the lines can deliver more than that."""
    if not best_bits:
        return 0.0
    return None if most_bits is not None and most_bits > best_bits * _ROUNDED else bits / best_bits


def _together(flows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the figures :data:`GROUPED` of some flows."""
    rates = [float(flow["goodput_bps"]) for flow in flows]
    mean = sum(rates) / len(rates) if rates else 0.0
    spread = math.sqrt(sum((x - mean) ** 2 for x in rates) / (len(rates) - 1)) if len(rates) > 1 else None
    return {
        "aggregate_goodput": _over_common_time(flows),
        "sum_of_flow_rates": sum(rates),
        "goodput": mean,
        "fairness": fairness(rates),
        "sigma": spread,
    }


def _over_common_time(flows: Sequence[Mapping[str, Any]]) -> float:
    """Return all octets over the time from the first start to the last end, of the flows that started."""
    started = [flow for flow in flows if flow["start_ps"] >= 0]
    if not started:
        return 0.0
    time_ps = max(flow["end_ps"] for flow in started) - min(flow["start_ps"] for flow in started)
    return sum(flow["octets_delivered"] for flow in started) * 8 * 10**12 / time_ps if time_ps > 0 else 0.0


Span = tuple[int, int]
"""Begin and end of a time, in ps."""


def _spans(flows: Iterable[Mapping[str, Any]]) -> dict[str, Span]:
    """Return the times of the flows that ran, by name."""
    return {
        flow["name"]: (flow["start_ps"], flow["end_ps"]) for flow in flows if flow["end_ps"] > flow["start_ps"] >= 0
    }


def _union(spans: Iterable[Span]) -> list[Span]:
    """Return the times that are in any of the spans, in order and apart from each other."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def _length(spans: Iterable[Span]) -> int:
    return sum(end - begin for begin, end in spans)


def _phases(summary: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return ``rates`` of a run; for results of versions without them, the rates at its start."""
    resolved = summary["resolved"]
    ports = {switch["name"]: switch["port_rates_bps"] for switch in resolved["network"]["switches"]}
    began = {"at_s": 0.0, "ports": ports, "vcs": [vc["cell_rate_bps"] for vc in resolved["vcs"]]}
    return summary.get("rates") or [began]


def mean_over_time(values: Sequence[tuple[float, float]], end_s: float) -> float:
    """Return the mean of a step function from its first time to the end; each value holds from its time on."""
    ends = [*(when for when, _ in values[1:]), end_s]
    whole = end_s - values[0][0]
    if whole <= 0:
        return values[0][1]
    return sum(value * (end - when) for (when, value), end in zip(values, ends, strict=True)) / whole


def port_rates(summary: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return what each port of each switch may send in a run, in b/s of cells, on average over its time.

    Changes by events count from their time on. A load-reactive port has its ceiling.
    """
    phases, end_s = _phases(summary), summary["time"]["simulated_s"]
    return {
        switch: [
            mean_over_time([(phase["at_s"], phase["ports"][switch][port]) for phase in phases], end_s)
            for port in range(len(rates))
        ]
        for switch, rates in phases[0]["ports"].items()
    }


def deliverable(summary: Mapping[str, Any], names: Sequence[str]) -> list[tuple[float, float]]:
    """Return the most that some flows can deliver together, in b/s, from each time in s (:func:`most_deliverable`)."""
    found: list[tuple[float, float]] = []
    for phase in _phases(summary):
        most = most_deliverable(summary["resolved"], names, phase)
        if not found or found[-1][1] != most:
            found.append((phase["at_s"], most))
    return found


def hop_rates(
    resolved: Mapping[str, Any], ports: Mapping[str, Sequence[float]] | None = None
) -> Callable[[str, str], float]:
    """Return the rate of cells from one node to the next on a path, in b/s, by their names.

    ``ports`` are the rates of the switches' ports; by default those with which a run begins.
    """
    hosts = {host["name"]: host for host in resolved["network"]["hosts"]}
    if ports is None:
        ports = {switch["name"]: switch["port_rates_bps"] for switch in resolved["network"]["switches"]}
    joined: dict[tuple[str, str], float] = {}
    for line in resolved["network"]["lines"]:
        one, two = line["ends"]
        for a, b in {(one["switch"], one["port"]): (one, two), (two["switch"], two["port"]): (two, one)}.values():
            hop = (a["switch"], b["switch"])
            joined[hop] = joined.get(hop, 0) + ports[a["switch"]][a["port"]]

    def rate(a: str, b: str) -> float:
        if a in hosts:
            return hosts[a]["rate_bps"]
        if b in hosts:
            return ports[a][hosts[b]["port"]["port"]]
        return joined[a, b]

    return rate


def cells_of(packet: int) -> int:
    """Return the number of cells of an IP packet of so many octets."""
    return -(-(packet + _ENCAPSULATION) // 48)


Hop = tuple[str, str]
"""The names of two nodes, the second next to the first on a path."""


@dataclass(frozen=True, slots=True)
class _Way:
    """The use that a flow makes of its path.

    Members
    -------
    share : float
        Octets of data per octet of cells, in packets as long as the MTU.
    vc : int
    hops : tuple of (str, str)
        Hops of the path, each as the names of its two nodes.
    own : tuple of (str, str)
        Hops at which its cells are counted: without those that the cells pass for another sink, too.
    source_bps : float
        Rate of the source's line.
    """

    share: float
    vc: int
    hops: tuple[Hop, ...]
    own: tuple[Hop, ...]
    source_bps: float


def _ways(resolved: Mapping[str, Any], names: Collection[str]) -> dict[str, _Way]:
    """Return the paths of some flows, by their names."""
    hosts = {host["name"]: host for host in resolved["network"]["hosts"]}
    passed: set[tuple[int, Hop]] = set()
    found: dict[str, _Way] = {}
    for flow in resolved["flows"]:
        if flow["name"] not in names:
            continue
        vc = resolved["vcs"][flow["vc"]]
        mtu = min(hosts[flow["source"]]["mtu"], hosts[flow["sink"]]["mtu"])
        share = 8 * (mtu - _HEADERS[flow["protocol"]]) / (CELL_BITS * cells_of(mtu))
        hops = tuple(itertools.pairwise(vc["path"]))
        root = vc.get("root")
        tree = flow["vc"] if root is None else root
        own = tuple(hop for hop in hops if root is None or (tree, hop) not in passed)
        passed.update((tree, hop) for hop in hops)
        found[flow["name"]] = _Way(share, flow["vc"], hops, own, hosts[flow["source"]]["rate_bps"])
    return found


def _bound(
    ways: Mapping[str, _Way],
    cells_of_hop: Callable[[Hop, Sequence[str]], float],
    cells_of_flow: Callable[[str, _Way], float],
) -> float:
    """Return an upper bound of the data of some flows.

    No hop carries more than its cells, and a flow that does not pass it is bounded by its own hops. Data for several
    sinks pass a hop once. Both functions return bits of cells.
    """
    own = {name: way.share * cells_of_flow(name, way) for name, way in ways.items()}
    passing: dict[Hop, list[str]] = {}
    for name, way in ways.items():
        for hop in way.own:
            passing.setdefault(hop, []).append(name)
    bounds = [
        cells_of_hop(hop, through) * max(ways[name].share for name in through)
        + sum(most for name, most in own.items() if name not in through)
        for hop, through in passing.items()
    ]
    return min([*bounds, sum(own.values())])


def most_deliverable(
    resolved: Mapping[str, Any], names: Collection[str], rates: Mapping[str, Any] | None = None
) -> float:
    """Return an upper bound of what some flows can deliver together in b/s, by the rates of the lines on their paths.

    No hop carries more than its rate, and a flow that does not pass it is bounded by its own hops. Data for several
    sinks pass a hop once. Packets are filled with data, and cells with packets, as far as possible: 134.513 Mb/s of
    OC-3c with an MTU of 9180.

    Parameters
    ----------
    resolved : Mapping
        The experiment with every value in base units (``result.json``).
    names : Collection[str]
        Names of the flows.
    rates : Mapping, optional
        An entry of ``rates`` of ``result.json``; by default, the rates with which a run begins.
    """
    rate = hop_rates(resolved, None if rates is None else rates["ports"])
    paced = [vc["cell_rate_bps"] for vc in resolved["vcs"]] if rates is None else rates["vcs"]

    def slowest(name: str, way: _Way) -> float:
        least = min(rate(*hop) for hop in way.hops)
        return min(least, paced[way.vc] or least)

    return _bound(_ways(resolved, names), lambda hop, through: rate(*hop), slowest)


def deliverable_bits(summary: Mapping[str, Any], flows: Iterable[Mapping[str, Any]]) -> float:
    """Return an upper bound of the data in bits that the lines can deliver to these flows while they run.

    A hop carries what its rates over the time in which any of its flows runs come to, a flow's VC what its hops and its
    pacing come to over the flow's own time. Times in which no flow runs count for nothing. Each flow's octets pass each
    of its hops within its time, so that no more of them can be delivered, whatever the queues keep for later.

    Parameters
    ----------
    summary : Mapping
        ``resolved`` and ``rates`` of it are used, as of ``result.json``.
    flows : Iterable of Mapping
        Rows of ``flows.parquet``; OAM flows carry no data.
    """
    resolved, phases = summary["resolved"], _phases(summary)
    spans = _spans(flow for flow in flows if flow.get("protocol") not in BARE)
    begins = [round(phase["at_s"] * 1e12) for phase in phases]
    ends = [*begins[1:], max([begins[-1], *(end for _, end in spans.values())])]
    rates = [hop_rates(resolved, phase["ports"]) for phase in phases]

    def over(times: Sequence[Span], rate: Callable[[int], float]) -> float:
        """Return the bits that a rate, by the number of the phase, comes to over some times."""
        bits_ps = 0.0
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            length = sum(max(0, min(end, until) - max(begin, since)) for since, until in times)
            bits_ps += length * rate(number) if length else 0.0
        return bits_ps / 1e12

    def of_hop(hop: Hop, through: Sequence[str]) -> float:
        return over(_union(spans[name] for name in through), lambda number: rates[number](*hop))

    def of_flow(name: str, way: _Way) -> float:
        paced = over([spans[name]], lambda number: phases[number]["vcs"][way.vc] or way.source_bps)
        return min(paced, *(of_hop(hop, (name,)) for hop in way.hops))

    return _bound(_ways(resolved, spans), of_hop, of_flow)


def in_unit(metric: str, unit: str, value: float) -> float:
    """Return a figure of ours, which is in base units, in that of a published one."""
    return value / (_TIMES if metric.endswith("_ps") else _RATES | _SIZES).get(unit, 1)


def has_average(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether some published rows have the average of the figure of which a row is the best or the spread."""
    same = (row["metric"], row["quantity"])
    return any(
        (other["metric"], other["quantity"]) == same and other.get("over", "mean") == "mean" and _theirs(other)
        for other in rows
    )


def _theirs(row: Mapping[str, Any]) -> bool:
    return row["measured"] is not None or row["predicted"] is not None


def compare(
    rows: Iterable[Mapping[str, Any]], found: Mapping[str, float | None], remarks: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the published rows with ``ours`` in the row's unit, and ``ratio``.

    The ratio is of ours to the measured figure, or to the predicted one if nothing was measured. Both are None if this
    run has no such figure.

    ``remarks`` describe the differences between this run and the published one, and are added to each row. With one of
    :data:`NOT_COMPARED` among them there is no ratio. One run is one trial: if a paper has both the average and the
    best of the same trials, it is compared with the average alone (:func:`has_average`).
    """
    table = []
    rows = list(rows)
    compared = not NOT_COMPARED.intersection(remarks)
    for row in rows:
        spread = row.get("over") == "sigma"  # one run has none
        ours = found.get(row["metric"]) if row["metric"] and not spread else None
        if ours is not None:
            ours = in_unit(row["metric"], row["unit"], ours)
        reference = row["measured"] if row["measured"] is not None else row["predicted"]
        twice = row.get("over") == "best" and has_average(row, rows)
        ratio = ours / reference if compared and ours is not None and reference and not twice else None
        table.append({**row, "ours": ours, "ratio": ratio, "remarks": list(remarks)})
    return table
