"""A flow over TCP: an application between two hosts, its connections, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

from bentpipe.apps.app import Application, Fact, Program, Site, SocketPair
from bentpipe.hosts.flow_base import ApplicationFlow, FlowContext, HostSite
from bentpipe.hosts.sockets import PairOwner, TcpEndpoint, TcpPair
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import CLOSED, MASK32, PS_PER_S, STATE_NAMES
from bentpipe.tcp.trace import Trace

__all__ = ["Flow", "FlowReport"]

_SERVER_PORT: Final = 5001


@dataclass(frozen=True)
class FlowReport:
    """The report of a flow, up to the end of the run or of the flow: all its connections, except those with a name.

    Members
    -------
    octets_delivered : int
        Octets read by the sink application.
    start_ps, end_ps : int
        From the source's connect to the end of the run. Once the flow is over: to the last octet that the sink read, or
        to the time when the last connection that broke was given up. ``start_ps`` is negative if the flow did not
        begin.
    goodput_bps : float
        ``octets_delivered`` over that time, as ttcp computes it.
    bad_octets : int
        Octets that passed every checksum and were not those sent: always an error of the simulator.
    state : str
        State of the source's last connection.
    error : str
        Reason why the first broken connection broke; empty if none did.
    rtt_min_ps, rtt_mean_ps, rtt_max_ps : int
        Round trips of the segments that the source timed; 0 if it timed none.
    facts : dict
        Figures that the application reports.
    """

    name: str
    protocol: str
    app: str
    variant: str
    growth: str
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


@final
class _Past:
    """The sums of some connections that have ended.

    Members
    -------
    counts : dict
        Sums by the names of :class:`FlowReport`, and ``rtt_sum_ps``.
    first_ps, last_ps : int
        Time at which the first one was opened, and at which the last octet was read or a connection given up; -1: not
        yet.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.first_ps: int = -1
        self.last_ps: int = -1

    def copy(self) -> _Past:
        made = _Past()
        made.counts = dict(self.counts)
        made.first_ps = self.first_ps
        made.last_ps = self.last_ps
        return made

    def get(self, name: str) -> int:
        return self.counts.get(name, 0)

    def add(self, pair: TcpPair) -> None:
        """Add a connection."""
        self.add_source(pair.source)
        self.add_sink(pair.sink)
        opened = pair.opener.connection.opened_ps
        if opened >= 0 and (self.first_ps < 0 or opened < self.first_ps):
            self.first_ps = opened
        if pair.broke_ps > self.last_ps:
            self.last_ps = pair.broke_ps

    def add_source(self, end: TcpEndpoint) -> None:
        """Add its end at the flow's source."""
        source = end.connection
        send = source.sender
        counts = self.counts
        sent = send.statistics
        rtt = send.rtt
        least, most = self.get("rtt_min_ps"), self.get("rtt_max_ps")
        if rtt.count:
            counts["rtt_min_ps"] = rtt.min_ps if least == 0 else min(least, rtt.min_ps)
            counts["rtt_max_ps"] = max(most, rtt.max_ps)
        self._count(
            {
                "octets_acknowledged": send.acknowledged,
                "segments_sent": sent.segments_sent,
                "data_segments_sent": sent.data_segments_sent,
                "acks_received": source.segments_received,
                "retransmits": sent.retransmits,
                "retransmitted_octets": sent.retransmitted_octets,
                "timeouts": sent.timeouts,
                "fast_retransmits": sent.fast_retransmits,
                "dup_acks": sent.dup_acks,
                "quenches": source.quenches,
                "window_probes": source.window_probes,
                "rtt_count": rtt.count,
                "rtt_sum_ps": rtt.sum_ps,
                "bad_octets": end.bad_octets,
            }
        )

    def add_sink(self, end: TcpEndpoint) -> None:
        """Add its end at the flow's sink."""
        take = end.connection.receiver
        self._count(
            {
                "octets_delivered": take.delivered,
                "acks_sent": end.connection.sender.statistics.acks_sent,
                "out_of_order": take.out_of_order,
                "duplicates": take.duplicates,
                "bad_octets": end.bad_octets,
            }
        )
        if take.delivered_ps > self.last_ps:
            self.last_ps = take.delivered_ps

    def _count(self, more: dict[str, int]) -> None:
        counts = self.counts
        for name, value in more.items():
            counts[name] = counts.get(name, 0) + value


