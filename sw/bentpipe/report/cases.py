"""The result of an experiment with cases: a run folder for each case, and above them the whole beside the published
figures."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.plots.cases import case_chart
from bentpipe.report.charts import chart_bars, chart_spec
from bentpipe.report.html import command, link, page, section, table
from bentpipe.report.repeat import repeat_command
from bentpipe.report.run import expected_html, page_head
from bentpipe.report.verdict import several_verdict
from bentpipe.results.folder import case_folder
from bentpipe.results.knees import over_cases
from bentpipe.results.metrics import cells_dropped, compare, pdus_lost, set_otherwise
from bentpipe.results.tables import (
    EXPECTED_COLUMNS,
    PUBLISHED_COLUMNS,
    RARE_COLUMNS,
    THEORY_COLUMNS,
    change_text,
    expected_rows,
    figure_text,
    print_notes,
    print_table,
    published_rows,
    rare_rows,
    theory_rows,
)

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "case_table",
    "cases_html",
    "make_cases_report",
    "print_cases",
    "sum_up_cases",
]

_COLUMNS: Final = (
    "case",
    "Mb/s",
    "sum of flows' rates",
    "efficiency",
    "fairness",
    "retransmitted",
    "time-outs",
    "PDUs lost",
    "cells dropped",
    "simulated",
    "status",
)
_SUM: Final = _COLUMNS.index("sum of flows' rates")


def sum_up_cases(head: dict[str, Any], summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary of cases, of which no other will run: the cases with their figures, and the published rows.

    Parameters
    ----------
    head : dict
        As for :func:`cases_head`, or what this function gave before.
    summaries : Sequence[dict]
        Of the runs so far, in the order of the cases.

    ``changes`` of the whole are those that every case has; a case has the rest.
    """
    order = ("failed", "interrupted", "done")
    common = [c for c in summaries[0]["changes"] if all(c in s["changes"] for s in summaries)] if summaries else []
    outcomes = [_outcome(s) for s in summaries]
    status = min((s["status"] for s in summaries), key=order.index, default="interrupted")
    reason = next((f"{s['case']['name']}: {s['reason']}" for s in summaries if s["reason"]), None)
    if status == "done" and len(summaries) < len(head["planned"]):
        status = "interrupted"
    if status == "interrupted" and reason is None:
        reason = "not all cases have run"
    return {
        **head,
        "status": status,
        "reason": reason,
        "shortened": any(s["shortened"] for s in summaries),
        "changes": common,
        "board": next((s["board"] for s in summaries if s.get("board")), None),
        "board_ticks": any(s.get("board_ticks") for s in summaries),
        "cases": [
            {
                **s["case"],
                "folder": case_folder(s["case"]["name"]),
                "status": s["status"],
                "reason": s["reason"],
                "shortened": s["shortened"],
                "changes": [change for change in s["changes"] if change not in common],
                "same_as": next((summaries[i]["case"]["name"] for i in range(n) if outcomes[i] == outcomes[n]), None),
                "time": s["time"],
                "metrics": s["metrics"],
                "retransmits": sum(flow.get("retransmits", 0) for flow in s["flows"]),
                "timeouts": sum(flow.get("timeouts", 0) for flow in s["flows"]),
                "lost": pdus_lost(s),
                "drops": cells_dropped(s),
                "expected": s.get("expected", []),
                "theory": s.get("theory", []),
            }
            for n, s in enumerate(summaries)
        ],
        "published": [row for s in summaries for row in s["published"]] + _over_cases(head, summaries, status),
    }


def _over_cases(head: dict[str, Any], summaries: Sequence[dict[str, Any]], status: str) -> list[dict[str, Any]]:
    """Return the published figures of all cases together, beside ours."""
    if not head["over_cases"]:
        return []
    states = {"failed": status == "failed", "unfinished": status == "interrupted"}
    states |= {
        "shortened": any(s["shortened"] for s in summaries),
        "changed": any(set_otherwise(s["changes"]) for s in summaries),
    }
    return compare(head["over_cases"], over_cases(summaries), [state for state, holds in states.items() if holds])


def _outcome(summary: dict[str, Any]) -> list[Any]:
    """Return figures that tell runs apart: data delivered and time of each flow, and dropped cells by place."""
    keys = ("octets_delivered", "goodput_bps", "segments_sent", "retransmits", "timeouts", "datagrams_sent")
    return [*([flow.get(key) for key in keys] for flow in summary["flows"]), summary["drops"]]


def _remark(case: dict[str, Any]) -> str:
    """Return the notes without which a case's figures can be misread."""
    remarks = []
    if case["shortened"]:
        remarks.append(f"shortened from {case['time']['full_s']:g} s")
    remarks += map(change_text, case["changes"])
    if case["same_as"]:
        remarks.append(f"no difference from {case['same_as']!r}{' yet' if case['shortened'] else ''}")
    return "; ".join(remarks)


