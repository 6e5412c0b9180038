"""The page docs/coverage.md, of what was measured last: ``python.json`` and ``rtl.json``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from cover.python import Share, by_package, files

__all__ = ["PAGE", "ask", "keep", "page"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "coverage.md"
REASONS = Path(__file__).with_name("reasons.toml")
LEAST = 80.0
"""Percent; what is below has to have a reason."""

HEAD = """# Coverage

`make coverage` writes this page: what the default tests reach of Python, and what random traffic reaches of the RTL.
Each figure below {least:.0f} % is listed with a reason, or gets a test.
"""


def keep(folder: Path, name: str, date: str, command: str, points: dict[tuple[str, str], Share]) -> None:
    """Keep a case of the RTL beside those of before."""
    file = folder / "rtl.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    rows = [[module, kind, share.reached, share.all] for (module, kind), share in points.items()]
    kept[name] = {"date": date, "command": command, "points": rows}
    file.write_text(json.dumps(kept, indent=1) + "\n")


def ask(reasons: dict[str, str], name: str, missing: list[str]) -> str:
    """The reason why something is below; one that lacks is noted."""
    if name not in reasons:
        missing.append(name)
    return reasons.get(name, "**no reason given**")


def page(folder: Path, cases: Iterable[str]) -> tuple[str, list[str]]:
    """The text, and the names of what is below without a reason. ``cases`` are all that the RTL has."""
    reasons = tomllib.loads(REASONS.read_text())
    missing: list[str] = []
    parts = [HEAD.format(least=LEAST)]
    if (folder / "python.json").exists():
        parts.append("\n".join(_python(folder, reasons.get("python", {}), missing)))
    if (folder / "rtl.json").exists():
        parts.append("\n".join(_rtl(folder, reasons.get("rtl", {}), missing)))
    if lacking := _lacking(folder, cases):
        parts.append(f"Not measured yet: {'; '.join(lacking)}.\n")
    return "\n".join(parts), missing


def _lacking(folder: Path, cases: Iterable[str]) -> list[str]:
    file = folder / "rtl.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    python = [] if (folder / "python.json").exists() else ["the Python packages"]
    return [*python, *(name for name in cases if name not in kept)]


def _python(folder: Path, reasons: dict[str, str], missing: list[str]) -> Iterator[str]:
    shares = files(folder / "python.json")
    measured = json.loads((folder / "python.json").read_text())["meta"]
    yield "## Python: statements and branches\n"
    yield f"coverage.py {measured['version']}, {measured['timestamp'][:10]}, `python -m cover python` in `tb`.\n"
    yield "| package | reached | of |\n| --- | ---: | ---: |"
    for name, share in by_package(shares).items():
        yield f"| `{name}` | {share.percent:.1f} % | {share.all} |"
    yield f"| all | {sum(shares.values(), Share()).percent:.1f} % | {sum(shares.values(), Share()).all} |"
    below = {name: share for name, share in shares.items() if share.percent < LEAST}
    if below:
        yield f"\nFiles below {LEAST:.0f} %:\n\n| file | reached | reason |\n| --- | ---: | --- |"
        for name, share in sorted(below.items()):
            yield f"| `{name}` | {share.percent:.1f} % | {ask(reasons, name, missing)} |"
    yield ""


def _rtl(folder: Path, reasons: dict[str, str], missing: list[str]) -> Iterator[str]:
    yield "## RTL: lines and toggles\n"
    yield "Verilator's points in Amaranth's Verilog at 32 bits. Branches count as lines, edges of bits as toggles."
    yield "Left out: `if ($start)`, which starts each combinational block of that Verilog and is never true.\n"
    yield "| node, option | lines | toggles | date | command, in `tb` |\n| --- | ---: | ---: | --- | --- |"
    below: list[tuple[str, str, str, Share]] = []
    for name, case in json.loads((folder / "rtl.json").read_text()).items():
        total = {"line": Share(), "toggle": Share()}
        for module, kind, reached, most in case["points"]:
            share = Share(reached, most)
            total[kind] += share
            if share.percent < LEAST:
                below.append((name, module, kind, share))
        figures = " | ".join(f"{share.percent:.1f} % of {share.all}" for share in total.values())
        yield f"| {name} | {figures} | {case['date']} | `{case['command']}` |"
    if below:
        yield f"\nModules below {LEAST:.0f} %:\n\n| node, option | module | points | reached | reason |"
        yield "| --- | --- | --- | ---: | --- |"
        for name, module, kind, share in below:
            reason = ask(reasons, f"{module}, {kind}", missing)
            yield f"| {name} | `{module}` | {kind}s | {share.percent:.1f} % of {share.all} | {reason} |"
    yield ""
