"""The receiving half of a connection: reassembly, the window it advertises, and when it acknowledges."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from bentpipe.tcp.constants import FIN, MASK32, MAX_WINDOW, MAX_WINDOW_SHIFT, PSH, SYN
from bentpipe.tcp.reassembly import Reassembly
from bentpipe.tcp.segment import Options
from bentpipe.tcp.timers import Timers

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["Receiver", "round_up", "unwrap"]

_HALF32 = 1 << 31


@final
class Receiver:
    """The receiving half of a connection.

    Members
    -------
    rcv_nxt : int
        As in RFC 793, unwrapped.
    rcv_base : int
        Sequence number of the stream's first octet; 0 before the peer's SYN.
    rcv_adv : int
        Right edge of the advertised window.
    unread : int
        Octets received in order that the application has not read (``auto_read`` false).
    auto_read : bool
        The application reads all data as soon as they arrive, as a sink does.
    fin_received : bool
        The stream is complete.
    ack_now, delack : bool
        An ACK must be sent at once; an ACK waits for the timer.
    seg_seq, seg_length, seg_flags : int
        The part of the segment last given to :meth:`trim` that is new and in the window.
    """

    def __init__(self, config: TcpConfig, mss: int, timers: Timers) -> None:
        self.timers: Timers = timers
        self.mss: int = mss
        self.rcv_hiwat: int = round_up(config.receive_buffer, mss) if config.round_buffers else config.receive_buffer
        self.own_shift: int = 0
        if config.window_scale:
            while self.own_shift < MAX_WINDOW_SHIFT and MAX_WINDOW << self.own_shift < self.rcv_hiwat:
                self.own_shift += 1
        self.rcv_nxt: int = 0
        self.rcv_base: int = 0
        self.rcv_adv: int = 0
        self.rcv_shift: int = 0
        self.rcv_max_window: int = MAX_WINDOW
        self.update_at: int = 0
        self.unread: int = 0
        self.auto_read: bool = True
        self.reassembly: Reassembly = Reassembly()
        self.fin_seq: int = -1
        self.fin_received: bool = False
        self.ack_now: bool = False
        self.delack: bool = False
        self.every_second: bool = config.ack_policy == "every_second"
        self.each: bool = config.ack_policy == "immediate"
        self.delayed_ack_ps: int = config.delayed_ack_ps
        self.last_ack_sent: int = 0
        self.sacks: bool = False
        self.ts_recent: int = 0
        self.seg_seq: int = 0
        self.seg_length: int = 0
        self.seg_flags: int = 0
        self.out_of_order: int = 0
        self.duplicates: int = 0
        self.delivered_ps: int = -1

    def start(self, irs: int) -> None:
        """Set the sequence numbers from the peer's SYN."""
        self.rcv_base = irs + 1
        self.rcv_nxt = irs + 1
        self.rcv_adv = irs + 1
        self.last_ack_sent = irs + 1

    def forget_peer(self) -> None:
        """Forget the peer that sent a SYN and is gone; another peer may send its own."""
        self.rcv_nxt = 0
        self.rcv_base = 0
        self.rcv_adv = 0
        self.rcv_shift = 0
        self.rcv_max_window = MAX_WINDOW
        self.last_ack_sent = 0
        self.sacks = False
        self.ts_recent = 0
        self.ack_now = False
        self.delack = False

    def set_mss(self, size: int) -> None:
        self.mss = size
        half = (self.rcv_hiwat + 1) // 2
        self.update_at = 2 * size if 2 * size < half else half

    @property
    def delivered(self) -> int:
        """Octets of the stream that the application has read."""
        octets = self.rcv_nxt - self.rcv_base - self.unread
        if self.fin_received:
            octets -= 1
        return octets if self.rcv_base else 0

    # ---- the window ----

    def space(self) -> int:
        """Return the octets of window from ``rcv_nxt`` on: the free ones, or those already advertised if they are
        more."""
        window = self.rcv_hiwat - self.unread
        if self.rcv_adv - self.rcv_nxt > window:
            window = self.rcv_adv - self.rcv_nxt
        return window if window > 0 else 0

    def update_due(self) -> bool:
        """Return whether the window has opened so far that the peer must be told."""
        window = self.rcv_hiwat - self.unread
        if window > self.rcv_max_window:
            window = self.rcv_max_window
        if window <= 0 or self.fin_received:
            return False
        return window - (self.rcv_adv - self.rcv_nxt) >= self.update_at

    def advertise(self) -> int:
        """Return the window to advertise, in the header's form, and remember it."""
        space = self.rcv_hiwat - self.unread
        if space < self.rcv_hiwat >> 2 and space < self.mss:
            space = 0
        if space > self.rcv_max_window:
            space = self.rcv_max_window
        held = self.rcv_adv - self.rcv_nxt
        if space <= held:
            return (held if held > 0 else 0) >> self.rcv_shift
        self.rcv_adv = self.rcv_nxt + space
        return space >> self.rcv_shift

    def advertise_syn(self) -> int:
        """Return the window of a SYN and ACK, never scaled."""
        window = self.syn_window()
        if self.rcv_nxt + window > self.rcv_adv:
            self.rcv_adv = self.rcv_nxt + window
        return window

    def syn_window(self) -> int:
        """Return the window of a SYN."""
        window = self.rcv_hiwat - self.unread
        return window if window < MAX_WINDOW else MAX_WINDOW

    # ---- acknowledging ----

    def acknowledged(self) -> None:
        """Note that a segment was sent, which acknowledges all data received in order."""
        self.last_ack_sent = self.rcv_nxt
        self.ack_now = False
        self.delack = False
        self.timers.delack = 0

    def acknowledge_data(self) -> None:
        """Acknowledge data that arrived in order, by the ACK policy."""
        if self.each or (self.delack and self.every_second):
            self.ack_now = True
        if not self.each and not self.delack:
            self.delack = True
            if self.timers.exact:
                self.timers.delack = self.timers.now + self.delayed_ack_ps

    # ---- segments ----

    def next_in_order(self, length: int) -> bool:
        """Accept the next ``length`` octets, the common case; return False, and do nothing, if there are gaps or no
        room."""
        window = self.rcv_hiwat - self.unread
        if length > window or self.fin_seq >= 0 or self.reassembly.starts:
            return False
        self.rcv_nxt += length
        self.delivered_ps = self.timers.now
        self.acknowledge_data()
        if not self.auto_read:
            self.unread += length
        elif self.update_due():  # the reader empties the buffer
            self.ack_now = True
        return True

    def inside(self, seq: int) -> bool:
        """Return whether a RST with this number counts (RFC 793 section 3.4)."""
        return seq == self.rcv_nxt or self.rcv_nxt < seq < self.rcv_nxt + self.space()

    def is_old(self, options: Options) -> bool:
        """Return whether the timestamp is older than the last one in order: PAWS (RFC 1323 section 4)."""
        if (options.ts_value - self.ts_recent) & MASK32 < _HALF32:
            return False
        self.duplicates += 1
        return True

    def trim_old(self, seq: int, length: int, flags: int) -> None:
        """Cut off what was received before."""
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
        self.seg_seq = seq
        self.seg_length = length
        self.seg_flags = flags

    def trim_beyond(self) -> bool:
        """Cut off what is beyond the window; return False if nothing is left, and it was no window probe."""
        window = self.space()
        length = self.seg_length
        todrop = self.seg_seq + length - (self.rcv_nxt + window)
        if todrop > 0:
            if todrop >= length:
                if window != 0 or self.seg_seq != self.rcv_nxt:
                    return False
                self.ack_now = True  # a window probe
                self.seg_length = 0
            else:
                self.seg_length = length - todrop
            self.seg_flags &= ~(PSH | FIN)
        return True

    def note_timestamp(self, options: Options) -> None:
        """Keep the timestamp to echo: that of the first segment not acknowledged yet (RFC 1323 section 3.4)."""
        if self.seg_seq <= self.last_ack_sent <= self.seg_seq + self.seg_length:
            self.ts_recent = options.ts_value

    def take(self, delays: bool) -> bool:
        """Take data and FIN of the trimmed segment; return True at the stream's end.

        ``delays``: an ACK of data in order may wait.
        """
        seq = self.seg_seq
        length = self.seg_length
        flags = self.seg_flags
        board = self.reassembly
        if flags & FIN:
            self.fin_seq = seq + length
        if length:
            if seq == self.rcv_nxt:
                if not board.starts and delays:
                    self.acknowledge_data()
                    nxt = seq + length
                else:
                    self.ack_now = True
                    nxt = board.advance(seq + length)
                if not self.auto_read:
                    self.unread += nxt - seq
                self.rcv_nxt = nxt
                self.delivered_ps = self.timers.now
                if self.auto_read and not self.ack_now and self.update_due():
                    self.ack_now = True
            else:
                self.out_of_order += 1
                board.add(seq, seq + length)
                self.ack_now = True
        if self.fin_seq >= 0 and self.fin_seq == self.rcv_nxt:
            self.fin_received = True
            self.rcv_nxt += 1
            self.ack_now = True
            return True
        if flags & FIN:
            self.ack_now = True
        return False


def unwrap(wire: int, near: int) -> int:
    """Return the number that is ``wire`` modulo 2**32, within 2**31 of ``near``."""
    delta = (wire - near) & MASK32
    return near + (delta if delta < _HALF32 else delta - (1 << 32))


def round_up(value: int, unit: int) -> int:
    """Return the next multiple of ``unit``."""
    return (value + unit - 1) // unit * unit
