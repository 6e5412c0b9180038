"""Charts over the cases of an experiment, as papers have them: curves over an axis, or bars by name; published figures
as marks beside ours, intervals over seeds as bars."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bentpipe.plots.layout import WIDTH_IN, lay_out
from bentpipe.plots.style import COLOURS, DARK, MUTED, Style, flow_style
from bentpipe.results.metrics import BEST_TCP_BPS

__all__ = ["Chart", "Level", "Mark", "Point", "chart_figure", "marks_of", "mbps", "quantity", "rate_of_all"]

_PUBLISHED: Final = (("measured", "D", COLOURS[1]), ("predicted", "X", MUTED))
_MARKER: Final[Any] = {"linestyle": "none", "markersize": 8, "markeredgecolor": "white", "zorder": 4}
_ERROR: Final[Any] = {"capsize": 3, "elinewidth": 1.0, "capthick": 1.0}

_QUANTITIES: Final = {
    "aggregate_goodput": "aggregate throughput (Mb/s)",
    "sum_of_flow_rates": "sum of the flows' rates (Mb/s)",
    "goodput": "throughput (Mb/s)",
    "sigma": "standard deviation (Mb/s)",
    "fairness": "fairness index",
    "share": "share of 134.5 Mb/s",
    "efficiency": "efficiency",
    "carried": "share of datagrams carried",
}


_TOGETHER: Final = ("aggregate_goodput", "sum_of_flow_rates")
"""Rates of all flows."""


def rate_of_all(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the name of the rate of all flows in a chart: the one that published rows are compared with, else that
    over the common time."""
    found = {row["metric"] for row in rows}
    return "sum_of_flow_rates" if "sum_of_flow_rates" in found else "aggregate_goodput"


@dataclass(frozen=True, slots=True)
class Point:
    """A case: its figures by name in base units, each with half the width of its interval (None of one run)."""

    case: str
    at: float | None
    curve: str
    figures: Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class Mark:
    """A published figure of a case, in base units: ``kind`` is "measured" or "predicted"."""

    case: str
    metric: str
    kind: str
    value: float


