"""The result of an experiment with cases: a run folder for each case, and above them the whole beside the published
figures."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.results.report import STYLE, html_table
from bentpipe.results.schema import SCHEMA_VERSION
from bentpipe.results.tables import PUBLISHED_COLUMNS, figure_text, print_table, published_rows

if TYPE_CHECKING:
    from rich.console import Console

    from bentpipe.experiment.schema import Experiment

__all__ = ["CASE_COLUMNS", "case_folder", "case_rows", "cases_html", "make_cases_report", "print_cases", "sum_up_cases"]

CASE_COLUMNS: Final = ("case", "Mb/s", "fairness", "retransmitted", "time-outs", "cells dropped", "simulated", "status")


def case_folder(name: str) -> str:
    """The name of a case's folder: its own in lower case, everything but letters and digits as ``-``."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") or "case"


def sum_up_cases(experiment: Experiment, summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What ``result.json`` above the cases' folders says: the cases, each with its figures, and the published rows.

    Parameters
    ----------
    experiment : Experiment
        Any of the cases.
    summaries : Sequence[dict]
        Of the runs so far, in the order of the cases.
    """
    order = ("failed", "interrupted", "done")
    states = [s["status"] for s in summaries]
    return {
        "schema": SCHEMA_VERSION,
        "kind": "cases",
        "id": experiment.id,
        "title": experiment.title,
        "paper": experiment.paper,
        "figure": experiment.figure,
        "description": experiment.description,
        "status": min(states, key=order.index),
        "reason": next((f"{s['case']['name']}: {s['reason']}" for s in summaries if s["reason"]), None),
        "shortened": any(s["shortened"] for s in summaries),
        "settings": summaries[0]["settings"],
        "seed": experiment.seed,
        "axis": experiment.axis,
        "versions": summaries[0]["versions"],
        "cases": [
            {
                **s["case"],
                "folder": case_folder(s["case"]["name"]),
                "status": s["status"],
                "time": s["time"],
                "metrics": s["metrics"],
                "retransmits": sum(flow.get("retransmits", 0) for flow in s["flows"]),
                "timeouts": sum(flow.get("timeouts", 0) for flow in s["flows"]),
                "drops": sum(sum(reasons.values()) for reasons in s["drops"].values()),
            }
            for s in summaries
        ],
        "published": [row for s in summaries for row in s["published"]],
    }


def case_rows(summary: dict[str, Any]) -> list[list[str]]:
    return [
        [
            case["name"],
            figure_text(case["metrics"]["aggregate_goodput"] / 1e6),
            figure_text(case["metrics"]["fairness"]),
            f"{case['retransmits']:,}",
            f"{case['timeouts']:,}",
            f"{case['drops']:,}",
            f"{case['time']['simulated_s']:.1f} s",
            case["status"],
        ]
        for case in summary["cases"]
    ]


def _note(summary: dict[str, Any]) -> str | None:
    if not summary["published"]:
        return None
    if summary["shortened"]:
        return "Shortened runs: start-up weighs more than in the published figures; don't compare them."
    if summary["settings"]:
        return f"Settings differ from the published set-up: {', '.join(summary['settings'])}."
    return None


def print_cases(console: Console, summary: dict[str, Any]) -> None:
    """The cases, and the published figures beside ours."""
    console.print(f"[bold]{summary['id']}[/bold]: {summary['title']}", highlight=False)
    console.print()
    print_table(console, "Cases", CASE_COLUMNS, case_rows(summary), 1)
    if summary["published"]:
        console.print()
        print_table(console, "Published figures and ours", PUBLISHED_COLUMNS, published_rows(summary["published"]), 3)
        note = _note(summary)
        if note:
            console.print(note, style="yellow", highlight=False)


def make_cases_report(folder: Path, summary: dict[str, Any]) -> None:
    """The plot over the cases and the report, into a folder."""
    from bentpipe.plots.cases import write_cases_plot

    write_cases_plot(folder, summary)
    picture = (folder / "overview.svg").read_text(encoding="utf-8")
    (folder / "report.html").write_text(cases_html(summary, picture), encoding="utf-8")


def cases_html(summary: dict[str, Any], overview_svg: str) -> str:
    """The page above the cases' own reports."""
    s = summary
    source = ", ".join(filter(None, (s["paper"], s["figure"])))
    line = "; ".join(filter(None, (s["id"], source, f"seed {s['seed']}")))
    parts = [
        f"<h1>{html.escape(s['title'])}</h1>",
        f'<p class="sub">{html.escape(line)}</p>',
    ]
    if s["status"] != "done":
        parts.append(f'<p class="bad">{html.escape(s["status"])}: {html.escape(s["reason"] or "Ctrl-C")}</p>')
    if s["description"]:
        parts.append(f"<p>{html.escape(s['description'])}</p>")
    if s["published"]:
        parts.append("<h2>Published figures and ours</h2>")
        note = _note(s)
        if note:
            parts.append(f'<p class="note">{html.escape(note)}</p>')
        parts.append(html_table(PUBLISHED_COLUMNS, published_rows(s["published"]), 3, "ours"))
    parts += ["<h2>Cases</h2>", overview_svg[overview_svg.index("<svg") :]]
    parts.append(html_table(CASE_COLUMNS, case_rows(s), 1))
    links = ", ".join(f'<a href="{c["folder"]}/report.html">{html.escape(c["name"])}</a>' for c in s["cases"])
    parts.append(f"<p>Each case's own report: {links}.</p>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(s['id'])}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )
