"""Explaining experiments, or going on with it: runs in order of their use, then ranges and verdicts from what there is.

::

    DIR/ID.jsonl           each run of an experiment that is done (bentpipe.explain.store)

The order is: shortened runs of all experiments, whole ones of testbeds, rankings, whole ones of the strongest
parameters, then what shortened runs cannot show. So a budget that ends early costs depth, not breadth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe.explain.judge import Point, effects, explained, strongest
from bentpipe.explain.measure import Runner
from bentpipe.explain.plan import Figure, Study, Wanted
from bentpipe.explain.store import Store
from bentpipe.explain.testbeds import Testbed
from bentpipe.results.metrics import in_unit

__all__ = ["Options", "do_runs", "found_so_far", "points"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the runs; members as the options of ``bentpipe explain``."""

    seeds: tuple[int, ...] = ()
    samples: int = 0
    screening_only: bool = False


def do_runs(stores: Mapping[str, Store], beds: Sequence[Testbed], runner: Runner, options: Options) -> list[str]:
    """Perform the remaining runs until the budget is spent; return a line for each run that failed."""
    every = [*stores.values()]
    failed = runner.do((store, wanted) for store in every for wanted in store.study.screening())
    if options.screening_only:
        return failed
    failed += runner.do((stores[wanted.name], wanted) for bed in beds for wanted in bed.runs(stores))
    failed += runner.do((stores[wanted.name], wanted) for bed in beds for wanted in bed.ranking_runs(stores))
    failed += runner.do((store, wanted) for store in every for wanted in _whole(store, options))
    failed += runner.do((store, wanted) for store in every for wanted in store.study.ends())
    if options.samples:
        failed += runner.do((store, wanted) for store in every for wanted in _samples(store.study, options))
    return failed


def found_so_far(store: Store, options: Options) -> dict[str, Any]:
    """Return ranges, strongest parameters and verdicts of an experiment, from the runs that are done."""
    study = store.study
    planned = {
        "shortened or single": study.screening(),
        "the two strongest": _whole(store, options),
        "end of the run": study.ends(),
        "samples": _samples(study, options) if options.samples else [],
    }
    todo = {
        wanted.case
        for name in ("shortened or single", "the two strongest")
        for wanted in planned[name]
        if wanted not in store
    }
    figures = [_figure(store, figure, figure.case in todo) for figure in study.figures]
    left = [f"{figure.name}: no run" for figure, found in zip(study.figures, figures, strict=True) if found is None]
    missing = {name: sum(wanted not in store for wanted in runs) for name, runs in planned.items()}
    return {
        "id": study.id,
        "title": study.title,
        "versions": sorted({record.version for _, record in store}),
        "seeds": sorted({wanted.seed for wanted, _ in store}),
        "parameters": [
            {"key": p.key, "values": [*p.values], "why": p.why, "source": p.source} for p in study.parameters
        ],
        "lengths": [
            {"case": case, "time": length.text, "why": length.why, "stands": length.stands}
            for case, length in study.lengths.items()
            if case in study.cases
        ],
        "figures": [found for found in figures if found is not None],
        "left_out": [*study.left_out, *left],
        "missing": {name: [count, len(planned[name])] for name, count in missing.items() if count},
        "runs": len(store),
        "whole_runs": sum(wanted.limit_ps is None for wanted, _ in store),
        "cpu_s": sum(record.cpu_s for _, record in store),
    }


def points(store: Store, figure: Figure, limit_ps: int | None) -> list[Point]:
    """Return a figure for each combination of values of runs of one length, over the seeds; of runs that only screen,
    of the experiment's own seed."""
    found: dict[tuple[tuple[str, str], ...], list[float]] = {}
    full_ps = store.study.full_ps(figure.case)
    metric, unit = figure.row["metric"], figure.row["unit"]
    for wanted, record in store:
        if wanted.case != figure.case or wanted.limit_ps != limit_ps or not record.finished:
            continue
        if (limit_ps == full_ps or wanted.seed == store.study.seed) and metric in record.metrics:
            found.setdefault(wanted.values, []).append(in_unit(metric, unit, record.metrics[metric]))
    return [Point(dict(values), tuple(figures)) for values, figures in found.items()]


def _screened(store: Store, figure: Figure) -> list[Point]:
    length = store.study.lengths.get(figure.case)
    return points(store, figure, length.ps if length else None)


def _strongest(store: Store, figure: Figure) -> list[str]:
    return strongest(effects(store.study.parameters, _screened(store, figure), "mean"))


def _whole(store: Store, options: Options) -> list[Wanted]:
    pairs: dict[str, list[list[str]]] = {case: [] for case in store.study.cases}
    for figure in store.study.figures:
        pairs[figure.case].append(_strongest(store, figure))
    return store.study.whole(pairs, options.seeds or (store.study.seed,))


def _samples(study: Study, options: Options) -> list[Wanted]:
    return study.samples(options.samples, options.seeds or (study.seed,))


def _figure(store: Store, figure: Figure, incomplete: bool) -> dict[str, Any] | None:
    """Return the present result for a figure; None without a run. An incomplete one has the verdict so far."""
    screened = _screened(store, figure)
    full_ps = store.study.full_ps(figure.case)
    whole = points(store, figure, full_ps)
    if not screened and not whole:
        return None
    effect = effects(store.study.parameters, screened, "mean")
    length = store.study.lengths.get(figure.case)
    found = explained(figure, strongest(effect), whole or screened)
    if not whole:
        found |= {"inside": False, "verdict": "not judged: no whole run yet"}
    elif incomplete:
        found["verdict"] = f"so far {found['verdict'].replace('unexplained', 'not reached')}"
    kept = ("quantity", "unit", "source", "measured", "predicted", "over")
    return {
        "name": figure.name,
        "case": figure.case,
        **{key: figure.row[key] for key in kept},
        "screening": effect,
        "screening_own": next((point.of("mean") for point in screened if not point.values), None),
        "shortened": length.text if length else "",
        "range_of": f"runs of {length.text}" if length and (length.stands or not whole) else "whole runs",
        "comparable": bool(whole),
        **found,
    }
