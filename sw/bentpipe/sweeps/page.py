"""``report.html`` of a sweep, or of a run of the catalogue: above the reports of its runs."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.style import FEW
from bentpipe.plots.sweep import MOST_NAMES, PLOTS, Place, asked_figures, places, places_of_figure, swept_over
from bentpipe.report.html import command, glance, link, page, section, table, tiles
from bentpipe.report.run import expected_html, page_head
from bentpipe.report.verdict import sweep_verdict
from bentpipe.results.declared import axis_names, in_words, metric_name, metric_of, scale_of
from bentpipe.results.folder import CATALOGUE
from bentpipe.results.statistics import CONFIDENCE, Mean, mean_of
from bentpipe.results.tables import figure_text
from bentpipe.sweeps.show import (
    CATALOGUE_COLUMNS,
    PUBLISHED_COLUMNS,
    SHOWN,
    catalogue_rows,
    compared,
    mean_rows,
    published_rows,
)

__all__ = ["make_sweep_report", "sweep_glance", "sweep_html"]

_AGAIN_S: Final = 10
"""Real time after which the page of a sweep that goes on loads itself again."""

_INTERVAL: Final = f"{CONFIDENCE * 100:.0f} % interval"

Spec = dict[str, Any]


def make_sweep_report(
    folder: Path, summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], reports: Collection[str], plots: bool
) -> None:
    """Write the plot, if it is wanted, and the page into a folder; parameters as for :func:`sweep_html`."""
    if plots:
        from bentpipe.plots.sweep import write_sweep_plot

        write_sweep_plot(folder, summary, rows)
    drawn = [name for name in PLOTS if (folder / name).is_file()]
    (folder / "report.html").write_text(sweep_html(summary, rows, reports, drawn), encoding="utf-8")


def sweep_html(
    summary: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    reports: Collection[str] | None = None,
    drawn: Sequence[str] = (),
) -> str:
    """Return the page; that of a running sweep reloads itself.

    Parameters
    ----------
    summary : Mapping
        The sweep's ``result.json``.
    rows : Sequence[Mapping]
        Of its table.
    reports : Collection of str, optional
        The run folders, as in ``summary``, that have a report; all of them if not given.
    drawn : Sequence[str]
        Plots that stand beside it.
    """
    s = summary
    led = {run["folder"]: f"{run['folder']}/report.html" for run in s["runs"]
           if reports is None or run["folder"] in reports}  # fmt: skip
    catalogue = s["id"] == CATALOGUE
    head = [*page_head(s, s["title"], _varied(s), sweep_verdict(s)), _facts(s)]
    figures = {} if catalogue else _figures(s, rows)
    over, _ = swept_over(s, rows)
    sections = [
        section("Experiments", "experiments", _experiments(s, led)) if catalogue else "",
        section("Figures over varied settings", "varied", _drawn(figures)),
        section("Throughput", "throughput", _bars(s, rows, led)) if over is None and not catalogue else "",
        section("Published figures and ours", "published", _published(s)),
        section("Expected", "expected", expected_html(_expected(s))),
        section("Means over seeds" if len(s["seeds"]) > 1 else "Each point", "means", "" if catalogue else _means(s)),
        section("What failed", "failed", _failed(s)),
        section(
            "Runs", "runs", *(_runs_by_experiment(s, rows, led) if catalogue else [_runs(s, rows, s["runs"], led)])
        ),
        section("Again", "again", command(s["command"]) if s.get("command") else ""),
    ]
    foot = f"bentpipe {html.escape(s['versions'].get('bentpipe', ''))}; beside this file: " + ", ".join(
        link(name, name) for name in ("result.json", "table.parquet", *drawn)
    )
    again = _AGAIN_S if s["status"] == "running" else None
    return page(s["id"], head, sections, figures=figures or None, foot=foot, again_s=again)


def sweep_glance(summary: Mapping[str, Any]) -> str:
    """Return the HTML of a sweep for a notebook."""
    columns, rows = mean_rows(summary)
    return glance(summary["title"], _varied(summary), sweep_verdict(summary), {"Means": (tuple(columns), rows)})


def _varied(s: Mapping[str, Any]) -> str:
    """Return the varied settings and their values, in words."""
    names = axis_names(s["axes"])
    parts = [f"{names[axis['key']]}: {', '.join(axis['values'])}" for axis in s["axes"]]
    cases = len({(run["experiment"], run["case"]) for run in s["runs"]})
    parts += [f"{cases} cases"] if cases > 1 and s["id"] != CATALOGUE else []
    seeds = s["seeds"]
    parts += [f"seeds {', '.join(map(str, seeds))}" if len(seeds) < 20 else f"{len(seeds)} seeds"] if seeds else []
    return "; ".join(parts)


def _facts(s: Mapping[str, Any]) -> str:
    time, runs = s["time"], s["runs"]
    done = sum(run["status"] == "done" for run in runs)
    facts = [("Runs done", f"{done:,}", f"of {len(runs):,}")]
    if s["id"] == CATALOGUE:
        facts.append(("Experiments", f"{len({run['experiment'] for run in runs}):,}", ""))
    if s["seeds"]:
        facts.append(("Seeds", f"{len(s['seeds'])}", ""))
    facts.append(("All runs together", *_long(time["runs_s"])))
    facts.append(("The last part took", *_long(time["wall_s"])))
    return tiles(facts)


def _long(seconds: float) -> tuple[str, str]:
    return (f"{seconds / 60:,.1f}", "min") if seconds >= 100 else (f"{seconds:,.1f}", "s")


def _experiments(s: Mapping[str, Any], led: Mapping[str, str]) -> str:
    rows = catalogue_rows(s)
    links = []
    for row in rows:
        own = [run for run in s["runs"] if run["experiment"] == row[0]]
        links.append(led.get(own[0]["folder"], "") if len(own) == 1 else f"#of-{row[0]}")
    classes = ["unmet" if "failed" in row[3] or "not as" in row[3] else "" for row in rows]
    remark = (
        "<p>Errors compare our means with published figures, for complete runs without changed settings. An "
        "experiment's "
        "name links to its run, or to its runs below.</p>"
    )
    return remark + table(CATALOGUE_COLUMNS, rows, 4, name="Experiments", links=links, classes=classes)


def _figures(s: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Spec]:
    """Return the figures over the varied key: mean, interval, each seed.

    Figures that are the same everywhere are left out.
    """
    over, label = swept_over(s, rows)
    if over is None:
        return {}
    found = {}
    asked = asked_figures(s) if s.get("metrics") else {}
    for kind, names in asked.items():
        if spec := _curves(places_of_figure(s, rows, names, over), kind, label):
            found[kind.replace("_", "-")] = spec
    for metric in SHOWN:
        at = places(s, rows, metric, over)
        if metric in asked:
            continue
        if metric != "aggregate_goodput" and len({row["value"] for same in at.values() for row in same}) < 2:
            continue
        if spec := _curves(at, metric, label):
            found[metric.replace("_", "-")] = spec
    return found


def _curves(at: Mapping[Place, Sequence[Mapping[str, Any]]], metric: str, label: str) -> Spec | None:
    shown, scale = scale_of(metric)
    name = "Throughput" if metric == "aggregate_goodput" else in_words(metric)
    name = name[0].upper() + name[1:]
    known = metric_of(metric)
    ratio = known is not None and known.ratio
    positions = sorted({place.at for place in at if place.at is not None})
    if not positions:
        return None
    bands: list[Spec] = []
    lines: list[Spec] = []
    dots: list[Spec] = []
    for index, curve in enumerate(dict.fromkeys(place.curve for place in at)):
        colour = f"c{index % FEW}"
        own = sorted(
            (place.at or 0.0, [row["value"] / scale for row in same])
            for place, same in at.items()
            if place.curve == curve
        )
        means = [(where, mean_of(values)) for where, values in own]
        called = curve or ("mean" if any(mean.count > 1 for _, mean in means) else "ours")
        line = {"name": called, "style": f"{colour}:{index // FEW % 4}", "shape": "line", "points": True}
        lines.append(line | {"x": [where for where, _ in means], "y": [mean.mean for _, mean in means]})
        wide = [(where, mean.mean, mean.half) for where, mean in means if mean.half is not None]
        if wide:
            band = {"name": f"{called}, {_INTERVAL}", "style": colour, "shape": "band", "faint": True}
            low, high = ([mean + sign * half for _, mean, half in wide] for sign in (-1, 1))
            bands.append(band | {"x": [where for where, *_ in wide], "low": low, "y": high})
            points = [(where, value) for where, values in own for value in values]
            each = {"name": f"{curve}, each seed" if curve else "each seed", "style": colour, "shape": "dots"}
            dots.append(each | {"x": [where for where, _ in points], "y": [value for _, value in points]})
    low, high = positions[0], positions[-1]
    log = low > 0 and high > 20 * low
    room = 0.04 * (high - low) or 0.5
    span = [low / 1.2, high * 1.2] if log else [0 if 0 <= low < 0.3 * high else low - room, high + room]
    unit = f" ({shown})" if shown and not (known and known.count) else ""
    return {"title": f"{name}{unit}", "x": {"label": label, "log": log, "range": span},
            "y": {"label": f"{name}{unit}"} | ({"log": True} if ratio else {"least": 0}),
            "series": [*bands, *lines, *dots], "bounds": []}  # fmt: skip


def _drawn(figures: Mapping[str, Spec]) -> str:
    return "".join(
        f'<figure data-figure="{html.escape(name)}"><figcaption><strong>{html.escape(spec["title"])}</strong>'
        "</figcaption></figure>"
        for name, spec in figures.items()
    )


def _bars(s: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], led: Mapping[str, str]) -> str:
    """Return the bars of a sweep that varies no number: one for each place, with its interval.

    The name is a link if the place has one run.
    """
    at = places(s, rows, "aggregate_goodput", None)
    if not at or len(at) > MOST_NAMES:
        return ""
    found = [(place, same, mean_of([row["value"] / 1e6 for row in same])) for place, same in at.items()]
    most = max(mean.mean + (mean.half or 0) for *_, mean in found) or 1
    items = []
    for place, same, mean in found:
        name = html.escape(place.curve or "all runs")
        if len(same) == 1 and same[0]["run"] in led:
            name = link(place.curve or "the run", led[same[0]["run"]])
        items.append(
            f'<li><span>{name}</span><span class="bar" aria-hidden="true">'
            f'<i style="width:{100 * mean.mean / most:.2f}%"></i>{_whisker(mean, most)}</span>'
            f'<span class="value">{figure_text(mean.mean)}'
            f"{'' if mean.half is None else f' ± {figure_text(mean.half)}'} Mb/s</span></li>"
        )
    remark = f'<p class="sub">Mean over seeds; the line across a bar is the {_INTERVAL}.</p>' if s["seeds"] else ""
    return f'<ul class="bars">{"".join(items)}</ul>{remark}'


def _whisker(mean: Mean, most: float) -> str:
    if mean.half is None:
        return ""
    low = max(mean.mean - mean.half, 0.0)
    width = mean.mean + mean.half - low
    return f'<s style="left:{100 * low / most:.2f}%;width:{100 * width / most:.2f}%"></s>'


def _published(s: Mapping[str, Any]) -> str:
    rows = compared(s)
    if not rows:
        return ""
    name = "Published figures and ours"
    return table(PUBLISHED_COLUMNS, published_rows(rows, s["axes"]), 3, name=name, strong="ours")


def _expected(s: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the expectations on runs; of many, those that do not hold come first."""
    named = [row | {"case": run["folder"].rpartition("/")[2]} for run in s["runs"] for row in run["expected"]]
    return sorted(named, key=lambda row: row["holds"] is not False)