@final
class TcpFlowEndpoints(PairOwner):
    """The hosts of a flow over TCP."""

    def __init__(self, flow: Flow) -> None:
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
        assert isinstance(near, HostSite) and isinstance(far, HostSite)
        flow = self.flow
        context = flow.context
        index = context.number()
        a, b = near.host, far.host
        port, far_port = ports if ports is not None else (0, _SERVER_PORT)
        if port == 0:
            port = a.port(b.address, far_port)
        trace: Trace | None = None
        if context.recorder is not None and (name or (flow.last is None and not flow.started)):
            trace = Trace(context.recorder, f"{flow.name}.{name}" if name else flow.name, context.segments)
        ours, theirs = flow.config(near), flow.config(far)
        first = Connection(ours, ours.segment_size(a.config.mtu), _iss(2 * index), a.ticks.count, trace)
        second = Connection(theirs, theirs.segment_size(b.config.mtu), _iss(2 * index + 1), b.ticks.count)
        key, far_key = 2 * index + 1, 2 * index + 2
        end = TcpEndpoint(a, first, b.address, port, far_port, near.vc, key, far_key, program)
        far_end = TcpEndpoint(b, second, a.address, far_port, port, far.vc, far_key, key, far_program)
        opening, waiting = (far_end, end) if opener is far else (end, far_end)
        waiting.connection.listen()
        waiting.seen_state = waiting.connection.state
        sides = (end, far_end) if near is self.source else (far_end, end)
        pair = TcpPair(self, sides[0], sides[1], opening)
        flow.add(pair, not name)
        return pair

    def look(self, now_ps: int) -> None:
        self.flow.look(now_ps)

    def opened(self, pair: TcpPair) -> None:
        self.flow.open_pairs += 1

    def ended(self, pair: TcpPair, now: int) -> None:
        flow = self.flow
        flow.open_pairs -= 1
        if not flow.error:
            flow.error = pair.error
        flow.application.ended(pair, now)
        flow.look(now)

    def settle(self, pair: TcpPair) -> None:
        self.flow.settle(pair)

    def gone(self, pair: TcpPair) -> None:
        self.flow.fold(pair)

    def late(self, end: TcpEndpoint, at_source: bool) -> None:
        self.flow.late(end, at_source)


