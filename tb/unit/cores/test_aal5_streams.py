"""AAL5 segmenter and reassembler with streams, against the model."""

from __future__ import annotations

import random

import pytest

from benches.streams import Io, Node, PacketSink, PacketSource, cell_words, octets_of, pdu_beats, play
from bentpipe_hdl.aal5.reassembler import Verdict
from bentpipe_hdl.cores.aal5 import Aal5Reassembler, Aal5Segmenter
from bentpipe_hdl.cores.packets import CellStore
from models.aal5 import cpcs_pdu, segment
from models.cell import Header

LENGTHS = (1, 3, 39, 40, 41, 44, 45, 47, 48, 88, 89, 96, 300)


def _cells(packets: list[list[dict[str, int]]]) -> list[tuple[int, bytes]]:
    assert all(len(packet) == 13 for packet in packets)
    return [(packet[0]["tdata"], octets_of(packet[1:])) for packet in packets]


@pytest.mark.parametrize(("rate_in", "rate_out"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.4)])
def test_segmenter_against_the_model(rate_in: float, rate_out: float) -> None:
    rng = random.Random(f"{rate_in} {rate_out}")
    source, sink = PacketSource("i", rng, rate_in), PacketSink("o", rng, rate_out)
    expected = []
    for length in [*LENGTHS, *(rng.randrange(1, 200) for _ in range(12))]:
        header, pdu = rng.getrandbits(32), rng.randbytes(length)
        uu, cpi = rng.getrandbits(8), rng.getrandbits(8)
        source.put(pdu_beats(header, pdu, uu, cpi))
        cells = segment(Header.unpack(header.to_bytes(4, "big")), pdu, uu, cpi)
        expected += [(int(cell.header), cell.payload) for cell in cells]
    clocks = play(Node(Aal5Segmenter), [source, sink], lambda: len(sink.packets) == len(expected))
    assert _cells(sink.packets) == expected
    if rate_in == rate_out == 1:
        assert clocks <= 13 * len(expected) + 20


def _aborted(header: int, octets: bytes, uu: int, cpi: int) -> list[tuple[int, bytes]]:
    """The cells of an aborted PDU: that of all octets, with length 0 in its trailer and the CRC of that."""
    from models.crc import crc32_aal5

    body = cpcs_pdu(octets, uu, cpi)[:-6] + bytes(2)
    whole = body + crc32_aal5(body).to_bytes(4, "big")
    cells = [whole[k : k + 48] for k in range(0, len(whole), 48)]
    return [(header & ~2 | (k == len(cells) - 1) << 1, cell) for k, cell in enumerate(cells)]


def test_segmenter_aborts_what_is_no_pdu() -> None:
    rng = random.Random(1)
    source, sink = PacketSource("i", rng), PacketSink("o", rng)
    header, expected = 0x00500202, []

    def good() -> None:
        pdu = rng.randbytes(50)
        source.put(pdu_beats(header, pdu))
        cells = segment(Header.unpack(header.to_bytes(4, "big")), pdu)
        expected.extend((int(cell.header), cell.payload) for cell in cells)

    good()
    asked = rng.randbytes(77)
    source.put(pdu_beats(header, asked, 1, 2, abort=1))
    expected += _aborted(header, asked, 1, 2)
    good()
    source.put([{"tdata": 5, "tkeep": 0, "tdest": header, "tuser": 0}])  # without an octet
    good()
    gap = pdu_beats(header, rng.randbytes(100), 3, 4)
    octets = b"".join(beat["tdata"].to_bytes(4, "little") for beat in gap)
    gap[5] |= {"tkeep": 3}  # octets are missing in the middle: the rest is not looked at
    source.put(gap)
    expected += _aborted(header, octets[:22], 3, 4)
    good()
    holes = pdu_beats(header, rng.randbytes(8), 0, 0)
    holes[1] |= {"tkeep": 0b1010, "tdata": 0xDDCCBBAA}
    source.put(holes)
    good()
    aborted = [0]

    def each(io: Io, _clock: int) -> None:
        aborted[0] = io.get("aborted")

    play(Node(Aal5Segmenter), [source, sink], lambda: len(sink.packets) == len(expected) + 1, each=each)
    got = _cells(sink.packets)
    with_holes = got.pop(-3)  # two cells of a good one follow
    assert got == expected
    assert with_holes[1][-6:-4] == b"\0\0"
    assert aborted[0] == 4


