"""A board in software: the protocol, the windows and the host ports of one, with native nodes behind them."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from bentpipe_hdl.registers import RegisterMap
from bentpipe_sim.board.ddr3_model import Ddr3Model
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.payload import CELL_OCTETS, continuation, crossing_cells
from bentpipe_sim.board.protocol import (
    ANSWER,
    LIST,
    MALFORMED,
    OPEN,
    OPENED,
    OVERFLOW,
    READ,
    REFUSED,
    RUN,
    STOPPED,
    TAKE,
    WRITE,
    FrameReader,
    framed,
    head,
)  # fmt: skip
from bentpipe_sim.board.windows import (
    ALL_GIVEN,
    CELL,
    DONE,
    ENDED,
    HOST_PORT,
    NO_FACE,
    WINDOW_BITS,
    Plan,
    board_registers,
    host_port_registers,
    ports_of,
)  # fmt: skip
from bentpipe_sim.build import build_all
from bentpipe_sim.interface import PduStatus
from bentpipe_sim.loop import Loop

__all__ = ["BridgeModel", "ModelBoard", "ModelPipe"]

_ADDR: Final = (1 << 28) - 1
_TRAILER: Final = 8
"""Octets of the trailer of AAL5, at the end of a PDU's last cell; a model has zeros there."""
_CRC_WORDS: Final = 1
_CLOCK_S: Final = 1e-4
"""What a receive takes of the pipe's clock, at the least."""


class _Table:
    """Words of registers, as they were last written."""

    def __init__(self, registers: RegisterMap) -> None:
        self._registers = registers.registers
        self.words = {each.addr + k: each.reset or 0 for each in self._registers for k in range(each.size)}
        for k, value in enumerate(registers.shape.values()):
            self.words[registers["shape"].addr + k] = value

    def place(self, addr: int) -> tuple[str, int]:
        """Return the register at an address, and the place in its table."""
        for each in self._registers:
            if each.addr <= addr < each.addr + each.size:
                return each.name, addr - each.addr
        return "", 0


class _HostPortModel:
    def __init__(self, plan: Plan) -> None:
        registers = host_port_registers(plan)
        self.table = _Table(registers)
        self.tx_addr, self.level_addr, self.record_addr = (registers[n].addr for n in ("tx", "level", "record"))
        self.tx = [0] * plan.tx_words
        self.records: deque[int] = deque()
        self.lost = self.withheld = 0


