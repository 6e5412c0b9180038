"""Sessions with attached hosts, as a person starts them: what passes, what is left behind, what errors say."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bentpipe import api
from bentpipe.attach.client import SessionClient, ask
from bentpipe.cli import main
from bentpipe.errors import BentpipeError
from bentpipe.serve.runs import live_news, live_page
from models.aal5 import Reassembly, segment
from models.cell import Cell, Header
from models.hec import hec

NEAR = ["--set", "network.lines.satellite.delay=30 ms"]
FRAME = bytes.fromhex("020000000002 020000000001 0800") + bytes(range(200))


def _own(*command: str) -> subprocess.CompletedProcess[str]:
    """In a network namespace of its own, of a user namespace if this isn't root."""
    flags = ["-n"] if os.geteuid() == 0 else ["-r", "-n"]
    return subprocess.run(["unshare", *flags, *command], capture_output=True, text=True)


def _permitted() -> str:
    """Why namespaces and devices can't be made here; ``""``: they can."""
    try:
        done = _own("ip", "tuntap", "add", "mode", "tap", "name", "probe")
    except FileNotFoundError as error:
        return f"{error.filename} is missing"
    return done.stderr.strip()


WHY_NOT = _permitted()
rights = pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaces or TAP devices here: {WHY_NOT}")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def started(arguments: list[str], own: bool = True) -> subprocess.Popen[str]:
    flags = [] if os.geteuid() == 0 else ["-r"]
    command = [*(["unshare", *flags, "-n"] if own else []), sys.executable, "-m", "bentpipe", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    pytest.fail(f"it ended: {process.communicate()[1]}")


class Station(threading.Thread):
    """The outside of two UDP ends: it sends frames to one, takes them at the other, and ends the session by a signal
    after so many.
    """

    def __init__(self, enough: int = 1 << 30) -> None:
        super().__init__(daemon=True)
        self.enough = enough
        self.one, self.other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        probes = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for each in (self.one, self.other, *probes):
            each.bind(("127.0.0.1", 0))
        self.ours = [each.getsockname()[1] for each in (self.one, self.other)]
        self.theirs = [each.getsockname()[1] for each in probes]
        for probe in probes:
            probe.close()
        self.other.settimeout(0.05)
        self.got: list[bytes] = []
        self.over = False

    def ends(self, kind: str) -> list[str]:
        return [f"--{name}={kind}:{a}-{b}" for name, a, b in zip("ab", self.theirs, self.ours, strict=True)]

    def run(self) -> None:
        given_up = time.monotonic() + 60
        while not self.over:
            if time.monotonic() > given_up:
                self.end()
            self.one.sendto(FRAME, ("127.0.0.1", self.theirs[0]))
            try:
                self.got.append(self.other.recv(2000))
            except TimeoutError:
                continue
            if len(self.got) == self.enough:
                self.end()

    @staticmethod
    def start_with(*does: Callable[[], None]) -> None:
        """Instead of what it does: this, each by itself."""
        for each in does:
            threading.Thread(target=each, daemon=True).start()

    def end(self) -> None:
        self.over = True
        os.kill(os.getpid(), signal.SIGINT)


def test_frames_of_udp_ends_pass_in_real_time_and_again_offline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    station, folder = Station(enough=20), tmp_path / "run"
    station.start()
    assert main(["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--record", "--out", str(folder)]) == 0
    message = capsys.readouterr().out
    assert "20 ms of the delay of satellite are used as slack" in message
    assert "packets in" in message.splitlines()[-2]
    assert station.got and set(station.got) == {FRAME}
    result = json.loads((folder / "result.json").read_text())
    a, b = result["attached"]["ends"]
    assert result["status"] == "done" and result["attached"]["verdict"] in message
    page = (folder / "report.html").read_text()
    assert result["attached"]["verdict"] in page and 'id="real-hosts"' in page and '"packets-beyond"' in page
    assert {file.name for file in folder.glob("lateness.*")} == {"lateness.svg", "lateness.png"}
    assert b["beyond"]["count"] == b["counts"]["released"] >= 20
    assert b["beyond"]["least"] >= 0  # none was faster than 30 ms
    row = next(row for row in result["ledger"] if row["source"] == "alpha1")
    assert row["sent"] == a["counts"]["injected"] and row["delivered"] == b["counts"]["received"]
    assert main(["replay", str(folder), "--pcap", "cells:satellite", "--pcap", "ip:ultra"]) == 0
    assert "The same cells at the same ticks at all 8 outputs" in capsys.readouterr().out
    assert (tmp_path / "run-replayed" / "satellite.cells.pcap").stat().st_size > 24
    came = (tmp_path / "run-replayed" / "ultra.ip.pcap").read_bytes()[24:]  # without the Ethernet header
    assert len(came) == b["counts"]["received"] * (16 + len(FRAME) - 14) and came.endswith(FRAME[14:])


def test_10000_fuzzed_cells_of_a_peer_written_apart(tmp_path: Path) -> None:
    """The peer is the models'. What it sent whole comes, nothing else does, and each cell that comes is right."""
    station, draw, folder = Station(), random.Random(16), tmp_path / "run"
    station.other.settimeout(None)
    whole, datagrams = [], []
    endless = False  # the PDU before has lost its end, and takes this one with it
    for number in range(2000):
        sdu = bytes.fromhex("aaaa030080c200070000") + FRAME[:14] + number.to_bytes(4, "big") + bytes(130)
        cells = [cell.octets() for cell in segment(Header(vpi=0, vci=32), sdu)]
        if draw.random() < 0.5:
            wrong, octet, bit = draw.randrange(len(cells)), draw.randrange(53), 1 << draw.randrange(8)
            cells[wrong] = bytes(value ^ (bit if k == octet else 0) for k, value in enumerate(cells[wrong]))
            endless = wrong == len(cells) - 1 and octet < 5 and number % 100 != 99  # there an end follows
        else:
            whole += [] if endless else [sdu]
            endless = False
        datagrams += [*cells, draw.randbytes(draw.choice((0, 1, 52, 53, 54, 1500)))]
    assert len(datagrams) == 10_000
    words = (b"begin", *(b"end %d" % at for at in range(0, len(datagrams), 200)))
    begin, *ends = ([cell.octets() for cell in segment(Header(vpi=0, vci=32), word)] for word in words)
    came, passed, awaited = bytearray(), threading.Event(), [begin]

    def talk() -> None:
        while not station.got:  # the session is there
            station.one.sendto(begin[0], ("127.0.0.1", station.theirs[0]))
            threading.Event().wait(0.02)
        # As many as wait in a socket's buffer, and what ends them: twice, as the first may end a PDU that lost its end
        for at, end in zip(range(0, len(datagrams), 200), ends, strict=True):
            awaited[0] = end
            passed.clear()
            for each in (*datagrams[at : at + 200], *end, *end):
                station.one.sendto(each, ("127.0.0.1", station.theirs[0]))
            passed.wait()
        station.end()

    def listen() -> None:
        while True:
            station.got.append(station.other.recv(2000))
            came.extend(station.got[-1])
            if station.got[-1] == awaited[0][0]:
                passed.set()

    station.start_with(talk, listen)
    assert main(["attach", "acts-1flow", *NEAR, *station.ends("cells-udp"), "--out", str(folder)]) == 0
    a, b = (row["counts"] for row in json.loads((folder / "result.json").read_text())["attached"]["ends"])
    assert a["arrived"] > 10_000 and a["injected"] - b["released"] <= 1
    assert min(a[name] for name in ("malformed", "hec_errors", "pdu_wrong")) > 100
    peer, sdus = Reassembly(), []
    for at in range(0, len(came), 53):
        cell = Cell.unpack(bytes(came[at : at + 53]))
        assert hec(came[at : at + 4]) == came[at + 4] and (cell.header.vpi, cell.header.vci) == (0, 32)
        result = peer.receive(cell)
        if result is not None:
            assert result.status == 0
            sdus.append(result.sdu)
    assert [sdu for sdu in sdus if sdu not in words] == whole


def test_settings_change_while_it_goes_on_and_do_so_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line without bursts fails and comes back, and has more errors from then on; what it can't be is a line of text,
    and changes nothing. The folder's path is longer than that of a socket may be."""
    station, folder = Station(), tmp_path / ("a folder with a long name " * 5)
    changes = ["satellite.outage=true", "satellite.outage=false", "satellite.ber=1e-5", "satellite.rate=DS-3"]
    message: list[str] = []

    def change() -> None:
        while not station.got:
            station.join(0.01)
        for setting in ("satellite.rate=12", "satellite.colour=red", "satellite.order=merged", *changes):
            try:
                ask(folder, [setting])
                message.append("")
            except BentpipeError as error:
                message.append(str(error))
        station.end()

    station.start()
    threading.Thread(target=change, daemon=True).start()
    assert main(["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--record", "--out", str(folder)]) == 0
    result = json.loads((folder / "result.json").read_text())

    assert [change["settings"] for change in result["attached"]["changed"]] == [[each] for each in changes]
    (_, rates), (*_, line) = result["rates"], result["resolved"]["network"]["lines"]
    assert rates["at_s"] == result["attached"]["changed"][-1]["at_ps"] / 1e12
    assert rates["ports"][line["ends"][0]["switch"]][line["ends"][0]["port"]] == 40_704_000
    parts = "12 is out of range 143 b/s", "unknown key", "can't be changed"
    assert all(part in one for part, one in zip(parts, message, strict=False)) and message[3:] == [""] * len(changes)
    assert all(one.startswith("network.lines.satellite") for one in message[1:3])
    assert main(["replay", str(folder)]) == 0
    assert "The same cells at the same ticks" in capsys.readouterr().out


def test_it_can_be_looked_at_while_it_goes_on(tmp_path: Path) -> None:
    """The live page has the session's ends, their packets, and those that were late."""
    station, folder = Station(), tmp_path / "run"
    found: list[dict[str, Any]] = []

    def look() -> None:
        while not found:
            station.join(0.05)
            if (folder / "result.json").is_file():
                news = live_news(folder, "run")
                if "to-hosts" in news["figures"] and "late" in news["figures"]:
                    found.append(news)
        station.end()

    station.start()
    threading.Thread(target=look, daemon=True).start()
    assert main(["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--out", str(folder)]) == 0
    (news,) = found
    verdict = news["parts"]["verdict"]  # whether any was, hangs on what else the machine does
    assert not news["over"] and ("none late" in verdict or "injected late" in verdict)
    assert "alpha1" in news["parts"]["attached-now"] and "ultra" in news["parts"]["attached-now"]
    assert {curve["name"] for curve in news["figures"]["to-hosts"]["series"]} == {"to alpha1", "to ultra"}
    assert 'id="attached-now"' in live_page("run", json.loads((folder / "result.json").read_text()))


@rights
def test_a_record_on_a_full_disk_ends_and_the_rest_of_the_session_is_kept(tmp_path: Path) -> None:
    station, small, out = Station(), tmp_path / "small", tmp_path / "out"
    small.mkdir()
    script = f'mount -t tmpfs -o size=3M none {small} && {{ "$@"; code=$?; cp -r {small}/run {out}; exit $code; }}'
    inside = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-c", script, "sh"]
    words = ["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--record", "--duration", "4"]
    process = subprocess.Popen(
        [*inside, sys.executable, "-m", "bentpipe", *words, "--out", f"{small}/run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    until(process, "Attached")
    frame = FRAME + b"x" * (1400 - len(FRAME))
    while process.poll() is None:
        station.one.sendto(frame, ("127.0.0.1", station.theirs[0]))
        time.sleep(0.0005)
    _, error = process.communicate()
    assert process.returncode == 1, error
    assert "No space left on device; the session continues" in error
    summary = json.loads((out / "result.json").read_text())
    assert summary["status"] == "failed" and "the record of arrivals ended at" in summary["reason"]
    assert summary["attached"]["recorded"] is False and not (out / "arrivals.bin").exists()
    assert summary["attached"]["ends"][0]["counts"]["injected_octets"] > 3 << 20, "it went on"
    assert "cannot be repeated exactly: the record of arrivals ended" in (out / "report.html").read_text()
    assert main(["replay", str(out)]) == 2


def test_a_session_whose_results_cannot_be_written_still_reports_what_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    station = Station(enough=5)
    station.start()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "result.json")

    monkeypatch.setattr("bentpipe.results.folder.RunFolder.finish", full)
    assert main(["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--out", str(tmp_path / "run")]) == 1
    out, error = capsys.readouterr()
    assert "packets in" in out and "result.json: No space left on device" in error


def test_a_session_on_a_disk_that_is_full_all_the_time_says_that_its_folder_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    station = Station(enough=5)
    station.start()

    def full(folder: Any, name: str, data: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder.path / name))

    monkeypatch.setattr("bentpipe.results.folder.RunFolder._write", full)
    folder = tmp_path / "run"
    assert main(["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--out", str(folder)]) == 1
    out, error = capsys.readouterr()
    assert "packets in" in out
    lines = error.splitlines()
    assert lines[-1] == f"bentpipe: {folder}/result.json: No space left on device; nothing was kept: {folder} is empty"
    assert not [*folder.iterdir()]


def test_a_folder_without_a_session_takes_no_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["set", "satellite.ber=0", "--run", str(tmp_path)]) == 2
    assert "no session with attached hosts is running in this folder" in capsys.readouterr().err


