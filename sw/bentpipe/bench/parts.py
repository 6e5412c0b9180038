"""Networks on one event loop, in parts on one thread and on several threads show what parts and threads gain.

Each way of a network has a process of its own, as a run has, and they take turns. A turn is a quarter of a second, so
that the caches are filled again in a small share of it; the begin of a turn does not count. Of each way the turn counts
that took least. Elapsed seconds are those of turns in which enough cores were free, if there were any: on a machine
with other load they say little.
"""

from __future__ import annotations

import math
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

from bentpipe.bench.cases import PS, SDU
from bentpipe.bench.scaling import Point, network_at
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, PacingSettings
from bentpipe_sim.network import Network

__all__ = ["CASES", "HOSTS", "Row", "beside", "busy", "measure"]

_RATE: Final = 149_760_000
_US, _MS = 10**6, 10**9
_TURNS: Final = 60
_SLICE: Final = 0.05
"""Turns with hosts, and simulated seconds of each."""
_TURNS_OF_CELLS: Final = 8
_TURN_S: Final = 0.25
"""Real time of a turn without hosts on one event loop, about."""
_BEGIN: Final = 0.1
"""How much of a turn does not count."""


class Row(NamedTuple):
    """A way to run a network: its name, CPU and elapsed seconds a simulated second, parts."""

    way: str
    cpu: float
    elapsed: float
    parts: int


