"""SONET lines in a network: the same PDUs as with lines of cells, errors, clock offsets, loss of signal."""

import re

import pytest
from scapy.layers.inet import IP, TCP
from scapy.utils import RawPcapReader

from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_beside_cells, run_experiment
from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.sonet.line import SonetLine
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.interface import PduStatus
from bentpipe_sim.network import Network

MS = 10**9
PS = 10**12
CELL_PS = 2_831_197


def two_hosts(line="sonet", ber=(0.0, 0.0), ppm=0.0, seed=1, rate=149_760_000):
    """Two NICs on one line; a VC each way."""
    network = Network(seed=seed)
    a, b = network.add_nic("a", line=NicLine(rate)), network.add_nic("b", line=NicLine(rate))
    if line == "sonet":
        sonet = network.add_sonet_line("line", SonetSettings(sts=3 if rate < 599_040_000 else 12, ber=ber, ppm=ppm))
        for end, nic in enumerate((a, b)):
            network.connect(nic, (sonet, end))
            network.connect((sonet, end), nic)
        ways = [sonet], [sonet]
    else:
        ways = [network.add_link("out")], [network.add_link("back")]
        for nic, (link,), other in ((a, ways[0], b), (b, ways[1], a)):
            network.connect(nic, link)
            network.connect(link, other)
    forth = network.add_vc([a, *ways[0], b], 0, 100)
    back = network.add_vc([b, *ways[1], a], 0, 101)
    network.start()
    return network, (a, b), (forth, back), ways[0][0]


def exchange(network, nics, vcs, pdus=60, until=40 * MS):
    """PDUs both ways at once; what arrives at each NIC, in order: (offset, status)."""
    for k in range(pdus):
        network.send(nics[0].index, vcs[0], k.to_bytes(4, "big"), key=1, offset=k, length=1000 + 37 * k)
        network.send(nics[1].index, vcs[1], k.to_bytes(4, "big"), key=2, offset=k, length=1500 + 11 * k)
    got = {nic.index: [] for nic in nics}
    times = []
    while network.now_ps < until:
        for event in network.run(until):
            key, base, step = (2, 1500, 11) if event.nic == nics[0].index else (1, 1000, 37)
            number = int.from_bytes(event.head[:4], "big") if event.status == PduStatus.OK else -1
            if number >= 0:
                assert network.check(event.handle, 4, key, number, base + step * number)
            got[event.nic].append((number, event.status))
            times.append(event.time_ps)
    network.check_conservation()
    return [got[nic.index] for nic in nics], times


