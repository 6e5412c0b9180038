"""Interrupted lines, as the switches at their ends see them."""

from __future__ import annotations

import heapq

from .loop import Loop
from .nodes import Link, Node, Switch

__all__ = ["Defects"]


class Defects:
    """The reports of interrupted lines: switches with OAM get them in the tick in which a line fails or returns.

    A line that is interrupted from tick T on takes no cell in then. What came before is still on its way: the switch
    sees the defect in the tick in which a cell of T would have come, and its end likewise. (In a SONET line cells, and
    its own defects, take a few ticks more.)

    Parameters
    ----------
    loop : Loop
    nodes : list of Node
        Of the network.
    wires : list of tuple
        From a node's output to a node's input, with ticks.

    Members
    -------
    due : list
        What it waits for; while there is anything, time passes by :meth:`run`.
    began : bool
        Time has passed.
    """

    def __init__(self, loop: Loop, nodes: list[Node], wires: list[tuple[Node, int, Node, int, int]]) -> None:
        self._loop, self._nodes, self._wires = loop, nodes, wires
        self._seen: dict[tuple[int, int], bool] = {}
        self.due: list[tuple[int, int, int, bool]] = []  # ticks before which a switch's port has a defect, or has none
        self.began = False

    def look(self, node: Node) -> None:
        """Take over a change of a node's outages, from the next tick on."""
        coming = self._loop.now() + 1 if self.began else 0
        for port, now in node.outages().items():
            before = self._seen.get((node.index, port), False)
            self._seen[node.index, port] = now
            if now == before:
                continue
            delay, after, face = self._way(node, port)
            if isinstance(after, Switch) and after.manages:
                heapq.heappush(self.due, (coming + delay, after.index, face, now))

    def run(self, until: int) -> int:
        """Run up to this tick, or until something happens; return how many things happened."""
        due = self.due
        while due and due[0][0] <= until:
            tick = due[0][0]
            count = self._loop.run(tick - 1) if tick else 0
            if count:
                return count
            while due and due[0][0] == tick:
                _, index, port, now = heapq.heappop(due)
                csr = self._nodes[index].csr
                csr.oam_defects = int(csr.oam_defects) & ~(1 << port) | now << port
        return self._loop.run(until)

    def _way(self, node: Node, port: int) -> tuple[int, Node | None, int]:
        """Return the ticks from a line's end to the next switch or NIC, that node, and its port."""
        delay = 0
        while True:
            if isinstance(node, Link):
                delay += node.delay
            wire = next((wire for wire in self._wires if wire[0] is node and wire[1] == port), None)
            if wire is None:
                return delay, None, 0
            _, _, node, face, held = wire
            delay += held
            if not node.outages():
                return delay, node, face
            port = 0 if isinstance(node, Link) else 1 - face
