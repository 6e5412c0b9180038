"""Random experiments, with the network beside its hosts: ``python -m soak.beside`` (``make soak SOAKS=beside``).

Each runs in one thread, and with a thread for the network; once it is saved and resumed the other way. Digests of all
wires, counters, accounts, flows, hosts and series have to be the same every 50 ms. Exit code 1: two runs differ, or too
few had two threads.

``--tsan`` runs the same with ThreadSanitizer, as of :mod:`soak.parts`.
"""

from __future__ import annotations

import argparse
import random
import sys

from bentpipe.experiment.load import load_cases
from models.beside import NAMES, played
from soak.parts import with_tsan

_PLACES = {
    "lan-3flows": 300,
    "lan-1flow": 300,
    "wan-3flows": 400,
    "acts-3flows": 1600,
    "acts-60flows": 1400,
    "netspec-cbr": 400,
    "aai-ftp": 500,
    "acts-broadcast": 800,
}
"""Experiments, and how many simulated milliseconds they run."""


def settings(draws: random.Random) -> list[str]:
    """Settings that any of the experiments takes."""
    cost = draws.choice(["5 us", "62 us", "200 us"])
    found = [f"hosts.cost={cost}", f"hosts.tcp.variant={draws.choice(['reno', 'newreno', 'sack'])}"]
    found += draws.sample(
        [
            "hosts.cost_spread=0.2",
            "hosts.interface_queue=50",
            "hosts.clock_hz=0",
            "hosts.tcp.ack_policy=immediate",
            "network.lines.*.ber=1e-7",
            "network.switches.*.policy=tail",
            "flow.0.size=200 kB",
        ],
        2,
    )
    return found


def wrong(seed: int) -> tuple[str, list[str], bool]:
    """Return a random experiment, what differs in it, and whether the network had a thread of its own."""
    draws = random.Random(seed)
    name = draws.choice(list(_PLACES))
    given = [f"experiment.seed={seed}", *settings(draws)]
    case = draws.choice(load_cases(name, given))
    until_ps = _PLACES[name] * 10**9
    expected, _ = played(case, until_ps, 1)
    faults, beside = [], False
    for way, found in {
        "two threads": played(case, until_ps, 2),
        "resumed with two": played(case, until_ps, 1, len(expected) // 2),
        "resumed with one": played(case, until_ps, 2, len(expected) // 2),
    }.items():
        beside |= found[1]
        for k, (one, other) in enumerate(zip(expected, found[0], strict=True)):
            if one != other:
                differs = [what for what, a, b in zip(NAMES, one, other, strict=True) if a != b]
                faults.append(f"{way}, stop {k}: other {', '.join(differs)}")
                break
    return f"{name}, {', '.join(given)}", faults, beside


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.beside", description="Networks beside their hosts.")
    parser.add_argument("--seeds", type=int, default=100, help="experiments (default: 100)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--tsan", action="store_true", help="with ThreadSanitizer")
    given = parser.parse_args()
    if given.tsan:
        return with_tsan("soak.beside")
    bad = beside = 0
    for seed in range(given.first, given.first + given.seeds):
        what, faults, had = wrong(seed)
        bad += bool(faults)
        beside += had
        for fault in faults:
            print(f"seed {seed}, {what}: {fault}", flush=True)
    print(f"{given.seeds} random experiments, {beside} with two threads, {bad} wrong")
    return int(bad > 0 or beside < given.seeds / 2)


if __name__ == "__main__":
    sys.exit(main())
