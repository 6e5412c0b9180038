"""Hosts outside: when what came goes in, when what came out leaves, what is late and what is refused. The clock goes on
when it is waited for (:meth:`Attachment.by_hand`), so every time is exact."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.ticks import TICK_PS
from bentpipe_sim.attached import Attachment, Carries, EndPort, Late, Transport
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.network import Network
from models.aal5 import Reassembly, segment
from models.cell import Cell, Header
from models.hec import hec

MS = 10**9
NS_MS = 10**6
DELAY = 100 * MS
LAG = 20 * MS
TICK_NS = TICK_PS / 1000
BRIDGED = bytes.fromhex("aaaa030080c200070000")  # RFC 2684 figure 5.2.1, without FCS
ROUTED = bytes.fromhex("aaaa030000000800")  # RFC 2684 5.1


class Apart:
    """Two hosts, 100 ms apart by what is configured; ``lag`` is taken from that."""

    def __init__(
        self,
        lag: int = LAG,
        carries: tuple[Carries, Carries] = (Carries.FRAMES, Carries.FRAMES),
        late: Late = Late.REPORT,
        queue: int = 1000,
        longest: int = 1518,
        inside: bool = False,
    ) -> None:
        self.network = network = Network(seed=1)
        self.nics = [network.add_nic(name) for name in ("a", "b", "c", "d")[: 4 if inside else 2]]
        west, east = network.add_switch("west"), network.add_switch("east")
        there, back = (network.add_link(name, LinkSettings(delay_ps=DELAY - lag)) for name in ("there", "back"))
        for k, nic in enumerate(self.nics):
            face = ((west, east)[k % 2], k // 2)
            network.connect(nic, face)
            network.connect(face, nic)
        for face, link, after in (((west, 3), there, (east, 3)), ((east, 3), back, (west, 3))):
            network.connect(face, link)
            network.connect(link, after)
        a, b = self.nics[:2]
        vcs = [network.add_vc([a, west, there, east, b], 0, 32), network.add_vc([b, east, back, west, a], 0, 33)]
        if inside:
            c, d = self.nics[2:]
            self.inside = network.add_vc([c, west, there, east, d], 0, 40)
        self.attachment = Attachment(network, lag * 3 // 4, lag, late)
        self.ends = [
            self.attachment.add(nic, EndPort(kind, Transport.DEVICE, -1, longest, queue))
            for nic, kind in zip((a, b), carries, strict=True)
        ]
        self.attachment.join(0, 1, vcs[0], DELAY)
        self.attachment.join(1, 0, vcs[1], DELAY)

    def go(self, ms: float = 300) -> list[tuple[int, int, bytes]]:
        """Run; what left since the beginning: end, when, octets."""
        while self.network.now_ps < ms * MS:
            self.network.run(min(self.network.now_ps + 50 * MS, round(ms * MS)))
        return [(each.end, each.at_ns, each.octets) for each in self.attachment.released()]

    def count(self, end: int) -> dict[str, Any]:
        return {name: value for name, value in self.attachment.counts(end).items() if value and name != "wrong"}

    def check(self) -> None:
        self.network.check_conservation()
        for account in self.network.ledger():
            assert account.sent == account.delivered + sum(account.lost.values())


def frame(number: int, size: int = 600, to: int = 2, by: int = 1) -> bytes:
    """An Ethernet frame from one station to another."""
    station = b"\x02\0\0\0\0"
    return station + bytes([to]) + station + bytes([by]) + b"\x08\0" + bytes([number % 256]) * (size - 14)


def by_hand(**given: Any) -> Apart:
    path = Apart(**given)
    path.attachment.by_hand()
    return path


def test_what_the_slack_takes_from_the_path_it_gives_back() -> None:
    """Packets leave at the same times whatever part of the path's delay is used as slack."""
    times = []
    for lag in (4 * MS, 20 * MS):
        path = by_hand(lag=lag)
        for k in range(100):
            path.attachment.arrive(k % 2, 700_001 * k + 13, frame(k, 64 + 9 * k))
        left = path.go()
        assert [octets for end, _, octets in left if end == 1] == [frame(k, 64 + 9 * k) for k in range(0, 100, 2)]
        times.append([at for _, at, _ in left])
        path.check()
    assert len(times[0]) == 100
    assert max(abs(one - other) for one, other in zip(*times, strict=True)) <= 2 * TICK_NS


def test_none_is_faster_than_its_path_and_none_leaves_before_its_time() -> None:
    path = by_hand()
    for k in range(50):
        path.attachment.arrive(0, 1_000_000 * k + 77, frame(k))
    path.go()
    beyond, jitter = (path.attachment.times(what, 1) for what in ("beyond", "jitter"))
    assert (beyond.count, jitter.least, jitter.most) == (50, 0, 0)
    # 14 cells of OC-3c on the host's line, one more on each of two switches' lines, and their processing delays.
    assert 16 * 2831 < beyond.least <= beyond.most < 16 * 2831 + 2 * 5000 + 1000


def test_all_may_stand_still_for_less_than_the_slack() -> None:
    times = []
    for length in (0, 10 * NS_MS):
        path = by_hand()
        for k in range(40):
            path.attachment.arrive(0, 1_000_000 * k, frame(k))
        if length:
            path.attachment.stall(20 * NS_MS, length)
        times.append(path.go())
        assert "late" not in path.count(0) and "out_late" not in path.count(1)
    assert times[0] == times[1]


def test_when_all_stand_still_for_longer_that_is_said_and_times_stay_in_order() -> None:
    path = by_hand()
    for k in range(200):
        path.attachment.arrive(0, 1_000_000 * k, frame(k))
    path.attachment.stall(150 * NS_MS, 200 * NS_MS)
    left = path.go(600)
    counts, late = path.count(1), path.attachment.times("computed_late", 1)
    assert len(left) == 200 and "late" not in path.count(0)
    assert counts["out_late"] == late.count > 100  # those that were to leave meanwhile
    assert 180 * NS_MS < late.most < 200 * NS_MS
    assert path.attachment.behind_ns(most=True) > 190 * NS_MS
    assert all(at >= 100 * NS_MS + 1_000_000 * k for k, (_, at, _) in enumerate(left))


@pytest.mark.parametrize("late", list(Late))
def test_what_is_read_too_late_never_goes_in_at_a_time_that_is_over(late: Late) -> None:
    path = by_hand(late=late)
    path.go(50)
    path.attachment.arrive(0, 10 * NS_MS, frame(1))  # read when simulated time is at 50 ms
    left = path.go(300)
    counts, times = path.count(0), path.attachment.times("late", 0)
    assert (counts["late"], times.count) == (1, 1)
    assert abs(times.least - 40 * NS_MS) <= TICK_NS
    if late is Late.DROP:
        assert (left, counts["late_dropped"]) == ([], 1)
    else:
        assert [at >= 150 * NS_MS for _, at, _ in left] == [True]
    assert path.attachment.over == ("late" if late is Late.ABORT else "")


@pytest.mark.parametrize(("delay_ms", "late"), [(14, 0), (18, 1)])
def test_what_is_read_within_the_slack_for_computing_goes_in_at_its_tick(delay_ms: int, late: int) -> None:
    """Simulated time is 15 ms behind the clock."""
    path = by_hand()
    path.attachment.arrive(0, 40 * NS_MS, frame(1), 40 * NS_MS + delay_ms * NS_MS)
    ((_, at, _),) = path.go()
    assert path.count(0).get("late", 0) == late
    assert (at < 140 * NS_MS + 20 * 2831) is not bool(late)


def test_what_is_computed_too_late_is_dropped_where_that_is_asked_for() -> None:
    path = by_hand(late=Late.DROP)
    for k in range(40):
        path.attachment.arrive(0, 1_000_000 * k, frame(k))
    path.attachment.stall(100 * NS_MS, 30 * NS_MS)
    left, counts = path.go(), path.count(1)
    assert counts["out_late"] == counts["out_late_dropped"] > 5
    assert len(left) + counts["out_late"] == 40


def test_the_queue_of_an_attached_interface_is_bounded() -> None:
    path = by_hand(queue=10)
    for k in range(30):
        path.attachment.arrive(0, 1000, frame(k, 1500))
    assert len(path.go()) == 10
    assert (path.count(0)["refused"], path.attachment.refused(0)(0)) == (20, 20)
    path.check()


def test_hosts_inside_and_outside_share_a_line() -> None:
    path = by_hand(inside=True)
    c, d = (nic.index for nic in path.nics[2:])
    for k in range(50):
        path.attachment.arrive(0, 1_000_000 * k, frame(k))
        path.network.send(c, path.inside, bytes([k]) * 500)
    got = []
    while path.network.now_ps < 300 * MS:
        events = path.network.run(300 * MS)
        got += [path.network.sdu(event.handle) for event in events if event.nic == d]
    assert got == [bytes([k]) * 500 for k in range(50)]
    assert len(path.go()) == 50
    path.check()


