"""Ethernet frames of VLANs to SDUs and back, beside what RFC 2684 and IEEE 802.1Q say of them, as scapy builds it."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field

import pytest
from scapy.layers.l2 import LLC, SNAP, Dot1Q, Ether
from scapy.packet import Raw

from benches.build import library
from benches.compiled import Compiled
from bentpipe_boards.frames import LineReceiver, LineSender, VlanPort
from bentpipe_sim.board.windows import FRAME_COUNTERS, VLAN_COUNTERS

PADDING = b"\0\0"
VIDS = (10, 4094)
TX, RX = (3, 9), (9, 4)
LONGEST, SHORTEST = 1518, 60
CELL = 48


def _frame(rng: random.Random, octets: int, vid: int | None, priority: int = 0) -> tuple[bytes, bytes]:
    """Return a frame of so many octets and its SDU."""
    macs = {"dst": rng.randbytes(6).hex(":"), "src": rng.randbytes(6).hex(":")}
    payload = Raw(rng.randbytes(octets - 14 - (0 if vid is None else 4)))
    plain = Ether(**macs, type=0x0800) / payload
    header = bytes(LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0x0080C2, code=7)) + PADDING
    frame = plain if vid is None else Ether(**macs) / Dot1Q(vlan=vid, prio=priority, type=0x0800) / payload
    assert len(bytes(frame)) == octets
    return bytes(frame), header + bytes(plain)


def _words(frame: bytes) -> list[tuple[int, int, int]]:
    """Return the words of a frame: data, last, last octet."""
    found = []
    for at in range(0, len(frame), 4):
        last = at + 4 >= len(frame)
        lane = 1 << (len(frame) - 1 - at) if last else 0
        found.append((int.from_bytes(frame[at : at + 4], "little"), int(last), lane))
    return found


@dataclass
class _Taker:
    """The taker of a stream of frames."""

    frames: list[bytes] = field(default_factory=list)
    _octets: bytearray = field(default_factory=bytearray)

    def take(self, data: int, last: int, last_be: int) -> None:
        self._octets += data.to_bytes(4, "little")
        if last:
            assert last_be in (1, 2, 4, 8)
            unused = 4 - last_be.bit_length()
            assert not any(self._octets[len(self._octets) - unused :]) or not unused
            self.frames.append(bytes(self._octets[: len(self._octets) - unused]))
            self._octets.clear()
        else:
            assert last_be == 0


class _Receiver:
    """A line's receiver: frames in at line rate, and an interface that has room at random."""

    def __init__(self, seed: int, room: float) -> None:
        self.node = Compiled(library(LineReceiver(words=1024)))
        self.ports = self.node.ports
        self.random, self.room = random.Random(seed), room
        self.coming: deque[tuple[int, int, int, bool]] = deque()
        self.own, self.sdus = _Taker(), list[tuple[int, bytes]]()
        self.own_takes = True
        self.refused: Counter[int] = Counter()
        self._octets, self._taken, self._answers = bytearray(), 0, (0, 0)

    def give(self, frame: bytes, *, wrong: bool = False) -> None:
        self.coming.extend((*word, wrong) for word in _words(frame))
        self.coming.extend([(0, 0, 0, False)] * 6)  # preamble, FCS and gap

    def clock(self) -> None:
        ports = self.ports
        word = self.coming.popleft() if self.coming and self.random.random() < 0.42 else (0, 0, 0, False)
        data, last, lane, wrong = word
        for name, value in (
            ("valid", bool(data or last)), ("data", data), ("last", last), ("last_be", lane), ("error", wrong and last),
        ):  # fmt: skip
            ports[f"line_{name}"].set(value)
        ports["own_ready"].set(self.own_takes and self.random.random() < 0.8)
        ports["sdus_has_vlan"].set(self._answers[0])
        ports["sdus_has_room"].set(self._answers[1])
        self.node.settle()
        assert ports["line_ready"].get()
        if ports["own_valid"].get() and ports["own_ready"].get():
            self.own.take(*(ports[f"own_{name}"].get() for name in ("data", "last", "last_be")))
        vid = ports["sdus_vid"].get()
        if ports["sdus_asks"].get():
            self.refused[vid] += self._answers == (1, 0)
            self._taken = vid
        if ports["sdus_valid"].get():
            self._octets += ports["sdus_word"].get().to_bytes(4, "little")
        if ports["sdus_ends"].get():
            length = ports["sdus_length"].get()
            assert 0 <= len(self._octets) - length < 8
            self.sdus.append((self._taken, bytes(self._octets[:length])))
            self._octets.clear()
        has_vlan = int(vid in VIDS)
        self._answers = has_vlan, has_vlan and int(self.random.random() < self.room)
        self.node.edge()

    def run(self, idle: int = 1500) -> dict[str, int]:
        """Pass time until nothing comes any more; return the counters."""
        while self.coming:
            self.clock()
        for _ in range(idle):
            self.clock()
        return {name: self.ports[f"count_{name}"].get() for name in FRAME_COUNTERS}


