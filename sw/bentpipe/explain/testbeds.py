"""Joint settings of the entries of one testbed: which combination leaves the smallest error over all its rows.

The combinations, rows and rankings are data (``catalogue/published/testbeds.toml``). A fitted set is a plausible
testbed, not a proof; it is kept by name in ``catalogue/published/sets.toml`` and is never a default.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.sets import named_set
from bentpipe.experiment.load import parse_duration
from bentpipe.explain.plan import Figure, Values, Wanted, shared_data
from bentpipe.explain.store import Store
from bentpipe.results.metrics import in_unit
from bentpipe.results.statistics import mean_of, step
from bentpipe.sweeps.grid import as_text
from bentpipe_hdl.words import nearest

__all__ = ["Testbed", "fitted", "ranked", "testbeds"]


@dataclass(frozen=True, slots=True)
class Testbed:
    """Entries whose switches and hosts must have been the same.

    Members
    -------
    vary : Mapping
        Values by key; the entries' own value comes first and is not among them.
    rows : tuple
        Experiment, case and figure of each published row that counts.
    rankings : tuple
        Tables with the experiment, its cases from the greatest figure to the smallest, the figure, seeds, and when
        the runs end.
    sets : tuple of str
        Sets for which rankings are made, beside the entries' own values.
    """

    name: str
    title: str
    vary: Mapping[str, tuple[str, ...]]
    rows: tuple[tuple[str, str, str], ...]
    rankings: tuple[Mapping[str, Any], ...]
    sets: tuple[str, ...]

    @property
    def combinations(self) -> list[Values]:
        """All of them, as they are set; the first is empty, the entries' own."""
        choices = [[None, *values] for values in self.vary.values()]
        return [
            tuple(sorted((key, value) for key, value in zip(self.vary, combination, strict=True) if value is not None))
            for combination in itertools.product(*choices)
        ]

    def runs(self, stores: Mapping[str, Store]) -> list[Wanted]:
        """Plan a run of full length of each combination for each row, with the experiment's own seed; one combination
        after the other."""
        cases = [pair for pair in dict.fromkeys((name, case) for name, case, _ in self.rows) if pair[0] in stores]
        return [
            Wanted(name, case, values, stores[name].study.seed, stores[name].study.full_ps(case))
            for values in self.combinations
            for name, case in cases
        ]

    def ranking_runs(self, stores: Mapping[str, Store]) -> list[Wanted]:
        """Plan the runs of all rankings: each set, case and seed, of the ranking's length."""
        return [
            wanted
            for table in self.rankings
            if table["experiment"] in stores
            for values in self.settings()
            for case in table["cases"]
            for wanted in _seeds(stores[table["experiment"]], table, case, values)
        ]

    def settings(self) -> list[Values]:
        """Return the entries' own settings and those of the sets."""
        return [(), *(tuple(sorted(named_set(name).items())) for name in self.sets)]


def testbeds(names: Sequence[str] | None = None) -> list[Testbed]:
    """Return the testbeds of these names; None: all.

    Raises
    ------
    BentpipeError
        There is no such testbed.
    """
    known = {table["name"]: table for table in shared_data()["testbed"]}
    for name in names or ():
        if name not in known:
            raise BentpipeError(f"--testbed {name}: there is no such testbed{nearest(name, known)}")
    return [
        Testbed(
            name,
            known[name]["title"],
            {key: tuple(map(as_text, values)) for key, values in known[name]["vary"].items()},
            tuple(tuple(row) for row in known[name]["rows"]),
            tuple(known[name].get("ranking", ())),
            tuple(known[name].get("sets", ())),
        )
        for name in (known if names is None else dict.fromkeys(names))
    ]


