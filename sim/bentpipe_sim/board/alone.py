"""A board by itself as the network of an experiment: hosts act on its events, and counters are those of its registers.

No native network runs beside it. So there is no loss ledger, and nothing else that only a simulation knows:
:class:`BoardNetwork` raises an error for it, and returns no number in its place.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Any, Final

from bentpipe_sim.board.board import Board, Ended
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.gateware import outdated
from bentpipe_sim.board.payload import Payload
from bentpipe_sim.board.placement import NetworkOnBoard, Placement, driver_behind, placed, plan_of, sdu_of
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.interface import PduStatus
from bentpipe_sim.loop import Loop
from bentpipe_sim.nodes import Node, Switch
from bentpipe_sim.pattern import pattern

__all__ = ["BoardNetwork"]

_log = logging.getLogger(__name__)

_POST: Final = struct.Struct("<4IQ2iI2H")
_EVENT: Final = struct.Struct("<Q2I2H3I128sI4x")
"""``bp_post`` and ``bp_event`` of ``csrc/network.h``."""


class _Asked:
    """A bus that keeps which words are read; each is 0."""

    def __init__(self) -> None:
        self.addrs: dict[int, None] = {}

    def read(self, addr: int) -> int:
        self.addrs[addr] = None
        return 0

    def write(self, addr: int, value: int) -> None:
        raise ValueError(f"counters are only read: {addr:#x} would be {value}")


class _BoardLoop(Loop):
    """A board in the place of an event loop: the functions of that which hosts and nodes need, and no others.

    Time stands still between two runs. So a word is read once, and all counters of a node in one round trip.

    Members
    -------
    pdus : int
        PDUs that ended at interfaces.
    """

    def __init__(self) -> None:
        super().__init__()
        self._board: Board | None = None
        self._place: Placement | None = None
        self.pdus = 0
        self._ended: list[Ended] = []  # in the last run
        self._octets: list[bytes] = []  # of SDUs, by handle
        self._counters: dict[int, dict[int, None]] = {}  # their addresses, by node
        self._read: dict[tuple[int, int], int] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise BoardError(f"a board by itself has no {name}: only the native network has it")

    def attach(self, board: Board, place: Placement) -> None:
        """Open the loop: it is this board from now on."""
        self.network = self._board = board
        self._place = place
        self.ffi = self.library = self

    def find_counters(self, nodes: list[Node]) -> None:
        """Find which words are the counters of nodes that have their settings: they are read together from now on."""
        for node in nodes:
            asked = _Asked()
            driver_behind(node, asked).counters()
            if isinstance(node, Switch):
                driver_behind(node, asked).sample()
            self._counters[node.index] = asked.addrs

    def close(self) -> None:
        self.network = self._board = self._place = None

    @property
    def board(self) -> Board:
        if self._board is None:
            raise BoardError("the network is closed, or has not begun")
        return self._board

    @property
    def place(self) -> Placement:
        if self._place is None:
            raise BoardError("the network is closed, or has not begun")
        return self._place

    # Registers

    def settle(self, index: int) -> None:
        """Do nothing: a board's nodes are settled after its reset."""
        del index

    def csr_write(self, index: int, addr: int, value: int) -> None:
        """Write a register, from the next tick on."""
        self._read.clear()
        self.place.write(index, addr, value)

    def csr_write_all(self, index: int, addr: int, words: list[int], count: int) -> None:
        """Write so many registers from an address on."""
        for k in range(count):
            self.csr_write(index, addr + k, words[k])

    def csr_read(self, index: int, addr: int) -> int:
        """Return a word of a node, as it is after the last tick that has passed."""
        found = self._read.get((index, addr))
        if found is not None:
            return found
        counters = self._counters.get(index, {})
        addrs = list(counters) if addr in counters else [addr]
        words = self.place.read(index, addrs)
        self._read.update(((index, each), word) for each, word in zip(addrs, words, strict=True))
        return self._read[index, addr]

    # Time and PDUs

    def now(self) -> int:
        """Return the last tick that has passed; 0 at the start."""
        return max(0, self.board.next_tick - 1)

    def run(self, until: int) -> int:
        """Run to the end of tick ``until``, or of the first tick in which PDUs end; return the number of these.

        They are in the order in which the event loop has them.
        """
        self._read.clear()
        self._ended = self.board.run(until, to_events=True)
        nodes = self.place.nodes
        self._ended.sort(key=lambda ended: (ended.tick, nodes[ended.nic], ended.status != PduStatus.SENT))
        return len(self._ended)

    def events(self) -> bytes:
        """Return the ends of the last run as records ``bp_event``."""
        self._octets, found, nodes = [], [], self.place.nodes
        for ended in self._ended:
            self.pdus += ended.status != PduStatus.SENT
            octets, head, total = ended.octets, b"", 0
            handle = len(self._octets)
            if ended.status == PduStatus.OK:
                head, total = octets[:128], _sum(octets)
                self._octets.append(octets)
            place = ended.tick, nodes[ended.nic], ended.vc, ended.status, int(ended.congested)
            found.append(_EVENT.pack(*place, len(octets), handle, len(head), head, total))
        return b"".join(found)

    def buffer(self, octets: bytes, size: int) -> bytes:
        """Return octets, as cffi's function of this name does."""
        return octets[:size]

    def sdu(self, handle: int) -> bytes:
        """Return the octets of a received SDU."""
        return self._octets[handle]

    def bp_run(self, network: Board, until: int) -> int:
        """Run as :meth:`run` does."""
        del network
        return self.run(until)

    def bp_send(self, network: Board, post: bytes) -> None:
        """Queue an SDU, given as a ``bp_post`` and its head."""
        nic, vc, key, length, offset, start, at, size, uu, reports = _POST.unpack_from(post)
        head = post[_POST.size : _POST.size + size]
        octets = sdu_of(head, key, offset, length, start, at)
        payload = Payload(size, offset) if length else None
        network.send(self.place.windows[nic], vc, octets, uu, reports=bool(reports), payload=payload)

    def bp_check(self, network: Board, handle: int, start: int, key: int, offset: int, length: int) -> int:
        """Return 1 if a part of an SDU has the payload pattern."""
        del network
        return int(self._octets[handle][start : start + length] == pattern(key, offset, length))

    def bp_checksum(self, network: Board, handle: int, start: int, length: int) -> int:
        """Return the ones'-complement sum of a part of an SDU."""
        del network
        return _sum(self._octets[handle][start : start + length])

    bp_run_ahead = bp_send_at = None