def test_lines_of_json_say_what_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    station = Station()
    station.start()
    arguments = ["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--duration", "1.1", "--json"]
    assert main([*arguments, "--out", str(tmp_path / "run")]) == 0
    station.over = True
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["kind"] for line in lines] == ["begin", "now", "end"]
    assert [row["host"] for row in lines[1]["ends"]] == ["alpha1", "ultra"] and lines[-1]["status"] == "done"


@rights
@pytest.mark.parametrize("interval", ["20 ms", "50 ms", "1 s"])
def test_a_session_ends_with_its_command_however_near_samples_are(tmp_path: Path, interval: str) -> None:
    command = ["shell", "acts-1flow", *NEAR, "--set", f"record.interval={interval}", "--duration", "20"]
    session = started([*command, "--out", str(tmp_path / "run"), "--", "true"], own=False)
    assert session.wait(60) == 0
    assert json.loads((tmp_path / "run" / "result.json").read_text())["time"]["simulated_s"] < 5


@rights
def test_a_command_in_a_shell_talks_through_the_network(tmp_path: Path) -> None:
    """The exit code is that of the shell, and no process or interface is left."""
    echo = "import socket; s = socket.create_server(('', 7)); c = s.accept()[0]; c.sendall(c.recv(99)); c.recv(1)"
    ask = (
        "import socket, sys, time\n"
        "while True:\n"
        "    try: s = socket.create_connection(('b', 7)); break\n"
        "    except ConnectionRefusedError: pass\n"
        "begin = time.monotonic(); s.sendall(b'hello'); s.recv(5)\n"
        "sys.exit(42 if 0.06 <= time.monotonic() - begin else 1)"
    )
    there = f'{sys.executable} -c "{echo}"'
    arguments = ["shell", "acts-1flow", *NEAR, "--out", str(tmp_path / "run"), "--there", there]
    process = started([*arguments, "--", sys.executable, "-c", ask], own=False)
    out, error = process.communicate()
    assert process.returncode == 42, error
    assert "packets in" in out and "a is alpha1, b is ultra" in error
    assert not any(Path("/run/netns").glob("[ab]"))


