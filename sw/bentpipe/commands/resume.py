"""``bentpipe resume``."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

from bentpipe.commands.command import Command, choose_threads, json_option, junit_option, threads_option
from bentpipe.commands.run import begins, conclude, print_all, print_one, shows

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of an interrupted or killed run")
    parser.add_argument(
        "--no-plots",
        dest="plots",
        action="store_false",
        default=None,
        help="do not write plot files (already so if the run began with --no-plots)",
    )
    junit_option(parser)
    threads_option(parser)


def _resume(given: argparse.Namespace) -> int:
    from bentpipe.experiment.run.perform import resume, resume_cases
    from bentpipe.results.folder import RunFolder, is_cases

    os.environ["BENTPIPE_ENGINE"] = "native"  # whose state it is
    choose_threads(given)
    with RunFolder.resume(given.folder) as folder:
        if is_cases(folder.path):
            summary = resume_cases(folder, show_progress=shows(given), plots=given.plots, begins=partial(begins, given))
            print_all(given, summary, folder)
        else:
            result = resume(folder, show_progress=shows(given), plots=given.plots)
            print_one(given, result, folder)
            summary = result.summary
    return conclude(given, summary, folder)


COMMAND = Command("resume", "Continue an interrupted run.", _resume, _arguments, prepares_hosts=True)
