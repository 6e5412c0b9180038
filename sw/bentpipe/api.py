"""bentpipe from Python: ``from bentpipe import load, run, sweep, read``.

What the commands ``run`` and ``sweep`` do, by the same functions, with results as pandas' data frames. A script that
calls :func:`sweep` without ``cluster`` starts processes, and so has to stand under ``if __name__ == "__main__":``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError

if TYPE_CHECKING:
    import pandas as pd

    from bentpipe.attach.client import SessionClient
    from bentpipe.attach.running import Attached
    from bentpipe.experiment.resolve.specs import Experiment
    from bentpipe.results.folder import RunFolder
    from bentpipe.results.schema import RunResult
    from bentpipe.sweeps.plan import Plan
    from bentpipe.sweeps.precision import Precision

__all__ = ["Run", "Sweep", "UntilPrecise", "attach", "load", "read", "run", "session", "sweep"]

Values = Mapping[str, Any] | Sequence[str]
"""Settings: values by dotted key, or texts ``KEY=VALUE``."""

_PS: Final = 10**12


@dataclass(frozen=True)
class UntilPrecise:
    """Seeds of a sweep: as many at each point as the 95 % interval of a figure needs to be so narrow.

    Members
    -------
    precision : str
        ``"cell_loss_ratio: 10 %"``: half the interval, as a share of the mean.
    most : int
        Seeds of a point at most.
    first : str or Sequence[int]
        Seeds of the first round; 1 to 5 unless given.
    """

    precision: str
    most: int = 100
    first: str | Sequence[int] = ()


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    Members
    -------
    summary : dict
        As ``result.json`` has it.
    folder : Path | None
        Its run folder; None of a run that has none.
    """

    summary: dict[str, Any]
    folder: Path | None
    _result: RunResult

    def __repr__(self) -> str:
        """Return the run in a line: the whole summary has more than a million characters."""
        s = self.summary
        case = f", case {s['case']!r}" if s.get("case") else ""
        where = f", in {self.folder}" if self.folder else ""
        return f"<Run of {s['id']}{case}: {s['status']}, {s['time']['simulated_s']:g} s, seed {s['seed']}{where}>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: verdict, flows, cells."""
        from bentpipe.report.run import run_glance

        return run_glance(self._result)

    @property
    def metrics(self) -> dict[str, float | None]:
        """The figures of the run by name, in base units (rates in b/s)."""
        return self.summary["metrics"]

    @cached_property
    def flows(self) -> pd.DataFrame:
        """A row for each flow, the columns as in ``flows.parquet``."""
        import pandas as pd

        return pd.DataFrame(self._result.flows)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each VC with what became of its cells: ``vc``, ``source``, ``sink``, and in cells ``sent``,
        ``received``, ``lost``, ``errored``, ``misinserted``, ``tagged``; then a column for each place and reason of
        losses, ``lost.NODE.REASON``. Cells under way are in ``sent`` alone.

        Raises
        ------
        BentpipeError
            The run was on a board by itself.
        """
        import pandas as pd

        if self.summary["ledger"] is None:
            raise BentpipeError(f"{self.summary['id']}: ran on a board by itself, which has no loss ledger")
        rows = []
        for row in self.summary["ledger"]:
            counted = row["cells"]
            lost = {f"lost.{each['where']}.{each['why']}": each["cells"] for each in counted["lost"]}
            own = {name: counted[name] for name in ("sent", "received", "errored", "misinserted", "tagged")}
            ends = {"vc": row["vc"], "source": row["source"], "sink": row["sink"]}
            rows.append({**ends, **own, "lost": sum(lost.values()), **lost})
        head = ["vc", "source", "sink", "sent", "received", "lost", "errored", "misinserted", "tagged"]
        table = pd.DataFrame(rows, columns=[*head, *dict.fromkeys(name for row in rows for name in row if "." in name)])
        return table.fillna(0).astype(dict.fromkeys(table.columns[3:], int))

    @cached_property
    def losses(self) -> pd.DataFrame:
        """A row for each lost cell, the columns as in ``losses.parquet`` (:data:`bentpipe.results.losses.COLUMNS`).

        Raises
        ------
        BentpipeError
            The run kept no records of lost cells.
        """
        if self._result.losses is None:
            raise BentpipeError(f"{self.summary['id']}: has no records of lost cells: set record.losses = true")
        return self._result.losses.to_pandas()

    def clr(self, by: str = "vc") -> pd.DataFrame:
        """Return the figures of lost cells, a row for each VC, each port, or of the whole run.

        Parameters
        ----------
        by : str
            "vc": a row for each VC that sent cells; "port": for each port that cells arrived for; "run".

        Returns
        -------
        DataFrame
            A column ``vc`` or ``port``, and one for each figure that these have (``bentpipe help metrics``), among them
            ``cell_loss_ratio``; in base units.
        """
        import pandas as pd

        from bentpipe.results.declared import metrics_of

        if by not in ("vc", "port", "run"):
            raise BentpipeError(f"clr(by={by!r}): expected 'vc', 'port' or 'run'")
        names = [metric.name for metric in metrics_of(by) if by != "run" or "vc" in metric.of]
        found, rows = self.metrics, []
        owners = {"run": [""], "vc": [row["vc"] for row in self.summary["ledger"] or ()]}
        for owner in owners.get(by) or [row["port"] for row in self.summary["ports"] or ()]:
            keys = {name: f"{owner}.{name}" if owner else name for name in names}
            if keys["cell_loss_ratio"] in found:
                at = {by: owner} if owner else {}
                rows.append(at | {name: found[key] for name, key in keys.items() if key in found})
        return pd.DataFrame(rows)

    @cached_property
    def trace(self) -> pd.DataFrame:
        """All series: ``series``, ``time_s``, ``value``, ``event`` (the kind of an event, None of a sample)."""
        import pandas as pd

        trace = self._result.trace
        rows = [
            (name, t / _PS, v, None) for name, (ts, vs) in trace.series.items() for t, v in zip(ts, vs, strict=True)
        ]
        rows += [(name, time / _PS, value, kind) for name, time, kind, value in trace.events]
        return pd.DataFrame(rows, columns=["series", "time_s", "value", "event"])

    def series(self, name: str) -> pd.Series:
        """Return one series: its values over the simulated time in seconds.

        Parameters
        ----------
        name : str
            As ``flow1.cwnd``, ``west.queue``.

        Raises
        ------
        BentpipeError
            Nothing of that name was recorded.
        """
        import pandas as pd

        from bentpipe_hdl.words import nearest

        known = self._result.trace.series
        if name not in known:
            raise BentpipeError(f"there is no series {name!r}{nearest(name, known)}")
        times, values = known[name]
        return pd.Series(list(values), index=pd.Index([time / _PS for time in times], name="time_s"), name=name)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """Return what events, profiles and requests wrote in the run, in order: ``time_s``, ``source``, ``key``,
        ``value``."""
        import pandas as pd

        rows = [(at_ps / _PS, source, key, value) for at_ps, source, key, value in self._result.writes]
        return pd.DataFrame(rows, columns=["time_s", "source", "key", "value"])

    def to_pandas(self) -> pd.DataFrame:
        """Return the figures of the run: ``flow``, ``vc``, ``port`` (all "" for the run as a whole), ``metric``,
        ``value``, ``unit``, in base units, as in the table of a sweep."""
        import pandas as pd

        from bentpipe.results.declared import subject_columns, unit_of
        from bentpipe.sweeps.table import figures_of

        found = figures_of(self.summary)
        rows = [
            (*subject_columns(owner, metric).values(), metric, value, unit_of(metric))
            for (owner, metric), value in found.items()
        ]
        columns = ["flow", "vc", "port", "metric", "value", "unit"]
        return pd.DataFrame(rows, columns=columns).astype({"value": float})


@dataclass(frozen=True)
class Sweep:
    """A sweep that has ended.

    Members
    -------
    summary : dict
        As ``result.json`` has it: ``status``, ``runs``, ``means``, ``published``.
    folder : Path
    """

    summary: dict[str, Any]
    folder: Path

    def __repr__(self) -> str:
        """Return the sweep in a line, as :class:`Run` does."""
        s = self.summary
        return f"<Sweep of {s['id']}: {s['status']}, {len(s['runs'])} runs, in {self.folder}>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: verdict and means."""
        from bentpipe.sweeps.page import sweep_glance

        return sweep_glance(self.summary)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table: a row for each figure of each run (:mod:`bentpipe.sweeps.table`)."""
        from bentpipe.sweeps.table import read_table

        return read_table(self.folder).to_pandas()

    def means(self, metric: str = "aggregate_goodput") -> pd.DataFrame:
        """Return a figure's statistics over the seeds: a row for each case and combination of varied values.

        The columns are ``count`` (of runs), ``mean``, ``sigma``, ``low`` and ``high`` (of the 95 % interval), ``least``
        and ``most``. They are in base units; those without an interval are empty. A figure of a flow, VC or port is
        named as ``flow1.cell_loss_ratio``.

        Raises
        ------
        BentpipeError
            No run has such a figure.
        """
        import pandas as pd

        from bentpipe.results.declared import metric_name
        from bentpipe.sweeps.groups import group_rows
        from bentpipe.sweeps.table import check_metrics, read_table

        table = read_table(self.folder)
        check_metrics([metric], table)
        keys = [axis["key"] for axis in self.summary["axes"]]
        rows = []
        for group in group_rows(row for row in table.to_pylist() if metric_name(row) == metric):
            figure = group.mean
            if figure is None:
                continue
            half = float("nan") if figure.half is None else figure.half
            at = {name: group.at[name] for name in ("experiment", "case", "at", "curve", *keys)}
            numbers = {name: getattr(figure, name) for name in ("count", "mean", "sigma", "least", "most")}
            rows.append({**at, **numbers, "low": figure.mean - half, "high": figure.mean + half})
        return pd.DataFrame(rows)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Return a row for each run: ``experiment``, ``case``, ``seed``, ``status``, ``reason``, ``seconds``."""
        import pandas as pd

        return pd.DataFrame(self.summary["runs"])

    def run(self, folder: str) -> Run:
        """Return one of its runs, by ``folder`` as in :attr:`runs` and in the column ``run`` of the table."""
        found = read(self.folder / folder)
        assert isinstance(found, Run)
        return found


