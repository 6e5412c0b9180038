"""The payload pattern on a board: generator, checker and records, beside its definition."""

from __future__ import annotations

import random
from collections import deque

import pytest

from benches.build import library
from benches.compiled import Compiled
from bentpipe_boards.pattern import CellRecords, PatternChecker, PatternGenerator
from bentpipe_sim.board.payload import Payload, continuation, crossing_cells, given_cells
from bentpipe_sim.board.windows import ALL_GIVEN
from bentpipe_sim.pattern import pattern
from models.payload_pattern import octet_of, rebuilt

VCS = 16
CELL, WORDS = 48, 12
SPACE = 17
"""Clocks from a cell to the next one, at least."""

Cells = list[tuple[int, int, bytes]]


def _words(cell: bytes) -> list[int]:
    return [int.from_bytes(cell[at : at + 4], "little") for at in range(0, CELL, 4)]


class _Generator:
    def __init__(self) -> None:
        self.node = Compiled(library(PatternGenerator(vcs=VCS)))

    def cell(self, vc: int, place: int, given: bytes | None, idle: int) -> bytes:
        """The words of a cell that follow; ``idle`` clocks are behind it."""
        ports, octets = self.node.ports, b""
        for clock in range(SPACE + idle):
            ports["begin"].set(clock == 0)
            ports["vc"].set(vc if clock == 0 else 0)
            ports["place"].set(place if clock == 0 else 0)
            ports["given"].set(clock == 0 and given is not None)
            word = _words(given)[clock - 1] if given is not None and 1 <= clock <= WORDS else 0x5A5A5A5A
            ports["given_word"].set(word)
            self.node.settle()
            if ports["word_valid"].get():
                octets += ports["word"].get().to_bytes(4, "little")
            self.node.edge()
        assert len(octets) == CELL
        return octets


