"""The sending half of a connection: what is sent when, and what is acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.tcp.constants import (
    ACK,
    DUPACK_THRESHOLD,
    FIN,
    MASK32,
    MAX_WINDOW,
    MAX_WINDOW_SHIFT,
    PS_PER_S,
    PSH,
    RST,
)
from bentpipe.tcp.growth import GROWTHS
from bentpipe.tcp.growth.base import Growth
from bentpipe.tcp.receiver import Receiver, round_up
from bentpipe.tcp.recovery import VARIANTS
from bentpipe.tcp.recovery.base import Recovery
from bentpipe.tcp.rto import RetransmissionTimeout
from bentpipe.tcp.rtt import RttSampler
from bentpipe.tcp.scoreboard import Scoreboard
from bentpipe.tcp.segment import Options, Segment
from bentpipe.tcp.statistics import SenderStatistics
from bentpipe.tcp.timers import Timers
from bentpipe.tcp.trace import Trace

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["Sender"]

_HALF32: Final = 1 << 31
_PS_PER_MS: Final = 1_000_000_000


@final
class Sender:
    """The sending half of a connection.

    Everything that takes sequence numbers goes through :meth:`send`, every segment through :meth:`put`; ``snd_una``
    moves in :meth:`advance` only.

    Members
    -------
    snd_una, snd_nxt, snd_max, snd_wnd : int
        As in RFC 793 and BSD, unwrapped.
    snd_base, snd_end : int
        The stream's first octet, and one past the last that the send buffer holds.
    write_pending : int
        Octets that the application has written and the send buffer has no room for.
    fin_wanted, fin_sent : bool
        A FIN follows the last octet; it was sent.
    growth : Growth
        The congestion window.
    recovery : Recovery
    rtt : RttSampler
        The round-trip times measured so far, and the segment that is timed at present.
    statistics : SenderStatistics
        Counters for reports.
    newly_sacked : int
        Octets that the SACK blocks of the present ACK reported first.
    limited : int
        Octets that limited transmit sent since new data was acknowledged.
    """

    # Plain Python finds members beyond thirty more slowly, unless they are named.
    __slots__ = (
        "block_limit",
        "dupacks",
        "fin_sent",
        "fin_wanted",
        "growth",
        "idle_restart",
        "initial_cwnd",
        "iss",
        "limited",
        "limited_transmit",
        "max_sndwnd",
        "maxseg",
        "newly_sacked",
        "nodelay",
        "out",
        "pace_next",
        "payload",
        "receiver",
        "recovery",
        "rfc6928",
        "rto",
        "rtt",
        "sacked",
        "scoreboard",
        "send_ready",
        "snd_base",
        "snd_end",
        "snd_hiwat",
        "snd_max",
        "snd_nxt",
        "snd_shift",
        "snd_una",
        "snd_wire",
        "snd_wl1",
        "snd_wl2",
        "snd_wnd",
        "statistics",
        "timers",
        "timestamps",
        "trace",
        "updates_are_no_duplicates",
        "write_pending",
    )

    def __init__(
        self, config: TcpConfig, mss: int, iss: int, timers: Timers, receiver: Receiver, trace: Trace | None
    ) -> None:
        self.timers: Timers = timers
        self.receiver: Receiver = receiver
        self.trace: Trace | None = trace
        self.out: list[Segment] = []
        self.rto: RetransmissionTimeout = RetransmissionTimeout.of(config)
        self.growth: Growth = _initial_growth(config)
        self.recovery: Recovery = VARIANTS["reno" if config.variant == "sack" else config.variant].make(config)
        self.scoreboard: Scoreboard = Scoreboard(mss)
        self.rtt: RttSampler = RttSampler()
        self.statistics: SenderStatistics = SenderStatistics()
        self.sacked: bool = False

        self.maxseg: int = mss
        self.payload: int = mss
        self.block_limit: int = 0
        self.timestamps: bool = False
        self.snd_hiwat: int = round_up(config.send_buffer, mss) if config.round_buffers else config.send_buffer
        self.iss: int = iss
        self.snd_una: int = iss
        self.snd_nxt: int = iss
        self.snd_max: int = iss
        self.snd_base: int = iss + 1
        self.snd_end: int = iss + 1
        self.write_pending: int = 0
        self.fin_wanted: bool = False
        self.fin_sent: bool = False
        self.snd_wnd: int = 0
        self.snd_wire: int = -1  # the same in the header's field, if that has not changed since; -1: it has
        self.snd_shift: int = 0
        self.snd_wl1: int = 0
        self.snd_wl2: int = 0
        self.max_sndwnd: int = 0
        self.dupacks: int = 0
        self.send_ready: bool = False
        self.newly_sacked: int = 0
        self.limited: int = 0
        self.pace_next: int = 0

        self.nodelay: bool = not config.nagle
        self.limited_transmit: bool = config.limited_transmit
        self.updates_are_no_duplicates: bool = config.habit_window_update_resets_dupacks
        self.idle_restart: bool = config.habit_idle_restart
        self.rfc6928: bool = config.initial_window == "rfc6928"
        self.initial_cwnd: int = config.initial_cwnd
        self.set_mss(mss)

    def set_mss(self, size: int) -> None:
        """Set the segment size, which is known (again), and the first window that follows from it."""
        self.maxseg = size
        self.payload = size - 12 if self.timestamps else size
        # SACK blocks have room in the 40 octets of options, and leave some for data.
        fitting = (self.payload - 12) // 8
        most = 3 if self.timestamps else 4
        self.block_limit = fitting if fitting < most else most
        self.growth.mss = size
        self.growth.cwnd = self._first_window()
        self.scoreboard.mss = size

    def _first_window(self) -> int:
        if not self.rfc6928:
            return self.maxseg * self.initial_cwnd
        if self.snd_una == self.iss and self.rto.shift:
            return self.maxseg  # RFC 5681 section 3.1: the SYN was lost
        low = 2 * self.maxseg
        high = 10 * self.maxseg
        middle = low if low > 14600 else 14600
        return high if high < middle else middle

    def forget_peer(self, config: TcpConfig) -> None:
        """Forget the peer that sent a SYN and is gone: restore the initial sequence numbers and options."""
        self.snd_una = self.iss
        self.snd_nxt = self.iss
        self.snd_max = self.iss
        self.snd_shift = 0
        self.snd_wire = -1
        self.snd_wnd = 0
        self.max_sndwnd = 0
        self.rtt.cancel()
        self.timestamps = False
        self.sacked = False
        self.rto = RetransmissionTimeout.of(config)
        self.recovery = VARIANTS["reno" if config.variant == "sack" else config.variant].make(config)
        self.growth = _initial_growth(config)

    def use_sack(self, config: TcpConfig) -> None:
        """Recover by SACK, which the peer permits."""
        self.sacked = True
        self.recovery = VARIANTS["sack"].make(config)
        self.recovery.start(self)

    @property
    def accepted(self) -> int:
        """Octets of the stream that the application has written and the send buffer has taken."""
        return self.snd_end - self.snd_base

    @property
    def acknowledged(self) -> int:
        """Octets of the stream that the peer has acknowledged."""
        una = self.snd_una if self.snd_una < self.snd_end else self.snd_end
        return una - self.snd_base if una > self.snd_base else 0

    def traced(self) -> None:
        """Give the recorder the present window, threshold and acknowledged octets."""
        if self.trace is not None:
            self.trace.state(self.timers.now, self.growth.cwnd, self.growth.ssthresh, self.snd_una - self.snd_base)

    # ---- the send buffer ----

    def write(self, octets: int) -> None:
        """Write for the application; the part without room stays in ``write_pending`` until data is acknowledged."""
        self.write_pending += octets
        self.fill()

    def fill(self) -> None:
        """Move octets of a blocked write into the send buffer."""
        una = self.snd_una if self.snd_una > self.snd_base else self.snd_base
        room = una + self.snd_hiwat - self.snd_end
        if room <= 0:
            return
        if room > self.write_pending:
            room = self.write_pending
        self.write_pending -= room
        self.snd_end += room

    # ---- what comes back ----

    def acknowledge(self, ack: int, wire: int) -> None:
        """Process a pure ACK of new data, the common case."""
        self._grow(ack)
        self.advance(ack)
        self.offered(self.receiver.rcv_nxt, ack, wire << self.snd_shift, wire)

    def take_ack(self, ack: int, window: int, length: int, options: Options | None) -> bool:
        """Take the acknowledgement of a segment with ``length`` octets of data and this window.

        Return True if something may be sent in answer.
        """
        self.newly_sacked = 0
        if self.sacked and options is not None and options.blocks:
            self._take_blocks(options, ack)
        if ack > self.snd_una:
            self._new_ack(ack, options if self.timestamps else None)
            return True
        if length:
            self.dupacks = 0
            return False
        # As the window is compared with the one in force, a window update is no duplicate.
        same = window == self.snd_wnd
        if self.timers.rexmt == 0 or ack != self.snd_una or (not same and self.updates_are_no_duplicates):
            self.dupacks = 0
            return False
        self.dupacks += 1
        self.statistics.dup_acks += 1
        self.send_ready = False
        if self.limited_transmit and self.dupacks < DUPACK_THRESHOLD and (self.newly_sacked or not self.sacked):
            self._transmit_limited()
        self.recovery.duplicate(self)
        return self.send_ready

    def _take_blocks(self, options: Options, ack: int) -> None:
        board = self.scoreboard
        before = board.sacked
        una = self.snd_una
        for left, right in options.blocks:
            delta = (left - una) & MASK32
            start = una + (delta if delta < _HALF32 else delta - (1 << 32))
            end = start + ((right - left) & MASK32)
            if start < end <= self.snd_max and end > ack:
                board.add(start, end)
        self.newly_sacked = board.sacked - before

    def _new_ack(self, ack: int, options: Options | None) -> None:
        recovery = self.recovery
        recovery.hold_timer = False
        opens = True
        if self.dupacks or recovery.recovering:
            opens = recovery.new_ack(self, ack)
        self.dupacks = 0
        self.limited = 0
        if options is not None and options.has_timestamp:
            elapsed = (self.timestamp() - options.ts_echo) & MASK32
            if elapsed < _HALF32:
                self.rto.sample(elapsed * _PS_PER_MS if self.timers.exact else elapsed + 1)
        if opens:
            self._grow(ack)
        self.advance(ack)

    def _grow(self, ack: int) -> None:
        growth = self.growth
        if growth.always or self._window_is_used():
            growth.on_ack(ack - self.snd_una, self.rtt.smoothed_ps, self.timers.now)
        else:
            growth.on_unused(self.timers.now)

    def _window_is_used(self) -> bool:
        """Return whether the congestion window limits the sender: it has no room for a segment, or pacing fills it."""
        cwnd = self.growth.cwnd
        return cwnd <= self.snd_wnd and (self.timers.pace != 0 or self.snd_max - self.snd_una + self.maxseg > cwnd)

    def advance(self, ack: int) -> None:
        """Move ``snd_una`` to ``ack``, with all that counts from it.

        The window's right edge stays until the segment's own window is taken (:meth:`offered`).
        """
        timers = self.timers
        una = self.snd_una
        self.rto.failures = 0
        timed = self.rtt.timed_seq
        if timed >= 0 and ack > timed:
            self._round_trip(una == self.iss)
        if ack == self.snd_max:
            timers.rexmt = 0
        elif timers.persist == 0 and not self.recovery.hold_timer:
            timers.rexmt = timers.clock + self.rto.current
        window = self.snd_wnd - ((ack if ack < self.snd_end else self.snd_end) - una)  # our FIN takes no window
        self.snd_wnd = window if window > 0 else 0
        self.snd_wire = -1
        self.snd_una = ack
        if self.snd_nxt < ack:
            self.snd_nxt = ack
        if self.sacked:
            self.scoreboard.advance(ack)
        if self.write_pending:
            self.fill()

    def offered(self, seq: int, ack: int, window: int, wire: int) -> bool:
        """Take a segment's window unless a later segment gave one (RFC 793 page 72); return True if it was taken.

        An ACK that acknowledges nothing new can only open the window (4.4BSD ``tcp_input``). One that others overtook
        does nothing (RFC 9293 section 3.10.7.4). ``wire`` is the header's field, or -1 if that is not scaled as usual.
        """
        if (
            ack < self.snd_una
            or seq < self.snd_wl1
            or (seq == self.snd_wl1 and (ack < self.snd_wl2 or (ack == self.snd_wl2 and window <= self.snd_wnd)))
        ):
            if window != self.snd_wnd:
                self.snd_wire = -1
            return False
        self.snd_wnd = window
        self.snd_wire = wire
        self.snd_wl1 = seq
        self.snd_wl2 = ack
        if window > self.max_sndwnd:
            self.max_sndwnd = window
        return True

    def offered_first(self, seq: int, window: int) -> None:
        """Set the window of a SYN, which is never scaled."""
        self.snd_wnd = window
        self.snd_wire = -1
        self.max_sndwnd = window
        self.snd_wl1 = seq
        self.snd_wl2 = self.snd_una

    def _round_trip(self, handshake: bool) -> None:
        """Take the round trip of the timed segment, which was acknowledged."""
        timers = self.timers
        sampler = self.rtt
        rtt = sampler.finish(timers.now)
        if self.trace is not None:
            self.trace.round_trip(timers.now, rtt)
        if handshake or not self.timestamps:
            self.rto.sample(rtt if timers.exact else timers.clock - sampler.start_tick + 1)

    def forget_handshake(self, config: TcpConfig) -> None:
        """Forget the segments and the round trip of a handshake without a network."""
        self.rto = RetransmissionTimeout.of(config)
        self.rto.established()
        self.rtt.forget()
        self.statistics.reset_segments()

    # ---- time-outs ----

    def retransmission_timeout(self) -> bool:
        """Go back to ``snd_una`` after a retransmission time-out; return False if there were too many in a row."""
        rto = self.rto
        if not rto.back_off():
            return False
        self.statistics.timeouts += 1
        self.timers.rexmt = self.timers.clock + rto.current
        self.rtt.cancel()
        if self.trace is not None:
            self.trace.event(self.timers.now, "timeout", self.snd_una - self.snd_base)
        self.recovery.timeout(self)
        self.scoreboard.clear(self.snd_una)
        self.snd_nxt = self.snd_una
        self.dupacks = 0
        self.limited = 0
        return True

    def set_persist(self) -> None:
        """Set the timer of the next window probe."""
        self.timers.persist = self.timers.clock + self.rto.persist_interval()

    # ---- what goes out ----

    def output(self, idle_since: int, force: bool) -> None:
        """Send what may be sent (``tcp_output``).

        ``idle_since``: when something was received last; ``force``: a window probe.
        """
        timers = self.timers
        receiver = self.receiver
        una = self.snd_una
        recovery = self.recovery
        if recovery.sends:
            recovery.send(self)
            if receiver.ack_now or receiver.update_due():
                self.emit(self.snd_max, 0, ACK)
            return
        growth = self.growth
        maxseg = self.maxseg
        idle = self.snd_max == una
        if idle and self.idle_restart and timers.clock - idle_since >= self.rto.current:
            first = self._first_window() if self.rfc6928 else maxseg
            growth.on_idle(first if not self.rfc6928 or first < growth.cwnd else growth.cwnd)
        if not growth.always and not self._window_is_used():
            growth.on_unused(timers.now)
        if not force:
            # The common case: whole segments of new data, without options.
            nxt = self.snd_nxt
            limit = una + (growth.cwnd if growth.cwnd < self.snd_wnd else self.snd_wnd)
            if limit > self.snd_end:
                limit = self.snd_end
            if (
                limit - nxt >= maxseg
                and nxt == self.snd_max
                and not self.timestamps
                and not receiver.reassembly.starts
                and timers.persist == 0
                and not growth.paces
            ):
                # The last segment of a stream goes with its FIN.
                whole = limit - 1 if self.fin_wanted and limit == self.snd_end else limit
                while whole - nxt >= maxseg:
                    self.send(nxt, maxseg, False)
                    nxt += maxseg
                left = limit - nxt
                if left == 0 or (limit < self.snd_end and 2 * left < self.max_sndwnd):
                    if self.fin_wanted and nxt == self.snd_end:
                        self._output_rest(force, idle)
                    return
                idle = False
        self._output_rest(force, idle)

    def _output_rest(self, force: bool, idle: bool) -> None:
        timers = self.timers
        receiver = self.receiver
        while True:
            again = False
            una = self.snd_una
            nxt = self.snd_nxt
            end = self.snd_end
            if nxt < self.snd_max and self.sacked and len(self.scoreboard):
                nxt = self.scoreboard.skip(nxt)
                self.snd_nxt = nxt
            window = self.window_in_use()
            fin = self.fin_wanted
            if force:
                if window == 0:
                    if nxt < end:
                        fin = False
                    window = 1
                else:
                    timers.persist = 0
                    self.rto.shift = 0
            limit = una + window
            length = (limit if limit < end else end) - nxt
            if length < 0:
                length = 0
                if window == 0:
                    timers.rexmt = 0
                    self.snd_nxt = una
                    nxt = una
            if length > self.maxseg:
                length = self.maxseg
                again = True
            waits = length > 0 and not force and not self.may_send()
            if waits:
                length = 0
                again = False
            if nxt + length < end or (self.fin_sent and nxt > end):
                fin = False
            if length:
                send = (
                    length == self.maxseg
                    or ((idle or self.nodelay) and nxt + length >= end)
                    or force
                    or (2 * length >= self.max_sndwnd and self.max_sndwnd > 0)
                    or nxt < self.snd_max
                )
            else:
                send = False
            if not send and not receiver.ack_now:
                send = receiver.update_due() or (fin and (not self.fin_sent or nxt == una))
            if send or receiver.ack_now:
                room = self.room()
                if length > room:
                    length = room
                    again = True
                    fin = False
                if (length or fin) and not (force and timers.persist != 0):
                    self.send(nxt, length, fin)
                elif length or fin:
                    self._probe(nxt, length, fin)
                else:
                    self.emit(nxt if timers.persist != 0 else self.snd_max, 0, ACK)
            else:
                again = False
            if not again:
                # As the send may have been for the ACK alone, the rest of the window may still need the persist timer.
                if self.snd_end > self.snd_una and timers.rexmt == 0 and timers.persist == 0 and not waits:
                    self.rto.shift = 0
                    self.set_persist()
                return
            idle = False

    def window_in_use(self) -> int:
        """Return the congestion window or the peer's, whichever is less."""
        cwnd = self.growth.cwnd
        return cwnd if cwnd < self.snd_wnd else self.snd_wnd

    def room(self) -> int:
        """Return the octets of payload that a segment holds beside its options."""
        room = self.payload
        receiver = self.receiver
        if receiver.sacks and receiver.reassembly.starts:
            limit = self.block_limit
            count = len(receiver.reassembly.starts)
            room -= 4 + 8 * (count if count < limit else limit)
        return room

    def may_send(self) -> bool:
        """Return whether pacing permits a segment now; if not, set the timer to the time when it does."""
        if self.growth.paces and self.timers.now < self.pace_next:
            self.timers.pace = self.pace_next
            return False
        return True

    def _pace(self, octets: int) -> None:
        """Delay the next segment by the time that so many octets, which were sent, take at the pacing rate."""
        now = self.timers.now
        rate = self.growth.pacing_rate(self.window_in_use(), self.rtt.smoothed_ps)
        if rate > 0:
            start = self.pace_next if self.pace_next > now else now
            self.pace_next = start + octets * PS_PER_S // rate

    def send(self, seq: int, length: int, fin: bool) -> int:
        """Send ``length`` octets of the stream from ``seq`` on, for the first time or again, and the FIN.

        Return the number after them. This is the only place where segments that take sequence numbers are counted and
        timed, and have their timer set.
        """
        timers = self.timers
        end = seq + length
        flags = ACK
        if length and end == self.snd_end:
            flags |= PSH
        if fin:
            flags |= FIN
            self.fin_sent = True
        if seq < self.snd_max:
            self._count_retransmission(seq, length)
        self.emit(seq, length, flags)
        if fin:
            end += 1
        if self.snd_nxt < end:
            self.snd_nxt = end
        if end > self.snd_max:
            self.snd_max = end
            if self.rtt.timed_seq < 0:
                self.rtt.start(seq, timers)
        if timers.rexmt == 0:
            timers.rexmt = timers.clock + self.rto.current
            if timers.persist != 0:
                timers.persist = 0
                self.rto.shift = 0
        if self.growth.paces:
            self._pace(length)
        return end

    def send_syn(self, segment: Segment) -> None:
        """Send a SYN, for the first time or again."""
        self.put(segment)
        if self.snd_max == self.iss:
            self.rtt.start(self.iss, self.timers)
        else:
            self.statistics.retransmits += 1
            self.rtt.cancel()  # which of them is answered cannot be known
        self.snd_nxt = self.iss + 1
        self.snd_max = self.iss + 1
        timers = self.timers
        if timers.rexmt == 0:
            timers.rexmt = timers.clock + self.rto.current
        self.receiver.ack_now = False

    def _probe(self, seq: int, length: int, fin: bool) -> None:
        """Send a window probe: ``snd_nxt`` stays, and no timer but the persist timer runs."""
        if seq < self.snd_max:
            self._count_retransmission(seq, length)
        flags = ACK | (FIN if fin else 0) | (PSH if length and seq + length == self.snd_end else 0)
        self.emit(seq, length, flags)
        if seq + length > self.snd_max:
            self.snd_max = seq + length

    def _count_retransmission(self, seq: int, length: int) -> None:
        self.statistics.retransmits += 1
        self.statistics.retransmitted_octets += length
        if self.trace is not None:
            self.trace.event(self.timers.now, "retransmit", seq - self.snd_base)

    def emit(self, seq: int, length: int, flags: int) -> None:
        """Give a segment of an established connection to the host, with the present options and ACK."""
        receiver = self.receiver
        options: Options | None = None
        if self.timestamps or (receiver.sacks and receiver.reassembly.starts):
            options = self._options(flags)
        self.put(
            Segment(
                seq & MASK32,
                receiver.rcv_nxt & MASK32,
                flags,
                receiver.advertise(),
                length,
                seq - self.snd_base,
                options,
            )
        )
        if length:
            self.statistics.data_segments_sent += 1
            if self.trace is not None and self.trace.segments:
                self.trace.event(self.timers.now, "segment", seq - self.snd_base)
        else:
            self.statistics.acks_sent += 1
        receiver.acknowledged()

    def _options(self, flags: int) -> Options | None:
        receiver = self.receiver
        blocks = receiver.sacks and len(receiver.reassembly.starts) > 0 and not flags & RST
        if not blocks and not self.timestamps:
            return None
        options = Options()
        if self.timestamps:
            self.stamp(options)
        if blocks:
            for start, end in receiver.reassembly.blocks(self.block_limit):
                options.blocks.append((start & MASK32, end & MASK32))
        return options

    def stamp(self, options: Options) -> None:
        """Put the timestamps into the options of a segment."""
        options.has_timestamp = True
        options.ts_value = self.timestamp()
        options.ts_echo = self.receiver.ts_recent

    def timestamp(self) -> int:
        """Return the timestamp clock: slow ticks, or milliseconds with exact timers."""
        timers = self.timers
        return (timers.now // _PS_PER_MS if timers.exact else timers.clock) & MASK32

    def put(self, segment: Segment) -> None:
        """Give a segment to the host."""
        self.out.append(segment)
        self.statistics.segments_sent += 1

    # ---- what loss recovery uses ----

    def fast_retransmit(self, go_back: bool) -> int:
        """Retransmit the first segment at the third duplicate ACK; return the number after it.

        ``go_back``: continue from there.
        """
        self.statistics.fast_retransmits += 1
        if self.trace is not None:
            self.trace.event(self.timers.now, "fast_retransmit", self.snd_una - self.snd_base)
        end = self.retransmit(self.snd_una, self.snd_max)
        if go_back:
            self.snd_nxt = end
        return end

    def retransmit(self, start: int, end: int) -> int:
        """Retransmit as much of start..end-1 as a segment holds; return the number after it.

        The timer of the first segment starts again.
        """
        room = self.room()
        if end > start + room:
            end = start + room
        if end > self.snd_max:
            end = self.snd_max
        fin = False
        if end >= self.snd_end:
            end = self.snd_end
            fin = self.fin_sent
        if start == self.snd_una and not self.recovery.hold_timer:
            self.timers.rexmt = 0
        end = self.send(start, end - start if end > start else 0, fin)
        self.rtt.cancel()
        return end

    def send_new(self) -> int:
        """Send a segment of new data if the receiver's window has room; return its octets, 0 if none was sent."""
        nxt = self.snd_max
        room = self.room()
        end = nxt + room
        limit = self.snd_una + self.snd_wnd
        if end > limit:
            end = limit
        if end >= self.snd_end:
            end = self.snd_end
        elif end - nxt < room and 2 * (end - nxt) < self.max_sndwnd:
            return 0
        length = end - nxt
        fin = end == self.snd_end and self.fin_wanted and not self.fin_sent and length >= 0
        if length <= 0 and not fin:
            return 0
        return self.send(nxt, length, fin) - nxt

    def _transmit_limited(self) -> None:
        """Send a new segment by limited transmit (RFC 3042), if the window enlarged by two segments has room for it."""
        if self.snd_nxt == self.snd_max and not self.recovery.recovering:
            beyond = self.snd_max - self.snd_una + self.maxseg
            if beyond <= self.growth.cwnd + 2 * self.maxseg:
                self.limited += self.send_new()


def _initial_growth(config: TcpConfig) -> Growth:
    """Return the growth of a sender whose peer is not known yet."""
    growth: Growth = GROWTHS[config.growth].make(config)
    growth.ssthresh = config.initial_ssthresh or MAX_WINDOW << MAX_WINDOW_SHIFT
    growth.limit = MAX_WINDOW
    return growth
