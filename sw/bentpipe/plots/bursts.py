"""Plots from the records of lost cells, by VC: times of losses, bursts, gaps between them, and autocorrelation."""

from __future__ import annotations

import itertools
from typing import Any, Final

from bentpipe.plots.layout import PANEL_IN, WIDTH_IN, lay_out
from bentpipe.plots.style import FEW, flow_style
from bentpipe.results.losses import Bursts, autocorrelation, cells_by_vc, shares_at_least, timeline
from bentpipe.results.schema import RunResult

__all__ = ["burst_figure"]

_PARTS: Final = 200
"""Intervals into which the run is divided for losses over time."""
_LAGS: Final = 100

_PANELS: Final = (
    ("lengths", "Bursts of losses", "consecutive cells lost at least", "share of bursts"),
    ("gaps", "Gaps between bursts of losses", "cells not lost at least", "share of gaps"),
)


def burst_figure(result: RunResult) -> Any | None:
    """Return the figure, of the first few VCs; None without records of lost cells."""
    from matplotlib.figure import Figure

    cells = {} if result.losses is None else dict(itertools.islice(cells_by_vc(result.losses).items(), FEW))
    if not cells:
        return None
    found = {vc: Bursts.of(numbers) for vc, numbers in cells.items()}
    figure = Figure(figsize=(WIDTH_IN, 4 * (PANEL_IN + 0.5)), layout="constrained")
    first, *panels, last = figure.subplots(4, 1)
    _draw_timeline(first, result, [*cells])
    _draw_autocorrelation(last, result, cells)
    for axis, (what, title, label, share) in zip(panels, _PANELS, strict=True):
        axis.set_title(title)
        axis.set_xlabel(label)
        axis.set_ylabel(share)
        axis.set_yscale("log")
        for index, (vc, bursts) in enumerate(found.items()):
            if values := getattr(bursts, what):
                axis.plot(*shares_at_least(values), drawstyle="steps-pre", label=vc, **flow_style(index))
        axis.set_xscale("log")
        axis.set_ylim(top=1.3)
    lay_out(figure)
    return figure


def _draw_timeline(axis: Any, result: RunResult, vcs: list[str]) -> None:
    end_s = result.summary["time"]["simulated_s"]
    times, counts = timeline(result.losses, round(end_s * 1e12), _PARTS)
    axis.set_title("Losses over time")
    axis.set_xlabel("time (s)")
    axis.set_ylabel(f"cells lost in {end_s / _PARTS:.3g} s")
    for index, vc in enumerate(vcs):
        axis.plot([time / 1e12 for time in times], counts[vc], drawstyle="steps-post", label=vc, **flow_style(index))


def _draw_autocorrelation(axis: Any, result: RunResult, cells: dict[str, list[int]]) -> None:
    axis.set_title("Autocorrelation of losses")
    axis.set_xlabel("lag (cells of the VC)")
    axis.set_ylabel("autocorrelation")
    for index, (vc, numbers) in enumerate(cells.items()):
        sent = round(result.summary["metrics"].get(f"{vc}.cells_sent") or 0)
        lags = [*range(1, min(_LAGS, sent - 1) + 1)]
        if len(numbers) < sent and lags:
            axis.plot(lags, autocorrelation(numbers, sent, lags), label=vc, **flow_style(index))
