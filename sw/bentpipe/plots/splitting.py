"""The plot of a run with splitting: the highest queue per cycle by level, beside the plain run and theory."""

from __future__ import annotations

from typing import Any, Final

from bentpipe.plots.layout import PANEL_IN, WIDTH_IN, lay_out
from bentpipe.plots.style import COLOURS, DARK
from bentpipe.results.schema import RunResult

__all__ = ["LABELS", "splitting_figure"]

LABELS: Final = ("cells queued at once, or more", "share of cycles")
"""Labels of the axes. A cycle begins with a cell that finds none queued."""


def splitting_figure(result: RunResult) -> Any | None:
    """Return the plot of probability against level, with 95 % intervals; None for a run without splitting."""
    from matplotlib.figure import Figure

    split = result.summary.get("splitting")
    if not split:
        return None
    figure = Figure(figsize=(WIDTH_IN, 2 * PANEL_IN + 0.5), layout="constrained")
    axis = figure.subplots()
    axis.set_title(f"Highest queue of {split['port']} per cycle")
    axis.set_xlabel(LABELS[0])
    axis.set_ylabel(LABELS[1])
    axis.set_yscale("log")
    by = {name: [(row["queue"], row[name]) for row in split["heights"] if row[name]] for name in ("plain", "predicted")}
    if by["predicted"]:
        axis.plot(*zip(*by["predicted"], strict=True), color=DARK, linewidth=1.0, label="theory")
    if by["plain"]:
        axis.plot(*zip(*by["plain"], strict=True), "o", color=COLOURS[1], fillstyle="none", label="plain run")
    rows = [(level["level"], level["reach"]) for level in split["levels"] if level["reach"]["value"]]
    if rows:
        values = [reach["value"] for _, reach in rows]
        ends = [[abs((reach[end] or reach["value"]) - reach["value"]) for _, reach in rows] for end in ("low", "high")]
        axis.errorbar(
            [level for level, _ in rows], values, ends, fmt="s", color=COLOURS[0], capsize=3, label="splitting, 95 %"
        )
    lay_out(figure)
    return figure
