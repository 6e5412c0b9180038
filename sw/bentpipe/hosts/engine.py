"""The host engine: hosts and their flows on a network, in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from bentpipe.apps.app import Application
from bentpipe.apps.ftp import FtpSession
from bentpipe.hosts.flow import DataStarter, Flow, FlowReport, FtpFlow, Group, Stage
from bentpipe.hosts.host import Endpoint, Host, HostConfig, Scheduler
from bentpipe.hosts.profiles import host_clock, host_costs
from bentpipe.hosts.udp import UdpFlow, UdpReport, UdpSink, UdpSocket, datagram_octets
from bentpipe.ip.codec import TcpPath
from bentpipe.ip.udp import UdpPath
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import MASK32
from bentpipe.tcp.trace import Recorder, Trace
from bentpipe_sim.interface import PduNetwork

__all__ = ["HELD", "Engine", "Flow", "FlowReport", "Recorder", "UdpFlow", "UdpReport"]

HELD = -1
"""As a flow's start: when its group says so."""

_PROGRESS_PS = 50_000_000_000
_TTCP_PORT = 5001
_FTP_CONTROL = 21
_FTP_DATA = 20


@final
class Engine:
    """Runs hosts on a network. There is no randomness in it: the same calls on the same network do the same.

    Parameters
    ----------
    network : PduNetwork
    recorder : Recorder or None
        Gets each flow's congestion window, threshold and acknowledged octets as they change, and its events.
    segments : bool
        An event for each data segment, too.
    """

    def __init__(self, network: PduNetwork, recorder: Recorder | None = None, segments: bool = False) -> None:
        self.network = network
        self._segments = segments
        self.recorder = recorder
        self.scheduler = Scheduler()
        self.scheduler.now = network.now_ps
        self.hosts: list[Host] = []
        self.flows: list[Stage] = []
        self._applications: list[Application] = []
        self._count: int = 0
        self._by_nic: dict[int, Host] = {}

    @property
    def now_ps(self) -> int:
        return self.scheduler.now

    def add_host(self, config: HostConfig, nic: int) -> Host:
        """A host at this interface of the network."""
        if nic in self._by_nic:
            raise ValueError(f"interface {nic} already belongs to host {self._by_nic[nic].name}")
        costs, clock = host_costs(config), host_clock(config)
        host = Host(self.scheduler, self.network, config, nic, len(self.hosts), costs, clock)
        self.hosts.append(host)
        self._by_nic[nic] = host
        if config.interface_queue:
            report = getattr(self.network, "report_sent", None)
            if report is not None:  # other networks always report
                report(nic)
        return host

    def add_tcp_flow(
        self,
        name: str,
        source: Host,
        sink: Host,
        source_vc: int,
        sink_vc: int,
        tcp: TcpConfig,
        sink_tcp: TcpConfig | None = None,
        app: Application | None = None,
        start_ps: int = 0,
        sink_app: Application | None = None,
    ) -> Flow:
        """A TCP connection that carries data from ``source`` to ``sink``.

        ``source_vc`` and ``sink_vc`` are the VCs on which each sends; ``sink_tcp`` is ``tcp`` if not given;
        without an application the source only connects.
        """
        end_tcp = tcp if sink_tcp is None else sink_tcp
        ends = (source, sink, source_vc, sink_vc)
        flow = self._connection(name, ends, tcp, end_tcp, app, sink_app, start_ps, False, None)
        self._add(flow)
        return flow

    def add_ftp_flow(
        self,
        name: str,
        source: Host,
        sink: Host,
        source_vc: int,
        sink_vc: int,
        tcp: TcpConfig,
        session: FtpSession,
        start_ps: int = 0,
        sink_tcp: TcpConfig | None = None,
    ) -> FtpFlow:
        """A file that goes from ``source`` to ``sink`` by FTP; VCs and TCP as with :meth:`add_tcp_flow`."""
        end_tcp = tcp if sink_tcp is None else sink_tcp
        there = (source, sink, source_vc, sink_vc)
        back = (sink, source, sink_vc, source_vc)
        # The server opens the data connection, from its port 20 to the port that the client has named.
        client = source if session.put else sink
        port = client.next_port
        client.next_port += 2
        ports = (port, _FTP_DATA) if session.put else (_FTP_DATA, port)
        data = self._connection(name, there, tcp, end_tcp, session.sender, session.receiver, HELD, session.put, ports)
        ends, first, second = (there, tcp, end_tcp) if session.put else (back, end_tcp, tcp)
        control = self._connection(
            f"{name}.control",
            ends,
            first,
            second,
            session.client,
            session.server,
            HELD,
            False,
            (port + 1, _FTP_CONTROL),
        )
        flow = FtpFlow(name, self.scheduler, control, data, start_ps)
        session.starter = DataStarter(data)
        self._add(flow)
        return flow

    def _connection(
        self,
        name: str,
        ends: tuple[Host, Host, int, int],
        tcp: TcpConfig,
        sink_tcp: TcpConfig,
        app: Application | None,
        sink_app: Application | None,
        start_ps: int,
        sink_opens: bool,
        ports: tuple[int, int] | None,
    ) -> Flow:
        """A connection between ``ends`` (hosts, and the VC on which each sends), opened by the source or the sink;
        ``ports`` are the source's and the sink's, chosen if not given."""
        source, sink, source_vc, sink_vc = ends
        index = self._check(name, source, sink, app)
        if sink_app is not None:
            self._claim(name, sink_app)
        if ports is None:
            port, sink_port = source.next_port, _TTCP_PORT
            source.next_port += 1
            while (source.address, port << 16 | sink_port) in sink.connections:
                sink_port += 1
        else:
            port, sink_port = ports
        trace = None if self.recorder is None else Trace(self.recorder, name, self._segments)
        first = Connection(tcp, tcp.segment_size(source.config.mtu), _iss(2 * index), source.ticks, trace)
        second = Connection(sink_tcp, sink_tcp.segment_size(sink.config.mtu), _iss(2 * index + 1), sink.ticks)
        (first if sink_opens else second).listen()
        keys = (2 * index + 1, 2 * index + 2)
        to_sink = TcpPath(source.address, sink.address, port, sink_port)
        to_source = TcpPath(sink.address, source.address, sink_port, port)
        first_end = Endpoint(source, first, to_sink, source_vc, keys[0], keys[1], app)
        second_end = Endpoint(sink, second, to_source, sink_vc, keys[1], keys[0], sink_app)
        source.add(first_end, sink.address, port, sink_port)
        sink.add(second_end, source.address, sink_port, port)
        return Flow(name, self.scheduler, first_end, second_end, start_ps, second_end if sink_opens else first_end)

    def add_udp_flow(
        self,
        name: str,
        source: Host,
        sink: Host,
        source_vc: int,
        app: Application,
        datagram: int = 0,
        start_ps: int = 0,
    ) -> UdpFlow:
        """Datagrams of ``datagram`` octets of payload at most (0: as many as fit the MTU) from ``app`` on ``source``
        to ``sink``. ValueError if a datagram would need fragmentation."""
        index = self._check(name, source, sink, app)
        mtu = source.config.mtu if source.config.mtu < sink.config.mtu else sink.config.mtu
        try:
            octets = datagram_octets(datagram, mtu)
        except ValueError as error:
            raise ValueError(f"flow {name}: {error}") from None
        port, sink_port = source.next_port, _TTCP_PORT
        source.next_port += 1
        path = UdpPath(source.address, sink.address, port, sink_port)
        key = 2 * index + 1
        sink_end = UdpSink(sink, key)
        sink.datagram_ends[(source.address, port << 16 | sink_port)] = sink_end
        socket = UdpSocket(source, path, source_vc, key, octets)
        flow = UdpFlow(name, socket, sink_end, app, start_ps, self.recorder)
        self._add(flow)
        return flow

    def add_group(self, members: list[Stage], serial: bool) -> Group:
        """Flows (their start :data:`HELD`) and groups that start together or one after another."""
        return Group(self.scheduler, members, serial)

    def start(self, stage: Stage, start_ps: int = 0) -> None:
        """Start a group, or a flow that is held, at this time."""
        now = self.scheduler.now
        stage.start_ps = (start_ps if start_ps > now else now) + stage.delay_ps
        self.scheduler.at(stage.start_ps, stage)

    def _check(self, name: str, source: Host, sink: Host, app: Application | None) -> int:
        """The number of a new connection or UDP flow."""
        if source is sink:
            raise ValueError(f"flow {name}: source and sink are the same host {source.name}")
        if app is not None:
            self._claim(name, app)
        self._count += 1
        return self._count - 1

    def _claim(self, name: str, app: Application) -> None:
        if any(app is other for other in self._applications):
            raise ValueError(f"flow {name}: its application serves another flow already")
        self._applications.append(app)

    def _add(self, flow: Stage) -> None:
        self.flows.append(flow)
        if flow.start_ps != HELD:
            self.start(flow, flow.start_ps)

    def run(self, until_ps: int, progress: Callable[[int], bool | None] | None = None) -> int:
        """Run until this time, or until every flow has finished; the time reached.

        ``progress`` is called every 50 ms of simulated time; False from it ends the run.
        """
        network = self.network
        scheduler = self.scheduler
        heap = scheduler.heap
        by_nic = self._by_nic
        next_progress = scheduler.now + _PROGRESS_PS if progress is not None else until_ps
        open_flows = [flow for flow in self.flows if not flow.finished]
        scheduler.fire()
        while True:
            now = scheduler.now
            if open_flows and open_flows[-1].finished:
                open_flows = [flow for flow in open_flows if not flow.finished]
            if not open_flows and self.flows:
                break
            if now >= next_progress and progress is not None:
                if progress(now) is False:
                    break
                next_progress = now + _PROGRESS_PS
            if now >= until_ps:
                break
            target = until_ps if until_ps < next_progress else next_progress
            if heap and heap[0][0] < target:
                target = heap[0][0]
            events = network.run(target)
            now = network.now_ps
            scheduler.now = now
            for event in events:
                host = by_nic.get(event.nic)
                if host is not None:
                    host.event(event)
            if heap and heap[0][0] <= now:
                scheduler.fire()
        return scheduler.now


def _iss(index: int) -> int:
    """Initial sequence numbers spread over the whole range, so that every experiment has some that wrap."""
    return (index * 0x9E3779B1 + 64000) & MASK32
