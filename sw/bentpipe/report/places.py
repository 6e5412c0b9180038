"""What lies around a run folder that reports lead to: the cases before and after it, and the page above them."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe.results.folder import case_folder

__all__ = ["Around", "around"]


@dataclass(frozen=True, slots=True)
class Around:
    """Names of the whole, and of the cases before and after; None: there is none."""

    whole: str
    before: str | None
    after: str | None

    def nav(self) -> str:
        """Links to them."""
        parts = [f'<a href="../report.html" rel="up">↑ All cases of {html.escape(self.whole)}</a>']
        for name, sign, rel in ((self.before, "← {}", "prev"), (self.after, "{} →", "next")):
            if name is not None:
                text = html.escape(sign.format(name))
                parts.append(f'<a href="../{html.escape(case_folder(name))}/report.html" rel="{rel}">{text}</a>')
        return f'<nav class="between" aria-label="Cases">{"".join(parts)}</nav>'


def around(run: Path | None, summary: Mapping[str, Any]) -> Around | None:
    """What lies around the folder of a run; None if it is no case of several.

    The case after it is named if it has run, or is going to, for the run of all cases goes on.
    """
    if run is None or not summary.get("case"):
        return None
    try:
        above = json.loads((run.parent / "result.json").read_text(encoding="utf-8"))
        planned, name = above["planned"], summary["case"]["name"]
        at = planned.index(name)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    before = planned[at - 1] if at else None
    after = planned[at + 1] if at + 1 < len(planned) else None
    if after is not None and not (run.parent / case_folder(after) / "result.json").is_file():
        goes_on = above.get("status") == "running" and summary["status"] != "interrupted"
        after = after if goes_on else None
    return Around(above["id"], before, after)
