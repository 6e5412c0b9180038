"""``bentpipe explain``."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from bentpipe.commands.command import Command, console, json_option, print_json
from bentpipe.errors import BentpipeError
from bentpipe.signals import exit_code

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument("names", nargs="*", metavar="ID", help="experiments with [[open]] parameters")
    parser.add_argument("--all", action="store_true", help="all experiments of the catalogue with open parameters")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/explain"),
        metavar="DIR",
        help="folder for a folder of each experiment and the page (default: runs/explain); what is done there stays",
    )
    parser.add_argument("--seeds", metavar="A-B,…", help="seeds of the whole runs (default: the experiment's own)")
    parser.add_argument(
        "--samples", type=int, default=0, metavar="N", help="also N whole runs of a Latin hypercube over all parameters"
    )
    parser.add_argument(
        "--most",
        metavar="TIME",
        help="begin no further experiment when the runs have taken this long together, for example '6 h' or '90 min'",
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the page here, its charts beside it")
    parser.add_argument("--workers", type=int, metavar="N", help="number of local processes")
    parser.add_argument("--cluster", metavar="tcp://…", help="address of a running Dask cluster")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.explain.page import COLUMNS, page, rows, summary_text
    from bentpipe.explain.plan import study
    from bentpipe.explain.run import Options, explain
    from bentpipe.progress import Counted
    from bentpipe.results.tables import print_table
    from bentpipe.sweeps.grid import parse_seeds

    if bool(given.names) == given.all:
        raise BentpipeError("explain: name experiments, or give --all")
    if given.samples < 0:
        raise BentpipeError(f"--samples {given.samples}: expected a number from 0 on")
    seeds = parse_seeds(given.seeds) if given.seeds is not None else ()
    most_s = _seconds(given.most) if given.most else None
    names, left = _names(given.names) if given.names else _all()
    found: list[dict[str, Any]] = []
    try:
        for number, name in enumerate(names):
            if most_s is not None and sum(each["runs_s"] for each in found) >= most_s:
                left += [f"{other}: the time was up ({given.most})" for other in names[number:]]
                break
            with Counted(sys.stderr.isatty() and not given.json) as bar:
                options = Options(seeds, given.samples, given.workers, given.cluster, bar.update)
                wanted = study(name)
                found.append(explain(wanted, given.out / wanted.id, options))
    except KeyboardInterrupt:
        print(f"bentpipe: interrupted; the same command goes on from {given.out}", file=sys.stderr)
        return exit_code()
    (given.out / "explained.md").write_text(page(found, left, _charts(found, given.out, given.out)), encoding="utf-8")
    if given.page:
        given.page.parent.mkdir(parents=True, exist_ok=True)
        beside = given.page.parent / "_static" / "explained"
        beside.mkdir(parents=True, exist_ok=True)
        for each in found:
            shutil.copy(given.out / each["id"] / f"{each['id']}.svg", beside)
        given.page.write_text(page(found, left, "_static/explained/"), encoding="utf-8")
    if given.json:
        return print_json({"experiments": found, "left_out": left})
    out = console()
    print_table(out, "Ranges of published figures", COLUMNS, rows(found), 2)
    out.print()
    out.print(summary_text(found), highlight=False)
    for text in left:
        out.print(f"Left out: {text}", highlight=False, soft_wrap=True)
    out.print(f"Page: {given.page or given.out / 'explained.md'}", highlight=False, soft_wrap=True)
    return 0


def _charts(found: list[dict[str, Any]], out: Path, folder: Path) -> str:
    """Copy the charts beside the page of the folder; where they lie from it."""
    for each in found:
        shutil.copy(out / each["id"] / f"{each['id']}.svg", folder)
    return ""


def _seconds(text: str) -> float:
    from bentpipe_hdl.units import parse_time

    hours = text.strip().removesuffix("h").strip() if text.strip().endswith("h") else None
    try:
        return float(hours) * 3600 if hours else parse_time(text) / 1e12
    except ValueError as error:
        raise BentpipeError(f"--most {text}: {error}") from None


def _names(given: list[str]) -> tuple[list[str], list[str]]:
    twice = next((name for n, name in enumerate(given) if name in given[:n]), None)
    if twice:
        raise BentpipeError(f"explain: {twice} is given twice")
    return given, []


def _all() -> tuple[list[str], list[str]]:
    """Return the experiments of the catalogue that can be explained, and why others with published figures can't."""
    from bentpipe.experiment.document.catalogue import catalogue, read_extended

    found, left = [], []
    for name, path in catalogue().items():
        document, _ = read_extended(path)
        rows = [row for row in document.get("published", ()) if "measured" in row or "predicted" in row]
        if not rows:
            continue
        if all(row.get("given_back") for row in rows):
            left.append(f"{name}: all its published figures are inputs")
        elif document.get("open"):
            found.append(name)
        else:
            left.append(f"{name}: has no open parameters")
    return found, left


COMMAND = Command(
    "explain",
    "Vary an experiment's open parameters: is the published figure inside the range, and which parameters decide?",
    _run,
    _arguments,
    prepares_hosts=True,
)
