"""A flow: a TCP connection between two hosts with its application, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

from bentpipe.apps.app import Fact
from bentpipe.apps.ftp import Starter
from bentpipe.hosts.host import Endpoint, Scheduler, Timer
from bentpipe.tcp.constants import CLOSED, PS_PER_S, STATE_NAMES, TIME_WAIT

__all__ = ["DataStarter", "Flow", "FlowReport", "FtpFlow", "Group", "Stage"]


@dataclass(frozen=True)
class FlowReport:
    """What a flow did, up to the end of the run or of the flow.

    Members
    -------
    octets_delivered : int
        Read by the sink application.
    start_ps, end_ps : int
        From the source's connect to the sink having read the last octet (or the end of the run); ``start_ps`` is
        negative if the flow's turn never came.
    goodput_bps : float
        ``octets_delivered`` over that time, as ttcp reckons.
    bad_octets : int
        Octets that passed every checksum and were not those sent: always an error of the simulator.
    state : str
        State of the source's connection.
    error : str
        Why the connection broke; empty if it didn't.
    rtt_min_ps, rtt_mean_ps, rtt_max_ps : int
        Of the segments that the source timed; 0 if it timed none.
    facts : dict
        What the applications of both ends report.
    """

    name: str
    protocol: str
    app: str
    variant: str
    source: str
    sink: str
    finished: bool
    state: str
    error: str
    octets_delivered: int
    octets_acknowledged: int
    start_ps: int
    end_ps: int
    goodput_bps: float
    segments_sent: int
    data_segments_sent: int
    acks_received: int
    acks_sent: int
    retransmits: int
    retransmitted_octets: int
    timeouts: int
    fast_retransmits: int
    dup_acks: int
    out_of_order: int
    duplicates: int
    quenches: int
    window_probes: int
    cwnd: int
    ssthresh: int
    rtt_count: int
    rtt_min_ps: int
    rtt_mean_ps: int
    rtt_max_ps: int
    bad_octets: int
    facts: dict[str, Fact] = field(default_factory=dict)


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
class Flow(Stage):
    """One connection that carries data from ``source`` to ``sink``; ``opener`` is the end that connects."""

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        source: Endpoint,
        sink: Endpoint,
        start_ps: int,
        opener: Endpoint,
    ) -> None:
        super().__init__(name, scheduler, start_ps)
        self.source = source
        self.sink = sink
        self.opener = opener
        source.flow = self
        sink.flow = self

    def fire(self, now: int) -> None:
        """Time to connect."""
        self.started = True
        self.opener.open(now)

    def ended(self, now: int) -> None:
        """One end is closed (or waits in TIME_WAIT, which is closed to the application)."""
        source = self.source.connection
        sink = self.sink.connection
        if not self.started:
            return
        both = source.state in (CLOSED, TIME_WAIT) and sink.state in (CLOSED, TIME_WAIT)
        if both or source.error or sink.error:
            self.finish(now)

    def report(self, end_ps: int) -> FlowReport:
        """The flow as of ``end_ps``, the end of the run."""
        source = self.source.connection
        sink = self.sink.connection
        delivered = sink.delivered
        opened = self.opener.connection.opened_ps
        start = opened if opened >= 0 else self.start_ps
        end = end_ps
        if self.finished or sink.fin_received:
            end = sink.delivered_ps if sink.delivered_ps >= 0 else end_ps
        elapsed = end - start
        facts: dict[str, Fact] = {}
        app = ""
        for driver in (self.sink.driver, self.source.driver):
            if driver is not None:
                app = driver.application.kind
                facts.update(driver.application.facts(end_ps))
        return FlowReport(
            name=self.name,
            protocol="tcp",
            app=app,
            variant=source.config.variant,
            source=self.source.host.name,
            sink=self.sink.host.name,
            finished=self.finished,
            state=STATE_NAMES[source.state],
            error=source.error or sink.error,
            octets_delivered=delivered,
            octets_acknowledged=source.acknowledged,
            start_ps=start,
            end_ps=end,
            goodput_bps=delivered * 8 * PS_PER_S / elapsed if elapsed > 0 else 0.0,
            segments_sent=source.segments_sent,
            data_segments_sent=source.data_segments_sent,
            acks_received=source.segments_received,
            acks_sent=sink.acks_sent,
            retransmits=source.retransmits,
            retransmitted_octets=source.retransmitted_octets,
            timeouts=source.timeouts,
            fast_retransmits=source.fast_retransmits,
            dup_acks=source.dup_acks,
            out_of_order=sink.out_of_order,
            duplicates=sink.duplicates,
            quenches=source.quenches,
            window_probes=source.window_probes,
            cwnd=source.cwnd,
            ssthresh=source.ssthresh,
            rtt_count=source.rtt_count,
            rtt_min_ps=source.rtt_min_ps,
            rtt_mean_ps=source.rtt_sum_ps // source.rtt_count if source.rtt_count else 0,
            rtt_max_ps=source.rtt_max_ps,
            bad_octets=self.source.bad_octets + self.sink.bad_octets,
            facts=facts,
        )


@final
class FtpFlow(Group):
    """A control connection and the data connection that it asks for."""

    def __init__(self, name: str, scheduler: Scheduler, control: Flow, data: Flow, start_ps: int) -> None:
        super().__init__(scheduler, [control, data], False)
        self.name = name
        self.start_ps = start_ps
        self.control = control
        self.data = data

    def fire(self, now: int) -> None:
        self.started = True
        self.control.start(now)

    def member_ended(self, now: int) -> None:
        if self.control.finished and (self.data.finished or not self.data.started):
            self.finish(now)

    def report(self, end_ps: int) -> FlowReport:
        """The data connection's."""
        report = self.data.report(end_ps)
        error = report.error or self.control.report(end_ps).error
        return replace(report, finished=self.finished, error=error)


@final
class DataStarter(Starter):
    """Opens a data connection when the server of a session wants it."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def start(self, now_ps: int) -> None:
        self.flow.start(now_ps)
