"""``bentpipe explain``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe.commands.command import Command, console, json_option, print_json
from bentpipe.errors import BentpipeError
from bentpipe.signals import exit_code

if TYPE_CHECKING:
    from bentpipe.explain.run import Options
    from bentpipe.explain.store import Store
    from bentpipe.explain.testbeds import Testbed

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument("names", nargs="*", metavar="ID", help="experiments with [[open]] parameters")
    parser.add_argument("--all", action="store_true", help="all experiments of the catalogue with open parameters")
    parser.add_argument(
        "--testbed",
        action="append",
        metavar="NAME",
        help="also find joint settings of a testbed, for example acts (default with --all: every testbed)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/explain"),
        metavar="DIR",
        help="folder for the figures of all runs, charts and the page (default: runs/explain); runs done before count",
    )
    parser.add_argument("--seeds", metavar="A-B,…", help="seeds of the whole runs (default: the experiment's own)")
    parser.add_argument(
        "--samples", type=int, default=0, metavar="N", help="also N whole runs of a Latin hypercube over all parameters"
    )
    parser.add_argument(
        "--screening",
        action="store_true",
        help="only the runs that vary each parameter alone, shortened where possible",
    )
    parser.add_argument(
        "--budget",
        metavar="TIME",
        help="begin no further run when the runs have taken this much processor time, for example '90 min' or '6 h'; "
        "'0 s' only makes the page",
    )
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the first page here instead, other pages and charts beside it"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="number of local processes (default: one per processor); 1: this process",
    )
    where.add_argument("--cluster", metavar="tcp://…", help="address of a running Dask cluster")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.explain.measure import Budget, Runner
    from bentpipe.explain.plan import study
    from bentpipe.explain.run import Options, do_runs
    from bentpipe.explain.store import Store
    from bentpipe.explain.testbeds import testbeds
    from bentpipe.progress import Counted
    from bentpipe.sweeps.grid import parse_seeds

    if bool(given.names) == given.all:
        raise BentpipeError("explain: name experiments, or give --all")
    if given.samples < 0:
        raise BentpipeError(f"--samples {given.samples}: expected a number from 0 on")
    if given.workers is not None and given.workers < 1:
        raise BentpipeError(f"--workers {given.workers}: expected a number from 1 on")
    seeds = parse_seeds(given.seeds) if given.seeds is not None else ()
    budget = Budget(_seconds(given.budget) if given.budget else None)
    beds = testbeds(None if given.all and given.testbed is None else given.testbed or ())
    names, left = _names(given.names) if given.names else _all(beds)
    stores = {name: Store(study(name), given.out) for name in names}
    options = Options(seeds, given.samples, given.screening)
    try:
        with Counted(sys.stderr.isatty() and not given.json) as bar:
            runner = Runner(budget, given.workers, given.cluster, bar.update)
            left += do_runs(stores, beds, runner, options)
    except KeyboardInterrupt:
        print(f"bentpipe: interrupted; the same command goes on from {given.out}", file=sys.stderr)
        return exit_code()
    return _tell(given, stores, beds, options, left)


def _tell(
    given: argparse.Namespace,
    stores: Mapping[str, Store],
    beds: list[Testbed],
    options: Options,
    left: list[str],
) -> int:
    """Write charts and pages, and print the table."""
    from bentpipe.explain.page import COLUMNS, pages, rows, summary_text
    from bentpipe.explain.run import found_so_far
    from bentpipe.explain.testbeds import fitted, ranked
    from bentpipe.plots.ranges import write_ranges
    from bentpipe.results.tables import print_table

    found = [found_so_far(store, options) for store in stores.values()]
    joint = [bed for bed in (fitted(bed, stores) for bed in beds) if bed is not None]
    rankings = [ranking for bed in beds for ranking in ranked(bed, stores)]
    path, pictures = (given.page, "_static/explained/") if given.page else (given.out / "explained.md", "")
    folder = path.parent / pictures
    folder.mkdir(parents=True, exist_ok=True)
    for each in found:
        if each["figures"]:
            write_ranges(folder, each["id"], each["figures"])
    for name, text in pages(found, left, pictures, joint, rankings, stem=path.stem).items():
        path.with_name(name).write_text(text, encoding="utf-8")
    if given.json:
        return print_json({"experiments": found, "testbeds": joint, "rankings": rankings, "left_out": left})
    out = console()
    print_table(out, "Ranges of published figures", COLUMNS, rows(found), 2)
    out.print()
    out.print(summary_text(found), highlight=False)
    for text in _left_out(found, left):
        out.print(f"Left out: {text}", highlight=False, soft_wrap=True)
    out.print(f"Page: {path}", highlight=False, soft_wrap=True)
    return 0


def _left_out(found: list[dict[str, Any]], left: list[str]) -> list[str]:
    return left + [
        f"{each['id']}: {name}: {count} of {planned} runs"
        for each in found
        for name, (count, planned) in each["missing"].items()
    ]


def _seconds(text: str) -> float:
    from bentpipe_hdl.units import parse_time

    hours = text.strip().removesuffix("h") if text.strip().endswith("h") else None
    try:
        found = float(hours) * 3600 if hours else parse_time(text) / 1e12
    except ValueError as error:
        raise BentpipeError(f"--budget {text}: {error}") from None
    if not 0 <= found < float("inf"):
        raise BentpipeError(f"--budget {text}: expected a time from 0 on")
    return found


def _names(given: list[str]) -> tuple[list[str], list[str]]:
    twice = next((name for n, name in enumerate(given) if name in given[:n]), None)
    if twice:
        raise BentpipeError(f"explain: {twice} is given twice")
    return given, []


def _all(beds: list[Testbed]) -> tuple[list[str], list[str]]:
    """Return the experiments of the catalogue that can be explained, testbeds first, and why others with published
    figures cannot."""
    from bentpipe.experiment.document.catalogue import catalogue, read_extended

    found, left = [], []
    for name, path in catalogue().items():
        document, _ = read_extended(path)
        published = document.get("published", ())
        rows = [row for row in published if "measured" in row or "predicted" in row]
        if not rows:
            if document["experiment"].get("paper"):
                left.append(f"{name}: " + ("its figures are withheld" if published else "has no published figure"))
            continue
        if all(row.get("given_back") for row in rows):
            left.append(f"{name}: all its published figures are inputs")
        elif document.get("open"):
            found.append(name)
        else:
            left.append(f"{name}: has no open parameters")
    first = [*dict.fromkeys(row[0] for bed in beds for row in bed.rows)]
    return [*(name for name in first if name in found), *(name for name in found if name not in first)], left


COMMAND = Command(
    "explain",
    "Vary an experiment's open parameters: is the published figure inside the range, and which parameters decide?",
    _run,
    _arguments,
    prepares_hosts=True,
)
