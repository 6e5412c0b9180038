"""Sockets of programs: what joins a TCP connection, its program and its host."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Program, Socket, SocketPair
from bentpipe.hosts.endpoint import RESTS, TransportEndpoint
from bentpipe.hosts.flow_base import HostFlowEndpoints
from bentpipe.hosts.machine import Machine
from bentpipe.hosts.scheduler import Scheduler, Timer
from bentpipe.ip.codec import CHECKSUM_AT, CHECKSUM_START, TcpPath
from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import (
    CLOSE_WAIT,
    CLOSED,
    ESTABLISHED,
    LISTEN,
    MASK32,
    MAX_RETRANSMIT_SHIFT,
    TIME_WAIT,
)
from bentpipe.tcp.segment import Segment
from bentpipe.tcp.time_wait import TimeWait
from bentpipe_sim.interface import PduEvent
from bentpipe_sim.pattern import pattern

__all__ = ["Driver", "PairOwner", "TcpEndpoint", "TcpPair", "TcpSocket", "count_bad"]

_HALF32: Final = 1 << 31
_TIMEOUTS: Final = MAX_RETRANSMIT_SHIFT - 2
"""So many in a row, and a connection may give up soon."""


@final
class Driver(Timer):
    """The driver of a program: it reports events of the socket, and wakes the program at the time that it asked for."""

    def __init__(self, scheduler: Scheduler, program: Program, socket: Socket) -> None:
        self.scheduler = scheduler
        self.program = program
        self.socket = socket
        self.due: int = 0

    def connected(self, now: int) -> None:
        self._ask(self.program.connected(self.socket, now))

    def written(self, now: int) -> None:
        self._ask(self.program.written(self.socket, now))

    def arrived(self, now: int) -> None:
        self._ask(self.program.arrived(self.socket, now))

    def received(self, octets: int, sent_ps: int, now: int) -> None:
        self._ask(self.program.received(self.socket, octets, sent_ps, now))

    def _ask(self, time: int) -> None:
        if time > 0 and time != self.due:
            self.due = time
            self.scheduler.at(time, self)

    def again(self, now: int) -> None:
        self._ask(self.program.again(now))

    def fire(self, now: int) -> None:
        socket = self.socket
        if now == self.due and not socket.dead():
            self.due = 0
            self._ask(self.program.wake(socket, now))
            socket.flush(now)


@final
class TcpEndpoint(TransportEndpoint):
    """A connection on its host: addresses, VC, payload keys, program.

    Parameters
    ----------
    host : Machine
    connection : Connection
    remote, port, remote_port : int
        Address and ports.
    vc : int
        On which it sends.
    key, peer_key : int
        Of the payload's pattern, sent and received.
    program : Program or None
    """

    def __init__(
        self,
        host: Machine,
        connection: Connection,
        remote: int,
        port: int,
        remote_port: int,
        vc: int,
        key: int,
        peer_key: int,
        program: Program | None,
    ) -> None:
        super().__init__()
        self.host = host
        self.connection = connection
        self.remote: int = remote
        self.port: int = port
        self.remote_port: int = remote_port
        self.path = TcpPath(host.address, remote, port, remote_port)
        self.vc = vc
        self.key = key
        self.peer_key = peer_key
        self.tick = host.ticks.count
        self.ticks = host.ticks
        self.pair: TcpPair | None = None
        self.due: int = 0
        self.seen_state: int = connection.state
        self.bad_octets: int = 0
        self.attentive: bool = False  # the program wants to know of something: a write's end, or arrivals
        self.blocked: bool = False
        self.reads: bool = False
        self.seen_next: int = 0
        self.driver: Driver | None = None
        self.waits: TimeWait | None = None
        self.woken: bool = False
        self.owner: PairOwner | None = None
        self.at_source: bool = False
        if program is not None:
            self.driver = Driver(host.scheduler, program, TcpSocket(self))
            if program.reads:
                self.reads = True
                self.attentive = True
                connection.receiver.auto_read = False
        host.add(self, remote, port, remote_port, vc)

    def open(self, now: int) -> None:
        """Connect."""
        self.use(now)
        self.connection.open(now)
        self.done(now)

    def connect_directly(self, peer: TcpEndpoint, now: int) -> None:
        """Connect without a handshake on the way."""
        self.use(now)
        peer.use(now)
        self.connection.connect_directly(peer.connection, now)
        peer.done(now)
        self.done(now)

    def use(self, now: int) -> None:
        """Prepare a call of the connection, which may not have seen the last slow ticks."""
        ticks = self.ticks
        if self.epoch != ticks.epoch:
            ticks.use(self, now)

    # ---- input ----

    def arrive(self, segment: Segment, event: PduEvent, start: int) -> None:
        """Accept a segment whose checksums are right; its payload begins at octet ``start`` of the SDU."""
        receiver = self.connection.receiver
        length = segment.length
        if length and receiver.rcv_base:
            delta = (segment.seq - receiver.rcv_nxt) & MASK32
            if delta >= _HALF32:
                delta -= 1 << 32
            offset = receiver.rcv_nxt + delta - receiver.rcv_base
            segment.offset = offset
            network = self.host.network
            if offset >= 0 and not network.check(event.handle, start, self.peer_key, offset, length):
                self.bad_octets += count_bad(network.sdu(event.handle), start, self.peer_key, offset, length)
        self.host.processor.receive(self, segment, event.time_ps)

    def take(self, segment: Segment | None, now: int) -> None:
        assert segment is not None
        ticks = self.ticks
        if self.epoch != ticks.epoch:
            ticks.use(self, now)
        connection = self.connection
        connection.receive(segment, now)
        if connection.timed or connection.state != self.seen_state or self.attentive:
            self.done(now)
        elif connection.out:
            self.host.processor.send(self, connection.out)

    # ---- timers ----

    def fire(self, now: int) -> None:
        """Serve a timer that does not count the host's ticks, if it is due."""
        self.due = 0
        waits = self.waits
        if waits is not None and waits.exact:
            if waits.wait <= now:
                self.expire(now)
            else:  # this one was set before it rested
                self.due = waits.wait
                self.host.scheduler.at(waits.wait, self)
            return
        self.use(now)
        connection = self.connection
        due = connection.next_timer()
        if due and due <= now:
            connection.expire(now)
        self.done(now)

    def delayed(self) -> bool:
        return self.connection.receiver.delack and not self.connection.ideal

    def fast_tick(self, now: int) -> None:
        self.connection.fast_tick(now)

    def slow_tick(self, tick: int, now: int) -> None:
        if not self.connection.ideal:
            self.connection.slow_tick(tick, now)

    def next_tick(self) -> int:
        waits = self.waits
        if waits is not None:
            return 0 if waits.exact else waits.wait
        return self.connection.next_tick()

    # ---- when it is over ----

    def may_rest(self) -> bool:
        """Return whether nothing is left to do, except to answer late segments in TIME_WAIT."""
        connection = self.connection
        driver = self.driver
        return (
            connection.state in (CLOSED, TIME_WAIT)
            and connection.receiver.unread == 0
            and not self.blocked
            and (driver is None or driver.due == 0)
        )

    def rest(self, owner: PairOwner | None, at_source: bool) -> None:
        """Release everything that late segments do not need.

        ``owner`` gets the counts of late segments at the flow's source or sink.
        """
        self.owner = owner
        self.at_source = at_source
        self.driver = None
        self.pair = None
        self.reads = False
        if self.connection.state == TIME_WAIT:
            self._rest()
        else:
            self._leave()

    def _rest(self) -> None:
        self.waits = TimeWait(self.connection)
        self._let_go()
        self.epoch = RESTS

    def _leave(self) -> None:
        """Leave the flow: the connection is closed."""
        self.waits = None
        self.owner = None
        self._let_go()
        self.seen_state = CLOSED

    def _let_go(self) -> None:
        self.connection = self.host.closed(self.connection.config)
        self.bad_octets = 0  # they are counted
        self.woken = self.attentive = False

    def wake(self) -> None:
        waits = self.waits
        assert waits is not None
        self.waits = None
        self.woken = self.attentive = True
        self.connection = waits.connection()

    def expire(self, now: int) -> None:
        """End TIME_WAIT."""
        self.host.forget(self, self.remote, self.port, self.remote_port)
        self._leave()
        self.epoch = -1

    # ---- output ----

    def done(self, now: int) -> None:
        """Notify the program, send the produced segments, and set the connection's timer, after a call of the
        connection."""
        connection = self.connection
        if connection.state != self.seen_state:
            if connection.out:
                self.host.processor.send(self, connection.out)
            self._state_changed(now)
        if self.attentive:
            self._attend(now)
        if connection.out:
            self.host.processor.send(self, connection.out)
        if connection.timed:
            due = connection.next_timer()
            if due and (self.due == 0 or due < self.due):
                self.due = due
                self.host.scheduler.at(due, self)

    def put(self, segment: Segment) -> None:
        interface = self.host.interface
        if interface.limit and not interface.admit():
            interface.lose(self.vc)
            self.connection.quench()
            return
        offset = segment.offset
        interface.network.send(
            interface.nic,
            self.vc,
            self.path.encode(segment, interface.identification()),
            self.key,
            offset if offset > 0 else 0,
            segment.length,
            CHECKSUM_START,
            CHECKSUM_AT,
        )

    def _state_changed(self, now: int) -> None:
        connection = self.connection
        before = self.seen_state
        state = connection.state
        self.seen_state = state
        if before < ESTABLISHED <= state and self.driver is not None:
            self.seen_next = connection.receiver.rcv_base
            self.driver.connected(now)
        if state == CLOSE_WAIT and not self.reads:
            connection.close(now)
        state = connection.state
        self.seen_state = state
        if state == CLOSED:
            self.host.forget(self, self.remote, self.port, self.remote_port)
        if self.pair is not None and (state in (CLOSED, TIME_WAIT)):
            self.pair.closed(now)

    def _attend(self, now: int) -> None:
        connection = self.connection
        driver = self.driver
        if self.woken:
            if self.owner is not None:
                self.owner.late(self, self.at_source)
            if connection.state == TIME_WAIT:
                self._rest()
            else:
                self._leave()
            return
        if driver is None or connection.state < ESTABLISHED:
            return
        if self.blocked and connection.sender.write_pending == 0:
            self.blocked = False
            self.attentive = self.reads
            driver.written(now)
        if self.reads and connection.receiver.rcv_nxt != self.seen_next:
            self.seen_next = connection.receiver.rcv_nxt
            driver.arrived(now)
        if connection.state != self.seen_state:
            self._state_changed(now)


