"""The runs that explain an experiment's published figures.

They are shortened ones of each open parameter alone, whole ones of the two strongest, and samples over all.

Open parameters are data of the catalogue (``[[open]]``), lengths of shortened runs of ``published/testbeds.toml``. What
the runs gave is for :mod:`bentpipe.explain.judge`; :mod:`bentpipe.explain.measure` does them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.catalogue import find, read_document, read_extended
from bentpipe.experiment.load import load_cases, parse_duration
from bentpipe.sweeps.grid import as_text

__all__ = ["OWN", "Figure", "Length", "Parameter", "Study", "Wanted", "shared_data", "study"]

OWN: Final = "as it is"
"""What a table of samples has where a parameter is as the experiment has it."""

_SHARED: Final = Path(__file__).resolve().parents[1] / "catalogue" / "published" / "testbeds.toml"

_SILENT: Final = ("open", "published", "expect", "theory", "record")
"""Tables of an entry that change no figure of a run."""

_HEAD: Final = ("duration", "seed")
"""What of ``[experiment]`` changes one."""

_OF_THE_END: Final = (".size", "experiment.duration")
"""Endings of keys whose effect a shortened run cannot show."""

Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An open parameter: its key, its plausible values as ``--set`` has them, why these, and the place."""

    key: str
    values: tuple[str, ...]
    why: str
    source: str

    @property
    def of_the_end(self) -> bool:
        """Return whether the parameter decides when a run ends, so that only whole runs show its effect."""
        return self.key.endswith(_OF_THE_END)


@dataclass(frozen=True, slots=True)
class Figure:
    """A published figure that can be explained: its case, its number among the case's published rows, and the row."""

    case: str
    number: int
    row: Mapping[str, Any]

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.row["case"], self.row["quantity"])))


@dataclass(frozen=True, slots=True)
class Length:
    """The length of shortened runs, as written and in ps, what they still measure, and whether they stand for whole
    ones."""

    text: str
    ps: int
    why: str
    stands: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run: a case of an experiment with some open parameters set.

    Members
    -------
    values : tuple
        Keys and values, sorted by key; those that are not as the experiment has them.
    limit_ps : int or None
        When a shortened run ends; None of a whole one.
    """

    name: str
    case: str
    values: Values
    seed: int
    limit_ps: int | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """An experiment of which some published figures are to be explained.

    Members
    -------
    name : str
        Of the catalogue, or a file.
    seed : int
        The experiment's own.
    lengths : Mapping
        Of shortened runs, by case; a case without one has whole runs only.
    left_out : tuple of str
        Published figures that are not explained, and why.
    entry : str
        A hash of what decides the entry's figures: runs of another entry do not count.
    """

    name: str
    id: str
    title: str
    seed: int
    parameters: tuple[Parameter, ...]
    figures: tuple[Figure, ...]
    lengths: Mapping[str, Length]
    left_out: tuple[str, ...]
    entry: str

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(figure.case for figure in self.figures))

    def screening(self) -> list[Wanted]:
        """Plan a run for each value of each open parameter alone, shortened where the case has a length."""
        found = []
        for case in self.cases:
            length = self.lengths.get(case)
            shown = [p for p in self.parameters if length is None or not p.of_the_end]
            found += self._combined(case, [(), *((p,) for p in shown)], [self.seed], length.ps if length else None)
        return found

    def whole(self, strongest: Mapping[str, Iterable[Sequence[str]]], seeds: Sequence[int]) -> list[Wanted]:
        """Plan runs of full length, of each case with its strongest parameters: each alone, and all pairs of values.

        Parameters
        ----------
        strongest : Mapping
            By the case, the keys of two parameters for each of its figures.
        seeds : Sequence[int]
        """
        by_key = {parameter.key: parameter for parameter in self.parameters}
        found = []
        for case, pairs in strongest.items():
            subsets: list[tuple[Parameter, ...]] = [()]
            for pair in pairs:
                both = tuple(by_key[key] for key in pair)
                subsets += [*((one,) for one in both), *([both] if len(both) > 1 else [])]
            found += self._combined(case, dict.fromkeys(subsets), seeds, self.full_ps(case))
        return [*dict.fromkeys(found)]

    def ends(self) -> list[Wanted]:
        """Plan whole runs of the parameters that shortened ones cannot show, each alone."""
        late = [(p,) for p in self.parameters if p.of_the_end]
        return [run for case in self.cases if case in self.lengths for run in self._combined(case, late, [self.seed])]

    def full_ps(self, case: str) -> int | None:
        """Return the limit of runs that are compared with published figures: None, or a length that stands for it."""
        length = self.lengths.get(case)
        return length.ps if length is not None and length.stands else None

    def samples(self, count: int, seeds: Sequence[int]) -> list[Wanted]:
        """Plan whole runs of a Latin hypercube over all open parameters: each value of a parameter has its share of the
        samples."""
        draws = random.Random(f"{self.id} {count}")
        columns = []
        for parameter in self.parameters:
            choices = [OWN, *parameter.values]
            column = [choices[n * len(choices) // count] for n in range(count)]
            draws.shuffle(column)
            columns.append(column)
        found = []
        for row in zip(*columns, strict=True):
            values = {p.key: value for p, value in zip(self.parameters, row, strict=True) if value != OWN}
            found += [self.wanted(case, values, seed, self.full_ps(case)) for case in self.cases for seed in seeds]
        return [*dict.fromkeys(found)]

    def wanted(self, case: str, values: Mapping[str, str], seed: int, limit_ps: int | None = None) -> Wanted:
        """Return a run of this experiment."""
        return Wanted(self.name, case, tuple(sorted(values.items())), seed, limit_ps)

    def _combined(
        self,
        case: str,
        subsets: Iterable[tuple[Parameter, ...]],
        seeds: Sequence[int],
        limit_ps: int | None = None,
    ) -> list[Wanted]:
        """Return the runs of all combinations of each subset's values."""
        return [
            self.wanted(case, dict(zip((p.key for p in subset), values, strict=True)), seed, limit_ps)
            for subset in subsets
            for values in itertools.product(*(p.values for p in subset))
            for seed in seeds
        ]


