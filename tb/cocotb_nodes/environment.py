"""The environment of a node in cocotb: time, a source and a sink of cells, the register bus, a NIC's host.

One coroutine serves them all, at the clock's falling edge: it samples what the node made of the last rising edge, then
sets the inputs for the next. Tests put cells, PDUs and register accesses into queues, and wait for ticks to pass.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import Event, FallingEdge

import cocotb
from bentpipe_hdl.cell import CLOCKS_A_TICK
from bentpipe_sim.interface import PduStatus
from models.cell import Cell, Header, Interface

__all__ = ["Arrival", "Departure", "Environment", "Host", "Pdu", "Received", "gaps"]


@dataclass(frozen=True)
class Arrival:
    """A cell to give to the node."""

    cell: Cell
    port: int = 0
    hec_error: bool = False


@dataclass(frozen=True)
class Departure:
    """A cell that came out, with the tick that decided on it."""

    tick: int
    port: int
    header: int
    payload: bytes
    hec_error: bool = False

    def as_header(self, interface: Interface = Interface.UNI) -> Header:
        return Header.unpack(self.header.to_bytes(4, "big"), interface)


@dataclass(frozen=True)
class Pdu:
    """A PDU to send."""

    vc: int
    octets: bytes
    uu: int = 0
    cpi: int = 0


@dataclass(frozen=True)
class Received:
    """A PDU's end. ``octets`` are those of all its cells."""

    vc: int
    status: PduStatus
    length: int
    uu: int
    cpi: int
    octets: bytes


def words_of(octets: bytes) -> list[int]:
    """32-bit words, first octet lowest."""
    return [int.from_bytes(octets[k : k + 4], "little") for k in range(0, len(octets), 4)]


def gaps(rng: random.Random) -> Callable[[int], bool]:
    """Return when a source pauses: back to back for a while, then at a random load, then back to back again."""
    state = [0, 1.0]

    def pause(tick: int) -> bool:
        if tick >= state[0]:
            load, length = rng.choice([(1.0, 80), (0.9, 80), (0.5, 80), (0.1, 80), (0.0, 40)])
            state[:] = [tick + rng.randrange(1, length), load]
        return rng.random() >= state[1]

    return pause


def reader(handle: Any) -> Callable[[], int]:
    """Return a function that reads a port's value as a number.

    ``int(handle.value)`` makes a ``Logic`` or a ``LogicArray`` first: two fifths of the time of a test (cocotb 2.1.0,
    ``pytest tb/cocotb/test_nic.py``). Verilator has no unknown bits; ``int`` refuses them here as well.
    """
    bits = handle._handle.get_signal_val_binstr
    return lambda: int(bits(), 2)


class Ports:
    """The node's ports. A value is only written when it changes; a port that the node lacks reads as 0."""

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        self._handles: dict[str, Any] = {}
        self._readers: dict[str, Callable[[], int]] = {}
        self._values: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        if name not in self._handles:
            self._handles[name] = getattr(self._dut, name, None)
        return self._handles[name] is not None

    def get(self, name: str) -> int:
        read = self._readers.get(name)
        if read is None:
            read = self._readers[name] = reader(self._handles[name]) if name in self else lambda: 0
        return read()

    def set(self, name: str, value: int) -> None:
        if self._values.get(name) != value and name in self:
            self._values[name] = value
            self._handles[name].value = int(value)


class Source:
    """Sends queued cells, one a tick; ``pause(tick)`` holds them back. ``sent`` has each with its tick."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.queue: deque[Arrival] = deque()
        self.pause: Callable[[int], bool] = lambda tick: False
        self.sent: list[tuple[int, Arrival]] = []
        self._words: deque[tuple[int, Arrival | None] | None] = deque()

    def drive(self, starts: bool) -> None:
        ports, now = self.environment.ports, self.environment.now
        arrival = None
        if starts and self.queue and not self.pause(now):
            arrival = self.queue.popleft()
            self.sent.append((now, arrival))
        if self.environment.wide:
            ports.set("i_valid", arrival is not None)
            if arrival:
                ports.set("i_header", int(arrival.cell.header))
                ports.set("i_payload", int.from_bytes(arrival.cell.payload, "little"))
                ports.set("i_port", arrival.port)
                ports.set("i_hec_error", arrival.hec_error)
            return
        draw = self.environment.random
        if arrival:
            if not self._words and draw.random() < 0.3:  # the header may come in a tick's second clock
                self._words.append(None)
            self._words.append((int(arrival.cell.header), arrival))
            self._words.extend((word, None) for word in words_of(arrival.cell.payload))
        word = self._words.popleft() if self._words else None
        ports.set("i_valid", word is not None)
        ports.set("i_word", word[0] if word else draw.getrandbits(32))
        begins = word[1] if word else None
        ports.set("i_soc", begins is not None)
        if begins:
            ports.set("i_port", begins.port)
            ports.set("i_hec_error", begins.hec_error)


class Sink:
    """Collects the cells that come out."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.cells: list[Departure] = []
        self._words: list[int] = []
        self._start = (0, 0, False)

    def sample(self) -> None:
        ports, now = self.environment.ports, self.environment.now
        if not ports.get("o_valid"):
            assert not self._words, "a gap in a cell"
            return
        port, bad = ports.get("o_port"), bool(ports.get("o_hec_error"))
        if self.environment.wide:
            payload = ports.get("o_payload").to_bytes(48, "little")
            self.cells.append(Departure(now, port, ports.get("o_header"), payload, bad))
            return
        if ports.get("o_soc"):
            assert not self._words, "a cell that began inside another"
            self._start = (now - 1, port, bad)
        else:
            assert self._words, "a word outside of a cell"
        self._words.append(ports.get("o_word"))
        if len(self._words) == 13:
            payload = b"".join(word.to_bytes(4, "little") for word in self._words[1:])
            tick, port, bad = self._start
            self.cells.append(Departure(tick, port, self._words[0], payload, bad))
            self._words = []


