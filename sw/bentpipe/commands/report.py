"""``bentpipe report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe.commands.command import Command, console, json_option, plugin_option, print_json, print_report_path

if TYPE_CHECKING:
    from bentpipe.results.folder import RunFolder

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    plugin_option(parser)
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of a run, of cases or of a sweep")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.report.cases import print_cases
    from bentpipe.results.folder import RunFolder, is_cases, is_sweep, read_run
    from bentpipe.results.tables import print_run
    from bentpipe.sweeps.show import print_any

    out = console()
    with RunFolder.reopen(given.folder) as folder:
        if is_sweep(folder.path):
            summary = _report_sweep(folder)
            if not given.json:
                print_any(out, summary)
        elif is_cases(folder.path):
            summary = _report_cases(folder)
            if not given.json:
                print_cases(out, summary)
        else:
            summary = _report_one(folder)
            if not given.json:
                print_run(out, summary, read_run(folder.path).flows)
    if given.json:
        return print_json({**summary, "folder": str(folder.path)})
    print_report_path(out, folder.path)
    return 0


def _report_sweep(folder: RunFolder) -> dict[str, Any]:
    """Write the reports of a sweep's runs, then its own."""
    from bentpipe.results.folder import RUNS, RunFolder
    from bentpipe.sweeps.run import sum_up_again
    from bentpipe.sweeps.work import is_done

    for path in sorted((folder.path / RUNS).iterdir()):
        if is_done(path):
            with RunFolder.reopen(path) as run:
                _report_one(run, plots=False)
    return sum_up_again(folder)


def _report_one(folder: RunFolder, plots: bool = True) -> dict[str, Any]:
    from bentpipe.report.places import around
    from bentpipe.report.run import make_report
    from bentpipe.results.folder import read_run

    result = read_run(folder.path)
    folder.draw(lambda aside: make_report(aside, result, around(folder.path, result.summary), plots))
    return result.summary


def _report_cases(folder: RunFolder) -> dict[str, Any]:
    from bentpipe.report.cases import make_cases_report, sum_up_cases
    from bentpipe.results.folder import RunFolder, case_paths, read_above

    head = read_above(folder.path)
    summaries = []
    for path in case_paths(folder.path):
        if (path / "result.json").is_file():
            with RunFolder.reopen(path) as case:
                summaries.append(_report_one(case))
    whole = sum_up_cases(head, summaries)
    folder.put(whole)
    folder.draw(lambda aside: make_cases_report(aside, whole))
    return whole


COMMAND = Command("report", "Create the plots and report of a run folder or sweep again.", _run, _arguments)
