"""The host's end on a bad line: it recovers or says what is wrong, and nothing is ever done twice."""

from __future__ import annotations

import os
import random
import termios
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bentpipe_sim.board.client import GIVE_UP_S, Client, Items
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.model import BridgeModel
from bentpipe_sim.board.pipe import SerialPipe
from bentpipe_sim.board.protocol import cobs_decoded, cobs_encoded
from models.board_bridge import ReferenceBridge, decode, encode, frame

FAULTS = 10_000
WORDS = 64


class _Log:
    """A machine that keeps what it was told."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.following = 0

    def read(self, addr: int) -> int:
        return addr ^ 0xFFFFFFFF

    def write(self, addr: int, value: int) -> None:
        self.done.append(value)

    def run(self, until: int) -> tuple[int, bool]:
        self.done.append(until)
        return until + 1, False


class _Board:
    """A bridge, and a line to it that a test spoils. Its clock is the test's."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.machine = rng, _Log()
        self.time = 0.0
        self.reset()
        self.out: Callable[[bytes], bytes] = lambda octets: octets
        self.back: Callable[[bytes], bytes] = lambda octets: octets
        self._coming: list[tuple[float, bytes]] = []

    def reset(self) -> None:
        self.bridge = ReferenceBridge(self.machine, WORDS)

    def now(self) -> float:
        return self.time

    def send(self, octets: bytes) -> None:
        message = len(self.bridge.answers)
        self.bridge.feed(self.out(octets))
        for answer in self.bridge.answers[message:]:
            late = self.rng.choice((0.001, 0.001, 0.01, 0.2, 0.4))
            self._coming.append((self.time + late, self.back(frame(answer))))
        del self.bridge.answers[:]
        self._coming.sort(key=lambda each: each[0])

    def receive(self, until: float) -> bytes:
        if self._coming and self._coming[0][0] <= until:
            when, octets = self._coming.pop(0)
            self.time = max(self.time, when)
            return octets
        self.time = max(self.time, until)
        return b""

    def close(self) -> None:
        pass


