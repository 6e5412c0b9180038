"""The same flow in ns-3, where Debian's is installed: a packet simulator, held beside ours in the same minutes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bentpipe_sim.cache import cache_folder
from bentpipe_sim.tools import call, compiler

__all__ = ["NotHere", "Turns", "measure"]

_SOURCE: Final = Path(__file__).with_name("saturated.cc")
_MODULES: Final = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
_BEGIN_S: Final = 11
"""When the line is full, as in the case ``hosts-1flow``."""


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


def measure(ours: Callable[[], dict[str, float]], seconds: float, turns: int) -> Turns:
    """Measure both in turns; ``ours`` runs the case once.

    Raises
    ------
    NotHere
        ns-3 is not installed, or its program cannot be compiled.
    """
    version, program = _program()
    found = Turns(version)
    for _ in range(turns):
        mine = ours()
        done = subprocess.run([program, str(_BEGIN_S), str(seconds)], capture_output=True, text=True, check=True)
        theirs = json.loads(done.stdout)
        found.ours.append(mine["best_ratio"])
        found.theirs.append(theirs["best_ratio"])
        found.mbps = (mine["goodput_mbps"], theirs["goodput_mbps"])
    return found


def _program() -> tuple[str, Path]:
    """Return ns-3's version, and the program, which is compiled unless it is in the cache."""
    try:
        code, version, _ = call(["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"])
    except OSError:
        code, version = 1, ""
    if code or not version:
        raise NotHere("ns-3 is not installed (Debian: apt install libns3-dev), so there is no comparison")
    cxx = compiler()
    digest = hashlib.sha256(_SOURCE.read_bytes() + f"{version} {cxx}".encode()).hexdigest()[:16]
    program = cache_folder() / f"ns3-{digest}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        libraries = [f"-lns3-{module}" for module in _MODULES]
        code, out, err = call([cxx, "-O2", "-std=c++17", str(_SOURCE), "-o", str(made), *libraries])
        if code:
            lines = [line for line in (out + err).splitlines() if "error" in line or "cannot find" in line]
            raise NotHere(f"the program for ns-3 can't be compiled: {(lines or ['no message'])[0]}")
        made.rename(program)
    return version, program