def test_tagged_frames_are_sdus_without_their_tags_and_others_are_the_boards_own() -> None:
    bench, rng = _Receiver(1, room=1.0), random.Random(2)
    sdus, own = [], []
    for octets in (60, 61, 62, 63, 64, 65, 1515, 1516, 1517, 1518):
        for vid in (*VIDS, None):
            if vid is None and octets > LONGEST - 4:
                continue
            frame, sdu = _frame(rng, octets, vid, priority=rng.randrange(8))
            bench.give(frame)
            own += [frame] if vid is None else []
            sdus += [(vid, sdu)] if vid is not None else []
    counts = bench.run()
    assert bench.sdus == sdus and bench.own.frames == own
    assert counts == dict.fromkeys(FRAME_COUNTERS, 0) | {"tagged": len(sdus)}


def test_each_frame_that_is_dropped_is_counted_once() -> None:
    bench, rng = _Receiver(3, room=0.5), random.Random(4)
    wanted, sdus = Counter(dict.fromkeys(FRAME_COUNTERS, 0)), Counter[tuple[int, bytes]]()
    for _ in range(150):
        kind = rng.choice(("good", "good", "wrong_fcs", "runt", "giant", "no_vlan", "priority"))
        vid = {"no_vlan": 11, "priority": 0}.get(kind, rng.choice(VIDS))
        octets = {"runt": rng.randrange(20, SHORTEST), "giant": rng.randrange(LONGEST + 1, 2200)}.get(
            kind, rng.randrange(SHORTEST, 300)
        )
        frame, sdu = _frame(rng, octets, vid)
        bench.give(frame, wrong=kind == "wrong_fcs")
        if kind == "good":
            sdus[vid, sdu] += 1
        elif kind == "priority":
            wanted["no_vlan"] += 1
        else:
            wanted[kind] += 1
    counts = bench.run()
    # A priority tag is a tag of no VLAN
    wanted["tagged"] = sdus.total() + wanted["no_vlan"]
    assert counts == dict(wanted)
    assert Counter(bench.sdus) <= sdus and sdus.total() - len(bench.sdus) == bench.refused.total() > 10


def test_own_frames_that_nobody_takes_stop_no_traffic() -> None:
    bench, rng = _Receiver(5, room=1.0), random.Random(6)
    bench.own_takes = False
    for _ in range(8):
        bench.give(_frame(rng, 1514, None)[0])
        bench.give(_frame(rng, 1000, VIDS[0])[0])
    counts = bench.run()
    assert len(bench.sdus) == 8
    assert counts["no_own_room"] >= 5 and counts["no_buffer"] == 0
    bench.own_takes = True
    bench.run()
    assert len(bench.own.frames) == 8 - counts["no_own_room"]


