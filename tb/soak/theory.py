"""Whole runs of the catalogue's experiments of theory, with several seeds: ``python -m soak.theory`` (``make soak``).

Each predicted figure lies in its 99 % confidence interval in 99 of 100 runs. Of all there may be as many outside as are
by chance, with a probability of 1e-3.
"""

from __future__ import annotations

import argparse
import sys
from math import comb

from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.theory import CONFIDENCE


def allowed(figures: int, confidence: float = CONFIDENCE) -> int:
    """The least number of misses that there are more of with a probability below 1e-3."""
    miss, more, count = 1 - confidence, 1.0, -1
    while more >= 1e-3:
        count += 1
        more -= comb(figures, count) * miss**count * confidence ** (figures - count)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs of each (3)")
    given = parser.parse_args()
    figures = missed = 0
    for name in (name for name in catalogue() if name.startswith("theory-")):
        for seed in range(1, given.seeds + 1):
            experiment = load(name, (f"experiment.seed={seed}",))
            for row in run_experiment(experiment).summary["theory"] if experiment.theory else ():
                figures += 1
                missed += not row["holds"]
                message = "" if row["holds"] else "  OUTSIDE"
                print(
                    f"{name}, seed {seed}: {row['quantity']}: {row['predicted']:.5g} in theory, "
                    f"{row['ours']:.5g} ± {row['half']:.2g} {row['unit']}{message}"
                )
    print(f"{missed} of {figures} outside, {allowed(figures)} allowed")
    return int(missed > allowed(figures))


if __name__ == "__main__":
    sys.exit(main())
