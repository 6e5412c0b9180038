"""Whole runs of what scatters from seed to seed, against averages in the documentation, and every case of the catalogue
with its quick time, against the most that its lines can deliver: ``python -m soak.catalogue`` (``make soak``).

``tb/system/test_catalogue.py`` has shortened runs of the same.
"""

from __future__ import annotations

import argparse
import sys
from statistics import fmean

from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.load import load_cases
from bentpipe.experiment.run.run import run_experiment

MISMATCH_MBPS = 2.50
"""Goodput of magic-mismatch without pacing on average: time-outs leave a hundredth of the line."""


def beyond_the_lines(name: str) -> list[str]:
    """Return the cases of an entry in which a share or the efficiency is above 1, in words."""
    found = []
    for case in load_cases(name, quick=True):
        figures = run_experiment(case).summary["metrics"]
        for metric in ("share", "efficiency"):
            value = figures.get(metric)
            if value is not None and value > 1:
                where = ", ".join(filter(None, (name, case.case)))
                found.append(f"{where}: {metric} {value:.6f}")
    return found


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
    for name in catalogue():
        above = beyond_the_lines(name)
        print(f"{name}: {'; '.join(above) or 'share and efficiency at most 1'}", flush=True)
        holds = holds and not above
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
