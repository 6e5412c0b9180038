"""Switches with random settings and traffic at 416 and 32 bits: each option alone, and 60 random combinations of them.

Verdicts, cells, counters and accounts are compared at every step. A node of each width is compiled for every set of
options: a minute for each of them. Exit code 1: two widths differ, or an account does not hold. ``python -m soak.widths
--built`` takes nodes that are built with more options than are asked for: a few seconds for each set, with fewer
schedulers.
"""

from __future__ import annotations

import argparse
import random
import sys

from bentpipe_hdl.switch.control import options_for
from bentpipe_hdl.switch.options import options_of
from models.switch_options import BUILT, NAMES, alone, combination
from models.switch_pair import same_at_both_widths


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.widths", description="Switch options at both widths.")
    parser.add_argument("--seeds", type=int, default=60, help="random combinations (default: 60)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--ticks", type=int, default=2500, help="ticks in which cells come (default: 2500)")
    parser.add_argument("--built", action="store_true", help="in few nodes, which have more options")
    parser.add_argument("names", nargs="*", metavar="OPTION", help=f"alone, of {', '.join(NAMES)} (default: all)")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no option of a switch: {', '.join(sorted(unknown))}")
    bad = 0
    tries = [*(given.names or NAMES), *range(given.first, given.first + given.seeds)]
    for one in tries:
        rng = random.Random(f"options {one}")
        names, setup = ([one], alone(rng, one)) if isinstance(one, str) else combination(rng)
        options = options_for(setup)
        more = next(word for word in reversed(BUILT) if word & options == options) if given.built else 0
        found = "equal"
        try:
            record = same_at_both_widths(rng, names, setup, given.ticks, more)
        except AssertionError as error:
            bad, found = bad + 1, f"different: {error}"
        else:
            found += f", {len(record.came_out)} cells, {len(record.verdicts)} verdicts"
        what = "" if isinstance(one, str) else f"seed {one}, "
        print(f"{what}{' '.join(option.name for option in options_of(options))}: {found}", flush=True)
    print(f"{len(tries)} sets of options, {bad} different")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
