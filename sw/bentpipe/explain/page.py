"""Pages of the explained experiments: a table of all figures; parameters and charts of each experiment, by group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bentpipe.results.tables import figure_text
from bentpipe.results.words import key_in_words

__all__ = ["COLUMNS", "pages", "rows", "summary_text"]

COLUMNS = ("experiment", "figure", "unit", "measured", "predicted", "as it is", "range", "of", "verdict", "strongest")

_HEAD = """# Ranges of published figures

`bentpipe explain` wrote this page. An experiment has open parameters where its source doesn't give a value.
Runs vary each of them alone, shortened where that is stated. Whole runs vary the two strongest, alone and together.
A range that contains the measured figure shows that the figure is possible with plausible settings. It does not show
which settings the authors had.

| verdict | meaning |
| --- | --- |
| inside by … | the range contains the figure, and its nearer end is so far away |
| only with … | all runs on the figure's other side share this setting |
| unexplained | no run of the range reaches the figure |
| so far … | planned runs are missing, so the range may grow |
| not judged | only runs so far whose rate is not that of a whole run |

"As it is" is the entry with its own settings. The range is of all runs of full length, also those of the testbed.
Full length is a whole run, or a shortened one if its rate is steady by then; each experiment's section states it.
Parameters have their names here; the tables of the experiments have their keys, as `--set` needs them.
Withheld figures take no part. With one seed, an effect may also be chance: the first losses decide much of a short run.
"""


def rows(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return a row for each published figure, with parameters as `--set` names them."""
    return [
        [
            each["id"],
            figure["name"],
            figure["unit"],
            figure_text(figure["measured"]),
            figure_text(figure["predicted"]),
            figure_text(figure["own"]),
            f"{figure_text(figure['low'])} to {figure_text(figure['high'])}",
            _runs(len(figure["points"]), figure["range_of"]),
            figure["verdict"],
            ", ".join(figure["pair"])
            or ("none has an effect" if any(e["values"] for e in figure["screening"]) else "not varied alone yet"),
        ]
        for each in found
        for figure in each["figures"]
    ]


def summary_text(found: Sequence[Mapping[str, Any]]) -> str:
    """Return how many figures are inside their ranges."""
    figures = [figure for each in found for figure in each["figures"] if figure["comparable"]]
    inside = sum(figure["inside"] for figure in figures)
    measured = [figure for figure in figures if figure["measured"] is not None]
    within = sum(figure["inside"] for figure in measured)
    others = sum(not figure["comparable"] for each in found for figure in each["figures"])
    text = (
        f"{inside} of {len(figures)} figures are inside the range of the open parameters; of those that were measured, "
        f"{within} of {len(measured)}."
    )
    return text + (f" {others} more have no whole run yet and are not judged." if others else "")


_GROUPS = {"acts": "ACTS", "others": "other networks"}
"""Groups of experiments that have a page each, by the end of its name."""


def _group(experiment: str) -> str:
    return "acts" if experiment.startswith("acts-") else "others"


def pages(
    found: Sequence[Mapping[str, Any]],
    left: Sequence[str],
    pictures: str,
    beds: Sequence[Mapping[str, Any]] = (),
    rankings: Sequence[Mapping[str, Any]] = (),
    *,
    stem: str = "explained",
) -> dict[str, str]:
    """Return the pages in Markdown by the name of their file: the table of all figures first, then each group.

    Parameters
    ----------
    found : Sequence[Mapping]
        Of each experiment what :func:`~bentpipe.explain.run.found_so_far` returns.
    left : Sequence[str]
        Experiments and runs that were left out, and why.
    pictures : str
        Where the charts lie, from the pages.
    beds, rankings : Sequence[Mapping]
        As for :func:`~bentpipe.explain.testbeds.fitted` and :func:`~bentpipe.explain.testbeds.ranked`.
    stem : str
        Name of the first page's file, without its suffix.
    """
    runs, whole = (sum(each[key] for each in found) for key in ("runs", "whole_runs"))
    minutes = sum(each["cpu_s"] for each in found) / 60
    parts = [
        _HEAD,
        summary_text(found),
        f"The page has {runs} runs, {whole} of them whole, and {minutes:.0f} minutes of processor time.",
        "",
        "<!-- ranges: begin -->",
        "",
        *_table(COLUMNS, [_in_words(row, found) for row in rows(found)]),
        "",
        "<!-- ranges: end -->",
        "",
        *(line for bed in beds for line in _bed(bed)),
        *_rankings(rankings),
    ]
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for each in found:
        if each["runs"]:
            groups.setdefault(_group(each["id"]), []).append(each)
    parts += _experiments(groups, stem)
    left = [*left, *(f"{each['id']}: no run within the budget" for each in found if not each["runs"])]
    if left:
        parts += ["## Left out", "", *(f"- {text}" for text in left), ""]
    whole = {f"{stem}.md": "\n".join([*parts, "Next: [published figures and ours](published.md).", ""])}
    for name, own in groups.items():
        head = [f"# Ranges: {_GROUPS[name]}", "", f"Open parameters and charts of [the ranges]({stem}.md).", ""]
        lines = [line for each in own for line in _experiment(each, pictures)]
        whole[f"{stem}-{name}.md"] = "\n".join([*head, *lines, f"Next: [ranges of published figures]({stem}.md).", ""])
    return whole