def test_a_capture_has_the_ip_packets_of_tagged_frames(tmp_path: Path) -> None:
    """Untagged, with a tag, with a provider's and a customer's, and a frame that ends in its tags."""
    path = Apart()
    path.network.capture(tmp_path / "ip.pcap", "ip", path.nics[0])
    path.attachment.by_hand()
    packet = bytes.fromhex("4500001400000000401100000a0000010a000002")
    head = frame(1)[:12]
    for k, tags in enumerate(("", "8100000a", "88a800148100000a", "8100000a86dd", "8100000a8100")):
        path.attachment.arrive(0, k * NS_MS, head + bytes.fromhex(tags + "0800"[: 4 * (k < 3)]) + packet * (k < 3))
    path.go()
    path.network.close()
    captured = (tmp_path / "ip.pcap").read_bytes()
    assert captured.count(packet) == 3 and len(captured) == 24 + 3 * (16 + len(packet))


def test_events_of_hosts_inside_are_read_where_they_are() -> None:
    """Events of hosts outside, which the event loop handles itself, make it move all events to other memory."""
    path = by_hand(inside=True)
    c, d = (nic.index for nic in path.nics[2:])
    times: list[int] = []

    def came(until_ps: int) -> None:
        while path.network.now_ps < until_ps:
            before = path.network.now_ps
            for event in path.network.run(until_ps):
                assert event.nic == d and before <= event.time_ps <= until_ps
                times.append(event.time_ps)

    for at_ms in (0, 300, 600):
        path.network.send(c, path.inside, b"x" * 500)
        came((at_ms + 150) * MS)
        for _ in range(8):  # both ends get as many at the same ticks
            for end in (0, 1):
                path.attachment.arrive(end, (at_ms + 160) * NS_MS, frame(1))
        came((at_ms + 300) * MS)
    assert len(times) == 3


def test_frames_and_packets_are_encapsulated_as_rfc_2684_has_it() -> None:
    """At the other end they come as cells, which the models read."""
    packet = bytes.fromhex("45000064000000004011000000000000c0000201") + bytes(80)
    for kind, sent, sdu in (
        (Carries.FRAMES, frame(1), BRIDGED + frame(1)),
        (Carries.PACKETS, packet, ROUTED + packet),
        (Carries.PACKETS, b"\x60" + bytes(3) + b"\0\x18" + bytes(58), ROUTED[:6] + b"\x86\xdd"),
    ):
        path = by_hand(carries=(kind, Carries.CELLS))
        path.attachment.arrive(0, 0, sent)
        ((_, _, cells),) = path.go()
        assert reassembled(cells)[0][: len(sdu)] == sdu
        assert reassembled(cells)[0][-len(sent) :] == sent


def reassembled(octets: bytes) -> list[bytes]:
    """The SDUs of some cells of VC 0/32, by the models; each cell has the right HEC."""
    peer, found = Reassembly(), []
    for at in range(0, len(octets), 53):
        one = octets[at : at + 53]
        assert hec(one[:4]) == one[4]
        cell = Cell.unpack(one)
        assert (cell.header.vpi, cell.header.vci, cell.header.user) == (0, 32, True)
        result = peer.receive(cell)
        if result is not None:
            assert result.status == 0
            found.append(result.sdu)
    return found


def test_a_cell_peer_written_apart_talks_to_ours() -> None:
    path = by_hand(carries=(Carries.CELLS, Carries.CELLS))
    sdus = [BRIDGED + frame(k, 60 + 31 * k) for k in range(20)]
    for k, sdu in enumerate(sdus):
        for n, cell in enumerate(segment(Header(vpi=0, vci=32), sdu)):
            path.attachment.arrive(0, 1_000_000 * k + 2831 * n, cell.octets())
    assert [sdu for _, _, cells in path.go() for sdu in reassembled(cells)] == sdus
    path.check()


def test_cells_of_dynamips_have_its_crc() -> None:
    path = by_hand(carries=(Carries.DYNAMIPS, Carries.DYNAMIPS))
    made = [cell.octets() for cell in segment(Header(vpi=0, vci=32), BRIDGED + frame(1))]
    for n, cell in enumerate([*made, *as_dynamips(made)]):
        path.attachment.arrive(0, 2831 * n, cell)
    assert [octets for _, _, octets in path.go()] == [b"".join(as_dynamips(made))]
    assert path.count(0)["pdu_wrong"] == 1