@final
class Flow(ApplicationFlow):
    """An application between two hosts, and its connections.

    Members
    -------
    last : TcpPair or None
        The connection without a name that was made last.
    open_pairs : int
        Connections that were opened and are not over.
    """

    def __init__(
        self,
        name: str,
        context: FlowContext,
        sites: tuple[HostSite, HostSite],
        configs: tuple[TcpConfig, TcpConfig],
        application: Application,
        start_ps: int,
    ) -> None:
        super().__init__(name, context, sites, application, start_ps)
        self.configs = configs
        self.error: str = ""
        self.open_pairs: int = 0
        self.last: TcpPair | None = None
        self._made: list[TcpPair] = []  # by the set-up: these are kept
        self._passing: dict[TcpPair, bool] = {}
        self._past = _Past()
        self.listen(TcpFlowEndpoints(self))

    @property
    def source(self) -> TcpEndpoint:
        """The source's end of the first connection."""
        return self._made[0].source

    @property
    def sink(self) -> TcpEndpoint:
        """The sink's end of the first connection."""
        return self._made[0].sink

    def config(self, site: Site) -> TcpConfig:
        """Return TCP's settings at a host."""
        return self.configs[0] if site is self.sites[0] else self.configs[1]

    def add(self, pair: TcpPair, own: bool) -> None:
        """Add a connection; one with a name is not among the flow's own."""
        if own:
            before = self.last
            self.last = pair
            if self.started:
                self._passing[pair] = True
            else:
                self._made.append(pair)
            if before is not None:
                self.settle(before)

    def fold(self, pair: TcpPair) -> None:
        """Keep only the sums of a connection that is over, unless the flow began with it."""
        if pair in self._passing:
            del self._passing[pair]
            self._past.add(pair)

    def settle(self, pair: TcpPair) -> None:
        """Let a connection that has ended rest, unless the flow began with it or reports its state."""
        if pair is not self.last and pair in self._passing and pair.may_rest():
            self.fold(pair)
            pair.rest(True)

    def late(self, end: TcpEndpoint, at_source: bool) -> None:
        """Add what an end counted that rested."""
        if at_source:
            self._past.add_source(end)
        else:
            self._past.add_sink(end)

    def fire(self, now: int) -> None:
        """Start the flow: let the application connect."""
        self.started = True
        self.application.connect(now)

    def look(self, now: int) -> None:
        """End the flow where all of its connections are closed and its application is done."""
        if self.started and self.open_pairs == 0 and self.application.done():
            self.finish(now)

    def goes_on(self) -> bool:
        pair = self.last
        return pair is not None and pair.goes_on()

    def report(self, end_ps: int) -> FlowReport:
        """Return the report as of ``end_ps``, the end of the run."""
        past = self._past.copy()
        ended = self.application.done()
        for pair in (*self._made, *self._passing):
            past.add(pair)
            ended = ended and (pair.over or pair.sink.connection.receiver.fin_received)
        start = past.first_ps if past.first_ps >= 0 else self.start_ps
        end = past.last_ps if ended and past.last_ps >= 0 else end_ps
        elapsed = end - start
        delivered = past.get("octets_delivered")
        timed = past.get("rtt_count")
        last = None if self.last is None else self.last.source.connection
        return FlowReport(
            name=self.name,
            protocol="tcp",
            app=self.application.kind,
            variant=self.configs[0].variant,
            growth=self.configs[0].growth,
            source=self.sites[0].host.name,
            sink=self.sites[1].host.name,
            finished=self.finished,
            state=STATE_NAMES[CLOSED if last is None else last.state],
            error=self.error,
            octets_delivered=delivered,
            octets_acknowledged=past.get("octets_acknowledged"),
            start_ps=start,
            end_ps=end,
            goodput_bps=delivered * 8 * PS_PER_S / elapsed if elapsed > 0 else 0.0,
            segments_sent=past.get("segments_sent"),
            data_segments_sent=past.get("data_segments_sent"),
            acks_received=past.get("acks_received"),
            acks_sent=past.get("acks_sent"),
            retransmits=past.get("retransmits"),
            retransmitted_octets=past.get("retransmitted_octets"),
            timeouts=past.get("timeouts"),
            fast_retransmits=past.get("fast_retransmits"),
            dup_acks=past.get("dup_acks"),
            out_of_order=past.get("out_of_order"),
            duplicates=past.get("duplicates"),
            quenches=past.get("quenches"),
            window_probes=past.get("window_probes"),
            cwnd=0 if last is None else last.sender.growth.cwnd,
            ssthresh=0 if last is None else last.sender.growth.ssthresh,
            rtt_count=timed,
            rtt_min_ps=past.get("rtt_min_ps"),
            rtt_mean_ps=past.get("rtt_sum_ps") // timed if timed else 0,
            rtt_max_ps=past.get("rtt_max_ps"),
            bad_octets=past.get("bad_octets"),
            facts=self.application.facts(end_ps),
        )


def _iss(index: int) -> int:
    """Return an initial sequence number.

    They are spread over the whole range, so that every experiment has some that wrap.
    """
    return (index * 0x9E3779B1 + 64000) & MASK32
