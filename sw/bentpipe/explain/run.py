"""Explaining an experiment into its folder, or going on with it.

::

    DIR/screening/        a sweep: shortened runs, each open parameter alone
    DIR/whole/            a sweep: whole runs of the two strongest parameters of each case
    DIR/samples/          a sweep: whole runs of a Latin hypercube over all parameters, with --samples
    DIR/explain.json      ranges, strongest parameters and verdicts
    DIR/ID.svg, .png      tornado charts
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError, ExperimentFailed
from bentpipe.explain.judge import Point, effects, explained, strongest
from bentpipe.explain.plan import Figure, Study, varied
from bentpipe.plots.ranges import write_ranges
from bentpipe.results.folder import RUNS, read_above
from bentpipe.results.metrics import NOT_COMPARED
from bentpipe.sweeps.plan import Plan, code_version
from bentpipe.sweeps.run import claim_sweep, run_sweep

__all__ = ["RESULT", "Options", "explain"]

RESULT: Final = "explain.json"

Told = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a study's runs; members as the options of ``bentpipe explain``."""

    seeds: tuple[int, ...] = ()
    samples: int = 0
    workers: int | None = None
    cluster: str | None = None
    told: Told | None = None


def explain(study: Study, folder: Path, options: Options) -> dict[str, Any]:
    """Do what is left of the runs that explain an experiment, and write what they came to; the same as data.

    Raises
    ------
    BentpipeError
        The folder is of something else, or of another version of bentpipe.
    ExperimentFailed
        Runs failed; what is done is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    screened = _Sweep(study.screening(), folder / "screening", options)
    found = []
    for figure in study.figures:
        points = screened.points(figure)
        found.append((figure, effects(study.parameters, points, "mean"), _own(points)))
    pairs: dict[str, list[list[str]]] = {case: [] for case in study.cases}
    for figure, effect, _ in found:
        pairs[figure.case].append(strongest(effect))
    sweeps = [_Sweep(study.whole(pairs, options.seeds), folder / "whole", options)]
    if options.samples:
        plan = study.samples(options.samples, options.seeds)
        sweeps.append(_Sweep(plan, folder / "samples", options))
    whole = {
        "id": study.id,
        "title": study.title,
        "version": code_version(),
        "seeds": [*options.seeds],
        "parameters": [
            {"key": p.key, "values": [*p.values], "why": p.why, "source": p.source} for p in study.parameters
        ],
        "figures": [_figure(figure, effect, own, sweeps, screened.short) for figure, effect, own in found],
        "left_out": [*study.left_out],
        "runs": sum(len(sweep.plan.runs) for sweep in (screened, *sweeps)),
        "runs_s": sum(sweep.runs_s for sweep in (screened, *sweeps)),
    }
    (folder / RESULT).write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_ranges(folder, study.id, whole["figures"])
    return whole


def _own(points: Sequence[Point]) -> float:
    return next(point.of("mean") for point in points if not point.values)


def _figure(
    figure: Figure, effect: list[dict[str, Any]], own: float, sweeps: Sequence[_Sweep], short: bool
) -> dict[str, Any]:
    merged: dict[tuple[tuple[str, str], ...], Point] = {}
    for sweep in sweeps:
        for point in sweep.points(figure):
            merged.setdefault(tuple(sorted(point.values.items())), point)
    kept = ("quantity", "unit", "source", "measured", "predicted", "over")
    return {
        "name": figure.name,
        "case": figure.case,
        **{key: figure.row[key] for key in kept},
        "screening": effect,
        "screening_own": own,
        "shortened": short,
        **explained(figure, strongest(effect), [*merged.values()]),
    }


class _Sweep:
    """A sweep of a study that has ended, and the figures of its runs."""

    def __init__(self, plan: Plan, path: Path, options: Options) -> None:
        self.plan = plan
        with claim_sweep(plan, path) as held:
            summary = run_sweep(
                plan, held, workers=options.workers, cluster=options.cluster, told=options.told, plots=False
            )
        if summary["status"] == "interrupted":
            raise KeyboardInterrupt(summary["reason"])
        if summary["status"] == "failed":
            raise ExperimentFailed(f"{plan.id}: {summary['reason']} (kept in {path})")
        self.runs_s = float(summary["time"]["runs_s"])
        self.short = bool(summary["shortened"])
        self._runs = [(run, read_above(path / RUNS / run.folder)) for run in plan.runs]

    def points(self, figure: Figure) -> list[Point]:
        """Return the figure of each combination of values, over the seeds."""
        found: dict[tuple[tuple[str, str], ...], tuple[Mapping[str, str], list[float]]] = {}
        for run, summary in self._runs:
            if run.experiment.case != figure.case:
                continue
            row = summary["published"][figure.number]
            if row["ours"] is None or (not self.short and NOT_COMPARED.intersection(row["remarks"])):
                continue
            values = varied(run)
            found.setdefault(tuple(sorted(values.items())), (values, []))[1].append(row["ours"])
        points = [Point(values, tuple(figures)) for values, figures in found.values()]
        if not any(not point.values for point in points):
            raise BentpipeError(
                f"{self.plan.id}: no whole run with its own settings has {figure.name}: it failed, or its time was up"
            )
        return points
