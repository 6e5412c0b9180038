"""The plot over the cases of an experiment: ours beside the published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bentpipe.plots.style import COLOURS, MUTED, styled
from bentpipe.results.metrics import BEST_TCP_BPS

__all__ = ["write_cases_plot"]


def _mbps(row: dict[str, Any], key: str) -> float | None:
    """A published figure in Mb/s, None if it is none or no rate."""
    if row[key] is None or row["metric"] not in ("goodput", "aggregate_goodput", "share"):
        return None
    return row[key] * BEST_TCP_BPS / 1e6 if row["metric"] == "share" else row[key]


def write_cases_plot(folder: Path, summary: dict[str, Any]) -> None:
    """``overview.png`` and ``overview.svg``: the throughput of each case, over the axis or by name."""
    from matplotlib.figure import Figure

    cases = summary["cases"]
    numeric = cases[0]["at"] is not None
    places = [case["at"] if numeric else index for index, case in enumerate(cases)]
    place = {case["name"]: where for case, where in zip(cases, places, strict=True)}
    with styled():
        figure = Figure(figsize=(8.4, 3.8), layout="constrained")
        axis = figure.subplots()
        axis.set_title("Throughput by case")
        axis.set_ylabel("Mb/s")
        ours = [case["metrics"]["aggregate_goodput"] / 1e6 for case in cases]
        if numeric:
            axis.plot(places, ours, "o-", color=COLOURS[0], markersize=4.5, label="ours", zorder=3)
            axis.set_xlabel(summary["axis"])
            positive = [where for where in places if where > 0]
            if len(positive) == len(places) and max(places) > 20 * min(places):
                axis.set_xscale("log")
                axis.set_xticks(places, [f"{where:g}" for where in places])
                axis.minorticks_off()
        else:
            axis.bar(places, ours, 0.5, color=COLOURS[0], label="ours", zorder=2)
            axis.set_xticks(places, [case["name"] for case in cases])
            axis.set_xlim(-0.6, len(cases) - 0.4)
        for key, marker, colour in (("measured", "D", COLOURS[1]), ("predicted", "x", MUTED)):
            rows = [(place[row["case"]], rate) for row in summary["published"] if (rate := _mbps(row, key)) is not None]
            if rows:
                axis.plot(
                    [where for where, _ in rows],
                    [rate for _, rate in rows],
                    marker,
                    color=colour,
                    linestyle="none",
                    markersize=6,
                    label=f"published, {key}",
                    zorder=4,
                )
        axis.set_ylim(bottom=0)
        axis.legend(loc="lower right", bbox_to_anchor=(1.0, 0.985), ncols=3, borderaxespad=0.2)
        figure.savefig(folder / "overview.png", metadata={"Software": "bentpipe"})
        figure.savefig(folder / "overview.svg", metadata={"Date": None})