@final
class TcpSocket(Socket):
    """A TCP connection as its program sees it."""

    def __init__(self, endpoint: TcpEndpoint) -> None:
        self.endpoint = endpoint
        self.unit: int = 0

    def write(self, octets: int, now_ps: int) -> bool:
        endpoint = self.endpoint
        connection = endpoint.connection
        if connection.closing:
            return True
        endpoint.use(now_ps)
        connection.write(octets, now_ps)
        if connection.sender.write_pending:
            endpoint.blocked = True
            endpoint.attentive = True
            return False
        return True

    def pour(self, octets: int, unit: int, now_ps: int) -> None:
        endpoint = self.endpoint
        if not endpoint.connection.closing:
            self.unit = unit
            endpoint.use(now_ps)
            endpoint.connection.write(octets, now_ps)

    def cancel(self, now_ps: int) -> None:
        if self.unit:
            endpoint = self.endpoint
            endpoint.use(now_ps)
            connection = endpoint.connection
            connection.discard_unsent(-connection.sender.accepted % self.unit, now_ps)

    def close(self, now_ps: int) -> None:
        self.endpoint.use(now_ps)
        self.endpoint.connection.close(now_ps)

    def read(self, octets: int, now_ps: int) -> int:
        self.endpoint.use(now_ps)
        return self.endpoint.connection.read(octets, now_ps)

    def unread(self) -> int:
        return self.endpoint.connection.receiver.unread

    def ended(self) -> bool:
        return self.endpoint.connection.receiver.fin_received

    def dead(self) -> bool:
        connection = self.endpoint.connection
        return connection.state == CLOSED and (connection.receiver.unread == 0 or connection.error != "")

    def flush(self, now_ps: int) -> None:
        self.endpoint.done(now_ps)


