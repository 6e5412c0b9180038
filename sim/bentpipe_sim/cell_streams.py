"""Test cells of a VC: from the generator of its source's interface to the analyser of its sink's.

Made by :meth:`~bentpipe_sim.network.Network.add_test_cells`. What the analyser has found is beside the truth of the
ledger, which follows each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bentpipe_hdl.nic.options.test_cells.control import POSTS, SENDS, Analysis, analyse, generate, read_analysis, stop
from bentpipe_hdl.test_cells.cells import block_of_rate
from bentpipe_hdl.ticks import TICKS_A_SECOND, ticks_to_ps

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

    def time_of(self, count: int) -> int:
        """Return the time of so many cells at the VC's rate (ps)."""
        return ticks_to_ps(count * self.source.sends[self.vc].period >> 16)

    def is_over(self) -> bool:
        """Return whether no cell is to be sent, and none is under way."""
        if int(self.source.csr.test_state) & (SENDS | POSTS):
            return False
        cells = self.truth()
        return cells.sent <= cells.received + sum(cells.lost.values())

    def analysis(self) -> Analysis:
        """Return the analyser's results so far."""
        return read_analysis(self.sink.csr)

    def truth(self) -> CellAccount:
        """Return the account of the cells so far, counted where each event happened."""
        return read_cells(self.loop, self.nodes, self.place)

    def figures(self, span_ps: int) -> dict[str, float]:
        """Return the figures measured so far, with their true values; ``span_ps`` is the duration of the flow.

        Unknown figures, for which nothing was counted, are left out.
        """
        found, truth = self.analysis(), self.truth()
        whole, severe = 1 << self.blocks[0], found.secb_lost
        outside = found.sent - found.secbs * whole
        figures: dict[str, float | None] = {
            "test_cells_sent": truth.sent,
            "test_cells_received": found.received,
            "test_cells_lost": found.lost,
            "true_cells_lost": sum(truth.lost.values()),
            "test_cells_errored": found.errored,
            "true_cells_errored": truth.errored,
            "test_cells_misinserted": found.misinserted,
            "true_cells_misinserted": truth.misinserted,
            "test_cells_unjudged": found.skipped + found.pending,
            "measured_cell_loss_ratio": _ratio(found.lost, found.sent),
            "measured_cell_error_ratio": _ratio(found.errored, found.in_order + found.errored),
            "measured_cell_misinsertion_rate": _ratio(found.misinserted * 10**12, span_ps),
            "cell_loss_ratio_outside_secb": _ratio(found.lost - severe, outside),
            "cell_blocks": found.blocks,
            "severely_errored_cell_block_ratio": _ratio(found.secbs, found.blocks),
        }
        if found.in_order:
            figures |= {
                "cell_transfer_delay_mean_ps": found.delay_mean_ps,
                "cell_transfer_delay_min_ps": found.delay_min_ps,
                "cell_transfer_delay_max_ps": found.delay_max_ps,
                **{f"cell_transfer_delay_{name}_ps": found.quantile_ps(share) for name, share in _QUANTILES.items()},
                "cell_delay_variation_ps": found.delay_max_ps - found.delay_min_ps,
            }
            last = found.quantile_ps(_QUANTILES["p999"])
            figures["cell_delay_variation_p999_ps"] = None if last is None else last - found.delay_min_ps
        return {name: value for name, value in figures.items() if value is not None}


_QUANTILES: Final = {"p50": 0.5, "p99": 0.99, "p999": 0.999}


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None
