"""The parts of a host."""

from __future__ import annotations

import random
from typing import Final

from bentpipe.errors import ExperimentFailed
from bentpipe.hosts.clock import HostClock
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.endpoint import TransportEndpoint
from bentpipe.hosts.interface import Interface
from bentpipe.hosts.oam import OamEnd
from bentpipe.hosts.processor import Processor
from bentpipe.hosts.scheduler import Scheduler
from bentpipe.hosts.ticks import Ticks
from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import FAST_TICK_PS, SLOW_TICK_PS
from bentpipe.tcp.time_wait import closed_connection
from bentpipe_sim.interface import PduNetwork

__all__ = ["Machine", "remote_key"]

_FIRST_PORT: Final = 1024
_LAST_PORT: Final = 65535
_SIGN: Final = 1 << 31


class Machine:
    """One processor, one interface, one clock, and the ports in use.

    Members
    -------
    connections, datagram_receivers : dict
        Endpoints by remote address (32 bits) and ports (16 bits each, the remote one first), as joined by
        :func:`remote_key`.
    routes : dict
        The VC to each remote address.
    pdu_errors : list of int
        Receptions by :class:`bentpipe_sim.interface.PduStatus`.
    header_errors, checksum_errors : int
        PDUs dropped as IP or TCP found them damaged although AAL5 did not.
    damaged : dict of int to int
        Those, by VC.
    overrun : dict of int to int
        Whole PDUs that found the input queue full, by VC.
    congested : dict of int to int
        Whole PDUs that met congestion (EFCI in their last cells), by VC.
    oam : dict of int to OamEnd
        FlowEndpoints of OAM flows, by the VC on which they receive.
    groups : set of int
        Group addresses at which it receives.
    no_connection : int
        Segments for no connection, answered by a RST, and datagrams for no port.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        network: PduNetwork,
        config: HostConfig,
        nic: int,
        index: int,
        costs: tuple[int, int],
        clock: HostClock,
    ) -> None:
        self.scheduler = scheduler
        self.network = network
        self.config = config
        self.name: str = config.name
        self.address: int = 10 << 24 | (index + 1)
        self.clock: HostClock = clock
        self.interface = Interface(scheduler, network, config.name, nic, config.interface_queue, index * 4099)
        draws = random.Random(f"{config.seed} host {config.name}")
        self.processor = Processor(scheduler, clock, costs, config.cost_spread, draws)
        # The golden ratio spreads any number of phases evenly: hosts do not tick together.
        phase = config.timer_phase_ps
        share = (index * 618_034 + 381_966) % 1_000_000
        fast = FAST_TICK_PS * share // 1_000_000 if phase is None else phase % FAST_TICK_PS
        slow = SLOW_TICK_PS * share // 1_000_000 if phase is None else phase % SLOW_TICK_PS
        clock.origin_ps = network.now_ps + (slow or SLOW_TICK_PS)
        self.ticks = Ticks(scheduler, clock, network.now_ps + (fast or FAST_TICK_PS), clock.origin_ps)
        self.connections: dict[int, TransportEndpoint] = {}
        self.datagram_receivers: dict[int, TransportEndpoint] = {}
        self._closed: Connection | None = None
        self.routes: dict[int, int] = {}
        self.pdu_errors: list[int] = [0] * 16
        self.header_errors: int = 0
        self.checksum_errors: int = 0
        self.damaged: dict[int, int] = {}
        self.input_limit: int = config.input_queue
        self.overrun: dict[int, int] = {}
        self.congested: dict[int, int] = {}
        self.oam: dict[int, OamEnd] = {}
        self.groups: set[int] = set()
        self.no_connection: int = 0
        self._next_port: int = _FIRST_PORT
        self._ends: int = 0

    def add(self, end: TransportEndpoint, remote: int, local_port: int, remote_port: int, vc: int) -> None:
        """Add an end: segments from ``remote`` with these ports belong to it."""
        end.order = self._ends
        self._ends += 1
        self.connections[remote_key(remote, remote_port, local_port)] = end
        self.routes[remote] = vc

    def forget(self, end: TransportEndpoint, remote: int, local_port: int, remote_port: int) -> None:
        """Remove an end whose connection is closed for good, unless another end has its ports by now."""
        key = remote_key(remote, remote_port, local_port)
        if self.connections.get(key) is end:
            del self.connections[key]

    def closed(self, config: TcpConfig) -> Connection:
        """Return a connection that stands for all connections of this host that are closed and gone."""
        if self._closed is None:
            self._closed = closed_connection(config)
        return self._closed

    def port(self, remote: int, remote_port: int) -> int:
        """Return a port that no connection to ``remote_port`` there uses: the next one that was not given yet, or that
        is free again."""
        for _ in range(_FIRST_PORT, _LAST_PORT + 1):
            port = self.ports(1)
            key = remote_key(remote, remote_port, port)
            if key not in self.connections and key not in self.datagram_receivers:
                return port
        raise ExperimentFailed(
            f"host {self.name} has no free port: all its connections to port {remote_port} of one host are open, or "
            "wait for late segments (TIME_WAIT)"
        )

    def ports(self, count: int) -> int:
        """Return the first of ``count`` ports in a row, counted through and round."""
        if self._next_port + count > _LAST_PORT + 1:
            self._next_port = _FIRST_PORT
        port = self._next_port
        self._next_port += count
        return port


def remote_key(address: int, remote_port: int, local_port: int) -> int:
    """Return the key of the end that talks to this address and port from this port of its own host: 64 bits, signed."""
    return ((address ^ _SIGN) - _SIGN) << 32 | remote_port << 16 | local_port
