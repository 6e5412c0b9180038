"""``report.html`` of a run: one file, nothing to fetch."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bentpipe.apps.settings import BARE
from bentpipe.report.figures import DISTRIBUTIONS, figures_of
from bentpipe.report.html import command, details, glance, link, notes, page, section, table, tiles
from bentpipe.report.network import network_svg
from bentpipe.report.places import Around
from bentpipe.report.repeat import capture_commands, repeat_command, session_command
from bentpipe.report.verdict import Verdict, run_verdict
from bentpipe.results.metrics import cells_dropped, pdus_lost
from bentpipe.results.schema import RunResult
from bentpipe.results.splitting import ratio_of
from bentpipe.results.tables import (
    CONGESTED_COLUMNS,
    DROP_COLUMNS,
    EVENT_COLUMNS,
    EXPECTED_COLUMNS,
    LOSS_COLUMNS,
    OAM_COLUMNS,
    PUBLISHED_COLUMNS,
    THEORY_COLUMNS,
    TIMEOUT_COLUMNS,
    board_text,
    broken_text,
    cell_tables,
    change_text,
    congested_rows,
    drop_rows,
    event_rows,
    expected_rows,
    figure_text,
    flow_tables,
    lines_text,
    loss_rows,
    loss_text,
    oam_rows,
    profile_rows,
    published_rows,
    rare_words,
    splitting_columns,
    splitting_rows,
    splitting_text,
    theory_rows,
    time_text,
    timeout_rows,
    timeout_text,
    together_text,
)

__all__ = ["expected_html", "make_report", "page_head", "report_html", "run_glance", "run_parts"]

_LOST_COLUMNS: Final = ("where", "why", "PDUs", "of all sent")


def make_report(folder: Path, result: RunResult, beside: Around | None = None, plots: bool = True) -> None:
    """Write plots and report of a run into a folder.

    Parameters
    ----------
    folder : Path
    result : RunResult
    beside : Around, optional
        Pages to which the report links.
    plots : bool
        Write plots as files beside the report; the report has its own figures.
    """
    if plots:
        from bentpipe.plots.figures import write_plots

        write_plots(folder, result)
    (folder / "report.html").write_text(report_html(result, beside), encoding="utf-8")


def report_html(result: RunResult, beside: Around | None = None) -> str:
    """Return the page of one run; ``beside`` has the links to the page above, and to the cases before and after it."""
    s = result.summary
    figures = figures_of(result)
    head = [
        beside.nav() if beside else "",
        *page_head(s, _title(s), f"{time_text(s)}; seed {s['seed']}", run_verdict(s)),
        _facts(s),
    ]
    over = [name for name in figures if name not in DISTRIBUTIONS]
    shares = [name for name in figures if name in DISTRIBUTIONS]
    sections = [
        section("Published figures and ours", "published", _published(s), _theory(s)),
        section(_rare(s), "splitting", *_splitting(s)),
        section("Rare time-outs", "rare-timeouts", *_timeouts(s)),
        section("Expected", "expected", expected_html(s.get("expected", ()))),
        section("Real hosts", "real-hosts", *_attached(s)),
        section("Network", "network", network_html(s)),
        section("Over time", "over-time", _events(s), _figures(over, figures, _HELP)),
        section("Distributions", "distributions", _figures(shares, figures)),
        section("Flows", "flows", *_flows(result)),
        section("PDUs lost, cells dropped", "losses", *_losses(s)),
        section("Ends of OAM flows", "oam", _oam(s)),
        section("Set-up", "set-up", *_set_up(s)),
        section("Counters", "counters", *_counters(s)),
        section("Again", "again", *_again(s)),
    ]
    return page(s["id"], head, sections, figures=figures, foot=_foot(s))


def run_glance(result: RunResult) -> str:
    """Return the HTML of a run for a notebook."""
    s = result.summary
    tables = {title: (tuple(columns), rows) for title, columns, rows in flow_tables(result.flows)} | cell_tables(s)
    return glance(_title(s), f"{s['id']}; {time_text(s)}; seed {s['seed']}", run_verdict(s), tables)


def run_parts(result: RunResult) -> dict[str, str]:
    """Return the parts of a run's page that change during the run, by the id of their element."""
    s = result.summary
    return {
        "verdict": _verdict(run_verdict(s)),
        "facts": _facts(s),
        "attached-now": "\n".join(_attached(s)),
        "network-now": network_html(s),
        "flows-now": "\n".join(filter(None, _flows(result))),
        "losses-now": "\n".join(filter(None, _losses(s))),
    }


