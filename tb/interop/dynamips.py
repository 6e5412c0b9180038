"""dynamips' ATM bridge before an experiment's network: ``python dynamips.py FOLDER`` in namespaces of its own (network,
mounts) prints as JSON what pings both ways say, and leaves the session's run folder there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from typing import Any

HYPERVISOR = 7200
OURS, THEIRS = 20001, 20000
VCI = 100
SETTINGS = [
    'vc=[{name="there", from="alpha1", to="ultra", vci=100}, {name="back", from="ultra", to="alpha1", vci=100}]',
    'flow.0.vc="there"',
    'flow.0.return_vc="back"',
    "network.lines.satellite.delay=30 ms",
]
"""A bridge has one VPI and VCI for both ways."""


@contextmanager
def running(command: list[str], folder: Path, **given: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, cwd=folder, text=True, **given)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def bridge() -> None:
    """An ATM bridge from a TAP device to a VC of cells in UDP datagrams."""
    while True:
        try:
            with create_connection(("127.0.0.1", HYPERVISOR)) as made, made.makefile("rw") as console:
                for command in (
                    "nio create_tap ethernet dyn0",
                    f"nio create_udp atm {THEIRS} 127.0.0.1 {OURS}",
                    "atm_bridge create bridge",
                    f"atm_bridge configure bridge ethernet atm 0 {VCI}",
                ):
                    print(command, file=console, flush=True)
                    message = console.readline()
                    if not message.startswith("100-"):
                        raise SystemExit(f"{command}: {message}")
                return
        except ConnectionRefusedError:
            time.sleep(0.05)


def ping(address: str, *before: str) -> dict[str, float]:
    """Return the number of replies to five requests, and the shortest round trip (ms)."""
    done = subprocess.run([*before, "ping", "-c", "5", "-i", "0.2", address], capture_output=True, text=True)
    came, least = re.search(r"(\d+) received", done.stdout), re.search(r"rtt [a-z/]+ = ([\d.]+)/", done.stdout)
    return {"received": int(came[1]) if came else 0, "least_ms": float(least[1]) if least else 0.0}


def main(folder: Path) -> None:
    for command in ("mount -t tmpfs none /run", "ip link set lo up"):
        subprocess.run(command.split(), check=True)
    with running(["dynamips", "-H", f"127.0.0.1:{HYPERVISOR}"], folder, stdout=subprocess.DEVNULL):
        bridge()
        for command in ("ip address add 10.111.0.1/24 dev dyn0", "ip link set dyn0 up"):
            subprocess.run(command.split(), check=True)
        session = [sys.executable, "-m", "bentpipe", "attach", "acts-1flow", "--out", str(folder / "run")]
        session += [word for setting in SETTINGS for word in ("--set", setting)]
        session += ["--a", f"dynamips:{OURS}-{THEIRS}", "--b", "ns:gsfc"]
        with running(session, folder, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            if not any("Attached" in line for line in process.stdout):
                raise SystemExit("the session did not begin")
            there, back = ping("10.111.0.2"), ping("10.111.0.1", "ip", "netns", "exec", "gsfc")
    print(json.dumps({"there": there, "back": back}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
