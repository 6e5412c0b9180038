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

from bentpipe import api
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from unit.attach.test_vlans import TRUNK

PROGRAM = Path(__file__).with_name("kernel_tcp.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
SLOWER = ["--set", "network.lines.satellite.rate=100 Mb/s"]
"""Than the hosts' lines: the switch before it has a queue, and discards early (EPD)."""
SIZE = 150_000_000
AS_THE_KERNELS: dict[str, Any] = {
    "variant": "sack",
    "timestamps": True,
    "timers": "ideal",
    "initial_cwnd": 10,  # whatever the MSS; RFC 6928 has two of this size
    "ack_policy": "immediate",  # Linux grows by what an ACK covers: as if each segment had its own
    "limited_transmit": True,
    "habit_window_update_resets_dupacks": False,
    "send_buffer": "64 MiB",
    "receive_buffer": "64 MiB",
}


def controls() -> list[str]:
    """Return the TCP variants of the kernel; in a namespace of its own each may be used."""
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return path.read_text().split() if path.is_file() else []


STOLEN_S, ATTEMPTS = 0.5, 4
"""A session with late packets, from which the hypervisor took so much processor time or more, says nothing about the
emulator. It is repeated, so often in all."""


def transfer(folder: Path, size: int, control: str, options: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the output of the programs at both ends, and the session."""
    for attempt in range(ATTEMPTS):
        own = folder / str(attempt)
        own.mkdir()
        programs, session = _transfer(own, size, control, options)
        attached = session["attached"]
        if attached["stolen_s"] < STOLEN_S or not any(end["counts"]["out_late"] for end in attached["ends"]):
            break
    return programs, session


def _transfer(folder: Path, size: int, control: str, options: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    command = [sys.executable, "-m", "bentpipe", "shell", "acts-1flow", *options, "--json", "--out", f"{folder}/run"]
    command += ["--there", f"{sys.executable} {PROGRAM} receive 5001"]
    sends = [sys.executable, str(PROGRAM), "send", "10.111.0.2", "5001", str(size), control]
    done = subprocess.run([*command, "--", *sends], capture_output=True, text=True, env=ENVIRONMENT)
    if "run it as root, or enable user namespaces" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    programs = next(line for line in told if "kind" not in line)
    session = json.loads((folder / "run" / "result.json").read_text())
    print(f"{control}: {programs}\n{session['attached']['verdict']}")
    return programs, session


def dropped(summary: dict[str, Any]) -> int:
    """PDUs of the source that were lost on the way: each of them in the first switch, by EPD or for want of room."""
    row = next(row for row in summary["ledger"] if row["source"] == "alpha1")
    lost = {(each["where"], each["why"]): each["pdus"] for each in row["lost"] if each["where"]}
    assert set(lost) <= {("west", "EPD"), ("west", "full")}
    return sum(lost.values())


def simulated(control: str, round_trip_ms: int, options: list[str]) -> dict[str, Any]:
    """The same transfer between hosts of ours with the kernel's settings; its RTO is never less than the round trip and
    200 ms, and a little."""
    tcp = {**AS_THE_KERNELS, "growth": control, "rto_min": f"{round_trip_ms + 220} ms"}
    settings = [*options[1::2], f"flow.0.size={SIZE}", "network.hosts.ultra.cost=0 s"]
    settings += [f"hosts.tcp.{key}={json.dumps(value)}" for key, value in tcp.items()]
    return run_experiment(load("acts-1flow", settings)).summary


CASES = [(control, ms) for control, ms in (("reno", 534), ("cubic", 534), ("reno", 60)) if control in controls()]


@pytest.mark.parametrize(("control", "round_trip_ms"), CASES)
def test_two_kernels_through_a_queue_that_overflows(control: str, round_trip_ms: int, tmp_path: Path) -> None:
    """150 MB over 534 and over 60 ms of round trip: what arrives is what was sent; what EPD drops, and nothing else, is
    in the account, and is sent again; a simulated host with the kernel's settings loses about as many on that path, and
    is as fast within 5 %."""
    options = [*SLOWER, "--set", f"network.lines.satellite.delay={round_trip_ms / 2} ms"]
    programs, session = transfer(tmp_path, SIZE, control, options)
    assert programs["there"]["octets"] == SIZE and programs["there"]["digest"] == programs["digest"]
    assert session["status"] == "done"
    lost, ours = dropped(session), simulated(control, round_trip_ms, options)
    assert lost > 0 and programs["retransmitted"] >= 0.9 * lost
    kernel, host = 8 * SIZE / programs["seconds"], ours["metrics"]["aggregate_goodput"]
    print(f"kernel {kernel / 1e6:.2f} Mb/s, {lost} lost; simulated {host / 1e6:.2f} Mb/s, {dropped(ours)} lost")
    late = sum(end["computed_late"].get("most", 0) for end in session["attached"]["ends"])
    assert kernel == pytest.approx(host, rel=0.05), f"late by {late / 1e6:.0f} ms: {session['attached']['verdict']}"


def shell(folder: Path, options: list[str], there: str, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the output of a program in namespace a, and the session."""
    command = [sys.executable, "-m", "bentpipe", "shell", "acts-1flow", *options, "--json", "--out", f"{folder}/run"]
    command += ["--there", there] if there else []
    done = subprocess.run(
        [*command, "--", sys.executable, str(PROGRAM), *words], capture_output=True, text=True, env=ENVIRONMENT
    )
    if "run it as root, or enable user namespaces" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    found = next(line for line in told if "kind" not in line)
    return found, json.loads((folder / "run" / "result.json").read_text())


NEARER = ["--set", "network.lines.satellite.delay=25 ms", "--subnet6", "fd00:111::/64"]


def test_ipv6_echoes_take_the_delay_of_the_path(tmp_path: Path) -> None:
    found, session = shell(tmp_path, NEARER, "", "ping", "fd00:111::2", "20")
    print(found, session["attached"]["verdict"])
    assert session["attached"]["ends"][1]["addresses"] == ["10.111.0.2/24", "fd00:111::2/64"]
    assert len(found["ms"]) == 20 and 50 < min(found["ms"]) < 60  # the least: the machine may have other work


@pytest.mark.parametrize("address", ["10.111.0.2", "fd00:111::2"])
def test_data_come_intact_through_duplicated_lost_and_reordered_frames(address: str, tmp_path: Path) -> None:
    """1 % of the frames each way, and duplicates and misinserted cells on the line."""
    shares = {"duplicate_frames": 0.01, "reorder_frames": 0.01, "lose_frames": 0.001}
    options = [f"network.hosts.{host}.{key}={value}" for host in ("alpha1", "ultra") for key, value in shares.items()]
    options += ["network.lines.satellite.duplicate=1e-6", "network.lines.satellite.misinsert=1"]
    words = [*NEARER, *(word for option in options for word in ("--set", option))]
    size = 20_000_000
    receives = f"{sys.executable} {PROGRAM} receive 5001"
    found, session = shell(tmp_path, words, receives, "send", address, "5001", str(size), controls()[0])
    print(f"{found}\n{session['attached']['verdict']}")
    assert found["there"]["octets"] == size and found["there"]["digest"] == found["digest"]
    assert session["status"] == "done"
    row = next(row for row in session["ledger"] if row["source"] == "alpha1")
    lost = sum(each["pdus"] for each in row["lost"] if each["why"] == "lost frame")
    error = 2.6 * (0.01 * row["sent"]) ** 0.5
    assert abs(row["duplicated"] - 0.01 * row["sent"]) < error and lost > 0
    assert session["counters"]["satellite.out"]["made_misinserted"] + row["cells"]["duplicated"] > 0


def test_the_example_of_four_hosts_over_a_rain_fade() -> None:
    script = Path(__file__).parents[2] / "examples" / "fade_lab.py"
    done = subprocess.run(
        [sys.executable, str(script), "--seconds", "4"], capture_output=True, text=True, env=ENVIRONMENT
    )
    if "run it as root" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    print(json.loads(done.stdout)["verdict"])


def test_two_vlans_of_a_trunk_reach_a_host_each(tmp_path: Path) -> None:
    """VLAN 10 leads to rome in 60 ms and VLAN 20 to oslo in 90 ms; neither reaches the other's host."""
    if os.geteuid() != 0:
        pytest.skip("run it as root")
    (tmp_path / "trunk.toml").write_text(TRUNK)
    inside = ["ip", "netns", "exec", "bpv-hub"]
    make = "ip netns add bpv-hub && ip link add bpt0 type veth peer name bpt1 netns bpv-hub && ip link set bpt0 up"
    station = None
    try:
        subprocess.run(["sh", "-c", make], check=True)
        subprocess.run([*inside, "ip", "link", "set", "bpt1", "addrgenmode", "none", "up"], check=True)
        words = [sys.executable, str(PROGRAM.with_name("vlan_station.py")), "bpt1", "10", "20"]
        station = subprocess.Popen([*inside, *words], stdout=subprocess.PIPE, env=ENVIRONMENT)
        assert station.stdout and station.stdout.readline() == b"ready\n"
        for device, there in (("v10", "10.111.0.2"), ("v20", "10.111.0.3")):
            for text in (f"link set {device} up", f"address add 10.111.0.1/32 dev {device}",
                         f"route add {there} dev {device}"):  # fmt: skip
                subprocess.run([*inside, "ip", *text.split()], check=True)
        ends = {"hub": "if:bpt0,10=voice,20=oslo", "rome": "ns:bpv-rome", "oslo": "ns:bpv-oslo"}
        with api.attach(tmp_path / "trunk.toml", ends, {"network.hosts.oslo.delay": "15 ms"}, folder=tmp_path / "run"):
            least = []
            for there in ("10.111.0.2", "10.111.0.3"):
                ping = [*inside, "ping", "-c", "12", "-i", "0.2", there]
                done = subprocess.run(ping, capture_output=True, text=True)
                least.append(float(done.stdout.rsplit(" = ", 1)[-1].split("/")[0]))
            wrong = [*inside, "ping", "-c", "2", "-W", "1", "-I", "v20", "10.111.0.2"]
            assert subprocess.run(wrong, capture_output=True).returncode == 1
    finally:
        if station:
            station.kill()
            station.wait()
        subprocess.run(["ip", "link", "del", "bpt0"], check=False)
        subprocess.run(["ip", "netns", "del", "bpv-hub"], check=False)
    print(least, api.read(tmp_path / "run").summary["attached"]["verdict"])
    assert 60 <= least[0] < 63 and 90 <= least[1] < 93
