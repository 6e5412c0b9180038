"""Reports of boards on which the emulator was seen: what a report has to have.

A report is what ``bentpipe board selftest --json`` prints, with the members of :data:`ADDED`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["ADDED", "main", "problems"]

ADDED: Final = {
    "board": "name of the board, as in `bentpipe board list`",
    "revision": "what is printed on the board",
    "by": "who has seen it",
    "date": "when, as YYYY-MM-DD",
    "loader": "version of openFPGALoader, or what else has loaded the bitstream",
    "sha256": "digest of the bitstream, as its manifest has it",
}
"""Members that a person adds to the output of the self-test, with their meaning."""
_CHECKS: Final = {"frames", "identification", "registers", "ticks", "traffic"}
"""Checks that each report has, whatever the plan."""


def problems(report: Any) -> list[str]:
    """Return what a report lacks, or what shows that it is not one of a board; nothing: it is good."""
    if not isinstance(report, dict):
        return ["is no object"]
    found = [f"has no {name}: {meaning}" for name, meaning in ADDED.items() if not str(report.get(name) or "").strip()]
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", str(report.get("date", ""))):
        found.append("its date is not YYYY-MM-DD")
    if not re.fullmatch(r"[0-9a-f]{64}", str(report.get("sha256", ""))):
        found.append("its sha256 is not one")
    target = str(report.get("target", ""))
    if not target.startswith(("board:/", "board:udp:")):
        found.append(f"its target is {target or 'missing'}: a simulated board is not seen on hardware")
    checks = report.get("checks")
    checks = [check for check in checks if isinstance(check, dict)] if isinstance(checks, list) else []
    names = {check.get("what") for check in checks}
    if missing := sorted(_CHECKS - names):
        found.append(f"lacks the checks {', '.join(missing)}")
    elif report.get("passed") is not all(check.get("passed") is not False for check in checks):
        found.append("passed is not what its checks say")
    if not isinstance(report.get("plan"), dict) or not report["plan"].get("gateware"):
        found.append("has no plan with the gateware of the board")
    return found


def main(files: list[str]) -> int:
    """Print the problems of reports; return 1 if there are any."""
    bad = 0
    for file in files:
        try:
            found = problems(json.loads(Path(file).read_text()))
        except (OSError, ValueError) as error:
            found = [f"cannot be read: {error}"]
        for problem in found:
            print(f"{file}: {problem}", file=sys.stderr)
        bad += bool(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
