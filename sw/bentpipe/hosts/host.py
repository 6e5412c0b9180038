"""A host: one processor, one interface, its TCP connections; where its UDP ends."""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from bentpipe.apps.app import Application, Socket
from bentpipe.errors import ExperimentFailed
from bentpipe.hosts.clock import MAX_CLOCK_HZ, MAX_CLOCK_PPM, HostClock
from bentpipe.ip.codec import CHECKSUM_AT, CHECKSUM_START, HEADER, LLC_SNAP, SNAP_IPV4, TcpPath, decode_options
from bentpipe.ip.udp import PROTOCOL_UDP, Datagram, decode_datagram
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

__all__ = ["DatagramEnd", "Driver", "End", "Endpoint", "Host", "HostConfig", "Scheduler", "TcpSocket", "Timer"]

_unpack: Final = HEADER.unpack_from
_HEADER_OCTETS: Final = 48
_HALF32: Final = 1 << 31
_OK: Final = 0
_SENT: Final = 15
_SENT_WITHIN_PS: Final = 10 * 10**12
_NOTHING: Final = 0
_RECEIVE: Final = 1
_SEND: Final = 2
_CALL: Final = 3


@dataclass(frozen=True)
class HostConfig:
    """Settings of a host.

    Parameters
    ----------
    name : str
    send_cost_ps, receive_cost_ps : int or None
        Processor time per segment sent and received, an ACK and a UDP datagram being segments too. None: the
        profile's, or 0.
    cost_spread : float
        Share, 0 to 1, by which the cost of a segment differs from the mean at most: each is drawn evenly between.
        Where two hosts and a line always take the same times, a run locks into one cycle (Floyd and Jacobson, "On
        traffic phase effects in packet-switched gateways", 1992).
    clock_hz : float or None
        Clock interrupts a second (BSD's ``hz``), 1 to 100000, or 0 for none. None: the profile's, or 0.
    clock_cost_ps : int or None
        Time that a clock interrupt takes from the processor; less than lies between two. Segments that cost nothing
        don't wait for it. None: the profile's, or 0.
    clock_tolerance_ppm : float or None
        Parts per million, 0 to 1000, by which the host's clock is off at most: drawn evenly, once a host. It paces the
        interrupts and BSD's timers. None: the profile's, or 0.
    seed : int
        Seed of these draws; each host has its own sequence, by its name.
    interface_queue : int
        PDUs that wait for the interface at most, 0 for no limit (BSD's IFQ_MAXLEN is 50).
    mtu : int
        IP MTU in octets.
    profile : str or None
        A published host of ``profiles.toml``.
    timer_phase_ps : int or None
        When, in each 200 ms and 500 ms of its own clock, the host's ticks come; a clock interrupt comes with the
        first slow one. None: spread evenly over the hosts of an engine.
    """

    name: str
    send_cost_ps: int | None = None
    receive_cost_ps: int | None = None
    cost_spread: float = 0.0
    clock_hz: float | None = None
    clock_cost_ps: int | None = None
    clock_tolerance_ppm: float | None = None
    seed: int = 1
    interface_queue: int = 0
    mtu: int = 9180
    profile: str | None = None
    timer_phase_ps: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("send_cost_ps", self.send_cost_ps), ("receive_cost_ps", self.receive_cost_ps)):
            if value is not None and value < 0:
                raise ValueError(f"{name} of host {self.name} must not be negative, not {value!r}")
        if not 0 <= self.cost_spread <= 1:
            raise ValueError(f"cost_spread of host {self.name} must be 0..1, not {self.cost_spread!r}")
        if self.clock_hz and not 1 <= self.clock_hz <= MAX_CLOCK_HZ:
            raise ValueError(f"clock_hz of host {self.name} must be 0 or 1..{MAX_CLOCK_HZ}, not {self.clock_hz!r}")
        if self.clock_cost_ps is not None and self.clock_cost_ps < 0:
            raise ValueError(f"clock_cost_ps of host {self.name} must not be negative, not {self.clock_cost_ps!r}")
        if self.clock_tolerance_ppm is not None and not 0 <= self.clock_tolerance_ppm <= MAX_CLOCK_PPM:
            raise ValueError(
                f"clock_tolerance_ppm of host {self.name} must be 0..{MAX_CLOCK_PPM}, not {self.clock_tolerance_ppm!r}"
            )
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