def test_a_pdu_with_a_wrong_bit_goes_no_further() -> None:
    path = by_hand(carries=(Carries.CELLS, Carries.CELLS))
    for n, cell in enumerate(segment(Header(vpi=0, vci=32), BRIDGED + frame(1))):
        wrong = bytes([cell.payload[0] ^ (n == 2), *cell.payload[1:]])
        path.attachment.arrive(0, 2831 * n, Cell(cell.header, wrong).octets())
    assert path.go() == []
    assert path.count(0)["pdu_wrong"] == 1 and "injected" not in path.count(0)


def test_a_bridge_learns_where_addresses_are() -> None:
    """Three ends with VCs to each other: what is for all, or for nobody known, goes to both others."""
    network = Network(seed=1)
    nics = [network.add_nic(name) for name in "abc"]
    switch = network.add_switch("s")
    for k, nic in enumerate(nics):
        network.connect(nic, (switch, k))
        network.connect((switch, k), nic)
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    vcs = [network.add_vc([nics[a], switch, nics[b]], 0, 32 + k) for k, (a, b) in enumerate(pairs)]
    attachment = Attachment(network, MS, 2 * MS)
    for nic in nics:
        attachment.add(nic, EndPort(Carries.FRAMES, Transport.DEVICE, -1, 1518, 100))
    for (a, b), vc in zip(pairs, vcs, strict=True):
        attachment.join(a, b, vc, 0)
    attachment.by_hand()
    everyone = b"\xff" * 6 + frame(0, by=1)[6:]
    attachment.arrive(0, 0, everyone)
    attachment.arrive(1, 10 * NS_MS, frame(1, to=1, by=2))
    attachment.arrive(2, 20 * NS_MS, frame(2, to=2, by=3))
    attachment.arrive(0, 30 * NS_MS, frame(3, to=2, by=1))
    network.run(100 * MS)
    went = [(each.end, each.octets) for each in attachment.released()]
    assert Counter(went) == Counter([(1, everyone), (2, everyone), (0, frame(1, to=1, by=2)), (0, frame(2, to=2, by=3)),
                                     (1, frame(2, to=2, by=3)), (1, frame(3, to=2, by=1))])  # fmt: skip


def tagged(octets: bytes, vid: int, pcp: int = 0) -> bytes:
    """A frame with an 802.1Q tag behind its addresses."""
    return octets[:12] + b"\x81\x00" + (pcp << 13 | vid).to_bytes(2, "big") + octets[12:]


def test_a_frames_vlan_selects_its_vc_at_either_end() -> None:
    """Two VCs each way, and other VIDs at the other end, where 0 is a frame without a tag."""
    network = Network(seed=1)
    nics = [network.add_nic(name) for name in "ab"]
    switch = network.add_switch("s")
    for k, nic in enumerate(nics):
        network.connect(nic, (switch, k))
        network.connect((switch, k), nic)
    vids = {(0, 1): [(10, 0), (20, 4094)], (1, 0): [(0, 10), (4094, 20)]}
    joins = [
        (*way, network.add_vc([nics[way[0]], switch, nics[way[1]]], 0, 32 + 2 * way[0] + k), 0, pair)
        for way, pairs in vids.items()
        for k, pair in enumerate(pairs)
    ]
    attachment = Attachment(network, MS, 2 * MS)
    for nic in nics:
        attachment.add(nic, EndPort(Carries.FRAMES, Transport.DEVICE, -1, 1518, 100))
    for join in joins:
        attachment.join(*join)
    attachment.by_hand()
    wanted, lost, draw = Counter[tuple[int, bytes]](), [0, 0], random.Random(1)
    for number in range(400):
        end, size = number % 2, draw.choice((14, 15, 60, 1514))
        vid, pcp = draw.choice((0, 10, 20, 4094, 30)), draw.randrange(8)
        octets = frame(number, size)
        attachment.arrive(end, 100_000 * number, tagged(octets, vid, pcp) if vid or pcp > 3 else octets)
        there = dict(vids[end, 1 - end]).get(vid)
        if there is None:
            lost[end] += 1
        else:
            wanted[1 - end, tagged(octets, there) if there else octets] += 1
    network.run(100 * MS)
    assert Counter((each.end, each.octets) for each in attachment.released()) == wanted
    assert [attachment.counts(end)["no_vlan"] for end in range(2)] == lost and min(lost) > 50


