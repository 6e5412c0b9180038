"""The host engine: hosts and their flows on a network, in simulated time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, cast, final

from bentpipe.apps.app import Application
from bentpipe.apps.test_cells import TestCells
from bentpipe.hosts.config import HostConfig, host_clock, host_costs
from bentpipe.hosts.flow import Flow
from bentpipe.hosts.flow_base import FlowContext, FlowGroup, FlowOrGroup, HostSite
from bentpipe.hosts.host import Host
from bentpipe.hosts.loopback import LoopbackFlow
from bentpipe.hosts.oam import EndPoint, OamEnd
from bentpipe.hosts.processor import Processor
from bentpipe.hosts.scheduler import Scheduler
from bentpipe.hosts.sockets import Driver
from bentpipe.hosts.test_flow import TestCellFlow
from bentpipe.hosts.udp import UdpFlow
from bentpipe.ip.udp import datagram_octets
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.trace import Recorder
from bentpipe_sim.interface import AheadNetwork, CellStream, PduNetwork

__all__ = ["HELD", "PROGRESS_PS", "Engine"]

HELD: Final = -1
"""As a flow's start: when its group says so."""

PROGRESS_PS: Final = 50_000_000_000
"""Between two calls of ``progress``, in simulated time."""

_MOST_HOSTS: Final = 64
"""With more hosts it takes too long to see which one sends next."""
_LEAST_REACTION: Final = 1_000_000
"""Hosts that react faster (ps) are not worth a thread of their own."""

_SOON: Final = 8
_LATE: Final = 256
"""Stretches between two trials."""
_STRETCHES: Final = 8
"""Stretches of a trial."""
_TRIAL_PS: Final = 7_000_000_000
"""Such a stretch, at most; no simple fraction of the usual periods of sources."""
_GAIN: Final = 0.97
"""So much of the time at most has to be left for a change."""

_GAUGE: Final = 64
"""From this status on an event is a queue monitor's."""