class End(Timer):
    """One end of a flow."""


class DatagramEnd(End):
    """The receiving end of a UDP flow."""

    def arrive(self, datagram: Datagram, event: PduEvent) -> None:
        """A datagram whose checksums are right came in. It waits for the processor, then comes :meth:`take`."""
        raise NotImplementedError

    def take(self, now: int) -> None:
        """The processor has worked on the datagram that came first."""
        raise NotImplementedError


@final
class Driver(Timer):
    """Tells an application what happens at its end, and wakes it when it wants to be woken."""

    def __init__(self, scheduler: Scheduler, application: Application, socket: Socket) -> None:
        self.scheduler = scheduler
        self.application = application
        self.socket = socket
        self.due: int = 0

    def connected(self, now: int) -> None:
        self._ask(self.application.connected(self.socket, now))

    def written(self, now: int) -> None:
        self._ask(self.application.written(self.socket, now))

    def arrived(self, now: int) -> None:
        self._ask(self.application.arrived(self.socket, now))

    def _ask(self, time: int) -> None:
        if time > 0 and time != self.due:
            self.due = time
            self.scheduler.at(time, self)

    def fire(self, now: int) -> None:
        socket = self.socket
        if now == self.due and not socket.dead():
            self.due = 0
            self._ask(self.application.wake(socket, now))
            socket.flush(now)


@final
class Endpoint(End):
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
        self.flow: Flow | None = None
        self.armed: int = 0
        self.seen_state: int = connection.state
        self.bad_octets: int = 0
        self.attentive: bool = False  # the application wants to know of something: a write's end, or arrivals
        self.blocked: bool = False
        self.reads: bool = False
        self.seen_next: int = 0
        self.driver: Driver | None = None
        if application is not None:
            self.driver = Driver(host.scheduler, application, TcpSocket(self))
            if application.reads:
                self.reads = True
                self.attentive = True
                connection.auto_read = False

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
        """The connection was called: tell the application, send what was made, set the connection's timer."""
        connection = self.connection
        if connection.state != self.seen_state:
            if connection.out:
                self.host.transmit(self)
            self._state_changed(now)
        if self.attentive:
            self._attend(now)
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
        if before < ESTABLISHED <= state and self.driver is not None:
            self.seen_next = connection.rcv_base
            self.driver.connected(now)
        if state == CLOSE_WAIT and not self.reads:
            connection.close(now)
        self.seen_state = connection.state
        if self.flow is not None and (connection.state == CLOSED or connection.state == TIME_WAIT):
            self.flow.ended(now)

    def _attend(self, now: int) -> None:
        connection = self.connection
        driver = self.driver
        if driver is None or connection.state < ESTABLISHED:
            return
        if self.blocked and connection.write_pending == 0:
            self.blocked = False
            self.attentive = self.reads
            driver.written(now)
        if self.reads and connection.rcv_nxt != self.seen_next:
            self.seen_next = connection.rcv_nxt
            driver.arrived(now)
        if connection.state != self.seen_state:
            self._state_changed(now)


@final
class TcpSocket(Socket):
    """A TCP connection as its application sees it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.unit: int = 0

    def write(self, octets: int, now_ps: int) -> bool:
        endpoint = self.endpoint
        connection = endpoint.connection
        if connection.closing:
            return True
        connection.write(octets, now_ps)
        if connection.write_pending:
            endpoint.blocked = True
            endpoint.attentive = True
            return False
        return True

    def pour(self, octets: int, unit: int, now_ps: int) -> None:
        connection = self.endpoint.connection
        if not connection.closing:
            self.unit = unit
            connection.write(octets, now_ps)

    def cancel(self, now_ps: int) -> None:
        if self.unit:
            connection = self.endpoint.connection
            connection.give_up(-connection.accepted % self.unit, now_ps)

    def close(self, now_ps: int) -> None:
        self.endpoint.connection.close(now_ps)

    def read(self, octets: int, now_ps: int) -> int:
        return self.endpoint.connection.read(octets, now_ps)

    def unread(self) -> int:
        return self.endpoint.connection.unread

    def ended(self) -> bool:
        return self.endpoint.connection.fin_received

    def dead(self) -> bool:
        connection = self.endpoint.connection
        return connection.state == CLOSED and (connection.unread == 0 or connection.error != "")

    def flush(self, now_ps: int) -> None:
        self.endpoint.done(now_ps)


@final
class FastTick(Timer):
    """The host's 200 ms timer."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def fire(self, now: int) -> None:
        host = self.host
        host.scheduler.at(now + host.clock.fast_ps, self)
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
        host.scheduler.at(now + host.clock.slow_ps, self)
        host.ticks += 1
        for endpoint in host.endpoints:
            connection = endpoint.connection
            if not connection.ideal:
                connection.slow_tick(host.ticks, now)
                endpoint.done(now)


