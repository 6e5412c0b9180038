"""A flow: a TCP connection between two hosts with its application, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from bentpipe.hosts.host import Endpoint, Timer
from bentpipe.tcp.constants import CLOSED, PS_PER_S, STATE_NAMES, TIME_WAIT

__all__ = ["Flow", "FlowReport"]


@dataclass(frozen=True)
class FlowReport:
    """What a flow did, up to the end of the run or of the flow.

    Members
    -------
    octets_delivered : int
        Read by the sink application.
    start_ps, end_ps : int
        From the source's connect to the sink having read the last octet (or the end of the run).
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
    """

    name: str
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


@final
class Flow(Timer):
    """One connection from ``source`` to ``sink``, opened at ``start_ps``."""

    def __init__(self, name: str, source: Endpoint, sink: Endpoint, start_ps: int) -> None:
        self.name = name
        self.source = source
        self.sink = sink
        self.start_ps = start_ps
        self.started = False
        self.finished = False
        source.flow = self
        sink.flow = self

    def fire(self, now: int) -> None:
        """Time to connect."""
        self.started = True
        self.source.open(now)

    def ended(self, endpoint: Endpoint) -> None:
        """One end is closed (or waits in TIME_WAIT, which is closed to the application)."""
        source = self.source.connection
        sink = self.sink.connection
        if not self.started:
            return
        both = source.state in (CLOSED, TIME_WAIT) and sink.state in (CLOSED, TIME_WAIT)
        if both or source.error or sink.error:
            self.finished = True

    def report(self, end_ps: int) -> FlowReport:
        """The flow as of ``end_ps``, the end of the run."""
        source = self.source.connection
        sink = self.sink.connection
        delivered = sink.delivered
        start = source.opened_ps if source.opened_ps >= 0 else self.start_ps
        end = end_ps
        if self.finished or sink.fin_received:
            end = sink.delivered_ps if sink.delivered_ps >= 0 else end_ps
        elapsed = end - start
        return FlowReport(
            name=self.name,
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
        )
