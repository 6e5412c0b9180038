"""The surroundings of a run folder to which reports link: the cases before and after it, and the page above them."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe.results.folder import CATALOGUE, RUNS, case_folder

__all__ = ["Around", "around", "in_sweep"]


@dataclass(frozen=True, slots=True)
class Around:
    """The neighbours of a run's page.

    ``above`` and ``page`` are the text and target of the link to the page above; ``before`` and ``after`` the names of
    the neighbouring cases, or None.
    """

    above: str
    page: str
    before: str | None = None
    after: str | None = None

    def nav(self) -> str:
        """Return the links to the neighbours and to the page above."""
        parts = [f'<a href="{html.escape(self.page)}" rel="up">↑ {html.escape(self.above)}</a>']
        for name, sign, rel in ((self.before, "← {}", "prev"), (self.after, "{} →", "next")):
            if name is not None:
                text = html.escape(sign.format(name))
                parts.append(f'<a href="../{html.escape(case_folder(name))}/report.html" rel="{rel}">{text}</a>')
        return f'<nav class="between" aria-label="Related pages">{"".join(parts)}</nav>'


def in_sweep(id: str) -> Around:
    """Return the page above a run of a sweep of this experiment, or of the catalogue."""
    return Around("The catalogue" if id == CATALOGUE else f"The sweep of {id}", "../../report.html")


def around(run: Path | None, summary: Mapping[str, Any]) -> Around | None:
    """Return the neighbours of a run folder; None if it is not one of several cases or of a sweep.

    The case after it is named if it has run, or is going to, for the run of all cases goes on.
    """
    if run is None:
        return None
    if run.parent.name == RUNS and (sweep := _above(run.parent.parent)).get("kind") == "sweep":
        return in_sweep(sweep["id"])
    if not summary.get("case"):
        return None
    try:
        above = _above(run.parent)
        planned, name = above["planned"], summary["case"]["name"]
        at = planned.index(name)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    before = planned[at - 1] if at else None
    after = planned[at + 1] if at + 1 < len(planned) else None
    if after is not None and not (run.parent / case_folder(after) / "result.json").is_file():
        goes_on = above.get("status") == "running" and summary["status"] != "interrupted"
        after = after if goes_on else None
    return Around(f"All cases of {above['id']}", "../report.html", before, after)


def _above(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