class BoardNetwork(NetworkOnBoard):
    """A network that a board carries by itself.

    Hosts act when a tick is over, so nodes see in the next tick what they do. A run has the figures of a native one
    with ``board_ticks``, to the last bit, and not those of other native runs.

    Parameters
    ----------
    attach, seed
        As for :class:`~bentpipe_sim.board.placement.NetworkOnBoard`.
    target : str
        Name of the board, for the record.
    """

    loop_kind = _BoardLoop
    is_alone = board_ticks = True
    loop: _BoardLoop

    def __init__(self, attach: Callable[[Plan], Board], seed: int = 1, *, target: str = "") -> None:
        super().__init__(attach, seed)
        self._target, self._other = target, ""

    @property
    def answers(self) -> bool:
        """The board has not been given up: its registers can be read."""
        return not self.board.client.is_lost

    @property
    def why_whole(self) -> str:
        return "the cells are on a board"

    @property
    def parts_and_threads(self) -> tuple[int, int]:
        return 1, 1

    def start(self) -> None:
        if self.loop.is_open:
            return
        super().start()
        self.loop.find_counters(self.nodes)

    def _lay(self) -> None:
        plan = plan_of(self)
        board = self._board = self._attach(plan)
        if old := outdated(board.plan.gateware):
            self._other = old
            _log.warning("the board %s: flash or rebuild, as nothing beside it shows a difference", old)
        place = Placement(self, board, placed(plan, board.plan, [node.name for node in self.nodes]))
        self.loop.attach(board, place)
        self.opened()
        self.events_move = True
        place.join()

    def sdu(self, handle: int) -> bytes:
        return self.loop.sdu(handle)

    def under_way(self, nic: int, vc: int, sink: int, key: int) -> int:
        """Return -1: a board has no ledger."""
        del nic, vc, sink, key
        return -1

    # Looking in

    def counters(self) -> dict[str, dict[str, Any]]:
        """Return the counters that the board's registers have, by node's name."""
        return {node.name: node.counters() for node in self.nodes}

    def check_conservation(self) -> None:
        """Check that no host port and no wire of the board has lost anything. Cells are not added up.

        Raises
        ------
        BoardError
            Something was lost, or the board does not answer.
        """
        self.board.faults()

    def verify(self) -> dict[str, Any]:
        """Return what is known of the board, without asking it: ``alone`` (true), ``target``, ``gateware``, ``pdus``
        that ended, ``ticks``, ``trips``, ``repeats``, and with other RTL than this software's a text as ``other``."""
        board = self.board
        return {
            "alone": True,
            "target": self._target,
            "gateware": board.plan.gateware,
            "other": self._other or None,
            "pdus": self.loop.pdus,
            "ticks": board.next_tick,
            "trips": board.client.trips,
            "repeats": board.client.repeats,
        }

    def close(self) -> None:
        if self._board is not None:
            self._board.close()
            self._board = None
        super().close()


def _sum(octets: bytes) -> int:
    """Return the ones'-complement sum of octets (RFC 1071, not complemented): 0 of zeros alone."""
    number = int.from_bytes(octets + b"\0" * (len(octets) % 2), "big")
    return number % 0xFFFF or (0xFFFF if number else 0)
