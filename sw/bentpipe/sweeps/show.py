"""A sweep on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bentpipe.results.declared import axis_names, figure_in_words, metric_of
from bentpipe.results.folder import CATALOGUE
from bentpipe.results.tables import figure_text, metric_text, print_notes, print_table
from bentpipe.sweeps.summary import LEFT

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "CATALOGUE_COLUMNS",
    "HEADS",
    "PUBLISHED_COLUMNS",
    "SHOWN",
    "catalogue_rows",
    "compared",
    "mean_rows",
    "print_any",
    "print_catalogue",
    "print_sweep",
    "published_rows",
]

SHOWN: Final = ("aggregate_goodput", "sum_of_flow_rates", "fairness", "retransmits", "timeouts", "pdus_lost")
HEADS: Final = {
    "aggregate_goodput": "Mb/s",
    "sum_of_flow_rates": "sum of flows' rates, Mb/s",
    "fairness": "fairness",
    "retransmits": "retransmitted",
    "timeouts": "time-outs",
    "pdus_lost": "PDUs lost",
}


def _with_interval(name: str, figure: Mapping[str, Any] | None) -> str:
    """Return a mean with its interval as ``54.105 ± 0.210``."""
    if figure is None:
        return "-"
    known = metric_of(name)

    def text(value: float) -> str:
        if known is not None and known.count:
            return f"{value:,.{1 if figure['count'] > 1 else 0}f}"
        return metric_text(name, value)

    return text(figure["mean"]) + ("" if figure["half"] is None else f" ± {text(figure['half'])}")


def _together(metrics: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether the sum of the flows' own rates is their rate together."""
    rates = [_with_interval(name, metrics.get(name)) for name in ("aggregate_goodput", "sum_of_flow_rates")]
    return rates[0] == rates[1]


