"""The runs in a folder: what each came to, as pages and as what changes on them."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from bentpipe.attach.control import SOCKET
from bentpipe.errors import BentpipeError
from bentpipe.report.figures import figures_of
from bentpipe.report.html import link, page, section
from bentpipe.report.run import run_parts
from bentpipe.report.verdict import Verdict, run_verdict, several_verdict, sweep_verdict
from bentpipe.results.folder import is_held, read_above, read_so_far
from bentpipe.serve.api import PREFIX

__all__ = ["Entry", "Runs", "find_runs", "index_page", "index_rows", "live_news", "live_page", "sessions_of"]

_DEEP: Final = 3
"""So many folders down runs are looked for."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A run folder: its path from the folder that is served ("." for that itself), when it last changed, its summary;
    the verdict, and the path of the run that goes on, if one does."""

    path: str
    changed_ns: int
    summary: dict[str, Any]
    verdict: Verdict
    goes_on: str | None


class Runs:
    """The run folders below a folder; what was read of one is kept until it changes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[Path, tuple[int, Entry]] = {}

    def entries(self) -> list[Entry]:
        """Return all readable runs, the newest first."""
        found: dict[Path, tuple[int, Entry]] = {}
        for path in find_runs(self.root):
            try:
                changed = (path / "result.json").stat().st_mtime_ns
                known = self._known.get(path)
                if known and known[0] == changed and known[1].summary["status"] != "running":
                    found[path] = known
                else:
                    found[path] = changed, self._entry(path, changed)
            except (BentpipeError, OSError, KeyError, TypeError):  # another schema's, or just going: not to be shown
                continue
        self._known = found
        return sorted((entry for _, entry in found.values()), key=lambda entry: -entry.changed_ns)

    def _entry(self, path: Path, changed: int) -> Entry:
        summary = read_above(path)
        name = path.relative_to(self.root).as_posix()
        kind, goes_on = summary.get("kind"), None
        if kind == "cases":
            verdict = several_verdict(summary)
            for case in path.iterdir() if summary["status"] == "running" else ():
                if (case / "result.json").is_file() and read_above(case)["status"] == "running" and is_held(case):
                    goes_on = case.relative_to(self.root).as_posix()
        elif kind == "sweep":
            verdict = sweep_verdict(summary)
        else:
            verdict = run_verdict(summary)
            goes_on = name if summary["status"] == "running" and is_held(path) else None
        if summary["status"] == "running" and not is_held(path):
            what = f"the process was killed; `bentpipe report {path}` repairs the folder"
            verdict = Verdict("bad", "Killed", f"{what}.")
        keep = {key: summary.get(key) for key in ("id", "title", "status", "seed", "case")}
        return Entry(name, changed, keep, verdict, goes_on)


def find_runs(folder: Path, deep: int = _DEEP) -> Iterator[Path]:
    """Yield the run folders below a folder, or itself; not those inside a run folder, nor behind a link."""
    if (folder / "result.json").is_file():
        yield folder
    elif deep:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                yield from find_runs(path, deep - 1)


def sessions_of(runs: Runs) -> list[str]:
    """Return the paths of the run folders of running sessions with real hosts."""
    return [
        entry.goes_on
        for entry in runs.entries()
        if entry.goes_on is not None and (runs.root / entry.goes_on / ".running" / SOCKET).is_socket()
    ]


def _at(path: str, rest: str) -> str:
    return "/" + "/".join([rest.split("/")[0], *([quote(path)] if path != "." else []), *rest.split("/")[1:]])


def index_page(runs: Runs) -> str:
    """Return the page with the list of runs, which updates itself."""
    head = [f'<p class="sub">{html.escape(str(runs.root))}</p>', "<h1>Runs</h1>", '<div id="verdict"></div>']
    body = f'<div id="runs-now">{index_rows(runs)}</div>'
    return page("bentpipe: runs", head, [f'<div data-live="/list">{body}</div>'], connect=True)


def index_rows(runs: Runs) -> str:
    """Return the table of runs."""
    entries = runs.entries()
    if not entries:
        return "<p>No runs yet.</p>"
    rows = []
    for entry in entries:
        s, verdict = entry.summary, entry.verdict
        folder = runs.root / entry.path
        links = []
        if entry.goes_on is not None:
            links.append(link("live", _at(entry.goes_on, "live/")))
        if (folder / "report.html").is_file():
            so_far = " so far" if verdict.word == "Running" else ""
            links.append(link(f"report{so_far}", _at(entry.path, "runs/report.html")))
        state = f'<span class="state {verdict.level}">{html.escape(verdict.word)}</span>'
        when = datetime.fromtimestamp(entry.changed_ns / 1e9, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        rows.append(
            f'<tr><th scope="row" class="l">{html.escape(entry.path)}</th>'
            f'<td class="l id">{html.escape(s["id"])}</td><td class="l">{state}</td>'
            f'<td class="l said-of">{html.escape(verdict.text)}</td><td class="l when">{when}</td>'
            f'<td class="l pages">{" · ".join(links)}</td></tr>'
        )
    names = ("folder", "experiment", "status", "verdict", "changed", "pages")
    heads = "".join(f'<th scope="col" class="l">{name}</th>' for name in names)
    return (
        '<div class="wide" role="region" aria-label="Runs" tabindex="0"><table class="runs">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def live_page(path: str, summary: dict[str, Any]) -> str:
    """Return the page of a run in progress: empty places that updates fill."""
    head = [
        f'<nav class="between" aria-label="Runs">{link("↑ All runs", "/", "up")}</nav>',
        f'<p class="sub">{html.escape(path)}</p>',
        f"<h1>{html.escape(summary['title'])}</h1>",
        '<div id="verdict"></div>',
        '<div id="report-now"></div>',
        '<div id="facts"></div>',
    ]
    news, attached = html.escape(_at(path, "news")), "attached" in summary
    sections = [
        section("Settings", "settings", _controls(path)) if attached else "",
        section("Over time", "over-time", f'<div class="figures" data-figures data-live="{news}"></div>'),
        section("Real hosts", "real-hosts", '<div id="attached-now"></div>') if attached else "",
        section("Network", "network", '<div id="network-now"></div>'),
        section("Flows", "flows", '<div id="flows-now"></div>' if summary.get("flows") or not attached else ""),
        section("PDUs lost, cells dropped", "losses", '<div id="losses-now"></div>'),
    ]
    return page(f"{summary['id']}: live", head, sections, connect=True)


@cache
def _script() -> str:
    return (files("bentpipe.serve") / "controls.js").read_text(encoding="utf-8")


def _controls(path: str) -> str:
    """Return the place of a session's controls, and their contents."""
    to = html.escape("/" + "/".join((PREFIX, "sessions", quote(path))))
    return f'<div id="controls" data-session="{to}"></div><p id="told" role="status"></p><script>{_script()}</script>'


def live_news(folder: Path, path: str) -> dict[str, Any]:
    """Return the present content of a run's page: its parts and figures; ``over`` if nothing will follow."""
    result = read_so_far(folder)
    over = result.summary["status"] != "running"
    whole = (folder / "report.html").is_file() and over
    report = f"<p>The run has ended: {link('its report', _at(path, 'runs/report.html'))}.</p>" if whole else ""
    held = is_held(folder)
    killed = not over and not held
    parts = {**run_parts(result), "report-now": report}
    if killed:
        parts["report-now"] = (
            f"<p>The process was killed; run <code>bentpipe report {html.escape(str(folder))}</code>.</p>"
        )
    return {"parts": parts, "figures": figures_of(result), "over": whole or not held}
