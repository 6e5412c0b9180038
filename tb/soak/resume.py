"""Runs that are stopped at random moments and resumed: ``python -m soak.resume`` (``make soak``).

Each entry of the catalogue runs in one go, and again stopped a few times. All of both run folders has to be the same to
the last bit, but for the times that they took: results, flows, traces, captures of four hosts and the first line.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.load import load_cases
from models.resumed import interrupted, uninterrupted

MS = 10**9


def captures(experiment) -> str:
    hosts = [f'"ip:{host.name}"' for host in experiment.network.hosts[:4]]
    lines = [f'"cells:{line.name}"' for line in experiment.network.lines[:1]]
    return f"record.pcap=[{', '.join(hosts + lines)}]"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stops", type=int, default=100, help="how often a run is stopped, in all (100)")
    parser.add_argument("--simulated", type=int, default=3000, help="ms of each entry, at most (3000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", help="entries of the catalogue (all)")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    stopped = wrong = 0
    # Runs with splitting aren't saved (docs/rare-losses.md)
    names = given.names or [name for name in catalogue() if not load_cases(name)[0].splits]
    rng.shuffle(names)
    while stopped < given.stops:
        for name in names:
            cases = load_cases(name)
            case, seed = rng.choice(cases).case, rng.randrange(1000)
            only = [case] if case else []
            first = load_cases(name, only=only)[0]
            length = min(first.duration_ps, given.simulated * MS)
            (experiment,) = load_cases(name, [captures(first)], seed=seed, duration_ps=length, only=only)
            moments = sorted(rng.randrange(length) for _ in range(rng.randint(2, 6)))
            with tempfile.TemporaryDirectory() as folder:
                one = uninterrupted(experiment, Path(folder) / "one")
                other, stops = interrupted(experiment, Path(folder) / "other", moments)
            same = one == other
            differs = "" if same else f"  DIFFERS in {', '.join(k for k in one if one[k] != other.get(k))}"
            print(f"{name} {case}, seed {seed}, {length / 10**12:g} s, stopped {stops} times{differs}", flush=True)
            stopped += stops
            wrong += not same
            if stopped >= given.stops:
                break
    print(f"stopped {stopped} times, {wrong} runs differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
