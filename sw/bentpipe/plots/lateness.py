"""Plots of how late the packets of attached hosts were: the histograms of a session's ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.layout import PANEL_IN, WIDTH_IN, lay_out, save
from bentpipe.plots.style import flow_style, styled
from bentpipe.results.schema import RunResult

__all__ = ["LATENESS", "lateness_figure", "times_of_ends", "write_lateness"]

LATENESS: Final = {
    "late": "Injected late",
    "computed_late": "Computed late",
    "jitter": "Sent late",
    "beyond": "Longer than configured",
}
"""The distributions of an end, and what they are of packets."""

_NS: Final = 1e6
"""In a ms."""


def times_of_ends(summary: Mapping[str, Any], what: str) -> Iterator[tuple[str, list[float], list[int]]]:
    """Yield the times (ms) of each host, and the number of packets with each time or less.

    A number counts the packets above the time before.
    """
    for end in summary.get("attached", {}).get("ends", ()):
        bins = end[what].get("bins")
        if bins:
            yield end["host"], [upto / _NS for upto, _ in bins], [count for _, count in bins]


def lateness_figure(result: RunResult) -> Any | None:
    """Return the share of packets at least this late, for each kind of lateness that occurred; None without any."""
    from matplotlib.figure import Figure

    panels = {what: list(times_of_ends(result.summary, what)) for what in LATENESS}
    shown = {what: ends for what, ends in panels.items() if ends}
    if not shown:
        return None
    figure = Figure(figsize=(WIDTH_IN, len(shown) * (PANEL_IN + 0.5)), layout="constrained")
    axes = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    for axis, (what, ends) in zip(axes, shown.items(), strict=True):
        axis.set_title(LATENESS[what])
        axis.set_xlabel("ms, at least")
        axis.set_ylabel("share of packets")
        axis.set_yscale("log")
        for index, (host, times, counts) in enumerate(ends):
            whole = left = sum(counts)
            shares = []
            for count in counts:
                shares.append(left / whole)
                left -= count
            axis.plot(times, shares, drawstyle="steps-pre", label=host, **flow_style(index))
        axis.set_xlim(left=0)
        axis.set_ylim(top=1.3)
    lay_out(figure)
    return figure


def write_lateness(folder: Path, result: RunResult) -> None:
    """Write ``lateness.svg`` and ``.png``, if there are packets."""
    with styled():
        figure = lateness_figure(result)
        if figure is not None:
            save(figure, folder, "lateness")
