"""The plots of a comparison: charts over cases with published marks and intervals, and single runs over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bentpipe.compare.rows import pairs_of
from bentpipe.compare.sides import Run, SeedGroup, Side
from bentpipe.experiment.document.catalogue import read_document
from bentpipe.plots.cases import places_of
from bentpipe.plots.charts import Chart, Level, Point, chart_figure, marks_of, rate_of_all
from bentpipe.plots.layout import draw_panels, save
from bentpipe.plots.series import rates, thin
from bentpipe.plots.style import flow_style, styled
from bentpipe.results.folder import read_run
from bentpipe.results.metrics import NOT_COMPARED
from bentpipe.results.statistics import mean_of

__all__ = ["draw_beside", "draw_published"]

_LEVELS: Final = Path(__file__).resolve().parent.parent / "catalogue" / "published" / "levels.toml"
_TOGETHER: Final = "aggregate_goodput"


def draw_published(side: Side, folder: Path) -> list[str]:
    """Draw a chart for each experiment with cases, named after it, as SVG and PNG; return the files' names without
    endings.

    Runs with changed settings are not in it.
    """
    best = side.plain()
    plain = [group for group in side.groups if best.get((group.first.id, group.first.case)) is group]
    charts = {}
    for name in dict.fromkeys(group.first.id for group in plain):
        own = [group for group in plain if group.first.id == name]
        if any(group.first.case for group in own):
            charts[name] = _chart(own, side, plain)
    return _write(charts, folder)


def draw_beside(ours: Side, theirs: Side, folder: Path) -> list[str]:
    """Return a chart over the cases that both have, or where there are none the first runs over time."""
    pairs = pairs_of(ours, theirs)
    if all(one.first.case for one, _ in pairs) and len(pairs) > 1:
        points = [
            _point(group, (_TOGETHER,), ", ".join(filter(None, (side.name, _of(group, "curve") or ""))))
            for side, index in ((ours, 0), (theirs, 1))
            for group in (pair[index] for pair in pairs)
        ]
        if points[0].at is None:  # bars: a pair of them for each case
            points = [Point(f"{point.case}: {point.curve}", None, "", point.figures) for point in _by_turns(points)]
        title = f"{ours.name} beside {theirs.name}"
        return _write({"overlay": Chart(title, _axis(pairs[0][0]), (_TOGETHER,), tuple(points))}, folder)
    runs = [(side.name, group.first) for side, group in zip((ours, theirs), pairs[0], strict=True)]
    with styled():
        figure = _over_time(runs)
        if figure is None:
            return []
        save(figure, folder, "overlay")
    return ["overlay"]


def _by_turns(points: Sequence[Point]) -> list[Point]:
    half = len(points) // 2
    return [point for pair in zip(points[:half], points[half:], strict=True) for point in pair]


def _write(charts: dict[str, Chart], folder: Path) -> list[str]:
    written = []
    with styled():
        for name, chart in charts.items():
            save(chart_figure(chart), folder, name)
            written.append(name)
    return written


def _of(group: SeedGroup, key: str) -> Any:
    return (group.first.summary["case"] or {}).get(key)


def _axis(group: SeedGroup) -> str:
    return group.first.summary["resolved"].get("axis", "")


def _point(group: SeedGroup, metrics: Sequence[str], curve: str) -> Point:
    figures = {}
    for metric in metrics:
        values = group.values(metric)
        mean = mean_of(values) if values else None
        figures[metric] = (mean.mean, mean.half) if mean else (None, None)
    return Point(group.first.case, _of(group, "at"), curve, figures)


def _chart(own: Sequence[SeedGroup], side: Side, plain: Sequence[SeedGroup]) -> Chart:
    first = own[0].first
    published = [row for group in own for row in group.first.summary["published"]]
    shows = first.summary["configuration"]["experiment"].get("shows") or [rate_of_all(published)]
    metrics = tuple(shows)
    rows = [row for group in own for row in group.first.summary["published"] if not NOT_COMPARED & group.first.remarks]
    over = [same[0] for same in side.over_cases if same[0].summary["id"] == first.id]
    whole = [dict(row) for each in over for row in each.rows]
    seeds = min(len(group.runs) for group in own)
    ours = f"ours, {seeds} seeds" if seeds > 1 else "ours"
    if any("shortened" in group.remarks for group in own):
        ours += ", shortened"
    return Chart(
        first.summary["title"],
        _axis(own[0]),
        metrics,
        tuple(_point(group, metrics, _of(group, "curve") or "") for group in own),
        ours,
        marks_of(rows, metrics),
        _levels(first.id, plain, metrics[0]),
        places_of(whole, _axis(own[0])),
    )


def _levels(name: str, groups: Sequence[SeedGroup], metric: str) -> tuple[Level, ...]:
    found = []
    for table in read_document(_LEVELS)[0]["level"]:
        group = next((g for g in groups if table["chart"] == name and g.first.id == table["experiment"]), None)
        if group is not None:
            mean = mean_of(group.values(metric))
            found.append(Level(table["name"], table["curve"], mean.mean, mean.half))
    return tuple(found)


def _over_time(runs: Sequence[tuple[str, Run]]) -> Any | None:
    """Return a figure of all sinks' throughput, and of the congestion window if there is one flow; None without
    records."""
    read = [(name, read_run(run.folder)) for name, run in runs]

    def delivered(trace: Any) -> list[Any]:
        return [series for name, series in trace.series.items() if name.endswith(".delivered")]

    def throughput(axis: Any) -> None:
        axis.set_title("Throughput at the sinks")
        axis.set_ylabel("Mb/s")
        for index, (name, result) in enumerate(read):
            parts = [rates(*series, bins=120) for series in delivered(result.trace)]
            if parts:
                longest = max(parts, key=lambda part: len(part[0]))[0]
                sums = [sum(part[1][n] for part in parts if n < len(part[1])) for n in range(len(longest))]
                axis.plot(longest, sums, label=name, **flow_style(index))
        axis.set_ylim(bottom=0)

    windows = [[series for key, series in result.trace.series.items() if key.endswith(".cwnd")] for _, result in read]

    def window(axis: Any) -> None:
        axis.set_title("Congestion window")
        axis.set_ylabel("kB")
        for index, ((name, _), (series,)) in enumerate(zip(read, windows, strict=True)):
            when, what = thin(*series)
            end_s = read[index][1].summary["time"]["simulated_s"]  # a window is sampled when it changes
            kb = [value / 1e3 for value in (*what, what[-1])]
            axis.plot([*when, end_s], kb, drawstyle="steps-post", label=name, **flow_style(index))
        axis.set_ylim(bottom=0)

    panels = [throughput] if any(delivered(result.trace) for _, result in read) else []
    panels += [window] if all(len(each) == 1 for each in windows) else []
    if not panels:
        return None
    end_s = max(result.summary["time"]["simulated_s"] for _, result in read)
    return draw_panels(panels, end_s)
