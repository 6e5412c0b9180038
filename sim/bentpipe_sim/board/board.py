"""A board as its drivers need it: buses to its nodes, PDUs in and out, time.

Writes are gathered and go with the next list that asks for something, so that a stop of the board is one round trip.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bentpipe_hdl.registers import Registers
from bentpipe_sim.board.client import Client, Items
from bentpipe_sim.board.ddr3 import Ddr3, Levelled
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.payload import CELL_OCTETS, Payload, continuation, given_cells
from bentpipe_sim.board.windows import (
    ALL_GIVEN,
    CELL,
    DONE,
    ENDED,
    HOST_PORT,
    RECORD_WORDS,
    WINDOW_BITS,
    Plan,
    board_registers,
    description_address,
    host_port_registers,
)  # fmt: skip
from bentpipe_sim.interface import PduStatus

__all__ = ["Board", "Ended", "Window"]

_FIRST: Final = 64
"""Words of a frame that every board takes."""
_RUN_WORDS: Final = 5
"""Words of a frame beside the items before a run and those behind it: head, run, CRC."""
_SETTLES: Final = 400
"""Times that a board is asked whether its nodes are ready."""


@dataclass(frozen=True)
class Ended:
    """A PDU that came, well or not; or one that was sent.

    Members
    -------
    tick : int
    nic, vc : int
        The NIC's window, the VC there.
    status : int
        As for :class:`~bentpipe_sim.interface.PduStatus`.
    octets : bytes
        Of the SDU, if that is whole, or was sent.
    congested : bool
    crossed : tuple of int
        Indices of the cells that crossed the line; a board with patterns has found the others to continue the pattern.
        Empty on boards without.
    """

    tick: int
    nic: int
    vc: int
    status: int
    octets: bytes
    congested: bool
    crossed: tuple[int, ...] = ()


class Window:
    """The bus of a node of a board."""

    def __init__(self, board: Board, number: int) -> None:
        self._board, self._base = board, number << WINDOW_BITS

    def read(self, addr: int) -> int:
        return self._board.read([self._base | addr])[0]

    def write(self, addr: int, value: int) -> None:
        self._board.write(self._base | addr, [value & 0xFFFFFFFF])


@dataclass(frozen=True)
class _Sdu:
    """An SDU to be sent: its first ``cells`` are given to the board, whose first octets have a place in the pattern."""

    octets: bytes
    uu: int
    reports: bool
    cells: int
    place: int


@dataclass
class _HostPort:
    """The state of a host port.

    ``queues`` are the PDUs to be sent, by VC; the first of each VC is on the board. ``ring`` are the parts of the
    board's memory in use, in order. ``settings`` are registers as they were last written.
    """

    base: int
    settings: dict[str, int] = field(default_factory=lambda: {"uu": 0, "rest": ALL_GIVEN})
    queues: dict[int, deque[_Sdu]] = field(default_factory=dict)
    ring: deque[list[int]] = field(default_factory=deque)  # words and VC, or -1 when it is sent
    used: int = 0
    at: int = 0
    words: list[int] = field(default_factory=list)  # records, the last of them in part
    coming: dict[int, bytearray] = field(default_factory=dict)
    crossed: dict[int, list[int]] = field(default_factory=dict)


class Board:
    """A board whose nodes are as after a reset, and for which no time has passed.

    Parameters
    ----------
    client : Client
    resets : bool
        False: leave it as it is, to read registers.
    starts_memory : bool
        A DDR3 memory is started, unless an earlier session has done so.

    Members
    -------
    plan : Plan
        What it says that it is.
    next_tick : int
        The first one that has not passed.
    memory : list of Levelled
        Settings of the DDR3 memory's PHY, if this session has started it.

    Raises
    ------
    BoardError
        There is no bentpipe behind the line, or another version.
    """

    def __init__(self, client: Client, *, resets: bool = True, starts_memory: bool = True) -> None:
        self.client = client
        self._items = Items()
        self._most = _FIRST
        self.next_tick = 0
        self.memory: list[Levelled] = []
        self.plan = self._identify()
        self._most = self.plan.frame_words
        self.csr = Registers(Window(self, 0), board_registers(self.plan))
        self._registers = host_port_registers(self.plan)
        self._ports = {
            1 + k: _HostPort(HOST_PORT + 1 + k << WINDOW_BITS)
            for k, shape in enumerate(self.plan.nodes)
            if shape.kind == "nic"
        }
        if resets:
            self._reset(starts_memory)

    def _reset(self, starts_memory: bool) -> None:
        for name in ("patch", "wire"):  # no reset clears these
            self.write(self.csr.map[name].addr, [0] * self.plan.faces)
        if self.plan.is_paced:
            self.csr.free = 0
            self.csr.pace = 0
        self.csr.reset = 1
        for _ in range(_SETTLES):
            if self.csr.state.idle:
                break
        else:
            raise BoardError("the board's nodes are not ready: is its clock there?")
        if self.plan.ddr3 and starts_memory:
            memory = self.open_memory()
            if not memory.is_started():
                self.memory = memory.start()
            self.check_memory()

    def open_memory(self) -> Ddr3:
        """Return the way to the DDR3 memory's controller, as soon as it has a clock.

        Raises
        ------
        BoardError
            It has none.
        """
        for _ in range(_SETTLES):
            if self.csr.memory_state.ready:
                return Ddr3(self)
        raise BoardError("the DDR3 memory's clock is not there")

    def check_memory(self) -> None:
        """Raise BoardError if the board has lost an access to the controller of its DDR3 memory."""
        if self.csr.memory_state.lost:
            raise BoardError("the board has lost accesses to the controller of its DDR3 memory")

    def write_memory(self, kind: str, words: Sequence[int]) -> None:
        """Write words to a register of the way to the memory's controller, and to those behind it."""
        self.write(self.csr.map[kind].addr, words)

    def take_memory(self, most: int) -> list[int]:
        """Return values that the memory's controller has given, up to so many."""
        self._flush()
        for _ in range(most):
            self._items.take(self.csr.map["memory_level"].addr, 1)
        return [word for answer in self._do() for word in answer]

    def _identify(self) -> Plan:
        any_plan = Plan((), ())
        registers = board_registers(any_plan)
        magic, version = self.read([registers["magic"].addr, registers["version"].addr])
        if magic != registers["magic"].reset:
            raise BoardError(f"what answers is no bentpipe board: its magic is {magic:#010x}")
        if version != registers["version"].reset:
            raise BoardError(
                f"the board has version {version} of its registers, and this software is for "
                f"{registers['version'].reset}: build and flash it again"
            )
        words = self.read([registers["shape"].addr + 1])[0]
        first = description_address(words)
        found = self.read(range(first, first + words))
        octets = struct.pack(f"<{words - 1}I", *found[1:])[: found[0]]
        try:
            return Plan.from_json(octets.decode())
        except ValueError as error:
            raise BoardError(f"the board does not say what it is: {error}") from None

    # Registers

    def window(self, number: int) -> Window:
        """Return the bus of a node."""
        return Window(self, number)

    def write(self, addr: int, values: Sequence[int]) -> None:
        """Write words, with the next list."""
        at = 0
        while at < len(values):
            room = self._most - len(self._items) - 8
            if room < 1:
                self._flush()
                continue
            part = values[at : at + room]
            self._items.write(addr + at, part)
            at += len(part)

    def read(self, addrs: Sequence[int]) -> list[int]:
        """Read words, behind all that was written."""
        found: list[int] = []
        rest = list(addrs)
        while rest:
            runs: list[list[int]] = []
            for addr in rest:
                if runs and addr == runs[-1][0] + runs[-1][1]:
                    runs[-1][1] += 1
                else:
                    runs.append([addr, 1])
            items, taken = self._items, 0
            for addr, count in runs:
                part = min(count, self._most - items.answers - 4)
                if len(items) + 8 > self._most or part < 1:
                    break
                items.read(addr, part)
                taken += part
                if part < count:
                    break
            if not taken:
                self._flush()
                continue
            for answer in self._do():
                found += answer
            rest = rest[taken:]
        return found

    def _flush(self) -> None:
        if len(self._items):
            self._do()

    def _do(self) -> list[tuple[int, ...]]:
        items, self._items = self._items, Items()
        return self.client.do(items)

    # PDUs

    def send(
        self, nic: int, vc: int, octets: bytes, uu: int = 0, *, reports: bool = False, payload: Payload | None = None
    ) -> None:
        """Queue an SDU on a VC of the NIC in a window, from the next tick on.

        Parameters
        ----------
        reports : bool
            A run returns it as ``SENT`` when its last cell has been chosen for the line.
        payload : Payload, optional
            The part of the SDU that is the payload pattern. A board with patterns makes most of these octets itself.

        Raises
        ------
        BoardError
            The memory of its host port is full.
        """
        port = self._ports[nic]
        queue = port.queues.setdefault(vc, deque())
        cells, place = given_cells(len(octets), payload) if self.plan.patterns else (ALL_GIVEN, 0)
        queue.append(_Sdu(octets, uu, reports, cells, place))
        if len(queue) == 1:
            self._post(port, nic, vc)

    def _post(self, port: _HostPort, nic: int, vc: int) -> None:
        sdu = port.queues[vc][0]
        octets = sdu.octets if sdu.cells == ALL_GIVEN else sdu.octets[: sdu.cells * CELL_OCTETS]
        size, all_words = -(-len(octets) // 4), self.plan.tx_words
        if port.used + size > all_words:
            raise BoardError(
                f"the host port of node {nic} has no room for a PDU of {len(octets)} octets: PDUs of other VCs take "
                f"{port.used} of {all_words} words"
            )
        words = struct.unpack(f"<{size}I", octets + b"\0" * (-len(octets) % 4))
        tx, first = self._registers["tx"].addr | port.base, min(size, all_words - port.at)
        self.write(tx + port.at, words[:first])
        self.write(tx, words[first:])
        self.write(port.base | self._registers["place"].addr, [port.at])
        self._set(port, "uu", sdu.uu)
        self._set(port, "rest", sdu.cells | sdu.place << 8)
        self.write(port.base | self._registers["post"].addr, [len(sdu.octets) | vc << 16])
        port.ring.append([size, vc])
        port.used += size
        port.at = (port.at + size) % all_words

    def _set(self, port: _HostPort, name: str, value: int) -> None:
        """Write a register of a host port, unless it has the value."""
        if port.settings[name] != value:
            port.settings[name] = value
            self.write(port.base | self._registers[name].addr, [value])

    def run(self, until: int, *, to_events: bool = False) -> list[Ended]:
        """Run to the end of tick ``until``; return all PDUs received meanwhile.

        With ``to_events`` the run ends with the first tick in which a PDU ended, or was sent that is reported.
        """
        found: list[Ended] = []
        while self.next_tick <= until and not (to_events and found):
            if self._most - len(self._items) < _RUN_WORDS + 2 * len(self._ports):
                self._flush()
            before, items = self.next_tick, self._items
            items.run(until)
            share = (self._most - items.answers - 4) // max(1, len(self._ports)) - 1
            self._take(share)
            answers = self._do()
            self.next_tick, stopped = answers[0]
            moved = self._took(answers[1:], share, found)
            if stopped and not moved and self.next_tick == before:
                raise BoardError(f"the board stops at tick {before} and does not say why")
        return found

    def _take(self, share: int) -> None:
        for port in self._ports.values():
            self._items.take(port.base | self._registers["level"].addr, share)

    def _took(self, answers: Iterable[tuple[int, ...]], share: int, found: list[Ended]) -> bool:
        """Take the received words of the host ports until they have no more; return whether they had any."""
        moved = False
        while True:
            more = False
            for port, words in zip(self._ports.values(), answers, strict=True):
                port.words += words
                moved |= bool(words)
                more |= len(words) == share
            if not more:
                break
            share = (self._most - 6) // len(self._ports) - 1
            self._take(share)
            answers = self._do()
        for nic, port in self._ports.items():
            self._parse(nic, port, found)
        return moved

    def _parse(self, nic: int, port: _HostPort, found: list[Ended]) -> None:
        words, at = port.words, 0
        while at < len(words):
            first = words[at]
            kind, vc = first >> 28, first & 0xFFF
            size = RECORD_WORDS.get(kind)
            if size is None:
                raise BoardError(f"the host port of node {nic} gives a record of kind {kind}, and there is none")
            if at + size > len(words):
                break
            record = words[at + 1 : at + size]
            at += size
            if kind == CELL:
                self._came(port, first, struct.pack("<12I", *record))
                continue
            tick = record[0] | (record[1] & 0xFFFF) << 32
            if kind == ENDED:
                status = first >> 16 & 0xF
                octets = bytes(port.coming.pop(vc, b""))[: record[1] >> 16] if status == 0 else b""
                port.coming.pop(vc, None)
                crossed = tuple(port.crossed.pop(vc, ()))
                found.append(Ended(tick, nic, vc, status, octets, bool(first >> 20 & 1), crossed))
            elif kind == DONE:
                self._sent(port, nic, vc, tick, found)
        del words[:at]

    def _came(self, port: _HostPort, head: int, octets: bytes) -> None:
        """Add a cell to its PDU, behind those that were withheld before it."""
        vc, count = head & 0xFFF, head >> 12 & 0x7FF
        coming = port.coming.setdefault(vc, bytearray())
        if count:
            if len(coming) < CELL_OCTETS:
                raise BoardError(f"the board withholds {count} cells of a PDU of VC {vc}, and has given none")
            coming += continuation(coming[-16:], head >> 24 & 7, count)
        if self.plan.patterns:
            port.crossed.setdefault(vc, []).append(len(coming) // CELL_OCTETS)
        coming += octets

    def _sent(self, port: _HostPort, nic: int, vc: int, tick: int, found: list[Ended]) -> None:
        """Release the memory of the PDU that has been sent, report it if that is wanted, and post the next one."""
        queue = port.queues.get(vc)
        if not queue:
            raise BoardError(f"node {nic} says that a PDU of VC {vc} is sent, and it was given none")
        sdu = queue.popleft()
        if sdu.reports:
            found.append(Ended(tick, nic, vc, PduStatus.SENT, sdu.octets, congested=False))
        next(each for each in port.ring if each[1] == vc)[1] = -1
        while port.ring and port.ring[0][1] < 0:
            port.used -= port.ring.popleft()[0]
        if queue:
            self._post(port, nic, vc)

    def faults(self) -> None:
        """Raise BoardError if a host port, or a wire, has lost anything."""
        lost = self.read([port.base | self._registers["lost"].addr for port in self._ports.values()])
        for nic, count in zip(self._ports, lost, strict=True):
            if count:
                raise BoardError(f"the host port of node {nic} has lost {count} words")
        for face, word in enumerate(self.csr.faults[:]):
            if word:
                raise BoardError(
                    f"wire {face} has lost {word & 0xFFFF} cells, and {word >> 16} came late: it is too short"
                )

    def close(self) -> None:
        """Close the line."""
        self.client.close()