class PairOwner(HostFlowEndpoints):
    """The owner of pairs of sockets, usually a flow."""

    def opened(self, pair: TcpPair) -> None:
        """Handle the connect call of one end; called once a pair."""
        raise NotImplementedError

    def ended(self, pair: TcpPair, now: int) -> None:
        """Handle the end of a pair; called once a pair.

        Both ends are closed (or in TIME_WAIT, which is closed for programs), or one broke.
        """
        raise NotImplementedError

    def settle(self, pair: TcpPair) -> None:
        """Let a pair that has ended rest, if it may (:meth:`TcpPair.rest`)."""
        raise NotImplementedError

    def gone(self, pair: TcpPair) -> None:
        """Handle the end of both ends' TIME_WAIT; called once a pair, unless it rests."""
        raise NotImplementedError

    def late(self, end: TcpEndpoint, at_source: bool) -> None:
        """Handle a segment that arrived at a resting end, at the flow's source or sink; its connection has counted
        it."""
        raise NotImplementedError


@final
class TcpPair(SocketPair):
    """The two ends of a connection.

    Members
    -------
    source, sink : TcpEndpoint
        By the flow's hosts.
    opener : TcpEndpoint
        The one that connects.
    broke_ps : int
        Time at which the connection broke; -1 if it did not.
    """

    def __init__(self, owner: PairOwner, source: TcpEndpoint, sink: TcpEndpoint, opener: TcpEndpoint) -> None:
        self.owner = owner
        self.source = source
        self.sink = sink
        self.opener = opener
        self.started: bool = False
        self.over: bool = False
        self.left: bool = False
        self.rests: bool = False
        self.broke_ps: int = -1
        source.pair = self
        sink.pair = self

    def open(self, now_ps: int) -> None:
        self.started = True
        self.owner.opened(self)
        opener = self.opener
        if opener.connection.config.handshake:
            opener.open(now_ps)
        else:
            opener.connect_directly(self.sink if opener is self.source else self.source, now_ps)

    def goes_on(self) -> bool:
        """Return whether it surely does not end before any host has sent anything from now on: no end has closed, none
        is about to give up, and no reset is under way."""
        return not self.over and _is_sound(self.source) and _is_sound(self.sink)

    def closed(self, now: int) -> None:
        """Handle the closing of one end."""
        if not self.started:
            return
        source = self.source.connection
        sink = self.sink.connection
        error = source.error or sink.error
        if not self.over and (error or (_closed(source.state) and _closed(sink.state))):
            self.over = True
            self.error = error
            if error:
                self.broke_ps = now
            for end in (self.source, self.sink):
                if end.connection.state == LISTEN:  # for a SYN that will not come any more
                    end.host.forget(end, end.remote, end.port, end.remote_port)
            self.owner.ended(self, now)
        if self.over and not self.rests:
            self.owner.settle(self)
        if not self.rests and not self.left and _gone(source.state) and _gone(sink.state):
            self.left = True
            self.owner.gone(self)

    def may_rest(self) -> bool:
        """Return whether both ends have nothing left to do, except to answer late segments."""
        return self.over and not self.rests and self.source.may_rest() and self.sink.may_rest()

    def rest(self, counts: bool) -> None:
        """Release both connections, except what late segments need; ``counts``: late segments are counted."""
        self.rests = True
        owner = self.owner if counts else None
        self.source.rest(owner, True)
        self.sink.rest(owner, False)


def _is_sound(end: TcpEndpoint) -> bool:
    connection = end.connection
    rto = connection.sender.rto
    return (
        connection.state == ESTABLISHED
        and rto.shift < _TIMEOUTS
        and rto.failures < _TIMEOUTS
        and not connection.keepalive
        and end.host.no_connection == 0
    )


def _closed(state: int) -> bool:
    return state in (CLOSED, TIME_WAIT)


def _gone(state: int) -> bool:
    return state in (CLOSED, LISTEN)


def count_bad(sdu: bytes, start: int, key: int, offset: int, length: int) -> int:
    """Return the number of octets of a received SDU that differ from the pattern; at least 1."""
    got = sdu[start : start + length]
    return max(1, sum(a != b for a, b in zip(got, pattern(key, offset, length), strict=False)))