def _means(s: Mapping[str, Any]) -> str:
    if not s["means"]:
        return ""
    columns, rows = mean_rows(s)
    remark = f"<p>± is half the {_INTERVAL} of the mean.</p>" if len(s["seeds"]) > 1 else ""
    whole = [[cell.replace(" ± ", "\u00a0±\u00a0") for cell in row] for row in rows]
    return remark + table(columns, whole, columns.index("runs"), name="Means", strong="Mb/s")


def _failed(s: Mapping[str, Any]) -> str:
    bad = [run for run in s["runs"] if run["status"] not in ("done", "left")]
    rows = [[run["folder"].rpartition("/")[2], run["status"], str(run["reason"] or "")] for run in bad]
    return table(("run", "result", "why"), rows, 3, name="What failed") if rows else ""


def _runs(
    s: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    runs: Sequence[Mapping[str, Any]],
    led: Mapping[str, str],
    name: str = "Runs",
) -> str:
    """Return a table of runs, called ``name``: a row for each, with a link to its report."""
    rates = {row["run"]: row["value"] for row in rows if metric_name(row) == "aggregate_goodput"}
    keys = axis_names(s["axes"])
    cases = any(run["case"] for run in runs)
    columns = ("run", *(["case"] if cases else []), *keys.values(), "seed", "Mb/s", "simulated", "seconds", "status")
    table_rows = []
    for run in runs:
        status = "not as expected" if any(row["holds"] is False for row in run["expected"]) else run["status"]
        table_rows.append(
            [
                run["folder"].rpartition("/")[2].rpartition("-")[0],
                *([run["case"] or ""] if cases else []),
                *(run["values"][key] for key in keys),
                str(run["seed"]),
                figure_text(None if rates.get(run["folder"]) is None else rates[run["folder"]] / 1e6),
                "-" if run["simulated_s"] is None else f"{run['simulated_s']:.1f} s",
                "-" if run["seconds"] is None else f"{run['seconds']:.1f}",
                status,
            ]
        )
    classes = ["" if row[-1] in ("done", "left") else "unmet" for row in table_rows]
    links = [led.get(run["folder"], "") for run in runs]
    return table(columns, table_rows, 1 + cases + len(keys), name=name, links=links, classes=classes)


def _runs_by_experiment(s: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], led: Mapping[str, str]) -> list[str]:
    found = []
    for name in dict.fromkeys(run["experiment"] for run in s["runs"]):
        own = [run for run in s["runs"] if run["experiment"] == name]
        title = s.get("experiments", {}).get(name, {}).get("title", "")
        found.append(f'<h3 id="of-{html.escape(name)}">{html.escape(": ".join(filter(None, (name, title))))}</h3>')
        found.append(_runs(s, rows, own, led, f"Runs of {name}"))
    return found