def study(name: str) -> Study:
    """Return the study of an experiment: what is to be explained of it.

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
            reason = _not_explained(figure.row) or _same(case.id, case.case)
            if reason:
                left_out.append(f"{figure.name}: {reason}")
            else:
                figures.append(figure)
    left_out += [f"{row.quantity}: is of all cases together" for row in cases[0].over_cases]
    if not figures:
        reasons = f": {'; '.join(left_out)}" if left_out else ""
        raise BentpipeError(f"{name}: has no published figure to explain{reasons}")
    first = cases[0]
    found = {case.case: _length(first.id, case.case) for case in cases}
    lengths = {case: length for case, length in found.items() if length is not None and length.ps < first.duration_ps}
    return Study(
        name,
        first.id,
        first.title,
        first.seed,
        parameters,
        tuple(figures),
        lengths,
        tuple(left_out),
        _entry(document),
    )


@cache
def shared_data() -> dict[str, Any]:
    """Return lengths of shortened runs, measurements that two entries share, and testbeds."""
    return read_document(_SHARED)[0]


def _same(name: str, case: str) -> str:
    """Return the other entry with the same measurement; "" if there is none."""
    for table in shared_data()["same"]:
        if (table["experiment"], table["case"]) == (name, case):
            return f"is the measurement of {table['as']}"
    return ""


def _length(name: str, case: str) -> Length | None:
    for table in shared_data()["shortened"]:
        if name in table["experiments"] and fnmatchcase(case, table.get("cases", "*")):
            ps = parse_duration(table["time"], _SHARED.name)
            return Length(table["time"], ps, table["why"], table.get("stands", False))
    return None


def _entry(document: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in document.items() if key not in _SILENT}
    kept["experiment"] = {key: document["experiment"][key] for key in _HEAD if key in document["experiment"]}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode()).hexdigest()[:12]


_KEPT: Final = ("case", "quantity", "metric", "unit", "source", "measured", "predicted", "over", "given_back")


def _not_explained(row: Mapping[str, Any]) -> str:
    """Return the reason why a published figure is left out; "" if it is not."""
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
