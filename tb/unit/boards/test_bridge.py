"""The bridge in RTL, beside a model of it that was written from the protocol's description alone."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

from benches.build import library
from benches.compiled import Compiled
from bentpipe_boards.bridge import READ_CLOCKS, Bridge
from models.board_bridge import ReferenceBridge, answer_of, frame

WORDS = 64
SESSION = 0x1234


class _Machine:
    """Registers that keep what is written, a FIFO at 0x500, and runs that some addresses' contents stop."""

    def __init__(self, seed: int) -> None:
        self.words: dict[int, int] = {}
        self.fifo = deque(random.Random(seed).randrange(1 << 32) for _ in range(400))
        self.done: list[tuple[Any, ...]] = []
        self.following = 0

    def read(self, addr: int) -> int:
        if addr == 0x500:
            return len(self.fifo)
        if addr == 0x501:
            return self.fifo.popleft() if self.fifo else 0
        return self.words.get(addr, addr * 0x01010101 % (1 << 32))

    def write(self, addr: int, value: int) -> None:
        self.words[addr] = value
        self.done.append(("write", addr, value))

    def run(self, until: int) -> tuple[int, bool]:
        self.done.append(("run", until))
        stopped = until % 3 == 0
        self.following = until - 5 if stopped else until + 1
        return self.following, stopped


class _Bench:
    """The bridge's octets, with a machine on its bus."""

    def __init__(self, seed: int) -> None:
        self.node = Compiled(library(Bridge(words=WORDS)))
        self.ports = self.node.ports
        self.machine = _Machine(seed)
        self.answers: list[list[int] | None] = []
        self._random = random.Random(seed)
        self._line, self._running = bytearray(), 0
        self._wait, self._data = 0, 0

    def clock(self, octet: int | None = None) -> None:
        ports = self.ports

        def get(name: str) -> int:
            return ports[name].get()

        ports["rx_valid"].set(octet is not None)
        ports["rx"].set(octet or 0)
        ports["tx_ready"].set(self._random.random() < 0.8)
        ports["run_running"].set(self._running > 0)
        self.node.settle()
        if get("tx_valid") and get("tx_ready"):
            self._octet(get("tx"))
        if get("bus_w_en"):
            self.machine.write(get("bus_addr"), get("bus_w_data"))
        if get("bus_r_en"):
            self._wait, self._data = READ_CLOCKS, self.machine.read(get("bus_addr"))
        self._running -= self._running > 0
        if get("run_start"):
            following, stopped = self.machine.run(get("run_until"))
            self._running = self._random.randrange(1, 40)
            ports["run_following"].set(following)
            ports["run_stopped"].set(stopped)
        self.node.edge()
        self._wait -= 1  # before its time there is something else
        ports["bus_r_data"].set(self._data if self._wait < 1 else self._random.randrange(1 << 32))

    def _octet(self, octet: int) -> None:
        if octet:
            self._line.append(octet)
        elif self._line:
            words = answer_of(bytes(self._line))
            if words is None or words[0] & 0xFF != 0x83:  # it says that it is busy when it is, which the model never is
                self.answers.append(words)
            self._line.clear()

    def feed(self, octets: bytes) -> None:
        for octet in octets:
            self.clock(octet)
            for _ in range(self._random.choice((0, 0, 0, 1, 5))):
                self.clock()

    def settle(self) -> None:
        """Until nothing is to be done."""
        quiet = 0
        while quiet < 8:
            self.clock()
            quiet = 0 if self.ports["busy"].get() else quiet + 1


def _head(sequence: int, kind: int = 2, session: int = SESSION) -> int:
    return session << 16 | (sequence & 0xFF) << 8 | kind


def _list(rng: random.Random) -> list[int]:
    items: list[int] = []
    for _ in range(rng.randrange(1, 6)):
        kind = rng.choice((1, 1, 2, 3, 4))
        addr = rng.randrange(1 << 28) if kind != 3 else 0x500
        if kind == 1:
            values = [rng.choice((0, rng.randrange(1 << 32))) for _ in range(rng.randrange(6))]
            items += (1 << 24 | len(values), addr, *values)
        elif kind == 4:
            items += (4 << 24, rng.randrange(1 << 32), rng.randrange(1 << 16))
        else:
            items += (kind << 24 | rng.randrange(12), addr)
    if rng.random() < 0.1:
        items = items[: rng.randrange(len(items) + 1)]
    return items


def _spoilt(rng: random.Random, octets: bytes) -> bytes:
    spoilt = bytearray(octets)
    what = rng.randrange(4)
    if what == 0:
        spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    elif what == 1:
        del spoilt[rng.randrange(len(spoilt)) :]
    elif what == 2:
        at = rng.randrange(len(spoilt))
        spoilt[at:at] = rng.randbytes(rng.randrange(1, 40))
    else:
        spoilt += rng.randbytes(rng.randrange(300))
    return bytes(spoilt)


@pytest.mark.parametrize("seed", range(4))
def test_lists_and_noise_have_the_same_effects_and_answers_as_the_model(seed: int) -> None:
    rng, bench, machine = random.Random(seed), _Bench(seed), _Machine(seed)
    model = ReferenceBridge(machine, WORDS)
    sequence = 0
    requests = [frame([_head(0, 1)])]
    for _ in range(120):
        what = rng.random()
        if what < 0.6:
            sequence += 1
            requests.append(frame([_head(sequence), *_list(rng)]))
        elif what < 0.7:
            requests.append(requests[-1])
        elif what < 0.75:
            requests.append(frame([_head(rng.randrange(256), rng.randrange(4), rng.choice((SESSION, 0, 7)))]))
            if requests[-1] != requests[-2]:
                requests.append(frame([_head(0, 1, 0xFFFF)]))
                requests.append(frame([_head(0, 1)]))
                sequence = 0
        else:
            requests.append(_spoilt(rng, requests[-1]))
    for octets in requests:
        bench.feed(octets)
        bench.settle()
        model.feed(octets)
    assert bench.machine.done == machine.done
    assert bench.answers == model.answers
    assert len(machine.done) > 100


def test_a_frame_that_is_sent_again_while_its_list_is_done_is_answered_busy_and_done_once() -> None:
    bench = _Bench(1)
    bench.feed(frame([_head(0, 1)]))
    bench.settle()
    octets = frame([_head(1), 1 << 24 | 1, 5, 77, 4 << 24, 100, 0])
    bench.feed(octets)
    while not bench.ports["run_start"].get():
        bench.clock()
    bench.clock()
    bench._running = 4000
    busy = len(bench.answers)
    bench.feed(octets)
    assert bench.ports["run_stop"].get() == 0
    for _ in range(5000):
        bench.clock()
    assert bench.machine.done == [("write", 5, 77), ("run", 100)]
    assert bench.answers[busy:] == [[_head(1, 0x82), 0, 101, 0]]


def test_another_frame_stops_the_run_and_is_done_next() -> None:
    bench = _Bench(1)
    bench.feed(frame([_head(0, 1)]))
    bench.settle()
    bench.feed(frame([_head(1), 4 << 24, 100, 0]))
    while not bench.ports["run_start"].get():
        bench.clock()
    bench.clock()
    bench._running = 100000
    bench.feed(frame([_head(0, 1, 9)]))
    for _ in range(20):
        bench.clock()
    assert bench.ports["run_stop"].get() == 1
    bench._running = 0
    bench.settle()
    assert bench.answers[-1] == [9 << 16 | 0x81]


def test_sizes_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="words must be a power of two"):
        Bridge(words=100)
