"""One end of a TCP connection, sans-I/O: segments, time and ticks go in, segments come out.

The frame is 4.4BSD's (``tcp_input``, ``tcp_output``, ``tcp_timer`` of Lite2) after RFC 793, 1122 and 1323. Inside,
sequence numbers are unwrapped: plain integers that start at the initial sequence number (32 bits) and never wrap,
so that all comparisons are ordinary ones; only the wire's are modulo 2**32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

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
    RST,
    SYN,
    SYN_RECEIVED,
    SYN_SENT,
    TIME_WAIT,
    URG,
)
from bentpipe.tcp.handshake import Handshake
from bentpipe.tcp.receiver import Receiver, unwrap
from bentpipe.tcp.segment import Segment
from bentpipe.tcp.sender import Sender
from bentpipe.tcp.timers import Timers
from bentpipe.tcp.trace import Trace

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["ENDLESS", "Connection", "reset_for"]

ENDLESS = 1 << 60
"""As the number of octets to write: never ends."""

_SETUP_S: Final = 180
_SETUP_BSD_S: Final = 75
_IDLE_S: Final = 7200
_KEEP_INTERVAL_S: Final = 75
_MAX_IDLE_S: Final = 8 * _KEEP_INTERVAL_S
_SIMPLE: Final = SYN | FIN | RST | URG | ACK


@final
class Connection:
    """One end of a connection: its state, and who does what.

    Segments to send are appended to ``out``, which the host takes and empties after each call. With BSD's timers
    the host calls :meth:`fast_tick` every 200 ms and :meth:`slow_tick` every 500 ms; where ``timed`` is set it calls
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
    sender : Sender
    receiver : Receiver
    handshake : Handshake
    timers : Timers
    ideal : bool
        The timers are exact ones: no ticks.
    timed : bool
        Some timer is not of the host's ticks.
    receiving : bool
        The application still takes data: it has not called :meth:`close`.
    error : str
        Why the connection ended before its time; empty if it did not.
    """

    def __init__(self, config: TcpConfig, mss: int, iss: int, clock: int = 0, trace: Trace | None = None) -> None:
        self.config: TcpConfig = config
        self.state: int = CLOSED
        self.error: str = ""
        self.timers: Timers = Timers(config.timers != "bsd", clock)
        self.receiver: Receiver = Receiver(config, mss, self.timers)
        self.sender: Sender = Sender(config, mss, iss, self.timers, self.receiver, trace)
        self.handshake: Handshake = Handshake(config, mss, self.sender, self.receiver)
        self.receiver.set_mss(mss)
        self.out: list[Segment] = self.sender.out
        self.ideal: bool = self.timers.exact
        self.timed: bool = self.ideal or self.sender.growth.paces
        self.passive: bool = False
        self.closing: bool = False
        self.receiving: bool = True
        self.last_receive: int = clock
        self.keepalive: bool = config.keepalive
        self.segments_received: int = 0
        self.window_probes: int = 0
        self.keepalive_probes: int = 0
        self.quenches: int = 0
        self.opened_ps: int = -1
        self.established_ps: int = -1
        self.closed_ps: int = -1

    # ---- the application's side ----

    def listen(self) -> None:
        """Wait for a SYN."""
        self.state = LISTEN
        self.passive = True

    def open(self, now: int) -> None:
        """Send a SYN."""
        if self.state != CLOSED:
            raise ValueError("the connection is open already")
        timers = self.timers
        timers.at(now)
        self.opened_ps = now
        self.state = SYN_SENT
        self._limit_setup()
        self.sender.recovery.start(self.sender)
        self._output(False)

    def connect_directly(self, peer: Connection, now: int) -> None:
        """Connect to a ``peer`` that listens: the segments of the handshake go from hand to hand."""
        trace = self.sender.trace
        self.sender.trace = None
        self.open(now)
        for end, other in ((self, peer), (peer, self), (self, peer)):
            segments = list(end.out)
            end.out.clear()
            for segment in segments:
                other.receive(segment, now)
        for end in (self, peer):
            end.segments_received = 0
            end.sender.forget_handshake(end.config)
        self.sender.trace = trace

    def write(self, octets: int, now: int) -> None:
        """Write ``octets`` of the stream for the application; they wait while the send buffer is full."""
        if self.closing:
            raise ValueError("the connection is closed for writing")
        self.timers.at(now)
        self.sender.write(octets)
        if self.state >= ESTABLISHED:
            self._output(False)

    def discard_unsent(self, keep: int, now: int) -> None:
        """Discard all but ``keep`` octets of what the application has written and the send buffer has not taken."""
        self.timers.at(now)
        if self.sender.write_pending > keep:
            self.sender.write_pending = keep
            if keep == 0 and self.closing:
                self._finish_stream()
                self._output(False)

    def read(self, octets: int, now: int) -> int:
        """Read at most ``octets`` for the application, and return how many it got.

        The opened window may send an ACK.
        """
        self.timers.at(now)
        receiver = self.receiver
        taken = octets if octets < receiver.unread else receiver.unread
        receiver.unread -= taken
        if taken and self.state >= ESTABLISHED:
            self._output(False)
        return taken

    def close(self, now: int) -> None:
        """Close both directions for the application: new data is answered by a RST (RFC 1122 4.2.2.13)."""
        self.receiving = False
        self.shutdown(now)
        if self.state == FIN_WAIT_2 and self.timers.wait == 0:
            self._await_fin()

    def shutdown(self, now: int) -> None:
        """End writing: a FIN follows the last octet written. The application may still read."""
        self.timers.at(now)
        if self.closing:
            return
        self.closing = True
        if self.state == LISTEN or self.state == SYN_SENT or self.state == CLOSED:
            self._closed("")
            return
        if self.sender.write_pending == 0:
            self._finish_stream()
            self._output(False)

    def abort(self, now: int) -> None:
        """Give up: a RST, and nothing more."""
        self.timers.at(now)
        if self.state >= SYN_RECEIVED and self.state != TIME_WAIT:
            self.sender.emit(self.sender.snd_nxt, 0, RST | ACK)
        self._closed("aborted")

    def quench(self) -> None:
        """Handle a segment that the interface queue refused (ENOBUFS, ``tcp_quench``)."""
        self.quenches += 1
        if self.config.habit_quench:
            self.sender.growth.cwnd = self.sender.maxseg

    # ---- timers ----

    def fast_tick(self, now: int) -> None:
        """Handle BSD's fast timer: send the ACK that was delayed."""
        if self.receiver.delack:
            self.timers.now = now
            self.receiver.ack_now = True
            self._output(False)

    def slow_tick(self, tick: int, now: int) -> None:
        """Handle BSD's slow timer: tick number ``tick`` of the host."""
        timers = self.timers
        timers.now = now
        timers.clock = tick
        due = timers.rexmt
        if due != 0 and due <= tick:
            self._retransmission_timeout()
        due = timers.persist
        if due != 0 and due <= tick:
            self._persist_timeout()
        due = timers.keep
        if due != 0 and due <= tick:
            self._keep_timeout()
        due = timers.wait
        if due != 0 and due <= tick:
            self._wait_timeout()

    def next_tick(self) -> int:
        """Return the host's slow tick in which something is due, or 0: ticks before it may be left out."""
        return self.timers.next_tick()

    def next_timer(self) -> int:
        """Return the time at which :meth:`expire` is to be called (ps), 0 if never."""
        return self.timers.next_due()

    def expire(self, now: int) -> None:
        """Run the timers that are due and not of the host's ticks."""
        timers = self.timers
        due = timers.pace
        if due != 0 and due <= now:
            timers.pace = 0
            timers.at(now)
            self._output(False)
        if not timers.exact:
            return
        due = timers.delack
        if due != 0 and due <= now:
            timers.delack = 0
            timers.at(now)
            if self.receiver.delack:
                self.receiver.ack_now = True
                self._output(False)
        self.slow_tick(now, now)

    def _retransmission_timeout(self) -> None:
        if not self.sender.retransmission_timeout():
            self._closed("timed out")
            return
        self._output(False)
        self.sender.traced()

    def _persist_timeout(self) -> None:
        rto = self.sender.rto
        idle = self.timers.clock - self.last_receive
        if rto.shift == MAX_RETRANSMIT_SHIFT and (
            idle >= _IDLE_S * self.timers.per_second or idle >= rto.probe_limit()
        ):
            self._closed("timed out")
            return
        self.window_probes += 1
        self.sender.set_persist()
        self._output(True)

    def _keep_timeout(self) -> None:
        timers = self.timers
        per_second = timers.per_second
        if self.state < ESTABLISHED:
            self._closed("timed out")
            return
        if self.keepalive and self.state <= CLOSE_WAIT:
            idle = timers.clock - self.last_receive
            if idle < _IDLE_S * per_second:
                timers.keep = self.last_receive + _IDLE_S * per_second
                return
            if idle >= (_IDLE_S + _MAX_IDLE_S) * per_second:
                self._closed("timed out")
                return
            self.keepalive_probes += 1
            self.sender.emit(self.sender.snd_una - 1, 1 if self.config.habit_keepalive_octet else 0, ACK)
            timers.keep = timers.clock + _KEEP_INTERVAL_S * per_second
        else:
            timers.keep = 0

    def _await_fin(self) -> None:
        """Limit the wait for the peer's FIN, in FIN_WAIT_2 of an application that is done (4.4BSD)."""
        self.timers.wait = self.timers.clock + _MAX_IDLE_S * self.timers.per_second

    def _wait_timeout(self) -> None:
        """End TIME_WAIT, or give up a silent peer in FIN_WAIT_2 (``tcp_timers``, TCPT_2MSL)."""
        timers = self.timers
        if self.state == TIME_WAIT:
            self._closed("")
        elif timers.clock - self.last_receive <= _MAX_IDLE_S * timers.per_second:
            timers.wait = timers.clock + _KEEP_INTERVAL_S * timers.per_second
        else:
            self._closed("timed out")

    # ---- output ----

    def _output(self, force: bool) -> None:
        """Send what may be sent; ``force``: a window probe."""
        state = self.state
        if state >= ESTABLISHED:
            self.sender.output(self.last_receive, force)
        elif state >= SYN_SENT:
            self.handshake.output(state == SYN_RECEIVED)

    def _acknowledge(self) -> None:
        """Send an ACK, on data if there is some."""
        sender = self.sender
        if sender.snd_end > sender.snd_nxt or sender.fin_wanted:
            self.receiver.ack_now = True
            self._output(False)
        else:
            sender.emit(sender.snd_max, 0, ACK)

    # ---- input ----

    def receive(self, segment: Segment, now: int) -> None:
        """Process a segment whose checksums are right (``tcp_input``)."""
        timers = self.timers
        timers.at(now)
        self.last_receive = timers.clock
        self.segments_received += 1
        sender = self.sender
        receiver = self.receiver
        # Header prediction: the next segment expected of an established connection, with nothing special.
        if (
            self.state == ESTABLISHED
            and segment.flags & _SIMPLE == ACK
            and segment.window == sender.snd_wire
            and segment.options is None
            and segment.seq == receiver.rcv_nxt & MASK32
            and sender.snd_nxt == sender.snd_max
        ):
            una = sender.snd_una
            acked = (segment.ack - una) & MASK32
            length = segment.length
            if length == 0:
                if 0 < acked <= sender.snd_max - una and sender.dupacks == 0 and not sender.recovery.recovering:
                    sender.acknowledge(una + acked, segment.window)
                    if self.closing:
                        self._finish_stream()
                    sender.traced()
                    if sender.snd_end > sender.snd_nxt or receiver.ack_now or sender.fin_wanted:
                        sender.output(self.last_receive, False)
                    return
            elif acked == 0:
                seq = receiver.rcv_nxt
                if receiver.next_in_order(length):
                    sender.snd_wl1 = seq
                    if receiver.ack_now:
                        self._acknowledge()
                    return
        self._receive_slowly(segment)

    def _receive_slowly(self, segment: Segment) -> None:
        state = self.state
        if state == CLOSED:
            self._reset_reply(segment)
        elif state == LISTEN:
            self._receive_listen(segment)
        elif state == SYN_SENT:
            self._receive_syn_sent(segment)
        elif self._acceptable(segment):
            self._receive_acceptable(segment)

    def _acceptable(self, segment: Segment) -> bool:
        """Trim a segment to what is new and in the window (left in the receiver).

        Return False if nothing more is to be done with it.
        """
        sender = self.sender
        receiver = self.receiver
        options = segment.options
        flags = segment.flags
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        if flags & RST and not receiver.inside(seq) and not self.config.habit_reset_below_window:
            return False
        stamped = sender.timestamps and options is not None and options.has_timestamp
        if stamped and options is not None and not flags & RST and receiver.is_old(options):
            self._ack_and_drop(flags)
            return False
        receiver.trim_old(seq, segment.length, flags)
        if receiver.seg_length and not self.receiving and self.state > CLOSE_WAIT:
            # Data that nobody will read
            self._reset_reply(segment)
            self._closed("reset: data after the close")
            return False
        if not receiver.trim_beyond():
            self._ack_and_drop(receiver.seg_flags)
            return False
        if stamped and options is not None:
            receiver.note_timestamp(options)
        flags = receiver.seg_flags
        listens = self.state == SYN_RECEIVED and self.passive and not self.closing
        if flags & RST:
            if listens:
                self._relisten()
            else:
                finished = self.state in (CLOSING, LAST_ACK, TIME_WAIT)
                self._closed("" if finished else "reset by the peer")
            return False
        if flags & SYN:
            # A SYN in the window: an error (RFC 793). A repeated SYN of the handshake was trimmed above.
            if listens:
                self._relisten()
            elif self.state == TIME_WAIT:
                self._ack_and_drop(flags)
            else:
                sender.emit(sender.snd_nxt, 0, RST | ACK)
                self._closed("reset: SYN in the window")
            return False
        if flags & ACK:
            return True
        if receiver.ack_now:
            # Nothing of it was acceptable: an ACK tells the peer what is (RFC 9293 section 3.10.7.4).
            self._output(False)
        return False

    def _receive_acceptable(self, segment: Segment) -> None:
        """Process ACK, window, data and FIN of a segment, in this order (RFC 793 section 3.9)."""
        sender = self.sender
        receiver = self.receiver
        seq = receiver.seg_seq
        ack = unwrap(segment.ack, sender.snd_una)
        if self.state == SYN_RECEIVED:
            if ack <= sender.snd_una or ack > sender.snd_max:
                self._reset_reply(segment)
                return
            self._established()
            sender.snd_wl1 = seq - 1
        if ack > sender.snd_max:
            self._ack_and_drop(receiver.seg_flags)
            return
        una = sender.snd_una
        # The window of a SYN is never scaled (RFC 7323 section 2.2).
        wire = -1 if segment.flags & SYN else segment.window
        window = segment.window if wire < 0 else wire << sender.snd_shift
        output = sender.take_ack(ack, window, receiver.seg_length, segment.options)
        self._finish_stream()
        if ack > una and sender.fin_sent and ack > sender.snd_end:
            self._fin_acknowledged()
            if self.state == CLOSED:
                return
        if self.state == TIME_WAIT:
            # The peer has not seen our last ACK: send it again.
            self._start_time_wait()
            if receiver.seg_length or segment.flags & FIN:
                receiver.ack_now = True
        if sender.offered(seq, ack, window, wire):
            output = True
        if ack > una and sender.recovery.recovering:
            sender.recovery.advanced(sender, ack - una)
        if (
            (receiver.seg_length or receiver.seg_flags & FIN)
            and not receiver.fin_received
            and self.state != TIME_WAIT
            and receiver.take(self.state == ESTABLISHED)
        ):
            self._fin_arrived()
        if output or receiver.ack_now or sender.recovery.sends:
            self._output(False)
        sender.traced()

    def _receive_listen(self, segment: Segment) -> None:
        flags = segment.flags
        if flags & RST:
            return
        if flags & ACK:
            self._reset_reply(segment)
            return
        if not flags & SYN:
            return
        self.handshake.take(segment)
        self.state = SYN_RECEIVED
        self.sender.recovery.start(self.sender)
        self._limit_setup()
        self._output(False)

    def _receive_syn_sent(self, segment: Segment) -> None:
        sender = self.sender
        flags = segment.flags
        if flags & ACK and segment.ack != (sender.iss + 1) & MASK32:
            self._reset_reply(segment)
            return
        if flags & RST:
            if flags & ACK:
                self._closed("connection refused")
            return
        if not flags & SYN:
            return
        self.handshake.take(segment)
        self.receiver.ack_now = True
        self.timers.rexmt = 0
        if flags & ACK:
            self._established()
            sender.offered_first(self.receiver.rcv_nxt - 1, segment.window)
        else:
            self.state = SYN_RECEIVED
        self._output(False)
        sender.traced()

    def _ack_and_drop(self, flags: int) -> None:
        if not flags & RST:
            self.receiver.ack_now = True
            self._output(False)

    def _reset_reply(self, segment: Segment) -> None:
        if not segment.flags & RST:
            self.sender.put(reset_for(segment))

    # ---- states ----

    def _limit_setup(self) -> None:
        """Set the time limit of the handshake, which begins."""
        seconds = _SETUP_BSD_S if self.config.habit_setup_75_s else _SETUP_S
        self.timers.keep = self.timers.clock + seconds * self.timers.per_second

    def _established(self) -> None:
        """Enter ESTABLISHED: our SYN is acknowledged, and we have the peer's."""
        timers = self.timers
        sender = self.sender
        self.established_ps = timers.now
        timers.keep = timers.clock + _IDLE_S * timers.per_second if self.keepalive else 0
        self.state = ESTABLISHED
        sender.advance(sender.iss + 1)
        sender.scoreboard.clear(sender.snd_una)
        sender.rto.established()
        sender.growth.on_established(sender.rtt.smoothed_ps)
        self._finish_stream()

    def _finish_stream(self) -> None:
        """Request a FIN, once all that the application wrote before it closed is in the send buffer."""
        sender = self.sender
        if self.closing and not sender.fin_wanted and sender.write_pending == 0:
            if self.state == ESTABLISHED:
                self.state = FIN_WAIT_1
            elif self.state == CLOSE_WAIT:
                self.state = LAST_ACK
            else:
                return  # half open: once it is established
            sender.fin_wanted = True

    def _fin_acknowledged(self) -> None:
        if self.state == FIN_WAIT_1:
            self.state = FIN_WAIT_2
            if not self.receiving:
                self._await_fin()
        elif self.state == CLOSING:
            self._time_wait()
        elif self.state == LAST_ACK:
            self._closed("")

    def _fin_arrived(self) -> None:
        if self.state == ESTABLISHED:
            self.state = CLOSE_WAIT
        elif self.state == FIN_WAIT_1:
            self.state = CLOSING
        elif self.state == FIN_WAIT_2:
            self._time_wait()

    def _time_wait(self) -> None:
        self.state = TIME_WAIT
        self.timers.stop()
        self.closed_ps = self.timers.now
        self._start_time_wait()

    def _start_time_wait(self) -> None:
        self.timers.wait = self.timers.clock + self.timers.ticks(2 * self.config.msl_ps)

    def _relisten(self) -> None:
        """Listen again, after a reset of a half-open connection that a listener took."""
        self.state = LISTEN
        self.timers.stop()
        self.handshake.forget()

    def _closed(self, error: str) -> None:
        self.state = CLOSED
        self.error = error
        self.timers.stop()
        self.receiver.delack = False
        self.receiver.ack_now = False
        if self.closed_ps < 0:
            self.closed_ps = self.timers.now


def reset_for(segment: Segment) -> Segment:
    """Return the RST that answers a segment of no connection (RFC 793 section 3.4)."""
    if segment.flags & ACK:
        return Segment(segment.ack, 0, RST, 0, 0, 0, None)
    size = segment.length
    if segment.flags & SYN:
        size += 1
    if segment.flags & FIN:
        size += 1
    return Segment(0, (segment.seq + size) & MASK32, RST | ACK, 0, 0, 0, None)
