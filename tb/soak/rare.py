"""Check that intervals of rare losses contain the exact loss ratio: ``python -m soak.rare`` (``make soak``).

Over switches of RTL with some seeds; and the same estimator, with the levels that its pilot chooses, over the exact
chain cell by cell, so often that the share of intervals which have it says something. It is to be 0.95; there may be as
many outside as are by chance, with a probability of 1e-3.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from math import sqrt
from typing import Any

from bentpipe.experiment.load import load_cases
from bentpipe.experiment.run.run import run_experiment
from bentpipe.experiment.run.splitting import choose_levels
from bentpipe.results.splitting import CONFIDENCE, sum_up_trees
from models.queueing import geo_d_1_k_loss, nd_d_1_k_loss
from models.split_queue import GeoQueue, PhaseQueue, grown

from .theory import allowed

SERVICE, PLACES, BATCHES = 4, 16, 20
PARTS = BATCHES + 1
PHASES = 10, 160, 16
"""Of rare-loss-nd: sources, slots of their period, slots of a service."""


def of_rtl(case: str, seeds: int, effort: int) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Runs of 500 ms, a quarter of the catalogue's."""
    for seed in range(1, seeds + 1):
        settings = ("experiment.duration=500 ms", f"splitting.effort={4 * effort}")
        (experiment,) = load_cases("rare-loss", settings, seed=seed, only=[case])
        summary = run_experiment(experiment).summary
        yield f"{case}, seed {seed}", summary["theory"][0]["predicted"], summary["splitting"]


def of_chain(case: str, repeats: int, effort: int) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Run a queue of its own for as long, without hosts and switches."""
    (experiment,) = load_cases("rare-loss", only=[case])
    load = experiment.flows[0].settings["load"]
    exact = geo_d_1_k_loss(load, SERVICE, PLACES)
    slots = int(0.5 * 599.04e6 / 424) // PARTS
    for repeat in range(1, repeats + 1):
        seed = f"{case} {effort} {repeat}"
        walk = GeoQueue(load, SERVICE, PLACES, seed)
        levels, pilot = choose_levels(walk, slots, effort, seed, slots * PARTS)
        walk = GeoQueue(load, SERVICE, PLACES, seed)
        cycles = _cycles(walk, slots)
        trees = [grown(walk, f"{seed} {batch}", cycles, effort, levels) for batch in range(BATCHES)]
        yield f"{case}, repeat {repeat} over the chain", exact, sum_up_trees("", trees, pilot, ())


def of_phases(places: int, repeats: int, effort: int) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """The catalogue's rare-loss-nd with so many places, over the exact chain, as long."""
    exact = nd_d_1_k_loss(*PHASES, places, 1)
    slots, levels = int(599.04e6 * 4 / 424) // PARTS, range(2, places + 1)
    for repeat in range(1, repeats + 1):
        seed = f"phases {places} {effort} {repeat}"
        cycles = _cycles(PhaseQueue(*PHASES, places, 1, seed), slots)
        walk = PhaseQueue(*PHASES, places, 1, seed)
        trees = [grown(walk, f"{seed} {batch}", cycles, effort, levels) for batch in range(BATCHES)]
        yield f"N*D/D/1/{places}, repeat {repeat} over the chain", exact, sum_up_trees("", trees, 0, ())


def _cycles(walk: GeoQueue | PhaseQueue, slots: int) -> int:
    """Return the number of cells in the first part, which is left out."""
    walk.go(0, False, slots)
    walk.heights()
    return walk.counts().cycles


def judged(found: Iterator[tuple[str, float, dict[str, Any]]], each: bool) -> bool:
    """Return whether as many intervals contain the exact ratio as should."""
    count = missed = cells = 0
    for name, exact, split in found:
        ours = split["loss_ratio"]
        holds = ours["low"] is not None and ours["low"] <= exact <= ours["high"]
        count, missed, cells = count + 1, missed + (not holds), cells + split["cells"]
        if each:
            ends = "no interval" if ours["low"] is None else f"{ours['low']:.3g} to {ours['high']:.3g}"
            print(f"{name}: {exact:.4g}, {ours['value']:.4g} ({ends}){'' if holds else '  OUTSIDE'}", flush=True)
    if not count:
        return True
    share, most = 1 - missed / count, allowed(count, CONFIDENCE)
    error = 1.96 * sqrt(share * (1 - share) / count)
    found = f"{share:.3f} ± {error:.3f} inside; {cells // count:,} cells each"
    print(f"{missed} of {count} outside, {most} allowed: {found}")
    return missed <= most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="runs over switches (20)")
    parser.add_argument("--repeats", type=int, default=200, help="over the chain (200)")
    parser.add_argument("--phases", type=int, default=60, help="over the chain of rare-loss-nd with 6 places (60)")
    parser.add_argument("--case", default="1e-6", help="of rare-loss (1e-6)")
    parser.add_argument("--effort", type=int, default=100, help="trials from each level in each batch (100)")
    given = parser.parse_args()
    switches = judged(of_rtl(given.case, given.seeds, given.effort), each=True)
    chain = judged(of_chain(given.case, given.repeats, given.effort), each=False)
    phases = judged(of_phases(6, given.phases, 5 * given.effort), each=False)
    return int(not (switches and chain and phases))


if __name__ == "__main__":
    sys.exit(main())
