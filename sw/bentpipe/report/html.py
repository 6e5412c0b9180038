"""Pieces of pages: tables, notes, the page around them with its style and its script in it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from bentpipe.report.verdict import Verdict
from bentpipe.results.tables import TEXTS, FigureTable, note_texts

__all__ = ["command", "details", "glance", "json_text", "link", "notes", "page", "section", "table", "tiles"]

_LONG = 25
"""A table with more rows scrolls in itself."""


_TEXT = 30
"""A column with a longer cell keeps some width on a narrow page, where the table scrolls."""


@cache
def _asset(name: str) -> str:
    return (files("bentpipe.report") / "assets" / name).read_text(encoding="utf-8")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int,
    *,
    name: str,
    strong: str = "",
    links: Sequence[str] = (),
    classes: Sequence[str] = (),
) -> str:
    """Return a table; its first ``left`` columns and those of ``TEXTS`` are texts, the column ``strong`` is bold.

    Parameters
    ----------
    name : str
        What it is, for those who do not see it.
    links : Sequence[str]
        Where the first cell of each row leads; "": nowhere.
    classes : Sequence[str]
        Of the rows.
    """

    def kind(index: int) -> str:
        names = ["l"] if index < left or columns[index] in TEXTS else []
        names += ["text"] if any(len(row[index]) > _TEXT for row in rows) else []
        return f' class="{" ".join([*names, *(["ours"] if strong and columns[index] == strong else [])])}"'

    head = "".join(f'<th scope="col"{kind(i)}>{html.escape(column)}</th>' for i, column in enumerate(columns))
    body = []
    for number, row in enumerate(rows):
        cells = [html.escape(cell) for cell in row]
        if links and links[number]:
            cells[0] = f'<a href="{html.escape(links[number])}">{cells[0]}</a>'
        given = f' class="{classes[number]}"' if classes and classes[number] else ""
        first = f'<th scope="row"{kind(0)}>{cells[0]}</th>'
        body.append(f"<tr{given}>{first}{''.join(f'<td{kind(i + 1)}>{c}</td>' for i, c in enumerate(cells[1:]))}</tr>")
    long = " long" if len(rows) > _LONG else ""
    return (
        f'<div class="wide{long}" role="region" aria-label="{html.escape(name)}" tabindex="0"><table data-sort>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{chr(10).join(body)}</tbody></table></div>"
    )


MOST_AT_A_GLANCE: Final = 20
"""Rows of a table in a notebook."""


def glance(title: str, sub: str, verdict: Verdict, tables: Mapping[str, FigureTable]) -> str:
    """Return the HTML of a run or a sweep for a notebook: without scripts and styles, and with short tables."""
    parts = [
        f"<p><b>{html.escape(title)}</b><br>{html.escape(sub)}<br>"
        f"<b>{html.escape(verdict.word)}:</b> {html.escape(verdict.text)}</p>"
    ]
    for name, (columns, rows) in tables.items():
        more = len(rows) - MOST_AT_A_GLANCE
        left_out = f"<p>and {more} more rows</p>" if more > 0 else ""
        parts.append(f"<p>{html.escape(name)}</p>{table(columns, rows[:MOST_AT_A_GLANCE], 1, name=name)}{left_out}")
    return "\n".join(parts)


def section(title: str, name: str, *parts: str) -> str:
    """Return a part of a page that its contents list; nothing if it is empty."""
    inside = "\n".join(filter(None, parts))
    return f'<section id="{name}"><h2>{html.escape(title)}</h2>\n{inside}\n</section>' if inside else ""


def details(title: str, *parts: str) -> str:
    """Return a part of a page that is shown on demand."""
    return f"<details><summary>{html.escape(title)}</summary>{''.join(parts)}</details>"


def notes(summary: Mapping[str, Any]) -> str:
    """Return the notes without which the figures can be misread."""
    return "\n".join(f'<p class="note">{html.escape(note)}</p>' for note in note_texts(dict(summary)))


def tiles(facts: Sequence[tuple[str, str, str]]) -> str:
    """Return the most important figures: what, figure, unit."""
    found = "".join(
        f"<div><dt>{html.escape(what)}</dt><dd>{html.escape(figure)} <small>{html.escape(unit)}</small></dd></div>"
        for what, figure, unit in facts
    )
    return f'<dl class="tiles">{found}</dl>'


def command(*lines: str) -> str:
    """Return commands in a box with a button to copy them."""
    return f'<div class="copy"><pre tabindex="0">{html.escape(chr(10).join(lines))}</pre></div>'


def link(text: str, to: str, rel: str = "") -> str:
    """Return a link as HTML."""
    return f'<a href="{html.escape(to)}"{f" rel={rel}" if rel else ""}>{html.escape(text)}</a>'


def json_text(data: Any) -> str:
    """Return JSON that is safe in a page's script."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def page(
    title: str,
    head: Sequence[str],
    sections: Sequence[str],
    *,
    figures: Mapping[str, Any] | None = None,
    connect: bool = False,
    foot: str = "",
    again_s: int | None = None,
) -> str:
    """Return a whole page.

    Parameters
    ----------
    head : Sequence[str]
        What stands above the list of contents.
    sections : Sequence[str]
        As for :func:`section`; empty ones are left out.
    figures : Mapping, optional
        The data of figures by their names.
    connect : bool
        It asks its own server for news; all others ask for nothing, and the browser is told to see to that.
    again_s : int, optional
        The browser loads it anew after so many seconds.
    """
    sections = [part for part in sections if part]
    contents = []
    for part in sections:
        if not part.startswith("<section"):
            continue
        name, title_ = part.split('id="', 1)[1].split('"', 1)[0], part.split("<h2>", 1)[1].split("</h2>", 1)[0]
        contents.append(f'<li><a href="#{name}">{title_}</a></li>')
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    if connect:
        policy += "; connect-src 'self'"
    again = "" if again_s is None else f'<meta http-equiv="refresh" content="{again_s}">\n'
    data = f'<script type="application/json" id="figures-data">{json_text(figures)}</script>\n' if figures else ""
    nav = f'<nav class="contents" aria-label="Contents"><ul>{"".join(contents)}</ul></nav>\n' if contents else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{again}"
        '<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_asset('page.css')}</style></head>\n<body>\n"
        '<a class="skip" href="#main">To the figures</a>\n<header class="head">\n'
        + "\n".join(filter(None, head))
        + f'\n</header>\n{nav}<main id="main">\n'
        + "\n".join(sections)
        + f"\n{f'<footer>{foot}</footer>' if foot else ''}</main>\n"
        + f"{data}<script>{_asset('page.js')}</script>\n</body></html>\n"
    )