def interfaces(process: subprocess.Popen[str]) -> Callable[[], str]:
    """The network namespace of a process has these interfaces while it runs, and none afterwards."""
    spaces = [os.open(f"/proc/{process.pid}/ns/{kind}", os.O_RDONLY) for kind in ("net", "user")]
    user = [] if os.geteuid() == 0 else [f"--user=/proc/self/fd/{spaces[1]}", "--preserve-credentials"]
    command = ["nsenter", *user, f"--net=/proc/self/fd/{spaces[0]}", "ip", "-br", "link"]
    return lambda: subprocess.run(command, pass_fds=spaces, capture_output=True, text=True, check=True).stdout


@rights
def test_a_signal_ends_it_and_takes_its_interfaces_away(tmp_path: Path) -> None:
    process = started(["attach", "acts-1flow", "--a", "tap:bp0", "--b", "tap:bp1", "--out", str(tmp_path / "run")])
    until(process, "Attached")
    there = interfaces(process)
    assert "bp0" in there() and "bp1" in there()
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate()
    assert process.returncode == 0, error
    assert "bp" not in there() and "packets in" in out
    assert json.loads((tmp_path / "run" / "result.json").read_text())["status"] == "done"


@rights
def test_an_interface_that_goes_away_is_a_line(tmp_path: Path) -> None:
    process = started(["attach", "acts-1flow", "--a", "tap:bp0", "--b", "tap:bp1", "--out", str(tmp_path / "run")])
    until(process, "Attached")
    where = ["nsenter", "-t", str(process.pid), *(["-U", "--preserve-credentials"] if os.geteuid() else []), "-n"]
    subprocess.run([*where, "ip", "link", "del", "bp1"], check=True)
    _, error = process.communicate()
    assert process.returncode == 2
    assert error.splitlines()[-1].startswith("bentpipe: TAP device bp1 went away: ")
    assert json.loads((tmp_path / "run" / "result.json").read_text())["status"] == "failed"


