"""Cell loss ratios of RTL switches beside exact ones, for four queues: ``python -m soak.losses`` (``make soak``).

Each point is a queue with its buffer and load, run with seeds 1 to ``--seeds``. The mean of the runs' loss ratios has a
95 % interval (Student), and at least 90 % of the points must have the exact value inside. Points are those of which the
runs have enough losses: rarer ones are for splitting (:mod:`soak.rare`). ``--figures DIR`` draws a figure for each
queue.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe.experiment.load import load as load_experiment
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.statistics import t_quantile
from models.queueing import geo_d_1_k_loss, markov_d_1_k_loss, md_1_k_loss, nd_d_1_k_loss

SHARE_INSIDE = 0.9
LEAST_LOSSES = 40
"""With fewer in all runs there is no interval that says something."""
_OC12_BPS = 599_040_000
_M_D_1_SLOTS = 1024
"""Slots of a service with which Geo/D/1/K stands for M/D/1/K."""


@dataclass(frozen=True)
class Point:
    """A queue: which of ``QUEUES``, its load, the buffer's cells; the exact loss ratio, and the experiment to run."""

    queue: str
    load: float
    places: int
    exact: float
    experiment: str
    settings: tuple[str, ...]


def _random(load: float, slots: int = 4) -> tuple[str, ...]:
    """A cell in each slot of an OC-12c line with a probability, to a port where a cell takes so many of them."""
    rate = f"{_OC12_BPS // slots} b/s"
    return (f"flow.0.load={load / slots:.12g}", f'network.switches.lan.ports=["OC-12c", "{rate}"]')


_ON_SLOTS, _OFF_SLOTS = 40, 80
_PEAK, _QUIET = 0.5, 0.05
"""Of the Markov-modulated source: how many slots its states last, and their loads with one of 0.8 in all."""


def _modulated(load: float) -> tuple[tuple[float, float], tuple[str, ...]]:
    loads = (_PEAK * load / 0.8, _QUIET * load / 0.8)
    keys = {"app": "markov", "load": loads[0], "other_load": loads[1], "slots": _ON_SLOTS, "other_slots": _OFF_SLOTS}
    return loads, tuple(f"flow.0.{key}={value}" for key, value in keys.items())


def geo(load: float, places: int) -> tuple[float, str, tuple[str, ...]]:
    return geo_d_1_k_loss(load / 4, 4, places), "theory-geo-d-1-k", _random(load)


def poisson(load: float, places: int) -> tuple[float, str, tuple[str, ...]]:
    """The exact value is that of M/D/1/K; the run has 1024 slots a service, which differs by less than 0.3 %."""
    return md_1_k_loss(load, places), "theory-geo-d-1-k", _random(load, _M_D_1_SLOTS)


def modulated(load: float, places: int) -> tuple[float, str, tuple[str, ...]]:
    loads, keys = _modulated(load)
    return markov_d_1_k_loss(loads, (_ON_SLOTS, _OFF_SLOTS), 4, places), "theory-geo-d-1-k", keys


def periodic(load: float, places: int) -> tuple[float, str, tuple[str, ...]]:
    period = round(160 / load)
    keys = tuple(f"flow.{k}.period={period}" for k in range(10))
    return nd_d_1_k_loss(10, period, 16, places, 1), "rare-loss-nd", (*keys, "splitting.levels=[1]")


Make = Callable[[float, int], tuple[float, str, tuple[str, ...]]]

QUEUES: dict[str, tuple[str, Make, tuple[float, ...], tuple[int, ...]]] = {
    "Geo/D/1/K": ("cells at random, 4 slots a service", geo, (0.8, 0.95), (2, 4, 6, 9, 13)),
    "M/D/1/K": ("Poisson arrivals", poisson, (0.8, 0.95), (2, 4, 6, 9, 13)),
    "MMPP/D/1/K": ("two states of 10 and 20 services in the mean", modulated, (0.6, 0.8), (2, 4, 8, 16, 32)),
    "N*D/D/1/K": ("ten periodic sources, a period from an empty queue on", periodic, (0.8, 1.0), (1, 2, 3, 4)),
}


