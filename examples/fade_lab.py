"""Four real hosts, each with a stream of UDP datagrams at a constant rate, over a line with a rain fade.

Run it as root: ``python examples/fade_lab.py``. It makes a synthetic rain fade by ITU-R P.1853, attaches four network
namespaces to the network of ``fade-lab.toml``, starts a sender and a receiver in each, changes the line meanwhile from
Python, and checks what came of it: datagrams, the loss ledger and the fade are in JSON.
"""

import argparse
import json
import select
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from bentpipe import api
from bentpipe.channels import Series, rain_fade

PAIRS = {"paris": "rome", "rome": "paris", "oslo": "bonn", "bonn": "oslo"}
PORT = 9000


def compressed_fade(seconds: float) -> Series:
    """Return the worst two hours of a day with rain in so many seconds."""
    day = rain_fade(86_400, 10, seed=1)
    rows, depth = 720, day.columns["_attenuation_db"]
    worst = depth.index(max(depth))
    first = min(max(worst - rows // 2, 0), len(depth) - rows)
    columns = {name: values[first : first + rows] for name, values in day.columns.items()}
    columns["time"] = [round(number * seconds / rows, 6) for number in range(rows)]
    return Series(columns, f"{day.model}, compressed to {seconds:g} s")


def stream(address: str, rate: float, seconds: float) -> dict[str, Any]:
    """Send numbered datagrams at a rate, and receive those of the other side; what came, by number."""
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind(("", PORT))
    own.setblocking(False)
    numbers, sent, start = [], 0, time.monotonic()
    while (now := time.monotonic() - start) < seconds + 1:
        if sent < rate * min(now, seconds):
            with suppress(BlockingIOError):  # no neighbour answers in an outage: the kernel's queue is full
                own.sendto(sent.to_bytes(4, "big") + bytes(996), (address, PORT))
                sent += 1
        if select.select([own], [], [], 0.001)[0]:
            numbers.append(int.from_bytes(own.recv(2048)[:4], "big"))
    behind = sum(after < before for before, after in pairwise(numbers))
    return {"sent": sent, "received": len({*numbers}), "twice": len(numbers) - len({*numbers}), "disordered": behind}


def run(seconds: float, rate: float) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return what the hosts say, and the session's result."""
    with tempfile.TemporaryDirectory() as folder:
        out, fade = Path(folder, "run"), compressed_fade(seconds).write(Path(folder, "fade.csv"))
        settings = [f'profile=[{{ file = "{fade}", line = "satellite" }}]']
        ends = {host: f"ns:lab-{host}" for host in PAIRS}
        with api.attach(Path(__file__).with_name("fade-lab.toml"), ends, settings, folder=out) as session:
            programs = {}
            for host, other in PAIRS.items():
                words = [sys.executable, __file__, "--stream", session.ends[other]["address"].split("/")[0]]
                words += ["--seconds", str(seconds), "--rate", str(rate)]
                words = ["ip", "netns", "exec", f"lab-{host}", *words]
                programs[host] = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            time.sleep(seconds / 2)
            session.client.set({"satellite.misinsert": 5.0})
            assert session.client.get("satellite.misinsert") == 5.0
            told = {host: json.loads(program.communicate()[0]) for host, program in programs.items()}
        return told, api.read(out).summary


def check(told: dict[str, dict[str, Any]], summary: dict[str, Any]) -> None:
    """Check the figures against each other."""
    assert summary["status"] == "done"
    rows = {row["source"]: row for row in summary["ledger"]}
    for host, other in PAIRS.items():
        row = rows[host]
        assert row["sent"] == row["delivered"] + sum(each["pdus"] for each in row["lost"])
        assert 0 < told[other]["received"] <= row["delivered"]
    assert told["paris"]["twice"] > 0 and told["oslo"]["disordered"] > 0
    counters = [summary["counters"][f"satellite.{way}"] for way in ("out", "back")]
    assert sum(each["errored"] + each["drop_outage"] for each in counters) > 0, "the fade does nothing"
    assert sum(each["made_misinserted"] for each in counters) > 0
    assert [row["line"] for row in summary["profiles"]] == ["satellite"]


def main(arguments: list[str] | None = None) -> None:
    """Run the lab, or one end of a stream in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=250.0, help="datagrams a second from each host")
    parser.add_argument("--stream", metavar="ADDRESS", help="what runs in a namespace: one end of a stream")
    given = parser.parse_args(arguments)
    if given.stream:
        print(json.dumps(stream(given.stream, given.rate, given.seconds)))
        return
    told, summary = run(given.seconds, given.rate)
    check(told, summary)
    print(json.dumps({"hosts": told, "verdict": summary["attached"]["verdict"]}, indent=1))


if __name__ == "__main__":
    main()