def mean_rows(summary: Mapping[str, Any]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return columns and rows: varied keys, the number of runs, the mean of each figure with its interval."""
    asked = summary.get("metrics") or SHOWN
    shown = [m for m in asked if any(m in entry["metrics"] for entry in summary["means"])]
    if not summary.get("metrics") and all(_together(entry["metrics"]) for entry in summary["means"]):
        shown = [m for m in shown if m != "sum_of_flow_rates"]
    keys = axis_names(summary["axes"])
    cases = any(entry["case"] for entry in summary["means"])
    several = len({entry["experiment"] for entry in summary["means"]}) > 1
    heads = [HEADS.get(m) or figure_in_words(m) for m in shown]
    columns = (*(["experiment"] if several else []), *(["case"] if cases else []), *keys.values(), "runs", *heads)
    rows = []
    for entry in summary["means"]:
        at = [entry["experiment"]] if several else []
        at += [entry["case"]] if cases else []
        at += [f"{entry[key]:g}" if isinstance(entry[key], float) else str(entry[key]) for key in keys]
        count = f"{len(entry['seeds'])}" + (f", {entry['left_out']} failed" if entry["left_out"] else "")
        rows.append([*at, count, *(_with_interval(m, entry["metrics"].get(m)) for m in shown)])
    return columns, rows


PUBLISHED_COLUMNS: Final = (
    "experiment", "quantity", "case", "unit", "measured", "predicted", "ours", "± 95 %", "runs", "ours : measured",
    "source",
)  # fmt: skip


def published_rows(rows: Sequence[Mapping[str, Any]], axes: Sequence[Mapping[str, Any]] = ()) -> list[list[str]]:
    """Return published figures beside the means of ours; ``axes`` are the sweep's, which name the varied settings."""
    names = axis_names(axes)
    table = []
    for row in rows:
        remarks = [*(["predicted"] if row["ratio"] is not None and row["measured"] is None else []), *row["remarks"]]
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        remark = ", ".join(remarks) if row["ours"] is not None else ""
        if remark:
            ratio = remark if row["ratio"] is None else f"{ratio} ({remark})"
        varied = ", ".join(f"{names.get(key, key)} = {value}" for key, value in row["values"].items())
        case = "; ".join(filter(None, (row["case"], varied)))
        figures = [figure_text(row[key]) for key in ("measured", "predicted", "ours", "half")]
        table.append(
            [row["experiment"], row["quantity"], case, row["unit"], *figures, str(row["count"]), ratio, row["source"]]
        )
    return table


def _head(console: Console, summary: Mapping[str, Any]) -> None:
    time = summary["time"]
    console.print(f"[bold]{summary['id']}[/bold]: {summary['title']}", highlight=False)
    done = sum(run["status"] == "done" for run in summary["runs"])
    text = f"{done} of {len(summary['runs'])} runs done, {time['runs_s']:.1f} s of runs in {time['wall_s']:.1f} s"
    if summary["seeds"]:
        text += f"; {len(summary['seeds'])} seed{'s' if len(summary['seeds']) > 1 else ''}"
    console.print(text, highlight=False)
    print_notes(console, dict(summary))
    console.print()


def print_sweep(console: Console, summary: Mapping[str, Any]) -> None:
    """Print means over seeds, published figures beside them, and runs that failed."""
    _head(console, summary)
    columns, rows = mean_rows(summary)
    left = columns.index("runs")
    print_table(console, "Means over seeds" if len(summary["seeds"]) > 1 else "Runs", columns, rows, left)
    _published(console, summary)
    _failed(console, summary)


CATALOGUE_COLUMNS: Final = (
    "experiment", "what it is", "paper", "verdict", "runs", "published", "error, mean", "worst", "expected", "theory",
    "seconds",
)  # fmt: skip
"""The first four are texts."""


def catalogue_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each experiment.

    It has the verdict, the number of compared published figures and their error, the expectations and predictions of
    theory that hold, and the real time of its runs.
    """
    table = []
    for name in dict.fromkeys(run["experiment"] for run in summary["runs"]):
        runs = [run for run in summary["runs"] if run["experiment"] == name]
        counts = {status: sum(run["status"] == status for run in runs) for status in ("failed", LEFT)}
        verdict = [f"{count} {status}" for status, count in counts.items() if count]
        judged = [row["holds"] for run in runs for row in run["expected"] if row["holds"] is not None]
        if not all(judged):
            verdict.append("not as expected")
        if any(run["shortened"] for run in runs):
            verdict.append("shortened")
        theory = [run["theory"] for run in runs if run.get("theory")]
        beside = [row for row in summary["published"] if row["experiment"] == name and row["ours"] is not None]
        ratios = [row["ratio"] for row in beside if row["ratio"] is not None]
        worst = max(ratios, key=lambda ratio: abs(ratio - 1), default=None)
        about = summary.get("experiments", {}).get(name, {})
        table.append(
            [
                name,
                about.get("title", ""),
                ", ".join(filter(None, (about.get("paper"), about.get("figure")))),
                ", ".join(verdict) or "done",
                str(len(runs)),
                f"{len(beside)}" if beside else "-",
                f"{sum(abs(r - 1) for r in ratios) / len(ratios):.1%}" if ratios else "-",
                f"{worst - 1:+.1%}" if worst is not None else "-",
                f"{sum(judged)} of {len(judged)}" if judged else "-",
                f"{sum(t['held'] for t in theory)} of {sum(t['of'] for t in theory)}" if theory else "-",
                f"{sum(run['seconds'] or 0.0 for run in runs):.1f}",
            ]
        )
    return table


def print_any(console: Console, summary: Mapping[str, Any]) -> None:
    """Print a sweep of one experiment, or of the catalogue."""
    (print_catalogue if summary["id"] == CATALOGUE else print_sweep)(console, summary)


def print_catalogue(console: Console, summary: Mapping[str, Any]) -> None:
    """Print a line for each experiment, published figures beside ours, and runs that failed."""
    _head(console, summary)
    shown = [0, *range(3, len(CATALOGUE_COLUMNS))]  # what it is has no room here
    columns, *rows = ([row[k] for k in shown] for row in (CATALOGUE_COLUMNS, *catalogue_rows(summary)))
    print_table(console, "Experiments", columns, rows, 2)
    _published(console, summary)
    _failed(console, summary)


def compared(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the published rows to be shown: beside what is varied only those that compare with the published run."""
    rows = summary["published"]
    if summary["axes"]:
        rows = [row for row in rows if row["ratio"] is not None and "changed" not in row["remarks"]]
    return [*rows]


def _published(console: Console, summary: Mapping[str, Any]) -> None:
    rows = compared(summary)
    if rows:
        console.print()
        print_table(console, "Published figures and ours", PUBLISHED_COLUMNS, published_rows(rows, summary["axes"]), 3)


def _failed(console: Console, summary: Mapping[str, Any]) -> None:
    bad = [run for run in summary["runs"] if run["status"] == "failed"]
    if bad:
        console.print()
        rows = [[run["folder"], str(run["reason"] or "")] for run in bad]
        print_table(console, "Runs that failed", ("run", "why"), rows, 2)
