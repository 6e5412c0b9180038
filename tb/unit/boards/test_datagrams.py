"""Datagrams as a stream of octets, beside a model of a few lines; and two lines of one board."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from itertools import pairwise

import pytest

from benches.build import library
from benches.compiled import Compiled
from bentpipe_boards.datagrams import Datagrams, Lines
from bentpipe_sim.board.protocol import FrameReader, framed

LONGEST = 1472
PATIENCE = 2000
MOST = 600_000
"""Clocks of a test."""
CLIENT = (0xC0A80164, 40001)
OTHER = (0xC0A80165, 40002)

Datagram = tuple[tuple[int, int], bytes]


class _Bench:
    """Both ways of the component; random back-pressure where ``busy`` is above 0."""

    def __init__(self, seed: int, busy: float = 0.3) -> None:
        self.node = Compiled(library(Datagrams(patience=PATIENCE)))
        self.ports = self.node.ports
        self.random, self.busy = random.Random(seed), busy
        self.takes = True  # the line does
        self.came: deque[tuple[tuple[int, int], int, bytes, bool]] = deque()
        self.octets, self.given = bytearray(), deque[int]()
        self.sent: list[Datagram] = []
        self._words = bytearray()
        self.waited = self.clocks = 0

    def receive(self, client: tuple[int, int], payload: bytes, *, length: int | None = None) -> None:
        """A datagram comes; an empty one is a word of padding, as LiteEth has it."""
        padded = payload + bytes(-len(payload) % 4) or bytes(4)
        for at in range(0, len(padded), 4):
            self.came.append((client, len(payload), padded[at : at + 4], at + 4 == len(padded)))

    def give(self, octets: Iterable[int]) -> None:
        self.given.extend(octets)

    def clock(self) -> None:
        self.clocks += 1
        assert self.clocks < MOST, "it has come to a stop"
        ports, chance = self.ports, self.random.random
        word = self.came[0] if self.came and chance() >= self.busy else None
        ports["received_valid"].set(word is not None)
        if word is not None:
            (ip_address, port), length, octets, last = word
            for name, value in (("ip_address", ip_address), ("port", port), ("length", length), ("last", last)):
                ports[f"received_{name}"].set(value)
            ports["received_data"].set(int.from_bytes(octets, "little"))
        ports["rx_ready"].set(chance() >= self.busy)
        ports["tx_valid"].set(bool(self.given) and chance() >= self.busy)
        ports["tx"].set(self.given[0] if self.given else 0)
        ports["sent_ready"].set(self.takes and chance() >= self.busy)
        self.node.settle()
        if word is not None:
            assert ports["received_ready"].get()
            self.came.popleft()
        if ports["rx_valid"].get() and ports["rx_ready"].get():
            self.octets.append(ports["rx"].get())
        self.waited = 0 if ports["tx_ready"].get() else self.waited + ports["tx_valid"].get()
        if ports["tx_valid"].get() and ports["tx_ready"].get():
            self.given.popleft()
        if ports["sent_valid"].get() and ports["sent_ready"].get():
            self._words += ports["sent_data"].get().to_bytes(4, "little")
            if ports["sent_last"].get():
                length = ports["sent_length"].get()
                assert (length + 3) // 4 * 4 == len(self._words)
                client = ports["sent_ip_address"].get(), ports["sent_port"].get()
                self.sent.append((client, bytes(self._words[:length])))
                self._words.clear()
        self.node.edge()

    def run(self, idle: int = 40) -> None:
        """Clock until nothing is left to do, and some clocks more."""
        quiet = 0
        while quiet < idle:
            before = len(self.octets), len(self.sent), len(self._words)
            self.clock()
            still = before == (len(self.octets), len(self.sent), len(self._words))
            quiet = quiet + 1 if still and not self.came and not self.given else 0


def _frame(rng: random.Random, octets: int) -> bytes:
    """Return octets that look like a frame of so many octets."""
    return bytes((0, *(rng.randrange(1, 256) for _ in range(octets - 2)), 0))


def _datagrams(frame: bytes) -> list[bytes]:
    return [frame[at : at + LONGEST] for at in range(0, len(frame), LONGEST)]


@pytest.mark.parametrize("busy", [0.0, 0.4])
def test_datagrams_of_all_lengths_are_octets(busy: float) -> None:
    bench, rng = _Bench(1, busy), random.Random(2)
    wanted = b""
    for length in (0, 1, 2, 3, 4, 5, 0, 0, 7, 8, LONGEST - 1, LONGEST, 1, 0, 63):
        payload = rng.randbytes(length)
        bench.receive(CLIENT, payload)
        wanted += payload
        bench.run()
    assert bytes(bench.octets) == wanted


@pytest.mark.parametrize("busy", [0.0, 0.4])
def test_frames_of_all_lengths_are_datagrams(busy: float) -> None:
    bench, rng = _Bench(3, busy), random.Random(4)
    bench.receive(CLIENT, b"\1")
    bench.run()
    wanted = []
    for length in (3, 4, 5, 6, 7, *range(LONGEST - 2, LONGEST + 4), 2 * LONGEST, 2 * LONGEST + 1, 5000, 12):
        frame = _frame(rng, length)
        bench.give(frame)
        wanted += _datagrams(frame)
    bench.run()
    assert bench.sent == [(CLIENT, payload) for payload in wanted]
    assert max(map(len, wanted)) == LONGEST


def test_words_of_a_datagram_go_without_a_gap() -> None:
    """LiteEth begins to send with the first one."""
    bench = _Bench(5, busy=0.0)
    bench.receive(CLIENT, b"\1")
    bench.give(_frame(random.Random(6), LONGEST))
    gone = []
    for _ in range(LONGEST + 500):
        bench.clock()
        gone.append(bench.ports["sent_valid"].get())
    begins = gone.index(1)
    assert gone[begins : begins + LONGEST // 4] == [1] * (LONGEST // 4)
    assert sum(gone) == LONGEST // 4


def test_answers_go_to_the_client_that_asked_last() -> None:
    bench, rng = _Bench(7), random.Random(8)
    frames = [_frame(rng, 30 + k) for k in range(4)]
    bench.give(frames[0])  # there is no client yet
    bench.run()
    assert bench.sent == []
    for client, frame in ((CLIENT, frames[1]), (OTHER, frames[2]), (CLIENT, frames[3])):
        bench.receive(client, b"\0")
        bench.run()
        bench.receive((1, 1), b"")  # an empty datagram is none
        bench.run()
        bench.give(frame)
        bench.run()
    assert bench.sent == [(CLIENT, frames[1]), (OTHER, frames[2]), (CLIENT, frames[3])]


def test_a_datagram_keeps_its_client_from_its_first_word_to_its_last() -> None:
    bench, rng = _Bench(9, busy=0.0), random.Random(10)
    bench.receive(CLIENT, b"\1")
    bench.run()
    frames = [_frame(rng, 400), _frame(rng, 300)]
    bench.give(frames[0] + frames[1])
    while not bench.ports["sent_valid"].get():
        bench.clock()
    bench.busy = 0.6
    bench.receive(OTHER, b"\1")
    bench.run()
    assert bench.sent == [(CLIENT, frames[0]), (OTHER, frames[1])]


def test_a_line_that_takes_nothing_does_not_stop_the_board() -> None:
    """No clock at the PHY, or no answer to ARP: what goes is dropped after a time, and later frames are whole."""
    bench, rng = _Bench(11), random.Random(12)
    bench.receive(CLIENT, b"\1")
    bench.run()
    bench.takes = False
    frames = [_frame(rng, rng.randrange(20, 3000)) for _ in range(12)]
    most = 0
    for frame in frames:
        bench.give(frame)
        while bench.given:
            bench.clock()
            most = max(most, bench.waited)
    assert most == PATIENCE, "the board waits, but not for long"
    bench.takes = True
    bench.run()
    early, bench.sent = bench.sent, []
    assert [payload for _, payload in early] == [part for frame in frames for part in _datagrams(frame)][: len(early)]
    assert len(early) == 2
    last = _frame(rng, 2000)
    bench.give(last)
    bench.run()
    assert b"".join(payload for _, payload in bench.sent) == last


def test_a_line_that_stops_now_and_then_loses_frames_and_no_others() -> None:
    bench, rng = _Bench(13), random.Random(14)
    bench.receive(CLIENT, b"\1")
    frames = [[rng.randrange(1 << 32) for _ in range(rng.randrange(1, 500))] for _ in range(120)]
    for words in frames:
        bench.give(framed(words))
    while bench.given:
        bench.takes = not bench.takes
        for _ in range(rng.choice((50, 1500, 6000))):
            bench.clock()
    bench.takes = True
    bench.run()
    payloads = [payload for _, payload in bench.sent]
    for before, payload in pairwise(payloads):
        assert payload[0] == 0 or len(before) == LONGEST, "it begins within a frame"
    reader = FrameReader()
    got = [list(words) for payload in payloads for words in reader.feed(payload)]
    wanted = iter(frames)
    assert all(words in wanted for words in got), "whole, and in order"
    assert 20 < len(got) < len(frames)


def test_a_flood_is_dropped_and_the_next_frame_is_whole() -> None:
    bench, rng = _Bench(15, busy=0.0), random.Random(16)
    for _ in range(20):
        bench.receive(OTHER, rng.randbytes(LONGEST))
    bench.run()
    assert len(bench.octets) < 20 * LONGEST
    bench.octets.clear()
    frame = _frame(rng, 2060)
    for payload in _datagrams(frame):
        bench.receive(CLIENT, payload)
    bench.run()
    assert bytes(bench.octets) == frame, "the longest frame comes at the rate of the line"


# Two lines

PAUSE = 200


class _LinesBench:
    """A serial line and another one; a test gives their octets."""

    def __init__(self) -> None:
        self.node = Compiled(library(Lines(pause=PAUSE)))
        self.ports = self.node.ports
        self.came = bytearray()

    def clock(self, serial: int | None = None, other: int | None = None) -> bool:
        """Return whether the other line's octet was taken."""
        ports = self.ports
        for line, octet in (("serial", serial), ("other", other)):
            ports[f"{line}_rx_valid"].set(octet is not None)
            ports[f"{line}_rx"].set(octet or 0)
        self.node.settle()
        if ports["rx_valid"].get():
            self.came.append(ports["rx"].get())
        taken = bool(ports["other_rx_ready"].get())
        self.node.edge()
        return taken

    def route(self) -> str:
        """The line that an answer goes to."""
        ports = self.ports
        ports["tx_valid"].set(1)
        for line in ("serial", "other"):
            ports[f"{line}_tx_ready"].set(line == "serial")
        self.node.settle()
        found = [line for line in ("serial", "other") if ports[f"{line}_tx_valid"].get()]
        assert ports["tx_ready"].get() == (found == ["serial"])
        ports["tx_valid"].set(0)
        return "".join(found)


