"""One end of a TCP connection, sans-I/O: segments, time and ticks go in, segments come out.

The frame is 4.4BSD's (``tcp_input``, ``tcp_output``, ``tcp_timer`` of Lite2) after RFC 793, 1122 and 1323. Inside,
sequence numbers are unwrapped: plain integers that start at the initial sequence number (32 bits) and never wrap,
so that all comparisons are ordinary ones; only the wire's are modulo 2**32.
"""

from __future__ import annotations

from typing import final

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.congestion import CongestionControl, make_congestion_control
from bentpipe.tcp.constants import (
    ACK,
    CLOSE_WAIT,
    CLOSED,
    CLOSING,
    ESTABLISHED,
    FIN,
    FIN_WAIT_1,
    FIN_WAIT_2,
    LAST_ACK,
    LISTEN,
    MASK32,
    MAX_RETRANSMIT_SHIFT,
    MAX_WINDOW,
    MAX_WINDOW_SHIFT,
    PS_PER_S,
    PSH,
    RST,
    SLOW_TICK_PS,
    SYN,
    SYN_RECEIVED,
    SYN_SENT,
    TIME_WAIT,
    URG,
)
from bentpipe.tcp.reassembly import Reassembly
from bentpipe.tcp.rto import RetransmissionTimeout
from bentpipe.tcp.scoreboard import Scoreboard
from bentpipe.tcp.segment import Options, Segment
from bentpipe.tcp.trace import Trace

__all__ = ["ENDLESS", "Connection", "reset_for"]

ENDLESS = 1 << 60
"""As the number of octets to write: never ends."""

_HALF32 = 1 << 31
_KEEP_INTERVAL_S = 75
_MAX_IDLE_S = 8 * _KEEP_INTERVAL_S
_SIMPLE = SYN | FIN | RST | URG | ACK


