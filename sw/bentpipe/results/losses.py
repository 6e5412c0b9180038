"""Records of lost cells: the columns of ``losses.parquet``, and what they say of bursts of losses.

A burst is a run of consecutive cells of a VC that were lost, by the cells' numbers at the source. A gap is the number
of its cells between two bursts. The records are made by the loss ledger, which names PDU and position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "Bursts",
    "autocorrelation",
    "bursts_by_vc",
    "cells_by_vc",
    "loss_metrics",
    "loss_schema",
    "shares_at_least",
    "timeline",
    "together",
]

COLUMNS: Final = {
    "time_ps": ("int64", "simulated time, ps: that of the tick in which the cell was lost"),
    "node": ("string", "switch, line or interface that lost it"),
    "port": ("string", "output port at a switch, `SWITCH:PORT`; null elsewhere"),
    "vc": ("string", "its VC"),
    "reason": ("string", "why, as in the tables of PDUs lost"),
    "dropped_as": ("string", "`frame` if its frame was refused (EPD) or had lost a cell (PPD); else `cell`"),
    "cell": ("int64", "number in the VC, from 1, of cells of PDUs; null of a cell that is no PDU's (OAM, misinserted)"),
    "pdu": ("int64", "number of its PDU in the VC, from 1; null if the PDU is settled already, or there is none"),
    "position": ("int64", "place in the PDU, from 1"),
    "pdu_cells": ("int64", "cells of the PDU"),
    "flow_offset": ("int64", "octets: offset of the PDU's payload in the flow's data"),
    "queue_cells": ("int64", "cells in the switch's buffer at the end of the tick; null elsewhere"),
    "vc_queue_cells": ("int64", "of these, cells of the VC; null elsewhere"),
    "clp": ("int64", "CLP bit as the cell came to the node"),
}
"""The columns of ``losses.parquet``: type and meaning."""


def loss_schema() -> pa.Schema:
    """Return the schema of the records."""
    import pyarrow as pa

    kinds = {"int64": pa.int64(), "string": pa.dictionary(pa.int32(), pa.string())}
    return pa.schema({name: kinds[kind] for name, (kind, _) in COLUMNS.items()})


class Bursts:
    """The bursts of losses of a VC, or of several VCs together.

    Members
    -------
    lengths, gaps : list of int
        Cells.
    """

    def __init__(self, lengths: Sequence[int] = (), gaps: Sequence[int] = ()) -> None:
        self.lengths, self.gaps = [*lengths], [*gaps]

    @classmethod
    def of(cls, cells: Sequence[int]) -> Bursts:
        """Return the bursts of lost cells with these numbers, which rise."""
        found = cls()
        last = None
        for cell in cells:
            if last is not None and cell == last + 1:
                found.lengths[-1] += 1
            else:
                found.lengths.append(1)
                if last is not None:
                    found.gaps.append(cell - last - 1)
            last = cell
        return found

    def metrics(self) -> dict[str, float | None]:
        """Return the figures of the bursts; none without losses."""
        lost = sum(self.lengths)
        if not lost:
            return {}
        return {
            "loss_bursts": len(self.lengths),
            "loss_burst_mean": lost / len(self.lengths),
            "loss_burst_max": max(self.lengths),
            "loss_gap_mean": sum(self.gaps) / len(self.gaps) if self.gaps else None,
            "conditional_loss_probability": 1 - len(self.lengths) / lost,
        }


def cells_by_vc(table: pa.Table) -> dict[str, list[int]]:
    """Return the numbers of the lost cells of PDUs, rising, for each VC that lost some."""
    cells: dict[str, list[int]] = {}
    for vc, cell in zip(table["vc"].to_pylist(), table["cell"].to_pylist(), strict=True):
        if cell is not None:
            cells.setdefault(vc, []).append(cell)
    return {vc: sorted(numbers) for vc, numbers in cells.items()}


def bursts_by_vc(table: pa.Table) -> dict[str, Bursts]:
    """Return the bursts of each VC that lost cells of PDUs."""
    return {vc: Bursts.of(numbers) for vc, numbers in cells_by_vc(table).items()}


def autocorrelation(cells: Sequence[int], sent: int, lags: Sequence[int]) -> list[float]:
    """Return the autocorrelation of the losses of a VC.

    Each cell that was sent is 1 where it was lost, else 0. With p lost in the mean, the value of a lag k is
    (share of pairs k apart that were both lost - p^2) / (p (1 - p)).

    Parameters
    ----------
    cells : Sequence[int]
        Numbers of the lost cells, from 1.
    sent : int
        Cells sent.
    lags : Sequence[int]
        From 0 on, below ``sent``.

    Raises
    ------
    ValueError
        None or all were lost: there is no variance.
    """
    lost, p = set(cells), len(cells) / sent if sent else 0.0
    if not 0.0 < p < 1.0:
        raise ValueError(f"{len(cells)} of {sent} cells were lost: their losses have no variance")
    both = (sum(cell + lag in lost for cell in lost) / (sent - lag) for lag in lags)
    return [(share - p * p) / (p * (1 - p)) for share in both]


def timeline(table: pa.Table, end_ps: int, parts: int) -> tuple[list[float], dict[str, list[int]]]:
    """Return the lost cells of each VC in equal parts of a time: when each part begins (ps), and counts by VC."""
    counts: dict[str, list[int]] = {}
    for vc, time in zip(table["vc"].to_pylist(), table["time_ps"].to_pylist(), strict=True):
        own = counts.setdefault(vc, [0] * parts)
        own[min(time * parts // max(end_ps, 1), parts - 1)] += 1
    return [part * end_ps / parts for part in range(parts)], counts


def together(each: Mapping[str, Bursts]) -> Bursts:
    """Return the bursts of several VCs together."""
    return Bursts(
        [length for bursts in each.values() for length in bursts.lengths],
        [gap for bursts in each.values() for gap in bursts.gaps],
    )


def loss_metrics(table: pa.Table) -> Iterator[tuple[str, float | None]]:
    """Yield the figures of the bursts of each VC, and of all together, by name."""
    found = bursts_by_vc(table)
    for vc, bursts in found.items():
        yield from ((f"{vc}.{name}", value) for name, value in bursts.metrics().items())
    yield from together(found).metrics().items()


def shares_at_least(values: Sequence[int]) -> tuple[list[int], list[float]]:
    """Return the different values, rising, and the share of all that is as great or greater."""
    counts: dict[int, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    left = len(values)
    shares = []
    for value in sorted(counts):
        shares.append(left / len(values))
        left -= counts[value]
    return sorted(counts), shares