class _Checker:
    def __init__(self) -> None:
        self.node = Compiled(library(PatternChecker(vcs=VCS)))
        self.found: dict[int, Cells] = {}

    def cell(self, vc: int, cell: bytes, *, first: bool, last: bool, idle: int) -> None:
        """Give a cell, and keep the checker's result for it."""
        ports, said = self.node.ports, 0
        for clock in range(SPACE + idle):
            valid = clock < WORDS
            ports["valid"].set(valid)
            ports["word"].set(_words(cell)[clock] if valid else 0xA5A5A5A5)
            ports["vc"].set(vc if valid else 0)
            ports["first"].set(first and clock == 0)
            ports["last"].set(last and clock == WORDS - 1)
            self.node.settle()
            if ports["done"].get():
                said += 1
                assert clock == 14 and ports["done_vc"].get() == vc
                if not ports["withheld"].get():
                    self.found.setdefault(vc, []).append((ports["count"].get(), ports["place"].get(), cell))
            self.node.edge()
        assert said == 1

    def pdus(self, rng: random.Random, pdus: dict[int, bytes]) -> dict[int, Cells]:
        """Give a PDU on each VC, their cells interleaved at random; what was kept of each."""
        self.found = {}
        left = {vc: deque(range(len(octets) // CELL)) for vc, octets in pdus.items()}
        while left:
            vc = rng.choice(list(left))
            k = left[vc].popleft()
            cell = pdus[vc][CELL * k : CELL * k + CELL]
            self.cell(vc, cell, first=k == 0, last=not left[vc], idle=rng.choice((0, 0, 1, 7)))
            if not left[vc]:
                del left[vc]
        return self.found


def _alike(found: Cells) -> Cells:
    """The place matters where cells were withheld."""
    return [(count, place if count else 0, cell) for count, place, cell in found]


def _stream(rng: random.Random, *, cells: int, head: int) -> tuple[bytes, int]:
    """A PDU of whole cells that is a head and a stream, and the stream's offset."""
    key, offset = rng.getrandbits(32), rng.choice((0, rng.getrandbits(16), rng.getrandbits(50)))
    return rng.randbytes(head) + pattern(key, offset, CELL * cells - head), offset


def test_the_pattern_is_that_of_its_definition() -> None:
    rng = random.Random(1)
    for _ in range(50):
        key, offset = rng.getrandbits(32), rng.getrandbits(rng.choice((4, 20, 60)))
        assert pattern(key, offset, 20) == bytes(octet_of(key, offset + k) for k in range(20))


def test_generated_cells_are_the_stream() -> None:
    bench, rng = _Generator(), random.Random(2)
    pdus: dict[int, tuple[bytes, int, int]] = {}
    seen = dict.fromkeys(range(8), 0)
    at: dict[int, int] = {}
    for _ in range(900):
        vc = rng.randrange(VCS)
        if vc not in pdus or at[vc] * CELL == len(pdus[vc][0]):
            head = rng.randrange(100)
            octets, offset = _stream(rng, cells=rng.randrange(4, 12), head=head)
            pdus[vc], at[vc] = (octets, *given_cells(len(octets), Payload(head, offset))), 0
        octets, given, place = pdus[vc]
        cell = octets[at[vc] * CELL : at[vc] * CELL + CELL]
        assert bench.cell(vc, place, cell if at[vc] < given else None, rng.choice((0, 3))) == cell
        seen[place] += at[vc] >= given
        at[vc] += 1
    assert min(seen.values()) > 20


def test_cells_that_continue_the_stream_are_withheld() -> None:
    """All but those with the head, the first that ends with enough of the stream, and the last."""
    bench, rng = _Checker(), random.Random(3)
    for _ in range(12):
        heads = {vc: rng.randrange(73) for vc in range(VCS)}
        pdus = {vc: _stream(rng, cells=9, head=head)[0] for vc, head in heads.items()}
        found = bench.pdus(rng, pdus)
        for vc, head in heads.items():
            first = 1 if head <= 24 else 2
            counts = [count for count, _, _ in found[vc]]
            by_chance = 24 < head <= 40 and counts == [0, 7]  # an octet of the head has the increase of its place
            assert by_chance or counts == [0] * first + [8 - first]
            assert rebuilt(found[vc]) == pdus[vc]


@pytest.mark.parametrize("octet", [*range(0, 48, 5), 24, 32, 40, 47])
def test_a_wrong_octet_is_named_by_its_cell(octet: int) -> None:
    """The next cell continues it unless the octet is one of the last 16, or shows the place."""
    bench, rng = _Checker(), random.Random(octet)
    for at in (2, 5, 8):
        octets, _ = _stream(rng, cells=12, head=48)
        wrong = bytearray(octets)
        wrong[CELL * at + octet] ^= 1 << rng.randrange(8)
        found = bench.pdus(rng, {3: bytes(wrong)})[3]
        kept = [sum(count + 1 for count, _, _ in found[: k + 1]) - 1 for k in range(len(found))]
        assert set(kept) >= {0, 1, at, 11}
        assert set(kept) <= {0, 1, at, at + 1, 11}
        assert rebuilt(found) == wrong


def _disturbed(rng: random.Random) -> bytes:
    """Octets of which any part may be of a stream, or not."""
    parts = [
        rng.choice((rng.randbytes(n), bytes(n), b"\xff" * n, pattern(rng.getrandbits(32), rng.getrandbits(9), n)))
        for n in (rng.randrange(1, 200) for _ in range(rng.randrange(1, 9)))
    ]
    octets = bytearray(b"".join(parts))
    for _ in range(rng.choice((0, 0, 1, 3))):
        octets[rng.randrange(len(octets))] ^= 1 << rng.randrange(8)
    return bytes(octets.ljust(-(-len(octets) // CELL) * CELL, b"\0"))


def test_nothing_is_hidden_whatever_the_octets_are() -> None:
    bench, rng = _Checker(), random.Random(4)
    withheld = 0
    for _ in range(60):
        pdus = {vc: _disturbed(rng) for vc in rng.sample(range(VCS), 6)}
        found = bench.pdus(rng, pdus)
        for vc, octets in pdus.items():
            assert rebuilt(found[vc]) == octets
            assert _alike(found[vc]) == crossing_cells(octets), "the board in software keeps the same cells"
            withheld += sum(count for count, _, _ in found[vc])
    assert withheld > 100


def test_software_continues_as_the_definition() -> None:
    rng = random.Random(5)
    for _ in range(40):
        octets, offset = _stream(rng, cells=6, head=(head := rng.randrange(30)))
        given, place = given_cells(len(octets), Payload(head, offset))
        assert given * CELL - head >= 16
        assert octets[: given * CELL] + continuation(octets[: given * CELL], place, 6 - given) == octets
    assert given_cells(48, Payload(0, 0)) == given_cells(5000, None) == (ALL_GIVEN, 0)
    assert given_cells(96, Payload(48, 0)) == given_cells(20000, Payload(12225, 0)) == (ALL_GIVEN, 0)


def test_records_are_kept_or_withdrawn_as_one() -> None:
    node, rng = Compiled(library(CellRecords(words=64))), random.Random(6)
    ports, wanted, lost, seen = node.ports, deque[int](), 0, 0
    cell: list[int] | None = None
    settles = 0
    for _ in range(20000):
        busy = rng.random() < 0.5
        begin = cell is None and busy and rng.random() < 0.1
        end = cell is not None and len(cell) > 5 and rng.random() < 0.2
        put = busy and not begin and not end
        word, keeps = rng.getrandbits(32), rng.random() < 0.5
        for name, value in (("put", put), ("begin", begin), ("end", end), ("keeps", keeps), ("word", word)):
            ports[name].set(value)
        ports["head"].set(word)
        settles = settles + 1 if wanted else 0
        node.settle()
        level = ports["level"].get()
        assert level == len(wanted)
        takes = settles > 3 and level > 0 and rng.random() < (0.9 if seen % 2000 < 1000 else 0.05)
        if takes:
            assert ports["r_data"].get() == wanted[0]
        ports["r_en"].set(takes)
        node.settle()
        used = len(wanted) + (len(cell) if cell is not None else 0)
        full = used == 64
        assert ports["lost"].get() == ((put or begin) and full)
        if begin and full:
            break
        if begin:
            cell = [0]
        elif put and not full:
            (wanted if cell is None else cell).append(word)
        elif end and cell is not None:
            wanted += [word, *cell[1:]] if keeps else []
            cell = None
        lost += put and full
        if takes:
            wanted.popleft()
            settles = 0
        seen += 1
        node.edge()
    assert lost and seen > 200
