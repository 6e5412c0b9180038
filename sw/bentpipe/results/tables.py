"""The tables of a run, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "FLOW_COLUMNS",
    "PUBLISHED_COLUMNS",
    "broken_text",
    "drop_rows",
    "figure_text",
    "flow_rows",
    "note_text",
    "print_run",
    "published_rows",
    "time_text",
]

FLOW_COLUMNS = ("flow", "TCP", "delivered", "Mb/s", "segments", "retransmitted", "time-outs", "fast retr.")
PUBLISHED_COLUMNS = ("quantity", "case", "unit", "measured", "predicted", "ours", "ours : measured", "source")


def figure_text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"


def flow_rows(flows: Sequence[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for flow in flows:
        rows.append(
            [
                f"{flow['name']} ({flow['source']} to {flow['sink']})",
                str(flow.get("variant", "")),
                f"{flow['octets_delivered'] / 1e6:,.1f} MB",
                figure_text(flow["goodput_bps"] / 1e6),
                *(f"{flow.get(key, 0):,}" for key in ("segments_sent", "retransmits", "timeouts", "fast_retransmits")),
            ]
        )
    return rows


def published_rows(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    table = []
    for row in rows:
        ratio = "-"
        if row["ratio"] is not None:
            ratio = f"{row['ratio']:.3f}" + ("" if row["measured"] is not None else " (predicted)")
        figures = [figure_text(row[key]) for key in ("measured", "predicted", "ours")]
        table.append([row["quantity"], row["case"], row["unit"], *figures, ratio, row["source"]])
    return table


def drop_rows(drops: dict[str, dict[str, int]]) -> list[list[str]]:
    return [
        [node, reason, f"{cells:,}"] for node, reasons in drops.items() for reason, cells in reasons.items() if cells
    ]


def time_text(summary: dict[str, Any]) -> str:
    time = summary["time"]
    text = f"{time['simulated_s']:.3f} s simulated in {time['wall_s']:.1f} s"
    if time["wall_per_simulated"]:
        text += f" ({1 / time['wall_per_simulated']:.2f} x real time)"
    return text


def note_text(summary: dict[str, Any]) -> str | None:
    """What a reader must know before comparing."""
    if not summary["published"]:
        return None
    if summary["shortened"]:
        return "A shortened run: start-up weighs more than in the published figures; don't compare them."
    if summary["settings"]:
        return f"Settings differ from the published set-up: {', '.join(summary['settings'])}."
    return None


def broken_text(flows: Sequence[dict[str, Any]]) -> str | None:
    """Which connections broke, and why."""
    broken = [f"{flow['name']} ({flow['error']})" for flow in flows if flow.get("error")]
    return f"Connections that broke: {', '.join(broken)}." if broken else None


def print_run(console: Console, summary: dict[str, Any], flows: Sequence[dict[str, Any]]) -> None:
    """Flows, drops, and published figures beside ours."""
    from rich.table import Table

    def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> None:
        made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for index, name in enumerate(columns):
            last = name == "source"
            made.add_column(name, justify="left" if index < left or last else "right", overflow="fold")
        for row in rows:
            made.add_row(*row)
        console.print(made)

    console.print(f"[bold]{summary['id']}[/bold]: {summary['title']}", highlight=False)
    console.print(f"{time_text(summary)}, seed {summary['seed']}", highlight=False)
    console.print()
    table("Flows", FLOW_COLUMNS, flow_rows(flows), 2)
    total = summary["metrics"]
    if len(flows) > 1:
        text = f"all {len(flows)}: {figure_text(total['aggregate_goodput'] / 1e6)} Mb/s"
        if total["fairness"] is not None:
            text += f", fairness {total['fairness']:.3f}"
        console.print(text, highlight=False)
    broken = broken_text(flows)
    if broken:
        console.print(broken, style="red", highlight=False)
    console.print()
    drops = drop_rows(summary["drops"])
    if drops:
        table("Cells dropped", ("node", "reason", "cells"), drops, 2)
    else:
        console.print("No cell was dropped.")
    if summary["published"]:
        console.print()
        table("Published figures and ours", PUBLISHED_COLUMNS, published_rows(summary["published"]), 3)
        note = note_text(summary)
        if note:
            console.print(note, style="yellow", highlight=False)