def load(
    name: str | Path,
    settings: Values = (),
    *,
    seed: int | None = None,
    duration: str | float | None = None,
    quick: bool = False,
    case: str | None = None,
) -> Experiment:
    """Read an experiment and check it.

    Parameters
    ----------
    name : str or Path
        Of the catalogue, or a TOML file.
    settings : Mapping or Sequence, optional
        ``{"hosts.tcp.variant": "sack"}`` or ``["hosts.tcp.variant=sack"]``.
    seed : int, optional
        Instead of the file's, 0 to 2**32 - 1.
    duration : str or float, optional
        Seconds, or as ``"500 ms"``, instead of the file's.
    quick : bool
        For the shorter time that the experiment declares.
    case : str, optional
        With the settings of this case.

    Raises
    ------
    BentpipeError
        It is not there, or a setting makes no sense.
    """
    _prepare()
    from bentpipe.experiment.load import check_seed, load_cases
    from bentpipe.experiment.load import load as read_file

    options: dict[str, Any] = {
        "seed": None if seed is None else check_seed(seed, "seed"),
        "duration_ps": _ps(duration, quick),
        "quick": quick,
    }
    texts = _texts(settings)
    return load_cases(str(name), texts, only=[case], **options)[0] if case else read_file(str(name), texts, **options)


