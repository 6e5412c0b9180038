"""The pictures of the catalogue's page: of real runs, kept in ``_static/catalogue`` with what each is of.

``make docs-figures`` runs the catalogue (half an hour to an hour) and takes them from there;
``python docs/figures.py DIR…`` from any folders of runs. A run is taken if it is done and nothing was set.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "INDEX", "caption", "known", "take"]

FOLDER = Path(__file__).parent / "_static" / "catalogue"
INDEX = FOLDER / "figures.json"
"""Of each experiment: ``command``, ``simulated`` (s), ``shortened``, ``parameters`` (a hash), ``bentpipe``; or a
``reason`` why it has no picture."""

_BEST = ("splitting", "sequence", "histograms", "throughput", "queues-drops", "overview")
"""Which plot of a run is its picture: the first that it has."""

_NOT_PARAMETERS = ("published", "theory", "expect", "open")
_TEXTS = ("title", "description", "paper", "figure")


def known() -> dict[str, dict[str, Any]]:
    """What ``figures.json`` says."""
    return json.loads(INDEX.read_text(encoding="utf-8")) if INDEX.is_file() else {}


def parameters(name: str) -> str:
    """The hash of an experiment's parameters as they are now."""
    from bentpipe.experiment.document.catalogue import find, read_extended

    return _hash(read_extended(find(name))[0])


def _hash(document: Mapping[str, Any]) -> str:
    left = {key: value for key, value in document.items() if key not in _NOT_PARAMETERS}
    left["experiment"] = {key: value for key, value in left["experiment"].items() if key not in _TEXTS}
    return hashlib.sha256(json.dumps(left, sort_keys=True, default=str).encode()).hexdigest()[:16]


def caption(name: str, title: str, entry: Mapping[str, Any]) -> str:
    """Return a picture with its source in Markdown, or the reason why there is none."""
    if "reason" in entry:
        return f"*No picture: {entry['reason']}.*\n"
    length = "shortened to at most" if entry["shortened"] else "complete,"
    caption = (
        f"From `{entry['command']}`, {length} {entry['simulated']:g} s simulated, with bentpipe {entry['bentpipe']}"
    )
    changed = "" if entry["parameters"] == parameters(name) else "; its parameters have changed since"
    return f"![{title}: plot of a run](_static/catalogue/{name}.svg)\n\n*{caption}{changed}.*\n"


