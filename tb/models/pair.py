"""Two hosts on a pair of wires, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe.apps.app import Application
from bentpipe.apps.ttcp import Ttcp
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import Engine
from bentpipe.hosts.flow import Flow, FlowReport
from bentpipe.hosts.host import Host
from bentpipe.tcp.config import TcpConfig

from .wire import Wire, WireNetwork

__all__ = ["MemoryRecorder", "Pair"]


@dataclass
class MemoryRecorder:
    """Keeps what it gets."""

    samples: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    events: list[tuple[str, int, str, int]] = field(default_factory=list)

    def sample(self, series: str, time_ps: int, value: int) -> None:
        self.samples.setdefault(series, []).append((time_ps, value))

    def event(self, series: str, time_ps: int, kind: str, value: int) -> None:
        self.events.append((series, time_ps, kind, value))

    def times(self, kind: str) -> list[int]:
        return [time for _, time, what, _ in self.events if what == kind]


class Pair:
    """A source and a sink with a wire each way."""

    def __init__(
        self,
        rate_bps: int | None = None,
        delay_ps: int = 0,
        source: HostConfig | None = None,
        sink: HostConfig | None = None,
        seed: int = 1,
        keep_log: bool = False,
    ) -> None:
        self.network = WireNetwork(seed, keep_log)
        self.recorder = MemoryRecorder()
        nics = self.network.add_nic(), self.network.add_nic()
        self.forth_vc = self.network.add_wire(nics[0], nics[1], rate_bps, delay_ps)
        self.back_vc = self.network.add_wire(nics[1], nics[0], rate_bps, delay_ps)
        self.engine = Engine(self.network, self.recorder)
        self.source: Host = self.engine.add_host(source or HostConfig(name="source"), nics[0])
        self.sink: Host = self.engine.add_host(sink or HostConfig(name="sink"), nics[1])

    @property
    def forth(self) -> Wire:
        return self.network.wires[(0, self.forth_vc)]

    @property
    def back(self) -> Wire:
        return self.network.wires[(1, self.back_vc)]

    def flow(
        self,
        tcp: TcpConfig,
        size: int | None = None,
        sink_tcp: TcpConfig | None = None,
        app: Application | None = None,
        start_ps: int = 0,
    ) -> Flow:
        name = f"flow{len(self.engine.flows) + 1}"
        return self.engine.add_tcp_flow(
            name, self.source, self.sink, self.forth_vc, self.back_vc, tcp, sink_tcp, app or Ttcp(size), start_ps
        )

    def run(self, flow: Flow, seconds: float) -> FlowReport:
        return flow.report(self.engine.run(round(seconds * 10**12)))
