"""A flow of loopback cells: an application between two hosts, or a host and a switch, and what came of it."""

from __future__ import annotations

from typing import final

from bentpipe.apps.app import Application, Program, Site, Socket, SocketPair
from bentpipe.hosts.flow_base import ApplicationFlow, CellFlowReport, FlowContext, HostFlowEndpoints, HostSite
from bentpipe.hosts.oam import LOOPBACK_PS, Looper, OamEnd
from bentpipe.hosts.scheduler import Timer

__all__ = ["LoopbackFlow"]


@final
class LoopbackSocket(Socket):
    """A write sends a loopback cell, whatever its length; the program is told when it is back."""

    def __init__(self, flow: LoopbackFlow, end: OamEnd, location: bytes, pti: int, program: Program) -> None:
        self.flow = flow
        self.end = end
        self.location = location
        self.pti = pti
        self.program = program
        self.looper = _Looper(self)
        self.timer = _Wake(self)

    def write(self, octets: int, now_ps: int) -> bool:
        self.end.loopback(self.location, self.pti, self.looper, now_ps)
        return True

    def close(self, now_ps: int) -> None:
        self.flow.sent_all(now_ps)

    def open(self, now_ps: int) -> None:
        """Begin the flow."""
        self.wake_at(self.program.connected(self, now_ps))

    def wake_at(self, time_ps: int) -> None:
        """Set the timer for the time that the program asked for."""
        if time_ps:
            self.timer.due = time_ps
            self.flow.scheduler.at(time_ps, self.timer)


@final
class _Looper(Looper):
    def __init__(self, socket: LoopbackSocket) -> None:
        super().__init__()
        self._socket = socket

    def returned(self, sent_ps: int, now_ps: int) -> None:
        socket = self._socket
        socket.wake_at(socket.program.received(socket, 0, sent_ps, now_ps))
        socket.flow.check(now_ps)


@final
class _Wake(Timer):
    def __init__(self, socket: LoopbackSocket) -> None:
        self._socket = socket
        self.due: int = 0

    def fire(self, now: int) -> None:
        if now == self.due:
            socket = self._socket
            socket.wake_at(socket.program.wake(socket, now))


@final
class LoopbackPair(SocketPair):
    """The one end of loopback cells."""

    def __init__(self, socket: LoopbackSocket) -> None:
        self.socket = socket

    def open(self, now_ps: int) -> None:
        self.socket.open(now_ps)


@final
class LoopbackFlowEndpoints(HostFlowEndpoints):
    """The hosts of a flow of loopback cells."""

    def __init__(self, flow: LoopbackFlow) -> None:
        super().__init__(flow)
        self.flow = flow

    def pair(
        self,
        near: Site,
        program: Program | None,
        far: Site,
        far_program: Program | None,
        opener: Site | None = None,
        ports: tuple[int, int] | None = None,
        name: str = "",
    ) -> SocketPair:
        """Make the flow's only socket, at the source."""
        flow = self.flow
        assert near is self.source and program is not None and flow.socket is None
        flow.socket = LoopbackSocket(flow, flow.end, flow.location, flow.pti, program)
        return LoopbackPair(flow.socket)


@final
class LoopbackFlow(ApplicationFlow):
    """Loopback cells of an application on ``source``.

    It ends when the application sends no more, and all that it sent is back or lost.
    """

    def __init__(
        self,
        name: str,
        context: FlowContext,
        sites: tuple[HostSite, HostSite],
        end: OamEnd,
        location: bytes,
        pti: int,
        application: Application,
        start_ps: int,
    ) -> None:
        super().__init__(name, context, sites, application, start_ps)
        self.end = end
        self.location = location
        self.pti = pti
        self.socket: LoopbackSocket | None = None
        self.closed: bool = False
        self.end_ps: int = -1
        self.listen(LoopbackFlowEndpoints(self))

    def fire(self, now: int) -> None:
        """Start the flow, or, later, count its last cells as lost."""
        if not self.started:
            self.started = True
            self.application.connect(now)
        elif self.closed:
            self.check(now)

    def sent_all(self, now: int) -> None:
        """Handle the application's end: it sends no more."""
        if not self.closed:
            self.closed = True
            self.scheduler.at(now + LOOPBACK_PS + 1, self)
            self.check(now)

    def check(self, now: int) -> None:
        """End the flow where everything has come back or is lost."""
        self.end.point.give_up(now)
        socket = self.socket
        if self.closed and not self.finished and socket is not None and not self.end.point.waits_for(socket.looper):
            self.end_ps = now
            self.finish(now)

    def report(self, end_ps: int) -> CellFlowReport:
        """Return the report as of ``end_ps``, the end of the run."""
        self.end.point.give_up(end_ps)
        facts = self.application.facts(end_ps)
        socket = self.socket
        lost = 0 if socket is None else socket.looper.lost
        return CellFlowReport(
            name=self.name,
            protocol="oam",
            app=self.application.kind,
            source=self.sites[0].host.name,
            sink=self.sites[1].host.name,
            finished=self.finished,
            start_ps=self.start_ps,
            end_ps=self.end_ps if self.end_ps >= 0 else end_ps,
            facts=facts | {"loopback_lost": lost},
        )