def run(
    what: str | Path | Experiment,
    settings: Values = (),
    *,
    seed: int | None = None,
    duration: str | float | None = None,
    quick: bool = False,
    case: str | None = None,
    folder: str | Path | None = None,
    force: bool = False,
    show_progress: bool = False,
) -> Run:
    """Run an experiment, or one case of it; what ``bentpipe run`` does.

    Parameters
    ----------
    what : str, Path or Experiment
        A name or a file, or what :func:`load` gave; then without settings, seed, duration, quick and case.
    settings, seed, duration, quick, case
        As for :func:`load`.
    folder : str or Path, optional
        A run folder to write, with plots and report; without one nothing is written.
    force : bool
        Replace a run folder that is there.
    show_progress : bool
        A bar on stderr.

    Returns
    -------
    Run
        Its ``summary["status"]`` is "done", "interrupted" or "failed".

    Raises
    ------
    BentpipeError
        Something of this cannot be; the experiment has cases and none is named.
    """
    _prepare()
    from bentpipe.experiment.load import cases_of
    from bentpipe.experiment.run.perform import perform
    from bentpipe.experiment.run.run import run_experiment
    from bentpipe.results.folder import RunFolder

    if isinstance(what, (str, Path)):
        cases = [each.name for each in cases_of(str(what))]
        if cases and case is None:
            raise BentpipeError(f"{what}: has cases: name one, or use sweep(); they are {', '.join(cases)}")
        texts = _texts(settings)
        experiment = load(what, texts, seed=seed, duration=duration, quick=quick, case=case)
    else:
        if settings or quick or any(given is not None for given in (seed, duration, case)):
            raise BentpipeError("settings, seed, duration, quick and case are given to load()")
        experiment, texts = what, []
    if folder is None:
        result = run_experiment(experiment, settings=tuple(texts), show_progress=show_progress)
        return Run(result.summary, None, result)
    with RunFolder.claim(Path(folder), force) as held:
        result = perform(experiment, held, settings=texts, show_progress=show_progress)
    return Run(result.summary, Path(folder), result)