def test_frames_of_two_lines_are_not_mixed_and_each_is_answered_on_its_own() -> None:
    bench, rng = _LinesBench(), random.Random(17)
    assert bench.route() == "serial"
    first, second = _frame(rng, 40), _frame(rng, 50)
    left = deque(second)
    for k, octet in enumerate(first):
        if bench.clock(serial=octet, other=left[0] if k else None) and k:
            left.popleft()
        if k < len(first) - 1:
            assert bench.route() == "serial"
            assert not k or not bench.clock(other=left[0])
    while left:
        assert bench.clock(other=left.popleft())
        assert bench.route() == "other"
        if left and len(left) < len(second) - 1:
            bench.clock(serial=7)  # an octet in the frame of the other line
    assert bytes(bench.came) == first + second
    bench.clock(serial=0)
    assert bench.route() == "serial"


@pytest.mark.parametrize("line", ["serial", "other"])
def test_half_a_frame_holds_the_other_line_for_a_while_only(line: str) -> None:
    bench, rng = _LinesBench(), random.Random(18)
    for octet in b"\0abc":
        bench.clock(**{line: octet})
    second = _frame(rng, 20)
    if line == "serial":
        left, clocks = deque(second), 0
        while left and clocks < 2 * PAUSE:
            if bench.clock(other=left[0]):
                left.popleft()
            clocks += 1
        assert PAUSE <= clocks - len(second) <= PAUSE + 1
    else:
        for _ in range(PAUSE + 1):
            bench.clock()
        for octet in second:
            bench.clock(serial=octet)
    assert bytes(bench.came) == b"\0abc" + second


@pytest.mark.parametrize("component", [Datagrams, Lines])
def test_times_are_checked(component: type) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        component(**{"patience" if component is Datagrams else "pause": 0})
