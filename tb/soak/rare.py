"""Intervals of rare losses over several seeds: ``python -m soak.rare`` (``make soak``).

The exact loss ratio lies in its 95 % interval in 19 of 20 runs. There may be as many outside as are by chance, with a
probability of 1e-3.
"""

from __future__ import annotations

import argparse
import sys

from bentpipe.experiment.load import load_cases
from bentpipe.experiment.run import run_experiment
from bentpipe.results.splitting import CONFIDENCE

from .theory import allowed

SHORT = ("experiment.duration=500 ms", "splitting.effort=50")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="runs (20)")
    parser.add_argument("--case", default="1e-6", help="of rare-loss (1e-6)")
    given = parser.parse_args()
    missed = 0
    for seed in range(1, given.seeds + 1):
        (experiment,) = load_cases("rare-loss", SHORT, seed=seed, only=[given.case])
        summary = run_experiment(experiment).summary
        row = summary["theory"][0]
        missed += not row["holds"]
        print(
            f"{given.case}, seed {seed}: {row['predicted']:.4g} in theory, {row['ours']:.4g} "
            f"({row['low']:.3g} to {row['high']:.3g}){'' if row['holds'] else '  OUTSIDE'}, "
            f"{summary['metrics']['cells_simulated']:,} cells, {summary['time']['wall_s']:.0f} s",
            flush=True,
        )
    most = allowed(given.seeds, CONFIDENCE)
    print(f"{missed} of {given.seeds} outside, {most} allowed")
    return int(missed > most)


if __name__ == "__main__":
    sys.exit(main())
