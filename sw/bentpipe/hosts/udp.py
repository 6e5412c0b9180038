"""A flow of datagrams: an application between two hosts, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

from bentpipe.apps.app import Application, Fact, Program, Site, SocketPair
from bentpipe.hosts.datagrams import DatagramOwner, DatagramReceiver, UdpSocket
from bentpipe.hosts.flow_base import ApplicationFlow, FlowContext, HostSite
from bentpipe.hosts.machine import remote_key
from bentpipe.ip.udp import UdpPath
from bentpipe.tcp.constants import PS_PER_S

__all__ = ["UdpFlow", "UdpReport"]

_SERVER_PORT: Final = 5001
_GROUPS: Final = 239 << 24
"""Group addresses of flows to several sinks: 239.0.0.1 and on (RFC 1112 section 4; 239/8 has local scope, RFC 2365)."""
_LINGER_PS: Final = 2 * PS_PER_S


@dataclass(frozen=True)
class UdpReport:
    """The report of a UDP flow, up to the end of the run or of the flow.

    Members
    -------
    octets_delivered : int
        UDP payload that the sink received, without duplicates.
    start_ps, end_ps : int
        From the start of the flow to the end of the run. Once the application has closed: to the last datagram sent or
        received, whichever is later. ``start_ps`` is negative if the flow did not begin.
    goodput_bps : float
        ``octets_delivered`` over that time.
    datagrams_sent : int
        Datagrams made by the source's host, as ``sent`` in the loss ledger, with those that the full interface queue
        dropped.
    datagrams_refused : int
        Datagrams dropped at the source, or tried again by a full blast, as the interface's queue was full (ENOBUFS).
    datagrams_received : int
        Datagrams received, without duplicates.
    datagrams_lost : int
        Datagrams sent, and neither received nor under way. It is the simulator's knowledge, as in the loss ledger.
    datagrams_under_way : int
        Datagrams in the network, or waiting for the sink's processor.
    datagrams_missing : int
        Losses that the receiver itself can see: numbers missing up to the highest number received.
    datagrams_reordered : int
        Datagrams received after one with a higher number (RFC 4737).
    duplicates : int
    delay_min_ps, delay_mean_ps, delay_max_ps : int
        From the application's write to the sink; 0 if nothing arrived.
    bad_octets : int
        Octets that passed every checksum and were not those sent: always an error of the simulator.
    """

    name: str
    protocol: str
    app: str
    source: str
    sink: str
    finished: bool
    octets_delivered: int
    start_ps: int
    end_ps: int
    goodput_bps: float
    datagrams_sent: int
    datagrams_refused: int
    datagrams_received: int
    datagrams_lost: int
    datagrams_under_way: int
    datagrams_missing: int
    datagrams_reordered: int
    duplicates: int
    delay_min_ps: int
    delay_mean_ps: int
    delay_max_ps: int
    bad_octets: int
    facts: dict[str, Fact] = field(default_factory=dict)


@final
class UdpPair(SocketPair):
    """A port at the source and one at each sink: datagrams go from the one to the others, and perhaps back."""

    def __init__(
        self, flow: UdpFlow, socket: UdpSocket, sinks: list[DatagramReceiver], back: DatagramReceiver | None
    ) -> None:
        self.flow = flow
        self.socket = socket
        self.sinks = sinks
        self.back = back

    def open(self, now_ps: int) -> None:
        driver = self.socket.driver
        if driver is not None:
            driver.connected(now_ps)

    def complete(self) -> bool:
        """Return whether all that was sent has arrived, both ways."""
        sent = self.socket.number
        for sink in self.sinks:
            if sink.received != sent:
                return False
        return self.back is None or self.back.received == sent

    def lost(self) -> int:
        found = self.sinks[0].lost()
        return found if self.back is None else found + self.back.lost()


@final
class UdpFlowEndpoints(DatagramOwner):
    """The hosts of a flow of datagrams."""

    def __init__(self, flow: UdpFlow, datagram: int) -> None:
        super().__init__(flow)
        self.flow = flow
        self.datagram = datagram

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
        """Make the flow's only pair of sockets, from the source to the sink.

        A program at the sink sends datagrams back. With several sinks the datagrams go to a group's address, at which
        all of them receive.
        """
        flow = self.flow
        assert isinstance(near, HostSite) and isinstance(far, HostSite)
        assert near is self.source and opener is not far and program is not None and flow.made is None
        key = 2 * flow.context.number() + 1
        assert not flow.receivers or far_program is None  # several sinks do not answer
        a, b = near.host, far.host
        to = b.address if not flow.receivers else _GROUPS + 1 + key // 2
        port, far_port = ports if ports is not None else (0, _SERVER_PORT)
        if port == 0:
            port = a.port(to, far_port)
        socket = UdpSocket(a, UdpPath(a.address, to, port, far_port), near.vc, key, self.datagram, program)
        socket.owner = self
        echo: UdpSocket | None = None
        back: DatagramReceiver | None = None
        if far_program is not None:
            way = UdpPath(b.address, a.address, far_port, port)
            echo = UdpSocket(b, way, far.vc, key, self.datagram, far_program)
            back = DatagramReceiver(a, key, self, socket, echo)
            a.datagram_receivers[remote_key(b.address, far_port, port)] = back
        sinks = [DatagramReceiver(b, key, self, echo, socket)]
        b.datagram_receivers[remote_key(a.address, port, far_port)] = sinks[0]
        for receiver in flow.receivers:
            host = receiver.site.host
            sinks.append(DatagramReceiver(host, key, self, None, socket))
            host.datagram_receivers[remote_key(a.address, port, far_port)] = sinks[-1]
            host.groups.add(to)
        if flow.receivers:
            b.groups.add(to)
        flow.made = UdpPair(flow, socket, sinks, back)
        return flow.made

    def sent_all(self, now: int) -> None:
        self.flow.sent_all(now)

    def arrived(self, end: DatagramReceiver, now: int) -> None:
        if self.flow.closed:
            self.flow.check(now)


@final
class UdpReceiver:
    """A further sink of a flow: it has a name and a report of its own."""

    def __init__(self, flow: UdpFlow, number: int, name: str, site: HostSite) -> None:
        self.flow = flow
        self.number = number
        self.name = name
        self.site = site

    def report(self, end_ps: int) -> UdpReport:
        """Return the flow's report for this receiver."""
        return self.flow.report_of(self.number, self.name, self.site, end_ps)