class _Port:
    """The port of an interface's VLANs, and the interface: a tick of ``clocks``, cells of one VC or another."""

    def __init__(self, seed: int, clocks: int = 20) -> None:
        self.node = Compiled(library(VlanPort(vcs=16, vlans=2, in_words=1024, out_words=512)))
        self.ports = self.node.ports
        self.random, self.clocks = random.Random(seed), clocks
        self.sending: dict[int, list[int]] = {}  # by VC: octets of its PDU, cells fetched
        self.words: deque[int] = deque()  # VCs of the words that the line will take
        self.sent: list[tuple[int, bytes]] = []
        self.octets: dict[int, bytearray] = {}
        self.sdus: deque[tuple[int, bytes]] = deque()
        self.cells: deque[tuple[int, bytes, tuple[int, int] | None]] = deque()
        self.frames = _Taker()
        self.takes = 0.7
        for k, vid in enumerate(VIDS):
            self.ports[f"vlan_{k}"].set(vid | TX[k] << 12 | RX[k] << 22)

    def _clock(self, **inputs: int) -> None:
        ports = self.ports
        for name, value in inputs.items():
            ports[name].set(value)
        ports["frames_ready"].set(self.random.random() < self.takes)
        self.node.settle()
        if ports["frames_valid"].get() and ports["frames_ready"].get():
            self.frames.take(*(ports[f"frames_{name}"].get() for name in ("data", "last", "last_be")))
        self.node.edge()
        for name in inputs:
            ports[name].set(0)

    def ask(self, vid: int, sdu: bytes) -> bool:
        """Offer an SDU; return whether the port takes it. Its words come in the clocks after."""
        self.ports["sdus_vid"].set(vid)
        for _ in range(6):
            self.tick()
        self.node.settle()
        has_room = self.ports["sdus_has_room"].get()
        assert self.ports["sdus_has_vlan"].get() == (vid in VIDS)
        self._clock(sdus_asks=1)
        if has_room:
            padded = sdu + bytes(-len(sdu) % 4) + b"\xee" * 4
            for at in range(0, len(padded), 4):
                word, ends = int.from_bytes(padded[at : at + 4], "little"), at + 4 == len(padded)
                self._clock(sdus_valid=1, sdus_word=word, sdus_ends=ends, sdus_length=len(sdu) if ends else 0)
        return bool(has_room)

    def receive(self, vc: int, sdu: bytes, status: int = 0) -> None:
        """A PDU comes on a VC, in cells."""
        padded = sdu + self.random.randbytes(-(len(sdu) + 8) % CELL + 8)
        for at in range(0, len(padded), CELL):
            ends = (status, len(sdu)) if at + CELL == len(padded) else None
            self.cells.append((vc, padded[at : at + CELL], ends))

    def tick(self) -> None:
        """A tick: a post may be taken or a cell fetched, the words of the last one leave, and a cell comes."""
        ports, events = self.ports, [dict[str, int]() for _ in range(self.clocks)]
        self.node.settle()
        fetched = None
        ready = [vc for vc, (octets, cells) in self.sending.items() if cells * CELL < octets + 8]
        if ports["nic_post_valid"].get() and self.random.random() < 0.7:
            vc = ports["nic_post_vc"].get()
            assert vc not in self.sending, "a VC has one PDU at a time"
            self.sending[vc] = [ports["nic_post_length"].get(), 0]
            self.octets[vc] = bytearray()
            events[-1]["nic_post_taken"] = 1
        elif ready:
            fetched = self.random.choice(ready)
            self.sending[fetched][1] += 1
            events[1] |= {"nic_fetch": 1, "nic_fetch_vc": fetched}
        taking = self.words.popleft() if self.words else None
        if taking is not None and (len(self.octets[taking]) + CELL) >= self.sending[taking][0] + 8:
            events[2] |= {"nic_done": 1, "nic_done_vc": taking}  # the tick in which the last cell leaves
        coming = self.cells.popleft() if self.cells else None
        for clock, event in enumerate(events):
            if taking is not None and 2 <= clock < 14:
                self.node.settle()
                self.octets[taking] += ports["nic_word"].get().to_bytes(4, "little")
                event["nic_word_next"] = 1
            if coming is not None and 3 <= clock < 15:
                vc, payload, ends = coming
                at = 4 * (clock - 3)
                word = int.from_bytes(payload[at : at + 4], "little")
                event |= {"nic_rx_valid": 1, "nic_rx_word": word, "nic_rx_vc": vc}
                if clock == 14 and ends is not None:
                    event |= {"nic_rx_last": 1, "nic_rx_status": ends[0], "nic_rx_length": ends[1]}
            self._clock(**event)
        if taking is not None:
            octets, _ = self.sending[taking]
            if len(self.octets[taking]) >= octets + 8:
                self.sent.append((taking, bytes(self.octets[taking][:octets])))
                del self.sending[taking]
        if fetched is not None:
            self.words.append(fetched)

    def run(self) -> None:
        quiet = 0
        while quiet < 40:
            self.tick()
            quiet = 0 if self.sending or self.words or self.cells or self.ports["nic_post_valid"].get() else quiet + 1

    def counts(self) -> dict[str, int]:
        names = (*VLAN_COUNTERS, "no_vlan")
        found = {name: [self.ports[f"count_{name}_{k}"].get() for k in range(2)] for name in VLAN_COUNTERS}
        return {name: sum(found[name]) if name in found else self.ports[f"count_{name}"].get() for name in names}