def page_head(summary: Mapping[str, Any], title: str, sub: str, verdict: Verdict) -> list[str]:
    """Return the head of a page: origin, title and subtitle, verdict, notes, description."""
    s = summary
    source = "; ".join(filter(None, (s["id"], ", ".join(filter(None, (s["paper"], s["figure"]))))))
    return [
        f'<p class="sub">{html.escape(source)}</p>',
        f"<h1>{html.escape(title)}</h1>",
        f'<p class="sub">{html.escape(sub)}</p>',
        _verdict(verdict),
        notes(s),
        f"<p>{html.escape(s['description'])}</p>" if s["description"] else "",
    ]


def _verdict(verdict: Verdict) -> str:
    text = f"<b>{html.escape(verdict.word)}:</b> {html.escape(verdict.text)}"
    return f'<p class="verdict {verdict.level}" role="status">{text}</p>'


def network_html(summary: Mapping[str, Any]) -> str:
    """Return the drawing of the network, with a sentence that describes it."""
    return (
        f"{network_svg(summary)}<p>A line's width is the share of its rate that cells took over the whole run; "
        "above 95 % it has another colour. Lost cells are those dropped by this node or line.</p>"
    )


_HELP: Final = (
    "Point at a figure to see values; drag to zoom in, double-click to see the whole. Click a name in a legend to hide "
    "its curve. Keys: arrows move the cursor, + and - zoom, Home shows the whole."
)


def _title(s: Mapping[str, Any]) -> str:
    return f"{s['title']}: {s['case']['name']}" if s.get("case") else s["title"]


def _facts(s: Mapping[str, Any]) -> str:
    """Return the most important figures."""
    total, time = s["metrics"], s["time"]
    lost, dropped = pdus_lost(s), cells_dropped(s)
    speed = 1 / time["wall_per_simulated"] if time["wall_per_simulated"] else None
    flows = [flow for flow in s["flows"] if flow.get("protocol") not in BARE]
    facts = []
    if s.get("splitting"):  # which is what it is for
        ratio = ratio_of(s["splitting"])[1]["value"]
        noun = rare_words(s["splitting"])[0].capitalize()
        facts.append((noun, "-" if ratio is None else f"{ratio:.3g}", "of arriving cells"))
    if s.get("rare_timeout"):
        chance = s["rare_timeout"]["probability"]["value"]
        facts.append(("Probability of a time-out", "-" if chance is None else f"{chance:.3g}", "in the transfer"))
    if flows:
        name = "Throughput" if len(flows) == 1 else "Throughput over the common time"
        facts.append((name, figure_text(total["aggregate_goodput"] / 1e6), "Mb/s"))
    if len(flows) > 1:
        facts.append(("Sum of the flows' own rates", figure_text(total["sum_of_flow_rates"] / 1e6), "Mb/s"))
    if total.get("efficiency") is not None:
        facts.append(("Efficiency", f"{100 * total['efficiency']:.1f}", "%"))
    if len(flows) > 1 and total["fairness"] is not None:
        facts.append(("Fairness", f"{total['fairness']:.3f}", ""))
    facts += [
        ("PDUs lost", "unknown", "no loss ledger")
        if lost is None
        else ("PDUs lost", f"{lost:,}", f"of {sum(vc['sent'] for vc in s['ledger']):,}"),
        ("Cells dropped", "unknown" if dropped is None else f"{dropped:,}", ""),
        ("Simulated", f"{time['simulated_s']:.4g}", f"s in {time['wall_s']:.3g} s"),
    ]
    if speed:
        facts.append(("Speed", f"{speed:.3g}", "x real time"))
    return tiles(facts)


