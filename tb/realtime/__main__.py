"""Check that a session with real hosts keeps time: datagrams at a steady rate over acts-1flow's path, with a process
that may be stopped meanwhile. It prints the result and the load of the machine. Exit code 1: it does not keep time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

STREAM = Path(__file__).with_name("stream.py")
CONFIGURED_NS = 267_000_000


def session(rate: float, seconds: float, length: int, options: list[str], stops: list[float]) -> dict[str, Any]:
    """One session; ``stops`` are lengths of time (s) for which the process stands still, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "bentpipe",
            "shell",
            "acts-1flow",
            "--json",
            "--out",
            f"{folder}/run",
            *options,
        ]
        command += ["--there", f"{sys.executable} {STREAM} receive 9000"]
        sends = [sys.executable, str(STREAM), "send", "10.111.0.2", "9000", str(rate), str(seconds), str(length)]
        process = subprocess.Popen([*command, "--", *sends], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        found: dict[str, Any] = {}
        first = True
        for line in process.stdout:
            told = json.loads(line)
            if told.get("kind") == "now":
                if first and stops:
                    threading.Thread(target=_stop, args=(process.pid, stops), daemon=True).start()
                first = False
                continue
            found |= told
        process.wait()
        result = json.loads(Path(folder, "run", "result.json").read_text())
    found["attached"] = result["attached"]
    found["wall_per_simulated"] = result["time"]["wall_per_simulated"]
    return found


def _stop(process: int, stops: list[float]) -> None:
    """After some seconds, in which the stream has begun."""
    time.sleep(4)
    for length in stops:
        os.kill(process, signal.SIGSTOP)
        time.sleep(length)
        os.kill(process, signal.SIGCONT)
        time.sleep(1)


def _spread(row: dict[str, Any]) -> str:
    names = ("least", "median", "p99", "p999", "most")
    return ", ".join(f"{name} {row[name] / 1e6:.3f} ms" for name in names if name in row)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m realtime")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=2000.0, help="datagrams a second")
    parser.add_argument("--length", type=int, default=1000, help="octets of each")
    parser.add_argument("--stops", default="", help="milliseconds that the process stands still, as 10,200")
    parser.add_argument("options", nargs="*", help="behind --: further ones of bentpipe shell")
    given = parser.parse_args()
    stops = [float(part) / 1000 for part in given.stops.split(",") if part]
    found = session(given.rate, given.seconds, given.length, given.options, stops)
    attached = found["attached"]
    there = attached["ends"][1]
    fifo = attached["priority"] == "real-time"
    load = ", ".join(f"{value:.1f}" for value in attached["load"])
    print(f"{given.rate:g} datagrams/s of {given.length} octets for {given.seconds:g} s; load {load}")
    print(f"session: {found['verdict']}")
    came = f"{found.get('received', 0):,} of {found.get('sent', 0):,} came, {found.get('disordered', 0)} out of order"
    print(f"at the programs: {came}; {_spread(found)}")
    computed = f"{there['counts']['out_late']} of them were computed late"
    print(f"sent late: {_spread(there['jitter'])}; {computed}")
    print(f"took longer than configured: {_spread(there['beyond'])}")
    holds = {
        "none below 267 ms": found["least"] >= CONFIGURED_NS and there["beyond"]["least"] >= 0,
        "none injected late": sum(row["counts"]["late"] for row in attached["ends"]) == 0,
        "all came": found["received"] == found["sent"],
    }
    if not stops:
        bound = "release p99 below 1 ms" if fifo else "error p99 below 5 ms"
        holds[bound] = there["jitter"]["p99"] < 1e6 if fifo else there["beyond"]["p99"] < 5e6
    for what, is_so in holds.items():
        print(f"{'holds' if is_so else 'DOES NOT HOLD'}: {what}")
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