def test_sdus_leave_in_cells_on_their_vcs() -> None:
    bench, rng = _Port(1), random.Random(2)
    wanted: dict[int, list[bytes]] = {vc: [] for vc in TX}
    refused = 0
    for octets in (24, 40, 41, 87, 88, 89, 1524, *(rng.randrange(24, 600) for _ in range(30))):
        which = rng.randrange(2)
        sdu = rng.randbytes(octets)
        if bench.ask(VIDS[which], sdu):
            wanted[TX[which]].append(sdu)
        else:
            refused += 1
    bench.run()
    for vc in TX:
        assert [sdu for each, sdu in bench.sent if each == vc] == wanted[vc]
    counts = bench.counts()
    assert counts["frames_in"] == len(bench.sent) > 25 and counts["full_in"] == refused
    assert any(one != other for (one, _), (other, _) in zip(bench.sent, bench.sent[1:], strict=False))


def test_a_full_memory_refuses_frames_of_its_vlan_alone() -> None:
    bench, rng = _Port(3), random.Random(4)
    # No cell leaves meanwhile
    bench.tick = lambda: [bench._clock() for _ in range(20)] and None  # type: ignore[method-assign]
    taken = [bench.ask(VIDS[0], rng.randbytes(1500)) for _ in range(4)]
    assert taken == [True, True, False, False]
    assert bench.ask(VIDS[1], rng.randbytes(1500))
    assert not bench.ask(VIDS[0] + 256, b"")
    counts = bench.counts()
    assert counts["frames_in"] == 3 and counts["full_in"] == 2


def test_pdus_are_frames_with_the_tag_of_their_vlan() -> None:
    bench, rng = _Port(5), random.Random(6)
    wanted, others = [], 0
    for octets in (18, 19, 20, 21, 22, 56, 57, 58, 59, 60, 61, 777, 1515, 1516, 1517, 1518):
        for vid, vc in zip(VIDS, RX, strict=True):
            frame, sdu = _frame(rng, octets, vid)
            bench.receive(vc, sdu)
            wanted.append(frame.ljust(SHORTEST, b"\0"))
        bench.receive(12, rng.randbytes(60))
        others += 1
    bench.run()
    assert sorted(bench.frames.frames) == sorted(wanted)
    counts = bench.counts()
    assert counts == dict.fromkeys(VLAN_COUNTERS, 0) | {"frames_out": len(wanted), "no_vlan": others}


