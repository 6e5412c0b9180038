"""Congestion control: one small class a variant, on the frame of 4.4BSD's ``tcp_input``.

A connection calls :meth:`CongestionControl.grow` for each ACK of new data, :meth:`~CongestionControl.duplicate`
for each duplicate ACK, and, while duplicates or a recovery are pending, :meth:`~CongestionControl.new_ack` before
and :meth:`~CongestionControl.advanced` after it moved ``snd_una``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.constants import DUPACK_THRESHOLD

if TYPE_CHECKING:
    from bentpipe.tcp.connection import Connection

__all__ = ["CongestionControl", "NewReno", "Reno", "Sack", "Tahoe", "make_congestion_control"]


class CongestionControl:
    """Slow start and congestion avoidance; the rest is the variants'.

    Members
    -------
    recovering : bool
        A recovery is on that ends with an ACK beyond ``recover`` (New Reno, SACK).
    sends : bool
        In this recovery :meth:`send` decides what is sent (SACK).
    hold_timer : bool
        The present ACK doesn't restart the retransmission timer (New Reno, impatient).
    """

    def __init__(self, config: TcpConfig) -> None:
        self.recovering: bool = False
        self.sends: bool = False
        self.hold_timer: bool = False
        self.recover: int = 0
        self.avoid: bool = config.habit_avoid_multiple
        self.eighth: bool = config.habit_maxseg_eighth
        self.deflate_above: int = DUPACK_THRESHOLD if config.habit_deflation_bug else DUPACK_THRESHOLD - 1

    def start(self, c: Connection) -> None:
        """The connection sent its SYN: its sequence numbers are known."""
        self.recover = c.iss

    def grow(self, c: Connection) -> None:
        """An ACK of new data: one step whatever it covers; slow start up to and including ssthresh."""
        cwnd = c.cwnd
        step = c.maxseg
        if cwnd > c.ssthresh:
            step = step * step // cwnd + (step >> 3 if self.eighth else 0)
        cwnd += step
        c.cwnd = cwnd if cwnd < c.max_cwnd else c.max_cwnd

    def half_window(self, c: Connection) -> int:
        """Half the window in whole segments, two at least (``tcp_input``, ``tcp_timers``)."""
        window = c.snd_wnd if c.snd_wnd < c.cwnd else c.cwnd
        segments = window // 2 // c.maxseg
        return (segments if segments > 2 else 2) * c.maxseg

    def half_flight(self, c: Connection) -> int:
        """Half of what is outstanding, two segments at least (RFC 2581 equation 3)."""
        half = (c.snd_max - c.snd_una) // 2
        least = 2 * c.maxseg
        return half if half > least else least

    def repeats(self, c: Connection) -> bool:
        """A fast retransmission would be a further one for the same window of data, and is to be avoided."""
        return self.avoid and c.snd_una <= self.recover

    def timeout(self, c: Connection) -> None:
        """The retransmission timer ran out."""
        c.ssthresh = self.half_window(c)
        c.cwnd = c.maxseg
        self.recovering = False
        self.sends = False
        self.hold_timer = False
        self.recover = c.snd_max

    def duplicate(self, c: Connection) -> None:
        """A duplicate ACK was counted in ``c.dupacks``."""
        raise NotImplementedError

    def new_ack(self, c: Connection, ack: int) -> bool:
        """New data is about to be acknowledged after duplicates. True if the ACK opens the window as usual."""
        return True

    def advanced(self, c: Connection, acked: int) -> None:
        """``snd_una`` moved within a recovery."""

    def send(self, c: Connection) -> None:
        """Send what the recovery lets go."""


@final
class Tahoe(CongestionControl):
    """Fast retransmission, then slow start (4.3BSD-Tahoe; Jacobson 1988).

    It goes back to the lost segment as Fall and Floyd describe it; 4.3BSD-Tahoe itself sent on from where it was
    (``habit_tahoe_keeps_snd_nxt``).
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self.keep: bool = config.habit_tahoe_keeps_snd_nxt

    def duplicate(self, c: Connection) -> None:
        if c.dupacks == DUPACK_THRESHOLD and not self.repeats(c):
            self.recover = c.snd_max
            c.ssthresh = self.half_window(c)
            c.cwnd = c.maxseg
            c.fast_retransmit(not self.keep)


