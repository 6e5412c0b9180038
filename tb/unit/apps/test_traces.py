"""Traces as sources: packets of captures and CSV files, frames of videos, at their times and with their sizes."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapNgWriter, PcapWriter

from bentpipe.apps.trace_files import frames, packets
from bentpipe.cli import main
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment

MS = 10**9

HEAD = """
[experiment]
id = "x"
title = "x"
duration = "30 ms"
[network.switches.lan]
[network.hosts]
a = { port = "lan:0" }
b = { port = "lan:1" }
[hosts]
cost = 0
[record]
losses = true
[[flow]]
source = "a"
sink = "b"
protocol = "udp"
"""

CSV = "time, size, vc\n1.000, 528, 0/40\n1.0015,128,0/41\n1.002,1028,0/40\n1.010,30,0/40\n"


def times(path: Path, vc: str = "") -> list[tuple[float, int]]:
    return [(packet.time_ps / MS, packet.octets) for packet in packets(path, vc)]


def test_a_csv_file_has_times_from_its_first_packet_on_and_vcs(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text(CSV)
    assert times(file) == [(0, 528), (1.5, 128), (2, 1028), (10, 30)]
    assert times(file, "0/41") == [(1.5, 128)]


@pytest.mark.parametrize("nano", [False, True])
@pytest.mark.parametrize("endianness", ["<", ">"])
def test_captures_of_another_program_have_the_ip_packets_octets(nano, endianness, tmp_path):
    sent = [IP(dst="10.0.0.1") / UDP() / Raw(bytes(size)) for size in (100, 1000)]
    for k, packet in enumerate(sent):
        packet.time = 100 + k * 0.25
    for link, made in ((101, sent), (1, [Ether() / packet for packet in sent])):
        for packet, before in zip(made, sent, strict=True):
            packet.time = before.time
        with PcapWriter(str(tmp_path / "x.pcap"), linktype=link, nano=nano, endianness=endianness) as out:
            for packet in made:
                out.write(packet)
        assert times(tmp_path / "x.pcap") == [(0, 128), (250, 1028)]


def test_a_pcapng_file_and_its_resolution(tmp_path):
    sent = [IP(dst="10.0.0.1") / UDP() / Raw(bytes(size)) for size in (100, 1000)]
    sent[0].time, sent[1].time = 100, 100.25
    out = PcapNgWriter(str(tmp_path / "x.pcapng"))
    for packet in sent:
        out.write(packet)
    out.close()
    found = times(tmp_path / "x.pcapng")
    assert [octets for _, octets in found] == [128, 1028]
    assert found[1][0] == pytest.approx(250, abs=0.01)
    header = struct.pack(">IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    face = struct.pack(">IIHHIHHBxxxI", 1, 28, 101, 0, 0, 9, 1, 0x80 | 10, 28)  # 1/1024 s
    block = b"".join(struct.pack(">IIIIIII", 6, 32, 0, 0, at, 0, 77) + struct.pack(">I", 32) for at in (512, 1024))
    (tmp_path / "y.pcapng").write_bytes(header + face + block)
    assert times(tmp_path / "y.pcapng") == [(0, 77), (500, 77)]


def test_a_sunatm_capture_names_vcs(tmp_path):
    rows = [(0x82, 0, 40, 60), (0x02, 1, 300, 90)]
    body = b"".join(
        struct.pack("<IIII", 5, k * 1000, 4, 4 + 8 + size) + struct.pack(">BBH", *head)
        for k, (*head, size) in enumerate(rows)
    )
    (tmp_path / "x.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 123) + body)
    assert times(tmp_path / "x.pcap") == [(0, 60), (1, 90)]
    assert times(tmp_path / "x.pcap", "1/300") == [(1, 90)]


def test_packets_are_sent_at_their_times_with_their_sizes(tmp_path):
    (tmp_path / "x.csv").write_text(CSV)
    (tmp_path / "x.toml").write_text(HEAD + 'app = "trace"\nfile = "x.csv"\nof_vc = "0/40"\nspeed = 0.5\n')
    result = run_experiment(load(str(tmp_path / "x.toml")))
    (flow,) = result.flows
    assert (flow["datagrams_received"], flow["blocks_written"], flow["blocks_late"]) == (3, 3, 0)
    assert flow["octets_delivered"] == 500 + 1000 + 24  # the last one is filled up to its stamp
    assert flow["blocks_filled"] == 1
    assert result.summary["status"] == "done"
    assert 0.0160 < result.summary["time"]["simulated_s"] <= 0.03


def test_frames_come_one_a_period_and_over_again(tmp_path):
    (tmp_path / "x.txt").write_text("# octets\n3000\n\n0\n500\n")
    (tmp_path / "x.toml").write_text(
        HEAD + 'app = "video"\nfile = "x.txt"\nperiod = "4 ms"\nbegin = "first"\nduration = "22 ms"\n'
    )
    (flow,) = run_experiment(load(str(tmp_path / "x.toml"))).flows
    assert flow["octets_written"] == 2 * 3000 + 2 * 500  # at 0, 8, 12, 20 ms


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("octets", "100\n250\n"),
        ("bits", "800\n2000\n"),
        ("verbose", "1 I 0 100\n2 P 40 250\n"),
        ("evalvid", "1 I 100 1 0.0\n2 P 250 1 0.04\n"),
    ],
)
def test_formats_of_video_traces(form, text, tmp_path):
    (tmp_path / "x").write_text(text)
    assert frames(tmp_path / "x", form) == [100, 250]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.csv:1: expected a line with the columns 'time', 'size' and maybe 'vc'"),
        (b"time,size\n", "x.csv: has no packet"),
        (b"time,size\n1,2,3\n", "x.csv:2: has 3 columns, and the first line 2"),
        (b"time,size\n1,ten\n", "x.csv:2: size: 'ten' is no number"),
        (b"time,size\n-1,10\n", "x.csv:2: time: -1 is out of range 0..100000"),
        (b"time,size\nnan,10\n", "x.csv:2: time: nan is out of range 0..100000"),
        (b"\xff\xfe\x00", "x.csv: neither a capture (pcap, pcapng) nor UTF-8 text"),
        (b"\xd4\xc3\xb2\xa1" + bytes(20), "x.csv: has no packet"),
        (b"\xd4\xc3\xb2\xa1" + bytes(16) + b"\x69\0\0\0" + bytes(16), "x.csv: link type 105 is not among"),
        (b"\xd4\xc3\xb2\xa1" + bytes(30), "x.csv: ends within a packet, at octet 24"),
        (b"\x0a\x0d\x0d\x0a\x05\0\0\0\x4d\x3c\x2b\x1a", "x.csv: ends within a block, or has a wrong length"),
    ],
)
def test_a_file_that_is_no_trace_is_one_line(content, message, tmp_path, capsys):
    (tmp_path / "x.csv").write_bytes(content)
    (tmp_path / "x.toml").write_text(HEAD + 'app = "trace"\nfile = "x.csv"\n')
    assert main(["show", str(tmp_path / "x.toml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line and re.match(r"bentpipe: x.toml:\d+: flow.0.file: ", line)


def test_a_missing_file_or_vc_is_one_line(tmp_path, capsys):
    (tmp_path / "x.csv").write_text(CSV)
    (tmp_path / "x.toml").write_text(HEAD + 'app = "trace"\nfile = "x.csv"\n')
    for setting, message in (
        ("flow.0.of_vc=0/42", "x.csv: has no packet of VC '0/42'; it has 0/40, 0/41"),
        ("flow.0.file=y.csv", "y.csv: No such file or directory"),
    ):
        assert main(["show", str(tmp_path / "x.toml"), "--set", setting]) == 2
        assert message in capsys.readouterr().err
