"""Errors in bursts against the theory of Gilbert and Elliott: 40 lines of 100,000 cells with other states, by cells and
by time.

Prints measured and expected values; exit code 1 if more of them are outside of their 99 % intervals than one such soak
in 10,000 has. Seeds can be named: ``python -m soak.bursts 7 8``.
"""

import math
import random
import sys

from models.gilbert import Z99, GilbertElliott
from unit.sim.test_bursts import as_settings, measured

CELLS = 100_000


def main():
    asked, outside = 0, 0
    for seed in [int(text) for text in sys.argv[1:]] or range(1, 41):
        rng = random.Random(f"bursts {seed}")
        ticks = rng.random() < 0.5
        slots = 16 if ticks else 1
        bad = slots * math.exp(rng.uniform(math.log(2), math.log(60)))
        good = bad * math.exp(rng.uniform(0, math.log(20)))
        model = GilbertElliott(good, bad, rng.choice([0.0, 0.002]), rng.uniform(0.1, 1.0))
        settings = as_settings(model, ticks) | {"loss": model.bad_loss, "good_loss": model.good_loss}
        came, counts, _ = measured(CELLS, seed, **settings)
        steps, states, lost = slots * CELLS, counts["bad_states"], came.count(False)
        spread = Z99 * math.sqrt((model.good * (model.good - 1) + model.bad * (model.bad - 1)) / states)
        rows = [
            ("share bad", counts["bad_cells"] / CELLS, model.share, model.share_error(steps)),
            ("cycle", steps / states, model.good + model.bad, spread),
        ]
        if not ticks:  # where states end between cells, the chain of cells has other numbers
            rows.append(("lost", lost / CELLS, model.loss, model.loss_error(CELLS)))
        for name, found, expected, error in rows:
            asked += 1
            outside += abs(found - expected) > error
            print(
                f"seed {seed:2}, {'time ' if ticks else 'cells'}: {name:9} {found:.5f}, {expected:.5f} +- {error:.5f}",
                flush=True,
            )
    most = next(k for k in range(asked + 1) if _above(asked, k) < 1e-4)
    print(f"{outside} of {asked} are outside of their intervals; {most} may be")
    return int(outside > most)


def _above(count, most):
    """The probability that of ``count`` values more than ``most`` are outside of their 99 % intervals."""
    return 1 - sum(math.comb(count, k) * 0.01**k * 0.99 ** (count - k) for k in range(most + 1))


if __name__ == "__main__":
    sys.exit(main())