def attach(
    name: str | Path,
    ends: Mapping[str, str],
    settings: Values = (),
    *,
    folder: str | Path,
    record: bool = False,
    options: Sequence[str] = (),
) -> Attached:
    """Attach hosts to an experiment's network in real time, in a process of its own; what ``bentpipe attach`` does.

    ``with attach("acts-1flow", {"alpha1": "ns:ku", "ultra": "ns:gsfc"}, folder="out") as session:`` begins when packets
    pass, and ends the session behind the block. ``session.client`` reads and changes it; ``read("out")`` is the result.

    Parameters
    ----------
    name : str or Path
        Of the catalogue, or a TOML file.
    ends : Mapping
        Two hosts or more, each with its end, as ``--a`` has it.
    settings : Mapping or Sequence, optional
        As for :func:`load`.
    folder : str or Path
        The run folder to make.
    record : bool
        For ``bentpipe replay``.
    options : Sequence of str
        More options of ``bentpipe attach``, as ``["--duration", "10 s"]``.

    Raises
    ------
    BentpipeError
        On entering: it does not begin. On leaving: it failed.
    """
    from bentpipe.attach.running import Attached

    pairs = [f"{host}={end}" for host, end in ends.items()]
    if len(pairs) < 2:
        raise BentpipeError("a session has two attached hosts or more")
    words = [str(name), "--a", pairs[0], "--b", pairs[1]]
    words += [word for pair in pairs[2:] for word in ("--end", pair)]
    words += [word for text in _texts(settings) for word in ("--set", text)]
    words += ["--record"] * record
    return Attached([*words, *options], Path(folder))


def session(folder: str | Path) -> SessionClient:
    """Connect to a session that goes on in a run folder; leaving the ``with`` block leaves it as it is.

    Raises
    ------
    BentpipeError
        None goes on there.
    """
    from bentpipe.attach.client import SessionClient

    return SessionClient(folder)