def _faults(rng: random.Random) -> dict[str, Callable[[bytes], bytes]]:
    def flip(octets: bytes) -> bytes:
        spoilt = bytearray(octets)
        for _ in range(rng.randrange(1, 4)):
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
        return bytes(spoilt)

    return {
        "flip": flip,
        "cut": lambda octets: octets[rng.randrange(len(octets)) :],
        "half a frame": lambda octets: octets[: rng.randrange(len(octets))],
        "flood": lambda octets: rng.randbytes(rng.randrange(200)) + octets + rng.randbytes(rng.randrange(200)),
        "hole": lambda octets: octets[: len(octets) // 3] + octets[len(octets) // 2 :],
        "twice": lambda octets: octets + octets,
        "silence": lambda _: b"",
    }


def _once(spoil: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """The fault, the next time alone."""
    left = [spoil]
    return lambda octets: left.pop()(octets) if left else octets


def test_ten_thousand_faults_on_the_line() -> None:
    rng = random.Random(38)
    board = _Board(rng)
    faults = _faults(rng)
    recovered, failed = 0, 0
    client = Client(board, rng.randrange(1, 1 << 16))
    for token in range(1, FAULTS + 1):
        board.out = board.back = lambda octets: octets
        kind = rng.choice([*faults, "dead", "client", "reset"])
        if kind in faults:
            for way in rng.sample(("out", "back"), rng.choice((1, 1, 2))):
                setattr(board, way, _once(faults[kind]))
        elif kind == "dead":
            setattr(board, rng.choice(("out", "back")), faults["silence"])
        elif kind == "client":
            Client(board, rng.randrange(1, 1 << 16))
        else:
            board.reset()
        items, before, begun = Items(), len(board.machine.done), board.time
        items.write(rng.randrange(1 << 28), [token])
        items.read(5, 2)
        if rng.random() < 0.3:
            items.run(token)
        try:
            answers = client.do(items)
        except BoardError as error:
            failed += 1
            told = board.machine.done[before:]
            assert told in ([], [token], [token, token]), f"{kind}: {told}"
            if kind == "client":
                assert "another program" in str(error) and not told
            elif kind == "reset":
                assert "reset" in str(error) and not told
            board.out = board.back = lambda octets: octets
            client = Client(board, rng.randrange(1, 1 << 16))  # the next run works
        else:
            recovered += 1
            assert kind in faults
            assert answers[0] == (0xFFFFFFFA, 0xFFFFFFF9)
            assert board.machine.done[before:] == [token] * len(answers), f"{kind}: not done just once"
        assert board.time - begun < 2.5, f"{kind}: {board.time - begun:.2f} s"
    assert recovered + failed == FAULTS
    assert recovered > FAULTS // 2 and failed > FAULTS // 10


def test_a_dead_line_is_given_up_in_two_seconds() -> None:
    board = _Board(random.Random(1))
    client = Client(board, 5)
    board.out = lambda _: b""
    begun = board.time
    with pytest.raises(BoardError, match="has not answered"):
        client.do(Items())
    assert GIVE_UP_S <= board.time - begun <= 2


def test_a_board_that_is_busy_is_waited_for() -> None:
    class Busy(_Board):
        def send(self, octets: bytes) -> None:
            if self.time < 30:
                self._coming.append((self.time + 0.01, frame([5 << 16 | 1 << 8 | 0x83])))
            else:
                super().send(octets)

    board = Busy(random.Random(1))
    board.time = 50.0
    client = Client(board, 5)
    board.time = 0.0
    assert client.do(Items()) == []
    assert board.time >= 30


def test_cobs_both_ways() -> None:
    rng = random.Random(3)
    for length in (*range(10), 253, 254, 255, 508, 509, 1000):
        for octets in (rng.randbytes(length), bytes(length), b"\1" * length):
            assert cobs_encoded(octets) == encode(octets)
            assert cobs_decoded(encode(octets)) == decode(cobs_encoded(octets)) == octets
            assert 0 not in encode(octets)
    assert cobs_decoded(b"\5ab") is None is decode(b"\5ab")


def test_the_board_in_software_answers_as_the_model() -> None:
    class Machine(_Log):
        def run(self, until: int) -> bool:  # type: ignore[override]
            self.done.append(until)
            self.following = until - 1 if until % 2 else until + 1
            return bool(until % 2)

    class Reference(_Log):
        def run(self, until: int) -> tuple[int, bool]:
            self.done.append(until)
            return (until - 1 if until % 2 else until + 1), bool(until % 2)

    rng, ours, theirs = random.Random(9), Machine(), Reference()
    bridge, reference = BridgeModel(ours, WORDS), ReferenceBridge(theirs, WORDS)
    octets = [frame([7 << 16 | 1])]
    for sequence in range(1, 400):
        items = [rng.choice((rng.randrange(1, 5) << 24 | rng.randrange(30), rng.randrange(1 << 32))) for _ in range(30)]
        octets.append(frame([7 << 16 | (sequence & 0xFF) << 8 | 2, *items[: rng.randrange(30)]]))
        octets += rng.choice(([], [octets[-1]], [rng.randbytes(9)]))
    for each in octets:
        message = len(reference.answers)
        reference.feed(each)
        assert bridge.feed(each) == b"".join(map(frame, reference.answers[message:]))
    assert ours.done == theirs.done and len(ours.done) > 100


def test_sequence_numbers_wrap() -> None:
    board = _Board(random.Random(1))
    client = Client(board, 5)
    for token in range(600):
        items = Items()
        items.write(0, [token])
        client.do(items)
    assert board.machine.done == list(range(600))


@pytest.mark.parametrize("refuses", [False, True])
def test_a_serial_port_is_asked_for_low_latency_and_need_not_have_it(monkeypatch, refuses):
    requests = []

    def ioctl(fd, request, words):
        requests.append((request, words[4]))
        if refuses:
            raise OSError(25, "Inappropriate ioctl for device")
        words[4] |= 1

    monkeypatch.setattr("fcntl.ioctl", ioctl)
    master, line = os.openpty()
    SerialPipe(Path(os.ttyname(line))).close()
    os.close(master)
    os.close(line)
    assert requests == [(termios.TIOCGSERIAL, 0), (termios.TIOCSSERIAL, 1 | 1 << 13)][: 1 if refuses else 2]


@pytest.mark.parametrize("patience", [0.05, 5.0])
def test_a_line_that_takes_no_octets_is_given_up_after_its_time(patience: float) -> None:
    board, line = os.openpty()
    pipe = SerialPipe(Path(os.ttyname(line)), patience=patience)
    octets = bytes(range(1, 256)) * 400
    took = 0

    def reads() -> None:
        nonlocal took
        while took < len(octets):
            took += len(os.read(board, 1 << 16))

    reader = threading.Timer(0.4, reads)
    try:
        if patience < 1:
            with pytest.raises(BoardError, match="takes no octets"):
                pipe.send(octets)
        else:
            reader.start()
            pipe.send(octets)
            reader.join()
            assert took == len(octets)
    finally:
        pipe.close()
        os.close(line)
        os.close(board)