def test_pdus_that_are_no_frames_are_counted() -> None:
    bench, rng = _Port(7), random.Random(8)
    frame, sdu = _frame(rng, 300, VIDS[0])
    bad = [(sdu, 1), (sdu[:23], 0), (rng.randbytes(1525), 0), (sdu[:4] + b"\0" + sdu[5:], 0), (b"\0" + sdu[1:], 0)]
    # PID 1 is a frame with its FCS, and routed PDUs have another OUI (RFC 2684)
    bad += [(sdu[:7] + b"\1" + sdu[8:], 0), (sdu[:3] + b"\0\0\0\x08\0" + sdu[8:], 0), (b"", 2)]
    for octets, status in bad:
        bench.receive(RX[0], octets, status)
        bench.receive(RX[0], sdu)
    bench.run()
    assert bench.frames.frames == [frame] * len(bad)
    assert bench.counts()["bad_out"] == len(bad)


def test_pdus_that_ethernet_does_not_take_are_counted() -> None:
    bench, rng = _Port(9), random.Random(10)
    bench.takes = 0.0
    frame, sdu = _frame(rng, 1000, VIDS[0])
    other, other_sdu = _frame(rng, 1000, VIDS[1])
    for _ in range(5):
        bench.receive(RX[0], sdu)
    bench.receive(RX[1], other_sdu)
    bench.run()
    counts = bench.counts()
    assert counts["frames_out"] + counts["full_out"] == 6 and counts["full_out"] >= 2
    bench.takes = 0.7
    bench.run()
    assert Counter(bench.frames.frames) == Counter({frame: counts["frames_out"] - 1, other: 1})


def test_room_that_comes_within_a_pdu_does_not_make_a_frame_with_a_hole() -> None:
    bench, rng = _Port(12), random.Random(13)
    bench.takes = 0.3
    frames = []
    for _ in range(25):
        frame, sdu = _frame(rng, rng.randrange(700, 1200), VIDS[0])
        bench.receive(RX[0], sdu)
        frames.append(frame)
    bench.run()
    bench.takes = 1.0
    bench.run()
    counts = bench.counts()
    assert counts["frames_out"] + counts["full_out"] == len(frames) and counts["full_out"] > 5
    left = iter(frames)
    assert all(frame in left for frame in bench.frames.frames), "in their order"
    assert len(bench.frames.frames) == counts["frames_out"]


def test_frames_of_several_streams_are_sent_whole_and_in_turn() -> None:
    node, rng = Compiled(library(LineSender(streams=3))), random.Random(11)
    frames = [[_frame(rng, rng.randrange(60, 200), 10)[0] for _ in range(20)] for _ in range(3)]
    words = [deque(word for frame in each for word in _words(frame)) for each in frames]
    taker = _Taker()
    while len(taker.frames) < 60:
        for k, each in enumerate(words):
            node.ports[f"i_{k}_valid"].set(bool(each))
            for name, value in zip(("data", "last", "last_be"), each[0] if each else (0, 0, 0), strict=True):
                node.ports[f"i_{k}_{name}"].set(value)
        node.ports["o_ready"].set(rng.random() < 0.7)
        node.settle()
        if node.ports["o_valid"].get() and node.ports["o_ready"].get():
            taker.take(*(node.ports[f"o_{name}"].get() for name in ("data", "last", "last_be")))
        for k, each in enumerate(words):
            if each and node.ports[f"i_{k}_ready"].get():
                each.popleft()
        node.edge()
    whose = [next(k for k in range(3) if frame in frames[k]) for frame in taker.frames]
    assert sorted(whose[:30]) == sorted([*range(3)] * 10)
    for k in range(3):
        assert [frame for frame in taker.frames if frame in frames[k]] == frames[k]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VlanPort(vcs=16, vlans=0), "vlans must be 1 or more, not 0"),
        (lambda: LineSender(streams=0), "streams must be 1 or more, not 0"),
    ],
)
def test_wrong_parameters_are_named(make: type, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
