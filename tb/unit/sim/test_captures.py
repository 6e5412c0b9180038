"""Captures: what scapy and tshark read in them is what was sent, with right checksums and times."""

from __future__ import annotations

import itertools
import shutil
import statistics
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import LLC, SNAP
from scapy.utils import RawPcapReader

from bentpipe.apps.ttcp import Ttcp
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import Engine
from bentpipe.hosts.flow import Flow
from bentpipe.tcp.config import TcpConfig
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from bentpipe_sim.pattern import pattern
from models.aal5 import cpcs_pdu
from models.wire import ones_sum

MS = 10**9
SIZE = 40 * 1460


@dataclass
class Record:
    time_ns: int
    octets: bytes


def records(path: Path, link: int) -> list[Record]:
    """Everything in a pcap file, read by scapy; nanoseconds and link type as they should be."""
    with RawPcapReader(str(path)) as reader:
        assert (reader.linktype, reader.nano) == (link, True)
        found = [Record(meta.sec * 10**9 + meta.usec, bytes(octets)) for octets, meta in reader]
    times = [record.time_ns for record in found]
    assert times == sorted(times)
    return found


def checked(octets: bytes) -> IP:
    """An IP packet whose IP and TCP checksums are right."""
    packet = IP(octets)
    assert packet.len == len(octets) and ones_sum(octets[:20]) == 0xFFFF
    pseudo = octets[12:20] + struct.pack(">HH", 6, len(octets) - 20)
    assert ones_sum(pseudo + octets[20:]) == 0xFFFF
    return packet


def transfer(folder: Path, ber: float = 0.0) -> tuple[Flow, Network]:
    """A TCP transfer over a link of 2 ms; everything captured at the source and at both ends of the link."""
    network = Network(seed=3)
    a, b = network.add_nic("a"), network.add_nic("b")
    west, east = network.add_switch("west"), network.add_switch("east")
    out = network.add_link("out", LinkSettings(delay_ps=2 * MS, ber=ber))
    back = network.add_link("back", LinkSettings(delay_ps=2 * MS, ber=ber))
    for node, face in ((a, (west, 0)), (b, (east, 0))):
        network.connect(node, face)
        network.connect(face, node)
    for source, sink in (((west, 3), out), (out, (east, 3)), ((east, 3), back), (back, (west, 3))):
        network.connect(source, sink)
    forth = network.add_vc([a, west, out, east, b], 7, 100)
    reply = network.add_vc([b, east, back, west, a], 7, 101)
    network.capture(folder / "host", "ip", a)
    network.capture(folder / "host-line", "pdus", a)
    for kind in ("ip", "pdus", "cells"):
        network.capture(folder / f"west-{kind}", kind, (west, 3))
        network.capture(folder / f"east-{kind}", kind, (east, 3))
    engine = Engine(network)
    hosts = [engine.add_host(HostConfig(name=n.name, mtu=1500), n.index) for n in (a, b)]
    tcp = TcpConfig(variant="sack", timestamps=True, send_buffer=30000, receive_buffer=30000, ack_policy="immediate")
    flow = engine.add_tcp_flow("flow", *hosts, forth, reply, tcp, app=Ttcp(SIZE))
    engine.run(10 * 10**12)
    assert flow.finished
    network.end_captures()
    return flow, network


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Flow, Network]:
    folder = tmp_path_factory.mktemp("clean")
    return folder, *transfer(folder)


def test_a_host_sees_what_it_sends_and_gets(clean: tuple[Path, Flow, Network]) -> None:
    folder, flow, _ = clean
    found = records(folder / "host", 101)
    packets = [checked(record.octets) for record in found]
    sent = [p for p in packets if p.src == "10.0.0.1"]
    assert len(sent) == flow.source.connection.sender.statistics.segments_sent
    assert len(packets) - len(sent) == flow.source.connection.segments_received
    assert dict(packets[0][TCP].options)["MSS"] == 1460
    base = (packets[0][TCP].seq + 1) & 0xFFFFFFFF
    data = {(p[TCP].seq - base): bytes(p[TCP].payload) for p in sent if len(p[TCP].payload)}
    assert b"".join(data[at] for at in sorted(data)) == pattern(flow.source.key, 0, SIZE)
    assert found[0].time_ns == 0
    assert 4_000_000 < found[1].time_ns < 4_100_000


