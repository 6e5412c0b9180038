"""Plots of ports' histograms: the queue that cells found, and their delay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from bentpipe.plots.layout import PANEL_IN, WIDTH_IN, lay_out
from bentpipe.plots.style import FEW, flow_style
from bentpipe.results.schema import RunResult
from bentpipe_hdl.ticks import TICK_PS

__all__ = ["histogram_figure"]

_PANELS: Final = (
    ("queue", 1.0, "Queues found by arriving cells", "queued at least (cells)"),
    ("delay", TICK_PS / 1e6, "Delays of cells in the switch", "delay at least (us)"),
)


def _ports(result: RunResult, what: str) -> Iterator[tuple[str, list[list[int]]]]:
    """Yield the ports that have counted any, with their bins."""
    for node, counters in (result.summary["counters"] or {}).items():
        for port, bins in enumerate(counters.get(f"{what}_by_port", ())):
            if bins:
                yield f"{node}:{port}", bins


def _at_least(bins: Sequence[Sequence[int]]) -> tuple[list[float], list[float]]:
    """Return the least values of the bins, and the share of cells in each and beyond."""
    cells = left = sum(count for _, count in bins)
    values, shares = [], []
    for least, count in bins:
        values.append(float(least))
        shares.append(left / cells)
        left -= count
    return values, shares


def histogram_figure(result: RunResult) -> Any | None:
    """Return the share of cells with at least this queue or delay, for the first few ports; None without histograms."""
    from matplotlib.figure import Figure

    ports = {what: list(_ports(result, what))[:FEW] for what, *_ in _PANELS}
    if not any(ports.values()):
        return None
    figure = Figure(figsize=(WIDTH_IN, 2 * (PANEL_IN + 0.5)), layout="constrained")
    for axis, (what, unit, title, label) in zip(figure.subplots(2, 1), _PANELS, strict=True):
        axis.set_title(title)
        axis.set_xlabel(label)
        axis.set_ylabel("share of cells")
        axis.set_yscale("log")
        for index, (port, bins) in enumerate(ports[what]):
            values, shares = _at_least(bins)
            axis.plot(
                [value * unit for value in values], shares, drawstyle="steps-pre", label=port, **flow_style(index)
            )
        axis.set_xlim(left=0)
        axis.set_ylim(top=1.3)
    lay_out(figure)
    return figure
