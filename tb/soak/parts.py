"""Random networks in parts: ``python -m soak.parts`` (``make soak SOAKS=parts``).

Each network (``models.parted``) runs on one event loop, in 2 and 3 parts, and in as many parts as it can be cut into,
on one thread and on two; once the run is saved and resumed with other parts and threads. Digests of all wires,
counters, accounts and checked PDUs have to be the same at every stop. Exit code 1: two runs differ, or too few were in
parts.

``--tsan`` runs the same with ThreadSanitizer in the event loop and in all nodes: it reports each data race and ends the
run with exit code 66.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter

from bentpipe_sim.parts import MOST
from bentpipe_sim.tools import compiler
from models.parted import PARTED, Way, play

WAYS = {
    "one event loop": [Way()],
    "2 parts": [Way(1, 2)],
    "2 parts, 2 threads": [Way(2, 2)],
    "3 parts, 2 threads": [Way(2, 3)],
    "all parts": [Way(1, MOST)],
    "all parts, 2 threads": [Way(2, MOST)],
    "resumed with others": [Way(2, 2), Way(), Way(1, MOST), Way(2, 3)],
}
NAMES = ("digests", "counters", "ledger", "stats", "checked PDUs")


def wrong(kind: str, seed: int, steps: int, why: Counter[str]) -> list[str]:
    """Return how the ways of running a network differ; what was not in parts is counted in ``why``."""
    found = {name: play(kind, seed, ways, steps) for name, ways in WAYS.items()}
    first = found["one event loop"][0]
    faults = []
    for name, (steps_of, reasons) in found.items():
        if name != "one event loop":
            why.update(reasons)
        for k, (one, other) in enumerate(zip(first, steps_of, strict=True)):
            if one != other:
                differs = [what for what, a, b in zip(NAMES, one, other, strict=True) if a != b]
                faults.append(f"{name}, step {k}: other {', '.join(differs)}")
                break
    return faults


def with_tsan(module: str) -> int:
    """Run this program once more, with ThreadSanitizer."""
    library = subprocess.run([compiler(), "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": library.stdout.strip(),
        "BENTPIPE_CXXFLAGS": "-O1 -g -fsanitize=thread",
        "TSAN_OPTIONS": "report_signal_unsafe=0 ignore_noninstrumented_modules=1",
    }
    arguments = [each for each in sys.argv[1:] if each != "--tsan"]
    return subprocess.run([sys.executable, "-m", module, *arguments], env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.parts", description="Random networks in parts.")
    parser.add_argument("--seeds", type=int, default=100, help="networks of each kind (default: 100)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--steps", type=int, default=8, help="stops (default: 8)")
    parser.add_argument("--tsan", action="store_true", help="with ThreadSanitizer")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(PARTED)} (default: all)")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(PARTED):
        parser.error(f"no kind {', '.join(sorted(unknown))}")
    if given.tsan:
        return with_tsan("soak.parts")
    count = bad = 0
    why: Counter[str] = Counter()
    for kind in given.kinds or PARTED:
        for seed in range(given.first, given.first + given.seeds):
            faults = wrong(kind, seed, given.steps, why)
            count += 1
            bad += bool(faults)
            for fault in faults:
                print(f"{kind}, seed {seed}: {fault}", flush=True)
    for reason, number in why.most_common():
        print(f"{number} steps: {reason or 'in parts'}")
    print(f"{count} random networks, {bad} wrong")
    return int(bad > 0 or why[""] < sum(why.values()) / 10)


if __name__ == "__main__":
    sys.exit(main())