def test_a_line_has_the_same_packets(clean: tuple[Path, Flow, Network]) -> None:
    """In LLC/SNAP, later by the way to the line and back."""
    folder, _, _ = clean
    host = records(folder / "host", 101)
    for end, link in (("west-ip", 100), ("east-ip", 100), ("west-pdus", 123), ("host-line", 123)):
        skip = 4 if link == 123 else 0
        found = records(folder / end, link)
        frames = [LLC(record.octets[skip:]) for record in found]
        assert all((f.dsap, f.ctrl, f[SNAP].code) == (0xAA, 3, 0x0800) for f in frames)
        assert sorted(r.octets[8 + skip :] for r in found) == sorted(r.octets for r in host)
    west, east = (records(folder / f"{end}-ip", 100) for end in ("west", "east"))
    syn_at = [
        next(r.time_ns for r in at if checked(r.octets[8:])[TCP].flags == "S") for at in (host_ip(host), west, east)
    ]
    assert 1_999_000 < syn_at[2] - syn_at[1] < 2_001_000
    assert 0 < syn_at[1] - syn_at[0] < 30_000


def host_ip(host: list[Record]) -> list[Record]:
    return [Record(r.time_ns, bytes(8) + r.octets) for r in host]


def test_pdus_have_vpi_vci_and_direction(clean: tuple[Path, Flow, Network]) -> None:
    folder, _, _ = clean
    for name in ("west-pdus", "host-line"):
        heads = {(r.octets[:4], checked(r.octets[12:]).src) for r in records(folder / name, 123)}
        assert heads == {(b"\x82\x07\x00\x64", "10.0.0.1"), (b"\x02\x07\x00\x65", "10.0.0.2")}
    heads = {(r.octets[:4], checked(r.octets[12:]).src) for r in records(folder / "east-pdus", 123)}
    assert heads == {(b"\x02\x07\x00\x64", "10.0.0.1"), (b"\x82\x07\x00\x65", "10.0.0.2")}


def cells(path: Path) -> list[tuple[int, int, int, bytes]]:
    """Time, flags, header and payload of each cell; the ERF header's own fields are right."""
    found = []
    for record in records(path, 197):
        fraction, seconds, kind, flags, rlen, lost, wlen, header = struct.unpack(
            "<IIBB", record.octets[:10]
        ) + struct.unpack(">HHHI", record.octets[10:20])
        assert (kind, flags & 4, rlen, lost, wlen, len(record.octets)) == (3, 4, 68, 0, 52, 68)
        assert abs(seconds * 10**9 + fraction * 10**9 / 2**32 - record.time_ns) < 2
        found.append((record.time_ns, flags, header, record.octets[20:]))
    return found


def test_cells_make_the_pdus(clean: tuple[Path, Flow, Network]) -> None:
    folder, _, network = clean
    found = cells(folder / "west-cells")
    stats = network.stats()
    assert len(found) == stats["out"]["cells_in"] + stats["back"]["cells_out"]
    pdus = []
    for interface, vci in ((0, 100), (1, 101)):
        way = [(header, payload) for _, flags, header, payload in found if flags & 3 == interface]
        assert {header >> 4 for header, _ in way} == {7 << 16 | vci}
        whole = b""
        for header, payload in way:
            whole += payload
            if header & 2:
                length = int.from_bytes(whole[-6:-4], "big")
                pdus.append(whole[:length])
                assert whole == cpcs_pdu(pdus[-1])
                whole = b""
        assert whole == b""
    assert sorted(pdus) == sorted(record.octets for record in records(folder / "west-ip", 100))
    times = [time for time, flags, *_ in found if not flags & 1]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert statistics.median(gaps) in (2831, 2832)  # of an OC-3c line


