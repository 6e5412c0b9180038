"""``report.html``: one file with tables and plots in it, nothing to fetch."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.layout import NARROW
from bentpipe.results.schema import RunResult
from bentpipe.results.tables import (
    CONGESTED_COLUMNS,
    DROP_COLUMNS,
    EVENT_COLUMNS,
    LOSS_COLUMNS,
    OAM_COLUMNS,
    PUBLISHED_COLUMNS,
    TEXTS,
    THEORY_COLUMNS,
    broken_text,
    congested_rows,
    drop_rows,
    event_rows,
    flow_tables,
    lines_text,
    loss_rows,
    loss_text,
    note_texts,
    oam_rows,
    published_rows,
    theory_rows,
    time_text,
    together_text,
)

__all__ = ["STYLE", "html_notes", "html_picture", "html_table", "make_report", "report_html"]

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.sub { color: #555; margin-top: .2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { overflow-wrap: normal; }
th, td { padding: .3rem .8rem .3rem 0; text-align: right; border-bottom: 1px solid #e3e3e3; vertical-align: top; }
th { font-weight: 600; border-bottom: 2px solid #999; } .l { text-align: left; }
td.ours { font-weight: 600; }
.note { background: #fff6e0; border-left: 4px solid #e69f00; padding: .5rem .8rem; }
.bad { background: #fdeaea; border-left: 4px solid #c00; padding: .5rem .8rem; }
img { width: 100%; height: auto; }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: 12.5px; line-height: 1.4; }
summary { cursor: pointer; font-weight: 600; margin: .6rem 0; }
"""

_NARROW_PX: Final = 560
"""Up to this width a page shows the narrow plots: the wide ones' texts would be smaller than 9 pixels there."""

_PLOTS: Final = (
    ("Segments over time", "sequence", "Segments sent and acknowledged over time"),
    ("Over time", "overview", "Throughput, congestion windows, queued cells and dropped cells over time"),
    ("Queues and delays", "histograms", "Shares of cells by the queue that they found and by their delay"),
)


def make_report(folder: Path, result: RunResult) -> None:
    """Plots and report of a run, into a folder."""
    from bentpipe.plots.figures import write_plots

    write_plots(folder, result)
    pictures = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.svg"))}
    (folder / "report.html").write_text(report_html(result, pictures), encoding="utf-8")


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int, strong: str = "") -> str:
    """A table; its first ``left`` columns and those of ``TEXTS`` are texts, the column ``strong`` is bold."""

    def kind(index: int) -> str:
        names = ["l"] if index < left or columns[index] in TEXTS else []
        return " ".join([*names, *(["ours"] if columns[index] == strong else [])])

    head = "".join(f'<th class="{kind(i)}">{html.escape(name)}</th>' for i, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(f'<td class="{kind(i)}">{html.escape(cell)}</td>' for i, cell in enumerate(row)) + "</tr>\n"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def html_notes(summary: dict[str, Any]) -> list[str]:
    """What must stand beside the figures."""
    return [f'<p class="note">{html.escape(note)}</p>' for note in note_texts(summary)]


def html_picture(alt: str, name: str, pictures: Mapping[str, bytes]) -> str:
    """A plot, in its narrow form on narrow screens if it has one."""

    def url(svg: bytes) -> str:
        return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"

    image = f'<img alt="{html.escape(alt)}" src="{url(pictures[name])}">'
    narrow = pictures.get(name + NARROW)
    if narrow is None:
        return image
    return f'<picture><source media="(max-width: {_NARROW_PX}px)" srcset="{url(narrow)}">{image}</picture>'


def report_html(result: RunResult, pictures: Mapping[str, bytes]) -> str:
    """The page of one run; ``pictures`` are SVG files by their names without suffix."""
    s = result.summary
    parts = [
        f"<h1>{html.escape(s['title'])}</h1>",
        f'<p class="sub">{html.escape(_line(s))}</p>',
    ]
    if s["status"] == "failed":
        parts.append(f'<p class="bad">The experiment failed: {html.escape(str(s["reason"]))}</p>')
    if s["status"] == "interrupted":
        parts.append('<p class="note">Interrupted; what was there is kept.</p>')
    parts += html_notes(s)
    if s["description"]:
        parts.append(f"<p>{html.escape(s['description'])}</p>")
    if s["published"]:
        parts.append("<h2>Published figures and ours</h2>")
        parts.append(html_table(PUBLISHED_COLUMNS, published_rows(s["published"]), 3, "ours"))
    if s.get("theory"):
        parts.append("<h2>Theory and ours</h2>")
        parts.append(html_table(THEORY_COLUMNS, theory_rows(s["theory"]), 2, "ours"))
    for title, name, alt in _PLOTS:
        if name in pictures:
            parts += [f"<h2>{title}</h2>", html_picture(alt, name, pictures)]
    for title, columns, rows in flow_tables(result.flows):
        parts.append(f"<h2>{html.escape(title)}</h2>")
        parts.append(html_table(columns, rows, 2))
    broken = broken_text(result.flows)
    if broken:
        parts.append(f'<p class="bad">{html.escape(broken)}</p>')
    together = together_text(s, result.flows)
    if together:
        parts.append(f"<p>{html.escape(together[0].upper() + together[1:])}.</p>")
    lines = lines_text(s)
    if lines:
        parts.append(f"<p>{html.escape(lines)}</p>")
    events = event_rows(s)
    if events:
        parts.append("<h2>Changed in the run</h2><p>Dotted lines in the plots.</p>")
        parts.append(html_table(EVENT_COLUMNS, events, 1))
    lost, drops = loss_rows(s["ledger"]), drop_rows(s["drops"])
    parts.append("<h2>PDUs lost, cells dropped</h2>")
    parts += [html_table(LOSS_COLUMNS, lost, 3)] if lost else []
    parts += [html_table(DROP_COLUMNS, drops, 2)] if drops else []
    congested = congested_rows(s["ledger"])
    parts += [html_table(CONGESTED_COLUMNS, congested, 1)] if congested else []
    parts += [f"<p>{html.escape(loss_text(s))}</p>"] if loss_text(s) else []
    ends = oam_rows(s.get("oam", ()))
    parts += ["<h2>Ends of OAM flows</h2>", html_table(OAM_COLUMNS, ends, 2)] if ends else []
    for title, key in (("Counters of the nodes", "counters"), ("Configuration", "resolved"), ("Versions", "versions")):
        text = html.escape(json.dumps(s[key], indent=1, ensure_ascii=False))
        parts.append(f"<details><summary>{title}</summary><pre>{text}</pre></details>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(s['id'])}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _line(s: dict[str, Any]) -> str:
    paper = f"{s['paper']}, {s['figure']}; " if s["paper"] and s["figure"] else f"{s['paper']}; " if s["paper"] else ""
    return f"{s['id']}; {paper}{time_text(s)}; seed {s['seed']}; bentpipe {s['versions'].get('bentpipe', '')}"