def on_interfaces(a: str, b: str, folder: Path) -> tuple[subprocess.Popen[str], list[str]]:
    """Start a session in a network namespace with two pairs of interfaces, v0 and v1, w0 and w1; return it, and the
    words that run a command in that namespace."""
    script = "ip link add v0 type veth peer name v1; ip link add w0 type veth peer name w1\n"
    script += 'for name in v0 v1 w0 w1; do ip link set $name addrgenmode none up; done; exec "$@"'
    command = ["attach", "acts-1flow", *NEAR, "--a", a, "--b", b, "--out", str(folder)]
    flags = [] if os.geteuid() == 0 else ["-r"]
    process = subprocess.Popen(
        ["unshare", *flags, "-n", "sh", "-c", script, "sh", sys.executable, "-m", "bentpipe", *command, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    until(process, "begin")
    where = ["nsenter", "-t", str(process.pid), *(["-U", "--preserve-credentials"] if os.geteuid() else []), "-n"]
    return process, where


@rights
def test_an_interface_may_be_down_for_a_while(tmp_path: Path) -> None:
    """Frames pass again when it is up; when it goes, that is a line."""
    process, where = on_interfaces("if:v0", "if:w0", tmp_path / "run")
    for state in ("down", "up"):
        subprocess.run([*where, "ip", "link", "set", "v0", state], check=True)
    sends = f"import socket; s = socket.socket(17, 3); s.bind(('v1', 0)); s.send({FRAME!r})"
    subprocess.run([*where, sys.executable, "-c", sends], check=True)
    assert process.stdout is not None
    for line in process.stdout:  # until it has come at the other end
        if json.loads(line)["ends"][1]["octets"] >= len(FRAME):
            break
    subprocess.run([*where, "ip", "link", "del", "v0"], check=True)
    _, error = process.communicate()
    assert (process.returncode, "interface v0 went away" in error) == (2, True), error


@rights
def test_an_interface_that_is_down_and_then_goes_is_a_line(tmp_path: Path) -> None:
    """The kernel reports an error when it goes down, and none when it goes away after that."""
    process, where = on_interfaces("if:v0", "if:w0", tmp_path / "run")
    subprocess.run([*where, "ip", "link", "set", "v0", "down"], check=True)
    time.sleep(0.2)  # the session has got the error
    assert process.poll() is None
    subprocess.run([*where, "ip", "link", "del", "v0"], check=True)
    try:
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, "interface v0 went away" in error) == (2, True), error


STATIONS = """if True:
    import json, socket, struct, sys

    def station(name):
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        made.bind((name, 3))
        made.setsockopt(263, 8, 1)  # PACKET_AUXDATA
        made.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
        made.settimeout(5)
        return made

    def receive(made):  # the frame as it was on the wire
        frame, about, *_ = made.recvmsg(2048, 256)
        status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", about[0][2])
        return frame if not status & 0x10 else frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]

    one, other = station("v1"), station("w1")
    found = []
    for word in sys.argv[1:]:
        text, _, ways = word.partition(":")
        for way, (sender, receiver) in zip(ways, ((one, other), (other, one))):
            if way == "1":
                sender.send(bytes.fromhex(text))
                found.append(receive(receiver).hex())
    print(json.dumps(found))
"""
TAGS = {"none": "", "10": "8100000a", "20 with priority": "8100a014", "service tag": "88a8000a"}


@rights
@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        (("if:v0", "if:w0"), {name: (tag, tag) for name, tag in TAGS.items()}),
        (("if:v0,10=flow1", "if:w0,20=flow1"), {"10": ("81000014", None), "20 with priority": (None, "8100000a")}),
        (("if:v0,10=flow1", "if:w0"), {"10": ("", None), "none": (None, "8100000a")}),
    ],
    ids=["as they come", "10 becomes 20", "a trunk and a plain end"],
)
def test_tags_of_a_real_interface(
    ends: tuple[str, str], wanted: dict[str, tuple[str | None, str | None]], tmp_path: Path
) -> None:
    """The kernel takes tags out of frames; they pass all the same, or select the VC."""
    process, where = on_interfaces(*ends, tmp_path / "run")
    frames = {name: bytes(FRAME[:12]).hex() + "{}" + bytes(FRAME[12:]).hex() for name in TAGS}
    sends, comes = [], []
    for name, tags in wanted.items():
        sends.append((frames[name].format(TAGS[name]), [tag is not None for tag in tags]))
        comes += [frames[name].format(tag) for tag in tags if tag is not None]
    words = [f"{octets}:{''.join(str(int(way)) for way in ways)}" for octets, ways in sends]
    done = subprocess.run([*where, sys.executable, "-c", STATIONS, *words], capture_output=True, text=True)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert json.loads(done.stdout or "[]") == comes, done.stderr


