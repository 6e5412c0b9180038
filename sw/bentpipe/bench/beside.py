"""The same flows in ns-3, where Debian's is installed: a packet simulator, held beside ours in the same minutes.

One flow that fills its line is compared by a simulated second (``saturated.cc``). Three congested transfers are
compared as a whole (``congested.cc``): their windows grow differently, so only what they deliver is the same."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bentpipe_sim.digests import cache_folder
from bentpipe_sim.tools import call, compiler

__all__ = ["CONGESTED", "Congested", "NotHere", "Turns", "congested", "measure", "transfers"]

_HERE: Final = Path(__file__).parent
_MODULES: Final = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
_BEGIN_S: Final = 11
"""When the line is full, as in the case ``hosts-1flow``."""
CONGESTED: Final = "acts-3flows"
"""The experiment of ``congested.cc``."""
_LONGEST_PS: Final = 3600 * 10**12


class NotHere(Exception):
    """Why there is no ns-3: one line."""


class Turns:
    """The costs of both simulators, turn by turn: CPU seconds per simulated second, the best tenth of each run.

    Members
    -------
    version : str
        Version of ns-3.
    ours, theirs : list of float
    mbps : tuple of float
        Goodput of the flow, ours and theirs.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self.ours: list[float] = []
        self.theirs: list[float] = []
        self.mbps = (0.0, 0.0)

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs in each turn, the least first."""
        return sorted(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        """The ratio of the best turns: ours to theirs."""
        return min(self.ours) / min(self.theirs)

    def __str__(self) -> str:
        return (
            f"Beside ns-3 {self.version}, the flow of hosts-1flow, in {len(self.ours)} turns: "
            f"{min(self.ours):.3f} against {min(self.theirs):.3f} CPU seconds a simulated second, best tenths. "
            f"The ratio is {self.ratio:.2f} (in turns {self.ratios[0]:.2f} to {self.ratios[-1]:.2f}); "
            f"{self.mbps[0]:.1f} and {self.mbps[1]:.1f} Mb/s"
        )


class Congested:
    """Transfers of three flows by ns-3, and here on one thread and on two, turn by turn.

    Members
    -------
    version : str
        Version of ns-3.
    runs : dict of str to list of dict
        By simulator, a measurement of each turn: ``cpu_s``, ``elapsed_s``, ``simulated_s`` and ``octets`` delivered.
    """

    WAYS: Final = {"ns-3": 0, "one thread": 1, "two threads": 2}

    def __init__(self, version: str) -> None:
        self.version = version
        self.runs: dict[str, list[dict[str, float]]] = {way: [] for way in self.WAYS}

    def least(self, way: str, what: str) -> float:
        """Return the least measurement of all turns."""
        return min(run[what] for run in self.runs[way])

    def ratio(self, way: str, what: str) -> float:
        """Return ours over ns-3's, of the best turns."""
        return self.least(way, what) / self.least("ns-3", what)

    def __str__(self) -> str:
        turns = len(self.runs["ns-3"])
        lines = [f"Beside ns-3 {self.version}, the transfers of {CONGESTED}, the least of {turns} turns:"]
        for way, runs in self.runs.items():
            lines.append(
                f"  {way:12}{self.least(way, 'cpu_s'):7.2f} CPU s ({self.ratio(way, 'cpu_s'):.2f} of ns-3's)"
                f"{self.least(way, 'elapsed_s'):7.2f} s elapsed ({self.ratio(way, 'elapsed_s'):.2f});"
                f" {runs[0]['octets']:,.0f} octets delivered in {runs[0]['simulated_s']:.0f} simulated s"
            )
        return "\n".join(lines)


def measure(ours: Callable[[], dict[str, float]], seconds: float, turns: int) -> Turns:
    """Measure both in turns; ``ours`` runs the case once.

    Raises
    ------
    NotHere
        ns-3 is not installed, or its program cannot be compiled.
    """
    version, program = _program("saturated")
    found = Turns(version)
    for _ in range(turns):
        mine = ours()
        done = subprocess.run([program, str(_BEGIN_S), str(seconds)], capture_output=True, text=True, check=True)
        theirs = json.loads(done.stdout)
        found.ours.append(mine["best_ratio"])
        found.theirs.append(theirs["best_ratio"])
        found.mbps = (mine["goodput_mbps"], theirs["goodput_mbps"])
    return found


def congested(ours: Callable[[int], dict[str, float]], turns: int) -> Congested:
    """Measure whole transfers in turns; ``ours`` runs them on so many threads.

    Raises
    ------
    NotHere
        As of :func:`measure`.
    """
    from bentpipe.experiment.load import load

    version, program = _program("congested")
    (size,) = {flow.size for flow in load(CONGESTED).flows}
    found = Congested(version)
    for _ in range(turns):
        for way, threads in Congested.WAYS.items():
            if threads:
                run = ours(threads)
            else:
                done = subprocess.run([program, str(size)], capture_output=True, text=True, check=True)
                run = json.loads(done.stdout)
            found.runs[way].append(run)
    return found


def transfers(threads: int) -> dict[str, float]:
    """Run :data:`CONGESTED` to its end on so many threads, and return what ``congested.cc`` prints."""
    from bentpipe.experiment.build.hosts import build
    from bentpipe.experiment.load import load
    from bentpipe.experiment.run.record import TraceRecorder

    experiment = load(CONGESTED)
    built = build(experiment, TraceRecorder(experiment.record.interval_ps, ()))
    assert built.network is not None
    built.network.threads = threads
    elapsed, cpu = time.perf_counter(), time.process_time()
    built.engine.run(_LONGEST_PS)
    elapsed, cpu = time.perf_counter() - elapsed, time.process_time() - cpu
    built.check()
    octets = sum(flow.report(built.now_ps()).octets_delivered for flow in built.flows.values())
    found = {"cpu_s": cpu, "elapsed_s": elapsed, "simulated_s": built.now_ps() / 1e12, "octets": octets}
    built.close()
    return found


def _program(name: str) -> tuple[str, Path]:
    """Return ns-3's version, and a program, which is compiled unless it is in the cache."""
    source = _HERE / f"{name}.cc"
    try:
        code, version, _ = call(["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"])
    except OSError:
        code, version = 1, ""
    if code or not version:
        raise NotHere("ns-3 is not installed (Debian: apt install libns3-dev), so there is no comparison")
    cxx = compiler()
    texts = source.read_bytes() + (_HERE / "ns3_run.hpp").read_bytes()
    digest = hashlib.sha256(texts + f"{version} {cxx}".encode()).hexdigest()[:16]
    program = cache_folder() / f"ns3-{digest}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        libraries = [f"-lns3-{module}" for module in _MODULES]
        code, out, err = call([cxx, "-O2", "-std=c++17", str(source), "-o", str(made), *libraries])
        if code:
            lines = [line for line in (out + err).splitlines() if "error" in line or "cannot find" in line]
            raise NotHere(f"the program for ns-3 can't be compiled: {(lines or ['no message'])[0]}")
        made.rename(program)
    return version, program
