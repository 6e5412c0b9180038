"""The plot of a sweep: a figure over what is varied, each seed a point, the mean with its 95 % interval as a band."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.layout import WIDTH_IN, lay_out, save
from bentpipe.plots.style import COLOURS, flow_style, styled
from bentpipe.results.statistics import CONFIDENCE, mean_of

__all__ = ["MOST_NAMES", "PLOTS", "Place", "places", "sweep_figure", "swept_over", "write_sweep_plot"]

PLOTS: Final = ("overview.svg", "overview.png")
_METRIC: Final = "aggregate_goodput"
MOST_NAMES: Final = 60
"""More than so many bars nobody can read."""

_INTERVAL: Final = f"{CONFIDENCE * 100:.0f} % interval"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands: on which curve, and where on it; None: by name alone."""

    curve: str
    at: float | None


def write_sweep_plot(folder: Path, summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """``overview.png`` and ``overview.svg``; none where there is nothing to draw.

    Parameters
    ----------
    folder : Path
    summary : Mapping
        The sweep's ``result.json``.
    rows : Sequence[Mapping]
        Of its table.
    """
    with styled():
        figure = sweep_figure(summary, rows)
        if figure is not None:
            save(figure, folder, "overview")


def sweep_figure(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Any | None:
    """The plot; None where there is nothing to draw."""
    over, label = swept_over(summary, rows)
    found = {
        place: [row["value"] / 1e6 for row in same] for place, same in places(summary, rows, _METRIC, over).items()
    }
    if not found or (over is None and len(found) > MOST_NAMES):
        return None
    title = "Throughput" + (", shortened runs" if summary["shortened"] else "")
    figure = _by_name(found) if over is None else _curves(found, label)
    figure.axes[0].set_title(title)
    lay_out(figure)
    return figure


def places(
    summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], metric: str, over: str | None
) -> dict[Place, list[Mapping[str, Any]]]:
    """The rows of a figure of whole runs that can be trusted, by where they stand (``over``: :func:`swept_over`)."""
    found: dict[Place, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["metric"] == metric and not row["flow"] and row["verdict"] != "failed" and row["value"] is not None:
            found.setdefault(_place(row, summary, over), []).append(row)
    return found


def swept_over(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[str | None, str]:
    """The column that goes along the horizontal axis, and its label: the last one of numbers."""
    for axis in reversed(summary["axes"]):
        if axis["at"] is not None and len(axis["at"]) > 1:
            return axis["key"], f"{axis['key']}, {axis['unit']}" if axis["unit"] else axis["key"]
    if len({row["at"] for row in rows if row["at"] is not None}) > 1 and len({row["experiment"] for row in rows}) == 1:
        return "at", summary["axis"] or "case"
    return None, ""


def _place(row: Mapping[str, Any], summary: Mapping[str, Any], over: str | None) -> Place:
    several = len({run["experiment"] for run in summary["runs"]}) > 1
    parts = [row["experiment"]] if several else []
    if over == "at":
        parts += [row["curve"]] if row["curve"] else []
    elif row["case"]:
        parts.append(row["case"])
    at: float | None = row["at"] if over == "at" else None
    for axis in summary["axes"]:
        value = row[axis["key"]]
        if axis["key"] == over:
            at = value if isinstance(value, float) else axis["at"][axis["values"].index(value)]
        else:
            parts.append(
                f"{axis['key'].rpartition('.')[2]} {value:g}" if isinstance(value, float) else value.strip('"')
            )
    return Place(", ".join(parts), at)


def _curves(found: Mapping[Place, Sequence[float]], label: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, 3.6), layout="constrained")
    axis = figure.subplots()
    axis.set_xlabel(label)
    axis.set_ylabel("Mb/s")
    banded = False
    for index, curve in enumerate(dict.fromkeys(place.curve for place in found)):
        style = flow_style(index)
        places = sorted((place.at or 0.0, values) for place, values in found.items() if place.curve == curve)
        means = [mean_of(values) for _, values in places]
        x, y = [at for at, _ in places], [mean.mean for mean in means]
        name = curve or ("mean" if any(mean.count > 1 for mean in means) else "ours")
        axis.plot(x, y, **style, marker="o", markersize=4, zorder=4, label=name)
        if any(mean.half is not None for mean in means):
            low, high = ([mean.mean + sign * (mean.half or 0.0) for mean in means] for sign in (-1, 1))
            label_once = None if banded else _INTERVAL
            axis.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0, zorder=2, label=label_once)
            banded = True
            points = [(at, value) for at, values in places for value in values]
            axis.plot(*zip(*points, strict=True), ".", color=style["color"], alpha=0.55, markersize=4, zorder=3)
    positions = sorted({place.at or 0.0 for place in found})
    if positions[0] > 0 and positions[-1] > 20 * positions[0]:
        axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    return figure


def _by_name(found: Mapping[Place, Sequence[float]]) -> Any:
    """Bars that lie, so that names have room beside them."""
    from matplotlib.figure import Figure

    names = [textwrap.fill(place.curve or "all runs", 34) for place in found]
    lines = sum(1 + name.count("\n") for name in names)
    figure = Figure(figsize=(WIDTH_IN, 1.1 + 0.17 * (lines + 1.2 * len(names))), layout="constrained")
    axis = figure.subplots()
    axis.set_xlabel("Mb/s")
    means = [mean_of(values) for values in found.values()]
    places = range(len(names))
    axis.barh(places, [mean.mean for mean in means], 0.5, color=COLOURS[0], label="mean", zorder=2)
    spread = [(mean.mean, place, mean.half) for place, mean in enumerate(means) if mean.half is not None]
    if spread:
        x, y, half = zip(*spread, strict=True)
        style: Any = {"fmt": "none", "ecolor": "black", "elinewidth": 1.1, "capsize": 3, "zorder": 4}
        axis.errorbar(x, y, xerr=half, label=_INTERVAL, **style)
        points = [(value, place) for place, values in enumerate(found.values()) for value in values]
        axis.plot(*zip(*points, strict=True), ".", color=COLOURS[1], markersize=5, zorder=3, label="a seed")
    axis.set_yticks(places, names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_xlim(left=0)
    axis.grid(visible=False, axis="y")
    return figure
