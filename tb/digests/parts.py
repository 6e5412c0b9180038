"""The catalogue's networks in parts: ``python -m digests --threads`` (``make digests ARGS=--threads``).

Each experiment runs with its hosts, with the network in their thread and in one of its own: results have to be the same
every 50 ms.

Hosts keep a run from being in parts. So each network also carries PDUs that the event loop makes, from every source of
a VC as fast as it may send. It runs on one event loop, in 2 and 3 parts and in as many parts as it can be cut into, on
one thread and on two. Digests of all wires, counters and accounts have to be the same after each half of the run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.load import load_cases
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe_sim.network import Network
from bentpipe_sim.parts import MOST
from models.beside import NAMES, played
from models.parted import outcome, saturate

__all__ = ["compared", "compared_with_hosts"]

_WAYS = ((2, 1), (2, 2), (3, 2), (MOST, 1), (MOST, 2))
"""Parts and threads."""
_HALF_PS = 10**9
_WITH_HOSTS_PS = 1_200 * 10**9
"""Simulated time of a run with hosts: over the satellite connections are there by then."""


def _run(experiment: Experiment, parts: int, threads: int) -> tuple[list[tuple[Any, ...]], str, int]:
    """Return the outcome after each half, why it was not in parts, and how many parts there were."""
    network: Network = build_network(experiment)[0]
    network.cut(threads, parts)
    try:
        network.start()
        saturate(network, random.Random(experiment.id))
        network.trace()
        found = []
        begin = max((wire[4] + getattr(wire[0], "longest", 0) for wire in network._wires), default=0)
        for half in (1, 2):
            network.run(half * _HALF_PS + (0 if half == 1 else begin * 53 * 10**12 // 299520000))
            found.append(outcome(network))
        return found, network.why_whole, network.parts_and_threads[0]
    finally:
        network.close()


def compared(entry: str) -> Iterator[tuple[str, str, bool]]:
    """Yield a run's name, how its ways compare, and whether all are the same; networks that are alike run once."""
    seen = set()
    for case in load_cases(entry, (), quick=True):
        key = repr((case.network, case.vcs))
        if key in seen:
            continue
        seen.add(key)
        name = ", ".join(filter(None, (entry, case.case)))
        expected, *_ = _run(case, 1, 1)
        most = 1
        for parts, threads in _WAYS:
            found, why, count = _run(case, parts, threads)
            most = max(most, count)
            if found != expected:
                yield name, f"differs with {parts} parts and {threads} threads", False
                break
            if why:
                yield name, f"one event loop: {why}", True
                break
        else:
            yield name, f"the same in up to {most} parts", True


def compared_with_hosts(entry: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the same for each case with its hosts."""
    for case in load_cases(entry, (), quick=True):
        name = ", ".join(filter(None, (entry, case.case, "with hosts")))
        if case.splits:
            yield name, "one thread: the run splits", True
            continue
        until_ps = min(case.duration_ps, _WITH_HOSTS_PS)
        expected, _ = played(case, until_ps, 1)
        found, ran_ahead = played(case, until_ps, 2)
        differs = [
            what
            for stop in zip(expected, found, strict=True)
            for what, one, other in zip(NAMES, *stop, strict=True)
            if one != other
        ]
        if differs:
            yield name, f"differs with two threads: {', '.join(dict.fromkeys(differs))}", False
        else:
            yield name, "the same with two threads" if ran_ahead else "one thread", True