@final
class Host(Timer):
    """One processor that takes its time for every segment, shared by all connections of the host. The host's clock
    interrupts it.

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
        Segments for no connection, answered by a RST, and datagrams for no port.
    interface_drops : int
        Segments and datagrams that the full interface queue refused.
    refused, damaged : dict of int to int
        By VC: segments and datagrams that were lost so, and PDUs dropped for their header or checksum.
    busy_ps : int
        Processor time spent on segments and datagrams, clock interrupts not counted.
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
        self.nic: int = nic
        self.address: int = 10 << 24 | (index + 1)
        self.send_cost: int = costs[0]
        self.receive_cost: int = costs[1]
        self.clock: HostClock = clock
        self.cost_spread: float = config.cost_spread
        self._random: random.Random = random.Random(f"{config.seed} host {config.name}")
        self.queue_limit: int = config.interface_queue
        self.endpoints: list[Endpoint] = []
        self.connections: dict[tuple[int, int], Endpoint] = {}
        self.datagram_ends: dict[tuple[int, int], DatagramEnd] = {}
        self.routes: dict[int, int] = {}
        self.next_port: int = 1024
        self.ticks: int = 0
        self.identification: int = index * 4099 & 0xFFFF
        self.queued: int = 0
        self.first_put_ps: int = -1  # when a PDU was first given to the interface; -2 once one was reported as sent
        self._inputs: deque[tuple[End, Segment | None]] = deque()
        self._outputs: deque[tuple[Endpoint, Segment]] = deque()
        self._calls: deque[Timer] = deque()
        self._doing: int = _NOTHING
        self.busy_ps: int = 0
        self.pdu_errors: list[int] = [0] * 16
        self.header_errors: int = 0
        self.checksum_errors: int = 0
        self.no_connection: int = 0
        self.interface_drops: int = 0
        self.refused: dict[int, int] = {}
        self.damaged: dict[int, int] = {}
        # The golden ratio spreads any number of phases evenly: hosts don't tick together.
        phase = config.timer_phase_ps
        share = (index * 618_034 + 381_966) % 1_000_000
        fast = FAST_TICK_PS * share // 1_000_000 if phase is None else phase % FAST_TICK_PS
        slow = SLOW_TICK_PS * share // 1_000_000 if phase is None else phase % SLOW_TICK_PS
        scheduler.at(network.now_ps + (fast or FAST_TICK_PS), FastTick(self))
        clock.origin_ps = network.now_ps + (slow or SLOW_TICK_PS)
        scheduler.at(clock.origin_ps, SlowTick(self))

    def add(self, endpoint: Endpoint, remote: int, local_port: int, remote_port: int) -> None:
        """A connection of this host: segments from ``remote`` with these ports are its own."""
        self.endpoints.append(endpoint)
        self.connections[(remote, remote_port << 16 | local_port)] = endpoint
        self.routes[remote] = endpoint.vc

    # ---- output ----

    def transmit(self, endpoint: Endpoint) -> None:
        """Take what the connection wants to send."""
        out = endpoint.connection.out
        if self.send_cost == 0 and not self._doing:
            for segment in out:
                self._put(endpoint, segment)
        else:
            for segment in out:
                self._outputs.append((endpoint, segment))
            if not self._doing:
                self._next()
        out.clear()

    def admit(self) -> bool:
        """Whether the interface's queue takes one more PDU (else ENOBUFS); counts it."""
        if self.queue_limit:
            if self.queued >= self.queue_limit:
                if self.first_put_ps >= 0 and self.scheduler.now - self.first_put_ps > _SENT_WITHIN_PS:
                    raise ExperimentFailed(
                        f"host {self.name} has an interface queue of {self.queue_limit} PDUs, "
                        "but its network doesn't report PDUs as sent: leave interface_queue at 0"
                    )
                self.interface_drops += 1
                return False
            self.queued += 1
            if self.first_put_ps == -1:
                self.first_put_ps = self.scheduler.now
        return True

    def _put(self, endpoint: Endpoint, segment: Segment) -> None:
        if self.queue_limit and not self.admit():
            self.refused[endpoint.vc] = self.refused.get(endpoint.vc, 0) + 1
            endpoint.connection.quench()
            return
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
            self._doing = _SEND
            cost = self.send_cost
        elif self._inputs:
            self._doing = _RECEIVE
            cost = self.receive_cost
        elif self._calls:
            self._doing = _CALL
            cost = self.send_cost
        else:
            self._doing = _NOTHING
            return
        if self.cost_spread:
            cost += int(cost * self.cost_spread * (2.0 * self._random.random() - 1.0))
        self.busy_ps += cost
        scheduler = self.scheduler
        scheduler.at(self.clock.after(scheduler.now, cost), self)

    def fire(self, now: int) -> None:
        """The processor is done with a segment."""
        doing = self._doing
        if doing == _SEND:
            endpoint, segment = self._outputs.popleft()
            self._put(endpoint, segment)
        elif doing == _CALL:
            self._calls.popleft().fire(now)
        else:
            end, arrived = self._inputs.popleft()
            if arrived is None:
                assert isinstance(end, DatagramEnd)
                end.take(now)
            else:
                assert isinstance(end, Endpoint)
                end.connection.receive(arrived, now)
                end.done(now)
        self._next()

    def call(self, work: Timer) -> None:
        """A system call that sends a datagram: ``work`` fires when the processor has done it. What the network's
        interrupts brought goes first."""
        self._calls.append(work)
        if not self._doing:
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
            self._bad_header(event)
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
            if (protocol >> 16) & 0xFF == PROTOCOL_UDP:
                self._datagram(event)
            else:
                self._bad_header(event)
            return
        network = self.network
        handle = event.handle
        size = total - 20
        if (source + destination + 6 + size + network.checksum(handle, CHECKSUM_START, size)) % 65535:
            self._bad_checksum(event)
            return
        flags = (control >> 16) & 0x3F
        length = size - header
        options: Options | None = None
        if header > 20:
            options = decode_options(head[_HEADER_OCTETS : CHECKSUM_START + header], flags)
            if options is None:
                self._bad_header(event)
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
                endpoint.bad_octets += self.count_bad(
                    handle, CHECKSUM_START + header, endpoint.peer_key, offset, length
                )
        if self.receive_cost == 0 and not self._doing:
            now = event.time_ps
            connection.receive(segment, now)
            if connection.out or connection.ideal or connection.state != endpoint.seen_state or endpoint.attentive:
                endpoint.done(now)
        else:
            self._inputs.append((endpoint, segment))
            if not self._doing:
                self._next()

    def _datagram(self, event: PduEvent) -> None:
        datagram = decode_datagram(event.head, event.length)
        if datagram is None or datagram.destination != self.address:
            self._bad_header(event)
            return
        size = datagram.length
        pseudo = datagram.source + datagram.destination + PROTOCOL_UDP + size
        if datagram.checksum and (pseudo + self.network.checksum(event.handle, CHECKSUM_START, size)) % 65535:
            self._bad_checksum(event)
            return
        end = self.datagram_ends.get((datagram.source, datagram.ports))
        if end is None:
            self.no_connection += 1
            return
        end.arrive(datagram, event)
        if self.receive_cost == 0 and not self._doing:
            end.take(event.time_ps)
        else:
            self._inputs.append((end, None))
            if not self._doing:
                self._next()

    def _bad_header(self, event: PduEvent) -> None:
        self.header_errors += 1
        self.damaged[event.vc] = self.damaged.get(event.vc, 0) + 1

    def _bad_checksum(self, event: PduEvent) -> None:
        self.checksum_errors += 1
        self.damaged[event.vc] = self.damaged.get(event.vc, 0) + 1

    def count_bad(self, handle: int, start: int, key: int, offset: int, length: int) -> int:
        """Octets of a received SDU that are not the pattern's; at least 1."""
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
