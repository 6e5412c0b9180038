"""Cell and frame figures of a run (I.356): loss, error and misinsertion of VCs, losses and delays of ports.

They are computed from what the cell path counted: the ledger's rows and the switches' counters, as ``result.json`` has
them. Names, units and denominators are in :mod:`bentpipe.results.declared`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["HOST_CAUSES", "cell_metrics"]

HOST_CAUSES: Final = ("interface queue", "IP or transport checksum", "input queue")
"""Why hosts drop PDUs, before and behind the network: no loss of frames on it."""


@dataclass(slots=True)
class _Sums:
    """Cells and PDUs of one VC, or of several together."""

    sent: int = 0
    received: int = 0
    lost: int = 0
    tagged: int = 0
    errored: int = 0
    misinserted: int = 0
    frames: int = 0
    frames_lost: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the row of a VC in the ledger."""
        cells = row["cells"]
        self.sent += cells["sent"]
        self.received += cells["received"]
        self.lost += sum(loss["cells"] for loss in cells["lost"])
        self.tagged += cells["tagged"]
        self.errored += cells["errored"]
        self.misinserted += cells["misinserted"]
        refused = sum(loss["pdus"] for loss in row["lost"] if loss["why"] == HOST_CAUSES[0])
        self.frames += row["sent"] - refused
        self.frames_lost += sum(
            loss["pdus"] for loss in row["lost"] if loss["where"] and loss["why"] not in HOST_CAUSES
        )

    def metrics(self, seconds: float) -> dict[str, float | None]:
        return {
            "cell_loss_ratio": _ratio(self.lost, self.sent),
            "cell_loss_ratio_clp0": _ratio(self.lost + self.tagged, self.sent),
            "cell_error_ratio": _ratio(self.errored, self.received),
            "cell_misinsertion_rate": _ratio(self.misinserted, seconds),
            "frame_loss_ratio": _ratio(self.frames_lost, self.frames),
            "cells_sent": self.sent,
            "cells_lost": self.lost,
        }


def cell_metrics(
    ledger: Iterable[Mapping[str, Any]], ports: Iterable[Mapping[str, Any]], seconds: float
) -> dict[str, float | None]:
    """Return the figures of the run, of each VC that sent cells, and of each port at which cells arrived.

    Parameters
    ----------
    ledger, ports : iterable of Mapping
        As ``result.json`` has them.
    seconds : float
        Of simulated time.
    """
    found: dict[str, float | None] = {}
    whole = _Sums()
    counted = [row for row in ledger if "cells" in row]
    for row in counted:
        own = _Sums()
        for sums in (own, whole):
            sums.add(row)
        if own.sent:
            found |= {f"{row['vc']}.{name}": value for name, value in own.metrics(seconds).items()}
        if "cdv" in row:
            found |= {f"{row['vc']}.{name}": value for name, value in _cdv_metrics(row["cdv"]).items()}
    if counted:
        found |= whole.metrics(seconds)
    for port in ports:
        if port["offered"]:
            found |= {f"{port['port']}.{name}": value for name, value in _port_metrics(port).items()}
    return found


def _cdv_metrics(cdv: Mapping[str, Any]) -> dict[str, float | None]:
    cells = cdv["cells"]
    return {
        "one_point_cdv_max_ps": cdv["cdv_max_ps"] if cells else None,
        "one_point_cdv_min_ps": cdv["cdv_min_ps"] if cells else None,
        "cells_nonconforming": cdv["nonconforming"],
        "nonconforming_cell_ratio": _ratio(cdv["nonconforming"], cells),
    }


def _port_metrics(port: Mapping[str, Any]) -> dict[str, float | None]:
    lost = sum(port["dropped"].values())
    found: dict[str, float | None] = {
        "cell_loss_ratio": lost / port["offered"],
        "cells_lost": lost,
        "cells_offered": port["offered"],
    }
    delays = port.get("delays")
    if delays:
        least, most = delays[0][0], _upper(delays[-1])
        found |= {
            "cell_delay_mean_ps": port["delay_sum_ps"] / sum(cells for *_, cells in delays),
            "cell_delay_min_ps": least,
            "cell_delay_max_ps": most,
            "cell_delay_p99_ps": _quantile(delays, 0.99),
        }
    return found


def _quantile(bins: Sequence[Sequence[int]], share: float) -> int:
    """Return the upper end of the bin in which the share of all cells is reached."""
    left = share * sum(cells for *_, cells in bins)
    for each in bins:
        left -= each[2]
        if left <= 0:
            return _upper(each)
    return _upper(bins[-1])


def _upper(each: Sequence[int]) -> int:
    """Return the upper end of a bin, of the last one its lower end."""
    return each[0] if each[1] is None else each[1]


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None
