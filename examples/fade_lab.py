"""Four real hosts, each with a stream of UDP datagrams at a constant rate, over a line with a rain fade.

Run it as root: ``python examples/fade_lab.py``. It makes a synthetic rain fade by ITU-R P.1853, attaches four network
namespaces to the network of ``fade-lab.toml``, starts a sender and a receiver in each, changes the line meanwhile from
Python, and checks what came of it: datagrams, the loss ledger and the fade are in JSON. Beside the streams it runs
``ping -6``, ``curl`` and ``iperf3`` through the same line; the output names those that are not installed.
"""

import argparse
import json
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bentpipe import api
from bentpipe.channels import Series, rain_fade

PAIRS = {"paris": "rome", "rome": "paris", "oslo": "bonn", "bonn": "oslo"}
PORT, WEB_PORT = 9000, 8000
TOOLS = ("ping", "curl", "iperf3")
SIZE = 200_000
ROUND_TRIP_MS = 240.0
LIMIT_S = 120
"""A tool has so long: in an outage TCP waits, longer each time."""


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


def inside(host: str, *words: str) -> list[str]:
    """Return a command in the namespace of a host."""
    return ["ip", "netns", "exec", f"lab-{host}", *words]


def echoes(address: str) -> dict[str, Any]:
    """Return the replies to ``ping -6`` from paris, and the least round trip in ms."""
    command = inside("paris", "ping", "-6", "-c", "10", "-i", "0.3", "-W", "2", address)
    said = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S).stdout
    times = [float(text) for text in re.findall(r"time=([\d.]+)", said)]
    return {"replies": len(times), "least_ms": min(times, default=None)}


def page(address: str, folder: Path) -> dict[str, Any]:
    """Return whether ``curl`` in oslo gets a file from a web server in bonn intact, and the seconds that it takes."""
    data = bytes(number * number % 251 for number in range(SIZE))
    (folder / "page").write_bytes(data)
    serve = inside("bonn", sys.executable, "-m", "http.server", "-d", str(folder), str(WEB_PORT))
    server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        begin = time.monotonic()
        url = f"http://{address}:{WEB_PORT}/page"
        command = inside(
            "oslo", "curl", "-s", "-m", "20", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", url
        )
        got = subprocess.run(command, capture_output=True, timeout=LIMIT_S).stdout
        return {"intact": got == data, "seconds": round(time.monotonic() - begin, 3)}
    finally:
        server.kill()
        server.wait()


def throughput(address: str, seconds: float) -> dict[str, Any]:
    """Return what ``iperf3`` measures by TCP from paris to rome, until after the fade.

    Its control connection may break in the outage; then it begins again, five times at most.
    """
    found: dict[str, Any] = {}
    for attempt in range(1, 6):
        server = subprocess.Popen(inside("rome", "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        command = inside("paris", "iperf3", "-J", "-c", address, "-t", str(round(seconds) + 4))
        said = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S).stdout)
        server.kill()
        server.wait()
        if "error" not in said:
            sent, received = said["end"]["sum_sent"], said["end"]["sum_received"]
            mbps = round(received["bits_per_second"] / 1e6, 3)
            return {"mbps": mbps, "retransmitted": sent["retransmits"], "attempts": attempt}
        found = {"error": said["error"], "attempts": attempt}
        time.sleep(2)
    return found


def run(seconds: float, rate: float) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]], dict[str, Any]]:
    """Return what the hosts and the tools say, and the session's result."""
    with tempfile.TemporaryDirectory() as folder:
        out, fade = Path(folder, "run"), compressed_fade(seconds).write(Path(folder, "fade.csv"))
        settings = [f'profile=[{{ file = "{fade}", line = "satellite" }}]']
        ends = {host: f"ns:lab-{host}" for host in PAIRS}
        file, options = Path(__file__).with_name("fade-lab.toml"), ["--subnet6", "fd00:111::/64"]
        with api.attach(file, ends, settings, folder=out, options=options) as session, ThreadPoolExecutor() as pool:
            to = {host: [text.split("/")[0] for text in end["addresses"]] for host, end in session.ends.items()}
            calls = {
                "ping": partial(echoes, to["rome"][1]),
                "curl": partial(page, to["bonn"][0], Path(folder)),
                "iperf3": partial(throughput, to["rome"][0], seconds),
            }
            tools = {name: pool.submit(call) for name, call in calls.items() if shutil.which(name)}
            programs = {}
            for host, other in PAIRS.items():
                words = [sys.executable, __file__, "--stream", to[other][0]]
                words += ["--seconds", str(seconds), "--rate", str(rate)]
                programs[host] = subprocess.Popen(inside(host, *words), stdout=subprocess.PIPE, text=True)
            time.sleep(seconds / 2)
            session.client.set({"satellite.misinsert": 5.0})
            assert session.client.get("satellite.misinsert") == 5.0
            told = {host: json.loads(program.communicate()[0]) for host, program in programs.items()}
            # A misinserted cell destroys the next packet of its VC. With few packets, none would get through.
            session.client.set({"satellite.misinsert": 0.0})
            found = {name: tool.result() for name, tool in tools.items()}
        return told, found, api.read(out).summary


def check(told: dict[str, dict[str, Any]], tools: dict[str, dict[str, Any]], summary: dict[str, Any]) -> None:
    """Check the figures against each other."""
    assert summary["status"] == "done"
    if "ping" in tools:
        assert tools["ping"]["replies"] > 0 and ROUND_TRIP_MS <= tools["ping"]["least_ms"] < 1.5 * ROUND_TRIP_MS
    if "curl" in tools:
        assert tools["curl"]["intact"] and tools["curl"]["seconds"] > 2 * ROUND_TRIP_MS / 1000
    if "iperf3" in tools:
        assert tools["iperf3"].get("mbps", 0) > 0, tools["iperf3"]
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
    told, tools, summary = run(given.seconds, given.rate)
    check(told, tools, summary)
    missing = [name for name in TOOLS if name not in tools]
    found = {"hosts": told, "tools": tools, "not installed": missing, "verdict": summary["attached"]["verdict"]}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