def points(cells: int) -> Iterator[Point]:
    """The points of which so many cells have enough losses."""
    for queue, (_, make, loads, buffers) in QUEUES.items():
        for load in loads:
            for places in buffers:
                exact, experiment, settings = make(load, places)
                if exact * cells >= LEAST_LOSSES:
                    yield Point(queue, load, places, exact, experiment, settings)


def loss_ratio(point: Point, seed: int, cells: int) -> float:
    """The loss ratio of one run with about so many cells, without the first twentieth."""
    is_periodic = point.experiment == "rare-loss-nd"
    if is_periodic:
        seconds = cells / 10 * 2 * round(160 / point.load) * 53 / 299_520_000
    else:
        slots = _M_D_1_SLOTS if point.queue == "M/D/1/K" else 4
        seconds = cells / point.load * slots * 424 / _OC12_BPS
    settings = [
        *point.settings,
        f"network.switches.lan.buffer_cells={point.places}",
        f"experiment.seed={seed}",
        f"experiment.duration={seconds:.6f} s",
        f"record.interval={seconds / 20:.6f} s",
    ]
    experiment = replace(load_experiment(point.experiment, settings), splitting=None, theory=())
    result = run_experiment(experiment)
    metrics = result.summary["metrics"]
    if is_periodic:  # each period begins with an empty queue
        return metrics["cells_lost"] / metrics["cells_sent"]
    series = result.trace.series
    times, came = series["lan:1.came"]
    lost = dict(zip(*series.get("lan.drops.full", ((), ())), strict=True))  # which begins with the first loss
    before = lost.get(times[1], 0)
    return (lost.get(times[-1], 0) - before) / (came[-1] - came[1])


@dataclass(frozen=True)
class Found:
    """The mean of a point's runs, and half the width of its 95 % interval."""

    point: Point
    mean: float
    half: float

    @property
    def inside(self) -> bool:
        return abs(self.mean - self.point.exact) <= self.half


def measured(point: Point, seeds: int, cells: int) -> Found:
    ratios = [loss_ratio(point, seed, cells) for seed in range(1, seeds + 1)]
    half = t_quantile(0.975, seeds - 1) * statistics.stdev(ratios) / seeds**0.5
    return Found(point, statistics.fmean(ratios), half)


def draw(found: list[Found], folder: Path) -> None:
    """Draw a figure for each queue: exact values as lines, runs as points with their intervals."""
    from matplotlib.figure import Figure

    for number, (queue, (text, make, loads, buffers)) in enumerate(QUEUES.items()):
        figure = Figure(figsize=(5.2, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for load, colour in zip(loads, ("#0072b2", "#d55e00"), strict=True):
            between = [k for k in range(buffers[0], buffers[-1] + 1) if k in buffers or number != 2 or k % 2 == 0]
            axes.plot(between, [make(load, k)[0] for k in between], color=colour, label=f"load {load:g}, exact")
            own = [each for each in found if each.point.queue == queue and each.point.load == load]
            where, means, halves = ([*t] for t in zip(*((e.point.places, e.mean, e.half) for e in own), strict=True))
            axes.errorbar(
                where, means, halves, fmt="o", ms=4, capsize=3, color=colour, label=f"load {load:g}, runs, 95 %"
            )
        axes.set(yscale="log", xlabel="buffer K (cells)", ylabel="cell loss ratio", title=f"{queue}: {text}")
        axes.title.set_fontsize(9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{queue.lower().replace('/', '-').replace('*', '-')}.png", dpi=130)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="runs of each point (10)")
    parser.add_argument("--cells", type=int, default=20_000, help="cells of a run (20000)")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="folder for a figure of each queue")
    given = parser.parse_args()
    found = []
    for point in points(given.cells * given.seeds):
        found.append(measured(point, given.seeds, given.cells))
        last = found[-1]
        said = "" if last.inside else "  OUTSIDE"
        what = f"{point.queue}, load {point.load:g}, K {point.places}"
        print(f"{what}: {point.exact:.5g} exactly, {last.mean:.5g} +- {last.half:.2g}{said}", flush=True)
    inside = sum(each.inside for each in found)
    print(f"{inside} of {len(found)} inside of their 95 % intervals")
    if given.figures:
        draw(found, given.figures)
    return int(inside < SHARE_INSIDE * len(found))


if __name__ == "__main__":
    sys.exit(main())
