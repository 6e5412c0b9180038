"""Doing the runs of studies, in this process or on Dask, until a budget of processor time is spent."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.errors import BentpipeError, ExperimentFailed
from bentpipe.explain.plan import Study, Wanted
from bentpipe.explain.store import Record, Store

__all__ = ["Budget", "Runner", "measure"]

_ALWAYS: Final = ("sum_of_flow_rates", "aggregate_goodput", "fairness")
"""Figures that are kept of every run."""

_log = logging.getLogger(__name__)

ProgressCallback = Callable[[int, int, int], None]


@dataclass(slots=True)
class Budget:
    """Processor time for runs: what there is, None without a bound, and what they have taken."""

    most_s: float | None = None
    spent_s: float = 0.0

    @property
    def is_spent(self) -> bool:
        return self.most_s is not None and self.spent_s >= self.most_s


def measure(wanted: Wanted, names: Sequence[str], version: str) -> Record:
    """Perform a run, and return its figures of these names.

    Raises
    ------
    BentpipeError, SimulationError
        The run is impossible, or failed.
    KeyboardInterrupt
        A signal arrived.
    """
    from bentpipe.compiled import prepare

    prepare()
    from bentpipe.experiment.load import load_cases
    from bentpipe.experiment.run.run import run_experiment
    from bentpipe.sweeps.plan import code_version

    if code_version() != version:
        raise BentpipeError(f"a worker has bentpipe {code_version()}, and the command {version}")
    begin = time.process_time()
    (experiment,) = load_cases(
        wanted.name,
        varied=dict(wanted.values),
        seed=wanted.seed,
        duration_ps=wanted.limit_ps,
        only=[wanted.case] if wanted.case else [],
    )
    summary = run_experiment(experiment, plots=False).summary
    if summary["status"] == "interrupted":
        raise KeyboardInterrupt(summary["reason"])
    if summary["status"] != "done":
        raise ExperimentFailed(f"{wanted.name}: {summary['reason']}")
    found = {name: summary["metrics"].get(name) for name in dict.fromkeys([*names, *_ALWAYS])}
    finished = not any("unfinished" in row["remarks"] for row in summary["published"])
    metrics = {name: value for name, value in found.items() if value is not None}
    return Record(metrics, finished, time.process_time() - begin, version)


@dataclass(frozen=True, slots=True)
class Runner:
    """A runner, which performs runs and keeps their figures.

    Members
    -------
    budget : Budget
    workers : int or None
        Processes; 1 is this process. None: as many as there are processors.
    cluster : str or None
        Address of a Dask cluster.
    progress : callable, optional
        Runs that have ended, of how many, and workers.
    """

    budget: Budget
    workers: int | None = 1
    cluster: str | None = None
    progress: ProgressCallback | None = None

    def do(self, runs: Iterable[tuple[Store, Wanted]]) -> list[str]:
        """Perform the runs that the stores lack, in order, until the budget is spent.

        Return a line for each run that failed.
        """
        from bentpipe.sweeps.plan import code_version

        todo = [pair for pair in dict.fromkeys(runs) if pair[1] not in pair[0]]
        failed: list[str] = []
        if not todo or self.budget.is_spent:
            return failed
        version = code_version()
        local = self.workers == 1 and self.cluster is None
        ended = self._here(todo, version) if local else self._spread(todo, version)
        for number, (store, wanted, record) in enumerate(ended, 1):
            if isinstance(record, Record):
                store.add(wanted, record)
                self.budget.spent_s += record.cpu_s
            else:
                failed.append(f"{_words(wanted)}: {record}")
            _log.info("%s: %s", _words(wanted), record)
            if self.progress:
                self.progress(number, len(todo), self.workers or 0)
        return failed

    def _here(self, todo: Sequence[tuple[Store, Wanted]], version: str) -> Iterator[tuple[Store, Wanted, Record | str]]:
        from bentpipe_sim.errors import SimulationError

        for store, wanted in todo:
            if self.budget.is_spent:
                return
            try:
                yield store, wanted, measure(wanted, _names(store.study, wanted), version)
            except (BentpipeError, SimulationError) as error:
                yield store, wanted, _one_line(error)

    def _spread(
        self, todo: Sequence[tuple[Store, Wanted]], version: str
    ) -> Iterator[tuple[Store, Wanted, Record | str]]:
        from distributed import as_completed

        from bentpipe.sweeps.cluster import opened

        with opened(self.workers, self.cluster) as client:
            futures: dict[Any, tuple[Store, Wanted]] = {
                client.submit(measure, wanted, _names(store.study, wanted), version, pure=False, priority=-n): (
                    store,
                    wanted,
                )
                for n, (store, wanted) in enumerate(todo)
            }
            try:
                for future in as_completed(list(futures), loop=client.loop):
                    store, wanted = futures.pop(future)
                    try:
                        yield store, wanted, future.result()
                    except Exception as error:
                        yield store, wanted, _one_line(error)
                    if self.budget.is_spent:
                        return
            finally:
                with suppress(Exception):
                    client.cancel(list(futures), force=True)


def _names(study: Study, wanted: Wanted) -> list[str]:
    return [figure.row["metric"] for figure in study.figures if figure.case == wanted.case]


def _words(wanted: Wanted) -> str:
    values = ", ".join(f"{key} = {value}" for key, value in wanted.values)
    length = f"shortened to {wanted.limit_ps / 1e12:g} s" if wanted.limit_ps else "whole"
    return ", ".join(filter(None, (wanted.name, wanted.case, values, f"seed {wanted.seed}", length)))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
