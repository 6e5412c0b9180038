"""The plot over the cases of an experiment: ours beside the published figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bentpipe.plots.charts import Chart, Point, chart_figure, marks_of, rate_of_all
from bentpipe.plots.layout import save
from bentpipe.plots.style import styled
from bentpipe.results.metrics import NOT_COMPARED, set_otherwise

__all__ = ["case_chart", "case_figure", "places_of", "write_cases_plot"]


def write_cases_plot(folder: Path, summary: dict[str, Any]) -> None:
    """Write ``overview.png`` and ``overview.svg``: each case's figures over the axis or by name; none without runs."""
    with styled():
        figure = case_figure(summary)
        if figure is not None:
            save(figure, folder, "overview")


def case_figure(summary: dict[str, Any]) -> Any | None:
    """Return the plot; None if no case has run."""
    return chart_figure(case_chart(summary)) if summary["cases"] else None


def case_chart(summary: dict[str, Any]) -> Chart:
    """Return the chart over the cases; at least one has run."""
    metrics = tuple(summary.get("shows") or (rate_of_all(summary["published"]),))
    rows = [row for row in summary["published"] if not NOT_COMPARED.intersection(row["remarks"])]
    return Chart(
        "Throughput by case",
        summary["axis"],
        metrics,
        tuple(
            Point(case["name"], case["at"], case["curve"], {m: (case["metrics"].get(m), None) for m in metrics})
            for case in summary["cases"]
        ),
        _ours(summary),
        marks_of([row for row in rows if row["case"]], metrics),
        places=places_of(rows, summary["axis"]),
    )


def places_of(rows: Iterable[dict[str, Any]], axis: str) -> tuple[tuple[str, float], ...]:
    """Return the published figures of all cases together that have the axis's unit.

    An example is a buffer read from the knee of a curve over the size of bursts.
    """
    whole = [row for row in rows if not row["case"] and row["measured"] is not None]
    return tuple(
        (f"published: {row['quantity']}", row["measured"]) for row in whole if axis.endswith(f", {row['unit']}")
    )


def _ours(summary: dict[str, Any]) -> str:
    """Return the name of our figures in the legend."""
    changed = any(map(set_otherwise, (summary["changes"], *(case["changes"] for case in summary["cases"]))))
    words = ["ours", *(["shortened"] if summary["shortened"] else []), *(["changed"] if changed else [])]
    return ", ".join(words)
