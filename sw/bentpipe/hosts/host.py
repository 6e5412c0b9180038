"""A host: one processor, one interface, its TCP connections."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from bentpipe.apps.app import Application
from bentpipe.errors import ExperimentFailed
from bentpipe.ip.codec import CHECKSUM_AT, CHECKSUM_START, HEADER, LLC_SNAP, SNAP_IPV4, TcpPath, decode_options
from bentpipe.tcp.connection import Connection, reset_for
from bentpipe.tcp.constants import (
    CLOSE_WAIT,
    CLOSED,
    ESTABLISHED,
    FAST_TICK_PS,
    MASK32,
    RST,
    SLOW_TICK_PS,
    TIME_WAIT,
)
from bentpipe.tcp.segment import Options, Segment
from bentpipe_sim.interface import PduEvent, PduNetwork
from bentpipe_sim.pattern import pattern

if TYPE_CHECKING:
    from bentpipe.hosts.flow import Flow

__all__ = ["Endpoint", "Host", "HostConfig", "Scheduler", "Timer"]

_unpack: Final = HEADER.unpack_from
_HEADER_OCTETS: Final = 48
_HALF32: Final = 1 << 31
_OK: Final = 0
_SENT: Final = 15
_SENT_WITHIN_PS: Final = 10 * 10**12


@dataclass(frozen=True)
class HostConfig:
    """Settings of a host.

    Parameters
    ----------
    name : str
    send_cost_ps, receive_cost_ps : int or None
        Processor time per segment sent and received, an ACK being a segment too. None: the profile's, or 0.
    interface_queue : int
        PDUs that wait for the interface at most, 0 for no limit (BSD's IFQ_MAXLEN is 50).
    mtu : int
        IP MTU in octets.
    profile : str or None
        A published host of ``profiles.toml``.
    timer_phase_ps : int or None
        When, in each 200 ms and 500 ms, the host's ticks come. None: spread evenly over the hosts of an engine.
    """

    name: str
    send_cost_ps: int | None = None
    receive_cost_ps: int | None = None
    interface_queue: int = 0
    mtu: int = 9180
    profile: str | None = None
    timer_phase_ps: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("send_cost_ps", self.send_cost_ps), ("receive_cost_ps", self.receive_cost_ps)):
            if value is not None and value < 0:
                raise ValueError(f"{name} of host {self.name} must not be negative, not {value!r}")
        if self.interface_queue < 0:
            raise ValueError(f"interface_queue of host {self.name} must not be negative, not {self.interface_queue!r}")
        if not 104 <= self.mtu <= 65527:
            raise ValueError(f"mtu of host {self.name} must be 104..65527, not {self.mtu!r}")


class Timer:
    """Something that the engine calls when its time comes."""

    def fire(self, now: int) -> None:
        raise NotImplementedError


@final
class Scheduler:
    """The timers of all hosts; those of one instant come in the order in which they were set."""

    __slots__ = ("heap", "now", "order")

    def __init__(self) -> None:
        self.now: int = 0
        self.order: int = 0
        self.heap: list[tuple[int, int, Timer]] = []

    def at(self, time: int, timer: Timer) -> None:
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, timer))

    def fire(self) -> None:
        """Call what is due now."""
        heap = self.heap
        now = self.now
        while heap and heap[0][0] <= now:
            heapq.heappop(heap)[2].fire(now)


@final
class Endpoint(Timer):
    """A connection on its host: addresses, VC, payload keys, application."""

    def __init__(
        self,
        host: Host,
        connection: Connection,
        path: TcpPath,
        vc: int,
        key: int,
        peer_key: int,
        application: Application | None,
    ) -> None:
        self.host = host
        self.connection = connection
        self.path = path
        self.vc = vc
        self.key = key
        self.peer_key = peer_key
        self.application = application
        self.flow: Flow | None = None
        self.armed: int = 0
        self.seen_state: int = connection.state
        self.bad_octets: int = 0
        self.wake = Wake(self)

    def open(self, now: int) -> None:
        """Connect."""
        self.connection.open(now)
        self.done(now)

    def fire(self, now: int) -> None:
        """An ideal timer may be due."""
        self.armed = 0
        connection = self.connection
        due = connection.next_timer()
        if due and due <= now:
            connection.expire(now)
        self.done(now)

    def done(self, now: int) -> None:
        """The connection was called: send what it made, tell the application, set its timer."""
        connection = self.connection
        if connection.state != self.seen_state:
            self._state_changed(now)
        if connection.out:
            self.host.transmit(self)
        if connection.ideal:
            due = connection.next_timer()
            if due and (self.armed == 0 or due < self.armed):
                self.armed = due
                self.host.scheduler.at(due, self)

    def _state_changed(self, now: int) -> None:
        connection = self.connection
        before = self.seen_state
        state = connection.state
        self.seen_state = state
        if before < ESTABLISHED <= state and self.application is not None:
            self.wake.ask(self.application.connected(connection, now))
        if state == CLOSE_WAIT:
            connection.close(now)
        self.seen_state = connection.state
        if self.flow is not None and (connection.state == CLOSED or connection.state == TIME_WAIT):
            self.flow.ended(self)


@final
class Wake(Timer):
    """Calls an application when it wants to be called."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def ask(self, time: int) -> None:
        if time > 0:
            self.endpoint.host.scheduler.at(time, self)

    def fire(self, now: int) -> None:
        endpoint = self.endpoint
        application = endpoint.application
        if application is not None and endpoint.connection.state != CLOSED:
            self.ask(application.wake(endpoint.connection, now))
            endpoint.done(now)


@final
class FastTick(Timer):
    """The host's 200 ms timer."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def fire(self, now: int) -> None:
        host = self.host
        host.scheduler.at(now + FAST_TICK_PS, self)
        for endpoint in host.endpoints:
            connection = endpoint.connection
            if connection.delack and not connection.ideal:
                connection.fast_tick(now)
                endpoint.done(now)


@final
class SlowTick(Timer):
    """The host's 500 ms timer."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def fire(self, now: int) -> None:
        host = self.host
        host.scheduler.at(now + SLOW_TICK_PS, self)
        host.ticks += 1
        for endpoint in host.endpoints:
            connection = endpoint.connection
            if not connection.ideal:
                connection.slow_tick(host.ticks, now)
                endpoint.done(now)


@final
class Host(Timer):
    """One processor that takes its time for every segment, shared by all connections of the host.

    A segment that arrives waits for the processor, costs ``receive_cost_ps``, and only then reaches TCP; the
    segments that TCP answers with cost ``send_cost_ps`` each, one after another, before the next arrival's
    turn comes (a softnet run goes to its end), and are given to the interface as they are ready.

    Members
    -------
    pdu_errors : list of int
        Receptions by :class:`bentpipe_sim.interface.PduStatus`.
    header_errors, checksum_errors : int
        PDUs dropped as IP or TCP found them damaged although AAL5 did not.
    no_connection : int
        Segments for no connection, answered by a RST.
    interface_drops : int
        Segments that the full interface queue refused.
    busy_ps : int
        Processor time spent on segments.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        network: PduNetwork,
        config: HostConfig,
        nic: int,
        index: int,
        costs: tuple[int, int],
    ) -> None:
        self.scheduler = scheduler
        self.network = network
        self.config = config
        self.name: str = config.name
        self.nic: int = nic
        self.address: int = 10 << 24 | (index + 1)
        self.send_cost: int = costs[0]
        self.receive_cost: int = costs[1]
        self.queue_limit: int = config.interface_queue
        self.endpoints: list[Endpoint] = []
        self.connections: dict[tuple[int, int], Endpoint] = {}
        self.routes: dict[int, int] = {}
        self.next_port: int = 1024
        self.ticks: int = 0
        self.identification: int = index * 4099 & 0xFFFF
        self.queued: int = 0
        self.first_put_ps: int = -1  # when a PDU was first given to the interface; -2 once one was reported as sent
        self._inputs: deque[tuple[Endpoint, Segment]] = deque()
        self._outputs: deque[tuple[Endpoint, Segment]] = deque()
        self._busy: bool = False
        self._sending: bool = False
        self.busy_ps: int = 0
        self.pdu_errors: list[int] = [0] * 16
        self.header_errors: int = 0
        self.checksum_errors: int = 0
        self.no_connection: int = 0
        self.interface_drops: int = 0
        # The golden ratio spreads any number of phases evenly: hosts don't tick together.
        phase = config.timer_phase_ps
        share = (index * 618_034 + 381_966) % 1_000_000
        fast = FAST_TICK_PS * share // 1_000_000 if phase is None else phase % FAST_TICK_PS
        slow = SLOW_TICK_PS * share // 1_000_000 if phase is None else phase % SLOW_TICK_PS
        scheduler.at(network.now_ps + (fast or FAST_TICK_PS), FastTick(self))
        scheduler.at(network.now_ps + (slow or SLOW_TICK_PS), SlowTick(self))

    def add(self, endpoint: Endpoint, remote: int, local_port: int, remote_port: int) -> None:
        """A connection of this host: segments from ``remote`` with these ports are its own."""
        self.endpoints.append(endpoint)
        self.connections[(remote, remote_port << 16 | local_port)] = endpoint
        self.routes[remote] = endpoint.vc

    # ---- output ----

    def transmit(self, endpoint: Endpoint) -> None:
        """Take what the connection wants to send."""
        out = endpoint.connection.out
        if self.send_cost == 0 and not self._busy:
            for segment in out:
                self._put(endpoint, segment)
        else:
            for segment in out:
                self._outputs.append((endpoint, segment))
            if not self._busy:
                self._next()
        out.clear()

    def _put(self, endpoint: Endpoint, segment: Segment) -> None:
        if self.queue_limit:
            if self.queued >= self.queue_limit:
                if self.first_put_ps >= 0 and self.scheduler.now - self.first_put_ps > _SENT_WITHIN_PS:
                    raise ExperimentFailed(
                        f"host {self.name} has an interface queue of {self.queue_limit} PDUs, "
                        "but its network doesn't report PDUs as sent: leave interface_queue at 0"
                    )
                self.interface_drops += 1
                endpoint.connection.quench()
                return
            self.queued += 1
            if self.first_put_ps == -1:
                self.first_put_ps = self.scheduler.now
        self.identification = identification = (self.identification + 1) & 0xFFFF
        length = segment.length
        offset = segment.offset
        self.network.send(
            self.nic,
            endpoint.vc,
            endpoint.path.encode(segment, identification),
            endpoint.key,
            offset if offset > 0 else 0,
            length,
            CHECKSUM_START,
            CHECKSUM_AT,
        )

    # ---- the processor ----

    def _next(self) -> None:
        """The processor is free: start on the next segment."""
        if self._outputs:
            self._sending = True
            cost = self.send_cost
        elif self._inputs:
            self._sending = False
            cost = self.receive_cost
        else:
            self._busy = False
            return
        self._busy = True
        self.busy_ps += cost
        scheduler = self.scheduler
        scheduler.at(scheduler.now + cost, self)

    def fire(self, now: int) -> None:
        """The processor is done with a segment."""
        if self._sending:
            endpoint, segment = self._outputs.popleft()
            self._put(endpoint, segment)
        else:
            endpoint, segment = self._inputs.popleft()
            endpoint.connection.receive(segment, now)
            endpoint.done(now)
        self._next()

    # ---- input ----

    def event(self, event: PduEvent) -> None:
        """The interface reports something."""
        status = event.status
        if status != _OK:
            if status == _SENT:
                self.first_put_ps = -2
                if self.queued:
                    self.queued -= 1
            else:
                self.pdu_errors[status] += 1
            return
        head = event.head
        if len(head) < _HEADER_OCTETS:
            self.header_errors += 1
            return
        (llc, snap, first, fragment, protocol, source, destination, ports, seq, ack, control, _, _) = _unpack(head)
        total = first & 0xFFFF
        header = control >> 28 << 2
        if (
            llc != LLC_SNAP
            or snap != SNAP_IPV4
            or first >> 16 != 0x4500
            or (protocol >> 16) & 0xFF != 6
            or destination != self.address
            or total + 8 > event.length
            or fragment & 0x3FFF
            or header < 20
            or total < 20 + header
            or (first + fragment + protocol + source + destination) % 65535
        ):
            self.header_errors += 1
            return
        network = self.network
        handle = event.handle
        size = total - 20
        if (source + destination + 6 + size + network.checksum(handle, CHECKSUM_START, size)) % 65535:
            self.checksum_errors += 1
            return
        flags = (control >> 16) & 0x3F
        length = size - header
        options: Options | None = None
        if header > 20:
            options = decode_options(head[_HEADER_OCTETS : CHECKSUM_START + header], flags)
            if options is None:
                self.header_errors += 1
                return
        segment = Segment(seq, ack, flags, control & 0xFFFF, length, 0, options)
        endpoint = self.connections.get((source, ports))
        if endpoint is None:
            self._refuse(source, ports, segment)
            return
        connection = endpoint.connection
        if length and connection.rcv_base:
            delta = (seq - connection.rcv_nxt) & MASK32
            if delta >= _HALF32:
                delta -= 1 << 32
            offset = connection.rcv_nxt + delta - connection.rcv_base
            segment.offset = offset
            if offset >= 0 and not network.check(handle, CHECKSUM_START + header, endpoint.peer_key, offset, length):
                endpoint.bad_octets += self._count_bad(
                    handle, CHECKSUM_START + header, endpoint.peer_key, offset, length
                )
        if self.receive_cost == 0 and not self._busy:
            now = event.time_ps
            connection.receive(segment, now)
            if connection.out or connection.ideal or connection.state != endpoint.seen_state:
                endpoint.done(now)
        else:
            self._inputs.append((endpoint, segment))
            if not self._busy:
                self._next()

    def _count_bad(self, handle: int, start: int, key: int, offset: int, length: int) -> int:
        got = self.network.sdu(handle)[start : start + length]
        return max(1, sum(a != b for a, b in zip(got, pattern(key, offset, length), strict=False)))

    def _refuse(self, source: int, ports: int, segment: Segment) -> None:
        self.no_connection += 1
        vc = self.routes.get(source)
        if vc is None or segment.flags & RST:
            return
        path = TcpPath(self.address, source, ports & 0xFFFF, ports >> 16)
        self.identification = (self.identification + 1) & 0xFFFF
        head = path.encode(reset_for(segment), self.identification)
        self.network.send(self.nic, vc, head, 0, 0, 0, CHECKSUM_START, CHECKSUM_AT)
