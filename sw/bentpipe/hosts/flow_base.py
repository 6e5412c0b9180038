"""The common part of flows of every protocol: start and end, single or in groups, and the hosts as an application sees
them.

The flows themselves are in :mod:`bentpipe.hosts.flow` (TCP), :mod:`bentpipe.hosts.udp` and
:mod:`bentpipe.hosts.loopback` (OAM cells).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

from bentpipe.apps.app import Alarm, Application, Fact, FlowEndpoints, Site
from bentpipe.hosts.machine import Machine
from bentpipe.hosts.scheduler import Scheduler, Timer
from bentpipe.tcp.trace import Recorder

__all__ = [
    "ApplicationFlow",
    "CellFlowReport",
    "FlowContext",
    "FlowGroup",
    "FlowOrGroup",
    "HostFlowEndpoints",
    "HostSite",
]


@dataclass(frozen=True)
class CellFlowReport:
    """The report of a flow of single cells, loopback or test cells, up to the end of the run or of the flow.

    It has no goodput: its cells carry no user data.

    Members
    -------
    start_ps, end_ps : int
        From its start until its last cell was back, received or lost (or the end of the run).
    facts : dict
        Figures that the application reports.
    """

    name: str
    protocol: str
    app: str
    source: str
    sink: str
    finished: bool
    start_ps: int
    end_ps: int
    octets_delivered: int = 0
    goodput_bps: float = 0.0
    facts: dict[str, Fact] = field(default_factory=dict)


class FlowOrGroup(Timer):
    """A flow, or a group of flows and groups: it starts once and ends once.

    Members
    -------
    start_ps : int
        Time at which it started, or is to start.
    delay_ps : int
        Time from the call of :meth:`start` to the start.
    """

    def __init__(self, name: str, scheduler: Scheduler, start_ps: int) -> None:
        self.name = name
        self.scheduler = scheduler
        self.start_ps: int = start_ps
        self.delay_ps: int = 0
        self.started: bool = False
        self.finished: bool = False
        self.group: FlowGroup | None = None

    def start(self, now: int) -> None:
        """Start, after the delay."""
        self.start_ps = now + self.delay_ps
        if self.delay_ps:
            self.scheduler.at(self.start_ps, self)
        else:
            self.fire(now)

    def report(self, end_ps: int) -> Any:
        """Return the figures of a flow, as of ``end_ps``."""
        raise NotImplementedError

    def goes_on(self) -> bool:
        """Return whether it surely does not end before any host has sent anything from now on."""
        return False

    def finish(self, now: int) -> None:
        """End, and tell the group."""
        if not self.finished:
            self.finished = True
            if self.group is not None:
                self.group.member_ended(now)


@final
class FlowGroup(FlowOrGroup):
    """Members that start together, or (``serial``) each when the previous one has ended. The group ends with its last
    member."""

    def __init__(self, scheduler: Scheduler, members: list[FlowOrGroup], serial: bool) -> None:
        super().__init__("", scheduler, 0)
        self.members = members
        self.serial = serial
        self.ended: int = 0
        for member in members:
            member.group = self

    def fire(self, now: int) -> None:
        self.started = True
        if self.serial:
            self.members[0].start(now)
        else:
            for member in self.members:
                member.start(now)

    def member_ended(self, now: int) -> None:
        self.ended += 1
        if self.ended == len(self.members):
            self.finish(now)
        elif self.serial:
            self.members[self.ended].start(now)


@final
class HostSite(Site):
    """A host of a flow, with the VC on which it sends to the other host."""

    def __init__(self, host: Machine, vc: int) -> None:
        self.host = host
        self.vc = vc

    def ports(self, count: int) -> int:
        return self.host.ports(count)


@final
class _AlarmTimer(Timer):
    """A timer that rings an application's alarm."""

    def __init__(self, alarm: Alarm) -> None:
        self.alarm = alarm

    def fire(self, now: int) -> None:
        self.alarm.ring(now)


@final
class FlowContext:
    """The part that all flows of a host engine share.

    Members
    -------
    recorder : Recorder or None
        Destination of samples and events.
    segments : bool
        The recorder gets an event for each data segment.
    """

    def __init__(self, recorder: Recorder | None, segments: bool) -> None:
        self.recorder = recorder
        self.segments = segments
        self._count: int = 0

    def number(self) -> int:
        """Return the number of the next pair of sockets: its keys and initial sequence numbers come from it."""
        self._count += 1
        return self._count - 1


class ApplicationFlow(FlowOrGroup):
    """An application between two hosts.

    Members
    -------
    context : FlowContext
    sites : tuple of HostSite
        Source and sink.
    application : Application
    """

    def __init__(
        self,
        name: str,
        context: FlowContext,
        sites: tuple[HostSite, HostSite],
        application: Application,
        start_ps: int,
    ) -> None:
        super().__init__(name, sites[0].host.scheduler, start_ps)
        self.context = context
        self.sites = sites
        self.application = application

    def listen(self, endpoints: FlowEndpoints) -> None:
        """Give the application its two hosts, where it makes the sockets that exist before the flow starts."""
        self.application.endpoints = endpoints
        self.application.listen()


class HostFlowEndpoints(FlowEndpoints):
    """The two hosts of a flow, whatever its protocol. A class of each protocol derives from this one and makes the
    sockets (:meth:`pair`)."""

    def __init__(self, flow: ApplicationFlow) -> None:
        source, sink = flow.sites
        super().__init__(source, sink)
        self._name = flow.name
        self._scheduler = flow.scheduler
        self._recorder = flow.context.recorder

    def sample(self, series: str, now_ps: int, value: int) -> None:
        if self._recorder is not None:
            self._recorder.sample(f"{self._name}.{series}", now_ps, value)

    def at(self, time_ps: int, alarm: Alarm) -> None:
        self._scheduler.at(time_ps, _AlarmTimer(alarm))

    def look(self, now_ps: int) -> None:
        """Do nothing: only a flow over TCP can end without an event of its sockets."""
