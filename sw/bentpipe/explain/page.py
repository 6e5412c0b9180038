"""Page of the explained experiments: a table of all figures, and the parameters and charts of each experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bentpipe.results.tables import figure_text

__all__ = ["COLUMNS", "page", "rows", "summary_text"]

COLUMNS = ("experiment", "figure", "unit", "measured", "predicted", "as it is", "range", "verdict", "strongest")


def rows(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return a row for each published figure."""
    return [
        [
            each["id"],
            figure["name"],
            figure["unit"],
            figure_text(figure["measured"]),
            figure_text(figure["predicted"]),
            figure_text(figure["own"]),
            f"{figure_text(figure['low'])} to {figure_text(figure['high'])}",
            figure["verdict"],
            ", ".join(figure["pair"]) or "none has an effect",
        ]
        for each in found
        for figure in each["figures"]
    ]


def summary_text(found: Sequence[Mapping[str, Any]]) -> str:
    """Return how many figures are inside their ranges."""
    figures = [figure for each in found for figure in each["figures"]]
    inside = sum(figure["inside"] for figure in figures)
    return f"{inside} of {len(figures)} figures are inside the range of the two strongest open parameters."


def page(found: Sequence[Mapping[str, Any]], left: Sequence[str], pictures: str) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    found : Sequence[Mapping]
        What ``explain.json`` of each experiment has.
    left : Sequence[str]
        Experiments that were left out, and why.
    pictures : str
        Where the charts lie, from the page.
    """
    parts = [
        "# Ranges of published figures",
        "",
        "`bentpipe explain` wrote this page. An experiment has open parameters where its source doesn't give a value.",
        "Shortened runs vary each of them alone; whole runs vary the two strongest, alone and together. A range that",
        "has the measured figure in it shows that the figure is possible with plausible settings. It does not show",
        "which settings the authors had.",
        "",
        summary_text(found),
        "",
        *_table(COLUMNS, rows(found)),
        "",
    ]
    for each in found:
        seeds = f"seeds {', '.join(map(str, each['seeds']))}" if each["seeds"] else "the experiment's own seed"
        parts += [
            f"## {each['id']}",
            "",
            f"{each['title']}: {each['runs']} runs, {each['runs_s']:.0f} s in all, {seeds};",
            f"`bentpipe explain {each['id']}`.",
            "",
            f"![Ranges of the published figures of {each['id']}]({pictures}{each['id']}.svg)",
            "",
            *_table(
                ("open parameter", "values", "why", "place"),
                [[f"`{p['key']}`", ", ".join(p["values"]), p["why"], p["source"]] for p in each["parameters"]],
            ),
            "",
        ]
        if each["left_out"]:
            parts += ["Published figures that are not explained:", "", *(f"- {text}" for text in each["left_out"]), ""]
    if left:
        parts += ["## Left out", "", *(f"- {text}" for text in left), ""]
    return "\n".join([*parts, "Next: [published figures and ours](published.md).", ""])


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    return lines + [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in body]
