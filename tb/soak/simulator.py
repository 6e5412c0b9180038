"""Every signal of designs in the native simulator against Amaranth's.

The designs are random circuits, nodes, SONET, Amaranth's library, and designs of packages that are installed
(``luna-usb``, ``sentinel-cpu``, ``cynthion``).

``python -m soak.simulator [--count N] [--first SEED] [--fast]``. Exit code 1: a signal is different.
"""

import argparse
import sys

import amaranth.sim

from bentpipe_sim.native import Simulator
from models.simulated_designs import FOREIGN, OWN, installed
from models.simulators import BOTH, compared, everything, unlike

ALL = ("sync", "fast", "falling", "cleared")
CLOCKS = 150


def difference_of(make, kinds):
    """Return the first difference of a design in two simulators; None if there is none."""
    found = []
    for kind in kinds:
        made = make()
        found.append(everything(kind, made.design, list(zip(made.inputs, made.rates, strict=True)), CLOCKS))
    return unlike(*found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="random circuits of each kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first one")
    parser.add_argument("--fast", action="store_true", help="compile with optimisation, as for long simulations")
    given = parser.parse_args()
    kinds = (amaranth.sim.Simulator, Simulator) if given.fast else BOTH
    wrong = 0
    for seed in range(given.first, given.first + given.count):
        for domains, is_reset in ((("sync",), False), (ALL, False), (ALL, True)):
            difference = compared(seed, 40, domains, is_reset=is_reset, kinds=kinds)
            wrong += difference is not None
            if difference:
                print(f"seed {seed}, domains {domains}, reset {is_reset}: {difference}")
    there = {**OWN, **dict(installed())}
    for name in (*OWN, *FOREIGN):
        if name not in there:
            print(f"{name}: not installed")
            continue
        difference = difference_of(there[name], kinds)
        wrong += difference is not None
        print(f"{name}: {difference or 'the same'}", flush=True)
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
