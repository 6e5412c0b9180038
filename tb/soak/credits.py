"""Random traffic between four hosts and two switches with credits, 20 times: with other places, batches, error ratios.

Prints what came and what was lost; exit code 1 if a cell was dropped, a VC stopped, or a cell isn't accounted for in
the end. Seeds can be named: ``python -m soak.credits 7 8``.
"""

import random
import sys

from unit.sim.test_credits import MS, exchange

PDUS = 1000
"""A VC."""


def main():
    for seed in [int(text) for text in sys.argv[1:]] or range(1, 21):
        rng = random.Random(f"credits {seed}")
        share = rng.choice([24, 64, 200, 700])
        batch = rng.choice([1, 2, 8, share // 2])
        ber = rng.choice([0, 1e-7, 1e-5, 1e-4, 1e-3])
        found = exchange(seed, ber=ber, pdus=PDUS, until_ps=60_000 * MS, share=share, batch=batch)
        sent = sum(sum(found[name]["tx_cells"]) for name in "abcd")
        switches = [found[name] for name in ("west", "east")]
        lost = sum(sum(switch["credit_lost"]) for switch in switches)
        bad = sum(found[name]["credit_cells_bad"] for name in found if "credit_cells_bad" in found[name])
        made = sum(found[name]["credit_cells_out"] for name in found if "credit_cells_out" in found[name])
        most = max(switch["high_water"] for switch in switches)
        print(
            f"seed {seed:2}: {share:3} places, batch {batch:3}, errors {ber:g}: {sent} cells sent, {lost} lost on "
            f"lines, {made} credit cells and probes, {bad} of them damaged, {most} cells queued at most",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