def terminals(network, line):
    """Return the state at both ends after half a millisecond."""
    line.driver.latch()
    network.run(network.now_ps + MS // 2)
    return [line.driver.terminal(end) for end in range(2)]


def test_the_same_pdus_in_the_same_order_as_with_cells():
    results = [exchange(*two_hosts(line)[:3]) for line in ("cell", "sonet")]
    (cells, at), (frames, later) = results
    assert frames == cells == [[(k, PduStatus.OK) for k in range(60)]] * 2
    # a line of frames holds a cell for a few cell times, and never gives one early
    assert all(0 < b - a < 6 * CELL_PS for a, b in zip(sorted(at), sorted(later), strict=True))


def test_cells_at_both_ends_in_one_word_and_in_the_next():
    """A full OC-12c has a cell for each end in most words: that of one waits for a tick, and the next comes soon."""
    (a, b), _ = exchange(*two_hosts(rate=599_040_000)[:3])
    assert a == b == [(k, PduStatus.OK) for k in range(60)]


def test_the_same_twice():
    first, second = (exchange(*two_hosts(ber=(1e-5, 1e-5))[:3]) for _ in range(2))
    assert first == second
    assert any(status != PduStatus.OK for end in first[0] for _, status in end)


@pytest.mark.parametrize("ppm", [20, -20, 100, -100])
def test_a_clock_offset_moves_pointers_and_loses_nothing(ppm):
    """8000 frames a second and 783 units of a frame: 1 ppm asks for 0.0063 movements a frame of 8 a second and ppm."""
    slower = round(149_760_000 * (1 - abs(ppm) * 1e-6))
    network, nics, vcs, line = two_hosts(ppm=ppm, rate=slower)
    got, _ = exchange(network, nics, vcs, pdus=300, until=250 * MS)
    assert got == [[(k, PduStatus.OK) for k in range(300)]] * 2
    ends = terminals(network, line)
    frames = ends[0]["count_frames"] - SonetLine.START  # those of the start had no offset yet
    expected = frames * 783 * abs(ppm) * 1e-6
    more, less = ("positive", "negative") if ppm > 0 else ("negative", "positive")
    for end, kind, other in ((1, more, less), (0, less, more)):
        assert ends[end][f"count_{kind}"] == pytest.approx(expected, abs=2)
        assert ends[end][f"count_{other}"] == 0
        assert ends[end]["defects"] == 0
    assert line.counters()["drop_full"] == 0


def test_a_loss_of_signal_loses_cells_and_gives_no_wrong_one():
    network, nics, vcs, line = two_hosts()
    network.run(1 * MS)
    line.driver.lose_signal(0, 2160)  # 1 ms from end 0 to end 1
    got, _ = exchange(network, nics, vcs, pdus=200, until=200 * MS)
    forth, back = got[1], got[0]
    assert back == [(k, PduStatus.OK) for k in range(200)]
    numbers = [number for number, status in forth if status == PduStatus.OK]
    assert numbers == sorted(set(numbers)) and numbers[-1] == 199
    assert 100 < len(numbers) < 200
    ends = terminals(network, line)
    assert [end["defects"] for end in ends] == [0, 0]
    assert ends[1]["count_ocd"] == 1 and ends[0]["count_ocd"] == 0
    assert ends[1]["changed"] and ends[0]["changed"]  # LOS here, RDI there


def test_errors_on_the_bytes_are_counted():
    network, nics, vcs, line = two_hosts(ber=(1e-5, 0.0))
    exchange(network, nics, vcs, pdus=200, until=100 * MS)
    ends = terminals(network, line)
    bits = line.counters()["error_bits"]
    assert bits[1] == 0 and bits[0] == pytest.approx(0.1 * 155.52e6 * 1e-5, abs=5 * 12.5)
    # B3 sees the payload and its overhead, B2 all but the section's; far errors come back by REI
    assert ends[1]["count_b2"] == pytest.approx(bits[0], rel=0.15)
    assert ends[1]["count_b3"] == pytest.approx(bits[0] * 87 / 90, rel=0.15)
    assert ends[0]["count_rei_l"] == pytest.approx(ends[1]["count_b2"], abs=8)
    assert ends[0]["count_b2"] == ends[0]["count_b3"] == 0


@pytest.mark.parametrize(("way", "slip"), [(0, 13), (1, 64)])
def test_a_signal_that_comes_back_at_another_bit(way, slip):
    network, nics, vcs, line = two_hosts()
    network.run(1 * MS)
    line.driver.lose_signal(way, 108)  # 50 us
    line.driver.slip(way, slip)
    network.run(3 * MS)
    got, _ = exchange(network, nics, vcs)
    assert got == [[(k, PduStatus.OK) for k in range(60)]] * 2


@pytest.mark.parametrize("bit", [0, 7, 5])
def test_one_bit_at_a_chosen_place(bit):
    """E1: the second of the three columns of section overhead, in row 2."""
    network, _, _, line = two_hosts()
    place = 8 * (270 + 3) + bit
    line.driver.invert(0, place)
    seen = set()
    for _ in range(20):
        network.run(network.now_ps + 20_000_000)
        seen.add((line.driver.terminal(0)["received_e1"], line.driver.terminal(1)["received_e1"]))
    assert seen == {(0, 0), (0, 0x80 >> bit)}
    near = terminals(network, line)[1]
    assert (near["count_b1"], near["count_b2"], near["count_b3"]) == (1, 0, 0)  # section overhead: not in B2
    with pytest.raises(ValueError, match="a frame of STS-3c has bits 0 to 19439, not 19440"):
        line.driver.invert(0, 19440)


def test_a_burst_is_seen_by_parity():
    network, nics, vcs, line = two_hosts()
    network.run(1 * MS)
    line.driver.burst(1, 21)
    exchange(network, nics, vcs)
    ends = terminals(network, line)
    assert line.counters()["hit_words"] == [0, 21]
    assert ends[0]["count_b3"] > 0 and ends[1]["count_b3"] == 0


ACCOUNT = {
    "queued": [1, 0],
    "sent": [10, 20],
    "landed": [10, 20],
    "received": [20, 10],
    "errored": [0, 0],
    "drop_full": 2,
    "drop_hec": 3,
    "under_way": 0,
    "hit_words": [0, 0],
}


@pytest.mark.parametrize(
    ("change", "cells", "message"),
    [
        ({}, (36, 30), None),
        ({}, (37, 30), "cells in = sent + waiting + dropped"),
        ({}, (36, 31), "cells received = cells out"),
        ({"received": [18, 10], "errored": [1, 0]}, (36, 29), "1 cells lost from end 1 to 0 by 0 words"),
        ({"received": [18, 10], "errored": [1, 0], "hit_words": [0, 1]}, (36, 29), None),
        ({"received": [20, 11]}, (36, 31), "1 cells made up from end 0 to 1 by 0 words"),
        ({"received": [20, 8], "landed": [8, 20]}, (36, 28), None),
    ],
)
def test_the_account_of_a_line(change, cells, message):
    line = Network().add_sonet_line("line")
    line.read = lambda addr: 0
    line.driver.counters = lambda: ACCOUNT | change
    if message is None:
        line.check(*cells)
    else:
        with pytest.raises(NetworkError, match=re.escape(message)):
            line.check(*cells)


def test_cells_lost_with_a_defect_are_counted():
    network, nics, vcs, line = two_hosts()
    network.send(nics[0].index, vcs[0], b"", key=1, length=40_000)
    network.run(1 * MS)
    line.driver.lose_signal(0, 1000)
    while network.now_ps < 5 * MS:
        network.run(5 * MS)
    counters = line.counters()
    lost = counters["sent"][0] - counters["received"][1] - counters["errored"][1]
    assert counters["drop_line"] == [lost, 0] and 50 < lost < 834
    assert counters["hit_words"] == [1000, 0]
    network.check_conservation()


def packets(folder):
    """TCP segments that a host got from the other: what doesn't depend on the time."""
    with RawPcapReader(str(folder / "alpha2.ip.pcap")) as reader:
        got = [IP(octets) for octets, _ in reader]
    return [(p[TCP].seq, p[TCP].flags, bytes(p[TCP].payload)) for p in got if p.src == "10.0.0.1"]


def test_a_transfer_with_all_lines_sonet(tmp_path):
    settings = ["flow.0.size=1 MB", 'record.pcap=["ip:alpha2"]']
    e = load("lan-1flow", ["line=sonet", *settings])
    assert e.network.sonet and all(host.framing for host in e.network.hosts)
    folders = [tmp_path / kind for kind in ("sonet", "cell")]
    for folder in folders:
        folder.mkdir()
    result = run_experiment(e, capture_folder=folders[0])
    run_experiment(load("lan-1flow", settings), capture_folder=folders[1])
    sonet, cell = map(packets, folders)
    assert sonet == cell and sum(len(octets) for _, _, octets in sonet) == 1_000_000
    run_beside_cells(e, result)
    (flow,) = result.flows
    assert result.summary["status"] == "done"
    assert (flow["octets_delivered"], flow["bad_octets"], flow["retransmits"]) == (1_000_000, 0, 0)
    beside = result.summary["cell_lines"]
    assert beside["difference_bps"] == pytest.approx(0, abs=0.02 * beside["aggregate_goodput"])
    assert beside["difference_bps"] != 0  # frames hold cells up a little
    assert set(result.summary["counters"]) >= {"lan.line", "alpha1.line", "alpha2.line"}


def test_errors_on_a_line_make_tcp_retransmit():
    settings = ["network.lines.lan.line=sonet", "network.lines.lan.ber=2e-6", "flow.0.size=200 kB"]
    quick = ["hosts.tcp.timers=ideal", "hosts.tcp.ack_policy=immediate"]
    result = run_experiment(load("lan-1flow", settings + quick, seed=3))
    (flow,) = result.flows
    assert result.summary["status"] == "done"
    assert flow["octets_delivered"] == 200_000 and flow["bad_octets"] == 0 and flow["retransmits"] > 0
    assert result.summary["counters"]["lan.line"]["error_bits"][0] > 0


def test_only_sonet_rates_can_be_sonet():
    from bentpipe.errors import ConfigError

    with pytest.raises(ConfigError, match=r"network\.lines\.lan has 40.704 Mb/s; SONET is OC-3c or OC-12c"):
        load("lan-1flow", ["network.lines.lan.rate=DS-3", "network.switches.*.ports=4", "network.lines.lan.line=sonet"])
    with pytest.raises(ConfigError, match='a clock offset needs line = "sonet"'):
        load("lan-1flow", ["network.lines.lan.ppm=20"])
    e = load("lan-1flow", ["network.lines.lan.ppm=-20", "network.lines.lan.line=sonet"])
    assert e.network.lines[0].framing.ppm == -20
    assert e.network.switches[0].ports[3].rate_bps == round(149_760_000 * (1 - 20e-6))
    assert e.network.lines[0].of_cells().framing is None