def _ring(count: int, delay_ps: int, **how: Any) -> Network:
    """Return switches in a ring, each with two interfaces; each sends half a line's rate over the next two lines."""
    network = Network(seed=1, **how)
    switches = [network.add_switch(f"switch{k}") for k in range(count)]
    nics = [[network.add_nic(f"{end}{k}", line=NicLine(_RATE, -k)) for k in range(count)] for end in "ab"]
    links = [network.add_link(f"link{k}", LinkSettings(delay_ps=delay_ps)) for k in range(count)]
    for k, (switch, link) in enumerate(zip(switches, links, strict=True)):
        for port, nic in enumerate((nics[0][k], nics[1][k])):
            network.connect(nic, (switch, port))
            network.connect((switch, port), nic)
        network.connect((switch, 3), link)
        network.connect(link, (switches[(k + 1) % count], 2))
    vcs = []
    for k in range(count):
        one, two = (k + 1) % count, (k + 2) % count
        path = [nics[0][k], switches[k], links[k], switches[one], links[one], switches[two], nics[1][two]]
        paced = PacingSettings(cell_rate_bps=_RATE // 2 - 1000 * k)
        vcs.append((path[0].index, path[-1].index, network.add_vc(path, 0, 32 + k, pacing=paced)))
    network.start()
    for key, (source, sink, vc) in enumerate(vcs):
        network.loop.sink(sink, vc, key, 0, 0, 0)
        network.loop.source(source, vc, SDU, key)
    return network


def _paths(count: int, delay_ps: int, **how: Any) -> Network:
    """Return paths of six nodes, which are not connected with each other."""
    return network_at(Point("", 6 * count, full=count), delay_ps, **how)


CASES: Final[dict[str, tuple[Callable[..., Network], int, int]]] = {
    "120 nodes in a ring, 1 ms": (_ring, 30, _MS),
    "120 nodes in a ring, 40 us": (_ring, 30, 40 * _US),
    "120 nodes in a ring, 5 us": (_ring, 30, 5 * _US),
    "120 nodes, 20 paths, 1 ms": (_paths, 20, _MS),
    "120 nodes, 20 paths, 40 us": (_paths, 20, 40 * _US),
    "30 nodes, 5 paths, 1 ms": (_paths, 5, _MS),
    "30 nodes, 5 paths, 40 us": (_paths, 5, 40 * _US),
    "6 nodes, 20 ms": (_paths, 1, 20 * _MS),
    "6 nodes, 1 ms": (_paths, 1, _MS),
    "6 nodes, 40 us": (_paths, 1, 40 * _US),
}
"""What makes a network, how large it is, the delay of its lines (ps)."""


def measure(case: str, threads: int) -> Iterator[Row]:
    """Yield a row for each way to run the network of a case, the first on one event loop."""
    make, count, delay_ps = CASES[case]
    each = 3 if make is _paths else 4
    nodes = 6 * count if make is _paths else 4 * count
    ways: dict[str, dict[str, int]] = {
        "one event loop": {"threads": 1, "parts": 1},
        "as many parts as pay, 1 thread": {"threads": 1},
        f"parts of {each} nodes, 1 thread": {"threads": 1, "parts": nodes // each},
        f"as many parts as pay, {threads} threads": {"threads": threads},
        f"{threads} parts, {threads} threads": {"threads": threads, "parts": threads},
    }
    at = 2 * delay_ps / PS + 0.02
    with ExitStack() as stack:
        runs = [stack.enter_context(_in_process(case, how)) for how in ways.values()]
        for run in runs:
            run(at)
        turn, at = _TURN_S * 1e-2, at + _TURN_S * 1e-2
        turn *= _TURN_S / runs[0](at)[0]
        best = [(math.inf, math.inf)] * len(runs)
        parts = [0] * len(runs)
        for _ in range(_TURNS_OF_CELLS):
            for k, run in enumerate(runs):
                run(at + _BEGIN * turn)
                elapsed, cpu, parts[k] = run(at + turn)
                best[k] = min(best[k][0], cpu), min(best[k][1], elapsed)
            at += turn
    span = (1 - _BEGIN) * turn
    for way, (cpu, elapsed), count in zip(ways, best, parts, strict=True):
        yield Row(way, cpu / span, elapsed / span, count)


@contextmanager
def _in_process(case: str, how: Mapping[str, int]) -> Iterator[Callable[[float], tuple[float, float, int]]]:
    """Give a function that runs a network in a process of its own up to a simulated time, and returns the elapsed and
    the processor time that this took, and the number of parts."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(case, how, there), daemon=True)
    process.start()
    there.close()

    def run(until: float) -> tuple[float, float, int]:
        here.send(until)
        return here.recv()

    try:
        yield run
    finally:
        here.close()
        process.join()
    if process.exitcode:
        raise RuntimeError(f"{case}: the accounts are wrong, or the process was ended: exit code {process.exitcode}")


def _serve(case: str, how: Mapping[str, int], asked: Connection) -> None:
    make, count, delay_ps = CASES[case]
    network = make(count, delay_ps, **how)
    with suppress(EOFError):
        while True:
            until = asked.recv()
            begin, spent = time.perf_counter(), time.process_time()
            network.run(int(until * PS))
            took = time.perf_counter() - begin, time.process_time() - spent
            asked.send((*took, network.parts_and_threads[0]))
    network.check_conservation()
    network.close()


HOSTS: Final = {"acts-3flows": 3.0, "acts-60flows": 12.0}
"""Experiments whose hosts take their time, and from which second on they are measured."""


def beside(case: str) -> Iterator[Row]:
    """Yield a row for a run with hosts in one thread, and one for the network in a thread of its own. Both run the same
    50 ms by turns; a row has the sums of all turns, since those that cost least are those without traffic."""
    from bentpipe.experiment.build.hosts import build
    from bentpipe.experiment.load import load
    from bentpipe.experiment.run.record import TraceRecorder

    experiment = load(case)
    runs = [build(experiment, TraceRecorder(experiment.record.interval_ps, ())) for _ in range(2)]
    at = HOSTS[case]
    for built, threads in zip(runs, (1, 2), strict=True):
        assert built.network is not None
        built.network.threads = threads
        built.engine.choice.is_fixed = True  # pyright: ignore[reportAttributeAccessIssue]
        built.engine.run(int(at * PS))
    turns: list[list[tuple[float, float]]] = [[], []]
    for _ in range(_TURNS):
        at += _SLICE
        for k, built in enumerate(runs):
            begin, spent = time.perf_counter(), time.process_time()
            built.engine.run(int(at * PS))
            turns[k].append((time.perf_counter() - begin, time.process_time() - spent))
    for k, way in enumerate(("hosts and network in one thread", "a thread each")):
        elapsed, cpu = (sum(spent) / (_TURNS * _SLICE) for spent in zip(*turns[k], strict=True))
        yield Row(way, cpu, elapsed, 1)
        runs[k].close()


def busy(case: str, threads: int, others: int) -> tuple[float, float]:
    """Return the elapsed seconds per simulated second, on one event loop and with threads.

    So many processes use the cores meanwhile. Each is the median of whole runs, in turns.
    """
    make, count, delay_ps = CASES[case]
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
    try:
        networks = [make(count, delay_ps, threads=1, parts=1), make(count, delay_ps, threads=threads)]
        found: list[list[float]] = [[], []]
        at, turn = 2 * delay_ps / PS + 0.02, 1.5 / count
        for number in range(11):
            for k, network in enumerate(networks):
                begin = time.perf_counter()
                network.run(int((at + turn * (number + 1)) * PS))
                found[k].append((time.perf_counter() - begin) / turn)
        for network in networks:
            network.close()
    finally:
        for process in beside:
            process.kill()
            process.wait()
    one, several = (sorted(times[1:])[5] for times in found)
    return one, several
