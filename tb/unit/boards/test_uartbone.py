"""UARTBone beside the frames: what LiteX's client sends, as its ``comm_uart.py`` (LiteX 2024.12) has it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benches.build import library
from benches.compiled import Compiled
from bentpipe_boards.bridge import READ_CLOCKS, Bridge, BusSignature
from bentpipe_boards.top import join
from bentpipe_boards.uartbone import UartBone
from models.board_bridge import answer_of, frame

SCRATCH, PAUSE, WORDS = 0x6, 500, 64


class _Both(wiring.Component):
    """A bridge with UARTBone beside it, as :class:`bentpipe_boards.top.OctetTop` has them."""

    def __init__(self) -> None:
        octets = {"rx": In(8), "rx_valid": In(1), "tx": Out(8), "tx_valid": Out(1), "tx_ready": In(1)}
        super().__init__({**octets, "bus": Out(BusSignature()), "busy": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.bridge = bridge = Bridge(words=WORDS)
        m.submodules.uartbone = uartbone = UartBone(scratch=SCRATCH, pause=PAUSE)
        join(m, self, bridge, uartbone, self.bus)
        return m


class _Bench:
    """Octets in and out, and registers that are their address times a number but for the scratch one."""

    def __init__(self, seed: int = 1) -> None:
        self.node = Compiled(library(_Both()))
        self._random = random.Random(seed)
        self.scratch = 0
        self.writes: list[tuple[int, int]] = []
        self.came = bytearray()
        self._wait, self._data = 0, 0

    def word(self, addr: int) -> int:
        return self.scratch if addr == SCRATCH else addr * 0x01030507 % (1 << 32)

    def clock(self, octet: int | None = None) -> None:
        ports = self.node.ports
        ports["rx_valid"].set(octet is not None)
        ports["rx"].set(octet or 0)
        ports["tx_ready"].set(self._random.random() < 0.7)
        self.node.settle()
        if ports["tx_valid"].get() and ports["tx_ready"].get():
            self.came.append(ports["tx"].get())
        addr = ports["bus_addr"].get()
        if ports["bus_w_en"].get():
            self.writes.append((addr, ports["bus_w_data"].get()))
            if addr == SCRATCH:
                self.scratch = ports["bus_w_data"].get()
        if ports["bus_r_en"].get():
            self._wait, self._data = READ_CLOCKS, self.word(addr)
        self.node.edge()
        self._wait -= 1  # before its time there is something else
        ports["bus_r_data"].set(self._data if self._wait < 1 else self._random.randrange(1 << 32))

    def give(self, octets: bytes) -> bytes:
        """Return the answers until there are no more."""
        self.came.clear()
        for octet in octets:
            self.clock(octet)
            for _ in range(self._random.choice((1, 3, 9))):
                self.clock()
        quiet = 0
        while quiet < 60:
            self.clock()
            quiet = 0 if self.node.ports["tx_valid"].get() else quiet + 1
        return bytes(self.came)

    def wait(self, clocks: int = PAUSE + 2) -> None:
        for _ in range(clocks):
            self.clock()


def _reads(addr: int, count: int = 1, *, fixed: bool = False) -> bytes:
    return bytes((4 if fixed else 2, count)) + addr.to_bytes(4, "big")


def _writes(addr: int, words: Sequence[int], *, fixed: bool = False) -> bytes:
    return bytes((3 if fixed else 1, len(words))) + addr.to_bytes(4, "big") + _octets(words)


def _octets(words: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(4, "big") for word in words)


@pytest.fixture(scope="module")
def shared() -> _Bench:
    return _Bench()


@pytest.fixture
def bench(shared: _Bench) -> Iterator[_Bench]:
    shared.wait()
    shared.writes.clear()
    yield shared


def test_words_are_read_as_litex_reads_them(bench: _Bench) -> None:
    for addr, count in ((0xF0, 1), (0x1234567, 3), (0, 255)):
        assert bench.give(_reads(addr, count)) == _octets([bench.word(addr + k) for k in range(count)])
    assert bench.give(_reads(0x40, 3, fixed=True)) == _octets([bench.word(0x40)] * 3)
    assert bench.give(_reads(0x40, 0)) == b""
    assert bench.writes == []


def test_only_the_scratch_register_is_written(bench: _Bench) -> None:
    assert bench.give(_writes(SCRATCH - 2, [1, 2, 3, 4])) == b""
    assert bench.writes == [(SCRATCH, 3)]
    assert bench.give(_reads(SCRATCH)) == _octets([3])
    bench.give(_writes(SCRATCH, [7, 0xDEADBEEF], fixed=True))
    assert bench.writes[1:] == [(SCRATCH, 7), (SCRATCH, 0xDEADBEEF)]
    bench.give(_writes(0x100, [5]))
    assert len(bench.writes) == 3


def _opened(bench: _Bench, session: int) -> None:
    found = bench.give(frame([session << 16 | 1]))
    assert answer_of(found.strip(b"\0")) == [session << 16 | 0x81]


def _asks(session: int, sequence: int, addr: int) -> bytes:
    return frame([session << 16 | sequence << 8 | 2, 2 << 24 | 2, addr])


def test_frames_and_commands_come_in_any_order(bench: _Bench) -> None:
    session, generator = 0x0102, random.Random(5)
    _opened(bench, session)
    sequence = 0
    for _ in range(60):
        if generator.random() < 0.5:
            sequence = (sequence + 1) & 0xFF
            found = answer_of(bench.give(_asks(session, sequence, 0x50)).strip(b"\0"))
            assert found is not None and found[2:] == [bench.word(0x50), bench.word(0x51)]
        else:
            addr = generator.randrange(1 << 28)
            assert bench.give(_reads(addr)) == _octets([bench.word(addr)])


def test_a_command_behind_a_frame_waits_for_its_answer(bench: _Bench) -> None:
    _opened(bench, 0x0203)
    found = bench.give(_asks(0x0203, 1, 0x60) + _reads(0x70))
    assert found.endswith(b"\0" + _octets([bench.word(0x70)]))
    answer = answer_of(found[:-4].strip(b"\0"))
    assert answer is not None and answer[2] == bench.word(0x60)


@pytest.mark.parametrize("cut", range(1, 10))
def test_half_a_command_is_over_after_a_pause(bench: _Bench, cut: int) -> None:
    bench.give(_writes(SCRATCH, [0x11111111])[:cut])
    bench.wait()
    assert bench.give(_reads(0x33)) == _octets([bench.word(0x33)])
    _opened(bench, 0x0304 + cut)


def test_a_half_frame_is_over_after_a_pause(bench: _Bench) -> None:
    bench.give(_asks(0x0102, 9, 0x50)[:7])
    bench.wait()
    assert bench.give(_reads(0x34)) == _octets([bench.word(0x34)])


def test_a_frame_whose_first_octet_is_lost_is_understood(bench: _Bench) -> None:
    _opened(bench, 0x0505)
    found = answer_of(bench.give(_asks(0x0505, 1, 0x50)[1:]).strip(b"\0"))
    assert found is not None and found[2] == bench.word(0x50)


def test_after_noise_both_work_again(bench: _Bench) -> None:
    generator = random.Random(9)
    for k in range(40):
        bench.give(generator.randbytes(generator.randrange(1, 40)))
        bench.wait()
        assert bench.give(_reads(0x35)) == _octets([bench.word(0x35)])
        _opened(bench, 0x0600 + k)
    assert {addr for addr, _ in bench.writes} <= {SCRATCH}
