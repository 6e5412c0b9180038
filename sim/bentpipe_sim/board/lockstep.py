"""A network that runs natively and on a board at once: each PDU goes to both, everything that comes of it is compared.

The native network is the one that hosts see. The board follows it: what hosts and settings did before a tick is done on
the board between the same two ticks, so that the board may be behind, but not otherwise.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from bentpipe_hdl.registers import RegisterMap
from bentpipe_hdl.ticks import ps_to_ticks
from bentpipe_sim.board.board import Board, Ended
from bentpipe_sim.board.errors import BoardError, MismatchError
from bentpipe_sim.board.gateware import outdated
from bentpipe_sim.board.payload import Payload
from bentpipe_sim.board.placement import NetworkOnBoard, Placement, driver_behind, placed, plan_of, sdu_of
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.build import EngineName
from bentpipe_sim.interface import PduEvent, PduStatus
from bentpipe_sim.nodes import Nic, Node

__all__ = ["LockstepNetwork"]

_log = logging.getLogger(__name__)


class LockstepNetwork(NetworkOnBoard):
    """A native network with a board beside it.

    Parameters
    ----------
    attach, seed, engine
        As for :class:`~bentpipe_sim.board.placement.NetworkOnBoard`.

    Members
    -------
    pdus, checked : int
        PDUs that ended at interfaces natively; those of them that ended on the board at the same tick with the same
        verdict and octets.
    """

    def __init__(self, attach: Callable[[Plan], Board], seed: int = 1, *, engine: EngineName | None = None) -> None:
        super().__init__(attach, seed, engine=engine)
        self._place: Placement | None = None
        self._acts: list[tuple[int, Callable[[], None]]] = []
        self._expected: dict[int, deque[tuple[int, int, int, bool, bytes]]] = {}
        self.pdus = self.checked = 0

    @property
    def place(self) -> Placement:
        if self._place is None:
            raise BoardError("the network has not begun")
        return self._place

    def _lay(self) -> None:
        super()._lay()
        plan = plan_of(self)
        board = self._board = self._attach(plan)
        if old := outdated(board.plan.gateware):
            _log.warning("the board %s: flash or rebuild if the run differs", old)
        place = self._place = Placement(self, board, self._placed(plan, board))
        self._expected = {node.index: deque() for node in self.nodes if isinstance(node, Nic)}
        for node in self.nodes:
            place.driver(node).identify()
            for port in node.outputs:
                self.loop.trace(node.index, port, 2)
        place.join()
        native_write = self.loop.csr_write

        def write(index: int, addr: int, value: int) -> None:
            self._acts.append((self.loop.next_tick(index), lambda: place.write(index, addr, value)))
            native_write(index, addr, value)

        def write_all(index: int, addr: int, words: list[int], count: int) -> None:
            for k in range(count):
                write(index, addr + k, words[k])

        self.loop.divert("csr_write", write)
        self.loop.divert("csr_write_all", write_all)

    def _placed(self, plan: Plan, board: Board) -> dict[int, int]:
        """Return the window of each node."""
        return placed(plan, board.plan, [node.name for node in self.nodes])

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
        octets = sdu_of(head, key, offset, length, checksum_start, checksum_at)
        payload = Payload(len(head), offset) if length else None

        def act() -> None:
            self.board.send(self.place.windows[nic], vc, octets, uu, payload=payload)

        self._acts.append((tick, act))

    def send_cell(self, nic: int, vc: int, pti: int, payload: bytes) -> None:
        raise BoardError("host ports of boards send no single cells yet")

    def start(self) -> None:
        """Begin; the board has all settings then, as it needs them for free-running time."""
        was_begun = self.begun
        super().start()
        if not was_begun:
            self._act(max((tick for tick, _ in self._acts), default=0))

    def run(self, until_ps: int) -> list[PduEvent]:
        if self.begun:
            self._act(self.loop.now())
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

    def _act(self, until: int) -> None:
        """Do on the board what was done natively up to this tick, in the order of the ticks in which nodes see it.

        An interface that worked in the present tick sees an SDU in the next one, and one that did not sees it at once.
        """
        self._acts.sort(key=lambda act: act[0])
        while self._acts and self._acts[0][0] <= until:
            tick, act = self._acts.pop(0)
            self._follow(tick - 1)
            act()

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
        index = self.place.nodes[ended.nic]
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
        board, now = self.board, self.loop.now()
        self._act(now + 1)
        self._follow(now)
        board.faults()
        counters = sum(self._compare_counters(node) for node in self.nodes)
        outputs = [(node, port) for node in self.nodes for port in node.outputs]
        checks = board.csr.check[:]
        for node, port in outputs:
            native, found = self.loop.digest(node.index, port), checks[self.place.face(node, port)]
            if native != found:
                raise self._mismatch(
                    f"{node.name}, output {port}: the signature of its cells and their ticks is {found:#010x} on the "
                    f"board and {native:#010x} natively"
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
        driver_behind(node, spy).counters()
        found = self.place.read(node.index, list(spy.words))
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
