"""``bentpipe run``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bentpipe.commands.command import (
    Command,
    case_option,
    choose_target,
    choose_threads,
    claim,
    console,
    engine_option,
    json_option,
    pcap_option,
    print_json,
    print_report_path,
    run_folder_options,
    settings_options,
    take_options,
    target_option,
    threads_option,
)
from bentpipe.commands.sweep import do_sweep, judge, plan_given, sweep_options
from bentpipe.errors import BentpipeError, ExperimentFailed
from bentpipe.signals import exit_code

if TYPE_CHECKING:
    from bentpipe.experiment.resolve.specs import Experiment
    from bentpipe.results.folder import RunFolder
    from bentpipe.results.schema import RunResult

__all__ = ["COMMAND", "begins", "conclude", "print_all", "print_one", "shows"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    settings_options(parser)
    run_folder_options(parser, "runs/NAME-1, -2, …")
    case_option(parser)
    pcap_option(parser)
    engine_option(parser)
    threads_option(parser)
    target_option(parser)
    sweep_options(parser)


def _run(given: argparse.Namespace) -> int:
    from bentpipe.experiment.load import load_cases

    duration = take_options(given)
    choose_threads(given)
    for option in ("seeds", "precision"):
        if given.target and getattr(given, option) is not None:
            raise BentpipeError(f"--target and --{option}: a board runs one experiment at a time")
        if given.board_ticks and getattr(given, option) is not None:
            raise BentpipeError(f"--board-ticks and --{option}: it is for one run, beside one on a board by itself")
    choose_target(given)
    if given.seeds is not None or given.precision:
        return _run_seeds(given, duration)
    for option in ("workers", "cluster", "dashboard", "metrics"):
        if getattr(given, option):
            raise BentpipeError(f"--{option.removesuffix('s') if option == 'metrics' else option} is for --seeds alone")
    experiments = load_cases(
        given.name, given.settings, seed=given.seed, duration_ps=duration, quick=given.quick, only=given.cases
    )
    if given.target:
        from bentpipe.experiment.build.alone import check_on_board

        for experiment in experiments:
            check_on_board(experiment, alone=given.alone)
    first = experiments[0]
    with claim(given, first.id) as folder:
        summary = _run_cases(given, experiments, folder) if first.case else _run_one(given, first, folder)
    return conclude(given, summary, folder)


def conclude(given: argparse.Namespace, summary: dict[str, Any], folder: RunFolder) -> int:
    """Report the result of a run; return the exit code."""
    name, runs = summary["id"], _runs(summary)
    if given.junit:
        from bentpipe.results.expect import write_junit

        write_junit(given.junit, name, runs)
    if given.json:
        print_json({**summary, "folder": str(folder.path)})
    if summary["status"] == "failed":
        raise ExperimentFailed(f"{name} failed: {summary['reason']} (kept in {folder.path})")
    if summary["status"] == "interrupted":
        at = f" at {summary['time']['simulated_s']:.3f} s" if "time" in summary else ""
        more = f"; `bentpipe resume {folder.path}` goes on" if folder.state.is_file() else ""
        print(f"bentpipe: interrupted{at}; kept in {folder.path}{more}", file=sys.stderr)
        return exit_code()
    judge(name, runs, folder.path)
    return 0


def _runs(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the runs of the experiment, one for each case."""
    return summary["cases"] if summary.get("kind") == "cases" else [{**summary, "name": ""}]


def _run_seeds(given: argparse.Namespace, duration: int | None) -> int:
    if given.seed is not None:
        raise BentpipeError("--seed and --seeds: give one of them")
    plan = plan_given(given, (), duration)
    return do_sweep(given, plan)


def shows(given: argparse.Namespace) -> bool:
    """Return whether progress is shown."""
    return sys.stderr.isatty() and not given.json


def _run_one(given: argparse.Namespace, experiment: Experiment, folder: RunFolder) -> dict[str, Any]:
    from bentpipe.experiment.run.perform import perform

    result = perform(experiment, folder, settings=given.settings, show_progress=shows(given), plots=given.plots)
    print_one(given, result, folder)
    return result.summary


def print_one(given: argparse.Namespace, result: RunResult, folder: RunFolder) -> None:
    """Print what came of a run."""
    from bentpipe.results.tables import print_run

    if not given.json:
        out = console()
        print_run(out, result.summary, result.flows)
        print_report_path(out, folder.path)


def begins(given: argparse.Namespace, index: int, count: int, experiment: Experiment) -> None:
    """Print which case begins."""
    if shows(given):
        print(f"case {index} of {count}: {experiment.case}", file=sys.stderr)


def _run_cases(given: argparse.Namespace, experiments: Sequence[Experiment], folder: RunFolder) -> dict[str, Any]:
    from bentpipe.experiment.run.perform import CASES_WITH_PLOTS, perform_cases

    def announce(index: int, experiment: Experiment) -> None:
        begins(given, index, len(experiments), experiment)

    whole = perform_cases(
        experiments, folder, settings=given.settings, show_progress=shows(given), plots=given.plots, begins=announce
    )
    print_all(given, whole, folder)
    if not given.json and given.plots and len(experiments) > CASES_WITH_PLOTS:
        console().print(f"Plots of each case: bentpipe report {folder.path}", highlight=False, soft_wrap=True)
    return whole


def print_all(given: argparse.Namespace, whole: dict[str, Any], folder: RunFolder) -> None:
    """Print what came of the cases."""
    from bentpipe.report.cases import print_cases

    if not given.json:
        out = console()
        print_cases(out, whole)
        print_report_path(out, folder.path)


COMMAND = Command(
    "run", "Run an experiment and write its results to a run folder.", _run, _arguments, prepares_hosts=True
)