def test_errors_show_at_the_far_end_only(tmp_path: Path) -> None:
    """Damaged PDUs are missing where they come, there where they leave; cells with a wrong header are marked."""
    flow, network = transfer(tmp_path, ber=2e-5)
    assert flow.source.connection.sender.statistics.retransmits > 0
    counters = network.counters()
    west = [r.octets for r in records(tmp_path / "west-pdus", 123) if r.octets[0] & 0x80]
    east = [r.octets for r in records(tmp_path / "east-pdus", 123) if not r.octets[0] & 0x80]
    damaged = sum(sum(counters["b"][f"pdus_{what}"]) for what in ("crc", "length", "lost_last"))
    assert damaged > 0 and len(east) == sum(counters["b"]["pdus_ok"]) < len(west)
    sent = cells(tmp_path / "west-cells")
    came = cells(tmp_path / "east-cells")
    assert not any(flags & 16 for _, flags, *_ in sent if not flags & 1)
    assert sum(not flags & 1 for _, flags, *_ in sent) == network.stats()["out"]["cells_in"]
    assert sum(flags & 1 for _, flags, *_ in came) == network.stats()["out"]["cells_out"]


def test_cells_with_a_wrong_header_are_marked(tmp_path: Path) -> None:
    network = Network(seed=5)
    a, b = network.add_nic("a"), network.add_nic("b")
    out = network.add_link("out", LinkSettings(ber=1e-3))
    network.connect(a, out)
    network.connect(out, b)
    network.connect(b, a)
    vc = network.add_vc([a, out, b], 0, 100)
    network.capture(tmp_path / "a", "cells", a)
    network.capture(tmp_path / "b", "cells", b)
    for _ in range(60):
        network.send(a.index, vc, bytes(9180))
    while network.now_ps < 60 * MS:
        network.run(60 * MS)
    network.end_captures()
    sent, came = cells(tmp_path / "a"), cells(tmp_path / "b")
    assert {flags for _, flags, *_ in sent} == {4} and len(sent) == 60 * 192
    marked = sum(flags & 16 == 16 for _, flags, *_ in came)
    assert len(came) == len(sent) and marked == network.counters()["b"]["drop_hec"] > 0
    assert {flags for _, flags, *_ in came} == {4 | 1, 4 | 1 | 16}


def tshark(path: Path, *arguments: str) -> list[list[str]]:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark isn't installed (apt install tshark)")
    options = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-T", "fields"]
    fields = [word for field in arguments for word in ("-e", field)]
    done = subprocess.run([program, "-n", "-r", str(path), *options, *fields], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ["host", "west-ip", "west-pdus"])
def test_tshark_finds_the_checksums_right(clean: tuple[Path, Flow, Network], name: str) -> None:
    folder, flow, _ = clean
    rows = tshark(
        folder / name, "ip.checksum.status", "tcp.checksum.status", "tcp.stream", "tcp.analysis.retransmission"
    )
    total = flow.source.connection.sender.statistics.segments_sent + flow.source.connection.segments_received
    assert rows == [["1", "1", "0", ""]] * total


def test_tshark_reads_vpi_vci_of_pdus_and_cells(clean: tuple[Path, Flow, Network]) -> None:
    folder, _, _ = clean
    for name in ("west-pdus", "west-cells"):
        assert {tuple(row) for row in tshark(folder / name, "atm.vpi", "atm.vci")} == {("7", "100"), ("7", "101")}


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    network = Network()
    a, b = network.add_nic("a"), network.add_nic("b")
    network.connect(a, b)
    network.connect(b, a)
    vc = network.add_vc([a, b], 0, 100)
    network.capture(full, "cells", a)
    network.capture(tmp_path / "other", "cells", a)
    network.send(a.index, vc, bytes(100))
    network.run(MS)
    assert network.end_captures() == {full: "No space left on device"}
    assert len((tmp_path / "other").read_bytes()) > 24, "the others are whole"


def test_captures_that_cannot_be(tmp_path: Path) -> None:
    network = Network()
    a = network.add_nic("a")
    with pytest.raises(NetworkError, match="one of ip, pdus, cells, not frames"):
        network.capture(tmp_path / "x", "frames", a)
    with pytest.raises(NetworkError, match="a has no line at port 0"):
        network.capture(tmp_path / "x", "ip", a)
