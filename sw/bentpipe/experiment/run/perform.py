"""Running an experiment into a run folder, its cases one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from bentpipe.experiment.run.run import cases_head, run_beside_cells, run_experiment, saved_run, versions
from bentpipe.experiment.run.state import pack, read_state
from bentpipe.report.cases import make_cases_report, sum_up_cases
from bentpipe.report.places import Around, around
from bentpipe.report.run import make_report
from bentpipe.results.folder import STATE, RunFolder, case_folder, read_run
from bentpipe.results.schema import RunResult
from bentpipe.signals import Interrupted
from bentpipe_sim.board.target import TARGET

if TYPE_CHECKING:
    from bentpipe.experiment.resolve.specs import Experiment

__all__ = ["CASES_WITH_PLOTS", "perform", "perform_cases", "resume", "resume_cases"]

CASES_WITH_PLOTS: Final = 8
"""Plot files are for papers; the reports have figures of their own."""


def perform(
    experiment: Experiment,
    folder: RunFolder,
    *,
    settings: Sequence[str] = (),
    show_progress: bool = False,
    plots: bool = True,
    beside: Around | None = None,
) -> RunResult:
    """Run an experiment, and write all of its run folder; return the result.

    Parameters
    ----------
    experiment : Experiment
        An experiment without cases, or one case.
    folder : RunFolder
        Held by the caller.
    settings : Sequence[str]
        The ``--set`` arguments, for the record.
    show_progress : bool
        Show a bar on stderr.
    plots : bool
        Write plots as files; the report has its own figures, and ``bentpipe report`` makes both at any time.
    beside : Around, optional
        Pages to which the report links; by default those around the folder.
    """
    result = run_experiment(
        experiment, settings=tuple(settings), show_progress=show_progress, folder=folder, plots=plots
    )
    _finish(experiment, folder, result, show_progress, plots, beside)
    return result


def resume(
    folder: RunFolder, *, show_progress: bool = False, plots: bool | None = None, beside: Around | None = None
) -> RunResult:
    """Continue a run from the state in its folder, write all of the folder, and return the result.

    The result is bit-identical to an uninterrupted run, except for ``time``. ``plots`` and ``beside`` are as for
    :func:`perform`; without ``plots`` they are as the run began.

    Raises
    ------
    BentpipeError
        The state is damaged, or of another bentpipe.
    """
    run = saved_run(folder)
    if plots is not None:
        run.plots = plots
    result = run.go(show_progress=show_progress, folder=folder)
    _finish(run.experiment, folder, result, show_progress, run.plots, beside)
    return result


def _finish(
    experiment: Experiment,
    folder: RunFolder,
    result: RunResult,
    show_progress: bool,
    plots: bool = True,
    beside: Around | None = None,
) -> None:
    folder.finish(result)
    if result.late_signal is not None:
        raise Interrupted(result.late_signal)
    if experiment.network.sonet and result.summary["status"] == "done":
        run_beside_cells(experiment, result, show_progress=show_progress)
        folder.put(result.summary)
    leads = beside or around(folder.path, result.summary)
    folder.draw(lambda aside: make_report(aside, result, leads, plots))


def perform_cases(
    experiments: Sequence[Experiment],
    folder: RunFolder,
    *,
    settings: Sequence[str] = (),
    show_progress: bool = False,
    plots: bool = True,
    begins: Callable[[int, Experiment], None] | None = None,
) -> dict[str, Any]:
    """Run an experiment's cases one after the other; after each, what there is so far is written.

    Parameters
    ----------
    experiments : Sequence[Experiment]
        The cases, at least one.
    folder : RunFolder
        Held by the caller; each case has a folder in it.
    plots : bool
        With plots as files; the reports have their own figures. Of more than ``CASES_WITH_PLOTS`` cases, each takes a
        second or two to draw: then only the plot over the cases is drawn, and ``bentpipe report`` draws the others.
    begins : callable, optional
        Told of each case before it runs: its number from 1, and the case.

    Returns
    -------
    dict
        The summary over the cases, as in ``result.json``.
    """
    if not folder.begun and not os.environ.get(TARGET):  # the rest would run without the board
        folder.save(pack((tuple(experiments), tuple(settings), plots), experiments[0].plugins))
    of_cases = plots and len(experiments) <= CASES_WITH_PLOTS
    head = cases_head(experiments, settings, versions())
    folder.put(head)
    summaries: list[dict[str, Any]] = []
    try:
        for index, experiment in enumerate(experiments, 1):
            if begins is not None:
                begins(index, experiment)
            summaries.append(_case(experiment, folder, settings, show_progress, of_cases))
            whole = sum_up_cases(head, summaries)
            if summaries[-1]["status"] == "interrupted":
                break
            if index < len(experiments):
                folder.put({**whole, "status": "running", "reason": None})
                folder.draw(lambda aside, whole=whole: make_cases_report(aside, whole, plots=False))
    finally:
        whole = sum_up_cases(head, summaries)
        if folder.begun:
            folder.put(whole)
    folder.draw(lambda aside: make_cases_report(aside, whole, plots))
    if whole["status"] != "interrupted":
        folder.end_state()
    return whole


def resume_cases(
    folder: RunFolder,
    *,
    show_progress: bool = False,
    plots: bool | None = None,
    begins: Callable[[int, int, Experiment], None] | None = None,
) -> dict[str, Any]:
    """Continue an experiment's cases: those that are over stay, one with a state continues from it, the others run.

    Parameters
    ----------
    plots : bool, optional
        Write plots as files; by default as the run began.
    begins : callable, optional
        Called before each case with its number from 1, the number of cases, and the case.

    Raises
    ------
    BentpipeError
        As for :func:`resume`.
    """
    experiments, settings, began_with_plots = read_state(folder.state)
    announce = None if begins is None else lambda index, experiment: begins(index, len(experiments), experiment)
    with folder.goes_on():
        pass
    return perform_cases(
        experiments,
        folder,
        settings=settings,
        show_progress=show_progress,
        plots=began_with_plots if plots is None else plots,
        begins=announce,
    )


def _case(
    experiment: Experiment, folder: RunFolder, settings: Sequence[str], show_progress: bool, plots: bool
) -> dict[str, Any]:
    """Run a case in its folder, unless it is complete; return its result."""
    path = folder.path / case_folder(experiment.case)
    if not folder.begun or not path.exists():
        with folder.case(path.name) as own:
            return perform(experiment, own, settings=settings, show_progress=show_progress, plots=plots).summary
    if (path / "result.json").is_file() and (summary := read_run(path).summary)["status"] in ("done", "failed"):
        return summary
    if (path / STATE).is_file():
        with RunFolder.resume(path) as own:
            return resume(own, show_progress=show_progress, plots=plots).summary
    with RunFolder.claim(path, force=True) as own:
        return perform(experiment, own, settings=settings, show_progress=show_progress, plots=plots).summary