class Host:
    """The host's side of a NIC: posts PDUs, each when its VC is free, gives octets when asked, takes what comes in."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.received: list[Received] = []
        self._queues: dict[int, deque[Pdu]] = {}
        self._free: deque[int] = deque()  # VCs with a PDU to post and none under way
        self._offered: Pdu | None = None
        self._current: dict[int, tuple[bytes, int]] = {}
        self._supply: deque[int] = deque()
        self._took = False
        self._octets: dict[int, bytearray] = {}

    def send(self, pdu: Pdu) -> None:
        queue = self._queues.setdefault(pdu.vc, deque())
        busy = queue or pdu.vc in self._current or (self._offered and self._offered.vc == pdu.vc)
        queue.append(pdu)
        if not busy:
            self._free.append(pdu.vc)

    @property
    def done(self) -> bool:
        """Everything has been handed to the line."""
        return not (self._free or self._offered or self._current)

    def serve(self) -> None:
        self._transmit()
        self._receive()

    def _transmit(self) -> None:
        environment, ports = self.environment, self.environment.ports
        if ports.get("done"):
            vc = ports.get("done_vc")
            del self._current[vc]
            if self._queues[vc]:
                self._free.append(vc)
        if ports.get("post_taken"):
            assert self._offered, "taken, but nothing was posted"
            self._current[self._offered.vc] = (self._offered.octets, 0)
            self._offered = None
        if self._took:
            self._supply.popleft()
        if ports.get("fetch"):
            vc = ports.get("fetch_vc")
            octets, place = self._current[vc]
            self._current[vc] = (octets, place + 48)
            block = octets[place : place + 48]
            block += environment.random.randbytes(48 - len(block))  # beyond the end: whatever was there
            if environment.wide:
                ports.set("block", int.from_bytes(block, "little"))
            else:
                self._supply.extend(words_of(block))
        if not environment.wide:
            self._took = bool(ports.get("word_next"))
            if self._supply:
                ports.set("word", self._supply[0])
        if self._offered is None and self._free:
            pdu = self._offered = self._queues[self._free[0]].popleft()
            self._free.popleft()
            for name, value in (("vc", pdu.vc), ("length", len(pdu.octets)), ("uu", pdu.uu), ("cpi", pdu.cpi)):
                ports.set(f"post_{name}", value)
        ports.set("post_valid", self._offered is not None)

    def _receive(self) -> None:
        ports = self.environment.ports
        valid, last = ports.get("rx_valid"), ports.get("rx_last")
        if not (valid or last):
            return
        vc = ports.get("rx_vc")
        octets = self._octets.setdefault(vc, bytearray())
        if valid:
            if ports.get("rx_index") == 0 and len(octets) % 48 == 0:  # in the place of what was there, before a set-up
                octets.clear()
            assert ports.get("rx_index") == len(octets) // 48, "a cell out of order"
            wide = self.environment.wide
            octets += (
                ports.get("rx_payload").to_bytes(48, "little") if wide else ports.get("rx_word").to_bytes(4, "little")
            )
        if last:
            status, length, uu, cpi = (ports.get(f"rx_{name}") for name in ("status", "length", "uu", "cpi"))
            assert len(octets) % 48 == 0, "a verdict inside a cell"
            self.received.append(Received(vc, PduStatus(status), length, uu, cpi, bytes(octets)))
            del self._octets[vc]


class Environment:
    """A node, its time and everything around it.

    Parameters
    ----------
    dut
        cocotb's handle.
    seed : int
        For what must not matter: clocks a tick, where headers come in a tick, what lines without meaning have.
    spread : tuple of int
        Clocks more than the least that a tick may have; one is drawn for each.
    """

    def __init__(self, dut: Any, seed: int = 1, spread: tuple[int, ...] = (0, 0, 0, 0, 0, 0, 1, 5)) -> None:
        self.dut, self.ports = dut, Ports(dut)
        self.wide = "i_payload" in self.ports
        self.random = random.Random(seed)
        self.now = 0
        self._spread = spread
        self._clear()

    def _clear(self) -> None:
        self.running = False
        self.source, self.sink = Source(self), Sink(self)
        self.host = Host(self) if "post_valid" in self.ports else None
        self._left = 0
        self._accesses: deque[tuple[int, int | None, list[int]]] = deque()
        self._reading: tuple[int, list[int]] | None = None
        self._waits: list[tuple[Callable[[], bool], Event]] = []

    async def start(self) -> None:
        """Start the clock and reset the node."""
        Clock(self.dut.clk, 2, "ns", impl="gpi").start()
        await self.reset()

    async def reset(self) -> None:
        """Reset, whatever the node is at; wait until it has cleared its tables. No tick passes before :meth:`ticks`."""
        await FallingEdge(self.dut.clk)
        self._clear()
        for name in ("i_valid", "i_hec_error", "i_soc", "time_tick", "time_now", "csr_w_en", "csr_r_en", "post_valid"):
            self.ports.set(name, 0)
        self.ports.set("rst", 1)
        await FallingEdge(self.dut.clk)
        await FallingEdge(self.dut.clk)
        self.ports.set("rst", 0)
        for _ in range(20000):
            await FallingEdge(self.dut.clk)
            if self.ports.get("status_idle"):
                break
        else:
            raise AssertionError("the node never became idle after reset")
        cocotb.start_soon(self._run(self.source))

    async def _run(self, mine: Source) -> None:
        edge = FallingEdge(self.dut.clk)
        while True:
            await edge
            if self.source is not mine:  # there was a reset
                return
            self.sink.sample()
            starts = self.running and self._left == 0
            if starts:
                self.now += 1
                self._left = (1 if self.wide else CLOCKS_A_TICK) + self.random.choice(self._spread)
            self._left -= self._left > 0
            self.ports.set("time_tick", starts)
            self.ports.set("time_now", self.now)
            self.source.drive(starts)
            if self.host:
                self.host.serve()
            self._serve_registers()
            for wait in [wait for wait in self._waits if wait[0]()]:
                self._waits.remove(wait)
                wait[1].set()

    def _serve_registers(self) -> None:
        ports = self.ports
        ports.set("csr_w_en", 0)
        ports.set("csr_r_en", 0)
        if self._reading:
            clocks, answer = self._reading
            if clocks:
                self._reading = (clocks - 1, answer)
                return
            answer.append(ports.get("csr_r_data"))
            self._reading = None
        elif self._accesses:
            addr, value, answer = self._accesses.popleft()
            ports.set("csr_addr", addr)
            if value is None:
                ports.set("csr_r_en", 1)
                self._reading = (3, answer)
            else:
                ports.set("csr_w_data", value)
                ports.set("csr_w_en", 1)

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until ``ready()``, looked at in every clock."""
        event = Event()
        self._waits.append((ready, event))
        await event.wait()

    async def ticks(self, count: int) -> None:
        """Let ticks pass, and then time stand still."""
        end = self.now + count
        await self.ticks_until(lambda: self.now >= end, count + 1)

    async def ticks_until(self, ready: Callable[[], bool], most: int) -> None:
        """Let ticks pass until ``ready()``; an error if that takes more than ``most``."""
        end = self.now + most
        self.running = True
        await self.until(lambda: ready() or self.now >= end)
        self.running = False
        await self.until(lambda: self._left == 0)
        assert ready(), "what the test waits for does not happen"

    async def write(self, writes: Iterable[tuple[int, int]]) -> None:
        """Write registers, one a clock, whatever else goes on."""
        self._accesses.extend((addr, value, []) for addr, value in writes)
        await self.until(lambda: not self._accesses)

    async def read(self, addr: int) -> int:
        """Read a register, whatever else goes on."""
        return (await self.read_all([addr]))[0]

    async def read_all(self, addrs: Iterable[int]) -> list[int]:
        """Read registers one after another, whatever else goes on."""
        answers: list[int] = []
        wanted = [(addr, None, answers) for addr in addrs]
        self._accesses.extend(wanted)
        await self.until(lambda: len(answers) == len(wanted))
        return answers

    async def watch(self, counters: list[int], rewrites: list[tuple[int, int]], running: Callable[[], bool]) -> int:
        """While ``running()``: read counters, which never fall, and write again what tables have already (pairs of
        writes together). The number of reads."""
        seen: dict[int, int] = {}
        reads = 0
        while running():
            addr = self.random.choice(counters)
            value = await self.read(addr)
            assert value >= seen.get(addr, 0), f"counter {addr:#x} fell from {seen[addr]} to {value}"
            seen[addr], reads = value, reads + 1
            if rewrites:
                k = self.random.randrange(len(rewrites) // 2)
                await self.write(rewrites[2 * k : 2 * k + 2])
            pause = self.now + self.random.randrange(12)
            await self.until(lambda pause=pause: self.now >= pause or not running())
        final = await self.read_all(list(seen))
        for addr, value in zip(seen, final, strict=True):
            assert value >= seen[addr]
        return reads