def fitted(bed: Testbed, stores: Mapping[str, Store]) -> dict[str, Any] | None:
    """Return the errors of the combinations of which all rows have a figure; None without any.

    An error is the mean of |ours / measured - 1| over the rows. Leaving one row out, the others choose the combination,
    and the row's error with it shows how far the choice reaches beyond the rows that made it.
    """
    rows = [(stores[name], figure) for name, figure in _figures(bed, stores)]
    table: dict[Values, list[float]] = {}
    for values in bed.combinations:
        ours = [_ours(store, figure, values) for store, figure in rows]
        whole = [value for value in ours if value is not None]
        if rows and len(whole) == len(rows):
            table[values] = whole
    if () not in table:
        return None
    theirs = [figure.row["measured"] for _, figure in rows]
    errors = {values: [abs(a / b - 1) for a, b in zip(ours, theirs, strict=True)] for values, ours in table.items()}
    best = min(errors, key=lambda values: fmean(errors[values]))
    without = [_best_without(errors, number) for number in range(len(rows))]
    return {
        "name": bed.name,
        "title": bed.title,
        "combinations": len(table),
        "planned": len(bed.combinations),
        "best": dict(best),
        "ranks": [
            {"values": dict(values), "error": fmean(error)}
            for values, error in sorted(errors.items(), key=lambda each: fmean(each[1]))
        ],
        "rows": [
            {
                "experiment": store.study.id,
                "name": figure.name,
                "unit": figure.row["unit"],
                "measured": figure.row["measured"],
                "predicted": figure.row["predicted"],
                "today": table[()][n],
                "fitted": table[best][n],
                "left_out": table[without[n]][n],
                "left_out_values": dict(without[n]),
            }
            for n, (store, figure) in enumerate(rows)
        ],
        "errors": {
            "today": fmean(errors[()]),
            "fitted": fmean(errors[best]),
            "left_out": fmean(errors[values][n] for n, values in enumerate(without)),
        },
        "same_choice": sum(values == best for values in without),
    }


def ranked(bed: Testbed, stores: Mapping[str, Store]) -> list[dict[str, Any]]:
    """Return the rankings: for the entries' own settings and each set the means over the seeds, and each step's
    verdict."""
    labels = ["today's settings", *(f"@{name}" for name in bed.sets)]
    found = [
        _ranking(stores[table["experiment"]], table, label, values)
        for table in bed.rankings
        if table["experiment"] in stores
        for label, values in zip(labels, bed.settings(), strict=True)
    ]
    return [each for each in found if each is not None]


def _ranking(store: Store, table: Mapping[str, Any], label: str, values: Values) -> dict[str, Any] | None:
    """Return a ranking with these settings; None until all its runs are done."""
    means = []
    for case in table["cases"]:
        runs = _seeds(store, table, case, values)
        if any(wanted not in store for wanted in runs):
            return None
        means.append(mean_of([store[wanted].metrics[table["metric"]] for wanted in runs]))
    return {
        "name": table["name"],
        "settings": label,
        "seeds": len(table["seeds"]),
        "shortened": table["time"],
        "cases": [
            {"case": case, "mean": in_unit(table["metric"], "Mb/s", mean.mean)}
            | {"half": in_unit(table["metric"], "Mb/s", mean.half or 0.0)}
            for case, mean in zip(table["cases"], means, strict=True)
        ],
        "steps": [step(one, two)["verdict"] for one, two in itertools.pairwise(means)],
    }


def _seeds(store: Store, table: Mapping[str, Any], case: str, values: Values) -> list[Wanted]:
    limit_ps = parse_duration(table["time"], "testbeds.toml")
    return [Wanted(store.study.name, case, values, seed, limit_ps) for seed in table["seeds"]]


def _figures(bed: Testbed, stores: Mapping[str, Store]) -> list[tuple[str, Figure]]:
    """Return the figure of each row; rows of experiments that are not among the studies are left out."""
    found = []
    for name, case, metric in bed.rows:
        if name in stores:
            figures = stores[name].study.figures
            figure = next((f for f in figures if f.case == case and f.row["metric"] == metric), None)
            if figure is None:
                raise BentpipeError(f"testbed {bed.name}: {name} has no public figure {metric!r} of case {case!r}")
            found.append((name, figure))
    return found


def _ours(store: Store, figure: Figure, values: Values) -> float | None:
    wanted = Wanted(store.study.name, figure.case, values, store.study.seed, store.study.full_ps(figure.case))
    if wanted not in store or not store[wanted].finished:
        return None
    found = store[wanted].metrics.get(figure.row["metric"])
    return None if found is None else in_unit(figure.row["metric"], figure.row["unit"], found)


def _best_without(errors: Mapping[Values, Sequence[float]], left: int) -> Values:
    """Return the combination that all rows but one choose."""
    return min(errors, key=lambda values: sum(error for n, error in enumerate(errors[values]) if n != left))