class ModelBoard:
    """Everything behind the bridge, with native nodes: registers and time.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: Plan) -> None:
        if plan.sources:
            raise BoardError("a board in software has no sources: take board:sim, or a plan without")
        self.plan = plan
        libraries = build_all(plan.nodes, "native")
        self._models = [str(libraries[shape]).encode() for shape in plan.nodes]
        self._faces = [(k, port) for k, shape in enumerate(plan.nodes) for port in range(ports_of(shape))]
        self._loop = Loop()
        self.following = 0
        self.memory = Ddr3Model()
        self._reset()

    def _reset(self) -> None:
        self._loop.close()
        self._loop = Loop()
        self._loop.open()
        for k, model in enumerate(self._models):
            if self._loop.add_node(model) != k:
                raise BoardError(f"node {k}: {self._loop.ffi.string(self._loop.error()).decode()}")
            self._loop.settle(k)
        self._loop.act_after_runs()
        self._table = _Table(board_registers(self.plan))
        for k, word in enumerate(self.plan.description):
            self._table.words[board_registers(self.plan)["description"].addr + k] = word
        self._ports = {k: _HostPortModel(self.plan) for k, shape in enumerate(self.plan.nodes) if shape.kind == "nic"}
        self.following, self._laid = 0, False

    def close(self) -> None:
        """Close the nodes."""
        self._loop.close()

    def write(self, addr: int, value: int) -> None:
        """Write a word."""
        window, register = addr >> WINDOW_BITS, addr & ((1 << WINDOW_BITS) - 1)
        if window == 0:
            name = self._table.place(register)[0]
            if name == "reset":
                self._reset()
            elif name in ("memory_write", "memory_read"):
                self._ask(name, value)
            elif register in self._table.words:
                self._table.words[register] = value
        elif window > HOST_PORT and window - HOST_PORT - 1 in self._ports:
            self._write_port(window - HOST_PORT - 1, register, value)
        elif 1 <= window <= len(self._models):
            self._loop.csr_write(window - 1, register, value)

    def _write_port(self, node: int, register: int, value: int) -> None:
        port = self._ports[node]
        if port.tx_addr <= register < port.tx_addr + len(port.tx):
            port.tx[register - port.tx_addr] = value
            return
        name = port.table.place(register)[0]
        if name == "post":
            self._post(node, port, value & 0xFFFF, value >> 16 & 0xFFF)
        elif name:
            port.table.words[register] = value

    def _post(self, node: int, port: _HostPortModel, length: int, vc: int) -> None:
        registers = host_port_registers(self.plan)
        first, uu = (port.table.words[registers[name].addr] for name in ("place", "uu"))
        rest = port.table.words[registers["rest"].addr] if self.plan.patterns else ALL_GIVEN
        cells = rest & 0xFF
        given = length if cells == ALL_GIVEN else cells * CELL_OCTETS
        words = [port.tx[(first + k) % len(port.tx)] for k in range(-(-given // 4))]
        octets = struct.pack(f"<{len(words)}I", *words)
        if given < length:
            octets += continuation(octets[-16:], rest >> 8, -(-(length - given) // CELL_OCTETS))
        octets = octets[:length]
        made = struct.pack("<4IQ2iI2H", node, vc, 0, 0, 0, -1, -1, length, uu, 1)
        self._loop.send(made + octets)

    def read(self, addr: int) -> int:
        """Read a word."""
        window, register = addr >> WINDOW_BITS, addr & ((1 << WINDOW_BITS) - 1)
        if window == 0:
            return self._read_own(register)
        if window > HOST_PORT and window - HOST_PORT - 1 in self._ports:
            port = self._ports[window - HOST_PORT - 1]
            if register == port.record_addr:
                return port.records.popleft() if port.records else 0
            if register == port.level_addr:
                return len(port.records)
            if port.table.place(register)[0] == "withheld":
                return port.withheld & 0xFFFFFFFF
            if 0 <= register - port.tx_addr < len(port.tx):
                return port.tx[register - port.tx_addr]
            return port.table.words.get(register, 0)
        return self._loop.csr_read(window - 1, register) if 1 <= window <= len(self._models) else 0

    def _ask(self, name: str, value: int) -> None:
        """Read or write a register of the DDR3 memory's controller."""
        if name == "memory_read":
            self.memory.read(value)
        else:
            self.memory.write(self._table.words[board_registers(self.plan)["memory_address"].addr], value)

    def _read_own(self, register: int) -> int:
        name, place = self._table.place(register)
        values = self.memory.values
        if name == "memory_level":
            return int(bool(values))
        if name == "memory_value":
            return values.popleft() if values else 0
        if name == "memory_state":
            return 1
        if name == "state":
            return 4
        if name == "check":
            return self._loop.digest(*self._faces[place])
        return self._table.words.get(register, 0)

    def _lay(self) -> None:
        """Connect the wires as the patch panel has them when time begins."""
        self._laid = True
        registers = board_registers(self.plan)
        patch, wire = registers["patch"].addr, registers["wire"].addr
        words = self._table.words
        for face, (node, port) in enumerate(self._faces):
            number = words[patch + face] & 0xFF
            if number == NO_FACE or not self.plan.wires[number - 1]:
                continue
            source, source_port = self._faces[number - 1]
            setting = words[wire + number - 1]
            held, sends = setting & 0x7FFFFFFF, setting >> 31
            if self._loop.connect(source, source_port, node, port, held, sends, 0):
                raise BoardError(self._loop.ffi.string(self._loop.error()).decode())
            self._loop.trace(source, source_port, 2)

    def run(self, until: int) -> bool:
        """Run to the end of a tick; return whether an event stopped the run before."""
        if not self._laid:
            self._lay()
        if until < self.following:
            return False
        if any(port.records for port in self._ports.values()):
            return True
        count = self._loop.run(until)
        self.following = self._loop.now() + 1
        events = self._loop.events()
        for k in range(count):
            self._record(events[k])
        return count > 0 and self.following <= until

    def _record(self, event: object) -> None:
        tick, node, vc, status, length = event.tick, event.nic, event.vc, event.status, event.length  # type: ignore[attr-defined]
        records = self._ports[node].records
        low, high = tick & 0xFFFFFFFF, tick >> 32
        if status == PduStatus.SENT:
            records.extend((DONE << 28 | vc, low, high))
            return
        if status == PduStatus.OK:
            octets = bytes(self._loop.ffi.buffer(self._loop.sdu(event.handle), length))  # type: ignore[attr-defined]
            for head, cell in self._cells(node, octets):
                records.extend((CELL << 28 | head | vc, *struct.unpack("<12I", cell)))
        congested = int(event.congested != 0)  # type: ignore[attr-defined]
        records.extend((ENDED << 28 | congested << 20 | status << 16 | vc, low, high | length << 16))

    def _cells(self, node: int, octets: bytes) -> list[tuple[int, bytes]]:
        """Return the cells of a received SDU that have records, each behind the upper bits of its head."""
        if not self.plan.patterns:
            octets += b"\0" * (-len(octets) % CELL_OCTETS)
            return [(0, octets[at : at + CELL_OCTETS]) for at in range(0, len(octets), CELL_OCTETS)]
        cells = -(-(len(octets) + _TRAILER) // CELL_OCTETS)
        kept = crossing_cells(octets.ljust(cells * CELL_OCTETS, b"\0"))
        self._ports[node].withheld += cells - len(kept)
        return [(place << 24 | count << 12, cell) for count, place, cell in kept]


class Machine(Protocol):
    """The registers and the time on which lists of commands are executed."""

    following: int
    """The next tick."""

    def read(self, addr: int) -> int:
        """Read a word."""
        ...

    def write(self, addr: int, value: int) -> None:
        """Write a word."""
        ...

    def run(self, until: int) -> bool:
        """Run to the end of a tick; return whether an event stopped the run before."""
        ...


class BridgeModel:
    """A bridge: octets in, octets out.

    Parameters
    ----------
    board : Machine
    words : int
        Of the longest frame.
    """

    def __init__(self, board: Machine, words: int) -> None:
        self._board, self._words = board, words
        self._reader = FrameReader(words)
        self._session = self._sequence = 0
        self._answer: list[int] | None = None

    def feed(self, octets: bytes) -> bytes:
        """Execute the lists that end in these octets, and return the answers."""
        frames = self._reader.feed(octets)
        return b"".join(self._frame(frame) for frame in frames if len(frame) + _CRC_WORDS <= self._words)

    def _frame(self, frame: Sequence[int]) -> bytes:
        kind, sequence, session = frame[0] & 0xFF, frame[0] >> 8 & 0xFF, frame[0] >> 16
        if kind == OPEN:
            if session != self._session:
                self._session, self._sequence, self._answer = session, 0, None
            return self._head(OPENED)
        if kind != LIST or session != self._session or not session:
            return self._head(REFUSED)
        if sequence == (self._sequence + 1) & 0xFF:
            self._sequence = sequence
            self._answer = self._do(frame[1:])
        elif sequence != self._sequence or self._answer is None:
            return self._head(REFUSED)
        return self._head(ANSWER, self._answer)

    def _head(self, kind: int, body: Sequence[int] = ()) -> bytes:
        return framed((head(self._session, self._sequence, kind), *body))

    def _do(self, words: Sequence[int]) -> list[int]:
        board, found, at, stopped = self._board, [0], 0, False
        while at < len(words):
            kind, count = words[at] >> 24, words[at] & 0xFFFF
            if kind not in (WRITE, READ, TAKE, RUN) or at + (3 if kind == RUN else 2) > len(words):
                found[0] |= MALFORMED
                break
            addr, at = words[at + 1], at + 2
            if kind == WRITE:
                for k, word in enumerate(words[at : at + count]):
                    if not stopped:
                        board.write(addr + k & _ADDR, word)
                at += count
            elif kind == READ:
                found += [board.read(addr + k & _ADDR) for k in range(count)]
            elif kind == TAKE:
                room = max(0, self._words - 2 - len(found) - 1)
                taken = min(board.read(addr & _ADDR), count, room)
                found += [taken, *(board.read(addr + 1 & _ADDR) for _ in range(taken))]
            else:
                until, at = addr | (words[at] & 0xFFFF) << 32, at + 1
                if not stopped:
                    stopped = board.run(until)
                    following = board.following
                    found += [following & 0xFFFFFFFF, following >> 32 | (STOPPED if stopped else 0)]
        if at > len(words):
            found[0] |= MALFORMED
        if len(found) > self._words - 2:
            found = [found[0] | OVERFLOW, *found[1 : self._words - 2]]
        return found


class ModelPipe:
    """A line in memory to a board in software, with a clock of its own."""

    def __init__(self, plan: Plan) -> None:
        self._board = ModelBoard(plan)
        self._bridge = BridgeModel(self._board, plan.frame_words)
        self._waiting = b""
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def send(self, octets: bytes) -> None:
        self._waiting += self._bridge.feed(octets)

    def receive(self, until: float) -> bytes:
        came, self._waiting = self._waiting, b""
        self._now = self._now + _CLOCK_S if came else max(until, self._now + _CLOCK_S)
        return came

    def close(self) -> None:
        self._board.close()