@pytest.mark.parametrize("kind", list(Carries))
def test_whatever_comes_is_counted_and_nothing_is_made_up(kind: Carries) -> None:
    """10,000 of all lengths and contents, some of them right, some almost."""
    path, draw = by_hand(carries=(kind, kind), queue=10_000), random.Random(kind)
    right = [wire for k in range(40) for wire in _right(kind, k)]
    for number in range(10_000):
        octets = bytearray(draw.randbytes(draw.choice((0, 1, 13, 20, 53, 1518, 2000))))
        if draw.random() < 0.5:
            octets = bytearray(draw.choice(right))
        if octets and draw.random() < 0.5:
            octets[draw.randrange(len(octets))] ^= 1 << draw.randrange(8)
        path.attachment.arrive(0, 20_000 * number, bytes(octets))
    left, counts = path.go(1500), path.count(0)
    gone = sum(counts.get(name, 0) for name in ("malformed", "too_long", "hec_errors", "no_vc", "oam", "pdu_wrong"))
    assert counts["arrived"] == 10_000 and counts["injected"] == path.count(1)["received"] > 0
    if kind.cells:
        assert counts["hec_errors"] > 500 and counts["malformed"] > 1000 and gone + counts["injected"] <= 10_000
    else:
        assert gone + counts["injected"] == 10_000 and counts["malformed"] > 1000
    assert len(left) + path.count(1).get("not_ours", 0) == counts["injected"]
    path.check()


def _right(kind: Carries, k: int) -> list[bytes]:
    if kind is Carries.FRAMES:
        return [frame(k, 64 + 30 * k)]
    if kind is Carries.PACKETS:
        return [b"\x45\0" + (20 + k).to_bytes(2, "big") + bytes(16 + k)]
    cells = [cell.octets() for cell in segment(Header(vpi=0, vci=32), BRIDGED + frame(k, 64))]
    return as_dynamips(cells) if kind is Carries.DYNAMIPS else cells


def as_dynamips(cells: list[bytes]) -> list[bytes]:
    """The cells of a PDU with another CRC-32 at its end: Ethernet's."""
    pdu = b"".join(cell[5:] for cell in cells)[:-4]
    return [*cells[:-1], cells[-1][:-4] + zlib.crc32(pdu).to_bytes(4, "big")]


def test_what_was_recorded_gives_the_same_cells_again(tmp_path: Path) -> None:
    """With arrivals that were late, a queue that was full, and hosts inside."""
    digests = []
    for again in (False, True):
        path = Apart(inside=True, queue=5)
        path.network.trace()
        if again:
            path.attachment.replay(tmp_path / "arrivals")
        else:
            path.attachment.by_hand()
            path.attachment.record(tmp_path / "arrivals")
        path.network.send(path.nics[2].index, path.inside, bytes(9000))
        if not again:
            for k in range(60):
                path.attachment.arrive(k % 2, 20_000 * k, frame(k, 1400))
        while path.network.now_ps < 60 * MS:
            path.network.run(60 * MS)
        if not again:
            path.attachment.arrive(0, NS_MS, frame(1))  # late
        while path.network.now_ps < 200 * MS:
            path.network.run(200 * MS)
        digests.append((path.network.digests(), path.attachment.counts(0)["refused"]))
        path.attachment.close()
    assert digests[0] == digests[1]
    assert digests[0][1]


def test_a_record_that_is_cut_off_is_told(tmp_path: Path) -> None:
    path = Apart()
    path.attachment.by_hand()
    path.attachment.record(tmp_path / "arrivals")
    path.attachment.arrive(0, 1000, frame(1))
    path.go(10)
    path.attachment.close()
    whole = (tmp_path / "arrivals").read_bytes()
    (tmp_path / "arrivals").write_bytes(whole[:-1])
    again = Apart()
    again.attachment.replay(tmp_path / "arrivals")
    again.network.run(10 * MS)
    with pytest.raises(SimulationError, match="cut off, or damaged"):
        again.attachment.close()


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("something else altogether")
    with pytest.raises(SimulationError, match="it is no record of arrivals"):
        Apart().attachment.replay(tmp_path / "other")
    with pytest.raises(SimulationError, match="No such file"):
        Apart().attachment.replay(tmp_path / "none")
