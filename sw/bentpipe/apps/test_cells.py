"""test_cells: cells that the source's interface makes, and what the sink's measures by them (O.191, I.356)."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Application
from bentpipe.apps.settings import ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report
from bentpipe_hdl.units import COUNT, TIME

__all__ = ["APPLICATION", "TestCells"]


@final
class TestCells(Application):
    """Test cells at the rate of the VC, without a host's work.

    Parameters
    ----------
    count : int
        How many; 0: any number.
    duration_ps : int
        For how long; 0: without end.
    """

    __test__ = False

    def __init__(self, count: int = 0, duration_ps: int = 0) -> None:
        super().__init__("test_cells")
        self.count = count
        self.duration_ps = duration_ps

    def listen(self) -> None:
        """Make no sockets: hosts have no part in it."""


def _make(given: FlowRequest) -> TestCells:
    return TestCells(given.values["count"] or 0, given.duration_ps)


def _check(given: FlowRequest) -> Problem:
    block, limit = given.values["block"], given.values["block_limit"]
    if block is not None and block & block - 1:
        return "block", f"a cell block has a power of two of cells, not {block}"
    if limit is not None and block is None:
        return "block_limit", "goes with 'block'"
    if limit is not None and limit >= block:
        return "block_limit", f"{limit} of the {block} cells of a block are no limit: it has to be less"
    return None


APPLICATION: Final = ApplicationSpec(
    "test_cells",
    "test cells (modelled on O.191) that the interface of the source makes at the rate of the VC, and the interface of "
    "the sink analyses",
    (
        AppSetting("count", COUNT.within(1, 2**32 - 1), None, "how many cells; without it there is no end", ends=True),
        AppSetting(
            "block",
            COUNT.within(2, 65536),
            None,
            "cells of a cell block (N of I.356), a power of two; at least PCR/25 and 128 unless given",
        ),
        AppSetting(
            "block_limit",
            COUNT.within(0, 65535),
            None,
            "lost, errored and misinserted cells that a block may have before it is severely errored (M); N/32 unless "
            "given",
        ),
        AppSetting(
            "delay_class",
            TIME.within("10 ns", "40 ms"),
            2_560_000,
            "width of the 512 classes of delays, from which quantiles are; the next 10 ns * 2^n",
        ),
    ),
    _make,
    _check,
    protocols=("atm",),
    takes=("duration",),
    report=Report(
        "Test cells",
        (
            Column("test_cells_sent", "", "test cells sent", "sent", words="test cells sent"),
            Column(
                "test_cells_received", "", "cells that came to the analyser", "received", words="test cells received"
            ),
            Column(
                "test_cells_lost",
                "",
                "lost cells, as the analyser sees them",
                "lost",
                words="lost cells, by the analyser",
            ),
            Column(
                "true_cells_lost", "", "lost cells, as the ledger has them", "truly", words="lost cells, by the ledger"
            ),
            Column(
                "test_cells_errored",
                "",
                "errored cells, as the analyser sees them",
                "errored",
                words="errored cells, by the analyser",
            ),
            Column(
                "true_cells_errored",
                "",
                "errored cells, as the ledger has them",
                "truly",
                words="errored cells, by the ledger",
            ),
            Column(
                "test_cells_misinserted",
                "",
                "misinserted cells, as the analyser sees them",
                "misinserted",
                words="misinserted cells, by the analyser",
            ),
            Column(
                "true_cells_misinserted",
                "",
                "misinserted cells, as the ledger has them",
                "truly",
                words="misinserted cells, by the ledger",
            ),
            Column(
                "test_cells_unjudged",
                "",
                "cells that came while the analyser was out of step, or are still open",
                words="cells not judged",
            ),
            Column(
                "measured_cell_loss_ratio",
                "",
                "lost cells over cells sent, by the analyser",
                words="measured cell loss ratio",
                ratio=True,
            ),
            Column(
                "measured_cell_error_ratio",
                "",
                "errored cells over those and cells in order",
                words="measured cell error ratio",
                ratio=True,
            ),
            Column(
                "measured_cell_misinsertion_rate",
                "1/s",
                "misinserted cells over the flow's time",
                words="measured cell misinsertion rate",
                ratio=True,
            ),
            Column(
                "cell_loss_ratio_outside_secb",
                "",
                "lost cells over cells sent, of blocks that are not severely errored (I.356)",
                words="measured cell loss ratio outside SECBs",
                ratio=True,
            ),
            Column("cell_blocks", "", "cell blocks", words="cell blocks"),
            Column(
                "severely_errored_cell_block_ratio",
                "",
                "SECBR: severely errored cell blocks over cell blocks",
                "SECBR",
                words="severely errored cell block ratio",
                ratio=True,
            ),
            Column(
                "cell_transfer_delay_mean_ps",
                "ps",
                "mean cell transfer delay of cells in order",
                "mean CTD",
                words="mean cell transfer delay",
            ),
            Column("cell_transfer_delay_min_ps", "ps", "the least", "min", words="least cell transfer delay"),
            Column("cell_transfer_delay_max_ps", "ps", "the greatest", "max", words="greatest cell transfer delay"),
            Column(
                "cell_transfer_delay_p50_ps",
                "ps",
                "50 % quantile: the upper end of its class",
                words="50 % quantile of the cell transfer delay",
            ),
            Column(
                "cell_transfer_delay_p99_ps",
                "ps",
                "99 % quantile, likewise",
                words="99 % quantile of the cell transfer delay",
            ),
            Column(
                "cell_transfer_delay_p999_ps",
                "ps",
                "99.9 % quantile, likewise",
                words="99.9 % quantile of the cell transfer delay",
            ),
            Column(
                "cell_delay_variation_ps",
                "ps",
                "2-point CDV, peak to peak: greatest minus least delay",
                "2-point CDV",
                words="2-point CDV, peak to peak",
            ),
            Column(
                "cell_delay_variation_p999_ps",
                "ps",
                "2-point CDV: 99.9 % quantile minus least delay",
                words="2-point CDV, 99.9 % quantile",
            ),
        ),
    ),
)
"""What only the classes of delays would say is left out where it is in a class that is open."""
