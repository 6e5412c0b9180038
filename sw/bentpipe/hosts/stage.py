"""What starts and ends: flows, one by one and in groups."""

from __future__ import annotations

from typing import Any, final

from bentpipe.apps.app import Alarm, Site
from bentpipe.hosts.machine import Machine
from bentpipe.hosts.scheduler import Scheduler, Timer
from bentpipe.tcp.trace import Recorder

__all__ = ["AlarmTimer", "Group", "HostSite", "Shared", "Stage"]


class Stage(Timer):
    """Something that starts and ends: a flow, or a group of such.

    Members
    -------
    start_ps : int
        When it started, or is to start.
    delay_ps : int
        How long it waits when it is told to start.
    """

    def __init__(self, name: str, scheduler: Scheduler, start_ps: int) -> None:
        self.name = name
        self.scheduler = scheduler
        self.start_ps: int = start_ps
        self.delay_ps: int = 0
        self.started: bool = False
        self.finished: bool = False
        self.group: Group | None = None

    def start(self, now: int) -> None:
        """Start, after the delay."""
        self.start_ps = now + self.delay_ps
        if self.delay_ps:
            self.scheduler.at(self.start_ps, self)
        else:
            self.fire(now)

    def report(self, end_ps: int) -> Any:
        """What it did, as of ``end_ps``."""
        raise NotImplementedError

    def finish(self, now: int) -> None:
        """It has ended: what waits for that goes on."""
        if not self.finished:
            self.finished = True
            if self.group is not None:
                self.group.member_ended(now)


@final
class Group(Stage):
    """Stages that start together, or (``serial``) each when the one before has ended. It ends when all have."""

    def __init__(self, scheduler: Scheduler, members: list[Stage], serial: bool) -> None:
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
    """A host of a flow, with the VC on which it sends to the other."""

    def __init__(self, host: Machine, vc: int) -> None:
        self.host = host
        self.vc = vc

    def ports(self, count: int) -> int:
        return self.host.ports(count)


@final
class AlarmTimer(Timer):
    """Rings an application's alarm."""

    def __init__(self, alarm: Alarm) -> None:
        self.alarm = alarm

    def fire(self, now: int) -> None:
        self.alarm.ring(now)


@final
class Shared:
    """What all flows of an engine share.

    Members
    -------
    recorder : Recorder or None
    segments : bool
        An event for each data segment.
    """

    def __init__(self, recorder: Recorder | None, segments: bool) -> None:
        self.recorder = recorder
        self.segments = segments
        self._count: int = 0

    def number(self) -> int:
        """Of the next pair of sockets: from it come keys and initial sequence numbers."""
        self._count += 1
        return self._count - 1