@final
class BesideChoice:
    """Choose whether the network runs in a thread of its own.

    It does where that is faster, which it is not on a machine whose cores are busy. Both ways are measured now and
    then, in stretches by turns. The results do not depend on it.

    Members
    -------
    is_fixed : bool
        The network always does; for tests.
    """

    def __init__(self) -> None:
        self.is_fixed: bool = False
        self._beside: bool = False
        self._trial: int = 0  # stretches of it that are left: the other way, this one, the other, this one
        self._wait: int = _SOON
        self._left: int = 2
        self._other_s: float = 0.0
        self._this_s: float = 0.0
        self._since: float = 0.0

    def begin(self) -> bool:
        """Begin a stretch; return whether the network has a thread of its own in it."""
        self._since = time.perf_counter()
        return self.is_fixed or self._beside != (self._trial % 2 == 0 and self._trial > 0)

    def longest_ps(self) -> int:
        """Return how long the next stretch may be."""
        return _TRIAL_PS if self._trial and not self.is_fixed else PROGRESS_PS

    def end(self, simulated_ps: int) -> None:
        """End a stretch of so much simulated time."""
        if not simulated_ps or self.is_fixed:
            return
        took = (time.perf_counter() - self._since) / simulated_ps
        if not self._trial:
            self._left -= 1
            if self._left == 0:
                self._trial = _STRETCHES
                self._other_s = self._this_s = 0.0
            return
        if self._trial % 2 == 0:
            self._other_s += took
        else:
            self._this_s += took
        self._trial -= 1
        if not self._trial:
            is_better = self._other_s < _GAIN * self._this_s
            if is_better:
                self._beside = not self._beside
                self._wait = _SOON
            elif self._wait < _LATE:
                self._wait *= 2
            self._left = self._wait


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
        self.scheduler = Scheduler()
        self.scheduler.now = network.now_ps
        self.hosts: list[Host] = []
        self.flows: list[FlowOrGroup] = []
        self.endless: bool = False
        self._context = FlowContext(recorder, segments)
        # In order, not a set: copies of a run number the random generators in the order in which they meet them.
        self._applications: dict[Application, None] = {}
        self._by_nic: dict[int, Host] = {}
        self.choice = BesideChoice()
        self._reaction_ps: int = 0
        self._hosts_seen: int = 0
        self._acts_at_once: bool = False

    @property
    def now_ps(self) -> int:
        return self.scheduler.now

    def add_host(self, config: HostConfig, nic: int) -> Host:
        """Add a host at this interface of the network, and return it."""
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
    ) -> Flow:
        """Add a flow whose TCP connections carry the application's data from ``source`` to ``sink``, and return it.

        ``source_vc`` and ``sink_vc`` are the VCs on which each sends; ``sink_tcp`` is ``tcp`` if not given;
        without an application the source only connects.
        """
        application = Application() if app is None else app
        sites = self._sites(name, source, sink, source_vc, sink_vc, application)
        configs = (tcp, tcp if sink_tcp is None else sink_tcp)
        flow = Flow(name, self._context, sites, configs, application, start_ps)
        self._add(flow)
        return flow

    def add_udp_flow(
        self,
        name: str,
        source: Host,
        sink: Host,
        source_vc: int,
        app: Application,
        datagram: int = 0,
        start_ps: int = 0,
        sink_vc: int = 0,
        others: Sequence[tuple[str, Host]] = (),
    ) -> UdpFlow:
        """Add a flow of datagrams from ``app`` on ``source`` to ``sink``.

        Parameters
        ----------
        datagram : int
            Octets of payload, at most; 0: as many as fit the MTU.
        sink_vc : int
            VC of datagrams that are sent back.
        others : sequence of (str, Host)
            Further sinks by the names in reports; they get the same datagrams, on a point-to-multipoint VC.

        Raises
        ------
        ValueError
            A datagram would need fragmentation.
        """
        sites = self._sites(name, source, sink, source_vc, sink_vc, app)
        mtu = min(source.config.mtu, sink.config.mtu)
        also: list[tuple[str, HostSite]] = []
        for own, host in others:
            mtu = min(mtu, host.config.mtu)
            also.append((own, HostSite(host, 0)))
        try:
            octets = datagram_octets(datagram, mtu)
        except ValueError as error:
            raise ValueError(f"flow {name}: {error}") from None
        flow = UdpFlow(name, self._context, sites, octets, app, start_ps, also)
        self._add(flow)
        return flow

    def add_oam_end(self, host: Host, point: EndPoint, receives: int, sends: int) -> OamEnd:
        """Add an end of OAM flows at a host, and return it.

        It is of the VC on which it ``receives`` and that on which it ``sends`` (-1: none). The network's interfaces
        send single cells.
        """
        self._acts_at_once = True
        end = OamEnd(self.scheduler, self.network, host.interface.nic, point, receives, sends)
        if receives >= 0:
            host.oam[receives] = end
        return end

    def add_loopback_flow(
        self,
        name: str,
        source: Host,
        sink: Host,
        end: OamEnd,
        app: Application,
        location: bytes,
        pti: int,
        start_ps: int = 0,
    ) -> LoopbackFlow:
        """Add a flow of loopback cells from ``app`` at an ``end`` of ``source``, with this location ID and PTI."""
        sites = self._sites(name, source, sink, end.sends, end.receives, app)
        flow = LoopbackFlow(name, self._context, sites, end, location, pti, app, start_ps)
        self._add(flow)
        return flow

    def add_test_cell_flow(
        self, name: str, source: Host, sink: Host, stream: CellStream, app: TestCells, start_ps: int = 0
    ) -> TestCellFlow:
        """Add a flow of test cells of a stream from ``source`` to ``sink``."""
        self._acts_at_once = True
        sites = self._sites(name, source, sink, 0, 0, app)
        flow = TestCellFlow(name, self._context, sites, app, stream, start_ps)
        self._add(flow)
        return flow

    def add_group(self, members: list[FlowOrGroup], serial: bool) -> FlowGroup:
        """Group flows (their start is :data:`HELD`) and groups that start together or one after another."""
        return FlowGroup(self.scheduler, members, serial)

    def start(self, flow: FlowOrGroup, start_ps: int = 0) -> None:
        """Start a group, or a flow that is held, at this time."""
        now = self.scheduler.now
        flow.start_ps = (start_ps if start_ps > now else now) + flow.delay_ps
        self.scheduler.at(flow.start_ps, flow)

    def _sites(
        self, name: str, source: Host, sink: Host, source_vc: int, sink_vc: int, app: Application
    ) -> tuple[HostSite, HostSite]:
        """Return the hosts of a new flow."""
        if source is sink:
            raise ValueError(f"flow {name}: source and sink are the same host {source.name}")
        if app in self._applications:
            raise ValueError(f"flow {name}: its application serves another flow already")
        self._applications[app] = None
        return HostSite(source, source_vc), HostSite(sink, sink_vc)

    def _add(self, flow: FlowOrGroup) -> None:
        self.flows.append(flow)
        if flow.start_ps != HELD:
            self.start(flow, flow.start_ps)

    def draw_again(self) -> None:
        """Let all programs draw again what they have drawn for later times."""
        drivers: dict[Driver, None] = {}  # each once, also where it has asked twice for one time
        for due, timer in self.scheduler.pending():
            if isinstance(timer, Driver) and timer.due == due:
                drivers[timer] = None
        for driver in drivers:
            driver.again(self.scheduler.now)

    def run(self, until_ps: int, progress: Callable[[int], bool | None] | None = None) -> int:
        """Run until this time, until every flow has finished (unless ``endless``), or until a queue monitor reports an
        event. Return the time reached.

        ``progress`` is called every 50 ms of simulated time; False from it ends the run.
        """
        scheduler = self.scheduler
        next_progress = scheduler.now + PROGRESS_PS if progress is not None else until_ps
        may = getattr(self.network, "may_run_ahead", None)  # other networks never
        open_flows = self.flows
        scheduler.fire()
        halted = False
        while not halted:
            now = scheduler.now
            open_flows = [flow for flow in open_flows if not flow.finished]
            if not open_flows and self.flows and not self.endless:
                break
            if now >= next_progress and progress is not None:
                if progress(now) is False:
                    break
                next_progress = now + PROGRESS_PS
            if now >= until_ps:
                break
            target = until_ps if until_ps < next_progress else next_progress
            flow = None
            if may is not None and may():
                if target - now > self.choice.longest_ps():
                    target = now + self.choice.longest_ps()  # then look again
                flow = self._lasting(open_flows)
            if flow is None:
                last = open_flows[-1] if open_flows else FlowOrGroup("", scheduler, 0)
                halted = self._turns(target, last)
                continue
            beside = self.choice.begin()
            if not (beside and self._turns_beside(target, flow)):
                halted = self._turns(target, flow)
            self.choice.end(scheduler.now - now)
        return scheduler.now

    def _reaction(self) -> int:
        """Return the least time (ps) from anything that happens at a host to what it sends for that; 0: none."""
        if len(self.hosts) > _MOST_HOSTS:
            return 0
        return min([host.processor.least_send_cost() for host in self.hosts])

    def _lasting(self, flows: list[FlowOrGroup]) -> FlowOrGroup | None:
        """Return a flow that surely goes on, where the hosts take their time for what they send; else None.

        The run must not end while the network is ahead of the hosts.
        """
        if self._hosts_seen != len(self.hosts):
            self._hosts_seen = len(self.hosts)
            self._reaction_ps = self._reaction()
        if self._reaction_ps >= _LEAST_REACTION and not self._acts_at_once:
            for flow in flows:
                if flow.goes_on():
                    return flow
        return None

    def _turns_beside(self, until_ps: int, flow: FlowOrGroup) -> bool:
        """Run as :meth:`_turns` does, as long as this flow surely goes on. False: it cannot.

        Meanwhile the network runs on in a thread of its own, up to the first time at which a host might send anything
        that the network has not been given yet.
        """
        network = cast(AheadNetwork, self.network)
        if not network.begin_ahead():
            return False
        processors = [host.processor for host in self.hosts]
        for host in self.hosts:
            if not host.interface.limit:  # else it depends on what has been sent by then whether it takes the segment
                host.processor.network = network
                host.processor.early_until = until_ps
        is_whole = False
        try:
            self._keep_ahead(network, until_ps, flow, processors)
            is_whole = True
        finally:
            for processor in processors:
                processor.early_until = -1
            network.end_ahead(is_whole)
        return True

    def _keep_ahead(self, network: AheadNetwork, until_ps: int, flow: FlowOrGroup, processors: list[Processor]) -> None:
        """Run as :meth:`_turns_beside` says."""
        reaction = self._reaction_ps
        scheduler = self.scheduler
        by_nic = self._by_nic
        now = scheduler.now
        horizon = now
        while now < until_ps:
            due = scheduler.due
            target = due if due < until_ps else until_ps
            limit = target + reaction
            for processor in processors:
                sends = processor.sends_at()
                if sends < limit:
                    limit = sends
            if limit > until_ps:
                limit = until_ps
            if flow.goes_on():
                horizon = limit
            else:
                if limit < horizon:
                    horizon = limit
                if horizon <= now:
                    break
                if target > horizon:
                    target = horizon
            events = network.run_ahead(target, horizon, reaction)
            if events:
                scheduler.now = now = events[-1].time_ps
                for event in events:
                    host = by_nic.get(event.nic)
                    if host is not None:
                        host.event(event)
            else:
                scheduler.now = now = target
            if scheduler.due <= now:
                scheduler.fire()

    def _turns(self, until_ps: int, flow: FlowOrGroup) -> bool:
        """Run until this time, or until this flow has finished.

        Return True if a queue monitor has reported an event before.
        """
        run = self.network.run
        scheduler = self.scheduler
        by_nic = self._by_nic
        halted = False
        now = scheduler.now
        while now < until_ps and not (halted or flow.finished):
            due = scheduler.due
            target = due if due < until_ps else until_ps
            events = run(target)
            if events:
                scheduler.now = now = events[-1].time_ps
                for event in events:
                    host = by_nic.get(event.nic)
                    if host is not None:
                        host.event(event)
                    elif event.status >= _GAUGE:
                        halted = True
            else:
                scheduler.now = now = target
            if scheduler.due <= now:
                scheduler.fire()
        return halted