def test_the_longest_pdu_and_one_longer() -> None:
    rng = random.Random(2)
    source, sink = PacketSource("i", rng), PacketSink("o", rng)
    longest, longer = rng.randbytes(65535), bytes(65540)
    source.put(pdu_beats(32 << 4, longest))
    source.put(pdu_beats(33 << 4, longer))
    last = lambda: len(sink.packets) == 2 * 1366  # noqa: E731
    aborted = [0]

    def each(io: Io, _clock: int) -> None:
        aborted[0] = io.get("aborted")

    play(Node(Aal5Segmenter), [source, sink], last, most=40_000, each=each)
    assert aborted == [1]
    got = _cells(sink.packets)
    assert b"".join(payload for _, payload in got[:1366]) == cpcs_pdu(longest)
    assert got[-1] == (33 << 4 | 2, got[-1][1])
    assert got[-1][1][-6:-4] == b"\0\0"


class _Pair:
    """Segmenter and reassembler, one behind the other; ``o`` is the reassembler's, all else the segmenter's."""

    def __init__(self) -> None:
        self.tx, self.rx = Node(Aal5Segmenter), Node(Aal5Reassembler, vcs=4, limit=9)

    def get(self, name: str) -> int:
        return (self.rx if name.startswith("o_") else self.tx).get(name)

    def set(self, name: str, value: int) -> None:
        (self.rx if name.startswith("o_") else self.tx).set(name, value)
        if name == "rst":
            self.rx.set(name, value)

    def settle(self) -> None:
        self.tx.settle()
        for name in ("tvalid", "tdata", "tlast"):  # that depend on no input
            self.rx.set(f"i_{name}", self.tx.get(f"o_{name}"))
        self.rx.settle()
        self.tx.set("o_tready", self.rx.get("i_tready"))
        self.tx.settle()

    def edge(self) -> None:
        self.tx.edge()
        self.rx.edge()


@pytest.mark.parametrize(("rate_in", "rate_out"), [(1.0, 1.0), (0.8, 0.45), (0.3, 1.0)])
def test_reassembler_against_the_model(rate_in: float, rate_out: float) -> None:
    rng = random.Random(f"{rate_in} {rate_out}")
    vcs = 4
    dut = Node(Aal5Reassembler, vcs=vcs, limit=9)
    source = PacketSource("i", rng, rate_in)
    sink = PacketSink("o", rng, rate_out, ["tid", "tkeep", "tuser"], key="tid")
    expected: dict[int, list[tuple[Verdict, bytes]]] = {vc: [] for vc in range(vcs)}
    waiting: dict[int, list[bytes]] = {vc: [] for vc in range(vcs)}
    counts = {"oam": 0, "hec": 0, "over": 0}

    def begin(vc: int) -> None:
        pdu, kind = rng.randbytes(rng.choice(LENGTHS)), rng.choice(["good"] * 4 + ["crc", "long", "abort"])
        whole = cpcs_pdu(pdu, vc, 7)
        if kind == "good":
            expected[vc].append((Verdict.OK, pdu))
        elif kind == "crc":
            at = rng.randrange(len(whole) - 8)
            whole = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
            expected[vc].append((Verdict.CRC, b""))
        elif kind == "long":
            whole = cpcs_pdu(bytes(48 * 9), vc, 7)  # ten cells
            expected[vc].append((Verdict.OVERLENGTH, b""))
            counts["over"] += 1
        else:
            whole = b"".join(cell for _, cell in _aborted(0, pdu, vc, 7))
            expected[vc].append((Verdict.ABORT, b""))
        waiting[vc] = [whole[k : k + 48] for k in range(0, len(whole), 48)]

    left = 60
    while left or any(waiting.values()):
        vc = rng.choice([v for v in waiting if left or waiting[v]])
        if rng.random() < 0.06:
            source.put([{"tdata": w, "tdest": vc, "tuser": 0} for w in cell_words(5 << 1, rng.randbytes(48))])
            counts["oam"] += 1
        elif rng.random() < 0.06:
            source.put([{"tdata": w, "tdest": vc, "tuser": 1} for w in cell_words(0, rng.randbytes(48))])
            counts["hec"] += 1
        else:
            if not waiting[vc]:
                begin(vc)
                left -= 1
            cell = waiting[vc].pop(0)
            header = rng.getrandbits(28) << 4 | (not waiting[vc]) << 1 | rng.getrandbits(1)
            source.put([{"tdata": w, "tdest": vc, "tuser": 0} for w in cell_words(header, cell)])
    wanted = sum(map(len, expected.values()))
    found: dict[str, int] = {}

    def each(io: Io, _clock: int) -> None:
        found.update({name: io.get(name) for name in (*counts, "dropped")})

    play(dut, [source, sink], lambda: len(sink.packets) == wanted, each=each)
    came: dict[int, list[tuple[Verdict, bytes]]] = {vc: [] for vc in range(vcs)}
    for packet in sink.packets:
        end = packet[-1]["tuser"]
        length, uu, cpi, status = end & 0xFFFF, end >> 16 & 0xFF, end >> 24 & 0xFF, Verdict(end >> 32 & 7)
        vc = packet[-1]["tid"]
        if status == Verdict.OK:
            assert (uu, cpi) == (vc, 7)
        came[vc].append((status, octets_of(packet)[:length] if status == Verdict.OK else b""))
    assert came == expected
    assert found == {**counts, "dropped": 0}


def test_pair_with_a_reset_in_the_middle() -> None:
    """After a reset, wherever in a PDU, the pair is as new."""
    rng = random.Random(3)

    source = PacketSource("i", rng, 0.9)
    sink = PacketSink("o", rng, 0.9, ["tid", "tkeep", "tuser"], key="tid")
    resets = {rng.randrange(60, 900) + 900 * k for k in range(6)}
    sent: list[bytes] = []
    whole: list[bytes] = []

    def each(io: Io, clock: int) -> None:
        io.set("rst", int(clock in resets))
        if clock in resets:
            source.beats.clear()
            source._shown = None
            io.set("i_tvalid", 0)
            sink.reset()
            whole.extend(octets_of(packet)[: packet[-1]["tuser"] & 0xFFFF] for packet in sink.packets)
            assert whole == sent[: len(whole)]
            assert all(packet[-1]["tuser"] >> 32 & 7 == 0 for packet in sink.packets)
            sink.packets.clear()
            sent.clear()
            whole.clear()
        if source.idle:
            sent.append(rng.randbytes(rng.randrange(1, 150)))
            source.put(pdu_beats(0x200, sent[-1]))

    play(_Pair(), [source, sink], lambda: len(sink.packets) > 20, each=each)


def test_store_forgets_and_drops() -> None:
    rng = random.Random(4)
    source, sink = PacketSource("i", rng, 0.9), PacketSink("o", rng, 0.6, ["tdest", "tuser"])
    good = []
    for k in range(30):
        wrong = rng.choice([0, 0, 1, 12, 14, 29, 40])
        words = [rng.getrandbits(32) for _ in range(wrong or 13)]
        marks = rng.randrange(4), rng.getrandbits(1)
        source.put([{"tdata": word, "tdest": marks[0] if not n else k & 3, "tuser": marks[1] if not n else 0}
                    for n, word in enumerate(words)])  # fmt: skip
        if not wrong:
            good.append((words, marks))
    dropped = [0]

    def each(io: Io, _clock: int) -> None:
        dropped[0] = io.get("dropped")

    def done() -> bool:
        return dropped[0] + len(sink.packets) == 30

    play(Node(CellStore, ports=4), [source, sink], done, each=each)
    for packet, (words, marks) in zip(sink.packets, good, strict=True):
        assert [beat["tdata"] for beat in packet] == words
        assert {(beat["tdest"], beat["tuser"]) for beat in packet} == {marks}
    assert dropped[0] == 30 - len(good)
