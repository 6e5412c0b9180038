"""Reassembly and scoreboard against sets of octets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bentpipe.tcp.reassembly import Reassembly
from bentpipe.tcp.scoreboard import Scoreboard

MSS = 10
ranges = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 6)), max_size=25)


@given(ranges, st.integers(0, 40))
def test_reassembly(pieces: list[tuple[int, int]], expected: int) -> None:
    board = Reassembly()
    held: set[int] = set()
    recent: list[int] = []  # a number of each, the last first
    for start, size in pieces:
        board.add(start, start + size)
        recent.insert(0, start)
        held |= set(range(start, start + size))
        assert {seq for a, b in zip(board.starts, board.ends, strict=True) for seq in range(a, b)} == held
        assert all(b < a for b, a in zip(board.ends, board.starts[1:], strict=False))  # apart and sorted
        blocks = board.blocks(4)
        spans = list(zip(board.starts, board.ends, strict=True))
        ordered = dict.fromkeys(next((a, b) for a, b in spans if a <= seq < b) for seq in recent)
        assert blocks == list(ordered)[:4]
    wanted = expected
    while wanted in held:
        wanted += 1
    assert board.advance(expected) == wanted
    assert {seq for a, b in zip(board.starts, board.ends, strict=True) for seq in range(a, b)} == {
        seq for seq in held if seq > wanted
    }
    assert all(a >= wanted for a, _ in board.blocks(4))


class Model:
    """RFC 3517 section 4 by the letter, octet by octet."""

    def __init__(self) -> None:
        self.una = 0
        self.high_rxt = 0
        self.sacked: set[int] = set()

    def is_lost(self, seq: int) -> bool:
        above = sorted(s for s in self.sacked if s > seq)
        runs = sum(1 for s in above if s - 1 not in self.sacked or s - 1 <= seq)
        return runs >= 3 or len(above) >= 3 * MSS

    def pipe(self, high_data: int) -> int:
        total = 0
        for seq in range(self.una, high_data):
            if seq not in self.sacked:
                total += (not self.is_lost(seq)) + (seq < self.high_rxt)
        return total

    def first(self, lost_only: bool) -> int:
        """NextSeg rule 1 or rule 3: the first octet, -1 if none."""
        top = max(self.sacked, default=-1)
        for seq in range(self.high_rxt, top):
            if seq not in self.sacked and (self.is_lost(seq) or not lost_only):
                return seq
        return -1


operations = st.lists(
    st.one_of(
        st.tuples(st.just("sack"), st.integers(0, 175), st.integers(1, 25)),
        st.tuples(st.just("ack"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("retransmit"), st.integers(1, 15), st.just(0)),
        st.tuples(st.just("recover"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(operations)
def test_scoreboard(steps: list[tuple[str, int, int]]) -> None:
    board, model, high = Scoreboard(MSS), Model(), 200
    for what, value, size in steps:
        if what == "sack":
            news = set(range(max(value, model.una), value + size)) - model.sacked
            assert board.add(value, value + size) == bool(news)
            model.sacked |= news
        elif what == "ack":
            model.una = min(model.una + value, high)
            while model.una in model.sacked:
                model.una += 1
            model.sacked = {seq for seq in model.sacked if seq >= model.una}
            model.high_rxt = max(model.high_rxt, model.una)
            board.advance(model.una)
        elif what == "retransmit":
            start, end = board.hole(board.highest)
            if end:
                end = min(end, start + value)
                board.retransmitted(end)
                model.high_rxt = end
        else:
            board.start_recovery()
            model.high_rxt = model.una
        assert board.sacked == len(model.sacked)
        assert board.pipe(high) == model.pipe(high)
        lost = board.lost_below()
        for rule, below in ((True, lost), (False, board.highest)):
            start, end = board.hole(below)
            assert (start if end else -1) == model.first(rule)
            assert not model.sacked & set(range(start, end))
        for seq in range(model.una, high, 7):
            skipped = seq
            while skipped in model.sacked:
                skipped += 1
            assert board.skip(seq) == skipped
    board.clear(model.una)
    assert board.sacked == 0 and board.highest == model.una and len(board) == 0
