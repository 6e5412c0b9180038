"""Two kernels talk through an experiment's network in real time (``bentpipe shell``): data, drops, goodput beside that
of a simulated host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bentpipe.experiment.load import load
from bentpipe.experiment.run import run_experiment

PROGRAM = Path(__file__).with_name("kernel_tcp.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
SLOWER = ["--set", "network.lines.satellite.rate=100 Mb/s"]
"""Than the hosts' lines: the switch before it has a queue, and discards early (EPD)."""


def controls() -> list[str]:
    path = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    allowed = path.read_text().split() if path.is_file() else []
    return [name for name in ("reno", "cubic") if name in allowed]


def transfer(folder: Path, size: int, control: str, options: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the programs at both ends say, and the session."""
    command = [sys.executable, "-m", "bentpipe", "shell", "acts-1flow", *options, "--json", "--out", f"{folder}/run"]
    command += ["--there", f"{sys.executable} {PROGRAM} receive 5001"]
    sends = [sys.executable, str(PROGRAM), "send", "10.111.0.2", "5001", str(size), control]
    done = subprocess.run([*command, "--", *sends], capture_output=True, text=True, env=ENVIRONMENT)
    if "it takes root, or user namespaces" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    programs = next(line for line in told if "kind" not in line)
    session = json.loads((folder / "run" / "result.json").read_text())
    print(f"{control}: {programs}\n{session['attached']['verdict']}")
    return programs, session


@pytest.mark.parametrize("control", controls())
def test_150_megabytes_over_534_ms(control: str, tmp_path: Path) -> None:
    """What arrives is what was sent; what EPD drops, and nothing else, is in the account, and TCP sends it again."""
    size = 150_000_000
    programs, session = transfer(tmp_path, size, control, SLOWER)
    assert programs["there"]["octets"] == size and programs["there"]["digest"] == programs["digest"]
    row = next(row for row in session["ledger"] if row["source"] == "alpha1")
    lost = {(each["where"], each["why"]): each["pdus"] for each in row["lost"] if each["where"]}
    assert sum(lost.values()) > 0 and set(lost) <= {("west", "EPD"), ("west", "full")}
    assert programs["retransmitted"] >= sum(lost.values()) * 0.9
    assert session["status"] == "done"


@pytest.mark.parametrize("control", [name for name in controls() if name == "reno"])
def test_as_fast_as_a_simulated_host(control: str, tmp_path: Path) -> None:
    """On a path of 60 ms whose queue overflows, where what either does to begin with matters little."""
    near, size = [*SLOWER, "--set", "network.lines.satellite.delay=30 ms"], 150_000_000
    programs, _ = transfer(tmp_path, size, control, near)
    kernel = 8 * size / programs["there"]["seconds"]
    tcp: dict[str, Any] = {"variant": "sack", "timestamps": True, "timers": "ideal"}
    tcp |= {"initial_window": "rfc6928", "ack_policy": "every_second"}  # as the kernel's
    tcp |= dict.fromkeys(("send_buffer", "receive_buffer"), "32 MiB")
    settings = [near[1], near[3], f"flow.0.size={size}", "network.hosts.ultra.cost=0 s"]
    settings += [f"hosts.tcp.{key}={json.dumps(value)}" for key, value in tcp.items()]
    ours = run_experiment(load("acts-1flow", settings)).summary
    print(f"kernel {kernel / 1e6:.1f} Mb/s, simulated {ours['metrics']['aggregate_goodput'] / 1e6:.1f} Mb/s")
    assert kernel == pytest.approx(ours["metrics"]["aggregate_goodput"], rel=0.05)
