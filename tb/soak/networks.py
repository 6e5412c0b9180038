"""Random networks with accounts at every stop: ``python -m soak.networks`` (``make soak``).

Each network (``models.random_network``) runs three times: with stops, saves, copies and ways back in between, without
these, and without these with Verilator's nodes. All three have to give the same PDUs, cells, counters and losses. Exit
code 1: an account does not hold, or two runs differ.
"""

from __future__ import annotations

import argparse
import sys

from bentpipe_sim.errors import SimulationError
from models.random_network import KINDS, play

PARTS = ("events", "digests", "counters", "ledger")


def wrong(kind: str, seed: int, steps: int, engines: list[str]) -> str:
    """Return what is wrong with a network; "": nothing."""
    try:
        first = play(kind, seed, steps=steps)
        others = {engine: play(kind, seed, steps=steps, engine=engine, disturbed=False) for engine in engines}
    except SimulationError as error:
        return str(error)
    for engine, other in others.items():
        if first != other:
            return f"{engine}: other {', '.join(p for p in PARTS if getattr(first, p) != getattr(other, p))}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.networks", description="Random networks with accounts.")
    parser.add_argument("--seeds", type=int, default=30, help="networks of each kind (default: 30)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--steps", type=int, default=30, help="stops at which something is done (default: 30)")
    parser.add_argument("--native", action="store_true", help="without Verilator")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)} (default: all)")
    given = parser.parse_args()
    engines = ["native"] if given.native else ["native", "verilator"]
    bad = count = 0
    for kind in given.kinds or KINDS:
        before = bad
        for seed in range(given.first, given.first + given.seeds):
            what = wrong(kind, seed, given.steps, engines)
            count += 1
            bad += bool(what)
            if what:
                print(f"{kind}, seed {seed}: {what}", flush=True)
        print(f"{kind}: {given.seeds} networks, {bad - before} wrong", flush=True)
    print(f"{count} random networks, {bad} wrong")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