@final
class Reno(CongestionControl):
    """Fast retransmission and fast recovery of 4.3BSD-Reno: the first ACK of new data ends the recovery."""

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self.inflates: bool = False  # the third of these duplicates retransmitted

    def duplicate(self, c: Connection) -> None:
        if c.dupacks == DUPACK_THRESHOLD:
            self.inflates = not self.repeats(c)
            if self.inflates:
                self.recover = c.snd_max
                c.ssthresh = self.half_window(c)
                c.fast_retransmit(False)
                c.cwnd = c.ssthresh + DUPACK_THRESHOLD * c.maxseg
        elif c.dupacks > DUPACK_THRESHOLD and self.inflates:
            c.cwnd += c.maxseg
            c.send_ready = True

    def new_ack(self, c: Connection, ack: int) -> bool:
        if self.inflates and c.dupacks > self.deflate_above and c.cwnd > c.ssthresh:
            c.cwnd = c.ssthresh
        return True


@final
class NewReno(CongestionControl):
    """Fast recovery that lasts until everything outstanding at its start is acknowledged (RFC 2582).

    A partial ACK shows the next loss, which is retransmitted at once: one round trip a loss.
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self.impatient: bool = config.newreno_impatient
        self.careful: bool = config.newreno_careful
        self.avoid = config.newreno_avoid_multiple
        self.exit_flight: bool = config.newreno_exit_flight
        self.partials: int = 0

    def duplicate(self, c: Connection) -> None:
        if self.recovering:
            c.cwnd += c.maxseg
            c.send_ready = True
        elif c.dupacks == DUPACK_THRESHOLD:
            if self.repeats(c) and (self.careful or c.snd_una < self.recover):
                return
            self.recovering = True
            self.partials = 0
            self.recover = c.snd_max
            c.ssthresh = self.half_flight(c)
            c.fast_retransmit(False)
            c.cwnd = c.ssthresh + DUPACK_THRESHOLD * c.maxseg

    def new_ack(self, c: Connection, ack: int) -> bool:
        if not self.recovering:
            return True
        if ack >= self.recover:
            self.recovering = False
            cwnd = c.ssthresh
            if self.exit_flight:
                flight = c.snd_max - ack + c.maxseg
                if flight < cwnd:
                    cwnd = flight
            c.cwnd = cwnd
            return False
        self.partials += 1
        self.hold_timer = self.impatient and self.partials > 1
        return False

    def advanced(self, c: Connection, acked: int) -> None:
        cwnd = c.cwnd - acked
        if acked >= c.maxseg:
            cwnd += c.maxseg
        c.cwnd = cwnd if cwnd > c.maxseg else c.maxseg
        c.retransmit_first()
        c.send_ready = True


@final
class Sack(CongestionControl):
    """Recovery from a scoreboard (RFC 3517), or with Fall and Floyd's pipe (``sack_pipe``).

    While it is on, the connection's output is :meth:`send`, after each ACK (RFC 3517 section 5, B and C).
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self.counted: bool = config.sack_pipe == "fall-floyd"
        self.pipe: int = 0

    def duplicate(self, c: Connection) -> None:
        if self.recovering:
            self.pipe -= c.maxseg
        elif c.dupacks == DUPACK_THRESHOLD:
            una = c.snd_una
            if una < self.recover:
                return
            board = c.scoreboard
            self.recovering = True
            self.sends = True
            self.recover = c.snd_max
            c.ssthresh = self.half_flight(c)
            c.cwnd = c.ssthresh
            board.start_recovery()
            # The lost segment stays in Fall and Floyd's pipe for its retransmission (ns-2, tcp-sack1.cc).
            self.pipe = c.snd_max - una - DUPACK_THRESHOLD * c.maxseg
            board.retransmitted(c.fast_retransmit(False))

    def new_ack(self, c: Connection, ack: int) -> bool:
        if not self.recovering:
            return True
        if ack >= self.recover:
            self.recovering = False
            self.sends = False
        return False

    def advanced(self, c: Connection, acked: int) -> None:
        self.pipe -= 2 * c.maxseg

    def send(self, c: Connection) -> None:
        board = c.scoreboard
        if self.counted:
            lost = board.highest
            pipe = self.pipe if self.pipe > 0 else 0
        else:
            lost = board.lost_below()
            pipe = board.pipe(c.snd_max)
        while c.cwnd - pipe >= c.maxseg:
            start, end = board.hole(lost)
            if end == 0:
                sent = c.send_new()
                if sent == 0 and not self.counted:
                    start, end = board.hole(board.highest)
                if sent == 0 and end == 0:
                    break
                pipe += sent
            if end:
                end = c.retransmit_range(start, end)
                board.retransmitted(end)
                pipe += end - start
        self.pipe = pipe


def make_congestion_control(config: TcpConfig, variant: str) -> CongestionControl:
    """The congestion control of this name."""
    if variant == "tahoe":
        return Tahoe(config)
    if variant == "newreno":
        return NewReno(config)
    if variant == "sack":
        return Sack(config)
    return Reno(config)
