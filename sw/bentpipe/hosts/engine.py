"""The host engine: hosts and their flows on a network, in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from bentpipe.apps.app import Application
from bentpipe.hosts.flow import Flow, FlowReport
from bentpipe.hosts.host import Endpoint, Host, HostConfig, Scheduler
from bentpipe.hosts.profiles import host_costs
from bentpipe.ip.codec import TcpPath
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import MASK32
from bentpipe.tcp.trace import Recorder, Trace
from bentpipe_sim.interface import PduNetwork

__all__ = ["Engine", "Flow", "FlowReport", "Recorder"]

_PROGRESS_PS = 50_000_000_000
_TTCP_PORT = 5001


@final
class Engine:
    """Runs hosts on a network. There is no randomness in it: the same calls on the same network do the same.

    Parameters
    ----------
    network : PduNetwork
    recorder : Recorder or None
        Gets each flow's congestion window, threshold and acknowledged octets as they change, and its events.
    """

    def __init__(self, network: PduNetwork, recorder: Recorder | None = None) -> None:
        self.network = network
        self.recorder = recorder
        self.scheduler = Scheduler()
        self.scheduler.now = network.now_ps
        self.hosts: list[Host] = []
        self.flows: list[Flow] = []
        self._by_nic: dict[int, Host] = {}

    @property
    def now_ps(self) -> int:
        return self.scheduler.now

    def add_host(self, config: HostConfig, nic: int) -> Host:
        """A host at this interface of the network."""
        if nic in self._by_nic:
            raise ValueError(f"interface {nic} already belongs to host {self._by_nic[nic].name}")
        host = Host(self.scheduler, self.network, config, nic, len(self.hosts), host_costs(config))
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
    ) -> Flow:
        """A TCP connection from ``source`` to ``sink``.

        ``source_vc`` and ``sink_vc`` are the VCs on which each sends; ``sink_tcp`` is ``tcp`` if not given;
        without an application the source only connects.
        """
        if source is sink:
            raise ValueError(f"flow {name}: source and sink are the same host {source.name}")
        index = len(self.flows)
        port = source.next_port
        source.next_port += 1
        sink_port = _TTCP_PORT
        while (source.address, port << 16 | sink_port) in sink.connections:
            sink_port += 1
        sink_config = tcp if sink_tcp is None else sink_tcp
        trace = None if self.recorder is None else Trace(self.recorder, name)
        first = Connection(tcp, tcp.segment_size(source.config.mtu), _iss(2 * index), source.ticks, trace)
        second = Connection(sink_config, sink_config.segment_size(sink.config.mtu), _iss(2 * index + 1), sink.ticks)
        second.listen()
        keys = (2 * index + 1, 2 * index + 2)
        to_sink = TcpPath(source.address, sink.address, port, sink_port)
        to_source = TcpPath(sink.address, source.address, sink_port, port)
        first_end = Endpoint(source, first, to_sink, source_vc, keys[0], keys[1], app)
        second_end = Endpoint(sink, second, to_source, sink_vc, keys[1], keys[0], None)
        source.add(first_end, sink.address, port, sink_port)
        sink.add(second_end, source.address, sink_port, port)
        flow = Flow(name, first_end, second_end, start_ps)
        self.flows.append(flow)
        now = self.scheduler.now
        self.scheduler.at(start_ps if start_ps > now else now, flow)
        return flow

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
