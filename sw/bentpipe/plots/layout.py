"""Figures of panels one above the other laid out so that no text stands on another."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.style import DARK

__all__ = ["PANEL_IN", "WIDTH_IN", "Panel", "draw_panels", "fit", "lay_out", "note", "save"]

Panel = Callable[[Any], None]
"""Draws into an axis; sets title, units and labels, but no legend."""

WIDTH_IN: Final = 8.4
"""Width of a figure in inches."""

PANEL_IN: Final = 2.15
"""Height of a panel in inches."""

_GAP: Final = 4.0
_NOTE: Final = "note"
_POINTS: Final = 72.0


def draw_panels(panels: Sequence[Panel], end_s: float, marks: Sequence[float] = ()) -> Any:
    """Return the figure of some panels over simulated time; at least one panel. ``marks`` are times in s with a
    line."""
    from matplotlib.figure import Figure

    alone = 1.0 if len(panels) == 1 else 0.0
    figure = Figure(figsize=(WIDTH_IN, PANEL_IN * len(panels) + 0.5 + alone), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        panel(axis)
        for time_s in marks:
            axis.axvline(time_s, color=DARK, linewidth=0.8, linestyle=":", zorder=1)
    axes[0].set_xlim(0, end_s or 1)
    axes[-1].set_xlabel("simulated time (s)")
    lay_out(figure)
    return figure


def note(axis: Any, text: str) -> None:
    """Add a text below a panel's title, in lines of its own."""
    axis.text(0.0, 1.0, text, fontsize=8.5, color=DARK, va="bottom", gid=_NOTE, in_layout=False)


def lay_out(figure: Any) -> None:
    """Put legend and note between each panel and its title, and fix the layout; the figure grows by what they take."""
    engine = figure.get_layout_engine()
    engine.execute(figure)  # now the panels' widths are known
    grown = 0.0
    for axis in figure.axes:
        room = axis.bbox.width
        height = _head(axis, room)
        fit(axis.set_title(axis.get_title(loc="left"), pad=height + _GAP), room)
        grown += height
    figure.set_figheight(figure.get_figheight() + grown / _POINTS)
    figure.align_ylabels()
    engine.execute(figure)
    figure.set_layout_engine(None)  # laid out once; with "none" each file would be drawn twice


def _head(axis: Any, room: float) -> float:
    """Return the texts between a panel and its title, from below: note and legend; and their height in points."""
    from matplotlib.transforms import ScaledTranslation

    height = 0.0
    for text in axis.texts:
        if text.get_gid() == _NOTE:
            fit(text, room)
            up = ScaledTranslation(0, _GAP / _POINTS, axis.figure.dpi_scale_trans)
            text.set(transform=axis.transAxes + up, in_layout=True)
            height = _points(text) + _GAP
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return height
    up = ScaledTranslation(0, height / _POINTS, axis.figure.dpi_scale_trans)
    for columns in range(len(handles), 0, -1):  # as few rows as fit
        legend = axis.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            bbox_transform=axis.transAxes + up,
            ncols=columns,
            borderpad=0.15,
            borderaxespad=0.2,
            handlelength=2.2,
            columnspacing=1.3,
            labelspacing=0.3,
        )
        if legend.get_window_extent().width <= room:
            break
    return height + _points(axis.get_legend()) + _GAP


def _points(artist: Any) -> float:
    return artist.get_window_extent().height * _POINTS / artist.figure.dpi


def fit(text: Any, room: float) -> None:
    """Break a text into lines until it is no wider than ``room`` pixels."""
    whole = text.get_text()
    length = len(whole)
    while length > 8 and text.get_window_extent().width > room:
        length -= 2
        text.set_text(textwrap.fill(whole, length, break_long_words=False))


def save(figure: Any, folder: Path, name: str, *, pdf: bool = False) -> None:
    """Write ``name.svg`` and ``name.png``, with ``pdf`` also ``name.pdf``; the same bytes each time."""
    if pdf:
        figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", metadata={"Software": "bentpipe"})