def take(folders: list[Path]) -> Iterator[str]:
    """Draw what is in folders of runs; yields what was made of each."""
    entries = known()
    for above in folders:
        for folder in sorted({file.parent for file in above.rglob("result.json")}):
            yield from _one(folder, entries)
    INDEX.write_text(json.dumps(dict(sorted(entries.items())), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _one(folder: Path, entries: dict[str, dict[str, Any]]) -> Iterator[str]:
    from bentpipe.errors import BentpipeError
    from bentpipe.experiment.document.catalogue import catalogue
    from bentpipe.experiment.load import load_cases
    from bentpipe.experiment.run.run import cases_head
    from bentpipe.report.cases import sum_up_cases
    from bentpipe.results.folder import read_above

    try:
        s = read_above(folder)
    except BentpipeError:  # of another schema
        return
    kind = s.get("kind")
    if kind == "sweep" and not s["settings"] and not s["axes"]:  # of the catalogue, or over seeds
        for name in dict.fromkeys(run["experiment"] for run in s["runs"] if run["case"]):
            now = load_cases(name)
            runs = [folder / r["folder"] for r in s["runs"] if (r["experiment"], r["seed"]) == (name, now[0].seed)]
            if all((run / "result.json").is_file() for run in runs):
                summaries = [read_above(run) for run in runs]
                whole = sum_up_cases(cases_head(now, (), s["versions"]), summaries)
                yield from _taken(folder / name, whole, runs, entries)
        return
    if s["id"] not in catalogue() or kind not in (None, "cases") or (s.get("case") and kind is None):
        return
    runs = [folder / case["folder"] for case in s["cases"]] if kind else [folder]
    yield from _taken(folder, s, runs, entries)


def _taken(folder: Path, s: dict[str, Any], folders: list[Path], entries: dict[str, dict[str, Any]]) -> Iterator[str]:
    from bentpipe.experiment.load import load_cases
    from bentpipe.plots.style import styled
    from bentpipe.report.repeat import repeat_command
    from bentpipe.results.folder import read_above
    from bentpipe.results.splitting import ratio_of

    name, kind = s["id"], s.get("kind")
    if s["status"] != "done" or s["settings"] or s.get("file", name) != name:
        yield f"{folder}: not taken: {s['status']}, {' '.join(s['settings'])}"
        return
    runs = [read_above(each) for each in folders]
    now = load_cases(name)
    if kind and [case["name"] for case in s["cases"]] != [experiment.case for experiment in now]:
        yield f"{folder}: not taken: not all cases"
        return
    for run, experiment in zip(runs, now, strict=True):
        if _hash(run["configuration"]) != _hash(_at_length(experiment.document, run["configuration"])):
            yield f"{folder}: not taken: the experiment is another one now"
            return
    with styled():
        if all(run.get("splitting") for run in runs):  # of the rarest losses; all cases carry the same
            rarest = min(range(len(runs)), key=lambda k: ratio_of(runs[k]["splitting"])[1]["value"])
            figure = _of_run(folders[rarest])
        else:
            figure = _of_cases(s) if kind else _of_run(folder)
        if figure is None:
            yield f"{folder}: there is nothing to draw"
            return
        octets = _save(figure, FOLDER / f"{name}.svg")
    short = any(run["shortened"] for run in runs)
    time = {"time": runs[0]["time"]} if short else {"time": None}  # one that ended before is the whole one
    entries[name] = {
        "command": repeat_command({**s, "file": name, **time}),
        "simulated": round(max(run["time"]["simulated_s"] for run in runs), 3),
        "shortened": short,
        "parameters": parameters(name),
        "bentpipe": s["versions"]["bentpipe"],
    }
    yield f"{name}: {octets} octets, of {entries[name]['command']}"


def _at_length(document: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the other one's duration, which a shorter run may have changed."""
    times = {key: other["experiment"][key] for key in ("duration",) if key in other["experiment"]}
    return {**document, "experiment": {**document["experiment"], **times}}


def _of_cases(summary: dict[str, Any]) -> Any | None:
    from bentpipe.plots.cases import case_figure

    return case_figure(summary)


def _of_run(folder: Path) -> Any | None:
    from bentpipe.plots.figures import figures
    from bentpipe.results.folder import read_run

    drawn = dict(figures(read_run(folder)))
    return next((drawn[name] for name in _BEST if name in drawn), None)


def _save(figure: Any, file: Path) -> int:
    """As SVG, small: texts as texts, two decimals of a point."""
    import matplotlib

    file.parent.mkdir(exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)
    text = re.sub(r"\n\s*", "\n", text)
    text = _MARKS.sub(_together, text)
    file.write_text(text, encoding="utf-8")
    return len(text)


_MARKS = re.compile(
    r'<use xlink:href="(#\w+)" x="[-\d.]+" y="[-\d.]+" style="([^"]*)"/>\n'
    r'(?:<use xlink:href="\1" x="[-\d.]+" y="[-\d.]+" style="\2"/>\n)+'
)
"""Marks of one form and colour."""


def _together(match: re.Match[str]) -> str:
    """Marks with their style said once."""
    style = f' style="{match[2]}"'
    return f"<g{style}>\n{match[0].replace(style, '')}</g>\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="run folders, or what has some in it")
    for line in take(parser.parse_args().folders):
        print(line)
    without = sorted(set(_catalogue()) - set(known()))
    if without:
        print(f"Without a picture or a reason: {', '.join(without)}", file=sys.stderr)
    return bool(without)


def _catalogue() -> list[str]:
    from bentpipe.experiment.document.catalogue import catalogue

    return [*catalogue()]


if __name__ == "__main__":
    sys.exit(main())
