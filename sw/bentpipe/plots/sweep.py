"""The plot of a sweep: figures over what is varied, each seed a point, the mean with its 95 % interval as a band."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.layout import WIDTH_IN, lay_out, note, save
from bentpipe.plots.style import COLOURS, flow_style, styled
from bentpipe.results.declared import in_words, label_of, metric_name, metric_of, owner_in_words, scale_of
from bentpipe.results.statistics import CONFIDENCE, mean_of

__all__ = [
    "MOST_NAMES",
    "PLOTS",
    "Place",
    "asked_figures",
    "places",
    "places_of_figure",
    "sweep_figure",
    "swept_over",
    "write_sweep_plot",
]

PLOTS: Final = ("overview.svg", "overview.png", "overview.pdf")
_METRIC: Final = "aggregate_goodput"
MOST_NAMES: Final = 60
"""More than so many bars nobody can read."""

_MOST_TICKS: Final = 12
"""Up to so many places along the axis each have a tick."""

_INTERVAL: Final = f"{CONFIDENCE * 100:.0f} % interval"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a run in the plot: its curve, and its place on it; None for the latter: bars by name."""

    curve: str
    at: float | None


def write_sweep_plot(folder: Path, summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write ``overview.png``, ``.svg`` and ``.pdf``; none if there is nothing to draw.

    Parameters
    ----------
    folder : Path
    summary : Mapping
        The sweep's ``result.json``.
    rows : Sequence[Mapping]
        Rows of its table.
    """
    with styled():
        figure = sweep_figure(summary, rows)
        if figure is not None:
            save(figure, folder, "overview", pdf=True)


def asked_figures(summary: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the figures to draw: those that the sweep was asked for, of one kind together; unless any were, the
    throughput."""
    found: dict[str, list[str]] = {}
    for name in summary.get("metrics") or [_METRIC]:
        found.setdefault(name.rpartition(".")[2], []).append(name)
    return found


def sweep_figure(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Any | None:
    """Return the plot, a panel for each kind of figure; None where there is nothing to draw."""
    from matplotlib.figure import Figure

    over, label = swept_over(summary, rows)
    panels: list[tuple[str, dict[Place, list[float]]]] = []
    for kind, names in asked_figures(summary).items():
        found = {
            place: [row["value"] / scale_of(kind)[1] for row in same]
            for place, same in places_of_figure(summary, rows, names, over).items()
        }
        if found and (over is not None or len(found) <= MOST_NAMES):
            panels.append((kind, found))
    if not panels:
        return None
    heights = [3.6 if over is not None else _bars_height(found) for _, found in panels]
    figure = Figure(figsize=(WIDTH_IN, sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, (kind, found) in zip(axes, panels, strict=True):
        title = in_words(kind).capitalize() if kind != _METRIC else "Throughput"
        axis.set_title(title + (", shortened runs" if summary["shortened"] else ""))
        if over is None:
            _by_name(axis, found, kind)
        else:
            _curves(axis, found, kind, label)
    lay_out(figure)
    return figure


def places_of_figure(
    summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], names: Sequence[str], over: str | None
) -> dict[Place, list[Mapping[str, Any]]]:
    """Return the rows of figures of one kind by their place; with several, each figure's object names its curve."""
    found: dict[Place, list[Mapping[str, Any]]] = {}
    for name in names:
        owner = (owner_in_words(name) or "whole run") if len(names) > 1 else ""
        for place, same in places(summary, rows, name, over).items():
            found[Place(", ".join(filter(None, (owner, place.curve))), place.at)] = same
    return found


def places(
    summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], metric: str, over: str | None
) -> dict[Place, list[Mapping[str, Any]]]:
    """Return the rows of a figure that can be trusted, by their place (``over``: :func:`swept_over`)."""
    found: dict[Place, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["value"] is not None and row["verdict"] != "failed" and metric_name(row) == metric:
            found.setdefault(_place(row, summary, over), []).append(row)
    return found


def swept_over(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[str | None, str]:
    """Return the column that goes along the horizontal axis, and its label: the last one of numbers."""
    for axis in reversed(summary["axes"]):
        if axis["at"] is not None and len(axis["at"]) > 1:
            plain = f"{axis['key']}, {axis['unit']}" if axis["unit"] else axis["key"]
            return axis["key"], axis.get("words") or plain
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


def _curves(axis: Any, found: Mapping[Place, Sequence[float]], kind: str, label: str) -> None:
    axis.set_xlabel(label)
    axis.set_ylabel(_unit_label(kind))
    every = [value for values in found.values() for value in values]
    log = _logarithmic(kind, every)
    least = min(value for value in every if value > 0) / 3 if log else 0.0  # where the axis begins
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
            low = [max(value, least / 10) for value in low] if log else low
            label_once = None if banded else _INTERVAL
            axis.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0, zorder=2, label=label_once)
            banded = True
            points = [(at, value) for at, values in places for value in values]
            axis.plot(*zip(*points, strict=True), ".", color=style["color"], alpha=0.55, markersize=4, zorder=3)
    positions = sorted({place.at or 0.0 for place in found})
    if positions[0] > 0 and positions[-1] > 20 * positions[0]:
        axis.set_xscale("log")
    if len(positions) <= _MOST_TICKS:
        axis.set_xticks(positions, [f"{at:g}" for at in positions])
        axis.set_xticks([], minor=True)
    if log:
        axis.set_yscale("log")
        none = sum(value <= 0 for value in every)
        if none:
            note(axis, f"{none} values of 0 have no place on this axis.")
    axis.set_ylim(bottom=least)


def _logarithmic(kind: str, values: Sequence[float]) -> bool:
    """Return whether a figure is drawn on a logarithmic axis: a ratio that is not 0 everywhere."""
    known = metric_of(kind)
    return known is not None and known.ratio and any(value > 0 for value in values)


def _unit_label(kind: str) -> str:
    return scale_of(kind)[0] or label_of(kind)


def _bars_height(found: Mapping[Place, Sequence[float]]) -> float:
    names = [_bar_name(place) for place in found]
    lines = sum(1 + name.count("\n") for name in names)
    return 1.1 + 0.17 * (lines + 1.2 * len(names))


def _bar_name(place: Place) -> str:
    return textwrap.fill(place.curve or "all runs", 34)


def _by_name(axis: Any, found: Mapping[Place, Sequence[float]], kind: str) -> None:
    """Draw horizontal bars, so that names have room beside them."""
    names = [_bar_name(place) for place in found]
    axis.set_xlabel(_unit_label(kind))
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