def _published(s: Mapping[str, Any]) -> str:
    if not s["published"]:
        return ""
    return table(PUBLISHED_COLUMNS, published_rows(s["published"]), 3, name="Published figures and ours", strong="ours")


def expected_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the conditions of ``[[expect]]``, and whether they hold."""
    if not rows:
        return ""
    classes = ["unmet" if row["holds"] is False else "" for row in rows]
    return table(EXPECTED_COLUMNS, expected_rows(rows), 2, name="Expected", strong="ours", classes=classes)


def _theory(s: Mapping[str, Any]) -> str:
    rows = s.get("theory")
    if not rows:
        return ""
    return "<h3>Theory and ours</h3>" + table(
        THEORY_COLUMNS, theory_rows(rows), 2, name="Theory and ours", strong="ours"
    )


_ENDS: Final = ("host", "where", "in", "out", "dropped", "injected late", "computed late", "late at its end, 99 % (ms)",
                "longer than configured, 99 % (ms)")  # fmt: skip


def _attached(s: Mapping[str, Any]) -> Iterator[str]:
    """Yield the results of attached hosts: each end, the slack, changes in the session."""
    attached = s.get("attached")
    if not attached:
        return
    rows = []
    for end in attached["ends"]:
        counts = end["counts"]
        late, computed, jitter, beyond = (end[what] for what in ("late", "computed_late", "jitter", "beyond"))
        times = [f"{each['p99'] / 1e6:.3g}" if each["count"] else "" for each in (jitter, beyond)]
        figures = (counts["injected"], counts["released"], end["dropped"], late["count"], computed["count"])
        rows.append([end["host"], end["where"] or end["end"], *(f"{value:,}" for value in figures), *times])
    yield table(_ENDS, rows, 2, name="Real hosts")
    started = attached.get("started")
    when = started or (attached.get("starts") if s["status"] == "running" else None)
    verb = "was" if started else "will be"
    parts = [f"Simulated time 0 {verb} {when.replace('T', ' ').replace('+00:00', ' UTC')}"] if when else []
    parts += [attached["slack"]["text"], f"{attached['priority']} priority"]
    parts += [f"left out, as one end is inside: {', '.join(attached['left_out'])}"] if attached["left_out"] else []
    parts += [
        f"at {change['at_ps'] / 1e12:.2f} s: {', '.join(change['settings']) or 'back to the state of the file'}"
        for change in attached["changed"]
    ]
    yield f"<p>{html.escape('; '.join(parts))}.</p>"


def _rare(s: Mapping[str, Any]) -> str:
    return "Rare delays" if "delay_ratio" in (s.get("splitting") or {}) else "Rare losses"


def _splitting(s: Mapping[str, Any]) -> list[str]:
    split = s.get("splitting")
    if not split:
        return []
    text = f"<p>{html.escape(splitting_text(split))}</p>"
    rows = splitting_rows(split)
    return [text, table(splitting_columns(split), rows, 0, name="Splitting")] if rows else [text]


def _timeouts(s: Mapping[str, Any]) -> list[str]:
    found = s.get("rare_timeout")
    if not found:
        return []
    text = f"<p>{html.escape(timeout_text(found))}</p>"
    rows = timeout_rows(found)
    return [text, table(TIMEOUT_COLUMNS, rows, 0, name="Splitting")] if rows else [text]


def _figures(names: Sequence[str], figures: Mapping[str, Any], text: str = "") -> str:
    """Return the places in which the script draws."""
    if not names:
        return ""
    places = "".join(
        f'<figure data-figure="{html.escape(name)}"><figcaption><strong>{html.escape(figures[name]["title"])}</strong>'
        "</figcaption></figure>"
        for name in names
    )
    without = "<noscript><p>The figures need JavaScript; PNG and SVG files of them are beside this file.</p></noscript>"
    return f'{without}<div class="figures">{f"<p>{html.escape(text)}</p>" if text else ""}{places}</div>'


def _events(s: Mapping[str, Any]) -> str:
    rows, followed = event_rows(dict(s)), profile_rows(dict(s))
    text = f"<p>{html.escape('; '.join(followed))}. Each row is in changes.parquet.</p>" if followed else ""
    if not rows:
        return text
    heading = "<p>Settings changed in the run (dotted lines in the figures).</p>"
    return text + heading + table(EVENT_COLUMNS, rows, 1, name="Changed in the run")


def _flows(result: RunResult) -> Iterator[str]:
    s = dict(result.summary)
    if s.get("attached") and not result.flows:
        return  # real hosts have taken their places
    for title, columns, rows in flow_tables(result.flows):
        yield ("" if title == "Flows" else f"<h3>{html.escape(title)}</h3>") + table(columns, rows, 2, name=title)
    broken = broken_text(result.flows)
    if broken:
        yield f'<p class="bad">{html.escape(broken)}</p>'
    together = together_text(s, result.flows)
    if together:
        yield f"<p>{html.escape(together[0].upper() + together[1:])}.</p>"
    for text in filter(None, (lines_text(s), board_text(s))):
        yield f"<p>{html.escape(text[0].upper() + text[1:])}</p>"


def _losses(s: Mapping[str, Any]) -> Iterator[str]:
    """Yield the loss ledger: all VCs together by place, then each."""
    ledger = s["ledger"] or ()
    sent, delivered = (sum(vc[key] for vc in ledger) for key in ("sent", "delivered"))
    known = "" if s["ledger"] is None else f"Of {sent:,} PDUs sent {delivered:,} were delivered. "
    yield f"<p>{known}{html.escape(loss_text(dict(s)))}</p>"
    places: dict[tuple[str, str], int] = {}
    for vc in ledger:
        for loss in vc["lost"]:
            if loss["where"]:
                key = loss["where"], loss["why"]
                places[key] = places.get(key, 0) + loss["pdus"]
    if places:
        rows = [
            [*key, f"{pdus:,}", f"{100 * pdus / sent:.3f} %"]
            for key, pdus in sorted(places.items(), key=lambda i: -i[1])
        ]
        yield table(_LOST_COLUMNS, rows, 2, name="PDUs lost by place")
        yield details("By VC", table(LOSS_COLUMNS, loss_rows(ledger), 3, name="PDUs lost by VC"))
    drops = drop_rows(s["drops"])
    if drops:
        yield "<h3>Cells dropped</h3>" + table(DROP_COLUMNS, drops, 2, name="Cells dropped")
    for title, (columns, rows) in cell_tables(s).items():
        yield f"<h3>{title}</h3>" + table(columns, rows, 1, name=title)
    congested = congested_rows(ledger)
    if congested:
        title = "PDUs that met congestion (EFCI)"
        yield f"<h3>{title}</h3>" + table(CONGESTED_COLUMNS, congested, 1, name=title)


def _oam(s: Mapping[str, Any]) -> str:
    ends = oam_rows(s.get("oam", ()))
    return table(OAM_COLUMNS, ends, 2, name="Ends of OAM flows") if ends else ""


def _set_up(s: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of every key of the experiment; keys that differ from its file are marked."""
    changes = {change["key"]: change for change in s["changes"]}
    if changes:
        yield "<p>Differences from the published set-up:</p><ul>"
        yield "".join(f"<li><mark>changed</mark> {html.escape(change_text(c))}</li>" for c in s["changes"]) + "</ul>"
    else:
        later = " at the start; some were changed in the run (above)" if s.get("events") or s.get("profiles") else ""
        yield f"<p>Settings as in the experiment's file{later}.</p>"
    rows, classes = [], []
    for key, value in _flat(s["configuration"]):
        hit = next((name for name in changes if key == name or key.startswith(f"{name}.")), None)
        was = f"was {json.dumps(changes[hit]['old'], ensure_ascii=False)}" if hit else ""
        rows.append([key, value, was])
        classes.append("changed" if hit else "")
    if not any(classes):
        rows = [row[:2] for row in rows]
    columns = ("key", "value", "in the file")[: len(rows[0]) if rows else 3]
    yield details("All keys", table(columns, rows, 3, name="All keys", classes=classes))


