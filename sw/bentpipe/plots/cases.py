"""The plot over the cases of an experiment: ours beside the published figures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.layout import NARROW, WIDTHS, lay_out, save
from bentpipe.plots.style import COLOURS, MUTED, Style, flow_style, styled
from bentpipe.results.metrics import BEST_TCP_BPS, NOT_COMPARED

__all__ = ["case_figures", "write_cases_plot"]

_PUBLISHED: Final = (("measured", "D", COLOURS[1]), ("predicted", "X", MUTED))


def _mbps(row: dict[str, Any], key: str) -> float | None:
    """A published figure in Mb/s, None if it is none or no rate, or nothing to compare this run with."""
    if row[key] is None or row["metric"] not in ("goodput", "aggregate_goodput", "share"):
        return None
    if NOT_COMPARED.intersection(row["remarks"]):
        return None
    return row[key] * BEST_TCP_BPS / 1e6 if row["metric"] == "share" else row[key]


def write_cases_plot(folder: Path, summary: dict[str, Any]) -> None:
    """``overview.png`` and ``overview.svg``, and the narrow form: each case's throughput, over the axis or by name."""
    with styled():
        for form, figure in case_figures(summary):
            save(figure, folder, f"overview{form}", png=not form)


def case_figures(summary: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The plot in each form (a key of ``WIDTHS``); none if no case has run."""
    if not summary["cases"]:
        return ()
    draw = _by_name if all(case["at"] is None for case in summary["cases"]) else _over_axis
    return ((form, draw(summary, width, form == NARROW)) for form, width in WIDTHS.items())


def _ours(summary: dict[str, Any]) -> str:
    """What our figures are, for the legend."""
    changed = summary["changes"] or any(case["changes"] for case in summary["cases"])
    words = ["ours", *(["shortened"] if summary["shortened"] else []), *(["changed"] if changed else [])]
    return ", ".join(words)


def _by_name(summary: dict[str, Any], width: float, narrow: bool) -> Any:
    """Bars that lie, so that names have room beside them."""
    from matplotlib.figure import Figure

    cases = summary["cases"]
    names = [textwrap.fill(case["name"], 18 if narrow else 34) for case in cases]
    lines = sum(1 + name.count("\n") for name in names)
    figure = Figure(figsize=(width, 0.9 + 0.17 * (lines + 1.2 * len(cases))), layout="constrained")
    axis = figure.subplots()
    axis.set_title("Throughput by case")
    axis.set_xlabel("Mb/s")
    places = range(len(cases))
    axis.barh(places, [_rate(case) for case in cases], 0.5, color=COLOURS[0], label=_ours(summary), zorder=2)
    axis.set_yticks(places, names)
    axis.set_ylim(len(cases) - 0.4, -0.6)
    axis.grid(visible=False, axis="y")
    place = {case["name"]: where for case, where in zip(cases, places, strict=True)}
    for key, marker, colour in _PUBLISHED:
        rows = [(rate, place[row["case"]]) for row in summary["published"] if (rate := _mbps(row, key)) is not None]
        if rows:
            axis.plot(*zip(*rows, strict=True), marker, color=colour, label=f"published, {key}", **_MARKER)
    axis.set_xlim(0, 1.03 * axis.get_xlim()[1])
    lay_out(figure)
    return figure


def _over_axis(summary: dict[str, Any], width: float, narrow: bool) -> Any:
    from matplotlib.figure import Figure

    cases = summary["cases"]
    place = {case["name"]: case["at"] for case in cases if case["at"] is not None}
    places = [*place.values()]
    figure = Figure(figsize=(width, 2.9 if narrow else 3.6), layout="constrained")
    axis = figure.subplots()
    axis.set_title("Throughput by case")
    axis.set_ylabel("Mb/s")
    for index, curve in enumerate(dict.fromkeys(case["curve"] for case in cases)):
        own = [case for case in cases if case["curve"] == curve]
        line = [(case["at"], _rate(case)) for case in own if case["at"] is not None]
        style: Style = flow_style(index) | {"zorder": 3}
        if line:
            axis.plot(*zip(*line, strict=True), label=curve or _ours(summary), marker="o", markersize=4.5, **style)
        for case in own:
            if case["at"] is None:
                axis.axhline(_rate(case), label=case["name"], **{**style, "linestyle": ":"})
    axis.set_xlabel(summary["axis"])
    if min(places) > 0 and max(places) > 20 * min(places):
        axis.set_xscale("log")
        axis.set_xticks(places, [f"{where:g}" for where in places])
        axis.minorticks_off()
    for key, marker, colour in _PUBLISHED:
        rows = [
            (place[row["case"]], rate)
            for row in summary["published"]
            if row["case"] in place and (rate := _mbps(row, key)) is not None
        ]
        if rows:
            axis.plot(*zip(*rows, strict=True), marker, color=colour, label=f"published, {key}", **_MARKER)
    axis.set_ylim(bottom=0)
    _thin_ticks(axis)
    lay_out(figure)
    return figure


_MARKER: Final[Any] = {"linestyle": "none", "markersize": 8, "markeredgecolor": "white", "zorder": 4}


def _rate(case: dict[str, Any]) -> float:
    return case["metrics"]["aggregate_goodput"] / 1e6


def _thin_ticks(axis: Any) -> None:
    """Take away every label on the horizontal axis that would touch the one before."""
    axis.figure.draw_without_rendering()
    right = float("-inf")
    kept = []
    for label, where in zip(axis.get_xticklabels(), axis.get_xticks(), strict=True):
        box = label.get_window_extent()
        if label.get_text() and box.x0 > right + 4:
            kept.append((where, label.get_text()))
            right = box.x1
    axis.set_xticks(*zip(*kept, strict=True))
