"""Running an experiment into a run folder, its cases one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bentpipe.experiment.run import cases_head, run_beside_cells, run_experiment, versions
from bentpipe.report.cases import make_cases_report, sum_up_cases
from bentpipe.report.run import make_report
from bentpipe.results.folder import case_folder
from bentpipe.results.schema import RunResult

if TYPE_CHECKING:
    from bentpipe.experiment.schema import Experiment
    from bentpipe.results.folder import RunFolder

__all__ = ["perform", "perform_cases"]


def perform(
    experiment: Experiment,
    folder: RunFolder,
    *,
    settings: Sequence[str] = (),
    show_progress: bool = False,
    report: bool = True,
) -> RunResult:
    """Run an experiment, and write all of its run folder.

    Parameters
    ----------
    experiment : Experiment
        An experiment without cases, or one case.
    folder : RunFolder
        Held by the caller.
    settings : Sequence[str]
        The ``--set`` arguments, for the record.
    show_progress : bool
        A bar on stderr.
    report : bool
        With plots and report; ``bentpipe report`` makes them of the folder at any time.
    """
    result = run_experiment(experiment, settings=tuple(settings), show_progress=show_progress, folder=folder)
    folder.finish(result)
    if experiment.network.sonet and result.summary["status"] == "done":
        run_beside_cells(experiment, result, show_progress=show_progress)
        folder.put(result.summary)
    if report:
        folder.draw(lambda aside: make_report(aside, result, folder.path))
    return result


def perform_cases(
    experiments: Sequence[Experiment],
    folder: RunFolder,
    *,
    settings: Sequence[str] = (),
    show_progress: bool = False,
    begins: Callable[[int, Experiment], None] | None = None,
) -> dict[str, Any]:
    """Run an experiment's cases one after the other; after each, what there is so far is written.

    Parameters
    ----------
    experiments : Sequence[Experiment]
        The cases, at least one.
    folder : RunFolder
        Held by the caller; each case has a folder in it.
    begins : callable, optional
        Told of each case before it runs: its number from 1, and the case.

    Returns
    -------
    dict
        The summary over the cases, as in ``result.json``.
    """
    head = cases_head(experiments, settings, versions())
    folder.put(head)
    summaries: list[dict[str, Any]] = []
    try:
        for index, experiment in enumerate(experiments, 1):
            if begins is not None:
                begins(index, experiment)
            with folder.case(case_folder(experiment.case)) as own:
                result = perform(experiment, own, settings=settings, show_progress=show_progress)
                summaries.append(result.summary)
            whole = sum_up_cases(head, summaries)
            if summaries[-1]["status"] == "interrupted":
                break
            if index < len(experiments):
                folder.put({**whole, "status": "running", "reason": None})
                folder.draw(lambda aside, whole=whole: make_cases_report(aside, whole))
    finally:
        whole = sum_up_cases(head, summaries)
        if folder.begun:
            folder.put(whole)
    folder.draw(lambda aside: make_cases_report(aside, whole))
    return whole
