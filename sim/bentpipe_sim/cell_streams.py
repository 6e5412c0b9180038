"""Test cells of a VC: from the generator of its source's interface to the analyser of its sink's.

Made by :meth:`~bentpipe_sim.network.Network.add_test_cells`. What the analyser has found is beside the truth of the
ledger, which follows each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_hdl.nic.options.test_cells.control import Analysis, analyse, generate, read_analysis, stop
from bentpipe_hdl.test_cells.cells import block_of_rate
from bentpipe_hdl.ticks import TICKS_A_SECOND

from .accounts import CellAccount, read_cells
from .loop import Loop
from .nodes import Nic, Node

__all__ = ["TestCellStream"]


@dataclass(eq=False)
class TestCellStream:
    """Test cells on a VC of its own.

    Members
    -------
    source, sink : Nic
    vc : int
        Its index at both.
    place : int
        Its place in the ledger.
    block : tuple of int or None
        Log2 of N, and M, of cell blocks; None: from the rate at which the VC is paced (I.356).
    delay_class : int
        Log2 of the width of a class of delays, in 10 ns.
    """

    __test__ = False  # no test of pytest

    loop: Loop
    nodes: Sequence[Node]
    source: Nic
    sink: Nic
    vc: int
    place: int
    block: tuple[int, int] | None
    delay_class: int

    def lay(self) -> None:
        """Begin, in a network that is made and has no cells yet."""
        self.loop.without_pdus(self.place)
        analyse(self.sink.csr, self.vc, block=self.blocks, delay_class=self.delay_class)

    @property
    def blocks(self) -> tuple[int, int]:
        """Log2 of N, and M, of its cell blocks."""
        return self.block or block_of_rate(self.cell_rate)

    @property
    def cell_rate(self) -> float:
        """Cells a second at which the VC is paced, or its line sends."""
        return TICKS_A_SECOND * 65536 / self.source.sends[self.vc].period

    def start(self, count: int = 0) -> None:
        """Send so many cells from now on, 0: until :meth:`stop`."""
        generate(self.source.csr, self.vc, count=count)

    def stop(self) -> None:
        """Send one more cell, and no more."""
        stop(self.source.csr)

    @property
    def sends(self) -> bool:
        state = int(self.source.csr.test_state)
        return bool(state & 3)

    def analysis(self) -> Analysis:
        """What the analyser has found so far."""
        return read_analysis(self.sink.csr)

    def truth(self) -> CellAccount:
        """What became of the cells so far, counted where it happened."""
        return read_cells(self.loop, self.nodes, self.place)

    @property
    def under_way(self) -> int:
        """Cells that are on their way."""
        cells: Any = self.truth()
        return cells.sent - cells.received - sum(cells.lost.values())
