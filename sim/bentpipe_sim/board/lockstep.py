"""A network that runs natively and on a board at once: each PDU goes to both, everything that comes of it is compared.

The native network is the one that hosts see. The board follows it: what hosts and settings did before a tick is done on
the board between the same two ticks, so that the board may be behind, but not otherwise.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from bentpipe_hdl.registers import RegisterMap
from bentpipe_hdl.ticks import ps_to_ticks
from bentpipe_sim.board.board import Board, Ended
from bentpipe_sim.board.errors import BoardError, MismatchError
from bentpipe_sim.board.gateware import outdated
from bentpipe_sim.board.windows import BOARD_VCS, WINDOW_BITS, Plan
from bentpipe_sim.build import EngineName
from bentpipe_sim.interface import PduEvent, PduStatus
from bentpipe_sim.network import INGRESS, Network
from bentpipe_sim.nodes import Link, Nic, Node
from bentpipe_sim.pattern import pattern

__all__ = ["LockstepNetwork", "plan_of"]

_log = logging.getLogger(__name__)

_MOST_WORDS: Final = 1 << 16
"""Words of a host port's memory at most."""
_JITTER: Final = 64
"""Ticks by which cells may come closer than their line's rate."""


def plan_of(network: Network) -> Plan:
    """Return the plan of a board for this network: its nodes in their order, and wires that are long enough.

    Raises
    ------
    BoardError
        The network has something that no board has yet.
    """
    wires = {
        (a.index, port): delay + (a.delay if isinstance(a, Link) else 1) for a, port, _, _, delay in network._wires
    }
    cells: list[int] = []
    for node in network.nodes:
        _check(node)
        for port in range(node.ports):
            held = wires.get((node.index, port))
            most = 8 if held is None else (held + _JITTER) * 65536 // node.spacing(port) + INGRESS + 4
            cells.append(1 << max(4, most.bit_length()))
    shapes = tuple(node.shape() for node in network.nodes)
    nics = [node for node in network.nodes if isinstance(node, Nic)]
    largest = max((receive.max_sdu for nic in nics for receive in nic.receives.values()), default=48)
    sending = max((len(nic.sends) for nic in nics), default=1)
    tx_words = 1 << max(10, (sending * -(-largest // 4) - 1).bit_length())
    return Plan(shapes, tuple(cells), tx_words=min(tx_words, _MOST_WORDS), frame_words=4096)


def _check(node: Node) -> None:
    shape = dict(node.shape().parameters)
    if node.kind == "sonet":
        raise BoardError(f"{node.name}: boards have no SONET lines yet; take lines of cells")
    if node.kind == "link" and shape.get("path"):
        raise BoardError(f"{node.name}: boards have no lines yet whose delay changes")
    if node.kind == "nic" and shape.get("oam"):
        raise BoardError(f"{node.name}: host ports of boards send and receive no OAM cells yet")


class LockstepNetwork(Network):
    """A native network with a board beside it.

    Parameters
    ----------
    seed, engine
        As for :class:`~bentpipe_sim.network.Network`.
    attach : Callable
        Gets the plan of the network, and gives a board that has its nodes.

    Members
    -------
    pdus, checked : int
        PDUs that ended at interfaces natively; those of them that ended on the board at the same tick with the same
        verdict and octets.
    """

    least_vcs = BOARD_VCS

    def __init__(self, attach: Callable[[Plan], Board], seed: int = 1, *, engine: EngineName | None = None) -> None:
        super().__init__(seed, engine=engine)
        self._attach = attach
        self._board: Board | None = None
        self._place: dict[int, int] = {}  # windows by node, and back
        self._node_at: dict[int, int] = {}
        self._expected: dict[int, deque[tuple[int, int, int, bool, bytes]]] = {}
        self.pdus = self.checked = 0

    @property
    def saves(self) -> bool:
        """A board gives no state."""
        return False

    @property
    def makes_writes(self) -> bool:
        """A board is told of each write."""
        return False

    @property
    def board(self) -> Board:
        if self._board is None:
            raise BoardError("the network has not begun")
        return self._board

    def _lay(self) -> None:
        super()._lay()
        plan = plan_of(self)
        board = self._board = self._attach(plan)
        if old := outdated(board.plan.gateware):
            _log.warning("the board %s: flash or rebuild if the run differs", old)
        self._place = self._placed(plan, board)
        self._node_at = {window: index for index, window in self._place.items()}
        self._expected = {node.index: deque() for node in self.nodes if isinstance(node, Nic)}
        for node in self.nodes:
            self._make_driver_on(board, node).identify()
            for port in node.outputs:
                self.loop.trace(node.index, port, 2)
        for a, a_port, b, b_port, delay in self._wires:
            face, to = self._face(a, a_port), self._face(b, b_port)
            held = delay + (a.delay - 1 if isinstance(a, Link) else 0)
            board.csr.wire[face] = {"delay": held, "sends": int(self.sends(a, b))}
            board.csr.patch[to] = face + 1
        native_write = self.loop.csr_write

        def write(index: int, addr: int, value: int) -> None:
            self._follow(self.loop.next_tick(index) - 1)
            native_write(index, addr, value)
            board.write(self._place[index] << WINDOW_BITS | addr, [value & 0xFFFFFFFF])

        def write_all(index: int, addr: int, words: list[int], count: int) -> None:
            for k in range(count):
                write(index, addr + k, words[k])

        self.loop.divert("csr_write", write)
        self.loop.divert("csr_write_all", write_all)

    def _placed(self, plan: Plan, board: Board) -> dict[int, int]:
        """Return the window of each node."""
        return placed(plan, board.plan, [node.name for node in self.nodes])

    def _make_driver_on(self, board: Board, node: Node) -> Any:
        return node._make_driver(board.window(self._place[node.index]))

    def _face(self, node: Node, port: int) -> int:
        return self.board.plan.bases[self._place[node.index] - 1] + port

    # The interface of the hosts

    def send(
        self,
        nic: int,
        vc: int,
        head: bytes,
        key: int = 0,
        offset: int = 0,
        length: int = 0,
        checksum_start: int = -1,
        checksum_at: int = -1,
        uu: int = 0,
    ) -> None:
        if not self.begun:
            self.start()
        tick = self.loop.next_tick(nic)
        super().send(nic, vc, head, key, offset, length, checksum_start, checksum_at, uu)
        octets = head + pattern(key, offset, length)
        if checksum_at >= 0:
            octets = checksummed(octets, checksum_start, checksum_at)
        self._follow(tick - 1)
        self.board.send(self._place[nic], vc, octets, uu)

    def send_cell(self, nic: int, vc: int, pti: int, payload: bytes) -> None:
        raise BoardError("host ports of boards send no single cells yet")

    def run(self, until_ps: int) -> list[PduEvent]:
        events = super().run(until_ps)
        for event in events:
            if event.status < PduStatus.OAM_SEGMENT:
                self.pdus += 1
                octets = self.sdu(event.handle) if event.status == PduStatus.OK else b""
                came = ps_to_ticks(event.time_ps), event.vc, int(event.status), event.congested, octets
                self._expected[event.nic].append(came)
        return events

    # The board

    def _mismatch(self, text: str) -> MismatchError:
        old = outdated(self.board.plan.gateware)
        return MismatchError(f"{text}; the board {old}: flash or rebuild" if old else text)

    def _follow(self, tick: int) -> None:
        """Run the board to the end of this tick, which has passed in the native network."""
        board = self.board
        if tick < board.next_tick:
            if tick < board.next_tick - 1:
                raise self._mismatch(
                    f"the board is at tick {board.next_tick - 1}, and has to do something after {tick}"
                )
            return
        for ended in board.run(tick):
            self._compare(ended)
        for index, expected in self._expected.items():
            if expected and expected[0][0] <= tick:
                raise self._mismatch(
                    f"{self.nodes[index].name}: {_described(expected[0])} natively, and nothing on the board"
                )

    def _compare(self, ended: Ended) -> None:
        index = self._node_at[ended.nic]
        name, expected = self.nodes[index].name, self._expected[index]
        found = ended.tick, ended.vc, ended.status, ended.congested, ended.octets
        if not expected:
            raise self._mismatch(f"{name}: {_described(found)} on the board, and nothing natively")
        if expected[0] != found:
            raise self._mismatch(f"{name}: {_described(found)} on the board, and {_described(expected[0])} natively")
        expected.popleft()
        self.checked += 1

    def verify(self) -> dict[str, int]:
        """Compare all counters, and the signatures of all cells of all outputs, at the end of a run.

        Returns
        -------
        dict
            Numbers of things that were compared and equal: ``pdus`` of those that ``ended``, ``counters``, ``outputs``.
            Then ``ticks``, ``trips`` (lists that the board executed), ``repeats``.

        Raises
        ------
        MismatchError
            Native network and board differ.
        BoardError
        """
        board = self.board
        self._follow(self.loop.now())
        board.faults()
        counters = sum(self._compare_counters(node) for node in self.nodes)
        outputs = [(node, port) for node in self.nodes for port in node.outputs]
        checks = board.csr.check[:]
        for node, port in outputs:
            native, found = self.loop.digest(node.index, port), checks[self._face(node, port)]
            if native != found:
                raise self._mismatch(
                    f"{node.name}, output {port}: the signature of its cells and their ticks is {found:#010x} on the board "
                    f"and {native:#010x} natively"
                )
        client = board.client
        _log.info("board: %d octets out, %d in", client.octets_out, client.octets_in)
        return {
            "pdus": self.checked,
            "ended": self.pdus,
            "counters": counters,
            "outputs": len(outputs),
            "ticks": board.next_tick,
            "trips": client.trips,
            "repeats": client.repeats,
        }

    def _compare_counters(self, node: Node) -> int:
        """Compare the words that a node's driver reads for its counters; return their number."""
        spy = _Spy(node)
        node._make_driver(spy).counters()
        base = self._place[node.index] << WINDOW_BITS
        found = self.board.read([base | addr for addr in spy.words])
        for (addr, native), word in zip(spy.words.items(), found, strict=True):
            if native != word:
                name = _name_of(node.csr.map, addr)
                raise self._mismatch(f"{node.name}: {name} is {word} on the board and {native} natively")
        return len(found)

    def close(self) -> None:
        if self._board is not None:
            self._board.close()
            self._board = None
        super().close()


class _Spy:
    """A node's bus that keeps what is read."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.words: dict[int, int] = {}

    def read(self, addr: int) -> int:
        self.words[addr] = self._node.read(addr)
        return self.words[addr]

    def write(self, addr: int, value: int) -> None:
        raise ValueError(f"counters are only read: {addr:#x} would be {value}")


def _name_of(registers: RegisterMap, addr: int) -> str:
    for name, start, register in registers.walk():
        if start <= addr < start + register.size:
            return f"{name}[{addr - start}]" if register.count is not None else name
    return f"register {addr:#x}"


def _described(pdu: tuple[int, int, int, bool, bytes]) -> str:
    tick, vc, status, congested, octets = pdu
    marked = ", congested" if congested else ""
    return f"a PDU of VC {vc} at tick {tick} ({PduStatus(status).name}, {len(octets)} octets{marked})"


def checksummed(octets: bytes, start: int, at: int) -> bytes:
    """Return the octets with their Internet checksum from ``start`` on in octets ``at`` and the next (RFC 1071)."""
    summed = octets[start:] + b"\0" * ((len(octets) - start) % 2)
    total = sum(memoryview(_swapped(summed)).cast("H")) % 0xFFFF if any(summed) else 0
    total = total or (0xFFFF if any(summed) else 0)
    value = ~total & 0xFFFF
    if value == 0 and at - start == 6:  # UDP's, where zero says that there is none (RFC 768)
        value = 0xFFFF
    return octets[:at] + value.to_bytes(2, "big") + octets[at + 2 :]


def _swapped(octets: bytes) -> bytes:
    swapped = bytearray(octets)
    swapped[::2], swapped[1::2] = octets[1::2], octets[::2]
    return bytes(swapped)


def placed(wanted: Plan, plan: Plan, names: list[str]) -> dict[int, int]:
    """Return a window of the board for each node of a network: one of the same kind and shape, with long enough wires.

    Nodes with long wires choose first, and take the shortest that suffice.

    Raises
    ------
    BoardError
        No window is free.
    """
    free = dict(enumerate(plan.nodes, 1))
    found: dict[int, int] = {}
    for index in sorted(range(len(wanted.nodes)), key=lambda index: -sum(wanted.wires_of(index))):
        shape, needs = wanted.nodes[index], wanted.wires_of(index)
        alike = [window for window, has in free.items() if has == shape]
        if not alike:
            has = ", ".join(str(each) for each in free.values() if each.kind == shape.kind) or "none"
            raise BoardError(
                f"the board has no {shape} left for {names[index]}; of {shape.kind} it has {has}: flash or rebuild"
            )
        enough = [
            window
            for window in alike
            if all(has >= need for has, need in zip(plan.wires_of(window - 1), needs, strict=True))
        ]
        if not enough:
            longest = max(max(plan.wires_of(window - 1)) for window in alike)
            raise BoardError(
                f"{names[index]}: its wires need room for {max(needs)} cells, and those of {shape} on the board have "
                f"room for {longest}: flash or rebuild"
            )
        window = min(enough, key=lambda window: sum(plan.wires_of(window - 1)))
        del free[window]
        found[index] = window
    return found
