"""Accounts of each VC's PDUs and cells, read from the event loop's ledger; the hardware's counters must agree with
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe_hdl.switch.registers import REASON_TITLES

from .arrival_monitor import ArrivalCounts
from .channels import LedgerHop
from .errors import NetworkError
from .interface import PduStatus
from .loop import Loop
from .nodes import Nic, Node, SonetLine

__all__ = ["LOSSES_OF_FRAMES", "Account", "CellAccount", "read_account", "read_cells", "why_text"]

_UNDER_WAY, _UNEXPLAINED = "under way", "unexplained"
_WHY = {
    1: "listed loss",
    2: "bit error",
    3: "header error (HEC)",
    4: "header error (unnoticed)",
    5: "another VC's cell",
    6: "cells lost on the line",
    7: "outage",
    8: "lost in a burst",
    9: "cells out of order",
    10: "duplicated cell",
    11: "lost in a pattern",
    16 + PduStatus.CRC: "joined (CRC)",
    16 + PduStatus.LENGTH: "joined (length)",
    16 + PduStatus.LOST_LAST: "joined (lost last)",
    16 + PduStatus.OVERLENGTH: "overlength",
    16 + PduStatus.ABORT: "joined (abort)",
    16 + PduStatus.TIMEOUT: "reassembly timer",
    32: _UNEXPLAINED,
    33: _UNDER_WAY,
    **{64 + k: title for k, title in enumerate(REASON_TITLES.values())},
}
"""Reasons of the ledger, as of ``Why`` in ``csrc/ledger.hpp``; those of a NIC are 16 and the status, those of a switch
64 and its reason."""


LOST_FRAME = "lost frame"
"""Why PDUs are lost that a host's interface loses by its ``lose_frames``."""


LOSSES_OF_FRAMES = frozenset({"EPD", "PPD"})
"""Reasons for which a switch drops a cell because its frame is refused or has lost one already."""


def why_text(why: int) -> str:
    """Return the name of a reason of the ledger."""
    return _WHY[why]


@dataclass(frozen=True)
class CellAccount:
    """The account of the cells of a VC's PDUs, counted where each event happens. Cells under way are only in ``sent``.

    Members
    -------
    sent : int
        Cells that the source's NIC has sent, all with CLP = 0. For a VC of test cells, which has no PDUs: all its
        cells.
    received : int
        Of these, cells that reached the sink's NIC.
    errored : int
        Cells with errors in the payload that were not lost.
    misinserted : int
        User cells received on this VC, or under way on it, that were not sent on it: cells of other VCs with undetected
        errors in their headers; cells made by a link; duplicates.
    duplicated : int
        Duplicates of its cells that links made, received or not.
    tagged : int
        Cells that the sink's NIC received with CLP = 1, as a switch tagged them.
    lost : dict
        Lost cells by place (name of a node) and reason.
    """

    sent: int
    received: int
    errored: int
    misinserted: int
    duplicated: int
    tagged: int
    lost: dict[tuple[str, str], int]


@dataclass(frozen=True)
class Account:
    """The account of a VC's PDUs.

    Members
    -------
    source, sink : str
        NICs.
    vc : int
        Its index at both NICs.
    sent : int
        PDUs that were given to the source's NIC.
    delivered : int
        Of these, PDUs received whole.
    repeated : int
        Duplicates of PDUs, also received whole.
    lost : dict
        All other PDUs by place (name of a node) and reason; those under way as ("", "under way").
    cells : CellAccount
    arrivals : ArrivalCounts or None
        Cells counted at a node where they arrive; None if they are not monitored
        (:meth:`~.network.Network.watch_arrivals`).
    duplicated : int
        PDUs that the source's interface sent twice; both are counted in ``sent``.
    """

    source: str
    sink: str
    vc: int
    sent: int
    delivered: int
    repeated: int
    lost: dict[tuple[str, str], int]
    cells: CellAccount
    arrivals: ArrivalCounts | None = None
    duplicated: int = 0


def read_account(loop: Loop, nodes: Sequence[Node], place: int, hops: Sequence[LedgerHop]) -> Account:
    """Return the account of the path that was added as number ``place``, through ``hops``.

    Raises
    ------
    NetworkError
    It does not add up.
    """
    totals, rows = loop.ffi.new("bp_account *"), loop.ffi.new("bp_loss[]", 256)
    count = loop.ledger(place, totals, rows, len(rows))
    source, sink, key = hops[0].node, hops[-1].node, hops[0].key
    lines = [node.name for node, *_ in hops if isinstance(node, SonetLine)]
    what = f"the ledger of VC {key >> 16}/{key & 0xFFFF} from {source.name} to {sink.name}"
    lost: dict[tuple[str, str], int] = {}
    for row in rows[0:count]:
        where, why = nodes[row.node].name if row.node >= 0 else "", _WHY[row.why]
        if why == _UNEXPLAINED:
            if not lines:
                raise NetworkError(f"{what}: {row.pdus} PDUs were not delivered, and nothing says why")
            where, why = ", ".join(lines), "SONET line"
        lost[where, why] = lost.get((where, why), 0) + row.pdus
    cells = read_cells(loop, nodes, place)
    assert isinstance(source, Nic)
    frames, sent = source.frames(hops[0].number), totals.sent
    for at, count in (((source.name, LOST_FRAME), frames["lost"]), (("", _UNDER_WAY), frames["held"])):
        if count:
            lost[at] = lost.get(at, 0) + count
            sent += count
    account = Account(
        source.name, sink.name, hops[0].number, sent, totals.delivered, totals.repeated, lost, cells,
        duplicated=frames["duplicated"],
    )  # fmt: skip
    missing = sent - totals.delivered - sum(lost.values())
    if missing:
        raise NetworkError(f"{what}: {missing} PDUs are in no row, or in two (negative)")
    assert isinstance(sink, Nic)
    received = sink.driver.received(hops[-1].number)
    came = totals.delivered + totals.repeated
    if (came - received) % (1 << 32):
        raise NetworkError(f"{what}: {came} PDUs delivered, and the NIC has counted {received}")
    if lines:  # what garbage a line without its frame makes is anybody's guess
        return account
    if totals.astray or not 0 <= totals.ends - totals.ends_there <= totals.queued:
        raise NetworkError(
            f"{what}: it expects the ends of {totals.ends} PDUs, and {totals.ends_there} are on their way"
            f" besides {totals.queued} cells in switches"
        )
    return account


def read_cells(loop: Loop, nodes: Sequence[Node], place: int) -> CellAccount:
    """Return the account of the cells of the path's PDUs; for a VC without PDUs, of all its cells."""
    totals, rows = loop.ffi.new("bp_cell_account *"), loop.ffi.new("bp_cell_loss[]", 256)
    count = loop.ledger_cells(place, totals, rows, len(rows))
    lost: dict[tuple[str, str], int] = {}
    for row in rows[0:count]:
        at = nodes[row.node].name, _WHY[row.why]
        lost[at] = lost.get(at, 0) + row.cells
    return CellAccount(
        sent=totals.sent,
        received=totals.received,
        errored=totals.errored,
        misinserted=totals.misinserted,
        duplicated=totals.duplicated,
        tagged=totals.tagged,
        lost=lost,
    )