@final
class UdpFlow(ApplicationFlow):
    """Datagrams from an application on ``source`` to ``sink``, and to ``others``.

    It ends when the application has closed and all that it sent is there, or two seconds later.
    """

    def __init__(
        self,
        name: str,
        context: FlowContext,
        sites: tuple[HostSite, HostSite],
        datagram: int,
        application: Application,
        start_ps: int,
        others: list[tuple[str, HostSite]],
    ) -> None:
        super().__init__(name, context, sites, application, start_ps)
        self.receivers = [UdpReceiver(self, k + 1, own, site) for k, (own, site) in enumerate(others)]
        self.closed: bool = False
        self.made: UdpPair | None = None
        self.listen(UdpFlowEndpoints(self, datagram))

    def pair(self) -> UdpPair:
        """Return the flow's two sockets."""
        made = self.made
        if made is None:
            raise ValueError(f"flow {self.name} has no sockets")
        return made

    def fire(self, now: int) -> None:
        """Start the flow, or, later, end its linger."""
        if not self.started:
            self.started = True
            self.application.connect(now)
        elif self.closed:
            self.finish(now)

    def sent_all(self, now: int) -> None:
        """Handle the application's end: it has closed, and its last datagram is sent."""
        if not self.closed:
            self.closed = True
            self.scheduler.at(now + _LINGER_PS, self)
            self.check(now)

    def check(self, now: int) -> None:
        """End the flow where everything has arrived."""
        if self.pair().complete():
            self.finish(now)

    def report(self, end_ps: int) -> UdpReport:
        """Return the report as of ``end_ps``, the end of the run; with several sinks, that of the first."""
        return self.report_of(0, self.name, self.sites[1], end_ps)

    def report_of(self, number: int, name: str, site: HostSite, end_ps: int) -> UdpReport:
        """Return the report of the flow to the sink with this number, with this name."""
        source = self.pair().socket
        sink = self.pair().sinks[number]
        back = self.pair().back
        end = end_ps
        if self.closed:
            end = sink.last_ps if sink.last_ps > source.sent_ps else source.sent_ps
        under_way = sink.under_way()
        elapsed = end - self.start_ps
        received = sink.received
        return UdpReport(
            name=name,
            protocol="udp",
            app=self.application.kind,
            source=self.sites[0].host.name,
            sink=site.host.name,
            finished=self.finished,
            octets_delivered=sink.octets,
            start_ps=self.start_ps,
            end_ps=end,
            goodput_bps=sink.octets * 8 * PS_PER_S / elapsed if elapsed > 0 else 0.0,
            datagrams_sent=source.number + source.dropped,
            datagrams_refused=source.refused,
            datagrams_received=received,
            datagrams_lost=sink.lost(),
            datagrams_under_way=under_way if under_way > 0 else 0,
            datagrams_missing=len(sink.missing),
            datagrams_reordered=sink.reordered,
            duplicates=sink.duplicates,
            delay_min_ps=sink.delay_min_ps,
            delay_mean_ps=sink.delay_sum_ps // received if received else 0,
            delay_max_ps=sink.delay_max_ps,
            bad_octets=sink.bad_octets + (0 if back is None else back.bad_octets),
            facts=self.application.facts(end_ps),
        )
