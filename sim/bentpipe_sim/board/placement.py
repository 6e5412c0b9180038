"""The nodes of a network on those of a board: the plan that a network needs, windows, wires, registers, PDUs.

Both networks that use a board stand on this: in lockstep (:mod:`~bentpipe_sim.board.lockstep`) and by itself
(:mod:`~bentpipe_sim.board.alone`). Start with :class:`Placement`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

from bentpipe_hdl.registers import Bus, Registers
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.windows import BOARD_VCS, WINDOW_BITS, Plan
from bentpipe_sim.build import EngineName
from bentpipe_sim.network import INGRESS, Network
from bentpipe_sim.nodes import Link, Nic, Node
from bentpipe_sim.pattern import pattern

__all__ = ["NetworkOnBoard", "Placement", "checksummed", "driver_behind", "placed", "plan_of", "sdu_of"]

_MOST_WORDS: Final = 1 << 16
"""Words of a host port's memory at most."""
_JITTER: Final = 64
"""Ticks by which cells may come closer than their line's rate."""


class NetworkOnBoard(Network):
    """A network that a board carries, alone or beside the native one.

    Parameters
    ----------
    attach : Callable
        Gets the plan of the network, and returns a board that has its nodes.
    seed, engine
        As for :class:`~bentpipe_sim.network.Network`.
    """

    least_vcs = BOARD_VCS

    def __init__(self, attach: Callable[[Plan], Board], seed: int = 1, *, engine: EngineName | None = None) -> None:
        super().__init__(seed, engine=engine)
        self._attach = attach
        self._board: Board | None = None

    @property
    def board(self) -> Board:
        if self._board is None:
            raise BoardError("the network has not begun")
        return self._board

    @property
    def saves(self) -> bool:
        """A board gives no state."""
        return False

    @property
    def makes_writes(self) -> bool:
        """A board gets each write in its time."""
        return False


def plan_of(network: Network) -> Plan:
    """Return the plan of a board for this network: its nodes in their order, and wires that are long enough. Ports that
    lead nowhere have none.

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
            if held is None:
                cells.append(0)
                continue
            most = (held + _JITTER) * 65536 // node.spacing(port) + INGRESS + 4
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


class Placement:
    """The place of each node of a network on a board.

    Parameters
    ----------
    network : Network
        Its nodes, wires and VCs are complete.
    board : Board
    windows : dict
        The window of each node, by the node's index (:func:`placed`).

    Members
    -------
    nodes : dict
        The index of each node, by its window.
    """

    def __init__(self, network: Network, board: Board, windows: dict[int, int]) -> None:
        self._network, self._board, self.windows = network, board, windows
        self.nodes = {window: index for index, window in windows.items()}

    def driver(self, node: Node) -> Any:
        """Return a driver of the node on the board."""
        return node._make_driver(self._board.window(self.windows[node.index]))

    def face(self, node: Node, port: int) -> int:
        """Return the number of a node's port among those of all nodes of the board."""
        return self._board.plan.bases[self.windows[node.index] - 1] + port

    def join(self) -> None:
        """Set the patch panel and the wires as the network has them."""
        csr = self._board.csr
        for a, a_port, b, b_port, delay in self._network._wires:
            face, to = self.face(a, a_port), self.face(b, b_port)
            held = delay + (a.delay - 1 if isinstance(a, Link) else 0)
            csr.wire[face] = {"delay": held, "sends": int(self._network.sends(a, b))}
            csr.patch[to] = face + 1

    def write(self, index: int, addr: int, value: int) -> None:
        """Write a register of a node, from the next tick on."""
        self._board.write(self.windows[index] << WINDOW_BITS | addr, [value & 0xFFFFFFFF])

    def read(self, index: int, addrs: Sequence[int]) -> list[int]:
        """Return registers of a node, in one round trip if they fit into a frame."""
        base = self.windows[index] << WINDOW_BITS
        return self._board.read([base | addr for addr in addrs])


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
            for port, need in enumerate(needs):
                if need and not any(plan.wires_of(window - 1)[port] for window in alike):
                    raise BoardError(
                        f"{names[index]}: its port {port} leads somewhere, and that of {shape} on the board has no "
                        "wire: flash or rebuild"
                    )
            longest = max(max(plan.wires_of(window - 1)) for window in alike)
            raise BoardError(
                f"{names[index]}: its wires need room for {max(needs)} cells, and those of {shape} on the board have "
                f"room for {longest}: flash or rebuild"
            )
        window = min(enough, key=lambda window: sum(plan.wires_of(window - 1)))
        del free[window]
        found[index] = window
    return found


def driver_behind(node: Node, bus: Bus) -> Any:
    """Return a node's driver, with the settings that it has, for another bus."""
    other = copy.copy(node.driver)
    other._bus, other.csr = bus, Registers(bus, node.driver.csr.map)
    return other


def sdu_of(
    head: bytes, key: int = 0, offset: int = 0, length: int = 0, checksum_start: int = -1, checksum_at: int = -1
) -> bytes:
    """Return all octets of an SDU that a host gives; parameters as for
    :meth:`~bentpipe_sim.interface.PduNetwork.send`."""
    octets = head + pattern(key, offset, length)
    return checksummed(octets, checksum_start, checksum_at) if checksum_at >= 0 else octets


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
