"""Captures of an experiment: what can be asked for, and what a run then writes."""

from __future__ import annotations

import json
import resource
import struct
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.utils import RawPcapReader

from bentpipe.captures import CaptureSpec, cut_to_whole_records
from bentpipe.cli import main
from bentpipe.experiment.load import load
from bentpipe.experiment.resolve.captures import parse_capture

NETWORK = load("lan-3flows").network


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("ip:source1", CaptureSpec("ip", "source1", "", 0, "source1.ip.pcap")),
        ("sink", CaptureSpec("ip", "sink", "", 0, "sink.ip.pcap")),
        ("cells:lan", CaptureSpec("cells", "", "west", 3, "lan.cells.pcap")),
        ("pdus:lan@east", CaptureSpec("pdus", "", "east", 3, "lan.east.pdus.pcap")),
    ],
)
def test_what_is_captured(text: str, spec: CaptureSpec) -> None:
    assert parse_capture(text, NETWORK) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frames:satellite", "a capture kind is ip, pdus or cells, not 'frames'"),
        ("ip:lam", "no host and no line 'lam'; did you mean 'lan'?"),
        ("ip:lan@wset", "line lan has its ends at west and east; did you mean 'west'?"),
        ("ip:source1@west", "no host and no line 'source1'"),
    ],
)
def test_what_cannot_be_captured(text: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", "lan-3flows", "--pcap", text, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error and "record.pcap" in error and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_run_writes_its_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A host's is what the host counted; nothing else is left beside the run folder."""
    wanted = ["--pcap", "ip:alpha1", "--pcap", "cells:lan", "--pcap", "ip:alpha1", "--set", "record.what=[]"]
    assert main(["run", "lan-1flow", "--duration", "400 ms", "--out", str(tmp_path / "out"), *wanted]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    summary = json.loads((tmp_path / "out" / "result.json").read_text())
    assert summary["captures"] == ["alpha1.ip.pcap", "lan.cells.pcap"]
    with RawPcapReader(str(tmp_path / "out" / "alpha1.ip.pcap")) as reader:
        packets = [(meta.sec * 10**9 + meta.usec, IP(octets)) for octets, meta in reader]
    assert 0 <= packets[0][0] < packets[-1][0] <= 400_000_000
    sent = [packet for _, packet in packets if packet.src == "10.0.0.1"]
    flow = summary["flows"][0]
    # The last segments may still wait for the host's processor.
    assert flow["segments_sent"] - 3 <= len(sent) <= flow["segments_sent"]
    assert sum(len(packet[TCP].payload) == 9140 for packet in sent) > 50
    size = (tmp_path / "out" / "lan.cells.pcap").stat().st_size
    counters = summary["counters"]
    assert size == 24 + 84 * (counters["lan.out"]["cells"] + counters["lan.back"]["cells"])


def test_a_capture_that_was_cut_off_keeps_its_whole_records(tmp_path: Path) -> None:
    """Return the capture as a process leaves it that is killed."""
    head = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101)
    records = [struct.pack("=IIII", 1, n, n, n) + bytes(n) for n in (3, 0, 5)]
    file = tmp_path / "x.pcap"
    whole = head + b"".join(records)
    for octets in range(len(whole) + 1):
        file.write_bytes(whole[:octets])
        kept = [sum(map(len, [head, *records[:n]])) for n in range(4)]
        assert cut_to_whole_records(file) is (octets >= len(head))
        if octets >= len(head):
            assert file.stat().st_size == max(size for size in kept if size <= octets)
    assert not cut_to_whole_records(tmp_path / "none.pcap")


def test_a_capture_without_room_is_removed_and_the_results_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file can be longer than so many octets, as on a full disk. What was simulated is in the run folder."""
    words = ["lan-1flow", "--duration", "400 ms", "--no-plots", "--set", "record.what=[]"]
    assert main(["run", *words, "--out", str(tmp_path / "plain")]) == 0
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, most[1]))
    try:
        wanted = ["--pcap", "cells:lan", "--pcap", "ip:alpha1", "--out", str(tmp_path / "out")]
        assert main(["run", *words, *wanted]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert "lan.cells.pcap could not be written: File too large, alpha1.ip.pcap could not" in capsys.readouterr().err
    summary, plain = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("out", "plain"))
    assert summary["status"] == "failed" and "File too large" in summary["reason"]
    assert summary["captures"] == [] and not [*(tmp_path / "out").rglob("*.pcap")]
    assert summary["metrics"] == plain["metrics"] and summary["time"]["simulated_s"] == 0.4
    assert (tmp_path / "out" / "report.html").is_file()
