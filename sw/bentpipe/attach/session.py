"""Attached hosts and a network in step with the clock: from the ends to a run folder."""

from __future__ import annotations

import dataclasses
import gc
import ipaddress
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.attach.control import SOCKET, Control
from bentpipe.attach.ends import ETHERNET, End, Opened
from bentpipe.attach.hosts import attached_hosts
from bentpipe.attach.live import ENOUGH_PS, LiveFolder
from bentpipe.attach.machine import stolen_s
from bentpipe.attach.rpc import VERSION, Service
from bentpipe.attach.settings import read_settings
from bentpipe.attach.slack import shortened, take_slack
from bentpipe.attach.verdict import end_row, verdict_of
from bentpipe.errors import BentpipeError
from bentpipe.experiment.build.hosts import BuiltExperiment, add_hosts
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.build.overrides import Overrides
from bentpipe.experiment.build.rows import RowFeed
from bentpipe.experiment.run.run import run_experiment
from bentpipe.experiment.run.trials import with_splitting
from bentpipe.hosts.engine import PROGRESS_PS
from bentpipe.report.repeat import SLACK_PS
from bentpipe.report.run import make_report
from bentpipe_hdl.units import format_time
from bentpipe_sim.attached import Attachment, Carries, EndPort, Late, Transport
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.nodes import Link

if TYPE_CHECKING:
    from bentpipe.experiment.build.overrides import Resolved
    from bentpipe.experiment.resolve.specs import EventSpec, Experiment
    from bentpipe.results.folder import RunFolder
    from bentpipe.results.schema import RunResult
    from bentpipe_sim.network import Network
    from bentpipe_sim.nodes import Nic

__all__ = ["ARRIVALS", "ENDLESS_PS", "SUBNET", "Callbacks", "Options", "Session"]

ENDLESS_PS: Final = 10**17
"""Until it is ended."""

ARRIVALS: Final = "arrivals.bin"
"""In the run folder: what was injected, with its ticks."""

SUBNET: Final = ipaddress.IPv4Network("10.111.0.0/24")
"""Subnet of the hosts in namespaces."""

_QUEUE: Final = 1000
"""PDUs that wait for an attached host's interface at most, where the experiment sets no limit; Linux' txqueuelen."""

_TURN_PS: Final = 5 * 10**9
"""Simulated time between two turns in which a session handles requests of programs."""
_BRIDGED: Final = 10
_SWITCH_S: Final = 0.0005
"""Time for which another thread may hold Python's lock while the simulation waits for it."""
_LIVE_PRIORITY, _SIMULATION_PRIORITY, _DOORS_PRIORITY = 5, 10, 20


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """The options of a session.

    Members
    -------
    late : Late
    computing_ps, release_ps : int
        The slack that is wanted.
    fifo : bool
        Use real-time priority (SCHED_FIFO) where it is permitted.
    cpus : tuple of int
        The processors of the simulation and of input and output; empty: any.
    record : bool
        Record the injected packets.
    subnet : IPv4Network
        Addresses for the hosts of namespaces.
    subnet6 : IPv6Network, optional
        The same for IPv6; None: they have no such addresses.
    commands : tuple of str, optional
        For ``bentpipe shell``: options and words of the commands that it runs in the namespaces, as they were given.
    start : datetime, optional
        The time of day of simulated time 0, with its zone; None: as soon as everything is ready.
    """

    late: Late = Late.REPORT
    computing_ps: int = SLACK_PS["computing"]
    release_ps: int = SLACK_PS["release"]
    fifo: bool = True
    cpus: tuple[int, ...] = ()
    record: bool = False
    subnet: ipaddress.IPv4Network = SUBNET
    subnet6: ipaddress.IPv6Network | None = None
    commands: tuple[str, ...] | None = None
    start: datetime | None = None


class _Ledger:
    """An attached host as the loss ledger asks for it."""

    def __init__(self, refused: Callable[[int], int], congested: Callable[[int], int]) -> None:
        self.interface = self
        self.refused, self.congested = _ByVc(refused), _ByVc(congested)
        self.damaged: dict[int, int] = {}
        self.overrun: dict[int, int] = {}