def case_table(summary: dict[str, Any]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return columns and rows: a case a row; a column of remarks if there are any. The sum of the flows' own rates is
    left out where it is their rate together in all cases."""
    rows = [
        [
            case["name"],
            figure_text(case["metrics"]["aggregate_goodput"] / 1e6),
            figure_text(case["metrics"]["sum_of_flow_rates"] / 1e6),
            figure_text(case["metrics"]["efficiency"]),
            figure_text(case["metrics"]["fairness"]),
            f"{case['retransmits']:,}",
            f"{case['timeouts']:,}",
            *("-" if case[count] is None else f"{case[count]:,}" for count in ("lost", "drops")),
            f"{case['time']['simulated_s']:.1f} s",
            case["status"],
        ]
        for case in summary["cases"]
    ]
    columns = _COLUMNS
    if all(row[_SUM] == row[_SUM - 1] for row in rows):
        columns = (*_COLUMNS[:_SUM], *_COLUMNS[_SUM + 1 :])
        rows = [[*row[:_SUM], *row[_SUM + 1 :]] for row in rows]
    remarks = [_remark(case) for case in summary["cases"]]
    if not any(remarks):
        return columns, rows
    return (*columns, "remark"), [[*row, remark] for row, remark in zip(rows, remarks, strict=True)]


def print_cases(console: Console, summary: dict[str, Any]) -> None:
    """Print the cases, and the published figures beside ours."""
    console.print(f"[bold]{summary['id']}[/bold]: {summary['title']}", highlight=False)
    print_notes(console, summary)
    console.print()
    print_table(console, "Cases", *case_table(summary), 1)
    if rare := rare_rows(summary["cases"]):
        console.print()
        print_table(console, "Rare losses and delays", RARE_COLUMNS, rare, 1)
    if theory := _theory(summary):
        console.print()
        print_table(console, "Theory and ours", THEORY_OF_CASES, theory, 3)
    if summary["published"]:
        console.print()
        print_table(console, "Published figures and ours", PUBLISHED_COLUMNS, published_rows(summary["published"]), 3)
    expected = _expected(summary)
    if expected:
        console.print()
        print_table(console, "Expected", EXPECTED_COLUMNS, expected_rows(expected), 2)


THEORY_OF_CASES: Final = ("case", *THEORY_COLUMNS)


def _theory(summary: Mapping[str, Any]) -> list[list[str]]:
    """Return the predicted figures of all cases beside ours."""
    cases = [(case["name"], theory_rows(case.get("theory", ()))) for case in summary["cases"]]
    return [[name, *row] for name, rows in cases for row in rows]


def _expected(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the expectations on all cases."""
    return [row | {"case": case["name"]} for case in summary["cases"] for row in case.get("expected", ())]


def make_cases_report(folder: Path, summary: dict[str, Any], plots: bool = True) -> None:
    """Write the plot over the cases (with ``plots``) and the report into a folder."""
    if plots:
        from bentpipe.plots.cases import write_cases_plot

        write_cases_plot(folder, summary)
    (folder / "report.html").write_text(cases_html(summary, plots), encoding="utf-8")


def cases_html(summary: Mapping[str, Any], plots: bool = True) -> str:
    """Return the page above the cases' own reports; with ``plots`` the plot over the cases is a file beside it."""
    s = dict(summary)
    sub = f"{len(s['cases'])} of {len(s['planned'])} cases; seed {s['seed']}"
    head = page_head(s, s["title"], sub, several_verdict(s))
    rare = theory = ""
    if rows := rare_rows(s["cases"]):
        rare = table(RARE_COLUMNS, rows, 1, name="Rare losses and delays", strong="rare cells")
    if rows := _theory(s):
        theory = table(THEORY_OF_CASES, rows, 3, name="Theory and ours", strong="ours")
    published = ""
    if s["published"]:
        name = "Published figures and ours"
        published = table(PUBLISHED_COLUMNS, published_rows(s["published"]), 3, name=name, strong="ours")
    chart = case_chart(s) if s["cases"] else None
    figure = chart and chart_spec(chart)
    reports = {case["name"]: f"{case['folder']}/report.html" for case in s["cases"]}
    bars = chart_bars(chart, reports) if chart else ""
    columns, rows = case_table(s)
    classes = ["changed" if case["changes"] else "" for case in s["cases"]]
    cases = table(columns, rows, 1, name="Cases", links=[*reports.values()], classes=classes) if rows else ""
    sections = [
        section("Published figures and ours", "published", published),
        section("Rare losses and delays", "splitting", rare),
        section("Theory and ours", "theory", theory),
        section("Throughput by case", "throughput", bars, _place(figure)),
        section("Cases", "cases", cases),
        section("Expected", "expected", expected_html(_expected(s))),
        section("Again", "again", command(repeat_command(s))),
    ]
    foot = f"bentpipe {html.escape(s['versions'].get('bentpipe', ''))}; beside this file: " + ", ".join(
        link(name, name) for name in ("result.json", *(("overview.png", "overview.svg") if plots else ()))
    )
    return page(s["id"], head, sections, figures={"cases": figure} if figure else None, foot=foot)


def _place(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return ""
    return (
        f'<figure data-figure="cases"><figcaption><strong>{html.escape(figure["title"])}</strong></figcaption></figure>'
    )
