"""A SONET port, a line of octets or words and cells as packets, against the model at the line."""

from __future__ import annotations

import random

import pytest

from benches.streams import Io, Node, PacketSink, PacketSource, cell_words, octets_of, play
from bentpipe_hdl.cores.sonet import SonetDeframer, SonetPort
from models.sonet.frame import ModelFramer, ModelReceiver
from models.sonet.tc import CellSource

FRAMES = 7


class _Line:
    """Both ways of the line, with an enable that is low now and then."""

    def __init__(self, octets: int, rng: random.Random, sent: bytes, rate: float) -> None:
        self._octets, self._rng, self._sent, self._rate = octets, rng, sent, rate
        self._at, self._enable, self.got = 0, 0, bytearray()

    def drive(self, io: Io) -> None:
        self._enable = int(self._rng.random() < self._rate)
        io.set("enable", self._enable)
        io.set("signal", 1)
        if self._enable:
            io.set("line_in", int.from_bytes(self._sent[self._at : self._at + self._octets], "little"))
            self._at += self._octets

    def sample(self, io: Io) -> None:
        if self._enable:
            self.got += io.get("line_out").to_bytes(self._octets, "little")


@pytest.mark.parametrize(("n", "octets", "rate", "takes"), [(3, 1, 0.93, 0.5), (12, 4, 1.0, 1.0)])
def test_cells_to_and_from_a_line(n: int, octets: int, rate: float, takes: float) -> None:
    rng = random.Random(f"{n} {octets}")
    cells = [rng.getrandbits(28).to_bytes(4, "big") + rng.randbytes(48) for _ in range(FRAMES * 36 * n // 3)]
    back = [(0x500 | rng.getrandbits(4)).to_bytes(4, "big") + rng.randbytes(48) for _ in range(1000)]
    framer = ModelFramer(n, CellSource(back))
    line = b"".join(framer.frame() for _ in range(FRAMES))
    bits = rng.randrange(8)  # the receiver finds the frame at any bit
    shifted = (int.from_bytes(line, "big") >> bits).to_bytes(len(line), "big")
    source, sink = PacketSource("i", rng, 0.95), PacketSink("o", rng, takes, ["tuser"])
    source.put([{"tdata": 7}] * 12)  # no cell
    for cell in cells:
        source.put([{"tdata": word} for word in cell_words(int.from_bytes(cell[:4], "big"), cell[4:])])
    end = _Line(octets, rng, shifted, rate)
    counts: dict[str, int] = {}

    def each(io: Io, clock: int) -> None:
        if clock % 500 == 0:
            counts.update({name: io.get(name) for name in ("dropped", "lost")})

    play(Node(SonetPort, n=n, octets=octets), [end, source, sink], lambda: len(end.got) >= len(line) - 200, each=each)
    receiver = ModelReceiver(n)
    receiver.put(bytes(end.got[octets:]))
    taken = receiver.cells.cells
    first = cells.index(bytes(taken[0]))
    assert len(taken) > 60
    assert [bytes(cell) for cell in taken] == cells[first : first + len(taken)]
    assert counts == {"dropped": 1, "lost": 0}
    came = [packet[0]["tdata"].to_bytes(4, "big") + octets_of(packet[1:]) for packet in sink.packets]
    first = back.index(came[0])
    assert len(came) > 60
    assert came == back[first : first + len(came)]


@pytest.mark.parametrize(("n", "octets"), [(3, 1), (12, 4)])
def test_latency_of_a_received_cell(n: int, octets: int) -> None:
    """The guides of terminal and deframer state it: from the word with a cell's last octet to the packet's first."""
    rng = random.Random(n)
    cells = [(0x500).to_bytes(4, "big") + rng.randbytes(48) for _ in range(400 * n // 3)]
    number = 300 * n // 3

    def line(sent: list[bytes]) -> bytes:
        framer = ModelFramer(n, CellSource(sent))
        return b"".join(framer.frame() for _ in range(8))

    other = [*cells]
    other[number] = other[number][:-1] + bytes([other[number][-1] ^ 1])
    given, changed = line(cells), line(other)
    last = next(k for k, pair in enumerate(zip(given, changed, strict=True)) if pair[0] != pair[1]) // octets
    found = []
    for make, name in ((SonetPort, "line_in"), (SonetDeframer, "line")):
        seen, words = list[int](), 0
        node = Node(make, n=n, octets=octets)
        for port in ("enable", "signal", "o_tready"):
            if port != "enable" or make is SonetPort:
                node.set(port, 1)
        for clock in range(last + 100):
            at = clock * octets
            node.set(name, int.from_bytes(given[at : at + octets], "little"))
            node.settle()
            if node.get("o_tvalid"):
                if words % 13 == 1 and node.get("o_tdata") == int.from_bytes(cells[number][4:8], "little"):
                    seen.append(clock - 1)
                words += 1
            node.edge()
        found.append(seen[0] - last)
    assert found == [26, 26]