OFFLOADS = """if True:
    import ctypes, fcntl, ipaddress, socket, struct
    from contextlib import ExitStack
    from bentpipe.attach.ends import parse_end

    def segments_batched():  # ETHTOOL_GTSO
        asked = ctypes.create_string_buffer(struct.pack("II", 0x1E, 0))
        with socket.socket() as control:
            fcntl.ioctl(control, 0x8946, struct.pack("16sP16x", b"v0", ctypes.addressof(asked)))
        return struct.unpack("II", asked[:8])[1]

    print(segments_batched())
    with ExitStack() as stack:
        parse_end("if:v0", "--a").open(stack, 9180, ipaddress.IPv4Interface("10.0.0.1/24"))
        print(segments_batched())
    print(segments_batched())
"""


@rights
def test_an_interface_has_its_offloads_again() -> None:
    flags = [] if os.geteuid() == 0 else ["-r"]
    script = 'ip link add v0 type veth peer name v1; exec "$@"'
    done = subprocess.run(
        ["unshare", *flags, "-n", "sh", "-c", script, "sh", sys.executable, "-c", OFFLOADS],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (done.stdout.split(), done.stderr) == (["1", "0", "1"], "")


@rights
@pytest.mark.parametrize(
    ("a", "message"),
    [
        ("tap:lo", "there is an interface lo already"),
        ("if:none0", "interface none0: No such device"),
        ("ns:taken", "the network namespace taken already exists; give another name, or: ip netns del taken"),
    ],
)
def test_what_cant_be_an_end_is_a_line(a: str, message: str, tmp_path: Path) -> None:
    flags = ["-m"] if os.geteuid() == 0 else ["-r", "-m"]
    script = 'mount -t tmpfs none /run && mkdir /run/netns && touch /run/netns/taken && exec "$@"'
    command = [sys.executable, "-m", "bentpipe", "attach", "acts-1flow", "--a", a, "--b", "udp:1-2"]
    done = subprocess.run(
        ["unshare", *flags, "-n", "sh", "-c", script, "sh", *command, "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("a", "message"), [("udp:7", "expected LOCAL-REMOTE"), ("udp:99999-1", "with a port of 1 to 65535")]
)
def test_an_end_that_makes_no_sense_is_a_line(
    a: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attach", "acts-1flow", "--a", a, "--b", "udp:1-2", "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can do without its rights")
@pytest.mark.parametrize(("a", "b"), [("tap:bp0", "tap:bp1"), ("ns:bp0", "ns:bp1"), ("if:lo", "udp:1-2")])
def test_without_rights_it_is_a_line(a: str, b: str, tmp_path: Path) -> None:
    less = "-net_admin,-net_raw,-sys_admin"
    command = ["setpriv", f"--bounding-set={less}", f"--inh-caps={less}", sys.executable, "-m", "bentpipe", "attach"]
    done = subprocess.run(
        [*command, "acts-1flow", "--a", a, "--b", b, "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "root" in done.stderr


@rights
def test_without_a_tun_device_it_is_a_line(tmp_path: Path) -> None:
    flags = ["-m"] if os.geteuid() == 0 else ["-r", "-m"]
    script = 'mount -t tmpfs none /dev/net && exec "$@"'
    command = [sys.executable, "-m", "bentpipe", "attach", "acts-1flow", "--a", "tun:bp0", "--b", "tun:bp1"]
    done = subprocess.run(
        ["unshare", *flags, "-n", "sh", "-c", script, "sh", *command, "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (done.returncode, done.stderr) == (2, "bentpipe: no TUN device: /dev/net/tun: No such file or directory\n")
    assert not (tmp_path / "run").exists()


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []


def _as_nobody(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**ENVIRONMENT, "BENTPIPE_HOSTS": "plain"}
    return subprocess.run([*NOBODY, *command], capture_output=True, text=True, env=environment)


def _no_user_namespaces() -> str:
    """Why somebody else than root can't have one, with what Python needs in it."""
    script = (
        "import ctypes, sys\nif ctypes.CDLL(None).unshare(0x10000000): sys.exit('forbidden')\nimport pydantic, pyarrow"
    )
    try:
        done = _as_nobody(sys.executable, "-c", script)
    except FileNotFoundError as error:
        return f"{error.filename} is missing"
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def test_a_shell_needs_no_root() -> None:
    """The namespaces are made before the experiment is looked for, and nothing has started a thread by then."""
    if why_not := _no_user_namespaces():
        pytest.skip(f"no user namespaces here: {why_not}")
    done = _as_nobody(sys.executable, "-m", "bentpipe", "shell", "no-such-experiment", "--", "true")
    assert done.returncode == 2
    assert "no-such-experiment" in done.stderr and "namespaces" not in done.stderr


WITHOUT_NAMESPACES = """
import ctypes, os, sys
ready, mapped = os.pipe(), os.pipe()
child = os.fork()
if not child:
    ctypes.CDLL(None).unshare(0x10000000)  # CLONE_NEWUSER
    os.write(ready[1], b"x")
    os.read(mapped[0], 1)
    with open("/proc/sys/user/max_user_namespaces", "w") as most:  # of this one
        most.write("0")
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(ready[0], 1)
for kind in "ug":
    with open(f"/proc/{child}/{kind}id_map", "w") as ids:
        ids.write("0 0 65536")
os.write(mapped[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take user namespaces away")
def test_without_user_namespaces_a_shell_is_a_line(tmp_path: Path) -> None:
    shell = [sys.executable, "-m", "bentpipe", "shell", "acts-1flow", "--out", str(tmp_path / "run"), "--", "true"]
    there = {name: text for name, text in ENVIRONMENT.items() if not name.startswith("COVERAGE")}  # can't write here
    environment = {**there, "BENTPIPE_HOSTS": "plain"}
    command = [sys.executable, "-c", WITHOUT_NAMESPACES, *NOBODY, *shell]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "run it as root, or enable user namespaces" in done.stderr and not (tmp_path / "run").exists()


def test_a_program_speaks_with_a_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All methods, what is wrong with a request, a client that dies, one that subscribes; `get` and `set` besides."""
    station, folder = Station(), tmp_path / "run"
    found: dict[str, Any] = {}
    failed: list[BaseException] = []

    def speak() -> None:
        while not station.got:
            station.join(0.01)
        try:
            _speak(folder, found)
        except BaseException as error:
            failed.append(error)
            station.end()

    station.start()
    threading.Thread(target=speak, daemon=True).start()
    assert main(["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--record", "--out", str(folder)]) == 0
    station.over = True
    if failed:
        raise failed[0]
    assert found["mode"] == 0o600 and found["link"] and not Path(found["link"]).is_symlink()
    assert found["ber"] == {"satellite.ber": 1e-6, "network.lines.satellite.outage": False}
    assert found["set"]["source"] == "set" and found["set"]["changes"][0]["new"] == 1e-6
    row = next(row for row in found["keys"] if row["key"] == "network.lines.satellite.ber")
    assert (row["kind"], row["low"], row["high"], row["value"]) == ("bit error ratio", "1e-15", "0.001", 1e-6)
    assert found["queue"].keys() == {"ground", "ku"} or all(isinstance(n, int) for n in found["queue"].values())
    assert {"sent", "delivered", "lost"} <= found["losses"][0].keys()
    assert found["counters"]["satellite.out"]["cells"] > 0
    assert set(found["lateness"]["late"]) == {"alpha1", "ultra"}
    assert [news["method"] for news in found["news"]].count("now") >= 1
    assert [news["params"]["source"] for news in found["news"] if news["method"] == "events"] == ["reset"]
    assert found["codes"] == [-32700, -32600, -32601, -32602, -32000, -32600, -32602]
    result = json.loads((folder / "result.json").read_text())
    assert [event["source"] for event in result["events"]] == ["set", "reset", "set", "reset", "set"]
    assert main(["replay", str(folder)]) == 0
    message = capsys.readouterr().out
    assert all(
        text in message for text in ("network.lines.satellite.ber", "satellite.ber = [1e-13, 1e-11]", "1e-15 to")
    )
    assert "satellite.ber = 0.001" in message and "The same cells at the same ticks" in message


def _speak(folder: Path, found: dict[str, Any]) -> None:
    dying = SessionClient(folder)
    dying._socket.sendall(b'{"jsonrpc":"2.0","id":1,"method":"counters"}\n{"half')
    dying.close()
    socket_file = folder / ".running" / "control"
    found["mode"] = socket_file.stat().st_mode & 0o777
    with SessionClient(folder) as one, SessionClient(folder) as other:
        found["link"] = one.session()["link"]
        assert Path(found["link"]).resolve() == socket_file.resolve()
        found["set"] = one.set({"satellite.ber": 1e-6})
        found["ber"] = one.get("satellite.ber", "network.lines.satellite.outage")
        for name in ("keys", "queue", "losses", "counters", "lateness"):
            found[name] = getattr(one, name)()
        news = other.subscribe("now", "events", every_s=0.05)
        found["news"] = [next(news)]
        assert one.reset()["changes"]
        while found["news"][-1]["method"] != "events":
            found["news"].append(next(news))
        assert one.get("satellite.ber") == [1e-13, 1e-11]
        found["codes"] = [
            json.loads(_raw(one, text))["error"]["code"]
            for text in (
                "{",
                '{"id": 1, "method": "get"}',
                '{"jsonrpc": "2.0", "id": 1, "method": "fly"}',
                '{"jsonrpc": "2.0", "id": 1, "method": "set", "params": {"x": 1}}',
                '{"jsonrpc": "2.0", "id": 1, "method": "set", "params": {"values": {"satellite.order": "merged"}}}',
                '{"jsonrpc": "2.0", "id": 1, "method": "get", "version": 2}',
                '{"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": {"what": ["x"]}}',
            )
        ]
        assert [each["id"] for each in json.loads(_raw(one, '[{"jsonrpc":"2.0","id":7,"method":"queue"}]'))] == [7]
    run = ["--run", str(folder)]
    for words in (["get"], ["get", "satellite.ber"], ["set", "satellite.ber=1e-4"], ["set", "--reset"]):
        assert main([*words, *run]) == 0
    assert main(["set", "satellite.ber=1e-3", *run, "--json"]) == 0
    assert main(["get", "satellite.ber", "--run", str(folder)]) == 0
    assert main(["get", "--what", "lateness", "--run", str(folder)]) == 0
    with SessionClient(folder) as last:
        last.stop()


def _raw(client: SessionClient, text: str) -> bytes:
    client._socket.sendall(text.encode() + b"\n")
    return client._file.readline()


def test_a_python_program_starts_a_session(tmp_path: Path) -> None:
    """It begins when packets pass, is changed, and is over behind the block; one that can't begin says why."""
    station, folder = Station(), tmp_path / "run"
    station.start()
    ends = {host: f"udp:{a}-{b}" for host, a, b in zip(("alpha1", "ultra"), station.theirs, station.ours, strict=True)}
    with api.attach("acts-1flow", ends, {"network.lines.satellite.delay": "30 ms"}, folder=folder) as session:
        assert set(session.ends) == {"alpha1", "ultra"}
        assert session.client.set({"satellite.outage": True})["changes"]
        with api.session(folder) as other:
            assert other.get("satellite.outage") is True
    station.over = True
    result = api.read(folder)
    assert isinstance(result, api.Run) and result.summary["status"] == "done"
    assert list(result.changes["source"]) == ["set"]
    with pytest.raises(BentpipeError, match="nosuch"), api.attach("nosuch", ends, folder=tmp_path / "other"):
        pass


def _changed_before(ends: dict[str, str], folder: Path, start: datetime) -> None:
    """A program changes a session before its start, and asks for its time behind it."""
    event = 'event=[{at="0 s", set={"network.lines.satellite.ber"=1e-9}}]'
    options = ["--at", start.isoformat(), *NEAR, "--record", "--set", event]
    with api.attach("acts-1flow", ends, folder=folder, options=options) as session:
        assert session.client.session()["starts"] == start.isoformat(timespec="milliseconds")
        now = session.client.now()
        news = session.client.subscribe("now", every_s=0.05)
        comes = [next(news)["params"]["time_s"] for _ in range(3)]
        change = session.client.set({"satellite.ber": 1e-6})
        ahead = datetime.now(UTC) < start
        if ahead:
            assert change["at_s"] == 0 and now["time_s"] < comes[0] < comes[1] < comes[2] < 0
            assert session.client.session()["started"] is None
        while datetime.now(UTC) < start + timedelta(seconds=0.2):
            time.sleep(0.01)
        assert session.client.get("satellite.ber") in ([1e-9] if ahead else [1e-9, 1e-6])
        time_s = session.client.now()["time_s"]
        assert 0 < time_s <= (datetime.now(UTC) - start).total_seconds()


def test_a_session_starts_at_a_time_of_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Programs can change it before, and the file's events of time 0 come later, in the replay, too; frames that come
    before are dropped; simulated time 0 is that time.
    """
    station = Station()
    station.start()
    ends = {host: f"udp:{a}-{b}" for host, a, b in zip(("alpha1", "ultra"), station.theirs, station.ours, strict=True)}
    for ahead_s in (3, 12, 30):  # a machine with other work needs longer to be ready
        folder, start = tmp_path / f"run{ahead_s}", datetime.now(UTC) + timedelta(seconds=ahead_s)
        try:
            _changed_before(ends, folder, start)
            break
        except BentpipeError as error:
            assert "start it earlier" in str(error) and ahead_s < 30
    station.over = True
    summary = json.loads((folder / "result.json").read_text())
    assert summary["status"] == "done"
    started = datetime.fromisoformat(summary["attached"]["started"])
    assert abs(started - start) <= timedelta(milliseconds=2) and summary["time"]["wall_s"] < 3
    assert f"Simulated time 0 was {started:%Y-%m-%d %H:%M:%S}" in (folder / "report.html").read_text()
    counts = [end["counts"] for end in summary["attached"]["ends"]]
    assert all(each["arrived"] >= each["early"] + each["injected"] for each in counts)
    assert sum(each["early"] for each in counts) > 0 and sum(each["injected"] for each in counts) > 0
    assert main(["replay", str(folder)]) == 0 and "The same cells at the same ticks" in capsys.readouterr().out


def test_lines_of_json_go_where_they_are_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    station, lines = Station(), tmp_path / "lines"
    station.start()
    arguments = ["attach", "acts-1flow", *NEAR, *station.ends("udp"), "--duration", "1.1", "--json-to", str(lines)]
    assert main([*arguments, "--out", str(tmp_path / "run")]) == 0
    station.over = True
    assert [json.loads(line)["kind"] for line in lines.read_text().splitlines()] == ["begin", "now", "end"]
    message = capsys.readouterr().out
    assert "Attached; Ctrl-C ends it." in message and "{" not in message