def _experiments(groups: Mapping[str, Sequence[Mapping[str, Any]]], stem: str) -> list[str]:
    """Return the list of experiments with links to their sections, and the anchors that the sections had here."""
    if not groups:
        return []
    rows = [
        (f'<span id="{each["id"]}"></span>[{each["id"]}]({stem}-{name}.md#{each["id"]})', each["title"])
        for name, own in groups.items()
        for each in own
    ]
    return ["## Experiments", "", *_table(("open parameters and chart", "subject"), rows), ""]


def _experiment(each: Mapping[str, Any], pictures: str) -> list[str]:
    seeds = "seed " + str(each["seeds"][0]) if len(each["seeds"]) == 1 else f"seeds {_seeds(each['seeds'])}"
    parts = [
        f"## {each['id']}",
        "",
        f"{each['title']}.",
        "",
        f"{each['runs']} runs, {each['whole_runs']} of them whole, {each['cpu_s']:.0f} s of processor time; {seeds};",
        f"bentpipe {', '.join(each['versions'])}. The command is `bentpipe explain {each['id']}`.",
        "",
    ]
    if each["figures"]:
        parts += [f"![Ranges of the published figures of {each['id']}]({pictures}{each['id']}.svg)", ""]
    parts += [
        *_table(
            ("open parameter", "key", "values", "why", "place"),
            [
                [key_in_words(p["key"]), f"`{p['key']}`", ", ".join(p["values"]), p["why"], p["source"]]
                for p in each["parameters"]
            ],
        ),
        "",
    ]
    missing: Mapping[str, Sequence[int]] = each["missing"]
    by_length: dict[tuple[str, str], list[str]] = {}
    by_stands: dict[tuple[str, str], bool] = {}
    for length in each["lengths"]:
        by_length.setdefault((length["time"], length["why"]), []).append(length["case"])
        by_stands[length["time"], length["why"]] = length["stands"]
    for (time, why), cases in by_length.items():
        of = f" ({', '.join(cases)})" if any(cases) and len(by_length) > 1 else ""
        stands = " They stand for whole runs." if by_stands[time, why] else " They only find the strongest parameters."
        parts += [f"Shortened runs{of} end after {time}.{stands} {why[0].upper()}{why[1:]}.", ""]
    left = [f"{name}: {count} of {planned} runs are outside the budget" for name, (count, planned) in missing.items()]
    if each["left_out"] or left:
        parts += ["Left out:", "", *(f"- {text}" for text in [*each["left_out"], *left]), ""]
    return parts


def _in_words(row: Sequence[str], found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a row of :func:`rows` with names in place of keys in its last two cells."""
    keys = {p["key"] for each in found if each["id"] == row[0] for p in each["parameters"]}
    names = re.compile("|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True)) or "$^")
    *others, verdict, strongest = row
    texts = (names.sub(lambda match: key_in_words(match[0]), text) for text in (verdict, strongest.replace(", ", "; ")))
    return [*others, *texts]


def _bed(bed: Mapping[str, Any]) -> list[str]:
    """Return the joint set of a testbed: the choice, errors of each row, and the next best combinations."""
    errors = {name: f"{100 * value:.1f} %" for name, value in bed["errors"].items()}
    own = "the entries' own settings"
    return [
        f"## A plausible testbed: {bed['name']}",
        "",
        f"One combination of settings for {bed['title']}. It is a plausible testbed, not a proof.",
        f"{bed['combinations']} of {bed['planned']} combinations have whole runs of {len(bed['rows'])} public rows.",
        "The error is the mean of |ours / measured - 1|. Left one out: the other rows choose, and the row is compared.",
        f"The combination with the smallest error is {_values(bed['best']) or own}.",
        f"{bed['same_choice']} of {len(bed['rows'])} choices without one row are the same.",
        "",
        "| settings | mean error |",
        "| --- | --- |",
        f"| today's settings | {errors['today']} |",
        f"| the fitted combination | {errors['fitted']} |",
        f"| the combination that the other rows choose | {errors['left_out']} |",
        "",
        *_table(
            ("experiment", "figure", "unit", "measured", "predicted by the authors", "today", "fitted", "left one out"),
            [
                [row["experiment"], row["name"], row["unit"], figure_text(row["measured"]), _error(row, "predicted")]
                + [_error(row, name) for name in ("today", "fitted", "left_out")]
                for row in bed["rows"]
            ],
        ),
        "",
        "| combination | mean error |",
        "| --- | --- |",
        *(f"| {_values(rank['values']) or own} | {100 * rank['error']:.1f} % |" for rank in bed["ranks"]),
        "",
    ]


def _rankings(rankings: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rankings:
        return []
    parts = ["## Rankings over seeds", "", "Means with 95 % intervals, Mb/s.", ""]
    body = []
    for each in rankings:
        of = f"{each['seeds']} seeds, runs of {each['shortened']}"
        ours = ", ".join(f"{c['case']} {figure_text(c['mean'])} ± {figure_text(c['half'])}" for c in each["cases"])
        body.append([each["name"], each["settings"], of, ours, "; ".join(each["steps"])])
    return [*parts, *_table(("ranking", "settings", "runs", "ours", "steps"), body), ""]


def _runs(count: int, kind: str) -> str:
    return f"{count} {kind if count != 1 else kind.replace('runs', 'run')}"


def _error(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    return "-" if value is None else f"{figure_text(value)} ({100 * (value / row['measured'] - 1):+.0f} %)"


def _values(values: Mapping[str, str]) -> str:
    return ", ".join(f"`{key} = {value}`" for key, value in values.items())


def _seeds(seeds: Sequence[int]) -> str:
    from bentpipe.sweeps.grid import seeds_text

    return seeds_text(seeds)


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    return lines + [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in body]
