"""OC-3c lines full both ways in real time (``make bench``): packets of three sizes between two kernels over 534 ms, how
many a second each way, processor time a simulated second, and whether any was late."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe_sim.tools import compiler

FLOOD = Path(__file__).with_name("flood.cc")
CELLS = 149_760_000 / 424
"""Of an OC-3c line a second."""
BRIDGED = 10 + 14 + 8
"""Octets of a PDU beside the IP packet: LLC and SNAP, Ethernet, trailer."""
UDP = 28
SETTINGS = ["network.hosts.ultra.rate=OC-3c", "network.lines.satellite.ber=0"]


@dataclass(frozen=True)
class Found:
    """The result of one session. Rates are packets a second each way; ``late`` is the share of those that left."""

    size: int
    offered: float
    reached: float
    simulation: float
    doors: float
    late: float
    verdict: str

    @property
    def row(self) -> str:
        share = self.reached * cells(self.size) / CELLS
        return (
            f"{self.size:6} {self.offered:9,.0f} {self.reached:9,.0f} {8 * self.size * self.reached / 1e6:7.1f} "
            f"{share:7.1%} {self.simulation:11.2f} {self.doors:6.2f}  {self.verdict}"
        )


def cells(size: int) -> int:
    """Return the cells of a PDU with an IP packet of so many octets."""
    return -(-(size + BRIDGED) // 48)


def session(program: Path, size: int, rate: float, seconds: float) -> Found:
    """Packets of a size at a rate both ways for some seconds."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bentpipe", "shell", "acts-1flow", "--json", "--out", f"{folder}/run"]
        command += [word for setting in SETTINGS for word in ("--set", setting)]
        flood = [str(program), f"{rate:.0f}", str(seconds), str(size - UDP)]
        command += ["--there", " ".join([flood[0], "10.111.0.1", *flood[1:]])]
        done = subprocess.run(
            [*command, "--", flood[0], "10.111.0.2", *flood[1:]], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"no session here: {done.stderr.strip().splitlines()[-1]}")
        result = json.loads(Path(folder, "run", "result.json").read_text())
    attached: dict[str, Any] = result["attached"]
    ends = [end["counts"] for end in attached["ends"]]
    processor = attached["processor_s"]
    return Found(
        size,
        rate,
        min(end["released"] for end in ends) / seconds,
        processor["simulation"] / seconds,
        processor["doors"] / seconds,
        sum(end["late"] + end["out_late"] for end in ends) / sum(end["released"] for end in ends),
        attached["verdict"],
    )


def compiled(folder: Path) -> Path:
    program = folder / "flood"
    subprocess.run([compiler(), "-O2", "-std=c++17", "-pthread", str(FLOOD), "-o", str(program)], check=True)
    return program


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m realtime.full", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long packets are sent (default 8)")
    given = parser.parse_args()
    print("Real hosts, OC-3c both ways over 534 ms: packets a second each way, CPU seconds a second of packets")
    print("octets   offered   reached    Mb/s  of line  simulation  doors  verdict")
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        for size in (9180, 1500):
            print(session(program, size, 0.98 * CELLS / cells(size), given.seconds).row, flush=True)
        rate = 10_000.0
        while rate < CELLS / cells(40):  # as fast as it goes: until one of 100 is late, or the programs send no more
            found = session(program, 40, rate, given.seconds)
            print(found.row, flush=True)
            if found.late > 0.01 or found.reached < 0.9 * rate:
                break
            rate *= 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
