"""The runs that explain an experiment's published figures.

They are shortened ones of each open parameter alone, whole ones of the two strongest, and samples over all.

Open parameters are data of the catalogue (``[[open]]``). What the runs came to is for :mod:`bentpipe.explain.judge`.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.catalogue import find, read_extended
from bentpipe.experiment.load import load, load_cases
from bentpipe.sweeps.grid import Axis, as_text
from bentpipe.sweeps.plan import Plan, PlannedRun, plan_sweep

__all__ = ["OWN", "Figure", "Parameter", "Study", "study", "varied"]

OWN: Final = "as it is"
"""What a table of runs has where a parameter is as the experiment has it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An open parameter: its key, its plausible values as ``--set`` has them, why these, and the place."""

    key: str
    values: tuple[str, ...]
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A published figure that can be explained: its case, its number among the case's published rows, and the row."""

    case: str
    number: int
    row: Mapping[str, Any]

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.case, self.row["quantity"])))


@dataclass(frozen=True, slots=True)
class Study:
    """An experiment of which some published figures are to be explained.

    Members
    -------
    name : str
        Of the catalogue, or a file.
    left_out : tuple of str
        Published figures that are not explained, and why.
    """

    name: str
    id: str
    title: str
    parameters: tuple[Parameter, ...]
    figures: tuple[Figure, ...]
    left_out: tuple[str, ...]

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(figure.case for figure in self.figures))

    def screening(self) -> Plan:
        """Plan a run for each value of each open parameter alone, shortened where the experiment has a shorter run."""
        quick = load(self.name).quick_ps is not None
        return self._plan([(), *((parameter,) for parameter in self.parameters)], self.cases, (), quick)

    def whole(self, strongest: Mapping[str, Iterable[Sequence[str]]], seeds: Sequence[int]) -> Plan:
        """Plan whole runs, of each case with its strongest parameters: each alone, and all combinations of two.

        Parameters
        ----------
        strongest : Mapping
            By the case, the keys of two parameters for each of its figures.
        seeds : Sequence[int]
        """
        by_key = {parameter.key: parameter for parameter in self.parameters}
        runs: dict[str, PlannedRun] = {}
        for case, pairs in strongest.items():
            subsets: list[tuple[Parameter, ...]] = [()]
            for pair in pairs:
                both = tuple(by_key[key] for key in pair)
                subsets += [*((one,) for one in both), *([both] if len(both) > 1 else [])]
            plan = self._plan(dict.fromkeys(subsets), [case] if case else (), seeds, False)
            runs |= {run.key: run for run in plan.runs}
        return self._over(runs.values(), seeds)

    def samples(self, count: int, seeds: Sequence[int]) -> Plan:
        """Plan whole runs of a Latin hypercube over all open parameters: each value of a parameter has its share of the
        samples."""
        draws = random.Random(f"{self.id} {count}")
        columns = []
        for parameter in self.parameters:
            choices = [OWN, *parameter.values]
            column = [choices[n * len(choices) // count] for n in range(count)]
            draws.shuffle(column)
            columns.append(column)
        runs: dict[str, PlannedRun] = {}
        for row in zip(*columns, strict=True):
            given = [
                Parameter(parameter.key, (value,), "", "")
                for parameter, value in zip(self.parameters, row, strict=True)
                if value != OWN
            ]
            runs |= {run.key: run for run in self._plan([tuple(given)], self.cases, seeds, False).runs}
        return self._over(runs.values(), seeds)

    def _plan(
        self, subsets: Iterable[tuple[Parameter, ...]], cases: Sequence[str], seeds: Sequence[int], quick: bool
    ) -> Plan:
        """Yield the runs of all combinations of each subset's values; what is the same as an earlier run is left
        out."""
        found: dict[str, PlannedRun] = {}
        named = [case for case in cases if case]
        for subset in subsets:
            for values in itertools.product(*(parameter.values for parameter in subset)):
                axes = [Axis(parameter.key, (value,)) for parameter, value in zip(subset, values, strict=True)]
                for run in plan_sweep(self.name, axes, seeds, cases=named, quick=quick).runs:
                    found.setdefault(run.key, run)
        return self._over(found.values(), seeds)

    def _over(self, runs: Iterable[PlannedRun], seeds: Sequence[int]) -> Plan:
        """Return a plan whose table has a column for each open parameter."""
        own = dict.fromkeys((parameter.key for parameter in self.parameters), OWN)
        filled = tuple(replace(run, values=own | run.values) for run in runs)
        axes = tuple(Axis(parameter.key, (OWN, *parameter.values)) for parameter in self.parameters)
        return Plan(self.id, self.title, filled, axes=axes, seeds=tuple(seeds), command=f"bentpipe explain {self.id}")


def study(name: str) -> Study:
    """Return what is to be explained of an experiment.

    Raises
    ------
    BentpipeError
        It has no open parameters, or no published figure that can be explained.
    """
    document, _ = read_extended(find(name))
    cases = load_cases(name)
    parameters = tuple(
        Parameter(each["key"], tuple(dict.fromkeys(map(_text, each["values"]))), each["why"], each["source"])
        for each in document.get("open", ())
    )
    if not parameters:
        raise BentpipeError(f"{name}: has no [[open]] parameters, so there is nothing to vary")
    figures, left_out = [], []
    for case in cases:
        for number, row in enumerate(case.published):
            figure = Figure(case.case, number, {key: getattr(row, key) for key in _KEPT})
            reason = _not_explained(figure.row)
            if reason:
                left_out.append(f"{figure.name}: {reason}")
            else:
                figures.append(figure)
    left_out += [f"{row.quantity}: is of all cases together" for row in cases[0].over_cases]
    if not figures:
        reasons = f": {'; '.join(left_out)}" if left_out else ""
        raise BentpipeError(f"{name}: has no published figure to explain{reasons}")
    return Study(name, cases[0].id, cases[0].title, parameters, tuple(figures), tuple(left_out))


_KEPT: Final = ("quantity", "metric", "unit", "source", "measured", "predicted", "over", "given_back")


def _not_explained(row: Mapping[str, Any]) -> str:
    """Why a published figure is left out; "" if it isn't."""
    if row["measured"] is None and row["predicted"] is None:
        return "is withheld"
    if row["given_back"]:
        return f"is an input ({row['given_back']})"
    if not row["metric"]:
        return "has no figure of ours beside it"
    return "is a spread of trials" if row["over"] == "sigma" else ""


def _text(value: Any) -> str:
    """Return a value of a catalogue file as ``--set`` has it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_quoted(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_quoted, value)) + "]"
    return as_text(value)


def _quoted(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else _text(value)


def varied(run: PlannedRun) -> dict[str, str]:
    """Return what a run has otherwise than the experiment."""
    return {key: value for key, value in run.values.items() if value != OWN}
