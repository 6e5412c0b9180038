"""Whole runs of what scatters from seed to seed, against averages in the documentation: ``python -m soak.catalogue``
(``make soak``).

``tb/system/test_catalogue.py`` has a shortened run of the same experiment.
"""

from __future__ import annotations

import argparse
import sys
from statistics import fmean

from bentpipe.experiment.load import load_cases
from bentpipe.experiment.run.run import run_experiment

MISMATCH_MBPS = 1.97
"""Goodput of magic-mismatch without pacing on average: time-outs leave a hundredth of the line."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4, help="runs (4)")
    given = parser.parse_args()
    found = []
    for seed in range(1, given.seeds + 1):
        result = run_experiment(*load_cases("magic-mismatch", seed=seed, only=["no pacing"]))
        found.append(result.summary["metrics"]["goodput"] / 1e6)
        print(f"magic-mismatch, no pacing, seed {seed}: {found[-1]:.2f} Mb/s", flush=True)
    mean = fmean(found)
    holds = abs(mean - MISMATCH_MBPS) <= 0.25 * MISMATCH_MBPS
    print(f"on average {mean:.2f} Mb/s, {MISMATCH_MBPS} expected{'' if holds else '  OUTSIDE'}")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
