"""Charts over cases on pages: curves over an axis as data for the page's script, or bars by name."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any, Final

from bentpipe.plots.charts import Chart, Point, mbps, quantity
from bentpipe.plots.style import FEW
from bentpipe.report.html import link
from bentpipe.results.tables import figure_text

__all__ = ["chart_bars", "chart_spec"]

_PUBLISHED: Final = (("measured", "c1", "diamond"), ("predicted", "muted", "cross"))


def chart_spec(chart: Chart) -> dict[str, Any] | None:
    """Return a chart over its axis; None if no case has a place on it."""
    at = {point.case: point.at for point in chart.points if point.at is not None}
    if not at:
        return None
    series: list[dict[str, Any]] = []
    names = [(curve, metric) for metric in chart.metrics for curve in dict.fromkeys(p.curve for p in chart.points)]
    for index, (curve, metric) in enumerate(names):
        own = sorted((p.at, _value(p, metric)) for p in chart.points if p.curve == curve and p.at is not None)
        name = ", ".join(filter(None, (curve, metric.rpartition(".")[0]))) or chart.ours
        line = {"name": name, "style": f"c{index % FEW}:{index // FEW % 4}", "shape": "line", "points": True}
        series.append(line | {"x": [where for where, _ in own], "y": [value for _, value in own]})
    for kind, style, mark in _PUBLISHED:
        marks = sorted((at[m.case], mbps(m.metric, m.value)) for m in chart.marks if m.kind == kind and m.case in at)
        if marks:
            points = {"x": [where for where, _ in marks], "y": [value for _, value in marks]}
            series.append({"name": f"published, {kind}", "style": style, "shape": "rings", "mark": mark} | points)
    bounds = [
        {"name": point.case, "y": value, "always": True}
        for point in chart.points
        if point.at is None and (value := _value(point, chart.metrics[0])) is not None
    ]
    low, high = min(at.values()), max(at.values())
    log = low > 0 and high > 20 * low
    x = {"label": chart.axis, "log": log, "range": _around(low, high, log)}
    label = quantity(chart.metrics)
    marked = [place for _, place in chart.places]
    return {"title": chart.title, "x": x, "y": {"label": label, "least": 0}, "series": series, "bounds": bounds,
            "marks": marked}  # fmt: skip


def _value(point: Point, metric: str) -> float | None:
    value, _ = point.figures.get(metric, (None, None))
    return None if value is None else mbps(metric, value)


def _around(low: float, high: float, log: bool) -> list[float]:
    """Return a little more than from ``low`` to ``high``."""
    if log:
        return [low / 1.2, high * 1.2]
    room = 0.04 * (high - low) or 0.5
    return [0 if 0 <= low < 0.3 * high else low - room, high + room]


def chart_bars(chart: Chart, links: Mapping[str, str]) -> str:
    """Return bars of cases without a place on the axis, each a link; published figures are marks across them.

    Return nothing if there are no such cases.
    """
    points = [point for point in chart.points if point.at is None]
    if not points or len(points) < len(chart.points):
        return ""
    unit = "Mb/s" if quantity(chart.metrics).endswith("(Mb/s)") else ""
    bars = [(point, metric, _value(point, metric)) for point in points for metric in chart.metrics]
    marks = {(m.case, m.metric, m.kind): mbps(m.metric, m.value) for m in chart.marks}
    most = max([*(value or 0 for *_, value in bars), *marks.values()]) or 1
    items = []
    for point, metric, value in bars:
        lines = "".join(
            f'<u class="{kind}" style="left:{100 * theirs / most:.2f}%" '
            f'title="published, {kind}: {theirs:.4g} {unit}"></u>'
            for kind, *_ in _PUBLISHED
            if (theirs := marks.get((point.case, metric, kind))) is not None
        )
        group = html.escape(f", {metric.rpartition('.')[0]}" if len(chart.metrics) > 1 else "")
        items.append(
            f"<li><span>{link(point.case, links[point.case])}{group}</span>"
            f'<span class="bar" aria-hidden="true"><i style="width:{100 * (value or 0) / most:.2f}%"></i>{lines}</span>'
            f'<span class="value">{figure_text(value)} {unit}</span></li>'
        )
    kinds = [kind for kind, *_ in _PUBLISHED if any(each == kind for *_, each in marks)]
    key = "".join(f'<span class="{kind}">published, {kind}</span>' for kind in kinds)
    return (
        f'<ul class="bars">{"".join(items)}</ul><p class="key"><span>{html.escape(chart.ours)}</span>{key}</p>'
        f'<p class="sub">{html.escape(quantity(chart.metrics))}</p>'
    )
