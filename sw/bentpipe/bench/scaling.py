"""The cost of a cell in larger networks: more nodes, more VCs, idle flows and idle lines beside a full one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from bentpipe.bench.cases import PS, SDU
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, PacingSettings
from bentpipe_sim.network import Network

__all__ = ["POINTS", "Point", "counted", "draw", "network_at", "seconds_a_cell"]

_RATE: Final = 149_760_000
_WARM_S: Final = 0.005
_RUN_S: Final = 0.1
"""Simulated seconds of one full line, at least; of several together as much shorter."""
_PDU_S: Final = (SDU + 8 + 47) // 48 * 424 / _RATE


class Point(NamedTuple):
    """A network of paths of six nodes each: NIC, switch, link, switch, NIC, and the link back.

    Members
    -------
    series : str
        What grows.
    value : int
        How large it is here.
    full, idle : int
        Paths whose line is full, and such that carry nothing.
    vcs, idle_vcs : int
        VCs on each full path that share its line, and such that carry nothing.
    """

    series: str
    value: int
    full: int = 1
    idle: int = 0
    vcs: int = 1
    idle_vcs: int = 0


POINTS: Final = (
    *(Point("nodes, all lines full", 6 * paths, full=paths) for paths in (1, 5, 20)),
    *(Point("nodes, one line full", 6 * (1 + paths), idle=paths) for paths in (0, 4, 19)),
    *(Point("VCs that share the line", vcs, vcs=vcs) for vcs in (1, 8, 64, 256, 1024)),
    *(Point("idle VCs beside one", vcs, idle_vcs=vcs) for vcs in (0, 63, 255, 1023)),
)


def _warm_s(point: Point) -> float:
    """Return the simulated time until each VC has sent a PDU, so that all memory is in use (s)."""
    return max(_WARM_S, 1.1 * point.vcs * _PDU_S)


def _run_s(point: Point) -> float:
    """Return the simulated time of a measurement (s): in each tenth of it each VC sends a PDU."""
    return max(_RUN_S / point.full, 10 * point.vcs * _PDU_S)


def network_at(point: Point, delay_ps: int = 40_000_000, **how: Any) -> Network:
    """Return the network, begun, with lines of this delay; ``how`` it is run: threads, parts."""
    network = Network(seed=1, **how)
    sending: list[tuple[int, int, int]] = []
    paths = range(point.full + point.idle)
    # By kind, as experiments add them: of those due in one tick, one kind comes after the other
    switches = [[network.add_switch(f"{name}{path}") for name in ("west", "east")] for path in paths]
    nics = [[network.add_nic(f"{name}{path}", line=NicLine(_RATE)) for name in ("a", "b")] for path in paths]
    links = [
        [network.add_link(f"{name}{path}", LinkSettings(delay_ps=delay_ps)) for name in ("out", "back")]
        for path in paths
    ]
    for path, ((a, b), (west, east), (out, back)) in enumerate(zip(nics, switches, links, strict=True)):
        for host, switch in ((a, west), (b, east)):
            network.connect(host, (switch, 0))
            network.connect((switch, 0), host)
        network.connect((west, 3), out)
        network.connect(out, (east, 3))
        network.connect((east, 3), back)
        network.connect(back, (west, 3))
        full = path < point.full
        for number in range(point.vcs + point.idle_vcs if full else 1):
            rate = _RATE // point.vcs if number < point.vcs else None
            vc = network.add_vc([a, west, out, east, b], 0, 32 + number, pacing=PacingSettings(cell_rate_bps=rate))
            if full and number < point.vcs:
                sending.append((a.index, b.index, vc))
    network.start()
    for key, (source, sink, vc) in enumerate(sending):
        network.loop.sink(sink, vc, key, 0, 0, 0)
        network.loop.source(source, vc, SDU, key)
    network.run(int(_warm_s(point) * PS))
    return network


def counted(point: Point) -> tuple[float, float]:
    """Return the two simulated times between which instructions are counted (s)."""
    begin = _warm_s(point) + _WARM_S
    return begin, begin + _run_s(point) / 10


def seconds_a_cell(point: Point) -> float:
    """Return the CPU seconds of a cell from NIC to NIC, the best tenth of a run."""
    network = network_at(point)
    found = min(_tenths(network, _warm_s(point), _run_s(point)))
    network.check_conservation()
    return found


def _tenths(network: Network, begin: float, seconds: float) -> Iterator[float]:
    came = _came(network)
    for tenth in range(1, 11):
        start = time.process_time()
        network.run(int((begin + seconds * tenth / 10) * PS))
        spent = time.process_time() - start
        before, came = came, _came(network)
        yield spent / (came - before)


def _came(network: Network) -> int:
    """Return the number of cells that reached NICs."""
    stats = network.stats()
    return sum(stats[node.name]["cells_in"] for node in network.nodes if node.kind == "nic")


def draw(found: dict[Point, float], unit: str, file: Path) -> None:
    """Plot the cost of a cell at each point, with a panel for each series."""
    from matplotlib.figure import Figure

    from bentpipe.plots.style import COLOURS, styled

    series = list(dict.fromkeys(point.series for point in found))
    with styled():
        figure = Figure(figsize=(8.4, 2.6), layout="constrained")
        axes = figure.subplots(1, len(series), sharey=True, squeeze=False)[0]
        for axis, name in zip(axes, series, strict=True):
            points = [point for point in found if point.series == name]
            axis.plot(range(len(points)), [found[point] for point in points], "o-", color=COLOURS[0], markersize=4)
            axis.set_xticks(range(len(points)), [str(point.value) for point in points])
            axis.set_xlabel(name)
        axes[0].set_ylim(0, 1.25 * max(found.values()))
        axes[0].set_ylabel(f"{unit} a cell")
        figure.savefig(file)