def sweep(
    name: str | Path,
    vary: Mapping[str, Any] | Sequence[str] = (),
    seeds: str | Sequence[int] | UntilPrecise = (),
    settings: Values = (),
    *,
    cases: Sequence[str] = (),
    duration: str | float | None = None,
    quick: bool = False,
    folder: str | Path | None = None,
    force: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    show_progress: bool = False,
) -> Sweep:
    """Run an experiment with all combinations of values, cases and seeds; what ``bentpipe sweep`` does.

    Parameters
    ----------
    name : str or Path
        Of the catalogue, or a TOML file.
    vary : Mapping or Sequence
        ``{"hosts.mtu": "1500..9180:3"}``, or texts as of ``--vary``.
    seeds : str, Sequence[int] or UntilPrecise
        ``"1-10"`` or ``range(1, 11)``; the experiment's own if empty.
    settings, duration, quick
        As for :func:`load`, for all runs.
    cases : Sequence[str]
        These alone.
    folder : str or Path, optional
        Of the sweep, ``runs/NAME-1``, ``-2``, … if not given; what is done in one that is there is not done again.
    force : bool
        Replace the folder.
    workers, cluster : int, str, optional
        Processes here; or the address of a Dask scheduler.
    show_progress : bool
        A bar on stderr.

    Returns
    -------
    Sweep
        Its ``summary["status"]`` is "done", "interrupted" or "failed" (some runs; the others are whole).

    Raises
    ------
    BentpipeError, OSError
        Something of this cannot be; the cluster cannot be had; a disk is full.
    """
    _prepare()
    from bentpipe.progress import Counted
    from bentpipe.sweeps.grid import parse_axes, parse_seeds
    from bentpipe.sweeps.plan import plan_sweep
    from bentpipe.sweeps.run import claim_sweep

    precision, seeds = _until(seeds)
    plan = plan_sweep(
        str(name),
        parse_axes(vary),
        parse_seeds(seeds) if isinstance(seeds, str) or len(seeds) else (),
        _texts(settings),
        cases=cases,
        duration_ps=_ps(duration, quick),
        quick=quick,
    )
    path = None if folder is None else Path(folder)
    with claim_sweep(plan, path, force) as held, Counted(show_progress) as bar:
        summary = _swept(plan, held, precision, {"workers": workers, "cluster": cluster, "progress": bar.update})
    return Sweep(summary, held.path)


def _swept(plan: Plan, held: RunFolder, precision: Precision | None, options: dict[str, Any]) -> dict[str, Any]:
    from bentpipe.sweeps.plan import with_metrics
    from bentpipe.sweeps.run import run_precisely, run_sweep

    if precision is None:
        return run_sweep(plan, held, **options)
    return run_precisely(with_metrics(plan, [precision.metric]), held, precision, **options)


def _until(
    seeds: str | Sequence[int] | UntilPrecise,
) -> tuple[Precision | None, str | Sequence[int]]:
    from bentpipe.sweeps.precision import FIRST_SEEDS, parse_precision

    if isinstance(seeds, UntilPrecise):
        return parse_precision(seeds.precision, seeds.most), seeds.first or FIRST_SEEDS
    return None, seeds


def read(folder: str | Path) -> Run | Sweep:
    """Read the folder of a run or of a sweep, and return it as an object.

    Raises
    ------
    BentpipeError
        It is neither, or is damaged or of another schema.
    """
    from bentpipe.results.folder import is_cases, is_sweep, read_above, read_run

    path = Path(folder)
    if is_sweep(path):
        return Sweep(read_above(path), path)
    if is_cases(path):
        raise BentpipeError(f"{path}: has a run folder for each case: read one of them")
    result = read_run(path)
    return Run(result.summary, path, result)


def _prepare() -> None:
    """Compile the hosts before anything imports them."""
    from bentpipe.compiled import prepare

    prepare()


def _texts(settings: Values) -> list[str]:
    from bentpipe.sweeps.grid import as_text

    if isinstance(settings, Mapping):
        return [f"{key}={as_text(value)}" for key, value in settings.items()]
    if isinstance(settings, str):
        raise BentpipeError(f"settings: expected a mapping or a list of KEY=VALUE, not the text {settings!r}")
    return [*settings]


def _ps(duration: str | float | None, quick: bool) -> int | None:
    from bentpipe.experiment.load import parse_duration

    if quick and duration is not None:
        raise BentpipeError("duration and quick: give one of them")
    return None if duration is None else parse_duration(str(duration), "duration")