@final
class Connection:
    """One end of a connection.

    Segments to send are appended to ``out``, which the host takes and empties after each call. With BSD's timers
    the host calls :meth:`fast_tick` every 200 ms and :meth:`slow_tick` every 500 ms; with ideal ones it calls
    :meth:`expire` when :meth:`next_timer` says so.

    Parameters
    ----------
    config : TcpConfig
    mss : int
        Largest payload of a segment, as :meth:`TcpConfig.segment_size` gives.
    iss : int
        Initial sequence number, 0..2**32 - 1.
    clock : int
        With BSD's timers the host's slow tick at present.

    Members
    -------
    state : int
    out : list of Segment
    snd_una, snd_nxt, snd_max, rcv_nxt : int
        As in RFC 793 and BSD, unwrapped.
    cwnd, ssthresh : int
        Octets.
    unread : int
        Octets received in order that the application hasn't read (``auto_read`` false).
    receiving : bool
        The application still takes data: it has not called :meth:`close`.
    auto_read : bool
        The application reads whatever arrives at once, as a sink does.
    error : str
        Why the connection ended before its time; empty if it didn't.
    """

    def __init__(self, config: TcpConfig, mss: int, iss: int, clock: int = 0, trace: Trace | None = None) -> None:
        self.config: TcpConfig = config
        self.state: int = CLOSED
        self.out: list[Segment] = []
        self.error: str = ""
        self.trace: Trace | None = trace
        self.ideal: bool = config.timers == "ideal"
        self.per_second: int = PS_PER_S if self.ideal else PS_PER_S // SLOW_TICK_PS
        self.clock: int = clock
        self.now: int = 0
        self.rto: RetransmissionTimeout = (
            RetransmissionTimeout(True, config.rto_min_ps, config.rto_max_ps)
            if self.ideal
            else RetransmissionTimeout(False, config.rto_min_ticks, 128)
        )
        self.cc: CongestionControl = make_congestion_control(
            config, "reno" if config.variant == "sack" else config.variant
        )

        self.own_mss: int = mss
        self.maxseg: int = mss
        self.segment_payload: int = mss
        self.snd_hiwat: int = _round_up(config.send_buffer, mss) if config.round_buffers else config.send_buffer
        self.rcv_hiwat: int = _round_up(config.receive_buffer, mss) if config.round_buffers else config.receive_buffer
        self.update_at: int = 0
        self.own_shift: int = 0
        if config.window_scale:
            while self.own_shift < MAX_WINDOW_SHIFT and MAX_WINDOW << self.own_shift < self.rcv_hiwat:
                self.own_shift += 1

        self.iss: int = iss
        self.snd_una: int = iss
        self.snd_nxt: int = iss
        self.snd_max: int = iss
        self.snd_base: int = iss + 1
        self.snd_end: int = iss + 1
        self.write_pending: int = 0
        self.closing: bool = False
        self.fin_wanted: bool = False
        self.fin_sent: bool = False
        self.snd_wnd: int = 0
        self.snd_wire: int = -1
        self.snd_shift: int = 0
        self.snd_wl1: int = 0
        self.snd_wl2: int = 0
        self.max_sndwnd: int = 0
        self.max_cwnd: int = MAX_WINDOW
        self.cwnd: int = mss * config.initial_cwnd
        self.ssthresh: int = config.initial_ssthresh or MAX_WINDOW << MAX_WINDOW_SHIFT
        self.dupacks: int = 0
        self.send_ready: bool = False
        self.nodelay: bool = not config.nagle
        self.scoreboard: Scoreboard = Scoreboard(mss)
        self.sack_send: bool = False

        self.irs: int = 0
        self.rcv_nxt: int = 0
        self.rcv_base: int = 0
        self.rcv_adv: int = 0
        self.rcv_shift: int = 0
        self.rcv_max_window: int = MAX_WINDOW
        self.unread: int = 0
        self.auto_read: bool = True
        self.reassembly: Reassembly = Reassembly()
        self.fin_seq: int = -1
        self.fin_received: bool = False
        self.receiving: bool = True
        self.ack_now: bool = False
        self.delack: bool = False
        self.ack_every_second: bool = config.ack_policy == "every_second"
        self.ack_each: bool = config.ack_policy == "immediate"
        self.last_ack_sent: int = 0
        self.sack_receive: bool = False
        self.timestamps: bool = False
        self.ts_recent: int = 0
        self.scales: bool = False
        self.passive: bool = False

        # Timers: when due, in ticks or picoseconds; 0: off.
        self.rexmt_due: int = 0
        self.persist_due: int = 0
        self.keep_due: int = 0
        self.wait_due: int = 0
        self.delack_due: int = 0
        self.last_receive: int = clock
        self.rtt_seq: int = -1
        self.rtt_clock: int = 0
        self.rtt_start_ps: int = 0

        # What happened.
        self.segments_sent: int = 0
        self.segments_received: int = 0
        self.data_segments_sent: int = 0
        self.acks_sent: int = 0
        self.retransmits: int = 0
        self.retransmitted_octets: int = 0
        self.timeouts: int = 0
        self.fast_retransmits: int = 0
        self.dup_acks: int = 0
        self.out_of_order: int = 0
        self.duplicates: int = 0
        self.window_probes: int = 0
        self.keepalive_probes: int = 0
        self.quenches: int = 0
        self.rtt_count: int = 0
        self.rtt_sum_ps: int = 0
        self.rtt_min_ps: int = 0
        self.rtt_max_ps: int = 0
        self.opened_ps: int = -1
        self.established_ps: int = -1
        self.delivered_ps: int = -1
        self.closed_ps: int = -1
        self._set_maxseg(mss)

    # ---- the application's side ----

    def listen(self) -> None:
        """Wait for a SYN."""
        self.state = LISTEN
        self.passive = True

    def open(self, now: int) -> None:
        """Send a SYN."""
        if self.state != CLOSED:
            raise ValueError("the connection is open already")
        self._at(now)
        self.opened_ps = now
        self.state = SYN_SENT
        self.keep_due = self.clock + 75 * self.per_second
        self.cc.start(self)
        self._output(False)

    def write(self, octets: int, now: int) -> None:
        """The application writes ``octets`` of the stream, waiting while the send buffer is full.

        What doesn't fit stays in ``write_pending`` and moves on as data is acknowledged.
        """
        if self.closing:
            raise ValueError("the connection is closed for writing")
        self._at(now)
        self.write_pending += octets
        self._fill()
        if self.state >= ESTABLISHED:
            self._output(False)

    def give_up(self, keep: int, now: int) -> None:
        """The application gives up all but ``keep`` octets of what waits to be written."""
        self._at(now)
        if self.write_pending > keep:
            self.write_pending = keep
            if keep == 0 and self.closing:
                self._send_fin()
                self._output(False)

    def read(self, octets: int, now: int) -> int:
        """The application reads at most ``octets``; how many it got. The opened window may send an ACK."""
        self._at(now)
        taken = octets if octets < self.unread else self.unread
        self.unread -= taken
        if taken and self.state >= ESTABLISHED:
            self._output(False)
        return taken

    def close(self, now: int) -> None:
        """The application is done, with reading too: new data is answered by a RST (RFC 1122 4.2.2.13)."""
        self.receiving = False
        self.shutdown(now)
        if self.state == FIN_WAIT_2 and self.wait_due == 0:
            self._await_fin()

    def shutdown(self, now: int) -> None:
        """The application writes no more: a FIN follows the last octet written. It still reads."""
        self._at(now)
        if self.closing:
            return
        self.closing = True
        if self.state == LISTEN or self.state == SYN_SENT or self.state == CLOSED:
            self._closed("")
            return
        if self.write_pending == 0:
            self._send_fin()
            self._output(False)

    def abort(self, now: int) -> None:
        """Give up: a RST, and nothing more."""
        self._at(now)
        if self.state >= SYN_RECEIVED and self.state != TIME_WAIT:
            self._emit(self.snd_nxt, 0, RST | ACK)
        self._closed("aborted")

    @property
    def delivered(self) -> int:
        """Octets of the stream that the application has read."""
        octets = self.rcv_nxt - self.rcv_base - self.unread
        if self.fin_received:
            octets -= 1
        return octets if self.rcv_base else 0

    @property
    def accepted(self) -> int:
        """Octets of the stream that the application has written and the send buffer has taken."""
        return self.snd_end - self.snd_base

    @property
    def acknowledged(self) -> int:
        """Octets of the stream that the peer has acknowledged."""
        una = self.snd_una if self.snd_una < self.snd_end else self.snd_end
        return una - self.snd_base if una > self.snd_base else 0

    # ---- timers ----

    def fast_tick(self, now: int) -> None:
        """BSD's fast timer: send the ACK that was delayed."""
        if self.delack:
            self.now = now
            self.ack_now = True
            self._output(False)

    def slow_tick(self, tick: int, now: int) -> None:
        """BSD's slow timer: tick number ``tick`` of the host."""
        self.now = now
        self.clock = tick
        due = self.rexmt_due
        if due != 0 and due <= tick:
            self._retransmission_timeout()
        due = self.persist_due
        if due != 0 and due <= tick:
            self._persist_timeout()
        due = self.keep_due
        if due != 0 and due <= tick:
            self._keep_timeout()
        due = self.wait_due
        if due != 0 and due <= tick:
            self._wait_timeout()

    def next_timer(self) -> int:
        """With ideal timers: when :meth:`expire` is to be called (ps), 0 if never."""
        due = self.rexmt_due
        other = self.delack_due
        if other != 0 and (due == 0 or other < due):
            due = other
        other = self.persist_due
        if other != 0 and (due == 0 or other < due):
            due = other
        other = self.keep_due
        if other != 0 and (due == 0 or other < due):
            due = other
        other = self.wait_due
        if other != 0 and (due == 0 or other < due):
            due = other
        return due

    def expire(self, now: int) -> None:
        """With ideal timers: run those that are due."""
        due = self.delack_due
        if due != 0 and due <= now:
            self.delack_due = 0
            self.now = now
            self.clock = now
            if self.delack:
                self.ack_now = True
                self._output(False)
        self.slow_tick(now, now)

    def quench(self) -> None:
        """The interface queue refused a segment (ENOBUFS, ``tcp_quench``)."""
        self.quenches += 1
        if self.config.habit_quench:
            self.cwnd = self.maxseg

    def _at(self, now: int) -> None:
        self.now = now
        if self.ideal:
            self.clock = now

    def _retransmission_timeout(self) -> None:
        if not self.rto.back_off():
            self._closed("timed out")
            return
        self.timeouts += 1
        self.rexmt_due = self.clock + self.rto.current
        self.rtt_seq = -1
        if self.trace is not None:
            self.trace.event(self.now, "timeout", self.snd_una - self.snd_base)
        self.cc.timeout(self)
        self.scoreboard.clear(self.snd_una)
        self.snd_nxt = self.snd_una
        self.dupacks = 0
        self._output(False)
        self._traced()

    def _persist_timeout(self) -> None:
        idle = self.clock - self.last_receive
        if self.rto.shift == MAX_RETRANSMIT_SHIFT and (idle >= 7200 * self.per_second or idle >= self.rto.base() * 511):
            self._closed("timed out")
            return
        self.window_probes += 1
        self._set_persist()
        self._output(True)

    def _set_persist(self) -> None:
        self.persist_due = self.clock + self.rto.persist_interval()

    def _keep_timeout(self) -> None:
        per_second = self.per_second
        if self.state < ESTABLISHED:
            self._closed("timed out")
            return
        if self.config.keepalive and self.state <= CLOSE_WAIT:
            idle = self.clock - self.last_receive
            if idle < 7200 * per_second:
                self.keep_due = self.last_receive + 7200 * per_second
                return
            if idle >= (7200 + _MAX_IDLE_S) * per_second:
                self._closed("timed out")
                return
            self.keepalive_probes += 1
            self._emit(self.snd_una - 1, 1 if self.config.habit_keepalive_octet else 0, ACK)
            self.keep_due = self.clock + _KEEP_INTERVAL_S * per_second
        else:
            self.keep_due = 0

    def _await_fin(self) -> None:
        """FIN_WAIT_2 of an application that is done: the peer's FIN is not waited for for ever (4.4BSD)."""
        self.wait_due = self.clock + _MAX_IDLE_S * self.per_second

    def _wait_timeout(self) -> None:
        """TIME_WAIT is over, or the peer may have gone in FIN_WAIT_2 (``tcp_timers``, TCPT_2MSL)."""
        if self.state == TIME_WAIT:
            self._closed("")
        elif self.clock - self.last_receive <= _MAX_IDLE_S * self.per_second:
            self.wait_due = self.clock + _KEEP_INTERVAL_S * self.per_second
        else:
            self._closed("timed out")

    # ---- input ----

    def receive(self, segment: Segment, now: int) -> None:
        """A segment arrived whose checksums are right."""
        self.now = now
        if self.ideal:
            self.clock = now
        self.last_receive = self.clock
        self.segments_received += 1
        # Header prediction: the next segment expected of an established connection, with nothing special.
        if (
            self.state == ESTABLISHED
            and segment.flags & _SIMPLE == ACK
            and segment.window == self.snd_wire
            and segment.options is None
            and segment.seq == self.rcv_nxt & MASK32
            and self.snd_nxt == self.snd_max
        ):
            una = self.snd_una
            acked = (segment.ack - una) & MASK32
            length = segment.length
            if length == 0:
                if 0 < acked <= self.snd_max - una and self.dupacks == 0 and not self.cc.recovering:
                    self._acknowledged(una + acked, segment.window)
                    return
            elif acked == 0 and not self.reassembly.starts and self.fin_seq < 0:
                window = self.rcv_hiwat - self.unread
                if length <= window:
                    self.snd_wl1 = self.rcv_nxt
                    nxt = self.rcv_nxt + length
                    self.rcv_nxt = nxt
                    self.delivered_ps = now
                    if self.delack and self.ack_every_second:
                        self.ack_now = True
                    self._delay_ack()
                    if self.auto_read:
                        # The reader empties the buffer: does that open the window enough for an update?
                        if window > self.rcv_max_window:
                            window = self.rcv_max_window
                        if self.ack_now or window - (self.rcv_adv - nxt) >= self.update_at:
                            self._send_ack()
                    else:
                        self.unread += length
                        if self.ack_now:
                            self._send_ack()
                    return
        self._receive_slowly(segment)

    def _acknowledged(self, ack: int, wire: int) -> None:
        """A pure ACK of new data, the common case."""
        self.cc.grow(self)
        self._advance(ack)
        self._offered(self.rcv_nxt, ack, wire)
        if self.trace is not None:
            self.trace.state(self.now, self.cwnd, self.ssthresh, ack - self.snd_base)
        if self.snd_end > self.snd_nxt or self.ack_now or self.fin_wanted:
            self._output(False)

    def _round_trip(self, handshake: bool) -> None:
        rtt = self.now - self.rtt_start_ps
        self.rtt_seq = -1
        self.rtt_count += 1
        self.rtt_sum_ps += rtt
        if rtt > self.rtt_max_ps:
            self.rtt_max_ps = rtt
        if self.rtt_min_ps == 0 or rtt < self.rtt_min_ps:
            self.rtt_min_ps = rtt
        if self.trace is not None:
            self.trace.round_trip(self.now, rtt)
        if handshake or not self.timestamps:
            self.rto.sample(rtt if self.ideal else self.clock - self.rtt_clock + 1)

    def _delay_ack(self) -> None:
        if self.ack_each:
            self.ack_now = True
        elif not self.delack:
            self.delack = True
            if self.ideal:
                self.delack_due = self.now + self.config.delayed_ack_ps

    def _send_ack(self) -> None:
        """Acknowledge, on data if there is some."""
        if self.snd_end > self.snd_nxt or self.fin_wanted:
            self.ack_now = True
            self._output(False)
        else:
            self._emit(self.snd_max, 0, ACK)

    def _fill(self) -> None:
        """The blocked write goes on: octets move into the send buffer."""
        una = self.snd_una if self.snd_una > self.snd_base else self.snd_base
        room = una + self.snd_hiwat - self.snd_end
        if room <= 0:
            return
        if room >= self.write_pending:
            room = self.write_pending
            self.write_pending = 0
            self.snd_end += room
            if self.closing:
                self._send_fin()
        else:
            self.write_pending -= room
            self.snd_end += room

    def _send_fin(self) -> None:
        if self.state == ESTABLISHED:
            self.state = FIN_WAIT_1
        elif self.state == CLOSE_WAIT:
            self.state = LAST_ACK
        else:
            return  # half open: once it is established
        self.fin_wanted = True

    def _receive_slowly(self, segment: Segment) -> None:
        state = self.state
        if state == CLOSED:
            self._reset_reply(segment)
            return
        if state == LISTEN:
            self._receive_listen(segment)
            return
        if state == SYN_SENT:
            self._receive_syn_sent(segment)
            return
        flags = segment.flags
        delta = (segment.seq - self.rcv_nxt) & MASK32
        seq = self.rcv_nxt + (delta if delta < _HALF32 else delta - (1 << 32))
        delta = (segment.ack - self.snd_una) & MASK32
        ack = self.snd_una + (delta if delta < _HALF32 else delta - (1 << 32))
        length = segment.length
        options = segment.options
        window = self.rcv_hiwat - self.unread
        if self.rcv_adv - self.rcv_nxt > window:
            window = self.rcv_adv - self.rcv_nxt
        if window < 0:
            window = 0

        # A RST counts in the window only (RFC 793 section 3.4)
        inside = seq == self.rcv_nxt or self.rcv_nxt < seq < self.rcv_nxt + window
        if flags & RST and not inside and not self.config.habit_reset_below_window:
            return

        # PAWS (RFC 1323 section 4)
        stamped = self.timestamps and options is not None and options.has_timestamp
        if stamped and options is not None and not flags & RST:
            older = (options.ts_value - self.ts_recent) & MASK32
            if older >= _HALF32:
                self.duplicates += 1
                self._ack_and_drop(flags)
                return

        # Trim what is old
        todrop = self.rcv_nxt - seq
        if todrop > 0:
            if flags & SYN:
                flags &= ~SYN
                seq += 1
                todrop -= 1
            if todrop > length or (todrop == length and not flags & FIN):
                flags &= ~FIN
                self.ack_now = True
                todrop = length
                if length:
                    self.duplicates += 1
            seq += todrop
            length -= todrop

        # Data that nobody will read
        if length and not self.receiving and state > CLOSE_WAIT:
            self._reset_reply(segment)
            self._closed("reset: data after the close")
            return

        # Trim what is beyond the window
        todrop = seq + length - (self.rcv_nxt + window)
        if todrop > 0:
            if todrop >= length:
                if window == 0 and seq == self.rcv_nxt:
                    self.ack_now = True  # a window probe
                else:
                    self._ack_and_drop(flags)
                    return
                length = 0
            else:
                length -= todrop
            flags &= ~(PSH | FIN)

        if stamped and options is not None and seq <= self.last_ack_sent <= seq + length:
            self.ts_recent = options.ts_value

        if flags & RST:
            if state == SYN_RECEIVED and self.passive:
                self._relisten()
            else:
                finished = state in (CLOSING, LAST_ACK, TIME_WAIT)
                self._closed("" if finished else "reset by the peer")
            return
        if flags & SYN:
            # A SYN in the window (RFC 793): reset. A repeated SYN of the handshake was trimmed above.
            self._emit(self.snd_nxt, 0, RST | ACK)
            self._closed("reset: SYN in the window")
            return
        if not flags & ACK:
            return

        if state == SYN_RECEIVED:
            if ack < self.snd_una or ack > self.snd_max:
                self._reset_reply(segment)
                return
            if ack > self.snd_una:
                self._established()
                self.snd_wl1 = seq - 1
                state = self.state
                self.snd_una = self.iss + 1
                if self.rtt_seq >= 0:
                    self._round_trip(True)
                self.rexmt_due = 0
                if self.snd_nxt < self.snd_una:
                    self.snd_nxt = self.snd_una
                self.scoreboard.clear(self.snd_una)

        output = False
        acked = 0
        una = self.snd_una
        if ack > self.snd_max:
            self._ack_and_drop(flags)
            return
        if self.sack_send and options is not None and options.blocks:
            self._take_blocks(options, ack)
        if ack > una:
            self._new_ack(ack, stamped, options)
            acked = ack - una
            output = True
            if self.fin_sent and ack > self.snd_end:
                state = self._fin_acknowledged()
                if state == CLOSED:
                    return
        elif length:
            self.dupacks = 0
        else:
            # As the window is compared with the one in force, a window update is no duplicate.
            same = segment.window << self.snd_shift == self.snd_wnd
            if self.rexmt_due == 0 or ack != una:
                self.dupacks = 0
            elif same or not self.config.habit_window_update_resets_dupacks:
                self.dupacks += 1
                self.dup_acks += 1
                self.send_ready = False
                self.cc.duplicate(self)
                if self.send_ready:
                    output = True
            else:
                self.dupacks = 0
        if state == TIME_WAIT:
            # The peer has not seen our last ACK: send it again.
            self.wait_due = self.clock + self._two_msl()
            if length or segment.flags & FIN:
                self.ack_now = True

        # Window
        if self._offered(seq, ack, segment.window):
            output = True
        if acked and self.cc.recovering:
            self.cc.advanced(self, acked)

        # Data
        if (length or flags & FIN) and not self.fin_received and state != TIME_WAIT:
            self._take_data(seq, length, flags)
            state = self.state
            if state == CLOSED:
                return
        if output or self.ack_now or self.cc.sends:
            self._output(False)
        self._traced()

    def _take_blocks(self, options: Options, ack: int) -> None:
        board = self.scoreboard
        una = self.snd_una
        for left, right in options.blocks:
            delta = (left - una) & MASK32
            start = una + (delta if delta < _HALF32 else delta - (1 << 32))
            end = start + ((right - left) & MASK32)
            if start < end <= self.snd_max and end > ack:
                board.add(start, end)

    def _new_ack(self, ack: int, stamped: bool, options: Options | None) -> None:
        cc = self.cc
        cc.hold_timer = False
        opens = True
        if self.dupacks or cc.recovering:
            opens = cc.new_ack(self, ack)
        self.dupacks = 0
        if stamped and options is not None:
            elapsed = (self._timestamp() - options.ts_echo) & MASK32
            if elapsed < _HALF32:
                self.rto.sample(elapsed * 1_000_000_000 if self.ideal else elapsed + 1)
        if opens:
            cc.grow(self)
        self._advance(ack)

    def _advance(self, ack: int) -> None:
        """``snd_una`` moves on to ``ack``, and with it all that counts from it: the one place, but for the SYN's ACK.

        The window's right edge stays where it was until the segment's own window is taken (:meth:`_offered`).
        """
        rtt_seq = self.rtt_seq
        self.rto.failures = 0
        if rtt_seq >= 0 and ack > rtt_seq:
            self._round_trip(False)
        if ack == self.snd_max:
            self.rexmt_due = 0
        elif self.persist_due == 0 and not self.cc.hold_timer:
            self.rexmt_due = self.clock + self.rto.current
        una = self.snd_una
        window = self.snd_wnd - ((ack if ack < self.snd_end else self.snd_end) - una)  # our FIN takes no window
        self.snd_wnd = window if window > 0 else 0
        self.snd_wire = -1
        self.snd_una = ack
        if self.snd_nxt < ack:
            self.snd_nxt = ack
        if self.sack_send:
            self.scoreboard.advance(ack)
        if self.write_pending:
            self._fill()

    def _offered(self, seq: int, ack: int, wire: int) -> bool:
        """Take a segment's window unless a later segment gave one (RFC 793 page 72); True if it was taken.

        An ACK that acknowledges nothing new can only open the window (4.4BSD ``tcp_input``).
        """
        window = wire << self.snd_shift
        if seq < self.snd_wl1 or (
            seq == self.snd_wl1 and (ack < self.snd_wl2 or (ack == self.snd_wl2 and window <= self.snd_wnd))
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

    def _fin_acknowledged(self) -> int:
        state = self.state
        if state == FIN_WAIT_1:
            state = FIN_WAIT_2
            if not self.receiving:
                self._await_fin()
        elif state == CLOSING:
            self._time_wait()
            return TIME_WAIT
        elif state == LAST_ACK:
            self._closed("")
            return CLOSED
        self.state = state
        return state

    def _take_data(self, seq: int, length: int, flags: int) -> None:
        board = self.reassembly
        if flags & FIN:
            self.fin_seq = seq + length
        if length:
            if seq == self.rcv_nxt:
                if not board.starts and self.state == ESTABLISHED:
                    if self.delack and self.ack_every_second:
                        self.ack_now = True
                    self._delay_ack()
                    nxt = seq + length
                else:
                    self.ack_now = True
                    nxt = board.advance(seq + length)
                if not self.auto_read:
                    self.unread += nxt - seq
                self.rcv_nxt = nxt
                self.delivered_ps = self.now
                if self.auto_read and not self.ack_now:
                    window = self.rcv_hiwat if self.rcv_hiwat < self.rcv_max_window else self.rcv_max_window
                    if window - (self.rcv_adv - nxt) >= self.update_at:
                        self.ack_now = True
            else:
                self.out_of_order += 1
                board.add(seq, seq + length)
                self.ack_now = True
        if self.fin_seq >= 0 and self.fin_seq == self.rcv_nxt:
            self.fin_received = True
            self.rcv_nxt += 1
            self.ack_now = True
            state = self.state
            if state == ESTABLISHED:
                self.state = CLOSE_WAIT
            elif state == FIN_WAIT_1:
                self.state = CLOSING
            elif state == FIN_WAIT_2:
                self._time_wait()
        elif flags & FIN:
            self.ack_now = True

    def _two_msl(self) -> int:
        twice = 2 * self.config.msl_ps
        return twice if self.ideal else twice // SLOW_TICK_PS

    def _time_wait(self) -> None:
        self.state = TIME_WAIT
        self.rexmt_due = 0
        self.persist_due = 0
        self.keep_due = 0
        self.wait_due = self.clock + self._two_msl()
        self.closed_ps = self.now

    def _ack_and_drop(self, flags: int) -> None:
        if flags & RST:
            return
        self.ack_now = True
        self._output(False)

    def _reset_reply(self, segment: Segment) -> None:
        if not segment.flags & RST:
            self.segments_sent += 1
            self.out.append(reset_for(segment))

    def _receive_listen(self, segment: Segment) -> None:
        flags = segment.flags
        if flags & RST:
            return
        if flags & ACK:
            self._reset_reply(segment)
            return
        if not flags & SYN:
            return
        self._take_syn(segment)
        self.state = SYN_RECEIVED
        self.cc.start(self)
        self.keep_due = self.clock + 75 * self.per_second
        self._output(False)

    def _receive_syn_sent(self, segment: Segment) -> None:
        flags = segment.flags
        if flags & ACK and segment.ack != (self.iss + 1) & MASK32:
            self._reset_reply(segment)
            return
        if flags & RST:
            if flags & ACK:
                self._closed("connection refused")
            return
        if not flags & SYN:
            return
        self._take_syn(segment)
        self.ack_now = True
        self.rexmt_due = 0
        if flags & ACK:
            self.snd_una = self.iss + 1
            if self.snd_nxt < self.snd_una:
                self.snd_nxt = self.snd_una
            self._established()
            if self.rtt_seq >= 0:
                self._round_trip(True)
            self.snd_wnd = segment.window
            self.snd_wire = -1
            self.max_sndwnd = self.snd_wnd
            self.snd_wl1 = self.rcv_nxt - 1
            self.snd_wl2 = self.snd_una
            self.scoreboard.clear(self.snd_una)
        else:
            self.state = SYN_RECEIVED
        self._output(False)
        self._traced()

    def _take_syn(self, segment: Segment) -> None:
        """Sequence numbers and options of the peer's SYN."""
        self.irs = segment.seq
        self.rcv_base = segment.seq + 1
        self.rcv_nxt = segment.seq + 1
        self.rcv_adv = self.rcv_nxt
        self.last_ack_sent = self.rcv_nxt
        options = segment.options
        config = self.config
        peer_mss = 536
        if options is not None:
            if options.mss:
                peer_mss = options.mss
            if options.window_shift >= 0 and config.window_scale:
                shift = options.window_shift
                self.snd_shift = shift if shift < MAX_WINDOW_SHIFT else MAX_WINDOW_SHIFT
                self.rcv_shift = self.own_shift
                self.scales = True
            if options.has_timestamp and config.timestamps:
                self.timestamps = True
                self.ts_recent = options.ts_value
            if options.sack_permitted and config.offers_sack:
                self.sack_receive = True
                if config.variant == "sack":
                    self.sack_send = True
                    self.cc = make_congestion_control(config, "sack")
                    self.cc.start(self)
        self.max_cwnd = MAX_WINDOW << self.snd_shift
        self.rcv_max_window = MAX_WINDOW << self.rcv_shift
        self._set_maxseg(peer_mss if peer_mss < self.own_mss else self.own_mss)
        self.snd_wnd = segment.window
        self.max_sndwnd = segment.window
        self.snd_wl1 = segment.seq

    def _set_maxseg(self, size: int) -> None:
        self.maxseg = size
        self.segment_payload = size - 12 if self.timestamps else size
        self.cwnd = size * self.config.initial_cwnd
        self.scoreboard.mss = size
        half = (self.rcv_hiwat + 1) // 2
        self.update_at = 2 * size if 2 * size < half else half

    def _established(self) -> None:
        self.established_ps = self.now
        self.keep_due = self.clock + 7200 * self.per_second if self.config.keepalive else 0
        self.state = ESTABLISHED
        if self.closing and self.write_pending == 0:
            self._send_fin()

    def _relisten(self) -> None:
        """A reset of a half-open connection that a listener took: listen again."""
        self.state = LISTEN
        self.snd_una = self.iss
        self.snd_nxt = self.iss
        self.snd_max = self.iss
        self.rexmt_due = 0
        self.keep_due = 0
        self.rtt_seq = -1
        self.rcv_base = 0

    def _closed(self, error: str) -> None:
        self.state = CLOSED
        self.error = error
        self.rexmt_due = 0
        self.persist_due = 0
        self.keep_due = 0
        self.wait_due = 0
        self.delack_due = 0
        self.delack = False
        self.ack_now = False
        if self.closed_ps < 0:
            self.closed_ps = self.now

    def _traced(self) -> None:
        if self.trace is not None:
            self.trace.state(self.now, self.cwnd, self.ssthresh, self.snd_una - self.snd_base)

    # ---- output ----

    def _output(self, force: bool) -> None:
        """Send what may be sent (``tcp_output``); ``force``: a window probe."""
        state = self.state
        if state < ESTABLISHED:
            if state >= SYN_SENT:
                self._output_syn()
            return
        una = self.snd_una
        cc = self.cc
        if cc.sends:
            cc.send(self)
            if self.ack_now or self._window_update_due():
                self._emit(self.snd_max, 0, ACK)
            return
        maxseg = self.maxseg
        idle = self.snd_max == una
        if idle and self.config.habit_idle_restart and self.clock - self.last_receive >= self.rto.current:
            self.cwnd = maxseg
        if not force:
            # The common case: whole segments of new data, without options.
            nxt = self.snd_nxt
            limit = una + (self.cwnd if self.cwnd < self.snd_wnd else self.snd_wnd)
            if limit > self.snd_end:
                limit = self.snd_end
            if (
                limit - nxt >= maxseg
                and nxt == self.snd_max
                and not self.timestamps
                and not self.reassembly.starts
                and self.persist_due == 0
            ):
                self._output_whole(nxt, limit)
                left = limit - self.snd_nxt
                if left == 0 or (limit < self.snd_end and 2 * left < self.max_sndwnd):
                    if self.fin_wanted and self.snd_nxt == self.snd_end:
                        self._output_rest(force, idle)
                    return
                idle = False
        self._output_rest(force, idle)

    def _output_whole(self, nxt: int, limit: int) -> None:
        """New data nxt..limit-1 as far as it fills segments."""
        maxseg = self.maxseg
        out = self.out
        ack = self.rcv_nxt
        window = self._window()
        wire = ack & MASK32
        base = self.snd_base
        end = self.snd_end
        if self.rtt_seq < 0:
            self.rtt_seq = nxt
            self.rtt_clock = self.clock
            self.rtt_start_ps = self.now
        count = 0
        while limit - nxt >= maxseg:
            flags = ACK
            if nxt + maxseg == end:
                if self.fin_wanted:
                    break
                flags = ACK | PSH
            out.append(Segment(nxt & MASK32, wire, flags, window, maxseg, nxt - base, None))
            nxt += maxseg
            count += 1
        if self.trace is not None and self.trace.segments:
            for start in range(self.snd_nxt, nxt, maxseg):
                self.trace.event(self.now, "segment", start - base)
        self.snd_nxt = nxt
        self.snd_max = nxt
        self.segments_sent += count
        self.data_segments_sent += count
        if self.rexmt_due == 0 and count:
            self.rexmt_due = self.clock + self.rto.current
        if count:
            self.last_ack_sent = ack
            self.ack_now = False
            self.delack = False
            self.delack_due = 0

    def _output_rest(self, force: bool, idle: bool) -> None:
        while True:
            again = False
            una = self.snd_una
            nxt = self.snd_nxt
            end = self.snd_end
            if nxt < self.snd_max and self.sack_send and len(self.scoreboard):
                nxt = self.scoreboard.skip(nxt)
                self.snd_nxt = nxt
            window = self.cwnd if self.cwnd < self.snd_wnd else self.snd_wnd
            fin = self.fin_wanted
            if force:
                if window == 0:
                    if nxt < end:
                        fin = False
                    window = 1
                else:
                    self.persist_due = 0
                    self.rto.shift = 0
            limit = una + window
            length = (limit if limit < end else end) - nxt
            if length < 0:
                length = 0
                if window == 0:
                    self.rexmt_due = 0
                    self.snd_nxt = una
                    nxt = una
            if length > self.maxseg:
                length = self.maxseg
                again = True
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
            if not send and not self.ack_now:
                send = self._window_update_due() or (fin and (not self.fin_sent or nxt == una))
            if not send and not self.ack_now:
                if end > una and self.rexmt_due == 0 and self.persist_due == 0:
                    self.rto.shift = 0
                    self._set_persist()
                return
            room = self._payload_room()
            if length > room:
                length = room
                again = True
                fin = False
            flags = ACK
            if fin:
                flags |= FIN
            if length and nxt + length == end:
                flags |= PSH
            seq = nxt if length or fin or self.persist_due != 0 else self.snd_max
            if (length or fin) and nxt < self.snd_max:
                self.retransmits += 1
                self.retransmitted_octets += length
                if self.trace is not None:
                    self.trace.event(self.now, "retransmit", nxt - self.snd_base)
            self._emit(seq, length, flags)
            if not force or self.persist_due == 0:
                start = nxt
                nxt += length
                if fin:
                    nxt += 1
                    self.fin_sent = True
                self.snd_nxt = nxt
                if nxt > self.snd_max:
                    self.snd_max = nxt
                    if self.rtt_seq < 0:
                        self._time(start)
                if self.rexmt_due == 0 and nxt != una and (length or fin):
                    self.rexmt_due = self.clock + self.rto.current
                    if self.persist_due != 0:
                        self.persist_due = 0
                        self.rto.shift = 0
            elif nxt + length > self.snd_max:
                self.snd_max = nxt + length
            if not again:
                # As the send may have been for the ACK alone, the rest of the window may still need the persist timer.
                if self.snd_end > self.snd_una and self.rexmt_due == 0 and self.persist_due == 0:
                    self.rto.shift = 0
                    self._set_persist()
                return
            idle = False

    def _time(self, seq: int) -> None:
        self.rtt_seq = seq
        self.rtt_clock = self.clock
        self.rtt_start_ps = self.now

    def _window_update_due(self) -> bool:
        window = self.rcv_hiwat - self.unread
        if window > self.rcv_max_window:
            window = self.rcv_max_window
        if window <= 0 or self.fin_received:
            return False
        return window - (self.rcv_adv - self.rcv_nxt) >= self.update_at

    def _window(self) -> int:
        """The window to advertise, as it goes into the header; remembers the promise."""
        space = self.rcv_hiwat - self.unread
        if space < self.rcv_hiwat >> 2 and space < self.maxseg:
            space = 0
        if space > self.rcv_max_window:
            space = self.rcv_max_window
        held = self.rcv_adv - self.rcv_nxt
        if space <= held:
            return (held if held > 0 else 0) >> self.rcv_shift
        self.rcv_adv = self.rcv_nxt + space
        return space >> self.rcv_shift

    def _payload_room(self) -> int:
        """Octets of payload that a segment holds beside its options."""
        room = self.segment_payload
        if self.sack_receive and self.reassembly.starts:
            limit = 3 if self.timestamps else 4
            count = len(self.reassembly.starts)
            room -= 4 + 8 * (count if count < limit else limit)
        return room

    def _timestamp(self) -> int:
        """The timestamp clock: slow ticks, or milliseconds with ideal timers."""
        return (self.now // 1_000_000_000 if self.ideal else self.clock) & MASK32

    def _emit(self, seq: int, length: int, flags: int) -> None:
        """Hand a segment of an established connection to the host."""
        options: Options | None = None
        blocks = self.sack_receive and len(self.reassembly.starts) > 0 and not flags & RST
        if blocks or self.timestamps:
            options = Options()
            if self.timestamps:
                options.has_timestamp = True
                options.ts_value = self._timestamp()
                options.ts_echo = self.ts_recent
            if blocks:
                for start, end in self.reassembly.blocks(3 if self.timestamps else 4):
                    options.blocks.append((start & MASK32, end & MASK32))
        self.out.append(
            Segment(seq & MASK32, self.rcv_nxt & MASK32, flags, self._window(), length, seq - self.snd_base, options)
        )
        self.segments_sent += 1
        if length:
            self.data_segments_sent += 1
            if self.trace is not None and self.trace.segments:
                self.trace.event(self.now, "segment", seq - self.snd_base)
        else:
            self.acks_sent += 1
        self.last_ack_sent = self.rcv_nxt
        self.ack_now = False
        self.delack = False
        self.delack_due = 0

    def _output_syn(self) -> None:
        """The SYN, or SYN and ACK, the first time or again."""
        first = self.snd_max == self.iss
        if not first and self.snd_nxt > self.iss and not self.ack_now:
            return
        config = self.config
        options = Options()
        options.mss = self.own_mss
        answer = self.state == SYN_RECEIVED
        if config.window_scale and (not answer or self.scales):
            options.window_shift = self.own_shift
        if config.offers_sack and (not answer or self.sack_receive):
            options.sack_permitted = True
        if config.timestamps and (not answer or self.timestamps):
            options.has_timestamp = True
            options.ts_value = self._timestamp()
            options.ts_echo = self.ts_recent
        window = self.rcv_hiwat - self.unread
        if window > MAX_WINDOW:
            window = MAX_WINDOW
        flags = SYN
        ack = 0
        if answer:
            flags = SYN | ACK
            ack = self.rcv_nxt & MASK32
            if self.rcv_nxt + window > self.rcv_adv:
                self.rcv_adv = self.rcv_nxt + window
        self.out.append(Segment(self.iss & MASK32, ack, flags, window, 0, -1, options))
        self.segments_sent += 1
        if first:
            self._time(self.iss)
        else:
            self.retransmits += 1
        self.snd_nxt = self.iss + 1
        self.snd_max = self.iss + 1
        if self.rexmt_due == 0:
            self.rexmt_due = self.clock + self.rto.current
        self.ack_now = False

    # ---- what the congestion controls use ----

    def fast_retransmit(self, go_back: bool) -> int:
        """The third duplicate ACK: retransmit the first segment; the number after it. ``go_back``: go on from there."""
        self.fast_retransmits += 1
        if self.trace is not None:
            self.trace.event(self.now, "fast_retransmit", self.snd_una - self.snd_base)
        end = self.retransmit_first()
        if go_back:
            self.snd_nxt = end
        return end

    def retransmit_first(self) -> int:
        """Retransmit the first unacknowledged segment; the number after it."""
        return self.retransmit_range(self.snd_una, self.snd_max)

    def retransmit_range(self, start: int, end: int) -> int:
        """Retransmit of start..end-1 what a segment holds, and restart the timer; the number after it."""
        flags = ACK
        room = self._payload_room()
        if end > start + room:
            end = start + room
        if end > self.snd_max:
            end = self.snd_max
        if end >= self.snd_end:
            end = self.snd_end
            if self.fin_sent:
                flags |= FIN
            if end > start:
                flags |= PSH
        length = end - start
        if length < 0:
            length = 0
        self.retransmits += 1
        self.retransmitted_octets += length
        if self.trace is not None:
            self.trace.event(self.now, "retransmit", start - self.snd_base)
        self._emit(start, length, flags)
        self.rtt_seq = -1
        if start == self.snd_una and not self.cc.hold_timer:
            self.rexmt_due = self.clock + self.rto.current
        if flags & FIN:
            end += 1
        if self.snd_nxt < end:
            self.snd_nxt = end
        return end

    def send_new(self) -> int:
        """Send a segment of new data if the receiver's window has room; its octets, 0 if none was sent."""
        nxt = self.snd_max
        room = self._payload_room()
        end = nxt + room
        limit = self.snd_una + self.snd_wnd
        if end > limit:
            end = limit
        if end >= self.snd_end:
            end = self.snd_end
        elif end - nxt < room and 2 * (end - nxt) < self.max_sndwnd:
            return 0
        length = end - nxt
        flags = ACK
        if end == self.snd_end:
            flags |= PSH
            if self.fin_wanted and not self.fin_sent and length >= 0:
                flags |= FIN
        if length <= 0 and not flags & FIN:
            return 0
        self._emit(nxt, length, flags)
        if flags & FIN:
            self.fin_sent = True
            end += 1
        self.snd_nxt = end
        self.snd_max = end
        if self.rtt_seq < 0:
            self._time(nxt)
        if self.rexmt_due == 0:
            self.rexmt_due = self.clock + self.rto.current
        return end - nxt


def reset_for(segment: Segment) -> Segment:
    """The RST that answers a segment of no connection (RFC 793 section 3.4)."""
    if segment.flags & ACK:
        return Segment(segment.ack, 0, RST, 0, 0, 0, None)
    size = segment.length
    if segment.flags & SYN:
        size += 1
    if segment.flags & FIN:
        size += 1
    return Segment(0, (segment.seq + size) & MASK32, RST | ACK, 0, 0, 0, None)


def _round_up(value: int, unit: int) -> int:
    return (value + unit - 1) // unit * unit