def _flat(data: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield keys and values down to single ones, by dotted keys."""
    inner = list(data.items()) if isinstance(data, dict) else list(enumerate(data)) if _tables(data) else []
    if not inner and above:
        yield above, data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    for key, value in inner:
        if above or key != "published":
            yield from _flat(value, f"{above}.{key}" if above else str(key))


def _tables(data: Any) -> bool:
    return isinstance(data, list) and any(isinstance(each, dict) for each in data)


def _counters(s: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of each set of nodes with the same counters; those that counted nothing are named."""
    if s["counters"] is None:
        yield "<p>The counters could not be read.</p>"
        return
    alike: dict[tuple[str, ...], list[str]] = {}
    for node, counters in s["counters"].items():
        names = tuple(name for name, value in counters.items() if not _nested(value))
        alike.setdefault(names, []).append(node)
    for names, nodes in alike.items():
        values = {node: [_sum(s["counters"][node][name]) for name in names] for node in nodes}
        some = [i for i in range(len(names)) if any(values[node][i] for node in nodes)]
        columns = ("node", *(names[i] for i in some))
        rows = [[node, *(f"{values[node][i]:,}" for i in some)] for node in nodes]
        none = [name for i, name in enumerate(names) if i not in some]
        if some:
            yield table(columns, rows, 1, name=f"Counters of {nodes[0]}")
        if none:
            them = ", ".join(nodes[:6]) + (" …" if len(nodes) > 6 else "")
            yield f'<p class="sub">{html.escape(f"{them}, all 0: " + ", ".join(none))}</p>'
    yield "<p>Counters by VC are added up here; result.json has each VC.</p>" if alike else ""


def _nested(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, list) for each in value)