class _ByVc(Mapping[int, int]):
    def __init__(self, count: Callable[[int], int]) -> None:
        self._count = count

    def __getitem__(self, vc: int) -> int:
        return self._count(vc)

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass
class Callbacks:
    """The callbacks of a session: its progress every 50 ms, and its end.

    Members
    -------
    ready : callable
        Called when everything is ready, before the clock starts.
    began : callable
        Called when the clock starts.
    progress : callable
        Called with the session and its time in ps.
    over : callable
        Returns True if the session is to end.
    """

    ready: Callable[[], None] = field(default=lambda: None)
    began: Callable[[], None] = field(default=lambda: None)
    progress: Callable[[Session, int], None] = field(default=lambda _session, _now: None)
    over: Callable[[], bool] = field(default=lambda: False)


class Session:
    """An experiment with attached hosts.

    Parameters
    ----------
    experiment : Experiment
        As it was read.
    ends : Mapping of str to End
        By host.
    options : Options
    replay : Path, optional
        Instead of the ends: what was injected, as a session has recorded it; no clock.
    changes : Sequence of Mapping
        And what was changed meanwhile, as :attr:`changed` has it.

    Members
    -------
    experiment : Experiment
        With what is left of its traffic, on paths that are shorter by the slack.
    attached : Attached
    slack : Slack
    opened : dict of str to Opened
        The ends that are there, by host.
    changed : list of dict
        What was changed while it went on: ``at_ps`` and ``settings``.
    started : datetime, optional
        The time of day of simulated time 0; None: not known yet, or a replay.

    Raises
    ------
    BentpipeError
        These hosts cannot be attached.
    """

    def __init__(
        self,
        experiment: Experiment,
        ends: Mapping[str, End],
        options: Options,
        replay: Path | None = None,
        changes: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        left, self.attached = attached_hosts(experiment, ends)
        self.experiment, self.slack = take_slack(
            left, tuple(ends), self.attached.vcs, options.computing_ps, options.release_ps
        )
        self.options = options
        self.opened: dict[str, Opened] = {}
        self.attachment: Attachment | None = None
        self.numbers: dict[str, int] = {}
        self.priority = "normal"
        self.digest: dict[str, str] = {}
        self._callbacks = Callbacks()
        self._record: Path | None = None
        self._record_lost = ""
        self._replay = replay
        self._built: BuiltExperiment | None = None
        self._live: LiveFolder | None = None
        self._recorder: Any = None
        self._due_ps = 0
        self._switch_s = sys.getswitchinterval()
        self._report: dict[str, Any] = {}
        self._control: Control | None = None
        self._socket: Path | None = None
        self._service: Service | None = None
        self._stopped = False
        self._notified = 0
        self._live_threads = threading.local()
        self._to_do = list(changes)
        self.read = experiment
        self._overrides: Overrides | None = None
        self.changed: list[dict[str, Any]] = []
        self._begun = False
        self.started: datetime | None = None
        self._spent = (time.thread_time(), time.process_time())
        self._stolen_s = stolen_s()

    @property
    def text(self) -> str:
        """Return the text for a session's begin: the source of the slack, and the flows that nobody carries."""
        torn = ", ".join(self.attached.left_out)
        return self.slack.text() + (f"; left out, as one end is attached and the other is not: {torn}" if torn else "")

    @contextmanager
    def open(self) -> Iterator[Session]:
        """Open the session's ends, within the context."""
        with ExitStack() as stack:
            prefixes = [self.options.subnet, *([self.options.subnet6] if self.options.subnet6 else [])]
            for number, (host, end) in enumerate(self.attached.ends.items(), 1):
                addresses = [ipaddress.ip_interface(f"{each[number]}/{each.prefixlen}") for each in prefixes]
                self.opened[host] = end.open(stack, self._mtu(host), addresses)
            yield self

    def _mtu(self, host: str) -> int:
        """Return the octets of the longest IP packet of a host: the least MTU of the host and those that it talks
        to."""
        paths = [self.experiment.vcs[vc].path for vc in self.attached.vcs]
        pairs = [{path[0], path[-1]} for path in paths if host in (path[0], path[-1])]
        return min(self.experiment.host(end).config.mtu for end in set().union(*pairs))

    # The network

    def build(self, experiment: Experiment, recorder: Any) -> BuiltExperiment:
        """Build network and hosts, and attach the hosts outside."""
        self._recorder = recorder
        network, nics, vcs = build_network(experiment, _BRIDGED + ETHERNET)
        try:
            for node in network.nodes:  # `bentpipe set` may ask for an outage, or another delay
                if isinstance(node, Link):
                    node.may_fail()
                    node.may_move()
                    node.may_impair()
            network.start()
            attachment = self._attach(network, nics, vcs)
            outside = {
                host: _Ledger(attachment.refused(number), attachment.congested(number))
                for host, number in self.numbers.items()
            }
            built = with_splitting(experiment, add_hosts(experiment, recorder, network, nics, vcs, outside))
        except BaseException:
            network.close()
            raise
        self._built = built
        self._overrides = Overrides(
            self.read,
            built.change,
            adjusted=lambda read: shortened(read, self.slack),
            feed=RowFeed.of(self.experiment, network, self.slack.lines),
            adopt=built.adopt,
            lenient=True,
        )
        if self._replay is None and self._socket is not None:
            self._service = Service(self, self._overrides)
            self._control = Control(self._socket, self._service, self._as_live)
        engine: Any = built.engine
        engine.endless = True  # hosts outside go on when all flows inside have finished
        return dataclasses.replace(
            built,
            engine=_Engine(self, network, engine),
            close=lambda: self._end(network),
            save=None,
            overrides=self._overrides,
        )

    def _attach(self, network: Network, nics: Mapping[str, Nic], vcs: Sequence[int]) -> Attachment:
        made = Attachment(network, self.slack.computing_ps, self.slack.lag_ps, self.options.late)
        for host, end in self.attached.ends.items():
            opened, mtu = self.opened.get(host), self._mtu(host)
            frame = mtu + ETHERNET
            most = {Carries.FRAMES: frame, Carries.PACKETS: mtu}.get(end.carries, frame + _BRIDGED)
            queue = self.experiment.host(host).config.interface_queue or _QUEUE
            transport, fd = (opened.transport, opened.fd) if opened else (Transport.DEVICE, -1)
            self.numbers[host] = made.add(nics[host], EndPort(end.carries, transport, fd, most, queue))
        for index in self.attached.vcs:
            vc = self.experiment.vcs[index]
            source, sink = self.numbers[vc.path[0]], self.numbers[vc.path[-1]]
            vlans = self.attached.vlans_of(self.experiment, index)
            made.join(source, sink, vcs[index], self.slack.delays_ps[vc.name], vlans)
        self.attachment = made
        return made

    # In real time

    def run(self, folder: RunFolder, settings: Sequence[str] = (), callbacks: Callbacks | None = None) -> RunResult:
        """Run until the experiment's time is over, the session is ended, or a signal arrives; return the result."""
        self._callbacks = callbacks or Callbacks()
        folder.begin()
        if self.options.record:
            self._record = folder.work / ARRIVALS
        self._socket = folder.work / SOCKET
        if self._replay is None and self.slack.lag_ps - self.slack.computing_ps >= ENOUGH_PS:
            self._live = LiveFolder(folder, lambda so_far: {"attached": self._so_far(so_far)})
        result = run_experiment(
            self.experiment,
            build=self.build,
            settings=tuple(settings),
            folder=self._live,
            capture_folder=folder.work,
        )
        summary = result.summary
        if summary["status"] == "interrupted":  # so it ends
            summary |= {"status": "done", "reason": None}
        summary["attached"] = self._report
        over = self._report["over"]
        if over or self._record_lost:
            summary |= {"status": "failed", "reason": over or self._record_lost}
        folder.finish(result)
        if self._record is not None:
            self._record.replace(folder.path / ARRIVALS)
        folder.draw(lambda aside: _draw(aside, result))
        return result

    @property
    def verdict(self) -> str:
        """The line that says what passed and what was late; empty until the session has ended."""
        return str(self._report.get("verdict", ""))

    def begin(self, network: Network) -> None:
        """Start the clock."""
        assert self.attachment is not None
        if self._record is not None or self._replay is not None:
            network.trace()
        if self._replay is not None:
            self.attachment.replay(self._replay)
            self._callbacks.began()
            return
        if self._record is not None:
            self.attachment.record(self._record)
        self._spent = (time.thread_time(), time.process_time())
        self._stolen_s = stolen_s()
        gc.collect()
        gc.freeze()
        gc.disable()
        sys.setswitchinterval(_SWITCH_S)
        self._begun = True
        start = self.options.start
        late_s = 0.0 if start is None else time.time() - start.timestamp()
        if late_s > 0:
            raise BentpipeError(f"--at: the network was ready {late_s:.1f} s after that time; start it earlier")
        self._callbacks.ready()
        if start is None:
            self._callbacks.began()  # what that takes is no part of simulated time
        self._prefer((0, *self.attachment.begin(0 if start is None else round(start.timestamp() * 1e9))))
        if start is None:
            self.started = datetime.now(UTC)

    @property
    def left_s(self) -> float:
        """The time until the start (s); 0: it has started, or is a replay."""
        if self.started is not None or self.attachment is None or self._replay is not None:
            return 0.0
        return max(-self.attachment.clock_ns / 1e9, 0.0)

    def start(self) -> None:
        """Note the start, once :attr:`left_s` is 0, if it was ahead."""
        if self.started is None and self.attachment is not None and self._replay is None:
            self.started = datetime.now(UTC) - timedelta(microseconds=self.attachment.clock_ns / 1000)
            self._callbacks.began()

    def _prefer(self, threads: Sequence[int]) -> None:
        """Set real-time priority for the simulation, a higher one for input and output, and their processors."""
        for thread, priority in zip(threads, (_SIMULATION_PRIORITY, _DOORS_PRIORITY, _DOORS_PRIORITY), strict=True):
            if self.options.cpus:
                simulation, doors = self.options.cpus
                os.sched_setaffinity(thread, {simulation if not thread else doors})
            if self.options.fifo:
                try:
                    os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
                except PermissionError:
                    return
        if self.options.fifo:
            self.priority = "real-time"
            if self._live is not None:  # nobody else is to keep it from going on while it has Python's lock
                os.sched_setscheduler(self._live.thread, os.SCHED_FIFO, os.sched_param(_LIVE_PRIORITY))

    def _so_far(self, summary: Mapping[str, Any]) -> dict[str, Any]:
        return self.report(round(summary["time"]["simulated_s"] * 10**12))

    def _end(self, network: Network) -> None:
        """Stop the clock; packets under way stay undelivered."""
        try:
            if self._live is not None:
                self._live.close()
            if self._control is not None:
                self._control.close()
            if self.attachment is None:
                return
            if self._begun:
                gc.enable()
                gc.unfreeze()
                sys.setswitchinterval(self._switch_s)
                if self.priority == "real-time":
                    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            try:
                self.attachment.close()
            except SimulationError:
                if self._replay is not None:
                    raise
            self._look_at_record(network.now_ps)
            if self._record is not None or self._replay is not None:
                digests = network.digests().items()
                self.digest = {f"{node}:{port}": f"{digest:016x}" for (node, port), digest in digests}
            self._report = self.report(network.now_ps)
        finally:
            self.attachment = None
            network.close()

    def goes_on(self, now_ps: int) -> bool:
        """Report every 50 ms of the session; return whether it continues."""
        assert self.attachment is not None
        self._sample(now_ps)
        self._look_at_record(now_ps)
        self._callbacks.progress(self, now_ps)
        return not self.attachment.over and not self._callbacks.over() and not self._stopped

    def _look_at_record(self, now_ps: int) -> None:
        """Give a record up that could not be written: the session continues, and the room is free for its results."""
        assert self.attachment is not None
        error = self.attachment.record_error
        if self._record is None or not error:
            return
        self._record_lost = f"the record of arrivals ended at {format_time(now_ps)}: {error}"
        _log.warning("%s; the session continues, and cannot be replayed", self._record_lost)
        with suppress(OSError):
            self._record.unlink()
        self._record = None

    def next_change_ps(self) -> int | None:
        """Return the time at which the next change of a replay is due (ps); None if there is none."""
        return self._to_do[0]["at_ps"] if self._to_do else None

    def turn(self, now_ps: int) -> bool:
        """Execute the waiting requests, or those of a replay that are due; return False if the session is to end."""
        assert self._overrides is not None
        self._overrides.absorb()
        while self._to_do and self._to_do[0]["at_ps"] <= now_ps:
            change = self._to_do.pop(0)
            if change.get("reset"):
                self._overrides.reset(now_ps)
            else:
                values = read_settings(change["settings"], self.read)
                self._overrides.write(now_ps, "set", self._overrides.resolve(values))
        if self._service is not None and self._control is not None:
            self._service.turn(now_ps)
            self._notify(now_ps, self._control)
        return not self._stopped

    def _notify(self, now_ps: int, control: Control) -> None:
        """Send subscribers the present figures, and each change once."""
        assert self._overrides is not None
        if control.wanted("now", now_ps / 1e12 - self.left_s):
            control.notify("now", self.passing(now_ps))
        while self._notified < len(self._overrides.events):
            event = self._overrides.events[self._notified]
            self._notified += 1
            control.notify("events", _event_row(event))

    # What a program asks for, in the simulation's thread

    def write(self, now_ps: int, resolved: Resolved, settings: Sequence[str]) -> dict[str, Any]:
        """Write values that hold from now on, and return the change; errors as for :meth:`Overrides.write`."""
        assert self._overrides is not None
        event = self._overrides.write(now_ps, "set", resolved)
        self.changed.append({"at_ps": now_ps, "settings": [*settings]})
        return _event_row(event)

    def reset(self, now_ps: int) -> dict[str, Any]:
        """Reset all settings to the file's state; return the change."""
        assert self._overrides is not None
        event = self._overrides.reset(now_ps)
        self.changed.append({"at_ps": now_ps, "settings": [], "reset": True})
        return _event_row(event)

    def counters(self) -> dict[str, Any]:
        """Return the counters of every node, by its name."""
        assert self._built is not None
        found = self._built.counters()
        assert found is not None  # a session has the native network
        return found

    def losses(self) -> list[dict[str, Any]]:
        """Return the loss ledger so far."""
        assert self._built is not None
        found = self._built.ledger()
        assert found is not None
        return found

    def queue(self) -> dict[str, int]:
        """Return the cells queued in each switch."""
        assert self._built is not None
        return {name.removesuffix(".queue"): n for name, n in self._built.samples().items() if name.endswith(".queue")}

    def lateness(self) -> dict[str, Any]:
        """Return how far behind the simulation is, in ms, and packets that were late, by end."""
        assert self.attachment is not None
        ends = {}
        for host, number in self.numbers.items():
            counts = self.attachment.counts(number)
            ends[host] = {"injected": counts["late"], "released": counts["out_late"]}
        behind = self.attachment.behind_ns
        return {"behind_ms": behind() / 1e6, "behind_most_ms": behind(most=True) / 1e6, "late": ends}

    def passing(self, now_ps: int) -> dict[str, Any]:
        """Return the figures of :meth:`now`, with the time in s; it is negative before the start."""
        return {"time_s": now_ps / 1e12 - self.left_s, **self.now()}

    def described(self) -> dict[str, Any]:
        """Return the session's description; any thread may call this."""
        ends = {host: end.row() for host, end in self.opened.items()}
        return {
            "protocol": VERSION,
            "experiment": self.read.id,
            "title": self.read.title,
            "folder": str(self._socket.parents[1].absolute()) if self._socket else None,
            "link": str(self._control.link) if self._control and self._control.link else None,
            "process": os.getpid(),
            "ends": ends,
            "slack": dataclasses.asdict(self.slack),
            "starts": _iso(self.options.start),
            "started": _iso(self.started),
        }

    def stop(self) -> None:
        """End it, from any thread."""
        self._stopped = True

    def _as_live(self) -> None:
        """Give this thread the live page's priority, so that nobody keeps it from going on while it has Python's
        lock."""
        if self.priority == "real-time" and not getattr(self._live_threads, "raised", False):
            self._live_threads.raised = True
            with suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_LIVE_PRIORITY))

    def _sample(self, now_ps: int) -> None:
        """Record the octets that have left at each end, and the late packets, over time."""
        assert self.attachment is not None
        if now_ps < self._due_ps:
            return
        self._due_ps = now_ps + self.experiment.record.interval_ps
        for host, number in self.numbers.items():
            counts = self.attachment.counts(number)
            self._recorder.put(f"{host}.left", now_ps, counts["released_octets"])
            self._recorder.put(f"{host}.late", now_ps, counts["late"] + counts["out_late"])  # pyright: ignore[reportOperatorIssue]

    def now(self) -> dict[str, Any]:
        """Return the present state: per end what has left, cells queued and dropped in switches, late packets."""
        assert self.attachment is not None and self._built is not None
        ends = []
        for host, number in self.numbers.items():
            counts = self.attachment.counts(number)
            ends.append({"host": host, "packets": counts["released"], "octets": counts["released_octets"]})
            ends[-1]["late"] = counts["late"] + counts["out_late"]  # pyright: ignore[reportOperatorIssue]
        samples, drops = self._built.samples(), self._built.drops(False)
        assert drops is not None
        return {
            "ends": ends,
            "queued": sum(value for name, value in samples.items() if name.endswith(".queue")),
            "dropped": sum(cells for reasons in drops.values() for cells in reasons.values()),
            "late": sum(end["late"] for end in ends),
            "behind_ms": self.attachment.behind_ns() / 1e6,
        }

    def report(self, now_ps: int) -> dict[str, Any]:
        """Return the figures of the ends so far, in the form of ``result.json``."""
        assert self.attachment is not None
        rows = [self._row(host) for host in self.numbers]
        stolen = stolen_s() - self._stolen_s
        service = self._service
        return {
            "slack": dataclasses.asdict(self.slack) | {"text": self.slack.text()},
            "wanted_ps": {"computing": self.options.computing_ps, "release": self.options.release_ps},
            "left_out": list(self.attached.left_out),
            "late": self.options.late.name.lower(),
            "priority": self.priority,
            "load": list(os.getloadavg()),
            "processor_s": self._processor(),
            "stolen_s": round(stolen, 3),
            "requests": {
                "count": service.requests if service else 0,
                "longest_ms": round(service.longest_s * 1e3, 3) if service else 0.0,
            },
            "behind_most_ns": self.attachment.behind_ns(most=True),
            "over": self._over(rows),
            "starts": _iso(self.options.start),
            "started": _iso(self.started),
            "verdict": verdict_of(rows, self.slack, now_ps / 1e12, self.priority, stolen),
            "recorded": self._record is not None,
            "record_lost": self._record_lost,
            "commands": None if self.options.commands is None else list(self.options.commands),
            "changed": self.changed,
            "ends": rows,
            "digests": self.digest,
        }

    def _processor(self) -> dict[str, float]:
        """Return the processor time so far in seconds: of the simulation, and of the threads that read and release."""
        here, together = time.thread_time() - self._spent[0], time.process_time() - self._spent[1]
        return {"simulation": here, "doors": together - here}

    def _row(self, host: str) -> dict[str, Any]:
        """Return the row of an end: its place, its distance from others, and the figures of :func:`end_row`."""
        assert self.attachment is not None
        opened = self.opened.get(host)
        coming = [vc for vc in map(self.experiment.vcs.__getitem__, self.attached.vcs) if vc.path[-1] == host]
        row = (opened or Opened(-1, Transport.DEVICE, "")).row()
        return {
            "host": host,
            "end": str(self.attached.ends[host]),
            **row,
            "delays_ns": {vc.path[0]: self.slack.delays_ps[vc.name] // 1000 for vc in coming},
            **end_row(self.attachment, self.numbers[host]),
        }

    def _over(self, rows: Sequence[Mapping[str, Any]]) -> str:
        assert self.attachment is not None
        if self.attachment.over == "gone":
            gone = next(row for row in rows if row["counts"]["gone"])
            return f"{gone['where']} went away: {os.strerror(gone['counts']['gone'])}"
        return "a packet was late, and --late abort ends it there" if self.attachment.over else ""


def _iso(when: datetime | None) -> str | None:
    return None if when is None else when.astimezone(UTC).isoformat(timespec="milliseconds")


def _event_row(event: EventSpec) -> dict[str, Any]:
    """Return a change in the form that programs receive."""
    return {
        "at_s": event.at_ps / 1e12,
        "tick": event.tick,
        "source": event.source,
        "changes": [dataclasses.asdict(change) for change in event.changes],
    }


def _draw(aside: Path, result: RunResult) -> None:
    """Make the report, and the plots of late packets."""
    from bentpipe.plots.lateness import write_lateness

    make_report(aside, result, plots=False)
    write_lateness(aside, result)


class _Engine:
    """The engine of the hosts inside, whose time passes with the clock."""

    def __init__(self, session: Session, network: Network, engine: Any) -> None:
        self._session, self._network, self._engine = session, network, engine
        self._begun, self._goes_on = False, True
        self._reported_ps = 0
        self.waited_s = 0.0
        """Real time that passed before the start of the session."""

    def _wait(self, progress: Callable[[int], bool | None] | None) -> None:
        """Wait for the start of the session, and execute the requests of programs meanwhile, or those of a replay."""
        begin_s = reported_s = time.monotonic()
        while self._goes_on and (left_s := self._session.left_s) > 0:
            time.sleep(min(left_s, _TURN_PS / 1e12))
            self._goes_on = self._session.turn(0)
            if time.monotonic() - reported_s >= PROGRESS_PS / 1e12:
                reported_s = time.monotonic()
                self.waited_s = reported_s - begin_s
                goes_on = progress is None or progress(0) is not False
                self._goes_on = self._session.goes_on(-round(1e12 * left_s)) and goes_on and self._goes_on
        self.waited_s = time.monotonic() - begin_s
        if self._goes_on:
            self._session.start()
        due = self._session.next_change_ps()
        if due is not None and due <= 0:
            self._goes_on = self._session.turn(0) and self._goes_on

    def run(self, until_ps: int, progress: Callable[[int], bool | None] | None = None) -> int:
        """Run as an engine does, and return the time reached; once the session is over, no more time passes.

        Every 5 ms it executes the requests of programs.
        """
        if not self._begun:
            self._begun = True
            self._session.begin(self._network)
            self._wait(progress)
        now = self._network.now_ps
        while self._goes_on and now < until_ps:
            due = self._session.next_change_ps()
            target = min(until_ps, now + _TURN_PS, max(now + 1, until_ps if due is None else due))
            now = self._engine.run(target)
            self._goes_on = self._session.turn(now)
            if now - self._reported_ps >= PROGRESS_PS or not self._goes_on:
                self._reported_ps = now
                goes_on = progress is None or progress(now) is not False
                self._goes_on = self._session.goes_on(now) and goes_on and self._goes_on
            if now < target:
                break
        return now
