"""Measure how long calls of a session's interface take while OC-3c lines are full both ways (``make attach``): over the
control socket and over HTTP, 50th and 99th percentile, the longest, and whether a packet was late. Sessions without
calls take turns with them: what is late in both is not late because of calls.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe.attach.client import SessionClient
from bentpipe.errors import BentpipeError
from bentpipe.serve.server import make_server
from realtime.full import CELLS, SETTINGS, UDP, cells, compiled

SIZE = 9180
BOUND_S = 0.020
STOLEN_S = 0.2
"""Sessions from which the hypervisor took more processor time say nothing about calls."""
MOST_CAME = 0.99
CALLS = ("get", "now", "lateness", "queue", "set", "counters", "losses")
"""Of these each is made in its turn."""


def connected(folder: Path) -> SessionClient:
    """Return a client of the session that begins in a folder."""
    until = time.monotonic() + 60
    while True:
        try:
            return SessionClient(folder)
        except BentpipeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def timed(call: Callable[[str, dict[str, Any]], object], seconds: float, each_s: float) -> dict[str, list[float]]:
    """Return how long calls took, by method, of one call each so many seconds."""
    found: dict[str, list[float]] = {name: [] for name in CALLS}
    start = time.monotonic()
    number = 0
    while (now := time.monotonic()) < start + seconds:
        name = CALLS[number % len(CALLS)]
        params = {"values": {"network.lines.satellite.misinsert": number % 2 * 1e-6}} if name == "set" else {}
        params = {"keys": ["satellite.delay"]} if name == "get" else params
        begin = time.perf_counter()
        call(name, params)
        found[name].append(time.perf_counter() - begin)
        number += 1
        time.sleep(max(0.0, now + each_s - time.monotonic()))
    return found


def by_http(port: int, run: str) -> Callable[[str, dict[str, Any]], object]:
    """Return a caller over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def call(name: str, params: dict[str, Any]) -> object:
        path = f"/api/sessions/{run}/{name}"
        if name == "set":
            connection.request("POST", path, json.dumps(params), {"Content-Type": "application/json"})
        else:
            connection.request("GET", path + (f"?keys={','.join(params['keys'])}" if params else ""))
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit(f"{name}: {content}")
        return content

    return call


def show(what: str, found: dict[str, list[float]]) -> float:
    """Print the times of each method and of all; return the 99th percentile of all."""
    every = sorted(time_s for times in found.values() for time_s in times)
    for name, times in [*found.items(), ("all", every)]:
        ranked = sorted(times)
        p50, p99 = (ranked[min(int(share * len(ranked)), len(ranked) - 1)] * 1e3 for share in (0.5, 0.99))
        print(f"{what:7} {name:9} {len(ranked):5} {p50:7.2f} {p99:7.2f} {ranked[-1] * 1e3:7.2f}")
    return every[min(int(0.99 * len(every)), len(every) - 1)]


@dataclass(frozen=True)
class Found:
    """The result of a session: 99th percentile of its calls (s), packets that came, late ones, the longest time that
    requests kept the simulation in a turn (ms), and the processor time that the hypervisor gave to others (s)."""

    calls: bool
    worst_s: float
    came: int
    late: int
    longest_ms: float
    stolen_s: float

    @property
    def row(self) -> str:
        kind = "with" if self.calls else "without"
        return f"{kind:8} {self.came:8,} {self.late:6,} {self.longest_ms:11.2f} {self.stolen_s:9.2f}"


def session(program: Path, folder: Path, seconds: float, every_s: float, calls: bool) -> Found:
    """A session with full lines, with calls over the control socket and over HTTP, or without calls."""
    rate, sending = 0.98 * CELLS / cells(SIZE), 2 * seconds + 2
    command = [sys.executable, "-m", "bentpipe", "shell", "acts-1flow", "--json", "--out", f"{folder}/run"]
    command += [word for setting in SETTINGS for word in ("--set", setting)]
    flood = [str(program), f"{rate:.0f}", str(sending), str(SIZE - UDP)]
    command += ["--there", " ".join([flood[0], "10.111.0.1", *flood[1:]])]
    process = subprocess.Popen([*command, "--", flood[0], "10.111.0.2", *flood[1:]], stdout=subprocess.DEVNULL)
    worst = 0.0
    with connected(folder / "run") as client, make_server(folder) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        time.sleep(1)
        if calls:
            by_socket = timed(lambda name, params: client.call(name, **params), seconds, every_s)
            over_http = timed(by_http(server.server_address[1], "run"), seconds, every_s)
            print("over    method    calls  50 % ms  99 % ms  most ms")
            worst = max(show("socket", by_socket), show("HTTP", over_http))
        server.shutdown()
    process.wait()
    attached = json.loads((folder / "run" / "result.json").read_text())["attached"]
    ends = [end["counts"] for end in attached["ends"]]
    late = sum(end["late"] + end["out_late"] for end in ends)
    print(f"{attached['verdict']}; load {attached['load']}", flush=True)
    if (reached := min(end["released"] for end in ends) / sending / rate) < MOST_CAME:
        raise SystemExit(f"only {reached:.1%} of the packets offered came: the lines were not full")
    came = sum(end["released"] for end in ends)
    return Found(calls, worst, came, late, attached["requests"]["longest_ms"], attached["stolen_s"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m realtime.calls", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each kind of calls lasts (default 8)")
    parser.add_argument("--every", type=float, default=0.02, help="seconds from a call to the next (default 0.02)")
    parser.add_argument("--turns", type=int, default=1, help="sessions without and with calls, in turns (default 1)")
    given = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        for turn in range(given.turns):
            for calls in (False, True):
                own = Path(folder, f"{turn}-{calls}")
                own.mkdir()
                found.append(session(program, own, given.seconds, given.every, calls))
    print("calls     packets   late  longest ms  stolen s")
    print("\n".join(each.row for each in found))
    quiet = [each for each in found if each.stolen_s < STOLEN_S]
    if not any(each.calls for each in quiet):
        print(f"The hypervisor kept processors for {STOLEN_S} s and more in each session with calls: repeat it.")
        return 1
    print(f"Of {len(found)} sessions {len(quiet)} count, in which it was less than {STOLEN_S} s:")
    worst = max(each.worst_s for each in quiet)
    late = {calls: sum(each.late for each in quiet if each.calls == calls) for calls in (False, True)}
    holds = {
        f"99 % of the calls take less than 20 ms ({worst * 1e3:.1f})": worst < BOUND_S,
        f"no packet was late with calls ({late[True]}; without calls {late[False]})": not late[True],
    }
    for what, is_so in holds.items():
        print(f"{'holds' if is_so else 'DOES NOT HOLD'}: {what}")
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