@dataclass(frozen=True, slots=True)
class Level:
    """A line across a chart: another experiment's figure, beside the curve of which it has the colour."""

    name: str
    curve: str
    value: float
    half: float | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart over the cases of an experiment.

    Members
    -------
    title : str
    axis : str
        Quantity of the cases' places on the axis, with the unit.
    metrics : tuple[str, ...]
        Names of the figures shown, all of one quantity.
    points : tuple[Point, ...]
        At least one. If one of them has no place, the chart has bars.
    ours : str
        Name of our figures in the legend.
    marks, levels, places
        Published figures, lines across, and published places on the axis, each with its name.
    """

    title: str
    axis: str
    metrics: tuple[str, ...]
    points: tuple[Point, ...]
    ours: str = "ours"
    marks: tuple[Mark, ...] = ()
    levels: tuple[Level, ...] = ()
    places: tuple[tuple[str, float], ...] = field(default=())


def quantity(metrics: Sequence[str]) -> str:
    """Return the label of the axis that has these figures, with the unit."""
    return _QUANTITIES.get(metrics[0].rpartition(".")[2], metrics[0])


def mbps(metric: str, value: float) -> float:
    """Return a figure in base units in that of its axis."""
    return value / 1e6 if quantity([metric]).endswith("(Mb/s)") else value


def chart_figure(chart: Chart) -> Any:
    """Return the chart as a figure."""
    return _bars(chart) if all(point.at is None for point in chart.points) else _curves(chart)


def _bars(chart: Chart) -> Any:
    """Return horizontal bars, so that names have room beside them.

    Several figures of a case are below each other.
    """
    from matplotlib.figure import Figure

    several = len(chart.metrics) > 1
    names = [textwrap.fill(point.case, 34) for point in chart.points]
    lines = sum(max(1 + name.count("\n"), len(chart.metrics)) for name in names)
    figure = Figure(figsize=(WIDTH_IN, 0.9 + 0.17 * (lines + 1.2 * len(names))), layout="constrained")
    axis = figure.subplots()
    axis.set_title(chart.title)
    axis.set_xlabel(quantity(chart.metrics))
    height = 0.62 / len(chart.metrics) if several else 0.5
    where: dict[tuple[str, str], float] = {}
    for index, metric in enumerate(chart.metrics):
        places = [n + (index - (len(chart.metrics) - 1) / 2) * height for n in range(len(names))]
        where |= {(point.case, metric): place for point, place in zip(chart.points, places, strict=True)}
        values = [_value(point, metric) for point in chart.points]
        label = metric.rpartition(".")[0] if several else chart.ours
        colour = COLOURS[(index if index < 1 else index + 1) % len(COLOURS)]  # the second is that of what was measured
        axis.barh(places, [v or 0.0 for v, _ in values], 0.9 * height, color=colour, label=label, zorder=2)
        halves = [(v, place, half) for (v, half), place in zip(values, places, strict=True) if half is not None]
        if halves:
            at, on, wide = zip(*halves, strict=True)
            axis.errorbar(at, on, xerr=wide, fmt="none", ecolor=DARK, zorder=3, **_ERROR)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(visible=False, axis="y")
    for kind, marker, colour in _PUBLISHED:
        rows = [
            (mbps(mark.metric, mark.value), where[mark.case, mark.metric])
            for mark in chart.marks
            if mark.kind == kind and (mark.case, mark.metric) in where
        ]
        if rows:
            axis.plot(*zip(*rows, strict=True), marker, color=colour, label=f"published, {kind}", **_MARKER)
    axis.set_xlim(0, 1.03 * axis.get_xlim()[1])
    lay_out(figure)
    return figure


def _curves(chart: Chart) -> Any:
    """Return lines over the axis, each in one colour with the published figures beside it."""
    from matplotlib.figure import Figure

    places = sorted({point.at for point in chart.points if point.at is not None})
    at = {point.case: point.at for point in chart.points if point.at is not None}
    figure = Figure(figsize=(WIDTH_IN, 3.6), layout="constrained")
    axis = figure.subplots()
    axis.set_title(chart.title)
    axis.set_xlabel(chart.axis)
    axis.set_ylabel(quantity(chart.metrics))
    curves = [(curve, metric) for metric in chart.metrics for curve in _names(chart.points)]
    colours: dict[tuple[str, str], str] = {}
    for index, (curve, metric) in enumerate(curves):
        style: Style = flow_style(index) | {"zorder": 3}
        colours[curve, metric] = style["color"]
        own = [point for point in chart.points if point.curve == curve]
        name = ", ".join(filter(None, (curve, metric.rpartition(".")[0]))) or chart.ours
        _line(axis, own, metric, name, style)
        for point in own:
            value, _ = _value(point, metric)
            if point.at is None and value is not None:
                axis.axhline(value, label=point.case, **{**style, "linestyle": ":"})
        for level in chart.levels:
            if level.curve == curve:
                height = mbps(metric, level.value)
                axis.axhline(height, label=level.name, **{**style, "linestyle": ":"})
                if level.half is not None:
                    wide = mbps(metric, level.half)
                    axis.axhspan(height - wide, height + wide, color=style["color"], alpha=0.12, linewidth=0)
    if places[0] > 0 and places[-1] > 20 * places[0]:
        axis.set_xscale("log")
        axis.set_xticks(places, [f"{where:g}" for where in places])
        axis.minorticks_off()
    curve_of = {point.case: point.curve for point in chart.points}
    for kind, marker, alone in _PUBLISHED:
        marks = [m for m in chart.marks if m.kind == kind and m.case in at and m.metric in chart.metrics]
        for mark in marks:
            colour = alone if len(curves) == 1 else colours[curve_of[mark.case], mark.metric]
            axis.plot([at[mark.case]], [mbps(mark.metric, mark.value)], marker, color=colour, **_edged(len(curves) > 1))
        if marks:
            colour = alone if len(curves) == 1 else MUTED
            axis.plot([], [], marker, color=colour, label=f"published, {kind}", **_edged(len(curves) > 1))
    for name, where in chart.places:
        axis.axvline(where, color=DARK, linewidth=1.0, linestyle=(0, (2, 2)), label=name, zorder=1)
    axis.set_ylim(bottom=0)
    _thin_ticks(axis)
    lay_out(figure)
    return figure


def _edged(dark: bool) -> dict[str, Any]:
    """Return the style of a mark; ``dark``: with a dark edge, which tells it from the points of a curve of its
    colour."""
    return {**_MARKER, "markeredgecolor": "black"} if dark else _MARKER


def _names(points: Sequence[Point]) -> list[str]:
    return [*dict.fromkeys(point.curve for point in points)]


def _value(point: Point, metric: str) -> tuple[float | None, float | None]:
    value, half = point.figures.get(metric, (None, None))
    return tuple(None if each is None else mbps(metric, each) for each in (value, half))  # pyright: ignore[reportReturnType]


def _line(axis: Any, points: Sequence[Point], metric: str, name: str, style: Style) -> None:
    """Draw a curve, with its intervals if there are any."""
    rows = [(point.at, *_value(point, metric)) for point in points if point.at is not None]
    line = sorted((where, value) for where, value, _ in rows if value is not None)
    if line:
        axis.plot(*zip(*line, strict=True), label=name, marker="o", markersize=4.5, **style)
    halves = [(where, value, half) for where, value, half in rows if value is not None and half is not None]
    if halves:
        where, value, half = zip(*halves, strict=True)
        axis.errorbar(where, value, yerr=half, fmt="none", ecolor=style["color"], zorder=3, **_ERROR)


def _thin_ticks(axis: Any) -> None:
    """Take away every label on the horizontal axis that would touch the one before, and those beyond its ends."""
    axis.figure.draw_without_rendering()
    right = float("-inf")
    low, high = axis.get_xlim()  # ticks beyond them, once set, would widen the axis
    kept = []
    for label, where in zip(axis.get_xticklabels(), axis.get_xticks(), strict=True):
        box = label.get_window_extent()
        if low <= where <= high and label.get_text() and box.x0 > right + 4:
            kept.append((where, label.get_text()))
            right = box.x1
    axis.set_xticks(*zip(*kept, strict=True))


def marks_of(rows: Iterable[Mapping[str, Any]], metrics: Sequence[str]) -> tuple[Mark, ...]:
    """Return published rates and shares as marks, where the chart shows such figures.

    A share of the line's rate is drawn beside the aggregate throughput, of which it is a share; so is a throughput of
    one flow alone.
    """
    found = []
    together = next((name for name in _TOGETHER if name in metrics), _TOGETHER[0])
    for row in rows:
        for kind, *_ in _PUBLISHED:
            metric, value = row["metric"], row[kind]
            if value is None or not metric:
                continue
            if quantity([metric]).endswith("(Mb/s)"):
                value *= 1e6
            if metric == "share" and "share" not in metrics:
                metric, value = together, value * BEST_TCP_BPS
            if metric == "goodput" and "goodput" not in metrics:
                metric = together
            found.append(Mark(row["case"], metric, kind, value))
    return tuple(found)
