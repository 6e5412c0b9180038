"""The runs of a sweep: all of them read and checked before the first begins, each with the key by which it is known."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.assign import SHORTHANDS
from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.load import load, load_cases
from bentpipe.experiment.resolve.specs import Experiment, plain
from bentpipe.results.folder import CATALOGUE, case_folder
from bentpipe.results.schema import SCHEMA_VERSION
from bentpipe.sweeps.grid import Axis, combinations, seeds_text
from bentpipe.sweeps.table import planned_metrics

__all__ = ["Plan", "PlannedRun", "code_version", "plan_catalogue", "plan_sweep", "with_metrics"]

_MOST: Final = 100_000
"""Runs of a sweep."""

_DECIDES: Final = {
    "bentpipe_hdl": (".",),
    "bentpipe_sim": (".",),
    "bentpipe": ("apps", "experiment", "hosts", "ip", "netspec", "results", "tcp"),
}
"""Whose sources decide what comes out of a run."""

_SOURCES: Final = frozenset({".py", ".toml", ".lark", ".cpp", ".hpp", ".h", ".c"})


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a sweep.

    Members
    -------
    experiment : Experiment
        With its settings, case and seed.
    values : dict[str, str]
        What the sweep varies, by key.
    settings : tuple[str, ...]
        All that was set, varied values among it, as ``--set`` has it.
    key : str
        The hash of the resolved experiment, its seed and the version of the code: runs with one key have one outcome.
    """

    experiment: Experiment
    values: dict[str, str]
    settings: tuple[str, ...]
    key: str

    @property
    def folder(self) -> str:
        """The name of its run folder: readable, and no other run's."""
        e = self.experiment
        case = f"-{case_folder(e.case)[:60]}" if e.case else ""
        return f"{e.id}{case}-seed{e.seed}-{self.key[:16]}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep before it runs.

    Members
    -------
    id, title, paper, figure, description : str
        Of the experiment; of the catalogue its own.
    axes : tuple[Axis, ...]
    seeds : tuple[int, ...]
        Empty: each experiment's own.
    settings : tuple[str, ...]
        What all runs have.
    metrics : tuple[str, ...]
        Figures that are printed, tabulated and drawn instead of the usual ones.
    command : str
        What does it again.
    runs : tuple[PlannedRun, ...]
    version : str
        Of the code (:func:`code_version`).
    more : callable or None
        Plans a run with these values of what is varied, this case and this seed.
    """

    id: str
    title: str
    runs: tuple[PlannedRun, ...]
    paper: str = ""
    figure: str = ""
    description: str = ""
    axes: tuple[Axis, ...] = ()
    seeds: tuple[int, ...] = ()
    settings: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    command: str = ""
    version: str = field(default_factory=lambda: code_version())
    more: Callable[[dict[str, str], str, int], PlannedRun] | None = field(default=None, compare=False, repr=False)


@cache
def code_version() -> str:
    """Return the version of bentpipe, and the hash of the sources that decide the result of a run."""
    import importlib
    from importlib.metadata import version

    total = hashlib.sha256()
    for package, parts in _DECIDES.items():
        root = Path(str(importlib.import_module(package).__file__)).parent
        found = (file for part in parts for file in (root / part).rglob("*") if file.suffix in _SOURCES)
        for file in sorted(found):
            content = file.read_bytes()
            total.update(f"{package}/{file.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return f"{version('bentpipe')}+{total.hexdigest()[:12]}"


def plan_sweep(
    name: str,
    axes: Sequence[Axis] = (),
    seeds: Sequence[int] = (),
    settings: Sequence[str] = (),
    *,
    cases: Sequence[str] = (),
    duration_ps: int | None = None,
    quick: bool = False,
) -> Plan:
    """Return all combinations of the axes' values, the experiment's cases and the seeds.

    Parameters
    ----------
    name : str
        Of the catalogue, or a file.
    axes : Sequence[Axis]
    seeds : Sequence[int]
        Empty: the experiment's own.
    settings : Sequence[str]
        ``KEY=VALUE`` for all runs.
    cases : Sequence[str]
        These only; empty: all that there are.
    duration_ps, quick
        As for :func:`~bentpipe.experiment.load.load`.

    Raises
    ------
    BentpipeError, ConfigError
        Any of the runs cannot be, or there are too many.
    """
    given = {SHORTHANDS.get(key, key) for key in (setting.partition("=")[0].strip() for setting in settings)}
    for axis in axes:
        if axis.key in given:
            raise BentpipeError(f"--vary {axis.key}: is given by --set, too")
    count = max(len(seeds), 1)
    for axis in axes:
        count *= len(axis.values)
    if count > _MOST:
        raise BentpipeError(f"{count} runs, and {_MOST} are the most")

    reader = _Reader(name, tuple(settings), tuple(cases), duration_ps, quick)
    runs = tuple(run for values in combinations(axes) for seed in seeds or (None,) for run in reader.runs(values, seed))
    first = runs[0].experiment
    return Plan(
        first.id,
        first.title,
        _different(runs),
        first.paper,
        first.figure,
        first.description,
        tuple(axes),
        tuple(seeds),
        tuple(settings),
        command=_command(
            ["sweep", name],
            [("--vary", f"{axis.key}={','.join(axis.values)}") for axis in axes] + [("--case", case) for case in cases],
            seeds,
            settings,
            [("--duration", f"{duration_ps / 1e12:.12g} s")] if duration_ps else [("--quick", None)] if quick else [],
        ),
        more=reader.one,
    )


def plan_catalogue(
    names: Sequence[str],
    seeds: Sequence[int] = (),
    settings: Sequence[str] = (),
    *,
    quick: bool = False,
) -> Plan:
    """Plan experiments of the catalogue, each with all its cases; ``quick`` shortens those that declare a shorter
    run."""
    runs: list[PlannedRun] = []
    for name in names:
        short = quick and load(name, settings).quick_ps is not None
        for seed in seeds or (None,):
            read = load_cases(name, settings, seed=seed, quick=short)
            runs += (_planned(each, {}, tuple(settings)) for each in read)
    only = [] if len(names) == len(catalogue()) else [("--only", name) for name in names]
    again = _command(["catalogue", "run"], only, seeds, settings, [("--quick", None)] if quick else [])
    return Plan(CATALOGUE, "The catalogue", tuple(runs), seeds=tuple(seeds), settings=tuple(settings), command=again)


def with_metrics(plan: Plan, metrics: Sequence[str], also: Sequence[str] = ()) -> Plan:
    """Return a plan whose sweep shows these figures; ``also`` are further words of the command that does it again.

    Parameters
    ----------
    metrics : Sequence[str]
        Names of figures, or patterns of them (``*.cell_loss_ratio``).

    Raises
    ------
    BentpipeError
        No run of the plan can have such a figure.
    """
    named = planned_metrics(metrics, (run.experiment for run in plan.runs))
    words = [*(word for metric in metrics for word in ("--metric", metric)), *also]
    return replace(plan, metrics=named, command=" ".join(filter(None, (plan.command, shlex.join(words)))))


def _command(
    words: Sequence[str],
    options: Sequence[tuple[str, str]],
    seeds: Sequence[int],
    settings: Sequence[str],
    length: Sequence[tuple[str, str | None]],
) -> str:
    given = [*options, *(("--set", setting) for setting in settings), *length]
    if seeds:
        given.append(("--seeds", seeds_text(seeds)))
    return shlex.join(["bentpipe", *words, *(word for pair in given for word in pair if word is not None)])


@dataclass(frozen=True, slots=True)
class _Reader:
    """A reader of a sweep's experiments; members are as the parameters of :func:`plan_sweep`."""

    name: str
    settings: tuple[str, ...]
    cases: tuple[str, ...]
    duration_ps: int | None
    quick: bool

    def runs(self, values: dict[str, str], seed: int | None, case: str = "") -> Iterator[PlannedRun]:
        """Plan the runs with these values of what is varied: of each case, or of this one."""
        own = (*self.settings, *(f"{key}={value}" for key, value in values.items()))
        read = load_cases(
            self.name,
            self.settings,
            varied=values,
            seed=seed,
            duration_ps=self.duration_ps,
            quick=self.quick,
            only=[case] if case else self.cases,
        )
        yield from (_planned(each, values, own) for each in read)

    def one(self, values: dict[str, str], case: str, seed: int) -> PlannedRun:
        """Plan one further run."""
        (run,) = self.runs(values, seed, case)
        return run


def _planned(experiment: Experiment, values: dict[str, str], settings: tuple[str, ...]) -> PlannedRun:
    data = plain(experiment)
    del data["document"], data["file"], data["tables"]  # how it was written
    return PlannedRun(experiment, values, settings, _key(data))


def _key(data: dict[str, Any]) -> str:
    whole = [SCHEMA_VERSION, code_version(), data]
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


def _different(runs: tuple[PlannedRun, ...]) -> tuple[PlannedRun, ...]:
    """Return the runs, if no two are the same."""
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        other = seen.setdefault(run.key, run)
        if other is not run:
            one, two = (", ".join(f"{k}={v}" for k, v in r.values.items()) for r in (other, run))
            raise BentpipeError(f"--vary: {one} and {two} are the same experiment")
    return runs