def _sum(value: Any) -> int:
    return sum(value) if isinstance(value, list) else value


def _again(s: Mapping[str, Any]) -> Iterator[str]:
    if s.get("attached"):
        yield "<p>To start a similar session with other packets:</p>" + command(session_command(s))
        if s["attached"].get("recorded"):
            yield "<p>To replay the same cells at the same ticks, in this folder:</p>" + command("bentpipe replay .")
        else:
            why = html.escape(s["attached"].get("record_lost") or "it was not recorded (--record)")
            yield f"<p>The session cannot be repeated exactly: {why}.</p>"
    else:
        yield "<p>To repeat the same cells at the same ticks:</p>" + command(repeat_command(s))
    captures = capture_commands(s)
    if captures:
        yield "<h3>Captures</h3>"
        for file, lines in captures:
            yield f"<p>{link(file, file)}</p>" + command(*lines)
    yield details(
        "Versions", table(("part", "version"), [[*item] for item in s["versions"].items()], 2, name="Versions")
    )


def _foot(s: Mapping[str, Any]) -> str:
    also = ["changes.parquet"] if s.get("events") or s.get("profiles") else []
    files = ", ".join(link(name, name) for name in ("result.json", "flows.parquet", "trace.parquet", *also))
    return f"bentpipe {html.escape(s['versions'].get('bentpipe', ''))}; beside this file: {files}"
