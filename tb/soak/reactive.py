"""Ten simulated minutes of a port at each of 20 capacities, from 1 kb/s to 599.04 Mb/s.

Prints by how much the mean capacity is off; exit code 1 if one is off by 1e-6 or more. Rates can be named: ``python -m
soak.reactive 1 20`` (kb/s).
"""

import sys

from unit.hdl.test_rate_controller import RATES
from unit.sim.test_reactive import measured


def main():
    worst = 0.0
    for kbps in [int(text) for text in sys.argv[1:]] or RATES:
        passed, off = measured(kbps, 600 * 1000 * kbps // 424)
        worst = max(worst, off / passed)
        print(
            f"{kbps:7} kb/s: {passed / 1e12:.1f} s, off by {off / 1e3:.1f} ns at most, {off / passed:.1e}", flush=True
        )
    return int(worst >= 1e-6)


if __name__ == "__main__":
    sys.exit(main())
