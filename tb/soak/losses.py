"""Cell loss ratios of RTL switches beside exact ones, for four queues: ``python -m soak.losses`` (``make soak``).

Each point is a queue with its buffer and load, run with seeds 1 to ``--seeds``. The mean of the runs' loss ratios has a
95 % interval (Student). Points of which such runs have too few losses, down to 1e-9, are estimated by splitting, each
by one run with seed 1 and its interval. At least 90 % of the points must have the exact value inside. ``--figures DIR``
draws a figure for each queue. :mod:`soak.rare` has the coverage of the intervals of splitting.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from bentpipe.experiment.load import load as load_experiment
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.statistics import t_quantile
from models.queueing import geo_d_1_k_loss, markov_d_1_k_loss, md_1_k_loss, nd_d_1_k_loss

SHARE_INSIDE = 0.9
RAREST = 1e-9
LEAST_LOSSES = 40
"""With fewer in all runs there is no interval that says something: these points are for splitting."""
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
    return nd_d_1_k_loss(10, period, 16, places, 1), "rare-loss-nd", keys


Make = Callable[[float, int], tuple[float, str, tuple[str, ...]]]

QUEUES: dict[str, tuple[str, Make, tuple[float, ...], tuple[int, ...]]] = {
    "Geo/D/1/K": ("cells at random, 4 slots a service", geo, (0.8, 0.95), (2, 4, 6, 9, 13)),
    "M/D/1/K": ("Poisson arrivals", poisson, (0.8, 0.95), (2, 4, 6, 9, 13)),
    "MMPP/D/1/K": ("two states of 10 and 20 services in the mean", modulated, (0.6, 0.8), (2, 4, 8, 16, 32)),
    "N*D/D/1/K": ("ten periodic sources, a period from an empty queue on", periodic, (0.8, 1.0), (1, 2, 3, 4)),
}


RARE: dict[str, tuple[tuple[float, int], ...]] = {
    "Geo/D/1/K": ((0.6, 8), (0.6, 12), (0.6, 16), (0.8, 20), (0.8, 28)),
    "M/D/1/K": ((0.6, 12), (0.6, 16), (0.6, 20), (0.8, 20), (0.8, 32)),
    "MMPP/D/1/K": ((0.4, 32), (0.4, 48), (0.4, 64), (0.6, 72), (0.6, 96)),
    "N*D/D/1/K": ((0.8, 5), (0.8, 6), (1.0, 5), (1.0, 6), (1.0, 7)),
}
"""Load and places of the points for splitting."""


@cache
def exact(queue: str, load: float, places: int) -> float:
    """The loss ratio of a queue."""
    return QUEUES[queue][1](load, places)[0]


def point(queue: str, load: float, places: int) -> Point:
    loss, experiment, settings = QUEUES[queue][1](load, places)
    return Point(queue, load, places, loss, experiment, settings)


def points(cells: int) -> Iterator[Point]:
    """The points of which so many cells have enough losses."""
    for queue, (_, _, loads, buffers) in QUEUES.items():
        for each in (point(queue, load, places) for load in loads for places in buffers):
            if each.exact * cells >= LEAST_LOSSES:
                yield each


def rare_points() -> Iterator[Point]:
    """The points for splitting."""
    for queue, those in RARE.items():
        for each in (point(queue, load, places) for load, places in those):
            if each.exact >= RAREST:
                yield each


def made(point: Point, seed: int, cells: int, name: str, *more: str) -> Experiment:
    """An experiment for a run of a point with about so many cells."""
    if point.experiment == "rare-loss-nd":
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
        *more,
    ]
    return replace(load_experiment(name, settings), theory=())


def loss_ratio(point: Point, seed: int, cells: int) -> float:
    """The loss ratio of one run with about so many cells, without the first twentieth."""
    is_periodic = point.experiment == "rare-loss-nd"
    more = ["splitting.levels=[1]"] if is_periodic else []
    result = run_experiment(replace(made(point, seed, cells, point.experiment, *more), splitting=None))
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
    """An estimate for a point, and its 95 % interval; ``rare``: by splitting."""

    point: Point
    mean: float
    low: float
    high: float
    rare: bool = False

    @property
    def inside(self) -> bool:
        return self.low <= self.point.exact <= self.high


def measured(point: Point, seeds: int, cells: int) -> Found:
    ratios = [loss_ratio(point, seed, cells) for seed in range(1, seeds + 1)]
    half, mean = t_quantile(0.975, seeds - 1) * statistics.stdev(ratios) / seeds**0.5, statistics.fmean(ratios)
    return Found(point, mean, mean - half, mean + half)


def split(point: Point, cells: int, effort: int) -> Found:
    """By one run of about so many cells, and so many trials from each level in each batch."""
    levels = f"splitting.levels={[*range(2, point.places + 1)] if point.experiment == 'rare-loss-nd' else []}"
    name = "rare-loss-nd" if point.experiment == "rare-loss-nd" else "rare-loss"
    summary = run_experiment(made(point, 1, cells, name, levels, f"splitting.effort={effort}")).summary
    ours = summary["splitting"]["loss_ratio"]
    return Found(point, ours["value"], ours["low"] or 0.0, ours["high"] or 0.0, rare=True)


def draw(found: list[Found], folder: Path) -> None:
    """Draw a figure for each queue: exact values as lines, runs as points with their intervals."""
    from matplotlib.figure import Figure

    for queue, (text, *_) in QUEUES.items():
        figure = Figure(figsize=(5.2, 3.4), layout="constrained")
        axes = figure.add_subplot()
        ours = [each for each in found if each.point.queue == queue]
        if not ours:
            continue
        for load, colour in zip(sorted({e.point.load for e in ours}), ("#009e73", "#0072b2", "#d55e00"), strict=False):
            own = [each for each in ours if each.point.load == load]
            last = max(each.point.places for each in own)
            between = range(min(each.point.places for each in own), last + 1, 1 + last // 40)
            axes.plot(between, [exact(queue, load, k) for k in between], color=colour, label=f"load {load:g}, exact")
            for rare, mark, label in ((False, "o", "runs"), (True, "s", "splitting")):
                these = [each for each in own if each.rare == rare]
                if these:
                    ends = [[e.mean - e.low for e in these], [e.high - e.mean for e in these]]
                    axes.errorbar(
                        [e.point.places for e in these], [e.mean for e in these], ends, fmt=mark, ms=4, capsize=3,
                        color=colour, mfc="white" if rare else colour, label=f"load {load:g}, {label}, 95 %",
                    )  # fmt: skip
        axes.set(yscale="log", xlabel="buffer K (cells)", ylabel="cell loss ratio", title=f"{queue}: {text}")
        axes.title.set_fontsize(9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
        folder.mkdir(parents=True, exist_ok=True)
        suffix = "-rare" if all(each.rare for each in ours) else ""
        figure.savefig(folder / f"{queue.lower().replace('/', '-').replace('*', '-')}{suffix}.png", dpi=130)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="runs of each point (10)")
    parser.add_argument("--cells", type=int, default=20_000, help="cells of a run (20000)")
    parser.add_argument("--only", choices=("runs", "splitting"), help="leave out the other points")
    parser.add_argument("--rare-cells", type=int, default=60_000, help="cells of a plain run that is split (60000)")
    parser.add_argument("--effort", type=int, default=100, help="trials from each level in each batch (100)")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="folder for a figure of each queue")
    given = parser.parse_args()
    found = []
    runs = () if given.only == "splitting" else points(given.cells * given.seeds)
    rare = () if given.only == "runs" else rare_points()
    tasks = itertools.chain(
        (partial(measured, point, given.seeds, given.cells) for point in runs),
        (partial(split, point, given.rare_cells, given.effort) for point in rare),
    )
    for task in tasks:
        last = task()
        found.append(last)
        point, message = last.point, "" if last.inside else "  OUTSIDE"
        what = f"{point.queue}, load {point.load:g}, K {point.places}{', splitting' if last.rare else ''}"
        ends = f"{last.low:.4g} to {last.high:.4g}"
        if given.figures:  # of what there is by now
            draw(found, given.figures)
        print(f"{what}: {point.exact:.5g} exactly, {last.mean:.5g} ({ends}){message}", flush=True)
    inside = sum(each.inside for each in found)
    print(f"{inside} of {len(found)} inside of their 95 % intervals")
    return int(inside < SHARE_INSIDE * len(found))


if __name__ == "__main__":
    sys.exit(main())
